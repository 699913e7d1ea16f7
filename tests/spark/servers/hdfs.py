"""A real HDFS on loopback, for tests: a NameNode and a DataNode, each a process of its own.

Spark ships what talks to an HDFS. What serves one is in a jar of 54 MB that Hadoop makes for tests of its clients.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import run
from xml.sax.saxutils import escape

from hdfs_native import Client

from tests.spark.servers.jars import Module, fetched, hadoop_version, java, of_spark
from tests.spark.servers.processes import Server, running

_SERVERS = "org.apache.hadoop.hdfs.server"
_NAMENODE = f"{_SERVERS}.namenode.NameNode"
_DATANODE = f"{_SERVERS}.datanode.DataNode"

_SHIPPED = ("hadoop-client-api-*", "hadoop-client-runtime-*", "slf4j-api-*", "log4j-*", "jcl-over-slf4j-*")
"""What the servers need of the jars that come with Spark."""

_NAMENODE_SETTINGS = {
    "dfs.namenode.rpc-address": "127.0.0.1:0",
    "dfs.namenode.http-address": "127.0.0.1:0",
    "dfs.namenode.safemode.extension": "0",
}
_DATANODE_SETTINGS = {
    "dfs.datanode.address": "127.0.0.1:0",
    "dfs.datanode.http.address": "127.0.0.1:0",
    "dfs.datanode.ipc.address": "127.0.0.1:0",
    "dfs.datanode.hostname": "127.0.0.1",
}

_LOGGING = f"""\
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %p %c{{1}}: %m%n%ex
# It says its port.
logger.namenode.name = {_NAMENODE}
logger.namenode.level = info
"""


@dataclass(frozen=True, slots=True)
class HdfsCluster:
    """A cluster that runs."""

    address: str

    @property
    def spark_settings(self) -> dict[str, str]:
        """How a Spark session reaches the cluster: by its address; there is one DataNode to write to."""
        return {"spark.hadoop.dfs.replication": "1", "spark.hadoop.dfs.client.use.datanode.hostname": "false"}


@contextmanager
def hdfs_cluster() -> Iterator[HdfsCluster]:
    """Start an empty HDFS that can be written to; at the end it is gone.

    That takes ten seconds of a processor, and each server 200 MB. UnreachableError if the jar is not in the cache,
    and Maven Central cannot be reached.
    """
    with tempfile.TemporaryDirectory(prefix="harken-hdfs-") as temporary:
        folder = Path(temporary)
        namenode = _program(folder / "namenode", "hdfs://127.0.0.1:0", _NAMENODE_SETTINGS, _NAMENODE)
        _format(namenode)
        with running("namenode", namenode, folder) as names:
            address = "hdfs://127.0.0.1:" + names.said(r"NameNode RPC up at: \S*:(\d+)")
            datanode = _program(folder / "datanode", address, _DATANODE_SETTINGS, _DATANODE)
            with running("datanode", datanode, folder) as data:
                _wait_until_written(address, (names, data))
                yield HdfsCluster(address)


def _format(namenode: list[str]) -> None:
    finished = run([*namenode, "-format", "-nonInteractive"], capture_output=True, timeout=120, check=False)
    assert finished.returncode == 0, (finished.stdout + finished.stderr).decode(errors="replace")


def _wait_until_written(address: str, servers: Sequence[Server], patience: float = 120.0) -> None:
    """The NameNode answers long before the DataNode has come to it, and blocks have a place."""
    until = time.monotonic() + patience
    client = Client(address)
    while True:
        try:
            with client.create("/ready") as file:
                file.write(b"ready")
        except (OSError, RuntimeError):
            for server in servers:
                server.check(until)
            client.delete("/ready")
            time.sleep(0.1)
        else:
            client.delete("/ready")
            return


def _program(folder: Path, address: str, settings: Mapping[str, str], main: str) -> list[str]:
    """Configure a server in a folder; gives the command that starts it."""
    _configure(folder, address, settings)
    shipped = [str(jar) for pattern in _SHIPPED for jar in sorted(of_spark().glob(f"{pattern}.jar"))]
    served = Module("org.apache.hadoop", "hadoop-client-minicluster", hadoop_version(), alone=True)
    serving = fetched("hdfs", {"server": [served]}) / "server" / "*"
    path = ":".join([str(folder), str(serving), *shipped])
    quick = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Djava.io.tmpdir={folder}")
    return [java(), *quick, "-cp", path, main]


def _configure(folder: Path, address: str, settings: Mapping[str, str]) -> None:
    # Found here, and empty, web pages are not unpacked from the jar, which takes longer than all the rest.
    for pages in ("hdfs", "datanode", "static"):
        (folder / "webapps" / pages).mkdir(parents=True)
    (folder / "log4j2.properties").write_text(_LOGGING, encoding="utf-8")
    _write(folder / "core-site.xml", {"fs.defaultFS": address, "hadoop.tmp.dir": f"{folder}/data"})
    _write(folder / "hdfs-site.xml", {"dfs.replication": "1", **settings})


def _write(file: Path, settings: Mapping[str, str]) -> None:
    written = [
        f"<property><name>{name}</name><value>{escape(value)}</value></property>"
        for name, value in settings.items()
    ]
    file.write_text(f"<configuration>{''.join(written)}</configuration>", encoding="utf-8")
