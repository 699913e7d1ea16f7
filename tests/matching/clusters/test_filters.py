"""Filters of keys, and the order of events: what they leave out can't match, and nobody notices otherwise."""

from __future__ import annotations

import os
import random

import numpy as np
import pyarrow as pa
import pytest

from harken import Engine
from harken.errors import IndexFormatError
from harken.matching.clusters import dynamic, filtering
from harken.matching.clusters.cost import USUAL
from harken.matching.clusters.dynamic import DynamicMatcher
from harken.matching.clusters.filtering import can_tell, keys_of, open_tables
from harken.matching.clusters.kernels.filters import telling_keys
from harken.matching.clusters.soundness import check_filters
from harken.matching.encoding import locality, workspace
from harken.matching.events.batch import EventBatch
from harken.matching.kernels.layout import (
    ALWAYS,
    CAPACITY,
    FILTER,
    FILTERED,
    FIRST_KEY_TABLE,
    HEADER,
    KEY,
    LENGTH,
    LINE,
    NEVER,
    NEXT,
    SHORT_NUMBERS,
    WIDTH,
)
from tests.matching.churning import index_of

pytestmark = pytest.mark.kernel

AS_PYTHON = os.environ.get("NUMBA_DISABLE_JIT") == "1"
MANY = 300 if AS_PYTHON else 4_000
VALUES = 6 if AS_PYTHON else 7
of_thousands = pytest.mark.skipif(AS_PYTHON, reason="so many tables have filters with thousands of clauses only")

RESTLESS = {"patience": 1, "margin": 0.0}


@pytest.fixture(autouse=True)
def usual_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which tables there are depends on what a lookup costs, and what was measured on how busy the machine was."""
    monkeypatch.setattr(dynamic, "calibrated", lambda: USUAL)


def a_text(chance: random.Random) -> str:
    """Two equalities that all have, and up to three more; some of other kinds."""
    more = [
        f"{name} = {chance.randrange(VALUES)}"
        for name in chance.sample("cdefgh", chance.choice([1, 2, 3, 3, 3, 3]))
    ]
    if chance.random() < 0.2:
        more[-1] = chance.choice([f"c < {chance.randrange(VALUES)}", "s LIKE 'x%'", "b != 9", "d IN (1, 2)"])
    return " AND ".join([f"a = {chance.randrange(VALUES)}", f"b = {chance.randrange(VALUES)}", *more])


def an_event(chance: random.Random) -> dict[str, object]:
    event: dict[str, object] = {name: chance.randrange(VALUES) for name in "abcdefgh" if chance.random() < 0.9}
    return event | {"s": chance.choice(["x1", "y"])}


def filled(chance: random.Random, count: int = MANY) -> Engine:
    engine = Engine("dynamic", patience=1)
    for begin in range(0, count, count // 4):
        engine.subscribe_many((id, a_text(chance)) for id in range(begin, begin + count // 4))
    assert store_of(engine).has_filters
    return engine


SPARSE, SPARSE_VALUES, SPARSE_MARGIN = "abcdefghijkl", 12, 0.8


def a_sparse_text(chance: random.Random) -> str:
    """Three equalities on any attributes: under keys of two there are few clauses each."""
    asked = [f"{name} = {chance.randrange(SPARSE_VALUES)}" for name in chance.sample(SPARSE, 3)]
    if chance.random() < 0.1:
        asked[-1] = chance.choice([f"{asked[-1][0]} < 2", "s LIKE 'x%'", "t != 9"])
    return " AND ".join(asked)


def a_sparse_event(chance: random.Random) -> dict[str, object]:
    event: dict[str, object] = {name: chance.randrange(SPARSE_VALUES) for name in SPARSE if chance.random() < 0.9}
    return event | {"s": chance.choice(["x1", "y"]), "t": 1}


@pytest.fixture
def always_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few clauses keys have: which tables there are is left to the matcher."""
    monkeypatch.setattr(filtering, "FILTERED_FROM", 10_000_000)
    monkeypatch.setattr(filtering, "FEWEST", 0.0001)
    monkeypatch.setattr(filtering, "FEWEST_AGAIN", 0.0001)


def sparsely_filled(chance: random.Random, count: int = MANY) -> Engine:
    engine = Engine("dynamic", patience=1, margin=SPARSE_MARGIN)
    for begin in range(0, count, count // 4):
        engine.subscribe_many((id, a_sparse_text(chance)) for id in range(begin, begin + count // 4))
    engine.learn([a_sparse_event(chance) for _ in range(40)])
    assert store_of(engine).has_near_filters
    return engine


def store_of(engine: Engine):
    matcher = index_of(engine)
    assert isinstance(matcher, DynamicMatcher)
    return matcher._store


def sound(engine: Engine) -> None:
    store = store_of(engine)
    check_filters(index_of(engine)._predicates.arrays(), store.tables(), store.blocks())


def matches(engine: Engine, events: list[dict[str, object]]) -> list[list[int]]:
    return [sorted(engine.match(event)) for event in events]


def visits_per_key(engine: Engine, events: list[dict[str, object]]) -> float:
    """How many clusters events visit for each key table that there is; some of them match."""
    before = engine.stats()
    assert any(matches(engine, events))
    after = engine.stats()
    visits = after["clusters_per_event"] * after["events"] - before["clusters_per_event"] * before["events"]
    keys = sum(len(table["access"].split(", ")) > 1 for table in after["tables"])
    return visits / (keys * len(events))


def reference_of(engine: Engine) -> Engine:
    reference = Engine("reference")
    reference.subscribe_many((id, engine.subscription(id).expression) for id in engine)
    return reference


def test_filters_let_through_whatever_matches_while_subscriptions_come_and_go():
    chance = random.Random("filters")
    engine = filled(chance)
    reference = reference_of(engine)
    events = [an_event(chance) for _ in range(20)]
    for step in range(3 if AS_PYTHON else 6):
        gone = chance.sample(sorted(engine), 20)
        come = [(MANY + 40 * step + at, a_text(chance)) for at in range(20)]
        one = (MANY + 40 * step + 30, a_text(chance))
        for each in (engine, reference):
            for id in gone:
                each.unsubscribe(id)
            each.subscribe_many(come)
            each.subscribe(*one)
        sound(engine)
        assert matches(engine, events) == matches(reference, events)


@of_thousands
@pytest.mark.usefixtures("always_narrow")
def test_narrow_filters_let_through_whatever_matches_while_subscriptions_come_and_go():
    chance = random.Random("narrow")
    engine = sparsely_filled(chance)
    reference = reference_of(engine)
    events = [a_sparse_event(chance) for _ in range(20)]
    for step in range(6):
        gone = chance.sample(sorted(engine), 20)
        come = [(2 * MANY + 40 * step + at, a_sparse_text(chance)) for at in range(20)]
        alike = [(2 * MANY + 40 * step + 20 + at, "a = 1 AND b = 1 AND c = 1") for at in range(5)]
        for each in (engine, reference):
            for id in gone:
                each.unsubscribe(id)
            each.subscribe_many([*come, *alike])
        sound(engine)
        assert store_of(engine).has_near_filters
        assert matches(engine, [*events, dict.fromkeys(SPARSE, 1)]) == matches(
            reference, [*events, dict.fromkeys(SPARSE, 1)]
        )


@of_thousands
@pytest.mark.usefixtures("always_narrow")
def test_with_narrow_filters_hardly_anything_is_looked_at_in_vain():
    chance = random.Random("in vain")
    engine = sparsely_filled(chance)
    events = [a_sparse_event(chance) for _ in range(60)]
    assert visits_per_key(engine, events) < 0.6


@of_thousands
@pytest.mark.usefixtures("always_narrow")
def test_narrow_filters_go_where_clauses_are_few(monkeypatch):
    chance = random.Random("fewer")
    engine = sparsely_filled(chance)
    monkeypatch.setattr(filtering, "FEWEST", 1.0)
    monkeypatch.setattr(filtering, "FEWEST_AGAIN", 1.0)
    engine.learn([a_sparse_event(chance) for _ in range(40)])
    assert not store_of(engine).has_filters
    events = [a_sparse_event(chance) for _ in range(10)]
    assert matches(engine, events) == matches(reference_of(engine), events)


@pytest.mark.usefixtures("always_narrow")
@of_thousands
def test_tables_that_were_many_once_leave_room_for_others(monkeypatch):
    monkeypatch.setattr(dynamic, "MOST_TABLES", 12)
    chance = random.Random("many once")
    engine = sparsely_filled(chance)
    store = store_of(engine)
    assert len(store.schemas) >= 12
    engine.unsubscribe_many(list(engine))
    for id in range(0, MANY, MANY // 4):
        texts = (f"x = {at % 12} AND y = {at % 11} AND z = {at % 7}" for at in range(id, id + MANY // 4))
        engine.subscribe_many(enumerate(texts, id))
    engine.learn([{name: chance.randrange(7) for name in "xyz"} for _ in range(40)])
    assert any(store.schemas)
    assert len(store.schemas) < 12 + 12
    events = [{"x": 5, "y": 5, "z": 5}, {"x": 5, "y": 1}]
    assert matches(engine, events) == matches(reference_of(engine), events)


def test_the_directory_takes_no_more_and_more_places_while_tables_come_and_go(tmp_path):
    chance = random.Random("sprawl")
    engine = Engine("dynamic", patience=1, margin=0.1)
    store, few = store_of(engine), 30 if AS_PYTHON else 400
    for step in range(40):
        asked = (
            [f"{name} = {chance.randrange(VALUES + step // 2)}" for name in chance.sample("abcdefgh", 3)]
            for _ in range(few)
        )
        engine.subscribe_many(enumerate(map(" AND ".join, asked), step * few))
        if step > 5:
            engine.unsubscribe_many(range((step - 6) * few, (step - 5) * few))
    is_open = [table for table, schema in enumerate(store.schemas) if schema]
    assert len(is_open) > 2
    places = store._size.values[[*range(FIRST_KEY_TABLE), *is_open]].sum()
    assert store._end < 6 * places
    sound(engine)
    engine.save(tmp_path / "engine")
    events = [an_event(chance) for _ in range(20)]
    wanted = matches(reference_of(engine), events)
    assert matches(engine, events) == matches(Engine.load(tmp_path / "engine"), events) == wanted


def words_of_narrow_filters(store) -> list[int]:
    """Words without which something is lost: not those that another entry has too, or that nobody looks at."""
    tables = np.flatnonzero(store.tables().filter < 0).tolist()
    pairs = [
        (2 * (key - store.tables().filter[table]))
        for table in tables
        for key in range(keys_of(store.tables(), table))
    ]
    told = store.filters[pairs], store.filters[[at + 1 for at in pairs]]
    is_alone = (told[0] > ALWAYS) & (told[0] != told[1])
    return [int(at) for at, alone in zip(pairs, is_alone, strict=True) if alone]


@of_thousands
@pytest.mark.usefixtures("always_narrow")
def test_narrow_filters_are_saved_and_looked_at_before_they_are_believed(tmp_path):
    chance = random.Random("saved narrow")
    engine = sparsely_filled(chance)
    events = [a_sparse_event(chance) for _ in range(30)]
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    assert store_of(loaded).has_near_filters
    sound(loaded)
    assert matches(loaded, events) == matches(engine, events)
    state = index_of(engine).state()
    words = state.arrays["clusters.filters"].copy()
    needed = words_of_narrow_filters(store_of(engine))
    assert len(needed) > 5
    for at in chance.sample(needed, min(5, len(needed))):
        damaged = words.copy()
        damaged[at] = NEVER
        with pytest.raises(ValueError, match="filter"):
            _restored(engine, state, {"clusters.filters": damaged})
    for numbers in (lambda first: -first, lambda first: first - 2**40, lambda first: first + (first < 0)):
        first = numbers(state.arrays["clusters.filter"])
        with pytest.raises(ValueError, match="filter"):
            _restored(engine, state, {"clusters.filter": first})


def test_what_the_caches_hold_has_no_filters(monkeypatch):
    monkeypatch.setattr(filtering, "FILTERED_FROM", 10_000_000)
    engine = Engine("dynamic", patience=1)
    events = [an_event(random.Random(at)) for at in range(10)]
    engine.subscribe_many((id, a_text(random.Random(id))) for id in range(MANY))
    assert not store_of(engine).has_filters
    monkeypatch.setattr(filtering, "FILTERED_FROM", 1_000)
    engine.learn(events)
    assert store_of(engine).has_filters
    sound(engine)
    monkeypatch.setattr(filtering, "FILTERED_FROM", 10_000_000)
    engine.learn(events)
    assert not store_of(engine).has_filters
    assert matches(engine, events) == matches(reference_of(engine), events)


@of_thousands
def test_most_clusters_that_hold_nothing_are_not_looked_at():
    chance = random.Random("sifted")
    engine = filled(chance)
    events = [an_event(chance) for _ in range(40)]
    assert visits_per_key(engine, events) < 0.5


@of_thousands
def test_tables_under_whose_keys_there_are_ranges_only_have_no_filters():
    chance = random.Random("mute")
    engine, more = Engine("dynamic", patience=1), "cdef"
    for begin in range(0, MANY, MANY // 4):
        asked = [
            [
                *(f"{name} = {chance.randrange(VALUES)}" for name in ("a", "b", chance.choice(more))),
                f"x > {at % 9}",
            ]
            for at in range(begin, begin + MANY // 4)
        ]
        engine.subscribe_many(enumerate(map(" AND ".join, asked), begin))
    store, tables = store_of(engine), [schema for schema in store_of(engine).schemas if schema]
    assert len(tables) > 2
    assert not store.has_filters
    events = [an_event(chance) | {"x": chance.randrange(12)} for _ in range(20)]
    assert matches(engine, events) == matches(reference_of(engine), events)
    # Where filters have something to tell again, there are some.
    for begin in range(MANY, 4 * MANY, MANY // 2):
        texts = (a_text(chance) for _ in range(MANY // 2))
        engine.subscribe_many(enumerate(texts, begin))
    assert store.has_filters
    sound(engine)
    assert matches(engine, events) == matches(reference_of(engine), events)


@of_thousands
def test_whether_filters_can_tell_is_seen_however_far_apart_the_keys_are_that_are_looked_at(monkeypatch):
    monkeypatch.setattr(filtering, "MOST_OF_ONE", 1_000.0)
    engine = filled(random.Random("apart"))
    store, arrays = store_of(engine), index_of(engine)._predicates.arrays()
    tables, blocks, looked_at = store.tables(), store.blocks(), 0
    for table in open_tables(tables.closed):
        keys, population = keys_of(tables, table), int(tables.population[table])
        used, telling = telling_keys(arrays, tables, blocks, table, keys, 1)
        for step in range(2, min(keys, population) // 12) if used > 30 and telling > 0.8 * used else ():
            monkeypatch.setattr(filtering, "SAMPLED_KEYS", min(keys, population) // (step - 1))
            assert can_tell(arrays, tables, blocks, table), step
            looked_at += 1
    assert looked_at


def test_filters_that_are_missing_for_a_few_clauses_are_no_reason_to_arrange_all_anew(monkeypatch):
    engine = filled(random.Random("few"))
    monkeypatch.setattr(filtering, "FEW_OUT_OF_PLACE", 2)
    store, arrays = store_of(engine), index_of(engine)._predicates.arrays()
    (wide, narrow), population = filtering.filtered_tables(store.tables()), store.tables().population
    total = int(population[open_tables(store.tables().closed)].sum())
    few, missing, told = 0, list[int](), set[bool]()
    for table in sorted(wide, key=lambda each: population[each]):
        missing.append(table)
        few += int(population[table])
        wanted = filtering.FilteredTables([each for each in wide if each not in missing], narrow)
        monkeypatch.setattr(filtering, "tables_to_filter", lambda *_, wanted=wanted: wanted)
        assert store.is_untidy(arrays) == (2 * few > total)
        told.add(2 * few > total)
    assert told == {False, True} or AS_PYTHON


def test_what_has_filters_keeps_them_where_they_tell_a_little_less_than_it_takes_to_have_some(monkeypatch):
    engine = filled(random.Random("edge"))
    store, arrays = store_of(engine), index_of(engine)._predicates.arrays()
    tables, blocks = store.tables(), store.blocks()
    some = [table for table in open_tables(tables.closed) if can_tell(arrays, tables, blocks, table)]
    assert some
    without, having = (tables._replace(filter=np.full_like(tables.filter, number)) for number in (0, 1))
    for telling, keeps, gets in ((39, False, False), (40, True, False), (49, True, False), (50, True, True)):
        monkeypatch.setattr(filtering, "telling_keys", lambda *_, telling=telling: (100, telling))
        for table in some:
            assert can_tell(arrays, having, blocks, table) is keeps
            assert can_tell(arrays, without, blocks, table) is gets
    for table in some:
        population, keys = int(tables.population[table]), keys_of(tables, table)
        for most, tells in ((population + 0.5, True), (population - 0.5, False)):
            monkeypatch.setattr(filtering, "MOST_OF_ONE", most / keys)
            assert can_tell(arrays, tables, blocks, table) is tells


def test_what_is_left_where_nothing_stands_any_more_is_not_looked_at():
    engine = filled(random.Random("left"))
    index_of(engine).adapt = False  # or clusters would be laid side by side
    engine.unsubscribe_many(list(engine)[1:])
    state = index_of(engine).state()
    store, words = store_of(engine), state.arrays["clusters.words"].copy()
    tables = open_tables(store.tables().closed)
    for place in np.concatenate([store.used_places(table) for table in tables]).tolist():
        base = int(store.directory[place]) * LINE
        if not words[base + LENGTH]:
            words[base + HEADER : base + HEADER + words[base + WIDTH] * words[base + CAPACITY]] = 60_000
    other = _restored(engine, state, {"clusters.words": words})
    arrays = other._predicates.arrays()
    assert len(arrays.operator) < 60_000
    known, blocks = other._store.tables(), other._store.blocks()
    used = [telling_keys(arrays, known, blocks, table, keys_of(known, table), 1)[0] for table in tables]
    assert sum(used) <= 1


@of_thousands
def test_clauses_are_spread_over_keys_that_are_as_good():
    engine = filled(random.Random("spread"))
    sizes = [
        table["largest_cluster"] for table in engine.stats()["tables"] if table["access"].startswith("a, b, ")
    ]
    assert len(sizes) > 2
    assert max(sizes) <= 2 * FILTERED


def test_what_has_no_short_number_is_let_through():
    engine = Engine("dynamic", **RESTLESS)
    count = 2_000 if AS_PYTHON else SHORT_NUMBERS + 5_000
    engine.subscribe_many(pa.table({"id": range(count), "expression": [f"u = {id}" for id in range(count)]}))
    engine.subscribe_many((count + at, f"a = {at % 3} AND b = {at % 5} AND v = {at}") for at in range(300))
    engine.learn([{"a": 1, "b": 1, "v": 1}] * 20)
    event = {"a": 1, "b": 1, "v": 16, "u": 5}
    assert sorted(engine.match(event)) == [5, count + 16]
    sound(engine)


def test_a_filter_that_runs_full_lets_everything_through():
    engine = filled(random.Random("full"))
    many = range(MANY, MANY + 50)
    engine.subscribe_many((id, f"a = 1 AND b = 1 AND c = 1 AND d = 1 AND z = {id}") for id in many)
    assert len(store_of(engine).crowded())
    sound(engine)
    assert all(id in engine.match({"a": 1, "b": 1, "c": 1, "d": 1, "z": id}) for id in many)
    engine.unsubscribe_many(many)
    sound(engine)
    event = {"a": 1, "b": 1, "c": 1, "d": 1}
    assert matches(engine, [event]) == matches(reference_of(engine), [event])


def words_of_one_entry(words: np.ndarray) -> list[int]:
    """Words of filters that no other entry of the same filter stands for: without one, something is lost."""
    pairs = words.reshape(-1, 2, FILTERED)
    alike = (pairs[..., :, None] == pairs[..., None, :]).all(axis=1).sum(axis=-1)
    told = (pairs[:, :1, :1] != ALWAYS) & (pairs > ALWAYS)
    alone = np.repeat(alike[:, None, :] == 1, 2, axis=1) & told
    return np.flatnonzero(alone).tolist()


def test_filters_are_saved_and_looked_at_before_they_are_believed(tmp_path):
    chance = random.Random("saved")
    engine = filled(chance)
    events = [an_event(chance) for _ in range(30)]
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    assert store_of(loaded).has_filters
    sound(loaded)
    assert matches(loaded, events) == matches(engine, events)
    state = index_of(engine).state()
    words = state.arrays["clusters.filters"].copy()
    for at in chance.sample(words_of_one_entry(words), 10):
        damaged = words.copy()
        damaged[at] = NEVER if at % FILTER < FILTERED else 1 + (damaged[at] == 2)
        with pytest.raises(ValueError, match="filter"):
            _restored(engine, state, {"clusters.filters": damaged})


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("filters", lambda words: words[:-1]),
        ("filters", lambda words: words[:0]),
        ("filters", lambda words: np.concatenate([np.ones(1, np.uint16), words[1:]])),
        ("filter", lambda first: first + 1),
        ("filter", lambda first: first + 2**40),
        ("filter", lambda first: -first),
        ("filter", lambda first: first[:-1]),
        ("filter", lambda first: np.ones_like(first)),
    ],
)
def test_filters_that_are_none_are_refused(name, change):
    engine = filled(random.Random("refused"))
    state = index_of(engine).state()
    key = f"clusters.{name}"
    with pytest.raises(ValueError):  # noqa: PT011  # whichever of the checks sees it first
        _restored(engine, state, {key: change(state.arrays[key])})


def _restored(engine: Engine, state, changed: dict[str, np.ndarray]) -> DynamicMatcher:
    fresh = DynamicMatcher(**RESTLESS)
    fresh.restore(type(state)(state.facts, {**state.arrays, **changed}, state.tables), np.arange(len(engine)))
    return fresh


def test_what_was_saved_before_there_were_filters_is_read(tmp_path):
    chance = random.Random("before")
    engine = filled(chance)
    state = index_of(engine).state()
    arrays = {
        name: array for name, array in state.arrays.items() if name not in ("clusters.filters", "clusters.filter")
    }
    fresh = DynamicMatcher(**RESTLESS)
    fresh.restore(type(state)(state.facts, arrays, state.tables), np.arange(len(engine)))
    assert not fresh._store.has_filters
    assert fresh.attributes.counts == index_of(engine).attributes.counts


def test_clauses_beyond_the_keys_of_a_table_are_refused():
    """There are no filters for those, and whoever renewed one would write where none is."""
    engine = filled(random.Random("beyond"))
    state = index_of(engine).state()
    arrays = {name: array.copy() for name, array in state.arrays.items()}
    store = store_of(engine)
    table = int(np.flatnonzero(store.tables().filter)[-1])
    base, keys, size = (
        int(store.tables().base[table]),
        keys_of(store.tables(), table),
        int(store._size.values[table]),
    )
    directory = store.directory[: store._end]
    key = int(np.flatnonzero(directory[base : base + keys])[-1])
    moved = np.concatenate([directory, np.zeros(2 * keys, np.uint32)])
    moved[len(directory) : len(directory) + size] = directory[base : base + size]
    moved[base : base + size] = 0
    block = int(directory[base + key])
    moved[len(directory) + key], moved[len(directory) + key + keys] = 0, block
    arrays["clusters.base"][table], arrays["clusters.size"][table] = len(directory), 2 * keys
    while block:
        arrays["clusters.words"][block * LINE + KEY] = key + keys
        block = int(arrays["clusters.words"][block * LINE + NEXT])
    with pytest.raises(ValueError, match="a cluster is none"):
        _restored(engine, state, {**arrays, "clusters.directory": moved})


def test_a_damaged_filter_is_refused_as_a_folder(tmp_path):
    engine = filled(random.Random("folder"))
    engine.save(tmp_path / "engine")
    (path,) = tmp_path.glob("engine/*/*clusters.filters.npy")
    path.write_bytes(path.read_bytes()[:-32])
    with pytest.raises(IndexFormatError):
        Engine.load(tmp_path / "engine")


# ---------------------------------------------------------------- the order of events


@pytest.mark.parametrize("together", [300, 1_000, 100_000])
def test_events_are_told_in_their_own_order_whatever_order_they_are_matched_in(monkeypatch, together):
    monkeypatch.setattr(locality, "LARGE", 0)
    monkeypatch.setattr(locality, "SORTED", together)
    monkeypatch.setattr("harken.matching.encoding.matcher.ENCODED", 290)
    chance = random.Random("order")
    engine = filled(chance)
    events = [an_event(chance) for _ in range(1_300)]
    for event in events[600:700]:
        event["a"] = chance.choice([1.5, 2])
    table = pa.table({name: [event.get(name) for event in events] for name in "abcdefghs"})
    found = engine.match_batch(table)
    rows = found.column("event").to_pylist()
    assert rows == sorted(rows)
    by_event: dict[int, list[int]] = {}
    for row, id in zip(rows, found.column("subscription").to_pylist(), strict=True):
        by_event.setdefault(row, []).append(id)
    sample = range(0, len(events), 50 if AS_PYTHON else 7)
    assert [sorted(by_event.get(row, [])) for row in sample] == matches(engine, [events[row] for row in sample])


def test_events_with_more_keys_than_can_be_counted_are_put_in_order_too(monkeypatch):
    monkeypatch.setattr(locality, "LARGE", 0)
    monkeypatch.setattr(locality, "MOST_KEYS", 1)
    chance = random.Random("many keys")
    engine = filled(chance)
    events = [an_event(chance) for _ in range(300)]
    found = engine.match_batch(pa.table({name: [event.get(name) for event in events] for name in "abcdefghs"}))
    assert len(found) == sum(map(len, matches(engine, events)))


def test_tables_that_are_all_gone_leave_nothing_to_look_up():
    """Their columns are fewer than keys may share."""
    engine = Engine("dynamic", **RESTLESS)
    engine.subscribe_many((id, f"a = {id % 3} AND b = {id % 4} AND c < {id}") for id in range(60))
    engine.learn([{"a": 1, "b": 1, "c": 1}] * 20)
    store = store_of(engine)
    for table in range(len(store.schemas)):
        if store.schemas[table]:
            places = store.used_places(table)
            store.close_key_table(table)
            index_of(engine)._redistribute(places)
    index_of(engine)._changed()
    events = [{"a": 1, "b": 1, "c": 1}, {"a": 2, "b": 1, "c": 0}, {"c": 1}]
    assert [sorted(engine.match(event)) for event in events] == matches(reference_of(engine), events)
    assert len(engine.match_batch(events)) == sum(map(len, matches(engine, events)))


def test_events_that_go_together_take_no_more_than_so_much_memory(monkeypatch):
    monkeypatch.setattr(locality, "LARGE", 0)
    monkeypatch.setattr(locality, "MOST_BYTES", 40_000)
    chance = random.Random("bytes")
    engine = filled(chance)
    events = [an_event(chance) for _ in range(1_000)]
    matcher = index_of(engine)
    batch = EventBatch.of(
        pa.table({name: [event.get(name) for event in events] for name in "abcdefghs"}), matcher.attributes
    )
    sizes = [
        block.code.nbytes + block.label.nbytes
        for _, block in matcher._encoder.blocks(batch, 100, matcher._leading())
    ]
    assert max(sizes) <= 40_000
    assert 1 < len(sizes) < 10


def little_more(told: workspace.Told, _: float) -> None:
    """Room for the matches of an event or two."""
    larger = workspace._results(told.count + 100)
    for old, new in zip(told._room, larger, strict=True):
        new[: told.count] = old[: told.count]
    told._room = larger


def test_results_that_run_full_again_and_again_are_told_once_each(monkeypatch):
    monkeypatch.setattr(locality, "LARGE", 0)
    monkeypatch.setattr(workspace, "FIRST_RESULTS", 64)
    monkeypatch.setattr(workspace.Told, "have_more", little_more)
    chance = random.Random("full results")
    engine = filled(chance)
    engine.subscribe_many((MANY + at, f"a = {at % VALUES} AND b >= 0") for at in range(40 * VALUES))
    events = [{"a": chance.randrange(VALUES), "b": 1, "c": 1} for _ in range(700)]
    found = engine.match_batch(pa.Table.from_pylist(events))
    pairs = list(zip(*found.to_pydict().values(), strict=True))
    assert len(set(pairs)) == len(pairs)
    wanted = {at: set(engine.match({"a": at, "b": 1, "c": 1})) for at in range(VALUES)}
    assert len(pairs) == sum(len(wanted[event["a"]]) for event in events)
