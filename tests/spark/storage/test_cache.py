"""Files of a store are fetched once for all processes of a machine, and go when others need the disk."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from harken.errors import IndexFormatError, StorageError
from harken.spark.storage import Cache, Folder, cache, folder_at, machine_cache
from harken.spark.storage.objects import ObjectFolder
from tests.spark.servers.s3 import S3Server

FOREVER = 1 << 40


def itself(path: Path) -> Path:
    return path


@pytest.fixture
def source(s3_store: S3Server, tmp_path: Path) -> Folder:
    return folder_at(f"{s3_store.address}/cache{tmp_path}", s3_store.options)


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files that were fetched."""
    names: list[str] = []
    download = ObjectFolder.download

    def noted(folder: ObjectFolder, name: str, target: Path) -> None:
        names.append(name)
        download(folder, name, target)

    monkeypatch.setattr(ObjectFolder, "download", noted)
    return names


def copies(kept: Cache) -> set[str]:
    """What lies in a cache, drafts included."""
    return {path.name for path in kept.folder.glob("[!.]*/*")}


def test_what_is_on_this_machine_is_used_where_it_is(tmp_path: Path) -> None:
    kept = Cache(tmp_path / "cache", FOREVER)
    assert kept.file(folder_at(tmp_path), "a", 1, itself) == tmp_path / "a"
    assert kept.tree(folder_at(tmp_path), "b", 1, itself) == tmp_path / "b"
    assert not kept.folder.exists()


def test_a_file_is_fetched_once(source: Folder, tmp_path: Path, fetched: list[str]) -> None:
    source.create("a b%ü", b"123")
    kept = Cache(tmp_path / "cache", FOREVER)
    for _ in range(3):
        assert kept.file(source, "a b%ü", 3, Path.read_bytes) == b"123"
    assert Cache(kept.folder, FOREVER).file(source, "a b%ü", 3, Path.read_bytes) == b"123"
    assert fetched == ["a b%ü"]


def test_a_folder_is_fetched_with_all_that_is_below_it(source: Folder, tmp_path: Path, fetched: list[str]) -> None:
    source.create("part/a", b"1")
    source.create("part/deep/b", b"22")
    kept = Cache(tmp_path / "cache", FOREVER)
    for _ in range(2):
        path = kept.tree(source, "part", 3, itself)
        assert {each.relative_to(path).as_posix() for each in path.rglob("*") if each.is_file()} == {"a", "deep/b"}
    assert sorted(fetched) == ["a", "deep/b"]


def test_two_folders_may_have_files_of_one_name(source: Folder, tmp_path: Path) -> None:
    for name in ("x", "y"):
        source.child(name).create("a", name.encode())
    kept = Cache(tmp_path / "cache", FOREVER)
    assert [kept.file(source.child(name), "a", 1, Path.read_bytes) for name in ("x", "y")] == [b"x", b"y"]


FETCHING = """
import pickle, sys
from pathlib import Path
from harken.spark.storage import Cache
from harken.spark.storage.objects import ObjectFolder

download = ObjectFolder.download
def noted(folder, name, target):
    sys.stdout.write(f"fetched {name}\\n")
    download(folder, name, target)
ObjectFolder.download = noted

source = pickle.loads(bytes.fromhex(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for number in range(5):
    path = Cache(Path(sys.argv[2]), 1 << 40).tree(source, f"part-{number}", 200_001, lambda path: path)
    assert sum(each.stat().st_size for each in path.iterdir()) == 200_001
"""


def test_processes_that_want_the_same_at_once_fetch_it_once(source: Folder, tmp_path: Path) -> None:
    for number in range(5):
        source.create(f"part-{number}/large", b"x" * 200_000)
        source.create(f"part-{number}/small", b"x")
    given = [pickle.dumps(source).hex(), str(tmp_path / "cache")]
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", FETCHING, *given], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for program in programs:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
    for program in programs:
        assert program.stdin is not None
        program.stdin.write("go\n")
        program.stdin.flush()
    said = "".join(program.communicate(timeout=120)[0] for program in programs)
    assert [program.returncode for program in programs] == [0] * 4
    assert sorted(said.splitlines()) == sorted(["fetched large", "fetched small"] * 5)
    assert copies(Cache(tmp_path / "cache", 0)) == {f"part-{number}" for number in range(5)}


def test_the_least_recently_used_go_first(source: Folder, tmp_path: Path, fetched: list[str]) -> None:
    for name in "abcd":
        source.create(f"{name}/file", b"x" * 100)
    kept = Cache(tmp_path / "cache", 300)
    for at, name in enumerate("abc"):
        path = kept.tree(source, name, 100, itself)
        os.utime(path, (at, at))
    kept.tree(source, "a", 100, itself)
    kept.tree(source, "d", 100, itself)
    assert copies(kept) == {"a", "c", "d"}
    assert kept.tree(source, "b", 100, itself).is_dir()
    assert copies(kept) == {"a", "b", "d"}
    assert len(fetched) == 5


def test_one_that_is_larger_than_all_the_room_is_used_nevertheless(source: Folder, tmp_path: Path) -> None:
    source.create("small", b"1")
    source.create("large", b"x" * 100)
    kept = Cache(tmp_path / "cache", 10)
    kept.file(source, "small", 1, itself)
    assert kept.file(source, "large", 100, Path.read_bytes) == b"x" * 100
    assert copies(kept) == {"large"}


def test_a_file_that_goes_while_it_is_mapped_stays_for_who_maps_it(source: Folder, tmp_path: Path) -> None:
    for name in ("a", "b"):
        source.create(name, name.encode() * 100)
    kept = Cache(tmp_path / "cache", 100)
    with kept.file(source, "a", 100, lambda path: path.open("rb")) as mapped:
        kept.file(source, "b", 100, itself)
        assert copies(kept) == {"b"}
        assert mapped.read() == b"a" * 100


def test_a_copy_that_is_removed_before_it_is_opened_is_fetched_again(
    source: Folder, tmp_path: Path, fetched: list[str]
) -> None:
    source.create("a", b"1")
    kept = Cache(tmp_path / "cache", FOREVER)

    def use(path: Path) -> bytes:
        if len(fetched) == 1:
            path.unlink()
        return path.read_bytes()

    assert kept.file(source, "a", 1, use) == b"1"
    assert fetched == ["a", "a"]


def test_a_damaged_copy_is_fetched_anew_once(source: Folder, tmp_path: Path, fetched: list[str]) -> None:
    source.create("a", b"good")
    kept = Cache(tmp_path / "cache", FOREVER)

    def use(path: Path) -> bytes:
        if path.read_bytes() != b"good":
            raise IndexFormatError("damaged")
        return path.read_bytes()

    kept.file(source, "a", 4, itself).write_bytes(b"evil")
    assert kept.file(source, "a", 4, use) == b"good"
    assert fetched == ["a", "a"]
    source.replace("a", b"lost")
    kept.file(source, "a", 4, itself).write_bytes(b"evil")
    with pytest.raises(IndexFormatError, match="damaged"):
        kept.file(source, "a", 4, use)
    assert len(fetched) == 3


def test_what_has_another_size_is_named_and_not_kept(source: Folder, tmp_path: Path) -> None:
    source.create("a", b"123")
    source.create("part/x", b"123")
    kept = Cache(tmp_path / "cache", FOREVER)
    with pytest.raises(StorageError, match=r"/a has 3 bytes instead of 1,000") as caught:
        kept.file(source, "a", 1000, itself)
    assert source.address in str(caught.value)
    with pytest.raises(StorageError, match=r"/part has 3 bytes instead of 4"):
        kept.tree(source, "part", 4, itself)
    assert copies(kept) == set()


def test_what_is_not_there_is_missing(source: Folder, tmp_path: Path) -> None:
    kept = Cache(tmp_path / "cache", FOREVER)
    for use in (kept.file, kept.tree):
        with pytest.raises(FileNotFoundError):
            use(source, "nothing", 3, itself)
    assert copies(kept) == set()


def test_what_a_killed_process_left_goes_after_a_day(source: Folder, tmp_path: Path) -> None:
    kept = Cache(tmp_path / "cache", FOREVER)
    for name in ("a", "b"):
        source.create(name, b"1")
    above = kept.file(source, "a", 1, itself).parent
    for name, age in (("old", cache.ABANDONED + 10), ("new", 10.0)):
        (above / f".{name}").mkdir()
        moment = above.stat().st_mtime - age
        os.utime(above / f".{name}", (moment, moment))
    kept.file(source, "b", 1, itself)
    assert copies(kept) == {"a", "b", ".new"}


# ---------------------------------------------------------------- where it lies


@pytest.fixture
def anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where this process finds its cache, asked for the first time."""
    machine_cache.cache_clear()
    monkeypatch.delenv(cache.FOLDER, raising=False)
    monkeypatch.delenv(cache.BYTES, raising=False)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/elsewhere")
    return tmp_path / f"harken-cache-{os.getuid()}"


@pytest.fixture(autouse=True)
def _asked_again():
    yield
    machine_cache.cache_clear()


def test_copies_lie_where_spark_has_its_files_and_are_the_users_own(anew: Path) -> None:
    kept = machine_cache()
    assert kept.folder == anew
    assert anew.stat().st_mode & 0o777 == 0o700
    disk = os.statvfs(anew)
    assert kept.limit == pytest.approx(cache.SHARE * disk.f_blocks * disk.f_frsize, rel=0.01)


def test_the_environment_says_where_and_how_much(
    anew: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "here"))
    monkeypatch.setenv(cache.BYTES, "12345")
    assert (machine_cache().folder, machine_cache().limit) == (tmp_path / "here", 12345)
    assert not anew.exists()


def test_a_folder_that_others_may_change_is_refused(anew: Path, tmp_path: Path) -> None:
    anew.mkdir()
    anew.chmod(0o777)
    with pytest.raises(StorageError, match=r"is somebody else's; name another folder in HARKEN_CACHE"):
        machine_cache()
    anew.rmdir()
    anew.symlink_to(tmp_path)
    with pytest.raises(StorageError, match="is somebody else's"):
        machine_cache()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_is_refused(anew: Path) -> None:
    anew.mkdir(mode=0o700)
    os.chown(anew, 12345, -1)
    with pytest.raises(StorageError, match="is somebody else's"):
        machine_cache()


def test_a_copy_that_is_being_used_is_not_removed_for_others(source: Folder, tmp_path: Path) -> None:
    source.create("used", b"123")
    source.create("other", b"4567")
    kept = Cache(tmp_path / "cache", 4)

    def use(path: Path) -> bytes:
        assert Cache(kept.folder, 4).file(source, "other", 4, Path.read_bytes) == b"4567"
        return path.read_bytes()

    assert kept.file(source, "used", 3, use) == b"123"
    assert kept.file(source, "other", 4, Path.read_bytes) == b"4567"


def test_where_copies_are_always_removed_for_others_that_is_said(
    source: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.create("used", b"123")
    kept = Cache(tmp_path / "cache", FOREVER)
    found = kept._kept

    def fetched_and_gone(*arguments):
        final = found(*arguments)
        final.unlink()
        return final

    monkeypatch.setattr(kept, "_kept", fetched_and_gone)
    with pytest.raises(StorageError, match="removed for others before they can be used; let them take more room"):
        kept.file(source, "used", 3, Path.read_bytes)


def test_a_file_is_no_folder_and_has_nothing_in_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("1")
    assert folder_at(tmp_path / "file").entries() == []
    assert folder_at(tmp_path / "file").child("versions").entries() == []
