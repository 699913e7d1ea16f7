"""What order predicates ask for follows them as they come, go and are given other bounds."""

from __future__ import annotations

import pytest

from harken import Engine

pytestmark = pytest.mark.kernel

ALGORITHMS = ["propagation", "dynamic", "static", "tree", "rapid", "pubsub", "be-tree", "counting", "siena"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("other", ["x != 3", "x is null", "y is null", "x = 100", "x > 50"])
def test_a_predicate_that_takes_the_number_of_one_of_order_has_not_its_bounds(algorithm, other):
    engine = Engine(algorithm)
    engine.subscribe_many([(0, "k = 1 and j = 9"), (1, "k = 1 and x < 5")])
    event = {"k": 1, "x": 100} if other != "x is null" else {"k": 1, "y": 2}
    assert engine.match({"k": 1, "x": 100}) == []
    engine.unsubscribe(1)
    engine.subscribe(2, f"k = 1 and ({other})")
    assert engine.match(event) == [2]
    assert engine.match_batch([event] * 3)["subscription"].to_pylist() == [2, 2, 2]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_bounds_are_those_of_now_when_many_constants_have_come_between_them(algorithm):
    engine = Engine(algorithm)
    engine.subscribe(0, "k = 1 and x > 10 and x < 20")
    assert engine.match({"k": 1, "x": 15}) == [0]
    for at in range(1, 60):
        engine.subscribe(at, f"k = 2 and x < {15 + 1 / (1 + at)}")
        assert engine.match({"k": 1, "x": 15}) == [0]
        assert engine.match({"k": 1, "x": 25}) == []
    events = [{"k": 1, "x": value} for value in (5, 11, 19.5, 20, 21)]
    assert engine.match_batch(events)["event"].to_pylist() == [1, 2]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_value_of_the_event_before_is_not_taken_for_one_that_is_missing(algorithm):
    engine = Engine(algorithm)
    engine.subscribe_many([(0, "k = 1 and x < 5"), (1, "k = 1 and x >= 5"), (2, "k = 1 and z < 3 and y < 3")])
    events = [
        {"k": 1, "x": 2},
        {"k": 1},
        {"k": 1, "x": None},
        {"k": 1, "x": 7},
        {"k": 1, "z": 1, "y": 1},
        {"k": 1, "y": 1},
    ]
    found = engine.match_batch(events)
    pairs = sorted(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))
    assert pairs == [(0, 0), (3, 1), (4, 2)]
    assert [engine.match(event) for event in events] == [[0], [], [], [1], [2], []]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_saved_engine_knows_its_bounds(algorithm, tmp_path):
    engine = Engine(algorithm)
    engine.subscribe_many((at, f"k = 1 and x > {at} and x < {at + 3}") for at in range(300))
    engine.subscribe(300, "k = 1 and x != 7")
    engine.save(tmp_path / "saved")
    loaded = Engine.load(tmp_path / "saved")
    for value in (2, 7, 150.5):
        assert sorted(loaded.match({"k": 1, "x": value})) == sorted(engine.match({"k": 1, "x": value}))
