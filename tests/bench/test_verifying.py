"""A measurement of wrong matches is no measurement: whatever is wrong is found."""

from __future__ import annotations

import pyarrow as pa
import pytest

from harken import Engine, parse
from harken.bench.verifying import aimed, compare, pairs, sample, verify, verify_workload
from harken.model.evaluation import truth
from harken.workloads import workload

SIZE = 500


def filled(name="w0", size=SIZE):
    engine = Engine("reference")
    for table in workload(name).subscriptions(size):
        engine.subscribe_many(table)
    return engine


@pytest.mark.parametrize("name", ["w0", "w1", "w2", "ranges"])
def test_an_engine_that_is_right_passes(name):
    verify_workload(workload(name), {"right": filled(name)}, SIZE, seed=1)


@pytest.mark.parametrize("name", ["w0", "w2", "ranges"])
def test_aimed_events_satisfy_the_subscriptions_they_are_aimed_at(name):
    (table,) = workload(name).subscriptions(SIZE)
    known = sample(table, 20, seed=1)
    events = aimed(workload(name).events(30), known)
    assert len(known) == 20
    for event, expression in zip(events.to_pylist(), known.values(), strict=False):
        assert truth(expression, event) is True


def test_a_sample_says_what_the_table_says():
    (table,) = workload("w0").subscriptions(SIZE)
    engine = filled()
    for id, expression in sample(table, 10, seed=3).items():
        assert engine.subscription(id).expression == expression


def test_a_subscription_that_is_lost_is_missed():
    engine = filled()
    engine.unsubscribe_many(range(SIZE // 2))
    with pytest.raises(AssertionError, match="not what the semantics say"):
        verify_workload(workload("w0"), {"lossy": engine}, SIZE, seed=1)


def test_engines_that_differ_are_named():
    one, other = filled(), filled()
    other.subscribe(SIZE, "a00 > 0")
    with pytest.raises(AssertionError, match=f"other and one disagree about event 0 and subscription {SIZE}"):
        verify_workload(workload("w0"), {"one": one, "other": other}, SIZE, seed=1)


def test_a_subscription_that_has_left_must_not_be_found():
    engine = Engine("reference")
    engine.subscribe(1, "x = 1")
    events = pa.table({"x": [1]})
    verify({"one": engine}, events, {1: parse("x = 1")}, {})
    with pytest.raises(AssertionError, match="subscription 1 has left"):
        verify({"one": engine}, events, {}, {1: parse("x = 1")})


def test_a_match_too_many_is_found():
    with pytest.raises(AssertionError, match="event 0 and subscription 7"):
        compare({(0, 7)}, [{"x": 2}], {7: parse("x = 1")})


def test_pairs_are_events_and_subscriptions():
    engine = Engine("reference")
    engine.subscribe_many([(1, "x = 1"), (2, "x > 0")])
    assert pairs(engine, pa.table({"x": [0, 1, 2]})) == {(1, 1), (1, 2), (2, 2)}
