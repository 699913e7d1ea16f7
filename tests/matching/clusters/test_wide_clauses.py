"""Clauses of many predicates: blocks that hold them grow by enough, however wide they are."""

from __future__ import annotations

import numpy as np
import pytest

from harken import Engine
from harken.matching.kernels.layout import CAPACITY, HEADER, LENGTH, LINE, NEXT, WIDTH

pytestmark = pytest.mark.kernel


def blocks_of(engine):
    """Of every block: entries, room for them, their width, where it begins, and where it must end."""
    blocks, found = engine._matcher._store.blocks(), []
    for block in blocks.directory[blocks.directory > 0].tolist():
        while block > 0:
            base = block * LINE
            length, capacity, width = (int(blocks.words[base + field]) for field in (LENGTH, CAPACITY, WIDTH))
            found.append((length, capacity, width, base, base + HEADER + capacity * (width + 1)))
            block = int(blocks.words[base + NEXT])
    return sorted(found, key=lambda each: each[3])


def assert_apart(engine):
    found = blocks_of(engine)
    assert all(length <= capacity for length, capacity, *_ in found)
    ends, begins = [each[4] for each in found], [each[3] for each in found]
    assert all(end <= begin for end, begin in zip(ends[:-1], begins[1:], strict=True))
    assert ends[-1] <= len(engine._matcher._store.blocks().words)


@pytest.mark.parametrize("algorithm", ["dynamic", "static", "propagation"])
@pytest.mark.parametrize("width", [*range(1, 70, 3), 100, 300])
def test_blocks_have_room_for_what_they_hold(algorithm, width):
    engine, count = Engine(algorithm), 12
    others = " AND ".join(f"x{at} > 0" for at in range(width - 1))
    texts = [f"a = 1 AND {others} AND y < {id}" if others else f"a = 1 AND y < {id}" for id in range(count)]
    for id, text in enumerate(texts):  # one by one, so that blocks grow by and by
        engine.subscribe(id, text)
        assert_apart(engine)
    event = {"a": 1, **{f"x{at}": 1 for at in range(width - 1)}}
    for y in (-1, 0, 5, count):
        assert sorted(engine.match({**event, "y": y})) == [id for id in range(count) if y < id]
    assert engine.match({**event, "y": 5, "a": 2}) == []
    engine.unsubscribe_many(range(0, count, 2))
    engine.subscribe_many((count + id, text) for id, text in enumerate(texts))
    assert_apart(engine)
    expected = [id for id in range(1, count, 2) if id > 5] + [count + id for id in range(count) if id > 5]
    assert sorted(engine.match({**event, "y": 5})) == sorted(expected)


def test_wide_clauses_of_all_widths_in_one_place():
    chance, engine = np.random.default_rng(1), Engine("dynamic")
    wanted = {id: sorted(chance.choice(60, chance.integers(1, 40), replace=False).tolist()) for id in range(600)}
    engine.subscribe_many((id, " AND ".join(f"b{at} = TRUE" for at in each)) for id, each in wanted.items())
    assert_apart(engine)
    for _ in range(20):
        true = set(np.flatnonzero(chance.random(60) < 0.7).tolist())
        expected = [id for id, each in wanted.items() if true.issuperset(each)]
        assert sorted(engine.match({f"b{at}": at in true for at in range(60)})) == expected
