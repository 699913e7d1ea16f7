"""Matches within a match, in one thread: signal handlers and finalisers may ask too, at any line."""

from __future__ import annotations

import sys
import threading
from itertools import count, cycle
from pathlib import Path

import pytest

import harken
from harken import Engine, algorithms
from harken.errors import EventError
from harken.matching.clusters import matcher as clusters
from harken.matching.encoding import statistics, workspace

pytestmark = pytest.mark.kernel

MODULES = (
    "clusters/matcher",
    "clusters/single",
    "counting/matcher",
    "encoding/columns",
    "encoding/encoder",
    "encoding/matcher",
    "encoding/reading",
    "encoding/workspace",
    "events/batch",
)
SOURCES = Path(harken.__file__).parent
WHERE = tuple(
    str(SOURCES / name) for name in ("engine.py", "locking.py", *(f"matching/{each}.py" for each in MODULES))
)

FLAT = [{"a": at % 3, "b": at % 5, "c": "xyz"[at % 3]} for at in range(9)]
EVENTS = [each if at % 3 == 1 else each | {"d": [at], "e": {"f": at}} for at, each in enumerate(FLAT)]


def made(algorithm):
    engine = Engine(algorithm)
    # Several clauses of one subscription may hold: without care it would be told several times.
    asked = [
        "a = {0} OR b = {1} OR c LIKE 'x%'",
        "a = {0} AND b < {1}",
        "c IN ('x', 'y') AND b > {1}",
        "d IS NULL",
    ]
    engine.subscribe_many([(at, asked[at % 4].format(at % 3, at % 5)) for at in range(16)])
    return engine


def batched(engine, events):
    table = engine.match_batch(events)
    return sorted(zip(*table.to_pydict().values(), strict=True))


def at_every_line(work, interrupt, where=WHERE):
    """Do some work and, as a signal handler might, something else before every line of it outside of kernels."""
    before, count = sys.gettrace(), 0

    def trace(frame, event, _):
        nonlocal count
        name = frame.f_code.co_filename
        if name not in where:
            return None
        if event == "line":
            count += 1
            interrupt()
        return trace

    try:
        sys.settrace(trace)
        work()
    finally:
        sys.settrace(before)
    return count


def test_the_modules_that_are_interrupted_are_there():
    assert [name for name in WHERE if not Path(name).is_file()] == []


@pytest.mark.parametrize("algorithm", algorithms())
@pytest.mark.parametrize("fresh", [True, False])
def test_a_match_that_interrupts_another_at_any_line_gives_and_takes_nothing(algorithm, fresh, monkeypatch):
    monkeypatch.setattr(workspace, "FIRST_RESULTS", 2)
    judge, engine = made("reference"), made(algorithm)
    wanted, all_wanted = [sorted(judge.match(event)) for event in EVENTS], batched(judge, EVENTS)
    if not fresh:
        assert batched(engine, EVENTS) == all_wanted
        assert [sorted(engine.match(event)) for event in EVENTS] == wanted
    numbers = cycle(range(len(EVENTS)))

    def interrupt():
        number = next(numbers)
        assert sorted(engine.match(EVENTS[number])) == wanted[number]
        if number % 7 == 0:
            assert batched(engine, EVENTS[:3]) == [pair for pair in all_wanted if pair[0] < 3]

    def work():
        for number in (0, 4):
            found.append((number, sorted(engine.match(EVENTS[number]))))
        found.append(batched(engine, EVENTS[:4]))

    found = []
    assert at_every_line(work, interrupt) > 30
    assert found[:2] == [(number, wanted[number]) for number in (0, 4)]
    assert found[2] == [pair for pair in all_wanted if pair[0] < 4]
    assert engine.stats()["foreign"]["d"] >= len(EVENTS)


def test_within_a_match_within_a_match_there_is_yet_another_workspace():
    engine = made("dynamic")
    wanted = [sorted(engine.match(event)) for event in EVENTS]
    own = engine._matcher._own
    for busy in range(3):
        own.workspaces[busy].busy = True
        assert [sorted(engine.match(event)) for event in EVENTS] == wanted
    assert [each.busy for each in own.workspaces] == [True, True, True, False]


def test_a_match_that_fails_leaves_its_workspace_to_the_next():
    engine = Engine("dynamic", schema={"a": "int"})
    engine.subscribe(1, "a = 1")
    for _ in range(3):
        with pytest.raises(EventError):
            engine.match({"a": "x"})
        assert engine.match({"a": 1}) == [1]
    assert len(engine._matcher._own.workspaces) == 1


@pytest.mark.parametrize("algorithm", ["dynamic", "static", "propagation"])
def test_an_interrupt_at_any_line_leaves_nothing_behind(algorithm):
    where = [name for name in WHERE if name.endswith("clusters/single.py")]
    wide = {f"n{number}": number for number in range(200)} | {"c": "xx", "a": 1}
    judge, engine = made("reference"), made(algorithm)
    for each in (judge, engine):
        each.subscribe_many((100 + number, f"n{number} = {number}") for number in range(200))
    events = [*EVENTS[:2], wide, EVENTS[4]]
    wanted = [sorted(judge.match(event)) for event in events]
    lines, left = 0, 0

    def interrupt():
        nonlocal lines, left
        lines, left = lines + 1, left - 1
        if not left:
            raise KeyboardInterrupt

    def match_all():
        for event in events:
            engine.match(event)

    at_every_line(match_all, interrupt, where)
    for last in range(1, lines + 1):
        engine.unsubscribe(0)  # so that all is read anew
        engine.subscribe(0, "a = 0 OR b = 0 OR c LIKE 'x%'")
        left = last
        with pytest.raises(KeyboardInterrupt):
            at_every_line(match_all, interrupt, where)
        assert [sorted(engine.match(event)) for event in events] == wanted


def test_a_thread_that_matches_for_the_first_time_may_be_interrupted_by_a_match():
    engine = made("dynamic")
    wanted = sorted(engine.match(EVENTS[0]))
    found = []

    def first():
        at_every_line(lambda: found.append(sorted(engine.match(EVENTS[0]))), lambda: engine.match(EVENTS[1]))

    thread = threading.Thread(target=first, daemon=True)
    thread.start()
    thread.join(60)
    assert found == [wanted]


def test_a_match_that_interrupts_who_looks_at_what_was_seen_leaves_that_as_it_was(monkeypatch, tmp_path):
    monkeypatch.setattr(clusters, "OBSERVED", 1)
    engine, numbers = Engine("dynamic"), count()
    engine.subscribe_many((number, f"n{number} > 3 AND a = {number % 3}") for number in range(16))
    engine.match_batch([{"n0": 9, "a": 1}] * 9)

    def interrupt():
        engine.match_batch([{f"n{next(numbers) % 16}": 9, "a": 1}] * 9)

    for look in (lambda: engine.save(tmp_path / "saved"), engine._matcher._estimate_anew):
        assert at_every_line(look, interrupt, [statistics.__file__]) > 5
    assert sorted(Engine.load(tmp_path / "saved").match({"n1": 9, "a": 1})) == [1]
