"""Subscriptions on storage: every change is a version, entirely or not at all, and every version can be read."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from harken.compiler import Texts, compile_texts
from harken.errors import (
    ArgumentTypeError,
    BulkLoadError,
    DuplicateSubscriptionError,
    IndexFormatError,
    OutputExistsError,
    SubscriptionError,
    UnknownSubscriptionError,
    UnknownVersionError,
)
from harken.model.limits import Limits
from harken.model.schema import Schema
from harken.spark import Change, Subscriptions
from harken.spark.storage import Folder
from harken.spark.subscriptions import merging
from harken.spark.subscriptions.segments import Segment
from tests.spark.subscriptions.stored import files, held, rows

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


@pytest.mark.parametrize("ids", ["ab", b"ab", 5])
def test_one_id_is_not_taken_for_several(tmp_path: Path, ids: object) -> None:
    store = Subscriptions.create(tmp_path / "subscriptions")
    store.append([("ab", "x = 1"), ("a", "x = 1"), ("b", "x = 1")])
    with pytest.raises(ArgumentTypeError, match="ids are several, as a list or a column of a DataFrame, found"):
        store.delete(ids)  # type: ignore[arg-type]
    assert sorted(store.ids(store.snapshot()).to_pylist()) == ["a", "ab", "b"]
