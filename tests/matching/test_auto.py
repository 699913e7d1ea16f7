"""The default algorithm: what it picks, when, and that nobody notices but by the speed."""

from __future__ import annotations

import logging
import random
import threading
import time

import pyarrow as pa
import pytest

from harken import Engine, Parallel
from harken.errors import ArgumentError, ArgumentTypeError
from harken.matching import auto, choice
from harken.matching.clusters.matcher import OBSERVED

pytestmark = pytest.mark.kernel

PROPERTIES = 30


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Trials of a few subscriptions, and of any gain."""
    monkeypatch.setattr(choice, "SAMPLES", (50, 200))
    monkeypatch.setattr(choice, "BRIEFLY", 0.0)


def light(count, first=0):
    """Subscriptions that ask for a few properties to be there, and for others not to be."""
    chance = random.Random(first)
    for id in range(first, first + count):
        asked = chance.sample(range(PROPERTIES), 4)
        yield id, " AND ".join(f"p{at} = {'TRUE' if at % 3 else 'FALSE'}" for at in asked)


def light_events(count):
    chance = random.Random(7)
    return [{f"p{at}": chance.random() < 0.1 for at in range(PROPERTIES)} for _ in range(count)]


def pairs(engine, events):
    found = engine.match_batch(events)
    return sorted(zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True))


def wait_until_arranged():
    deadline = time.monotonic() + 60
    while any(each.name == "harken-arranging" for each in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def costing(monkeypatch, **costs):
    """Let algorithms cost so much, whoever else uses the machine."""
    monkeypatch.setattr(choice, "_cost", lambda matcher, _: costs[type(matcher).__name__.removesuffix("Matcher")])


def grown(count=400, **options):
    engine = Engine("auto", **{"small": 10, "many": 200, **options})
    engine.subscribe_many(light(count))
    return engine


def reference(count=400, first=0):
    engine = Engine("reference")
    engine.subscribe_many(light(count, first))
    return engine


@pytest.mark.parametrize("shape", ["rows", "columns", "one by one"])
def test_what_suits_better_is_moved_to_beside_those_who_match(shape, monkeypatch):
    costing(monkeypatch, Dynamic=100.0, Rapid=10.0)
    engine, events = grown(), light_events(60)
    assert engine.algorithm == "dynamic"
    expected = pairs(reference(), events)
    if shape == "one by one":
        found = sorted((row, id) for row, event in enumerate(events) for id in engine.match(event))
    else:
        found = pairs(engine, pa.Table.from_pylist(events) if shape == "columns" else events)
    assert found == expected
    wait_until_arranged()
    assert engine.algorithm == "rapid"
    assert pairs(engine, events) == expected
    assert engine.stats()["compared"] == {
        "picked": "rapid",
        "subscriptions": 400,
        "microseconds_per_event_before": 100.0,
        "microseconds_per_event": {"dynamic": 100.0, "rapid": 10.0},
    }
    # Those of trials do not count, those beside the move do; single ones are noted some together.
    unnoted = OBSERVED - 1 if shape == "one by one" else 0
    assert 2 * len(events) - unnoted <= engine.stats()["events"] <= 2 * len(events)


def test_learning_compares_at_once(monkeypatch):
    costing(monkeypatch, Dynamic=100.0, Rapid=10.0)
    engine, events = grown(), light_events(60)
    engine.learn(events)
    assert engine.algorithm == "rapid"
    assert pairs(engine, events) == pairs(reference(), events)


def test_the_next_change_moves_too(monkeypatch):
    costing(monkeypatch, Dynamic=100.0, Rapid=10.0)
    monkeypatch.setattr(Engine, "_arrange_beside", lambda self: None)
    engine, events = grown(), light_events(60)
    engine.match_batch(events)
    assert engine.algorithm == "dynamic"
    engine.subscribe_many(light(20, first=1_000))
    assert engine.algorithm == "rapid"
    both = Engine("reference")
    both.subscribe_many([*light(400), *light(20, first=1_000)])
    assert pairs(engine, events) == pairs(both, events)
    engine.unsubscribe_many(range(0, 400, 3))
    both.unsubscribe_many(range(0, 400, 3))
    assert pairs(engine, events) == pairs(both, events)


def test_what_would_not_be_much_quicker_stays(monkeypatch):
    costing(monkeypatch, Dynamic=100.0, Rapid=90.0)
    engine = grown()
    engine.learn(light_events(60))
    assert engine.algorithm == "dynamic"
    assert engine.stats()["compared"]["picked"] == "rapid"


def test_the_same_is_made_anew_for_events_that_are_other_than_was_thought(monkeypatch):
    engine = Engine("auto", small=10, many=200)
    engine.subscribe_many((id, f"a = {id % 50} AND b > {id}") for id in range(400))
    before = engine._matcher._matcher
    costs = iter([10.0, 10.0, 100.0])  # of two samples, and as it is
    monkeypatch.setattr(choice, "_cost", lambda matcher, _: next(costs))
    engine.learn([{"a": at, "b": 200} for at in range(50)])
    assert engine.algorithm == "dynamic"
    assert engine._matcher._matcher is not before
    assert list(engine.stats()["compared"]["microseconds_per_event"]) == ["dynamic"], "nobody asks for truths"
    assert sorted(engine.match({"a": 7, "b": 200})) == list(range(7, 200, 50))


def test_they_are_compared_again_when_there_are_twice_as_many(monkeypatch):
    compared = []
    real = choice.compare
    monkeypatch.setattr(choice, "compare", lambda *given: compared.append(len(given[2])) or real(*given))
    engine, events = grown(200), light_events(40)
    engine.learn(events)
    for first in range(200, 900, 100):
        engine.subscribe_many(light(100, first))
        engine.match_batch(events)
        wait_until_arranged()
    assert compared == [200, 400, 800]


def test_without_enough_events_or_subscriptions_nothing_is_compared():
    engine = grown(150)
    engine.learn(light_events(60))
    assert "compared" not in engine.stats()
    engine = grown(400)
    engine.learn(light_events(choice.ENOUGH_EVENTS - 1))
    assert "compared" not in engine.stats()
    few = grown(5)
    few.learn(light_events(60))
    assert few.algorithm == "reference"


@pytest.mark.parametrize("when", ["before", "after"])
def test_threads_that_share_an_event_have_their_clusters_or_take_one_each(when, monkeypatch):
    costing(monkeypatch, Dynamic=100.0, Rapid=10.0)
    engine, events = grown(), light_events(60)
    together = Parallel("hybrid", 2, group=2)
    if when == "before":
        engine.match_batch(events[:1], parallel=together)
    engine.learn(events)
    assert engine.algorithm == ("dynamic" if when == "before" else "rapid")
    found = engine.match_batch(events, parallel=together)
    expected = pairs(reference(), events)
    assert sorted(zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True)) == expected


def test_it_is_saved_as_what_it_has_become(tmp_path, monkeypatch):
    costing(monkeypatch, Dynamic=100.0, Rapid=10.0)
    engine, events = grown(), light_events(60)
    engine.learn(events)
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    assert loaded.algorithm == "rapid"
    assert pairs(loaded, events) == pairs(reference(), events)
    loaded.subscribe_many(light(20, first=1_000))
    loaded.unsubscribe_many(range(100))
    assert len(loaded) == 320


def test_a_comparison_that_fails_is_told_and_leaves_all_as_it_was(monkeypatch, caplog):
    def fail(*_):
        raise MemoryError("none left")

    monkeypatch.setattr(choice, "compare", fail)
    engine, events = grown(), light_events(60)
    with caplog.at_level(logging.WARNING, "harken"):
        expected = pairs(engine, events)
        wait_until_arranged()
    assert "could not be compared" in caplog.text
    assert engine.algorithm == "dynamic"
    assert pairs(engine, events) == expected == pairs(reference(), events)
    engine.subscribe_many(light(10, first=1_000))
    assert len(engine) == 410


def test_a_change_that_fails_after_the_move_is_settled(monkeypatch):
    costing(monkeypatch, Dynamic=100.0, Rapid=10.0)
    engine, events = grown(), light_events(60)
    monkeypatch.setattr(Engine, "_arrange_beside", lambda self: None)
    engine.match_batch(events)
    real = auto.AutoMatcher._move

    def move_and_fail(matcher):
        real(matcher)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(auto.AutoMatcher, "_move", move_and_fail)
        with pytest.raises(KeyboardInterrupt):
            engine.unsubscribe_many([0, 1])
    assert engine.algorithm == "rapid"
    assert len(engine) in (398, 400)
    engine.subscribe_many(light(10, first=1_000))
    assert {id for _, id in pairs(engine, events)} - set(range(1_000, 1_010)) <= set(range(400))


def test_matches_go_on_while_all_move(monkeypatch):
    costing(monkeypatch, Dynamic=100.0, Rapid=10.0)
    inside, done = threading.Event(), threading.Event()
    real = choice.made_like

    def slowly(*given):
        inside.set()
        assert done.wait(60)
        return real(*given)

    monkeypatch.setattr(choice, "made_like", slowly)
    monkeypatch.setattr(choice, "compare", lambda *_: choice.Choice("rapid", 400, 100.0, {"rapid": 1.0}))
    engine, events = grown(), light_events(60)
    expected = pairs(reference(), events)
    assert pairs(engine, events) == expected
    assert inside.wait(60)
    assert engine.algorithm == "dynamic"
    assert pairs(engine, events) == expected, "while the other one is made"
    done.set()
    wait_until_arranged()
    assert engine.algorithm == "rapid"
    assert pairs(engine, events) == expected


@pytest.mark.parametrize("name", ["small", "many"])
def test_options_are_numbers(name):
    with pytest.raises(ArgumentTypeError, match=name):
        Engine("auto", **{name: "x"})
    with pytest.raises(ArgumentError, match=name):
        Engine("auto", **{name: -1})
