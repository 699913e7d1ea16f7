"""An index on storage answers for a version of its subscriptions, whatever was built, merged or removed since."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from harken import Engine
from harken.errors import ConcurrentChangeError, IndexFormatError, StorageError, UnknownVersionError
from harken.spark import Index, Subscriptions, build_index, event_statistics, match
from harken.spark.index import index as indexing
from harken.spark.index import sizing
from harken.spark.index import worker_cache as opened
from harken.spark.index.building import Blueprint, build_here
from harken.spark.index.index import index_beside
from harken.spark.index.layers import IndexState, Part
from harken.spark.index.worker_cache import OpenIndex, Parts
from harken.spark.subscriptions.versions import VersionLog

EVENTS = pa.table(
    {
        "n": [value % 10 for value in range(60)],
        "m": [value % 7 for value in range(60)],
        "s": [["a", "b", "c", None][value % 4] for value in range(60)],
    }
)
AT = datetime(2026, 1, 1, tzinfo=UTC)
Pairs = list[tuple[int, int | str]]


def with_memory(configured: str | None) -> SparkSession:
    """All that is asked of a session, where everything is built in this process."""
    return SimpleNamespace(conf=SimpleNamespace(get=lambda name, default: configured))  # type: ignore[return-value]


NO_SPARK = with_memory(None)
NONE = timedelta(0)


def texts(*ids: int, salt: int = 0) -> list[tuple[int, str]]:
    """Subscriptions most of which ask for one value of n."""
    kinds = (
        "n = {} and m > {}",
        "n = {}",
        "n in ({}, {})",
        "s = 'a' and m <= {}",
        "m = {} or s is null and n = {}",
    )
    return [(id, kinds[(id + salt) % 5].format((id + salt) % 10, (id + salt) % 7)) for id in ids]


def pairs(state: IndexState, index: Index, events: pa.Table = EVENTS) -> Pairs:
    """What a version of an index finds, without Spark."""
    rows, ids = OpenIndex(parts_of(state, index)).match(events, AT)
    assert rows.tolist() == sorted(rows.tolist())
    return sorted(zip(rows.tolist(), ids.to_pylist(), strict=True))


def expected(store: Subscriptions, version: int | None = None, events: pa.Table = EVENTS) -> Pairs:
    """What a version of the subscriptions must find."""
    engine = Engine("reference")
    for table in store.tables(store.snapshot(version)):
        engine.subscribe_many(table)
    found = engine.match_batch(events, at=AT)
    return sorted(zip(found.column("event").to_pylist(), found.column("subscription").to_pylist(), strict=True))


def sizes(state: IndexState) -> list[int]:
    return [layer.rows for layer in state.layers]


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def store(tmp_path: Path) -> Subscriptions:
    return Subscriptions.create(tmp_path / "subscriptions")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[Blueprint]:
    """Build in this process what tasks would build; the blueprints of what was."""
    built: list[Blueprint] = []

    def build(_: SparkSession, blueprint: Blueprint) -> dict[int, Part]:
        built.append(blueprint)
        return build_here(blueprint)

    monkeypatch.setattr(indexing, "build_by_tasks", build)
    return built


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes at which a few subscriptions count as many."""
    monkeypatch.setattr(indexing, "SMALL", 8)


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


@pytest.mark.parametrize("shards", [0, -3])
def test_a_number_of_shards_that_makes_no_sense_is_refused(store: Subscriptions, shards: int) -> None:
    with pytest.raises(ValueError, match=f"shards is a positive number or 'auto', found {shards}"):
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


# ---------------------------------------------------------------- layers


@pytest.mark.parametrize("shards", [1, 4])
def test_changes_add_a_layer_and_never_change_what_was_there(
    here: list[Blueprint], store: Subscriptions, shards: int
) -> None:
    store.append(texts(*range(40)))
    index = build_index(NO_SPARK, store, shards=shards)
    first, before = index.state(), files(index.path)
    store.upsert(texts(1, 2, 41, salt=3))
    store.delete([5, 41])
    store.append(texts(60))
    second = index.refresh(NO_SPARK)
    assert (second.version, second.covers, sizes(second)) == (2, 4, [40, 3])
    top = second.layers[1]
    assert (top.since, top.until, top.changes) == (1, 4, 3 + 4)
    assert second.layers[0] == first.layers[0]
    assert len(here) == 1, "the rest was built in this process"
    after = files(index.path)
    assert {path: after[path] for path in before} == before
    assert index.state(1) == first
    assert pairs(first, index) == expected(store, 1)
    assert pairs(second, index) == expected(store)


def test_what_answers_already_is_kept(here: list[Blueprint], store: Subscriptions) -> None:
    store.append(texts(*range(10)))
    index = build_index(NO_SPARK, store)
    before = files(index.path)
    assert index.refresh(NO_SPARK) == index.refresh(NO_SPARK, version=1) == index.state()
    assert files(index.path) == before


def test_layers_of_like_size_are_merged_and_smaller_ones_stay(here: list[Blueprint], store: Subscriptions) -> None:
    store.append(texts(*range(100)))
    index = build_index(NO_SPARK, store)
    seen = []
    for first, count in ((100, 16), (200, 4), (300, 1), (400, 1), (500, 5)):
        store.append(texts(*range(first, first + count)))
        state = index.refresh(NO_SPARK)
        seen.append(sizes(state))
        assert pairs(state, index) == expected(store)
    assert seen == [[100, 16], [100, 16, 4], [100, 16, 4, 1], [100, 22], [100, 22, 5]]
    assert len(here) == 1


def test_a_merged_layer_holds_only_what_still_holds(here: list[Blueprint], store: Subscriptions) -> None:
    store.append(texts(*range(50)))
    index = build_index(NO_SPARK, store)
    for change in (
        lambda: store.upsert(texts(1, 60, salt=1)),
        lambda: store.upsert(texts(1, 60, salt=2)),
        lambda: store.delete([60, 2]),
        lambda: store.append(texts(2, salt=4)),
    ):
        change()
        assert pairs(index.refresh(NO_SPARK), index) == expected(store)
    state = index.state()
    assert sizes(state) == [50, 1, 1]
    assert [pairs(index.state(version), index) for version in range(1, 6)] == [
        expected(store, version) for version in range(1, 6)
    ]


@pytest.mark.usefixtures("small")
def test_when_much_has_changed_everything_is_built_anew(here: list[Blueprint], store: Subscriptions) -> None:
    store.append(texts(*range(20)))
    index = build_index(NO_SPARK, store, shards=3)
    store.append(texts(*range(100, 109)))
    assert sizes(index.refresh(NO_SPARK)) == [20, 9]
    assert [blueprint.since for blueprint in here] == [None, 1], "nine are many, and built by tasks"
    store.delete(list(range(5)))
    state = index.refresh(NO_SPARK)
    assert sizes(state) == [24]
    assert pairs(state, index) == expected(store)
    assert pairs(index.state(2), index) == expected(store, 2)


def test_changes_of_nothing_add_no_layer(here: list[Blueprint], store: Subscriptions) -> None:
    store.append(texts(*range(10)))
    index = build_index(NO_SPARK, store)
    for _ in range(3):
        store.append([])
        state = index.refresh(NO_SPARK)
    assert (state.covers, sizes(state)) == (4, [10])
    store.upsert(texts(1, salt=1))
    store.delete([])
    assert sizes(index.refresh(NO_SPARK)) == [10, 1]


def test_compaction_of_the_subscriptions_rebuilds_nothing_while_changes_can_be_told(
    here: list[Blueprint], store: Subscriptions
) -> None:
    store.append(texts(*range(30)))
    index = build_index(NO_SPARK, store, shards=2)
    store.upsert(texts(1, 40, salt=1))
    store.compact()
    store.delete([2])
    state = index.refresh(NO_SPARK)
    assert sizes(state) == [30, 2]
    assert pairs(state, index) == expected(store)
    store.delete([3])
    store.compact()
    store.vacuum(keep=1, grace=NONE)
    assert sizes(index.refresh(NO_SPARK)) == [29], "what changed can no longer be told"
    assert pairs(index.state(), index) == expected(store)
    assert len(here) == 2


def test_compacting_an_index_leaves_one_layer_that_finds_the_same(
    here: list[Blueprint], store: Subscriptions
) -> None:
    store.append(texts(*range(30)))
    index = build_index(NO_SPARK, store, shards=3)
    store.upsert(texts(1, 40, salt=1))
    store.delete([2])
    before = index.refresh(NO_SPARK)
    after = index.compact(NO_SPARK)
    assert (after.version, after.covers, sizes(after)) == (3, 3, [30])
    assert after.division == before.division
    assert pairs(after, index) == pairs(before, index) == expected(store)


def test_compacting_an_index_whose_version_is_forgotten_takes_the_latest(
    here: list[Blueprint], store: Subscriptions
) -> None:
    store.append(texts(*range(10)))
    index = build_index(NO_SPARK, store)
    store.upsert(texts(1, 20, salt=1))
    store.compact()
    store.vacuum(keep=1, grace=NONE)
    state = index.compact(NO_SPARK)
    assert state.covers == store.version
    assert pairs(state, index) == expected(store)


def test_a_layer_whose_changes_are_forgotten_while_it_is_built_makes_way_for_all(
    here: list[Blueprint], store: Subscriptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.append(texts(*range(10)))
    index = build_index(NO_SPARK, store)
    store.upsert(texts(1, 20, salt=1))
    build = indexing.build_here

    def too_late(blueprint: Blueprint) -> dict[int, Part]:
        monkeypatch.setattr(indexing, "build_here", build)
        Subscriptions(store.path).compact()
        Subscriptions(store.path).vacuum(keep=1, grace=NONE, orphans=NONE)
        return build(blueprint)

    monkeypatch.setattr(indexing, "build_here", too_late)
    with pytest.raises(UnknownVersionError):
        index.refresh(NO_SPARK)  # the version asked for is forgotten, too
    state = index.refresh(NO_SPARK)
    assert sizes(state) == [11]
    assert pairs(state, index) == expected(store)


def test_who_vacuums_while_another_does_is_not_disturbed(
    here: list[Blueprint], store: Subscriptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.append(texts(*range(10)))
    index = build_index(NO_SPARK, store)
    for salt in range(8):
        store.upsert(texts(1, salt=salt))
        store.compact()
        index.refresh(NO_SPARK)
    read = VersionLog.read

    def overtaken(log: VersionLog, version: int) -> dict[str, object]:
        monkeypatch.setattr(VersionLog, "read", read)
        Subscriptions(store.path).vacuum(keep=2, grace=NONE, orphans=NONE)
        Index(index.path).vacuum(keep=2, grace=NONE, orphans=NONE)
        return read(log, version)

    for vacuum in (store.vacuum, index.vacuum):
        monkeypatch.setattr(VersionLog, "read", overtaken)
        vacuum(keep=2, grace=NONE, orphans=NONE)
        assert pairs(index.state(), index) == expected(store)
        for salt in range(4):
            store.upsert(texts(2, salt=salt))
            store.compact()
            index.refresh(NO_SPARK)


def test_a_worker_holds_on_to_what_it_has_open_and_lets_go_of_other_versions(
    here: list[Blueprint], store: Subscriptions
) -> None:
    store.append(texts(*range(20)))
    index = build_index(NO_SPARK, store, shards=2)
    first = parts_of(index.state(), index)
    opened.open_index(first)
    shards = [opened.open_shard(first, shard) for shard in range(2)]
    assert [opened.open_shard(parts_of(index.state(), index), shard) for shard in range(2)] == shards
    store.upsert(texts(1, salt=1))
    second = parts_of(index.refresh(NO_SPARK), index)
    opened.open_shard(second, 0)
    engines = [part for folder, part in opened._ENGINES if folder == index.folder]
    assert engines.count(index.state().layers[0].parts[0].folder) == 1, "what both have is kept"
    assert index.folder not in opened._OPEN
    assert [key for key in opened._OPEN_SHARDS if key[0] == index.folder] == [(index.folder, 0)]


def parts_of(state: IndexState, index: Index) -> Parts:
    return Parts(index.folder, state.layers, state.division, state.integer_ids)


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


# ---------------------------------------------------------------- only what changed


def test_changes_are_only_what_came_or_changed_since(here: list[Blueprint], store: Subscriptions) -> None:
    store.append(texts(*range(20)))
    index = build_index(NO_SPARK, store, shards=3)
    store.upsert(texts(1, 30, salt=1))
    store.delete([2])
    store.append(texts(31))
    state = index.refresh(NO_SPARK)

    def ids_since(version: int) -> set[int | str] | None:
        changed = index.changes(NO_SPARK, state, version)
        if changed is None:
            return None
        found = pairs(changed, index)
        ids = {id for _, id in found}
        assert found == [pair for pair in expected(store) if pair[1] in ids]
        return ids

    assert ids_since(4) is None
    assert ids_since(3) == {31}
    assert ids_since(2) == {31}, "what went is no news"
    assert ids_since(1) == {1, 30, 31}
    assert ids_since(0) == {id for _, id in expected(store)}
    assert index.changes(NO_SPARK, state, 99) is None


def test_what_only_went_is_no_change_to_match(here: list[Blueprint], store: Subscriptions) -> None:
    store.append(texts(1, 2))
    index = build_index(NO_SPARK, store)
    store.upsert(texts(1, 3, salt=1))
    store.delete([1, 3])
    assert index.changes(NO_SPARK, index.refresh(NO_SPARK), 1) is None


def test_changes_are_told_across_a_compaction_and_all_is_new_once_that_is_forgotten(
    here: list[Blueprint], store: Subscriptions
) -> None:
    store.append(texts(*range(10)))
    index = build_index(NO_SPARK, store)
    store.upsert(texts(1, salt=1))
    store.compact()
    store.append(texts(21))
    state = index.refresh(NO_SPARK)
    changed = index.changes(NO_SPARK, state, 1)
    assert changed is not None
    assert {id for _, id in pairs(changed, index)} == {1, 21}
    store.compact()
    store.vacuum(keep=1, grace=NONE)
    state = index.refresh(NO_SPARK)
    assert index.changes(NO_SPARK, state, 1) == state


# ---------------------------------------------------------------- damage


def test_a_damaged_part_fails_the_job_with_its_name(spark: SparkSession, store: Subscriptions) -> None:
    store.append(texts(*range(20)))
    index = build_index(spark, store, shards=2)
    folder = index.path / "parts" / index.state().layers[0].parts[1].folder
    array = max(folder.rglob("*.npy"), key=lambda path: path.stat().st_size)
    content = bytearray(array.read_bytes())
    content[-1] ^= 1
    array.write_bytes(bytes(content))
    with pytest.raises(PySparkException) as caught:
        match(spark.createDataFrame(EVENTS), index).collect()
    assert "IndexFormatError" in str(caught.value)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("gone", ["parts", "hidden"])
def test_what_is_missing_is_named(here: list[Blueprint], store: Subscriptions, gone: str) -> None:
    store.append(texts(*range(20)))
    index = build_index(NO_SPARK, store)
    store.upsert(texts(1, salt=1))
    state = index.refresh(NO_SPARK)
    for path in (index.path / gone).iterdir():
        path.rename(path.with_suffix(".gone"))
    with pytest.raises(IndexFormatError, match="missing"):
        pairs(state, index)


@pytest.mark.parametrize("damage", ["part gone", "file gone", "part cut", "hidden gone", "hidden cut"])
def test_refresh_notices_what_is_missing_or_cut_and_builds_anew(
    here: list[Blueprint], store: Subscriptions, damage: str
) -> None:
    store.append(texts(*range(20)))
    index = build_index(NO_SPARK, store, shards=2)
    store.upsert(texts(1, salt=1))
    state = index.refresh(NO_SPARK)
    kind = "hidden" if damage.startswith("hidden") else "parts"
    top = state.layers[-1]
    name = top.hides.file if kind == "hidden" else state.layers[0].parts[1].folder  # type: ignore[union-attr]
    path = index.path / kind / name
    array = path if kind == "hidden" else max(path.rglob("*.npy"), key=lambda each: each.stat().st_size)
    match damage.split():
        case "part", "gone":
            shutil.rmtree(path)
        case _, "gone":
            array.unlink()
        case _:
            array.write_bytes(array.read_bytes()[:-1])
    again = Index(index.path).refresh(NO_SPARK)
    assert (again.version, again.covers, sizes(again)) == (3, 2, [20])
    assert pairs(again, index) == expected(store)
    assert index.refresh(NO_SPARK) == again
    store.upsert(texts(2, salt=1))
    assert pairs(index.refresh(NO_SPARK), index) == expected(store)


def test_refresh_reads_everything_if_asked_to(here: list[Blueprint], store: Subscriptions) -> None:
    store.append(texts(*range(20)))
    index = build_index(NO_SPARK, store)
    store.upsert(texts(1, salt=1))
    state = index.refresh(NO_SPARK)
    assert index.refresh(NO_SPARK, verify=True) == state
    for kind in ("parts", "hidden"):
        # Of what the latest version names: others may lie there, of versions before it.
        last = index.state().layers[-1]
        name = last.parts[0].folder if kind == "parts" else last.hides.file
        place = index.path / kind / name
        files = [place] if place.is_file() else place.rglob("*.npy")
        array = max(files, key=lambda each: each.stat().st_size)
        content = bytearray(array.read_bytes())
        content[len(content) // 2] ^= 1
        array.write_bytes(bytes(content))
        before = index.state()
        assert Index(index.path).refresh(NO_SPARK) == before, "of the same size"
        after = index.refresh(NO_SPARK, verify=True)
        assert after.version == before.version + 1
        assert pairs(after, index) == expected(store)
        store.upsert(texts(2, salt=1))
        index.refresh(NO_SPARK)


def test_a_damaged_list_of_hidden_ids_is_noticed(here: list[Blueprint], store: Subscriptions) -> None:
    store.append(texts(*range(20)))
    index = build_index(NO_SPARK, store)
    store.delete([1])
    state = index.refresh(NO_SPARK)
    (path,) = (index.path / "hidden").iterdir()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(IndexFormatError, match="damaged"):
        pairs(state, index)


def test_a_folder_without_a_manifest_is_named(tmp_path: Path, store: Subscriptions) -> None:
    for folder in (tmp_path / "nothing", store.path / "segments"):
        with pytest.raises(
            IndexFormatError, match="holds no index: its manifest is missing; build_index makes one"
        ):
            Index(folder)
    with pytest.raises(IndexFormatError, match="holds something else than an index"):
        Index(store.path).state()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": "harken-index"}'])
def test_a_damaged_manifest_is_noticed(here: list[Blueprint], store: Subscriptions, content: str) -> None:
    store.append(texts(1))
    index = build_index(NO_SPARK, store)
    (manifest,) = (index.path / "versions").iterdir()
    manifest.write_text(content)
    with pytest.raises(IndexFormatError):
        index.state()


# ---------------------------------------------------------------- several at once


def test_of_two_that_build_at_once_the_first_is_taken(
    here: list[Blueprint], store: Subscriptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.append(texts(*range(10)))
    overtake(monkeypatch, lambda: build_index(NO_SPARK, store, shards=2))
    index, state = index_beside(NO_SPARK, store)
    assert (state.version, state.division.shards) == (1, 2)
    assert pairs(state, index) == expected(store)
    assert index.vacuum() == 0, "what was built in vain is gone"


def test_of_two_that_refresh_at_once_both_answer(
    here: list[Blueprint], store: Subscriptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.append(texts(*range(10)))
    index = build_index(NO_SPARK, store)
    store.upsert(texts(1, salt=1))
    overtake(monkeypatch, lambda: Index(index.path).refresh(NO_SPARK))
    state = index.refresh(NO_SPARK)
    assert (state.version, state.covers) == (2, 2)
    assert pairs(state, index) == expected(store)
    assert index.vacuum() == 0


def overtake(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """Have somebody else write a version of the index just before the next one."""
    append = VersionLog.append

    def late(log: VersionLog, version: int, document: dict[str, object]) -> None:
        monkeypatch.setattr(VersionLog, "append", append)
        action()
        append(log, version, document)

    monkeypatch.setattr(VersionLog, "append", late)


def test_building_over_what_another_builds_says_so(
    here: list[Blueprint], store: Subscriptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.append(texts(1))
    overtake(monkeypatch, lambda: build_index(NO_SPARK, store))
    with pytest.raises(ConcurrentChangeError):
        build_index(NO_SPARK, store)


def test_a_builder_that_died_before_its_first_version_is_no_hindrance(
    here: list[Blueprint], store: Subscriptions
) -> None:
    store.append(texts(1, 2))
    (store.path / "index" / "versions").mkdir(parents=True)
    (store.path / "index" / "parts" / "half").mkdir(parents=True)
    index, state = index_beside(NO_SPARK, store)
    assert pairs(state, index) == expected(store)


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
