"""The servers that other tests rely on are real: what one program writes another reads, and a name is given once.

Spark reads its jars when its Java starts, so a session of its own, in another process, talks to them here.
"""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import obstore
import pytest
from hdfs_native import Client
from obstore.exceptions import AlreadyExistsError
from obstore.store import S3Store

from tests.spark.servers.hdfs import HdfsCluster, hdfs_cluster
from tests.spark.servers.jars import UnreachableError
from tests.spark.servers.s3 import S3Server, s3_server

if TYPE_CHECKING:
    from obstore.store import S3Config

SESSION = """
import json, sys
from harken.spark.runtime.session import local_session

settings, *addresses = json.loads(sys.argv[1])
spark = local_session("local[1]", settings=settings)
found = []
for address in addresses:
    found.append([row.value for row in spark.read.text(address + "/given/*").collect()])
    spark.createDataFrame([("from Spark Ω",)], ["value"]).coalesce(1).write.text(address + "/made")
print(json.dumps(found))
spark.stop()
"""

LARGE = 200_000
"""Bytes: a server that looks, and then writes, is interrupted in between more often if there is much to write."""


@contextmanager
def fetching() -> Iterator[None]:
    """Skip where Kafka's tests do, too."""
    try:
        yield
    except UnreachableError as error:
        pytest.skip(f"jars are not in the cache, and Maven Central cannot be reached: {error}")


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture(scope="module")
def store(s3: S3Server) -> S3Store:
    return S3Store(s3.bucket, config=cast("S3Config", s3.options))


@pytest.fixture(scope="module")
def hdfs() -> Iterator[HdfsCluster]:
    with fetching(), hdfs_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(hdfs: HdfsCluster) -> Client:
    return Client(hdfs.address)


@pytest.fixture(scope="module")
def read_by_spark(
    s3: S3Server, store: S3Store, hdfs: HdfsCluster, client: Client, tmp_path_factory: pytest.TempPathFactory
) -> list[list[str]]:
    """What a session read, of S3 and of HDFS, that was given there by others; and it wrote to both."""
    obstore.put(store, "given/a", "to Spark, by S3 Ω".encode())
    write(client, "/given/a", "to Spark, by HDFS Ω".encode())
    scratch = str(tmp_path_factory.mktemp("scratch"))
    with fetching():
        settings = {**s3.spark_settings, **hdfs.spark_settings, "spark.local.dir": scratch}
    given = json.dumps([settings | {"spark.driver.memory": "512m"}, s3.address, hdfs.address])
    command = [sys.executable, "-c", SESSION, given]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert finished.returncode == 0, finished.stderr
    found: list[list[str]] = json.loads(finished.stdout.splitlines()[-1])
    return found


def write(client: Client, path: str, content: bytes) -> None:
    with client.create(path) as file:
        file.write(content)


def winners(attempt: Callable[[int], object], refusal: type[Exception]) -> list[int]:
    """Which of eight threads that try at once are not refused."""

    def wins(number: int) -> bool:
        try:
            attempt(number)
        except refusal:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        return [number for number, won in enumerate(threads.map(wins, range(8))) if won]


@pytest.mark.long
def test_spark_reads_what_others_wrote(read_by_spark: list[list[str]]) -> None:
    assert read_by_spark == [["to Spark, by S3 Ω"], ["to Spark, by HDFS Ω"]]


@pytest.mark.long
@pytest.mark.usefixtures("read_by_spark")
def test_others_read_from_s3_what_spark_wrote(store: S3Store) -> None:
    listed = {Path(each["path"]).name: each["path"] for each in obstore.list(store, "made").collect()}
    assert "_SUCCESS" in listed
    (part,) = (path for name, path in listed.items() if name.startswith("part-"))
    assert bytes(obstore.get(store, part).bytes()) == "from Spark Ω\n".encode()


@pytest.mark.long
@pytest.mark.usefixtures("read_by_spark")
def test_others_read_from_hdfs_what_spark_wrote(client: Client) -> None:
    listed = {Path(each.path).name: each.path for each in client.list_status("/made")}
    assert "_SUCCESS" in listed
    (part,) = (path for name, path in listed.items() if name.startswith("part-"))
    with client.read(part) as file:
        assert file.read() == "from Spark Ω\n".encode()


def test_s3_refuses_a_name_that_is_taken(store: S3Store) -> None:
    obstore.put(store, "taken", b"first", mode="create")
    with pytest.raises(AlreadyExistsError, match="412 Precondition Failed"):
        obstore.put(store, "taken", b"second", mode="create")
    assert bytes(obstore.get(store, "taken").bytes()) == b"first"


@pytest.mark.parametrize("again", range(10))
def test_of_eight_that_race_for_a_name_of_s3_one_gets_it(store: S3Store, again: int) -> None:
    name = f"raced/{again}"
    (winner,) = winners(
        lambda number: obstore.put(store, name, b"%d" % number * LARGE, mode="create"), AlreadyExistsError
    )
    assert bytes(obstore.get(store, name).bytes()) == b"%d" % winner * LARGE


def test_a_put_that_breaks_off_leaves_nothing_on_s3(s3: S3Server, store: S3Store) -> None:
    connection = http.client.HTTPConnection(s3.endpoint.removeprefix("http://"))
    connection.putrequest("PUT", f"/{s3.bucket}/broken")
    connection.putheader("Content-Length", "1000")
    connection.endheaders(b"only this")
    assert connection.sock is not None
    connection.sock.shutdown(socket.SHUT_WR)
    assert connection.getresponse().status == 400
    connection.close()
    with pytest.raises(FileNotFoundError):
        obstore.head(store, "broken")


@pytest.mark.long
def test_hdfs_refuses_to_rename_onto_a_name_that_is_taken(client: Client) -> None:
    write(client, "/first", b"first")
    write(client, "/second", b"second")
    with pytest.raises(FileExistsError, match="rename destination /first already exists"):
        client.rename("/second", "/first")
    with pytest.raises(FileExistsError, match=r"/first for client 127\.0\.0\.1 already exists"):
        client.create("/first")
    with client.read("/first") as file:
        assert file.read() == b"first"
    client.rename("/second", "/first", overwrite=True)
    with client.read("/first") as file:
        assert file.read() == b"second"
    assert client.delete("/first")
    assert not {"/first", "/second"} & {each.path for each in client.list_status("/")}


@pytest.mark.long
@pytest.mark.parametrize("again", range(3))
def test_of_eight_that_race_for_a_name_of_hdfs_one_gets_it(client: Client, again: int) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: write(client, f"/racing-{again}/{number}", b"%d" % number), range(8)))
    name = f"/raced-{again}"
    (winner,) = winners(lambda number: client.rename(f"/racing-{again}/{number}", name), FileExistsError)
    with client.read(name) as file:
        assert file.read() == b"%d" % winner
    left = {Path(each.path).name for each in client.list_status(f"/racing-{again}")}
    assert left == {str(number) for number in range(8)} - {str(winner)}


STARTING = """
import os, signal, sys
from pathlib import Path
from tests.spark.servers.processes import running

folder, port, way = sys.argv[1:]
server = [sys.executable, "-c", f"import socket as s; s.create_connection(('127.0.0.1', {port})).recv(1)"]
with running("server", server, Path(folder)):
    sys.stdin.read(1)
    if way == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("way", ["killed", "in order"])
def test_a_server_ends_with_the_test(tmp_path: Path, way: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        command = [sys.executable, "-c", STARTING, str(tmp_path), str(listener.getsockname()[1]), way]
        with subprocess.Popen(command, stdin=subprocess.PIPE, cwd=Path(__file__).parents[3]) as starting:
            server, _ = listener.accept()
            starting.communicate(b"\n", timeout=60)
    with server:
        server.settimeout(60)
        assert server.recv(1) == b""
