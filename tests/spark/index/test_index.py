"""An index on storage answers for a version of its subscriptions, whatever was built, merged or removed since."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from harken.errors import StorageError, UnknownVersionError
from harken.spark import Index, Subscriptions, build_index, event_statistics
from harken.spark.index import index as indexing
from harken.spark.index import sizing
from harken.spark.index.building import Blueprint
from harken.spark.index.index import index_beside
from harken.spark.subscriptions.versions import VersionLog
from tests.spark.index.indexes import NO_SPARK, NONE, expected, files, pairs, sizes, texts, with_memory

# ---------------------------------------------------------------- building


@pytest.mark.parametrize("shards", [1, 4])
def test_tasks_build_an_index_that_finds_what_its_subscriptions_ask_for(
    spark: SparkSession, store: Subscriptions, shards: int
) -> None:
    store.append(texts(*range(40)))
    store.upsert(texts(3, 50, salt=2))
    store.delete([7])
    index = build_index(spark, store, shards=shards)
    state = index.state()
    assert repr(index) == f"Index({str(store.path / 'index')!r}, version=1, shards={shards})"
    assert (state.version, state.covers, sizes(state)) == (1, 3, [40])
    assert sorted(state.layers[0].parts) == list(range(shards))
    assert state.bytes == sum(len(content) for content in files(index.path / "parts").values())
    assert pairs(state, index) == expected(store)
    assert Index(str(index.path)).state() == state


def test_an_index_may_be_of_any_algorithm_and_lie_anywhere(here: list[Blueprint], store: Subscriptions) -> None:
    store.append(texts(*range(20)))
    folder = store.path.parent / "elsewhere"
    index = build_index(NO_SPARK, store, folder, shards=2, algorithm="counting", options={})
    assert index.path == folder
    assert index.subscriptions.path == store.path
    assert pairs(index.state(), index) == expected(store)
    store.upsert(texts(3, salt=1))
    state = index.refresh(NO_SPARK)
    assert [blueprint.algorithm for blueprint in here] == ["counting"]
    assert pairs(state, index) == expected(store)
    assert not (store.path / "index").exists()


def test_an_index_of_nothing_answers_and_grows(here: list[Blueprint], store: Subscriptions) -> None:
    index = build_index(NO_SPARK, store, shards=3)
    assert pairs(index.state(), index) == []
    store.append(texts(1, 2))
    assert pairs(index.refresh(NO_SPARK), index) == expected(store) != []


def test_string_ids_are_found_hidden_and_replaced(here: list[Blueprint], store: Subscriptions) -> None:
    named = [(f"sub-{id}", text) for id, text in texts(*range(30))]
    store.append(named)
    index = build_index(NO_SPARK, store, shards=3)
    store.upsert([("sub-3", "n = 1"), ("neu-ü", "n = 2")])
    store.delete(["sub-4"])
    state = index.refresh(NO_SPARK)
    assert len(state.layers) == 2
    assert pairs(state, index) == expected(store)


@pytest.mark.parametrize("shards", [0, -3, "x", True, 2.0])
def test_a_number_of_shards_that_makes_no_sense_is_refused(store: Subscriptions, shards: int) -> None:
    with pytest.raises(ValueError, match=f"shards is a positive number or 'auto', found {shards!r}"):
        build_index(NO_SPARK, store, shards=shards)


def test_auto_makes_as_many_shards_as_the_memory_of_executors_asks_for(
    here: list[Blueprint], store: Subscriptions
) -> None:
    store.append(texts(*range(40)))
    size = store.snapshot().segments[0].bytes

    assert build_index(with_memory(None), store).state().division.shards == 1
    assert build_index(with_memory("4g"), store).state().division.shards == 1
    asked = f"{size // 3 - 1}b"  # a third would do for three
    index = build_index(with_memory(asked), store)
    assert index.state().division.shards == sizing.shards_for(with_memory(asked), store.snapshot()) == 4
    assert pairs(index.state(), index) == expected(store)


def test_building_again_makes_another_version(here: list[Blueprint], store: Subscriptions) -> None:
    store.append(texts(*range(20)))
    first = build_index(NO_SPARK, store, shards=2)
    again = build_index(NO_SPARK, store, shards=3)
    assert [again.state(version).division.shards for version in (1, 2)] == [2, 3]
    assert pairs(first.state(1), first) == pairs(again.state(), again) == expected(store)


# ---------------------------------------------------------------- older versions


def test_an_index_answers_for_an_older_version_too(here: list[Blueprint], store: Subscriptions) -> None:
    for version in range(4):
        store.upsert(texts(*range(version, version + 10), salt=version))
    index = build_index(NO_SPARK, store, shards=2)
    store.delete([3])
    for version in (5, 2, 0, 4, 1, 5, 3):
        state = index.refresh(NO_SPARK, version=version)
        assert state.covers == version
        assert pairs(state, index) == expected(store, version)
    assert index.refresh(NO_SPARK).covers == 5
    with pytest.raises(UnknownVersionError):
        index.refresh(NO_SPARK, version=6)


# ---------------------------------------------------------------- vacuum


def test_vacuum_keeps_what_the_latest_versions_need(here: list[Blueprint], store: Subscriptions) -> None:
    store.append(texts(*range(30)))
    index = build_index(NO_SPARK, store, shards=2)
    for salt in range(3):
        store.upsert(texts(salt, salt + 40, salt=salt))
        index.refresh(NO_SPARK)
    (index.path / "parts" / "of-a-task-that-died").mkdir()
    (index.path / "hidden" / "of-a-writer-that-died.arrows").touch()
    kept = {name for version in (3, 4) for name in indexing._names(index.state(version).layers)}
    assert index.vacuum(keep=2) == 0, "somebody may be matching, and somebody building"
    assert index.vacuum(keep=2, grace=NONE, orphans=NONE) > 2
    found = {path.name for folder in ("parts", "hidden") for path in (index.path / folder).iterdir()}
    assert found == kept
    assert index.vacuum(keep=2, grace=NONE, orphans=NONE) == 0
    for version in (3, 4):
        assert pairs(index.state(version), index) == expected(store, version)
    with pytest.raises(UnknownVersionError):
        index.state(1)
    with pytest.raises(ValueError, match="keep"):
        index.vacuum(keep=0)


# ---------------------------------------------------------------- statistics


def test_statistics_arrange_shards_and_parts_for_the_events_to_come(
    spark: SparkSession, store: Subscriptions
) -> None:
    store.append([(id, f"n = {id % 10} and m >= {id % 3}") for id in range(100)])
    often = pa.table({"n": [3] * 90 + list(range(10)), "m": [value % 5 for value in range(100)]})
    statistics = event_statistics(spark.createDataFrame(often), ["n", "m"])
    index = build_index(spark, store, statistics=statistics, shards=4)
    division = index.state().division
    assert (division.attribute, len(division.shards_of[3])) == ("n", 3)
    assert all(len(division.shards_of[value]) == 1 for value in range(10) if value != 3)
    lessons = pa.ipc.open_stream(pa.memory_map(str(index.path / "lessons.arrows"))).read_all()
    assert (lessons.column_names, lessons.num_rows) == (["n", "m"], 100)
    assert pairs(index.state(), index) == expected(store)


# ---------------------------------------------------------------- all of it


@pytest.mark.usefixtures("small", "here")
@pytest.mark.parametrize("seed", range(3))
def test_after_any_history_every_version_answers(store: Subscriptions, seed: int) -> None:
    chance = random.Random(seed)
    store.append(texts(*range(25)))
    index = build_index(NO_SPARK, store, shards=chance.choice([1, 3, 5]))
    known = set(range(25))
    for _ in range(25):
        some = chance.sample(range(60), chance.choice([1, 2, 6]))
        match chance.choice(["append", "upsert", "upsert", "delete", "compact", "refresh", "refresh", "vacuum"]):
            case "append":
                store.append(texts(*set(some) - known, salt=chance.randrange(9)))
                known |= set(some)
            case "upsert":
                store.upsert(texts(*some, salt=chance.randrange(9)))
                known |= set(some)
            case "delete":
                store.delete(some, missing_ok=True)
                known -= set(some)
            case "compact":
                chance.choice([store.compact, lambda: index.compact(NO_SPARK)])()
            case "vacuum":
                index.vacuum(keep=chance.choice([1, 3]))
            case _:
                state = index.refresh(NO_SPARK, version=chance.choice([None, store.version // 2]))
                assert pairs(state, index) == expected(store, state.covers)
    assert pairs(index.refresh(NO_SPARK), index) == expected(store)
    for version in VersionLog(index.path / "versions").numbers():
        state = index.state(version)
        assert pairs(state, index) == expected(store, state.covers)


def test_an_index_beside_is_opened_once_and_found_again_if_it_was_removed(
    here: list[Blueprint], store: Subscriptions
) -> None:
    store.append(texts(*range(6)))
    index, _ = index_beside(NO_SPARK, store)
    again, state = index_beside(NO_SPARK, store)
    assert again is index
    assert index.path is not None
    shutil.rmtree(index.path)
    fresh, state = index_beside(NO_SPARK, store)
    assert fresh is not index
    assert pairs(state, fresh) == expected(store)


def test_a_folder_that_is_copied_or_moved_answers_for_itself(here: list[Blueprint], store: Subscriptions) -> None:
    store.append(texts(*range(6)))
    index_beside(NO_SPARK, store)
    assert store.path is not None
    other = Subscriptions(shutil.copytree(store.path, store.path.with_name("copied")))
    other.append(texts(30))
    store.append(texts(31))
    for each in (store, other):
        index, state = index_beside(NO_SPARK, each)
        assert pairs(state, index) == expected(each)
    assert other.path is not None
    moved = Subscriptions(shutil.move(other.path, other.path.with_name("moved")))
    moved.append(texts(32))
    index, state = index_beside(NO_SPARK, moved)
    assert pairs(state, index) == expected(moved)
    again = Index(moved.folder.child("index"))
    assert again.subscriptions.folder == moved.folder


def test_a_folder_that_was_begun_anew_gets_an_index_of_its_own(
    here: list[Blueprint], store: Subscriptions, tmp_path: Path
) -> None:
    store.append(texts(*range(6)))
    elsewhere = build_index(NO_SPARK, store, tmp_path / "elsewhere")
    assert store.path is not None
    shutil.rmtree(store.path)
    anew = Subscriptions.create(store.path)
    anew.append(texts(*range(20, 23)))
    for index in (elsewhere, Index(tmp_path / "elsewhere")):
        assert pairs(index.refresh(NO_SPARK), index) == expected(anew)


def test_beside_subscriptions_that_are_only_read_no_index_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Subscriptions.create(tmp_path / "subscriptions")
    store.append([(1, "n = 1")])
    monkeypatch.setattr(indexing.os, "access", lambda path, how: False)  # for who is root, all can be written
    with pytest.raises(StorageError, match=r"is read-only; build_index\(spark, subscriptions, path\) puts it"):
        index_beside(None, store)
    assert not (tmp_path / "subscriptions" / "index").exists()


def test_an_index_beside_a_folder_forgets_old_versions_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "TIDY_EVERY", 4)
    store = Subscriptions.create(tmp_path / "subscriptions")
    store.grace = NONE
    store.append([(1, "n = 1")])
    for number in range(16):
        store.upsert([(1, f"n = {number}")])
        index, _ = index_beside(None, store)
    for kind in ("versions", "parts"):
        assert len(list((tmp_path / "subscriptions" / "index" / kind).iterdir())) <= indexing.KEEP + 4
    assert index.grace is NONE
