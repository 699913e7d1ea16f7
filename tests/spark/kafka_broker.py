"""A real Kafka broker on this machine, and Spark's connector to it, for tests.

Both come from Maven Central, through the Ivy that Spark ships, into the user's cache, and are then there offline.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

from harken.spark.java import java_home

# The connector is the newest that is found there. Its token provider, of which little is asked without Kerberos,
# is found there of an earlier version only; so what the connector needs is named one by one.
MODULES = """\
<ivy-module version="2.0">
  <info organisation="harken" module="kafka-tests"/>
  <configurations><conf name="broker"/><conf name="connector"/></configurations>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="3.9.2" conf="broker->master,runtime"/>
    <dependency org="org.slf4j" name="slf4j-simple" rev="1.7.36" conf="broker->master,runtime"/>
    <dependency org="org.apache.spark" name="spark-sql-kafka-0-10_2.13" rev="4.2.0" conf="connector->master"/>
    <dependency org="org.apache.spark" name="spark-token-provider-kafka-0-10_2.13" rev="4.1.0-preview1"
                conf="connector->master"/>
    <dependency org="org.apache.kafka" name="kafka-clients" rev="3.9.2" conf="connector->master"/>
    <dependency org="org.apache.commons" name="commons-pool2" rev="2.13.1" conf="connector->master"/>
  </dependencies>
</ivy-module>
"""

SETTINGS = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:{controller}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/data
num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""

_UNREACHABLE = re.compile(
    r"Host \S+ not found|java\.net\.(?:ConnectException|NoRouteToHostException|UnknownHostException)[^\n)]*"
)


class UnreachableError(Exception):
    """Maven Central cannot be reached at all."""


def jars(java_options: tuple[str, ...] = ()) -> Path:
    """A folder with the jars of the broker, in `broker`, and of the connector, in `connector`.

    Fetches them the first time (55 MB). UnreachableError if there is no way to the network; AssertionError if
    anything else goes wrong.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    final = cache / "harken" / f"kafka-{hashlib.sha256(MODULES.encode()).hexdigest()[:16]}"
    if final.exists():
        return final
    final.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=final.parent, prefix=".kafka-") as folder:
        _fetch(Path(folder), java_options)
        # Another process may have been first.
        with suppress(OSError):
            (Path(folder) / "jars").rename(final)
    return final


def _fetch(folder: Path, java_options: tuple[str, ...]) -> None:
    """Have Ivy put the jars into `folder/jars`."""
    (folder / "ivy.xml").write_text(MODULES, encoding="utf-8")
    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    pattern = f"{folder}/jars/[conf]/[organisation].[artifact]-[revision](-[classifier]).[ext]"
    options = (f"-Divy.default.ivy.user.dir={folder}/ivy", *java_options)
    command = [_java(), *options, "-jar", str(ivy), "-ivy", str(folder / "ivy.xml"), "-retrieve", pattern]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    said = finished.stdout + finished.stderr
    unreachable = _UNREACHABLE.search(said)
    if finished.returncode and unreachable and "[SUCCESSFUL ]" not in said:
        raise UnreachableError(unreachable[0])
    assert finished.returncode == 0, said


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """Start a broker that keeps its data in a folder, and stop it at the end; gives its address."""
    port, controller = _free_ports()
    settings = folder / "server.properties"
    settings.write_text(SETTINGS.format(port=port, controller=controller, folder=folder), encoding="utf-8")
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    formatting = _kafka("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings))
    subprocess.run(formatting, capture_output=True, timeout=60, check=True)
    log = folder / "log"
    with open(log, "wb") as output:
        process = subprocess.Popen(_kafka("kafka.Kafka", str(settings)), stdout=output, stderr=output)
    try:
        _wait(process, port, log)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path, patience: float = 60.0) -> None:
    until = time.monotonic() + patience
    while True:
        assert process.poll() is None, f"the broker ended: {log.read_text()}"
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        assert time.monotonic() < until, f"the broker does not answer: {log.read_text()}"
        time.sleep(0.1)


def _kafka(*arguments: str) -> list[str]:
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return [_java(), "-Xmx256m", "-XX:+UseSerialGC", quiet, "-cp", f"{jars()}/broker/*", *arguments]


def _java() -> str:
    return shutil.which("java", path=java_home() / "bin") or "java"


def _free_ports() -> tuple[int, int]:
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        return first.getsockname()[1], second.getsockname()[1]
