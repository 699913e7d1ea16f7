"""A change that fails, at whatever step, leaves all of it or nothing, and the engine goes on."""

from __future__ import annotations

import pytest

from harken import Engine, algorithms
from harken.bench.experiments.faults import (
    CALLS,
    FOREVER,
    Case,
    allocations_of,
    fail_at_allocation,
    fail_at_step,
    sampled,
    steps_of,
)
from harken.bench.failing import InjectedError, Steps

pytestmark = pytest.mark.kernel
STEPS, ALLOCATIONS = 5, 2
"""Of each call on each algorithm, points of failure; `harken bench faults` goes through all."""


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("algorithm", algorithms())
def test_a_call_that_fails_at_any_step_is_made_or_not(algorithm, call):
    case = Case(algorithm, call, seed=7)
    failed = [fail_at_step(case, at) for at in sampled(steps_of(case), STEPS, seed=len(call))]
    assert any(failed)


@pytest.mark.parametrize("times", [1, FOREVER])
@pytest.mark.parametrize("algorithm", algorithms())
def test_a_call_that_finds_no_memory_is_made_or_not_even_if_there_is_none_for_settling_it(algorithm, times):
    for call in ("subscribe", "replace_many", "unsubscribe_many"):
        case = Case(algorithm, call, seed=8)
        assert all(fail_at_allocation(case, at, times) for at in sampled(allocations_of(case), ALLOCATIONS, 9))


def test_a_change_that_cannot_be_settled_is_settled_by_the_next_call(monkeypatch):
    engine = Engine("dynamic")
    engine.subscribe_many((id, "x = 1") for id in range(10))
    broken = type(engine._matcher)
    with monkeypatch.context() as patched:
        patched.setattr(broken, "_changed", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            engine.subscribe(10, "x = 1")
        with pytest.raises(ZeroDivisionError):
            engine.match({"x": 1})
        with pytest.raises(ZeroDivisionError):
            len(engine)
    assert sorted(engine.match({"x": 1})) == list(range(10))
    engine.subscribe(10, "x = 1")
    assert len(engine) == 11


@pytest.mark.parametrize("algorithm", sorted(set(algorithms()) - {"auto", "reference"}))
def test_an_engine_that_holds_nothing_is_settled_without_entering_anything(algorithm, monkeypatch):
    engine = Engine(algorithm)
    matcher = type(engine._matcher)
    entering = "_enter" if hasattr(matcher, "_enter") else "add"
    monkeypatch.setattr(
        matcher, entering, interrupted
    )  # or kernels would be compiled before the interrupt is told
    with pytest.raises(KeyboardInterrupt):
        engine.subscribe(1, "x = 1")
    assert len(engine) == 0


def interrupted(*_):
    raise KeyboardInterrupt


def test_an_interrupt_while_waiting_for_readers_lets_them_in_again():
    engine = Engine()
    engine.subscribe(1, "x = 1")
    steps = Steps(within=("locking.py",)).of(lambda: engine.subscribe(2, "x = 1")).count
    for at in range(1, steps + 1):
        Steps(at, KeyboardInterrupt, ("locking.py",)).of(lambda: engine.subscribe(3, "x = 1", replace=True))
        assert sorted(engine.match({"x": 1})) in ([1, 2], [1, 2, 3])


def test_steps_are_counted_and_the_one_asked_for_fails():
    engine = Engine()
    count = Steps().of(lambda: engine.subscribe(1, "x = 1")).count
    assert count > 50
    assert not Steps(count + 1).of(lambda: engine.unsubscribe(1)).raised
    with pytest.raises(InjectedError):
        Steps(5, KeyboardInterrupt).of(_fail)


def _fail() -> None:
    raise InjectedError
