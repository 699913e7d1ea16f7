"""A real Kafka broker on this machine, and Spark's connector to it, for tests."""

from __future__ import annotations

import base64
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.spark.servers.jars import Module, fetched, java

BROKER = (Module("org.apache.kafka", "kafka_2.13", "3.9.2"), Module("org.slf4j", "slf4j-simple", "1.7.36"))

# The connector is the newest that is found there. Its token provider, of which little is asked without Kerberos,
# is found there of an earlier version only; so what the connector needs is named one by one.
CONNECTOR = (
    Module("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0", alone=True),
    Module("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.1.0-preview1", alone=True),
    Module("org.apache.kafka", "kafka-clients", "3.9.2", alone=True),
    Module("org.apache.commons", "commons-pool2", "2.13.1", alone=True),
)

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


def jars(java_options: tuple[str, ...] = ()) -> Path:
    """A folder with the jars of the broker, in `broker`, and of the connector, in `connector`.

    Fetches them the first time (55 MB), and raises as `fetched` does.
    """
    return fetched("kafka", {"broker": BROKER, "connector": CONNECTOR}, java_options=java_options)


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
    return [java(), "-Xmx256m", "-XX:+UseSerialGC", quiet, "-cp", f"{jars()}/broker/*", *arguments]


def _free_ports() -> tuple[int, int]:
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        return first.getsockname()[1], second.getsockname()[1]
