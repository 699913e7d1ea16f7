"""Changes add layers, which are merged, and tell what came or changed."""

from __future__ import annotations

import pytest

from harken.errors import UnknownVersionError
from harken.spark import Index, Subscriptions, build_index
from harken.spark.index import index as indexing
from harken.spark.index import worker_cache as opened
from harken.spark.index.building import Blueprint
from harken.spark.index.layers import Part
from harken.spark.subscriptions.versions import VersionLog
from tests.spark.index.indexes import NO_SPARK, NONE, expected, files, pairs, parts_of, sizes, texts

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


def test_what_an_index_held_is_searched_for_when_it_is_closed(
    here: list[Blueprint], store: Subscriptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise what is in circles would stay until a worker's next thorough search."""
    searched: list[bool] = []
    monkeypatch.setattr(opened, "search_everything", lambda: searched.append(True))
    store.append(texts(*range(5)))
    index = build_index(NO_SPARK, store)
    opened.open_index(parts_of(index.state(), index))
    searched.clear()
    opened.open_index(parts_of(index.state(), index))
    assert not searched
    store.upsert(texts(1, salt=1))
    opened.open_index(parts_of(index.refresh(NO_SPARK), index))
    assert searched
