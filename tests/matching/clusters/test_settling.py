"""Where an event checks more clauses than there are predicates, all ranges are evaluated first: nobody notices."""

from __future__ import annotations

import os
import random

import pyarrow as pa
import pytest

from harken import Engine

pytestmark = pytest.mark.kernel

AS_PYTHON = os.environ.get("NUMBA_DISABLE_JIT") == "1"
MANY = 300 if AS_PYTHON else 12_000

PREDICATES = [f"{name} {operator} {bound}" for name in "abc" for operator in ("<", ">=") for bound in (20, 50, 80)]
OTHERS = ["a != 30", "b IS NULL", "c IN (10, 60, 90)", "s LIKE '%x%'", "d IS NOT NULL", "c != 70"]


def a_text(chance: random.Random) -> str:
    asked = chance.sample(PREDICATES, chance.choice([1, 2, 3])) + chance.sample(OTHERS, chance.choice([0, 0, 1]))
    return " AND ".join(asked)


def an_event(chance: random.Random) -> dict[str, object]:
    event: dict[str, object] = {name: chance.randrange(0, 100, 10) for name in "abcd" if chance.random() < 0.8}
    return event | {"s": chance.choice(["ax", "b"])}


@pytest.mark.parametrize("algorithm", ["dynamic", "static", "propagation"])
def test_all_is_found_and_nothing_is_left_behind(algorithm):
    chance = random.Random("settled")
    engine, reference = Engine(algorithm), Engine("reference")
    asked = [(id, a_text(chance)) for id in range(MANY)]
    # Rows of another shape between, with so few clauses that ranges are evaluated where they are met.
    asked += [(MANY + at, f"e = {at} AND a < {at}") for at in range(60)]
    for each in (engine, reference):
        each.subscribe_many(asked)
    events = [an_event(chance) | ({"e": at} if at % 3 else {}) for at in range(12)]
    events += [{"e": at, "a": at - 1} for at in range(0, 60, 7)]
    expected = [sorted(reference.match(event)) for event in events]
    assert max(map(len, expected)) > MANY / 8, "more than there is room for at first"
    assert [sorted(engine.match(event)) for event in events] == expected
    found = engine.match_batch(events)
    rows, ids = found.column(0).to_numpy(), found.column(1).to_numpy()
    assert [sorted(ids[rows == at].tolist()) for at in range(len(events))] == expected
    table = pa.Table.from_pylist([{name: event.get(name) for name in "abcdes"} for event in events])
    assert engine.match_batch(table).num_rows == len(ids)
