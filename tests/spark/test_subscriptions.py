"""Subscriptions on storage: every change is a version, entirely or not at all, and every version can be read."""

from __future__ import annotations

import json
import pickle
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from harken.compiler import Texts, compile_texts
from harken.errors import (
    ArgumentError,
    ArgumentTypeError,
    BulkLoadError,
    ConcurrentChangeError,
    DuplicateSubscriptionError,
    IndexFormatError,
    OutputExistsError,
    StorageError,
    SubscriptionError,
    UnknownSubscriptionError,
    UnknownVersionError,
)
from harken.model.limits import Limits
from harken.model.schema import Schema
from harken.normal.compiled import conform
from harken.spark import Change, Subscriptions, compile_subscriptions
from harken.spark.storage import Folder
from harken.spark.subscriptions import compiling, merging
from harken.spark.subscriptions import subscriptions as module
from harken.spark.subscriptions.readers import Reader, Readers
from harken.spark.subscriptions.segments import Segment
from harken.spark.subscriptions.snapshots import Snapshot
from harken.spark.subscriptions.versions import VersionLog

Model = dict[int | str, int]


def rows(*numbers: int, **named: int) -> list[tuple[int | str, str]]:
    """Subscriptions `x = number`, called by the number, or as they are named."""
    return [(number, f"x = {number}") for number in numbers] + [(id, f"x = {n}") for id, n in named.items()]


def held(store: Subscriptions, version: int | None = None) -> Model:
    """By id, the number that a subscription asks for."""
    return _numbers(store.tables(store.snapshot(version)))


def _numbers(tables: Iterable[pa.Table]) -> Model:
    found: Model = {}
    for table in tables:
        for row in table.select(["id", "clauses"]).to_pylist():
            assert row["id"] not in found, "once"
            found[row["id"]] = row["clauses"][0][0]["integer"]
    return found


def files(store: Subscriptions) -> list[Path]:
    """All files but those of versions."""
    return sorted(path for path in store.path.rglob("*") if path.is_file() and path.parent.name != "versions")


def segment_files(store: Subscriptions, version: int | None = None) -> list[Path]:
    return [store.path / "segments" / each.file for each in store.snapshot(version).segments]


def version_file(store: Subscriptions, version: int) -> Path:
    return store.path / "versions" / f"{version:020d}.json"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Subscriptions]:
    """An empty folder. Whatever a test does with it, it leaves no draft of a version."""
    store = Subscriptions.create(tmp_path / "subscriptions")
    yield store
    assert list(store.path.glob("versions/.*")) == []


# ---------------------------------------------------------------- changes and versions


def test_a_new_folder_has_version_0_which_is_empty(store: Subscriptions) -> None:
    assert store.version == 0
    assert held(store) == {}
    assert repr(store) == f"Subscriptions({str(store.path)!r}, version=0)"


def test_every_change_is_a_version_that_can_be_read_ever_after(store: Subscriptions) -> None:
    assert store.append(rows(1, 2, 3)) == Change(version=1, rows=3, rejected=0)
    assert store.upsert([(2, "x = 20"), (4, "x = 40")]) == Change(2, 2, 0)
    assert store.delete([1, 4]) == Change(3, 2, 0)
    assert store.append(rows(1)) == Change(4, 1, 0)
    assert store.compact() == Change(5, 3, 0)
    versions = [
        {},
        {1: 1, 2: 2, 3: 3},
        {1: 1, 2: 20, 3: 3, 4: 40},
        {2: 20, 3: 3},
        {1: 1, 2: 20, 3: 3},
        {1: 1, 2: 20, 3: 3},
    ]
    for again in (store, Subscriptions(str(store.path)), pickle.loads(pickle.dumps(store))):
        assert [held(again, version) for version in range(6)] == versions
        assert again.version == 5
        assert held(again) == versions[5]


@pytest.mark.parametrize("version", [-1, 2, 99])
def test_a_version_that_is_not_there_is_named(store: Subscriptions, version: int) -> None:
    store.append(rows(1))
    with pytest.raises(UnknownVersionError, match=f"has no version {version}; the latest is 1") as caught:
        store.snapshot(version)
    assert (caught.value.version, caught.value.latest) == (version, 1)


def test_a_folder_can_be_created_once(store: Subscriptions) -> None:
    store.append(rows(1))
    with pytest.raises(OutputExistsError):
        Subscriptions.create(store.path)
    assert held(store) == {1: 1}


def test_a_folder_without_subscriptions_is_named(tmp_path: Path) -> None:
    with pytest.raises(IndexFormatError, match=r"nothing-here holds no subscriptions; Subscriptions\.create"):
        Subscriptions(tmp_path / "nothing-here")
    assert list(tmp_path.iterdir()) == []


def test_a_change_of_nothing_is_a_version_too(store: Subscriptions) -> None:
    assert store.append([]) == Change(1, 0, 0)
    assert store.delete([]) == Change(2, 0, 0)
    assert store.compact() == Change(3, 0, 0)
    assert held(store) == {}
    assert files(store) == []


def test_all_that_an_engine_takes_can_be_appended(store: Subscriptions) -> None:
    store.append([{"id": 1, "expression": "x = 1", "owner": "ann"}])
    store.append(pa.table({"id": [2], "expression": ["x = 2"]}))
    store.append(compile_texts(Texts([3], ["x = 3"])).table)
    store.append(compile_texts(Texts([4], ["x = 4"])).table.to_batches()[0])
    store.append((number, f"x = {number}") for number in (5, 6))
    assert held(store) == {number: number for number in range(1, 7)}


def test_owners_validity_and_every_clause_are_kept_through_compaction(store: Subscriptions) -> None:
    begin, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
    texts = Texts(
        [1, 2, 3],
        ["a = 1 or b in (1, 'x', 2.5) and c like 'a%'", "true", "spot within box(0, 0, 1, 1) and t is null"],
        ["ann", None, "bob"],
        [begin, None, None],
        [end, None, end],
    )
    expected = compile_texts(texts).table
    store.append(expected.slice(0, 1))
    store.upsert(expected.slice(1))
    store.delete([77], missing_ok=True)
    for _ in range(2):
        held_now = pa.concat_tables(store.tables(store.snapshot())).sort_by("id")
        assert held_now.to_pylist() == expected.to_pylist()
        store.compact()


def test_every_file_is_read_once_however_many_replace_others(
    store: Subscriptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        store.upsert([(number % 5, f"x = {number}")])
    store.delete([4])
    read: list[str] = []
    read_segment = merging.read_segment

    def counted(folder: Folder, segment: Segment) -> pa.Table:
        read.append(segment.file)
        return read_segment(folder, segment)

    monkeypatch.setattr(merging, "read_segment", counted)
    assert held(store) == {0: 10, 1: 11, 2: 7, 3: 8}
    assert len(store.ids(store.snapshot())) == 4
    assert sorted(read) == sorted(2 * [segment.file for segment in store.snapshot().segments])


def test_an_id_in_use_is_refused_and_nothing_changes(store: Subscriptions) -> None:
    store.append(rows(1, 2))
    before = files(store)
    with pytest.raises(DuplicateSubscriptionError) as caught:
        store.append(rows(3, 2))
    assert caught.value.subscription == 2
    assert store.version == 1
    assert files(store) == before


@pytest.mark.parametrize("change", ["append", "upsert"])
def test_an_id_that_comes_twice_in_one_change_is_refused(store: Subscriptions, change: str) -> None:
    with pytest.raises(DuplicateSubscriptionError, match="subscription 7 "):
        getattr(store, change)([(5, "x = 5"), (7, "x = 1"), (7, "x = 2")])
    assert store.version == 0
    assert files(store) == []


def test_an_id_that_went_can_come_again(store: Subscriptions) -> None:
    store.append(rows(1, 2))
    store.delete([1])
    store.append([(1, "x = 10")])
    store.delete([1, 2])
    store.append([(2, "x = 20")])
    assert held(store) == {2: 20}


def test_an_unknown_id_is_not_deleted_unless_that_is_meant(store: Subscriptions) -> None:
    store.append(rows(1, 2))
    before = files(store)
    with pytest.raises(UnknownSubscriptionError) as caught:
        store.delete([1, 77])
    assert caught.value.subscription == 77
    assert (store.version, held(store)) == (1, {1: 1, 2: 2})
    assert files(store) == before
    store.delete([1, 77], missing_ok=True)
    assert held(store) == {2: 2}
    with pytest.raises(UnknownSubscriptionError):
        store.delete([1])


@pytest.mark.parametrize(
    "ids",
    [
        [2, 1, 2],
        {1, 2},
        (number for number in (1, 2)),
        np.array([1, 2], np.int32),
        pa.array([1, 2], pa.int16()),
        pa.chunked_array([[1], [2]], pa.uint64()),
    ],
    ids=["list", "set", "generator", "numpy", "arrow", "chunked"],
)
def test_ids_may_come_in_any_form(store: Subscriptions, ids: Iterable[int]) -> None:
    store.append(rows(1, 2, 3))
    store.delete(ids)
    store.upsert(rows(4))
    assert held(store) == {3: 3, 4: 4}


@pytest.mark.parametrize("ids", [["a"], np.array(["a"]), pa.array(["a"], pa.large_string())])
def test_strings_may_come_in_any_form(store: Subscriptions, ids: Iterable[str]) -> None:
    store.append(rows(a=1, b=2))
    store.delete(ids)
    store.upsert(rows(c=3))
    store.delete(["c"])
    assert held(store) == {"b": 2}


@pytest.mark.parametrize(
    "ids", [[1.5], np.array([1.0]), [None], [1, "a"], [2**70], [True], pa.array([[1]]), pa.array([None, 1])]
)
def test_what_cannot_be_an_id_is_refused(store: Subscriptions, ids: Iterable[int]) -> None:
    store.append(rows(1))
    with pytest.raises((SubscriptionError, UnknownSubscriptionError)):
        store.delete(ids)
    assert store.version == 1


def test_ids_are_all_of_one_type(store: Subscriptions) -> None:
    store.append(rows(1))
    for change in (
        lambda: store.append(rows(a=1)),
        lambda: store.upsert(rows(a=1)),
        lambda: store.delete(["a"]),
        lambda: store.delete(["a"], missing_ok=True),
    ):
        with pytest.raises(SubscriptionError, match="the ids of these subscriptions are integers, found strings"):
            change()
    with pytest.raises(BulkLoadError, match="the id 'a' is not like the ids before it"):
        store.append(rows(2, a=1))
    assert (store.version, len(files(store))) == (1, 1)


# ---------------------------------------------------------------- readers and writers at once


def test_a_reader_of_an_old_version_is_not_disturbed(store: Subscriptions) -> None:
    store.append(rows(1, 2, 3))
    store.upsert([(1, "x = 10")])
    snapshot = store.snapshot()
    reading = store.tables(snapshot)
    first = next(reading)
    store.delete([1, 2, 3])
    store.append(rows(1))
    store.compact()
    assert _numbers([first, *reading]) == {1: 10, 2: 2, 3: 3}
    assert _numbers(store.tables(snapshot)) == {1: 10, 2: 2, 3: 3}


def together(actions: Sequence[Callable[[], object]]) -> list[object]:
    """Do several things at the same moment; what each came to, which may be an error."""
    start = threading.Barrier(len(actions))

    def act(action: Callable[[], object]) -> object:
        start.wait()
        try:
            return action()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(actions)) as pool:
        return list(pool.map(act, actions))


def test_appends_at_once_all_survive(store: Subscriptions) -> None:
    def append_three(writer: int) -> list[Change]:
        mine = Subscriptions(store.path)
        return [mine.append(rows(10 * writer + at)) for at in range(3)]

    done = together([lambda writer=writer: append_three(writer) for writer in range(6)])
    versions = sorted(change.version for changes in done for change in changes)
    assert len(set(versions)) == 18
    assert held(store) == {10 * writer + at: 10 * writer + at for writer in range(6) for at in range(3)}
    for count, version in enumerate(versions, 1):
        assert len(held(store, version)) == count


def test_of_appends_of_one_id_at_once_exactly_one_wins(store: Subscriptions) -> None:
    done = together([lambda n=n: Subscriptions(store.path).append([(7, f"x = {n}")]) for n in range(5)])
    assert [type(each) for each in done].count(DuplicateSubscriptionError) == 4
    winner = next(at for at, each in enumerate(done) if each == Change(1, 1, 0))
    assert (store.version, held(store)) == (1, {7: winner})
    assert len(files(store)) == 1


def test_deletes_and_appends_at_once_are_done_one_after_the_other(store: Subscriptions) -> None:
    store.append(rows(*range(6)))
    done = together([lambda n=n: store.delete([n]) for n in range(6)] + [lambda: store.append(rows(9))])
    assert sorted(change.version for change in done) == list(range(2, 9))
    assert held(store) == {9: 9}


@pytest.fixture
def overtaken(store: Subscriptions, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Have somebody else make a change just before the next version is written."""
    append = VersionLog.append

    def arrange(action: Callable[[], object]) -> None:
        def late(log: VersionLog, version: int, document: dict[str, object]) -> None:
            monkeypatch.setattr(VersionLog, "append", append)
            action()
            append(log, version, document)

        monkeypatch.setattr(VersionLog, "append", late)

    return arrange


def test_an_append_that_was_overtaken_is_checked_again(store, overtaken) -> None:
    overtaken(lambda: store.append(rows(1)))
    with pytest.raises(DuplicateSubscriptionError):
        store.append(rows(1, 2))
    assert (store.version, held(store), len(files(store))) == (1, {1: 1}, 1)


def test_a_delete_that_was_overtaken_is_checked_again(store, overtaken) -> None:
    store.append(rows(1, 2))
    overtaken(lambda: store.delete([1]))
    with pytest.raises(UnknownSubscriptionError):
        store.delete([1])
    assert (store.version, held(store), len(files(store))) == (2, {2: 2}, 2)


def test_a_compaction_that_was_overtaken_changes_nothing_and_leaves_nothing(store, overtaken) -> None:
    store.append(rows(1))
    overtaken(lambda: store.append(rows(2)))
    with pytest.raises(ConcurrentChangeError, match=r"version 2 of .* was written by somebody else"):
        store.compact()
    assert (store.version, held(store), len(files(store))) == (2, {1: 1, 2: 2}, 2)


@pytest.mark.parametrize("kind", [OSError, StorageError])
def test_a_version_whose_writer_fails_after_it_is_visible_keeps_its_files(
    store: Subscriptions, monkeypatch: pytest.MonkeyPatch, kind: type[OSError]
) -> None:
    """The folder could not be synced, or a store's answer was lost: the version is there, and must be whole."""
    append = VersionLog.append

    def fail_late(log: VersionLog, version: int, document: dict[str, object]) -> None:
        append(log, version, document)
        raise kind("the disk was slow")

    monkeypatch.setattr(VersionLog, "append", fail_late)
    with pytest.raises(kind, match="slow"):
        store.append(rows(1))
    assert held(store) == {1: 1}


# ---------------------------------------------------------------- vacuum


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"keep": "x"}, "keep is a whole number from 1 on, found 'x'"),
        ({"keep": 0}, "keep is at least 1, found 0"),
        ({"grace": 5}, "grace is a timedelta, like .*, found 5"),
        ({"orphans": None}, "orphans is a timedelta"),
    ],
)
def test_vacuum_says_what_cannot_be_kept_and_removes_nothing(store: Subscriptions, wrong, said) -> None:
    before = {path for path in store.path.rglob("*") if path.is_file()}
    with pytest.raises(ArgumentError, match=said):
        store.vacuum(**wrong)
    assert {path for path in store.path.rglob("*") if path.is_file()} == before


def test_vacuum_forgets_old_versions_and_removes_what_only_they_need(store: Subscriptions) -> None:
    store.append(rows(1, 2))
    store.delete([1])
    store.append([(3, "x = 3"), (4, "no expression at all")], on_error="collect")
    store.compact()
    store.append(rows(5))
    stray = store.path / "segments" / "of-a-writer-that-died.arrows"
    stray.touch()
    assert store.vacuum(keep=2) == 0, "somebody may be reading, and somebody writing"
    assert store.vacuum(keep=2, grace=NONE, orphans=NONE) == 5
    assert held(store, 4) == {2: 2, 3: 3}
    assert held(store) == {2: 2, 3: 3, 5: 5}
    for forgotten in range(4):
        with pytest.raises(UnknownVersionError):
            store.snapshot(forgotten)
    assert files(store) == sorted(segment_files(store))
    assert store.vacuum(keep=2, grace=NONE, orphans=NONE) == 0
    assert store.append(rows(6)).version == 6


@pytest.mark.parametrize("keep", [0, -1])
def test_vacuum_keeps_at_least_the_latest_version(store: Subscriptions, keep: int) -> None:
    store.append(rows(1))
    with pytest.raises(ValueError, match="keep"):
        store.vacuum(keep)
    assert held(store, 0) == {}


def test_vacuum_of_damaged_versions_removes_nothing(store: Subscriptions) -> None:
    store.append(rows(1))
    store.append(rows(2))
    version_file(store, 2).write_text("{")
    before = files(store)
    with pytest.raises(IndexFormatError):
        store.vacuum(keep=1)
    assert files(store) == before
    assert held(store, 1) == {1: 1}


# ---------------------------------------------------------------- rejects

BAD = [(1, "x = 1"), (2, "x = = 2"), (3, "x = 3\n  and (y > 'a' or"), (4, None), ("", "x = 5")]


def test_with_raise_a_bad_row_leaves_no_files_and_no_version(store: Subscriptions) -> None:
    with pytest.raises(BulkLoadError, match="nothing was loaded: 4 rejected") as caught:
        store.append(BAD)
    assert [reject.row for reject in caught.value.rejects] == [1, 2, 3, 4]
    assert "the first is row 1: line 1, column 5" in str(caught.value)
    assert store.version == 0
    assert files(store) == []


def test_with_collect_bad_rows_are_written_with_reason_line_and_column(
    store: Subscriptions, spark: SparkSession
) -> None:
    assert store.append(BAD, on_error="collect") == Change(1, 1, 4)
    assert held(store) == {1: 1}
    found = {row["id"]: row for row in store.rejects(spark).collect()}
    assert set(found) == {"2", "3", "4", ""}
    assert (found["2"].expression, found["2"].line, found["2"].column) == ("x = = 2", 1, 5)
    assert (found["3"].line, found["3"].column) == (2, 18)
    assert found["3"].reason.startswith("the expression ends too early")
    assert found["4"].expression is None
    assert "string or an integer" not in found["4"].reason
    assert store.rejects(spark, 0).collect() == []
    assert store.rejects(spark, 0).columns == ["id", "expression", "reason", "line", "column"]


def test_what_cannot_be_written_as_text_is_rejected_like_anything_else(store: Subscriptions) -> None:
    """Lone surrogates, and numbers that Python does not print."""
    hostile = [("\ud800", "x = 1"), ("a", "x = '\udfff'"), ("b", object()), (10**5_000, "x = 1"), ("c", "x = 3")]
    assert store.append(hostile, on_error="collect") == Change(1, 1, 4)
    assert held(store) == {"c": 3}


def test_only_known_ways_to_treat_errors_are_taken(store: Subscriptions) -> None:
    with pytest.raises(ValueError, match="on_error is 'raise' or 'collect', found 'ignore'"):
        store.append(rows(1), on_error="ignore")  # type: ignore[arg-type]


def test_a_compiled_table_is_checked_like_texts(store: Subscriptions) -> None:
    table = compile_texts(Texts([1, 2], ["x = 1", "x like 'a%'"])).table
    broken = json.loads(json.dumps(table.to_pylist()))
    broken[1]["clauses"][0][0]["operator"] = "resembles"
    source = pa.Table.from_pylist(broken, pa.schema([("id", pa.int64()), ("clauses", _plain_clauses())]))
    assert store.append(source, on_error="collect") == Change(1, 1, 1)
    assert held(store) == {1: 1}


def _plain_clauses() -> pa.DataType:
    return compiling._plain_type(compile_texts(Texts([1], ["true"])).table.schema.field("clauses").type)


# ---------------------------------------------------------------- schema and limits


def test_schema_and_limits_are_kept_and_hold_for_every_change(tmp_path: Path) -> None:
    limits = Limits(max_clauses=2)
    Subscriptions.create(tmp_path / "s", schema={"x": "int", "name": "string"}, limits=limits)
    store = Subscriptions(tmp_path / "s")
    assert store.snapshot().rules.schema == Schema({"x": "int", "name": "string"})
    assert store.snapshot().rules.limits == limits
    bad = [(2, "x = 'a'"), (3, "nmae = 'a'"), (4, "x = 1 and name = 'a' or x = 2 or x > 7")]
    for change in (store.append, store.upsert):
        with pytest.raises(BulkLoadError) as caught:
            change([(1, "x = 1"), *bad])
        assert [reject.row for reject in caught.value.rejects] == [1, 2, 3]
    compiled = compile_texts(Texts([1, *(id for id, _ in bad)], ["x = 1", *(text for _, text in bad)])).table
    assert store.append(compiled, on_error="collect") == Change(1, 1, 3)
    store.compact()
    assert store.snapshot().rules.limits == limits


# ---------------------------------------------------------------- damage


@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_a_flipped_byte_in_a_segment_is_noticed(store: Subscriptions, place: str) -> None:
    store.append(rows(1, 2, 3))
    (path,) = segment_files(store)
    content = bytearray(path.read_bytes())
    at = {"first": 0, "middle": len(content) // 2, "last": len(content) - 1}[place]
    content[at] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(IndexFormatError, match=r"\.arrows is damaged: its size or checksum"):
        held(store)
    with pytest.raises(IndexFormatError):
        store.append(rows(9))
    assert (store.version, len(files(store))) == (1, 1)


def test_a_segment_cut_short_is_noticed(store: Subscriptions) -> None:
    store.append(rows(1, 2, 3))
    (path,) = segment_files(store)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(IndexFormatError, match="damaged"):
        held(store)


def test_a_missing_segment_is_named(store: Subscriptions) -> None:
    store.append(rows(1))
    store.delete([1])
    segment_files(store)[1].unlink()
    assert held(store, 1) == {1: 1}
    with pytest.raises(IndexFormatError, match=f"{segment_files(store)[1].name} is missing"):
        held(store)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b"\xff\xfe",
        b'{"format": "something else"}',
        b'{"format": "harken-subscriptions"}',
        b'{"format": "harken-subscriptions", "version": 1, "schema": null, "limits": {}, "integer_ids": true, '
        b'"segments": [{"file": "x"}], "profile": {}, "rejects": [], "rewritten": 0}',
        b'{"format": "harken-subscriptions", "version": 1, "schema": null, "limits": {}, "integer_ids": true, '
        b'"segments": [], "profile": [], "rejects": [], "rewritten": 0}',
    ],
)
def test_a_damaged_version_file_is_noticed(store: Subscriptions, content: bytes) -> None:
    store.append(rows(1))
    version_file(store, 1).write_bytes(content)
    with pytest.raises(IndexFormatError):
        store.snapshot()
    with pytest.raises(IndexFormatError):
        store.append(rows(2))
    assert len(files(store)) == 1


def test_a_missing_version_file_is_a_version_that_is_not_there(store: Subscriptions) -> None:
    store.append(rows(1))
    store.append(rows(2))
    store.compact()
    version_file(store, 1).unlink()
    for version in (1, 2):
        with pytest.raises(UnknownVersionError):
            Subscriptions(store.path).snapshot(version)  # this one may know what it was told before
    assert held(store) == {1: 1, 2: 2}
    for version in (0, 2, 3):
        version_file(store, version).unlink()
    with pytest.raises(IndexFormatError, match="holds no subscriptions"):
        Subscriptions(store.path)


def test_a_folder_that_is_begun_anew_is_told_from_its_own_versions(store: Subscriptions) -> None:
    store.append(rows(1))
    store.append(rows(2))
    assert held(store) == {1: 1, 2: 2}
    shutil.rmtree(store.path)
    anew = Subscriptions.create(store.path)
    anew.append(rows(3))
    anew.append(rows(4))
    assert held(store) == {3: 3, 4: 4}
    assert store.append(rows(1)).version == 3
    with pytest.raises(DuplicateSubscriptionError):
        store.append(rows(4))


def test_drafts_of_writers_that_died_are_not_taken_for_versions(store: Subscriptions) -> None:
    store.append(rows(1))
    draft = store.path / "versions" / ".0123abcd"
    draft.write_text("{")
    (store.path / "versions" / "notes.json").write_text("{}")
    assert store.version == 1
    assert store.append(rows(2)).version == 2
    draft.unlink()


# ---------------------------------------------------------------- what changed between versions


def after_changes(old: Model, store: Subscriptions, changed: Snapshot) -> Model:
    gone = set(store.superseded(changed).to_pylist())
    return {id: n for id, n in old.items() if id not in gone} | _numbers(store.tables(changed))


NONE = timedelta(0)
"""Nobody reads, and nobody writes."""

IDS = st.integers(0, 7)
SOME = st.lists(IDS, unique=True, max_size=4)


class History(RuleBasedStateMachine):
    """Changes in any order; a plain dictionary says what each version holds."""

    make: Callable[[], Subscriptions]

    def __init__(self) -> None:
        super().__init__()
        self.store = type(self).make()
        self.versions: dict[int, Model] = {0: {}}
        self.count = 0

    @property
    def now(self) -> Model:
        return self.versions[self.store.version]

    def asking(self, ids: Sequence[int]) -> Model:
        self.count += 1
        return {id: 10 * self.count + id for id in ids}

    def changed(self, change: Change, after: Model) -> None:
        assert change.version == max(self.versions) + 1
        self.versions[change.version] = after

    @rule(ids=SOME)
    def append(self, ids: list[int]) -> None:
        before, new = self.now, self.asking(ids)
        texts = [(id, f"x = {number}") for id, number in new.items()]
        if before.keys() & new.keys():
            with pytest.raises(DuplicateSubscriptionError):
                self.store.append(texts)
        else:
            self.changed(self.store.append(texts), before | new)

    @rule(ids=SOME)
    def upsert(self, ids: list[int]) -> None:
        before, new = self.now, self.asking(ids)
        self.changed(self.store.upsert([(id, f"x = {number}") for id, number in new.items()]), before | new)

    @rule(ids=SOME, missing_ok=st.booleans())
    def delete(self, ids: list[int], missing_ok: bool) -> None:
        before = self.now
        if not missing_ok and set(ids) - before.keys():
            with pytest.raises(UnknownSubscriptionError):
                self.store.delete(ids)
            return
        after = {id: number for id, number in before.items() if id not in ids}
        self.changed(self.store.delete(ids, missing_ok=missing_ok), after)

    @rule()
    def compact(self) -> None:
        before = self.now
        self.changed(self.store.compact(), before)

    @rule(keep=st.integers(1, 4))
    def vacuum(self, keep: int) -> None:
        self.store.vacuum(keep, grace=NONE, orphans=NONE)
        self.versions = dict(list(self.versions.items())[-keep:])

    @invariant()
    def the_latest_version_is_as_it_should_be(self) -> None:
        assert self.store.version == max(self.versions)
        assert held(self.store) == self.now
        assert sorted(self.store.ids(self.store.snapshot()).to_pylist()) == sorted(self.now)

    def teardown(self) -> None:
        """Every version is still as it was, and what is told of changes leads from one to another."""
        for version, model in self.versions.items():
            assert held(self.store, version) == model
        latest = self.store.snapshot()
        for version, model in self.versions.items():
            changed = self.store.since(latest, version)
            if changed is not None:
                assert after_changes(model, self.store, changed) == self.now


def test_any_history_of_changes_can_be_read_at_every_version(tmp_path: Path) -> None:
    numbers = iter(range(10**6))
    machine = type("Machine", (History,), {"make": lambda: Subscriptions.create(tmp_path / str(next(numbers)))})
    run_state_machine_as_test(machine, settings=settings(max_examples=25, stateful_step_count=12, deadline=None))


def test_what_changed_is_told_across_a_compaction(store: Subscriptions) -> None:
    store.append(rows(1, 2))
    store.upsert(rows(3))
    store.compact()
    store.append(rows(4))
    latest = store.snapshot()
    for version, expected in {1: {3: 3, 4: 4}, 2: {4: 4}, 3: {4: 4}, 4: {}}.items():
        told = store.since(latest, version)
        assert told is not None
        assert _numbers(store.tables(told)) == expected


# ---------------------------------------------------------------- DataFrames

MOMENT = datetime(2026, 3, 1, 12, tzinfo=UTC)
TEXTS = [
    ("a", "price < 300 and maker in ('Sony', 'Nikon')", "ann", None, MOMENT),
    ("b", "x = 1 or y = 2.5 or spot within box(0, 0, 1, 1)", None, MOMENT, None),
    ("c", "price < ", "bob", None, None),
    ("d", "day = date '2026-01-01' and seen > timestamp '2026-01-01 00:00:00Z'", None, None, None),
    (None, "x = 1", None, None, None),
    ("e", "name like 'a%' and not (flag = true)", None, MOMENT, MOMENT),
    ("f", None, None, None, None),
    ("g", "true", None, None, None),
]
COLUMNS = "id string, expression string, owner string, valid_from timestamp, valid_until timestamp"


@pytest.fixture(scope="module")
def texts_frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(TEXTS, COLUMNS).repartition(3)


def by_id(frame: DataFrame) -> list[dict[str, object]]:
    """A compiled DataFrame as compile_texts would give it."""
    return sorted(conform(frame.toArrow()).to_pylist(), key=lambda row: str(row["id"]))


def expected_table() -> pa.Table:
    return compile_texts(Texts(*[[row[at] for row in TEXTS] for at in range(5)])).table


def test_a_dataframe_is_compiled_as_texts_are(texts_frame: DataFrame) -> None:
    done = compile_subscriptions(texts_frame)
    try:
        assert by_id(done.compiled) == expected_table().to_pylist()
        rejects = {row["id"]: row for row in done.rejects.collect()}
        assert set(rejects) == {"c", None, "e", "f"}
        assert (rejects["c"].expression, rejects["c"].line, rejects["c"].column) == ("price < ", 1, 9)
        assert rejects["e"].reason == f"valid_from {MOMENT} is not before valid_until {MOMENT}"
        assert rejects[None].expression == "x = 1"
        assert dict(done.rejects.dtypes) == {
            **dict.fromkeys(("id", "expression", "reason"), "string"),
            **dict.fromkeys(("line", "column"), "int"),
        }
    finally:
        done.unpersist()


def test_ids_of_any_integer_type_become_bigint(spark: SparkSession) -> None:
    frame = spark.sql("select cast(7 as tinyint) id, 'x = 1' expression, 'extra' other")
    done = compile_subscriptions(frame)
    assert done.compiled.dtypes[0] == ("id", "bigint")
    assert by_id(done.compiled) == compile_texts(Texts([7], ["x = 1"])).table.to_pylist()
    done.unpersist()


def test_a_dataframe_is_held_to_schema_and_limits(spark: SparkSession) -> None:
    texts = [(1, "x = 1"), (2, "y = 1"), (3, "x = 1.5")]
    frame = spark.createDataFrame(texts, "id int, expression string")
    done = compile_subscriptions(frame, schema=Schema({"x": "int"}), limits=Limits(max_length=5))
    found = {row["id"]: row["reason"] for row in done.rejects.collect()}
    assert found.keys() == {"2", "3"}
    assert found["2"].startswith("the schema has no attribute 'y'")
    assert "7 characters, but max_length allows 5" in found["3"]
    done.unpersist()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("'a' id", "subscriptions need the column 'expression', found id"),
        ("'x = 1' expression", "subscriptions need the column 'id'"),
        ("1.5d id, 'x = 1' expression", "the column 'id' of subscriptions is string, found double"),
        ("1 id, 2 expression", "the column 'expression' of subscriptions is string, found int"),
        (
            "1 id, 'x = 1' expression, date'2026-01-01' valid_from",
            "the column 'valid_from' of subscriptions is timestamp, found date",
        ),
    ],
)
def test_other_columns_are_refused_before_anything_runs(
    spark: SparkSession, store: Subscriptions, columns: str, message: str
) -> None:
    frame = spark.sql(f"select {columns}")
    for take in (compile_subscriptions, store.append):
        with pytest.raises(SubscriptionError, match=message):
            take(frame)


def test_a_dataframe_is_appended_read_and_appended_again(
    spark: SparkSession, store: Subscriptions, texts_frame: DataFrame, tmp_path: Path
) -> None:
    assert store.append(texts_frame, on_error="collect") == Change(1, 4, 4)
    assert by_id(store.read(spark)) == expected_table().to_pylist()
    assert {row["id"] for row in store.rejects(spark).collect()} == {"c", None, "e", "f"}
    store.upsert([("a", "x = 1")])
    store.delete(["g"])
    assert [row["id"] for row in by_id(store.read(spark))] == ["a", "b", "d"]
    assert by_id(store.read(spark, 1)) == expected_table().to_pylist()
    assert by_id(store.read(spark, 0)) == []
    assert store.rejects(spark).collect() == []

    copy = Subscriptions.create(tmp_path / "copy [of] {them}*")
    assert copy.append(store.read(spark, 1)) == Change(1, 4, 0)
    assert by_id(copy.read(spark)) == expected_table().to_pylist()
    assert copy.upsert(spark.createDataFrame([("z", "z =")], "id string, expression string"), on_error="collect")
    assert [row["id"] for row in copy.rejects(spark).collect()] == ["z"]


def test_a_dataframe_with_bad_rows_leaves_nothing_unless_rejects_are_collected(
    store: Subscriptions, texts_frame: DataFrame
) -> None:
    with pytest.raises(BulkLoadError, match="nothing was loaded: 4 rejected"):
        store.append(texts_frame)
    assert store.version == 0
    assert files(store) == []


def test_ids_repeated_in_other_partitions_or_in_use_are_refused(spark: SparkSession, store: Subscriptions) -> None:
    twice = spark.range(0, 4, 1, 4).selectExpr("id % 3 as id", "'x = 1' as expression")
    with pytest.raises(DuplicateSubscriptionError, match="subscription 0 "):
        store.append(twice)
    once = spark.range(0, 3, 1, 2).selectExpr("id", "concat('x = ', id) as expression")
    assert store.append(once) == Change(1, 3, 0)
    with pytest.raises(DuplicateSubscriptionError):
        store.append(once.where("id = 2"))
    assert len(files(store)) == len(store.snapshot().segments) == 2
    assert store.upsert(once.selectExpr("id", "'x = 9' as expression").where("id > 0")).version == 2
    assert store.delete(once.where("id < 2")).version == 3
    assert held(store) == {2: 9}


def test_a_compiled_dataframe_can_be_appended(
    store: Subscriptions, texts_frame: DataFrame, spark: SparkSession
) -> None:
    done = compile_subscriptions(texts_frame)
    assert store.append(done.compiled) == Change(1, 4, 0)
    done.unpersist()
    assert by_id(store.read(spark)) == expected_table().to_pylist()


def test_a_job_that_fails_makes_no_version(spark: SparkSession, store: Subscriptions) -> None:
    failing = spark.range(0, 4, 1, 4).selectExpr("id", "if(id = 3, raise_error('bad'), 'x = 1') as expression")
    with pytest.raises(PySparkException, match="bad"):
        store.append(failing)
    assert store.version == 0
    store.vacuum(orphans=NONE)
    assert files(store) == []


def test_many_rows_are_compiled_in_portions(store: Subscriptions, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each portion brings its own dictionaries of names into the file."""
    monkeypatch.setattr(compiling, "PORTION", 2)
    batches = [pa.RecordBatch.from_pydict({"id": [n], "expression": [f"x{n} = {n}"]}) for n in range(7)]
    tables = list(compiling.portions(iter(batches)))
    assert [table.num_rows for table in tables] == [2, 2, 2, 1]
    for table in tables:
        store.append(table)
    store.compact()
    (table,) = store.tables(store.snapshot())
    named = {row["id"]: row["clauses"][0][0]["attribute"] for row in table.to_pylist()}
    assert named == {n: f"x{n}" for n in range(7)}
    assert set(store.snapshot().profile.attributes) == {f"x{n}" for n in range(7)}


# ---------------------------------------------------------------- tidying


def test_a_change_is_made_though_nothing_can_be_cleared_away(
    store: Subscriptions, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "merge", full)
    for id in range(20):
        store.append(rows(id))
    assert held(store) == {id: id for id in range(20)}
    assert "was changed, but what is old there could not be cleared away" in caplog.text


def reader(query: str, version: int, before: int) -> Reader:
    return Reader.now(query, "checkpoint", version, before, follows=False)


def test_a_version_is_kept_for_a_stream_though_that_before_it_is_gone(store: Subscriptions) -> None:
    readers = Readers(store.folder.child("readers"))
    for _ in range(80):
        store.upsert(rows(1))
    store.vacuum(keep=10, grace=timedelta())
    readers.note(reader("stream", store.version, 3))
    pinned = store.version
    for _ in range(80):
        store.upsert(rows(1))
    store.vacuum(keep=10, grace=timedelta())
    assert held(store, pinned) == {1: 1}


def test_a_stream_that_is_at_a_version_in_a_gap_holds_nobody_up(store: Subscriptions) -> None:
    readers = Readers(store.folder.child("readers"))
    for _ in range(4):
        store.upsert(rows(1))
    readers.note(reader("old", store.version, store.version))
    for _ in range(120):
        store.upsert(rows(1))
    store.vacuum(keep=10, grace=timedelta())
    readers.note(reader("gap", store.version, 60))
    for _ in range(80):
        store.upsert(rows(1))
    store.vacuum(keep=10, grace=timedelta())
    assert held(store) == {1: 1}


@pytest.mark.parametrize("ids", ["ab", b"ab", 5])
def test_one_id_is_not_taken_for_several(tmp_path: Path, ids: object) -> None:
    store = Subscriptions.create(tmp_path / "subscriptions")
    store.append([("ab", "x = 1"), ("a", "x = 1"), ("b", "x = 1")])
    with pytest.raises(ArgumentTypeError, match="ids are several, as a list or a column of a DataFrame, found"):
        store.delete(ids)  # type: ignore[arg-type]
    assert sorted(store.ids(store.snapshot()).to_pylist()) == ["a", "ab", "b"]
