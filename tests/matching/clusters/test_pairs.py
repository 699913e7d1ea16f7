"""Pairs of ranges: who asks for several is found under two of them, by every event that satisfies all."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from harken import Engine, Parallel
from harken.language import to_text
from harken.matching.clusters import keyed
from harken.matching.clusters.cost import USUAL
from harken.matching.clusters.kernels.pairs import dimensions_at
from harken.matching.clusters.matcher import ClusterMatcher
from harken.matching.kernels.layout import IN_PAIRS, PAIRED, PAIRS_OPEN, PAIRS_TABLE, RANGE_TABLE, SECTORS
from harken.matching.saving import State
from harken.model.expressions import Constant
from tests.matching.churning import index_of

pytestmark = pytest.mark.kernel

AS_PYTHON = os.environ.get("NUMBA_DISABLE_JIT") == "1"
MANY = 120 if AS_PYTHON else 1_500
STEPS = 3 if AS_PYTHON else 10

RESTLESS = {"patience": 1, "margin": 0.0}
NUMBERS = "abcdefgh"
TWO = "(two ranges)"
PAIRS = "clusters.pairs"


@pytest.fixture(autouse=True)
def usual_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed, "calibrated", lambda: USUAL)


def a_range(chance: random.Random, name: str, width: int = 1_000) -> str:
    """Upper bounds, lower bounds and both, narrow and wide."""
    least = chance.randrange(width)
    greatest = least + chance.choice([0, 1, width // 50, width // 10, width // 2])
    return chance.choice(
        [
            f"{name} < {chance.randrange(width)}",
            f"{name} >= {chance.randrange(width)}",
            f"{name} BETWEEN {least} AND {greatest}",
            f"{name} > {least} AND {name} <= {greatest}",
        ]
    )


def a_text(chance: random.Random) -> str:
    asked = [a_range(chance, name) for name in chance.sample(NUMBERS, chance.choice([1, 2, 3, 5]))]
    if chance.random() < 0.2:
        asked.append(
            chance.choice(["s > 'k'", "s BETWEEN 'c' AND 'f'", "d < DATE '2026-05-05'", "x = 3", "a != 7"])
        )
    text = " AND ".join(asked)
    return f"({text}) OR ({a_range(chance, 'a')} AND {a_range(chance, 'b')})" if chance.random() < 0.1 else text


def an_event(chance: random.Random) -> dict[str, object]:
    event: dict[str, object] = {
        name: chance.choice([chance.randrange(1_000), chance.uniform(-5, 1_005), 10**30, float("inf"), "text"])
        if chance.random() < 0.2
        else chance.randrange(1_000)
        for name in NUMBERS
        if chance.random() < 0.9
    }
    event |= {"s": chance.choice("abcdefghijklm"), "x": chance.randrange(5)}
    return event | {"d": date(2026, 1, 1) + timedelta(chance.randrange(365))}


def filled(algorithm: str = "dynamic", **options: object) -> tuple[Engine, random.Random]:
    chance = random.Random("pairs")
    engine = Engine(algorithm, **(options or RESTLESS))
    engine.subscribe_many((id, a_text(chance)) for id in range(MANY))
    assert in_pairs(engine) > MANY / 4
    return engine, chance


def in_pairs(engine: Engine) -> int:
    tables = engine.stats()["tables"]
    return sum(table["population"] for table in tables if table["access"] == TWO)


def matches(engine: Engine, events: list[dict[str, object]]) -> list[list[int]]:
    return [sorted(engine.match(event)) for event in events]


def reference_of(engine: Engine) -> Engine:
    reference = Engine("reference")
    reference.subscribe_many((id, engine.subscription(id).expression) for id in engine)
    return reference


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [("dynamic", RESTLESS), ("static", {"checks_per_lookup": 0.0})],
    ids=["dynamic", "static"],
)
def test_all_is_found_while_subscriptions_come_and_go_and_bands_are_cut_anew(algorithm, options):
    engine, chance = filled(algorithm, **options)
    reference = reference_of(engine)
    for step in range(STEPS):
        width = 1_000 * 4 ** (step % 4)
        come = [
            (MANY + 200 * step + at, f"{a_range(chance, 'a', width)} AND {a_range(chance, 'b', width)}")
            for at in range(MANY // 10)
        ]
        gone = chance.sample(sorted(engine), MANY // 10)
        for each in (engine, reference):
            for id in gone:
                each.unsubscribe(id)
            each.subscribe_many(come, replace=True)
        events = [an_event(chance) for _ in range(20)]
        assert matches(engine, events) == matches(reference, events)
        if step == STEPS // 2:
            for each in (engine, reference):
                each.learn(events)
    assert in_pairs(engine)


def test_a_table_of_events_and_every_way_to_share_it_find_the_same():
    engine, chance = filled()
    reference = reference_of(engine)
    rows = [{name: chance.randrange(1_000) for name in NUMBERS} for _ in range(64)]
    rows += [{name: chance.randrange(1_000) for name in "ab"} for _ in range(8)]
    expected = [sorted(reference.match(row)) for row in rows]
    table = pa.Table.from_pylist([{name: row.get(name) for name in NUMBERS} for row in rows])

    def found(parallel: Parallel | None) -> list[list[int]]:
        told = engine.match_batch(table, parallel=parallel) if parallel else engine.match_batch(table)
        events, ids = told.column(0).to_numpy(), told.column(1).to_numpy()
        return [sorted(ids[events == row].tolist()) for row in range(len(rows))]

    assert found(None) == expected
    if not AS_PYTHON:
        for mode in ("me-ip", "se-cp", "hybrid"):
            assert found(Parallel(mode, 2)) == expected


def test_a_dimension_beyond_those_with_sectors_is_a_range_as_before():
    count = PAIRED + 6
    engine, reference = Engine("dynamic", **RESTLESS), Engine("reference")
    asked = [
        (at, f"n{at % count} BETWEEN {at % 17} AND {at % 17 + 2} AND n{(at + 1) % count} < {at % 13}")
        for at in range(4 * count)
    ]
    for each in (engine, reference):
        each.subscribe_many(asked)
    chance = random.Random("beyond")
    events = [{f"n{at}": chance.randrange(20) for at in range(count)} for _ in range(10)]
    assert matches(engine, events) == matches(reference, events)
    assert 0 < in_pairs(engine) < len(asked)
    assert any(table["access"] == "(range)" and table["population"] for table in engine.stats()["tables"])


def test_how_it_is_found_says_both_ranges():
    engine, _ = filled()
    engine.subscribe(MANY, "a < 90 AND b < 95 AND c < 900")
    (path,) = index_of(engine).access(len(engine) - 1)
    assert to_text(path.condition) == "a < 90 AND b < 95"


def test_pairs_come_only_where_they_pay_and_go_where_they_no_longer_do():
    chance = random.Random("pays")

    def asked(first: int, count: int) -> list[tuple[int, str]]:
        return [
            (id, " AND ".join(f"{name} < {chance.randrange(50, 150)}" for name in chance.sample(NUMBERS, 4)))
            for id in range(first, first + count)
        ]

    engine = Engine("dynamic", patience=1)
    engine.subscribe_many(asked(0, 20))
    events = [{name: chance.randrange(1_000) for name in NUMBERS} for _ in range(200)]
    engine.learn(events)
    assert not in_pairs(engine)
    if AS_PYTHON:
        return
    engine.subscribe_many(asked(20, 30_000))
    engine.learn(events)
    assert in_pairs(engine) > 29_000
    for id in range(20, 30_020):
        engine.unsubscribe(id)
    engine.learn(events)
    assert not in_pairs(engine)
    assert matches(engine, events) == matches(reference_of(engine), events)


def test_what_was_saved_is_as_it_was_and_what_was_saved_before_has_none(tmp_path):
    engine, chance = filled()
    events = [an_event(chance) for _ in range(20)]
    expected = matches(engine, events)
    engine.save(tmp_path / "saved")
    again = Engine.load(tmp_path / "saved")
    assert in_pairs(again) == in_pairs(engine)
    assert matches(again, events) == expected
    again.subscribe_many((MANY + at, a_text(chance)) for at in range(50))
    again.unsubscribe(0)
    assert matches(again, events) == matches(reference_of(again), events)

    before = Engine("dynamic", adapt=False)
    before.subscribe_many((id, engine.subscription(id).expression) for id in engine)
    old = index_of(before)
    state = old.state()
    arrays = {name: array for name, array in state.arrays.items() if name != PAIRS}
    fresh = type(old)()
    fresh.restore(replace(state, arrays=arrays), np.arange(MANY))
    assert not fresh._store.has_pairs
    fresh.reorganise()


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [("dynamic", {"patience": 10**9, "margin": 0.0}), ("static", {"checks_per_lookup": 0.0})],
    ids=["dynamic", "static"],
)
def test_there_is_room_for_all_that_events_open_though_most_have_left(algorithm, options):
    """Places that clauses have left stay, until all is laid side by side: events look there, and list them."""
    chance = random.Random("left")
    many, names = (400, "abcd") if AS_PYTHON else (20_000, "abcdefghij")
    engine = Engine(algorithm, **options)
    engine.subscribe_many(
        (id, " AND ".join(f"{name} < {chance.randrange(1, 200)}" for name in chance.sample(names, 3)))
        for id in range(many)
    )
    engine.learn([{name: chance.randrange(1_000) for name in names} for _ in range(200)])
    events: list[dict[str, object]] = [{name: chance.randrange(60) for name in names} for _ in range(40)]
    assert in_pairs(engine) > many / 2
    for id in chance.sample(range(many), many - 50):
        engine.unsubscribe(id)
    assert in_pairs(engine) <= 50
    assert len(index_of(engine)._store.used_places(index_of(engine)._store.pairs_table)) > 50
    found = engine.match_batch(events)
    rows, ids = found.column(0).to_numpy(), found.column(1).to_numpy()
    expected = matches(reference_of(engine), events)
    assert [sorted(ids[rows == at].tolist()) for at in range(len(events))] == expected
    assert matches(engine, events) == expected


def test_the_dimensions_of_all_pairs_are_told_at_once():
    high, low = np.tril_indices(PAIRED * SECTORS, -1)
    one, other = dimensions_at(np.arange(len(high)))
    assert np.array_equal(one, high // SECTORS)
    assert np.array_equal(other, low // SECTORS)


def test_only_pairs_of_dimensions_that_are_cut_anew_are_placed_anew(monkeypatch: pytest.MonkeyPatch):
    chance = random.Random("apart")
    many, names = (400, "abcd") if AS_PYTHON else (5_000, "abcdefgh")
    engine = Engine("dynamic", margin=0.0)
    engine.subscribe_many(
        (id, " AND ".join(f"{name} < {chance.randrange(1, 200)}" for name in chance.sample(names, 3)))
        for id in range(many)
    )
    engine.learn([{name: chance.randrange(1_000) for name in names} for _ in range(200)])
    assert in_pairs(engine) > many / 2
    moved, redistribute = list[int](), ClusterMatcher._redistribute

    def note(self: ClusterMatcher, places: npt.NDArray[np.int64], retired: Sequence[int] = ()) -> int:
        moved.append(len(places))
        return redistribute(self, places, retired)

    monkeypatch.setattr(ClusterMatcher, "_redistribute", note)
    engine.subscribe(many, "new < 5")
    assert moved == [0]
    for id in range(many + 1, many + 5):
        engine.subscribe(id, f"new < {id} AND a < 300")
    assert max(moved) < many / 4
    events = [{name: chance.randrange(60) for name in [*names, "new"]} for _ in range(40)]
    assert matches(engine, events) == matches(reference_of(engine), events)


def test_without_pairs_nothing_is_said_to_stand_in_them():
    """A table that is not there has the number of another one, that of clauses which every event checks."""
    engine = Engine("dynamic")
    engine.subscribe_many([(1, "a IS NULL"), (2, "a > 5 AND b > 5")])
    assert not index_of(engine)._store.tables().pairs.any()
    assert [path.condition for path in index_of(engine).access(0)] == [Constant(True)]
    engine.unsubscribe(1)
    assert not index_of(engine)._store.tables().pairs.any()


def test_the_cells_that_events_look_at_are_those_in_use():
    chance = random.Random("cells")
    engine = Engine("dynamic", patience=1)

    def come(first: int, count: int) -> None:
        engine.subscribe_many((id, a_range(chance, chance.choice("abc"))) for id in range(first, first + count))

    def in_use() -> set[int]:
        tables = index_of(engine)._store.tables()
        bits = np.unpackbits(tables.cells.view(np.uint8), bitorder="little")
        return set((np.flatnonzero(bits) + tables.base[RANGE_TABLE]).tolist())

    def led_to() -> set[int]:
        return set(index_of(engine)._store.used_places(RANGE_TABLE).tolist())

    come(0, MANY)
    assert in_use() == led_to()
    for id in range(MANY - 5):
        engine.unsubscribe(id)
    assert in_use() >= led_to()
    engine.learn([{"a": 1}])  # lays what is left side by side
    assert in_use() == led_to()
    assert 0 < len(led_to()) < MANY // 10
    come(MANY, MANY // 2)
    assert in_use() == led_to()
    events = [an_event(chance) for _ in range(20)]
    assert matches(engine, events) == matches(reference_of(engine), events)


def with_pairs(state: State, change: Callable[[npt.NDArray[np.int64]], object]) -> State:
    """A state whose pairs have been tampered with."""
    pairs = state.arrays[PAIRS].copy()
    changed = change(pairs)
    return replace(state, arrays={**state.arrays, PAIRS: pairs if changed is None else changed})


DAMAGE = {
    "no such table": lambda pairs: pairs.__setitem__(PAIRS_TABLE, 10**6),
    "a table of something else": lambda pairs: pairs.__setitem__(PAIRS_TABLE, 1),
    "none": lambda pairs: pairs.__setitem__(PAIRS_TABLE, 0),
    "open without a table": lambda pairs: pairs.__setitem__([PAIRS_TABLE, PAIRS_OPEN], [0, 1]),
    "half open": lambda pairs: pairs.__setitem__(PAIRS_OPEN, 2),
    "a sector that nobody is in": lambda pairs: pairs.__setitem__(np.argmax(pairs[IN_PAIRS:]) + IN_PAIRS, 0),
    "fewer sectors": lambda pairs: pairs[:-SECTORS],
    "none, as before there were any": lambda pairs: np.zeros_like(pairs),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_pairs_are_refused(damage):
    engine, _ = filled()
    matcher = index_of(engine)
    state = matcher.state()
    type(matcher)().restore(state, np.arange(MANY))
    with pytest.raises(ValueError, match=r"pairs|sectors"):
        type(matcher)().restore(with_pairs(state, damage), np.arange(MANY))
