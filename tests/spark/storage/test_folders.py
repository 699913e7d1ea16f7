"""What Harken asks of a place for files holds on every kind of store: on disks, on S3 and on HDFS."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harken.errors import StorageError
from harken.spark import TableSink
from harken.spark.storage import FileEntry, Folder, folder_at
from tests.spark.servers.hdfs import HdfsCluster
from tests.spark.servers.s3 import S3Server, s3_server

NAMES = ("plain", "with space", "100%", "a%20b", "ümläut-Ω", "#?&+", "a[b]{c}*", "~")


def names(entries: list[FileEntry]) -> list[str]:
    return [each.name for each in entries]


# ---------------------------------------------------------------- files


def test_what_is_not_there_yet_is_empty(empty: Folder) -> None:
    assert empty.entries() == empty.entries("a") == empty.files() == empty.child("x").entries() == []
    assert not empty.exists("a")
    empty.remove(["a", "b/c"])
    with pytest.raises(FileNotFoundError, match=r"."):
        empty.read("a")


def test_a_file_is_created_once(empty: Folder) -> None:
    empty.create("a", b"first")
    with pytest.raises(FileExistsError):
        empty.create("a", b"second")
    assert empty.read("a") == b"first"
    assert names(empty.files()) == ["a"]


def test_a_file_may_be_empty_or_large(empty: Folder) -> None:
    large = os.urandom(3 << 20)
    empty.create("empty", b"")
    empty.create("large", large)
    assert (empty.read("empty"), empty.read("large")) == (b"", large)
    assert [(each.name, each.bytes) for each in empty.entries()] == [("empty", 0), ("large", len(large))]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_taken_as_they_are(empty: Folder, name: str, tmp_path: Path) -> None:
    folder = empty.child(name)
    folder.create(name, b"1")
    assert folder.exists(name)
    assert names(empty.entries()) == names(folder.entries()) == [name]
    assert names(empty.files()) == [f"{name}/{name}"]
    again = folder_at(folder.address, folder.options)
    assert again.read(name) == b"1"
    folder.download(name, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"1"
    empty.remove([name])
    assert empty.files() == []


def test_names_may_have_several_parts(empty: Folder) -> None:
    empty.create("x/y/a", b"1")
    empty.replace("x/z/b", b"2")
    assert names(empty.files()) == ["x/y/a", "x/z/b"]
    assert empty.read("x/y/a") == empty.child("x").child("y").read("a") == b"1"
    with pytest.raises(FileExistsError):
        empty.create("x/y/a", b"3")


def test_replacing_needs_nothing_to_be_there_and_leaves_nothing_else(empty: Folder) -> None:
    for content in (b"first", b"", b"third"):
        empty.replace("a", content)
        assert empty.read("a") == content
    assert names(empty.files()) == ["a"]


def test_entries_are_told_apart_and_in_order(empty: Folder) -> None:
    before = datetime.now(UTC) - timedelta(seconds=2)
    for name in ("b", "a", "sub/x", "c", "sub/deep/y"):
        empty.create(name, b"12")
    found = empty.entries()
    assert [(each.name, each.is_folder) for each in found] == [
        ("a", False),
        ("b", False),
        ("c", False),
        ("sub", True),
    ]
    assert all(each.bytes == 2 and each.modified is not None for each in found if not each.is_folder)
    moments = [each.modified for each in (*found, *empty.files()) if each.modified is not None]
    assert all(before <= moment <= datetime.now(UTC) + timedelta(seconds=2) for moment in moments)
    assert names(empty.files()) == ["a", "b", "c", "sub/deep/y", "sub/x"]


def test_entries_beyond_a_name(empty: Folder) -> None:
    for name in ("1", "2", "3", "folder/x", "z"):
        empty.create(name, b"")
    for after in ("", "0", "1", "15", "3", "folder", "fol", "z", "zz"):
        assert empty.entries(after) == [each for each in empty.entries() if each.name > after], after


def test_many_entries_are_all_listed(empty: Folder) -> None:
    # HDFS takes half a second for each, and S3 lists a thousand at a time.
    wanted = [f"{number:05d}" for number in range(40 if empty.address.startswith("hdfs") else 1_005)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda name: empty.replace(name, b""), wanted))
    assert names(empty.entries()) == names(empty.files()) == wanted
    assert names(empty.entries("00003")) == wanted[4:]
    empty.remove(wanted)
    assert empty.entries() == []


# ---------------------------------------------------------------- copies


def test_files_and_folders_go_there_and_back(empty: Folder, tmp_path: Path) -> None:
    here = tmp_path / "here"
    (here / "deep").mkdir(parents=True)
    contents = {"last.json": b"{}", "a.npy": os.urandom(1000), "deep/b c.npy": b""}
    for name, content in contents.items():
        (here / name).write_bytes(content)
    empty.upload_folder("part", here, last="last.json")
    assert {each.name: each.bytes for each in empty.child("part").files()} == {
        name: len(content) for name, content in contents.items()
    }
    for name, content in contents.items():
        empty.download(f"part/{name}", tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == content
    empty.download_folder("part", tmp_path / "all")
    assert {name: (tmp_path / "all" / name).read_bytes() for name in contents} == contents
    with pytest.raises(FileNotFoundError):
        empty.download_folder("nothing", tmp_path / "none")
    empty.upload("part/a.npy", here / "last.json")
    assert empty.read("part/a.npy") == b"{}"


def test_the_last_file_of_a_folder_comes_after_all_others(
    empty: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "m", "z"):
        (tmp_path / "here").mkdir(exist_ok=True)
        (tmp_path / "here" / name).touch()
    order: list[str] = []
    upload = type(empty).upload

    def noted(folder: Folder, name: str, source: Path) -> None:
        order.append(name)
        upload(folder, name, source)

    monkeypatch.setattr(type(empty), "upload", noted)
    empty.upload_folder("part", tmp_path / "here", last="a")
    assert sorted(order) == ["a", "m", "z"]
    assert order[-1] == "a"


def test_what_is_not_there_cannot_be_downloaded(empty: Folder, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        empty.download("nothing", tmp_path / "copy")


# ---------------------------------------------------------------- removing


def test_files_and_folders_are_removed_and_others_stay(empty: Folder) -> None:
    for name in ("a", "ab", "folder/x", "folder/deep/y", "folders/z"):
        empty.create(name, b"")
    empty.remove(iter(["a", "folder", "never"]))
    assert names(empty.files()) == ["ab", "folders/z"]
    empty.remove([])
    assert names(empty.entries()) == ["ab", "folders"]


def test_only_files_exist(empty: Folder) -> None:
    empty.create("folder/x", b"")
    assert not empty.exists("folder")
    assert empty.child("folder").exists("x")


# ---------------------------------------------------------------- several at once


def test_of_eight_threads_that_create_a_file_one_does(empty: Folder) -> None:
    for again in range(3):
        name = f"raced {again}"

        def wins(number: int, name: str = name) -> bool:
            try:
                empty.create(name, b"%d" % number * 100_000)
            except FileExistsError:
                return False
            return True

        with ThreadPoolExecutor(8) as threads:
            (winner,) = [number for number, won in enumerate(threads.map(wins, range(8))) if won]
        assert empty.read(name) == b"%d" % winner * 100_000
    assert len(empty.files()) == 3, "no drafts are left"


RACING = """
import pickle, sys
folder = pickle.loads(bytes.fromhex(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for name in range(5):
    try:
        folder.create(str(name), sys.argv[2].encode())
        print(name, flush=True)
    except FileExistsError:
        pass
"""


def test_of_processes_that_create_a_file_one_does(empty: Folder) -> None:
    given = pickle.dumps(empty).hex()
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", RACING, given, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    for program in programs:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
    said = [program.communicate("go\n", timeout=120)[0].split() for program in programs]
    assert sorted(name for won in said for name in won) == ["0", "1", "2", "3", "4"]
    for number, won in enumerate(said):
        assert all(empty.read(name) == str(number).encode() for name in won)


def test_who_reads_while_others_replace_sees_one_of_them(empty: Folder) -> None:
    contents = [b"%d" % number * 50_000 for number in range(4)]
    empty.replace("a", contents[0])
    with ThreadPoolExecutor(5) as threads:
        writing = [threads.submit(empty.replace, "a", content) for content in contents * 3]
        while not all(each.done() for each in writing):
            assert empty.read("a") in contents
        for each in writing:
            each.result()
    assert names(empty.files()) == ["a"]


# ---------------------------------------------------------------- what a folder is


def test_folders_are_known_by_their_addresses(empty: Folder) -> None:
    again = pickle.loads(pickle.dumps(empty))
    assert again == empty == folder_at(empty) == folder_at(empty.address, empty.options)
    assert hash(again) == hash(empty)
    assert empty.child("a/b") == empty.child("a").child("b") != empty
    empty.create("a", b"1")
    assert again.read("a") == b"1"
    assert empty != empty.address
    assert "secret" not in repr(empty) + str(empty)


def test_objects_that_stand_for_folders_are_no_files(s3_store: S3Server) -> None:
    """Consoles make them where one makes a folder, and Hadoop where it removes the last file of one."""
    name = f"made-{uuid.uuid4().hex}"
    folder = folder_at(f"{s3_store.address}/{name}", s3_store.options)
    for key in ("", "batch=0/", "x/", "x/y/"):
        url = f"{s3_store.endpoint}/{s3_store.bucket}/{name}/{key}"
        urllib.request.urlopen(urllib.request.Request(url, data=b"", method="PUT"), timeout=60).close()
    assert folder.child("batch=0").entries() == folder.child("batch=0").files() == []
    TableSink(folder.child("x/y")).check_empty()
    folder.create("x/y/a", b"1")
    folder.create("empty", b"")
    folder.create("same", b"")
    folder.create("same/a", b"")
    assert names(folder.child("x").files()) == ["y/a"]
    assert names(folder.child("x").entries("a")) == ["y"]
    assert names(folder.entries()) == ["batch=0", "empty", "same", "same", "x"]
    assert {"empty", "same/a", "x/y/a"} <= set(names(folder.files()))


# ---------------------------------------------------------------- what goes wrong


@pytest.fixture(scope="module")
def strict_s3() -> Iterator[S3Server]:
    """A server that lets nobody in whom it does not know."""
    with s3_server() as server:
        url, kind = f"{server.endpoint}/moto-api/reset-auth", {"Content-Type": "text/plain"}
        strict = urllib.request.Request(url, data=b"0", headers=kind, method="POST")
        urllib.request.urlopen(strict, timeout=60).close()
        yield server


def attempts(folder: Folder, tmp_path: Path) -> dict[str, Callable[[], object]]:
    (tmp_path / "file").write_bytes(b"1")
    return {
        "entries": folder.entries,
        "beyond": lambda: folder.entries("a"),
        "files": folder.files,
        "read": lambda: folder.read("a"),
        "create": lambda: folder.create("a", b"1"),
        "replace": lambda: folder.replace("a", b"1"),
        "upload": lambda: folder.upload("a", tmp_path / "file"),
        "download": lambda: folder.download("a", tmp_path / "copy"),
        "remove": lambda: folder.remove(["a"]),
    }


@pytest.mark.parametrize(
    "attempt", ["entries", "beyond", "files", "read", "create", "replace", "upload", "download", "remove"]
)
def test_a_bucket_that_is_not_there_is_named(s3_store: S3Server, tmp_path: Path, attempt: str) -> None:
    folder = folder_at("s3a://no-such-bucket/x", s3_store.options)
    with pytest.raises(StorageError, match="there is no s3a://no-such-bucket; make it, or name another"):
        attempts(folder, tmp_path)[attempt]()


@pytest.mark.parametrize("attempt", ["entries", "read", "create"])
def test_keys_that_a_server_does_not_know_are_refused_in_its_words(
    strict_s3: S3Server, tmp_path: Path, attempt: str
) -> None:
    folder = folder_at(f"{strict_s3.address}/x", strict_s3.options)
    with pytest.raises(StorageError, match=r"s3a://harken/x: InvalidAccessKeyId: The AWS Access Key Id") as caught:
        attempts(folder, tmp_path)[attempt]()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("attempt", ["entries", "read", "create"])
def test_keys_that_nobody_gave_are_asked_for_by_name(
    tmp_path: Path, attempt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        here = f"http://127.0.0.1:{listener.getsockname()[1]}"
    quick = {"retry_config": {"max_retries": 1}, "region": "us-east-1", "metadata_endpoint": here}
    folder = folder_at("s3a://bucket/x", {"endpoint": here, **quick})
    with pytest.raises(
        StorageError, match="no keys were given, and this machine has no role; set AWS_ACCESS_KEY_ID"
    ):
        attempts(folder, tmp_path)[attempt]()


def test_options_that_make_no_sense_are_refused() -> None:
    for options in ({"endpoint": 5, "colour": "red"}, {"colour": "red"}, {"allow_http": "perhaps"}):
        with pytest.raises(StorageError, match=r"no store can be reached at s3a://bucket with these options: .+"):
            folder_at("s3a://bucket/x", options).entries()


def test_a_server_that_cannot_be_reached_is_named(s3_store: S3Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    quick = {"retry_config": {"max_retries": 1}}
    folder = folder_at("s3a://bucket/x", {**s3_store.options, "endpoint": f"http://127.0.0.1:{port}", **quick})
    with pytest.raises(StorageError, match=rf"could not list s3a://bucket/x: .*127\.0\.0\.1:{port}"):
        folder.entries()


def test_a_name_node_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    folder = folder_at(f"hdfs://127.0.0.1:{port}/x", {"dfs.client.failover.max.attempts": "2"})
    for attempt in (folder.entries, lambda: folder.create("a", b"")):
        with pytest.raises(StorageError, match=rf"hdfs://127\.0\.0\.1:{port}/x: Connection refused"):
            attempt()


def test_a_path_through_a_file_is_refused(empty: Folder) -> None:
    empty.create("a", b"")
    if empty.address.startswith("s3a"):
        empty.create("a/b", b"")  # it knows only names
        return
    with pytest.raises(OSError, match="a"):
        empty.create("a/b", b"")
    assert names(empty.files()) == ["a"]


@pytest.mark.long
def test_hdfs_tells_no_stack_of_its_server(hdfs_store: HdfsCluster) -> None:
    folder = folder_at(f"{hdfs_store.address}/words")
    with pytest.raises(StorageError, match=r"could not write a:b in hdfs.*Invalid path name") as caught:
        folder.create("a:b", b"")
    assert "\tat " not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_has_nothing_in_it_nor_below_it(empty: Folder) -> None:
    empty.create("file", b"1")
    for folder in (empty.child("file"), empty.child("file/versions")):
        assert folder.entries() == []
        assert folder.files() == []
