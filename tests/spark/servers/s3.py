"""A real S3 server on loopback, for tests: that of moto, and Spark's connector to it, S3A."""

from __future__ import annotations

import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.spark.servers.jars import Module, fetched, hadoop_version
from tests.spark.servers.processes import running

# What hadoop-aws 3.5.0 is built with.
_SDK = "2.35.4"
_ACCELERATOR = "1.3.1"

_PROGRAM = Path(__file__).with_name("s3_program.py")


@dataclass(frozen=True, slots=True)
class S3Server:
    """A server that runs, with a bucket."""

    endpoint: str
    bucket: str = "harken"
    key: str = "key"
    secret: str = "secret"
    region: str = "us-east-1"

    @property
    def address(self) -> str:
        """The bucket, as Spark addresses it."""
        return f"s3a://{self.bucket}"

    @property
    def options(self) -> dict[str, str]:
        """How obstore reaches the server: `S3Store(bucket, config=options)`."""
        return {
            "endpoint": self.endpoint,
            "access_key_id": self.key,
            "secret_access_key": self.secret,
            "region": self.region,
            "virtual_hosted_style_request": "false",
            "allow_http": "true",
        }

    @property
    def spark_settings(self) -> dict[str, str]:
        """How a Spark session reaches the server. Fetches jars the first time, and raises as `s3a_jars` does."""
        s3a = {
            "endpoint": self.endpoint,
            "endpoint.region": self.region,
            "path.style.access": "true",
            "connection.ssl.enabled": "false",
            "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
            "access.key": self.key,
            "secret.key": self.secret,
        }
        named = {f"spark.hadoop.fs.s3a.{name}": value for name, value in s3a.items()}
        return {"spark.jars": ",".join(str(jar) for jar in s3a_jars()), **named}


def s3a_jars() -> list[Path]:
    """What a session needs to read and write s3a://, beside what Spark ships.

    hadoop-aws asks for one jar with the whole AWS SDK, of some 600 MB. The modules that S3A uses of it are 14 MB
    with all they need, Netty aside, which they take from Spark. UnreachableError if they are not in the cache, and
    Maven Central cannot be reached.
    """
    amazon = "software.amazon.awssdk"
    modules = [
        Module("org.apache.hadoop", "hadoop-aws", hadoop_version(), alone=True),
        Module("software.amazon.s3.analyticsaccelerator", "analyticsaccelerator-s3", _ACCELERATOR, alone=True),
        *(Module(amazon, name, _SDK) for name in ("s3", "s3-transfer-manager", "sts")),
    ]
    folder = fetched("s3", {"s3a": modules}, without=("io.netty", "org.slf4j"))
    return sorted((folder / "s3a").glob("*.jar"))


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Start a server with an empty bucket; at the end it is gone. That takes two seconds, and needs no network.

    Everything is in the memory of the server. Objects of 200 MB take seconds to put: use few.
    """
    with (
        tempfile.TemporaryDirectory(prefix="harken-s3-") as folder,
        running("s3", [sys.executable, str(_PROGRAM)], Path(folder)) as process,
    ):
        port = process.said(r"listening on port (\d+)")
        server = S3Server(f"http://127.0.0.1:{port}")
        create = urllib.request.Request(f"{server.endpoint}/{server.bucket}", data=b"", method="PUT")
        urllib.request.urlopen(create, timeout=60).close()
        yield server
