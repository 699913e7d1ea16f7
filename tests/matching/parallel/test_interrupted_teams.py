"""Threads that match together, and what comes between: forks, storms of signals, threads that fail at the door."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from functools import partial

import pytest

from harken import Engine, Parallel
from harken.errors import EngineBusyError
from harken.locking import Door
from harken.matching.clusters.sharing import Collaborative, Independent
from harken.matching.parallel.record import Record
from harken.matching.parallel.team import _THREADS, OVER, TAKEN, _Run, team_of

FEW = [{"x": at} for at in range(50)]

forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")


@pytest.fixture
def engine() -> Engine:
    made = Engine("dynamic")
    made.subscribe_many((at, f"x > {at}") for at in range(200))
    return made


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Fork:
    """Forks once, in the thread that made it; the child ends before long, whatever it waits for."""

    def __init__(self) -> None:
        self.child: int | None = None
        self._thread = threading.get_ident()

    def __call__(self) -> None:
        if self.child is None and threading.get_ident() == self._thread:
            self.child = os.fork()
            if self.child == 0:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(30)


RIGHT, REFUSED, WRONG = range(3)


def match_in_both(engine: Engine, fork: Fork, parallel: Parallel, expected: int) -> int:
    """Match, and fork in the middle; how the child ends."""
    outcome = WRONG
    try:
        outcome = _outcome(engine, parallel, expected)
        if fork.child == 0 and _outcome(engine, parallel, expected) != RIGHT:
            outcome = WRONG  # it has not come to its senses
    finally:
        if fork.child == 0:
            os._exit(outcome)
    assert outcome == RIGHT
    return ended(fork.child)


def _outcome(engine: Engine, parallel: Parallel, expected: int) -> int:
    try:
        return RIGHT if engine.match_batch(FEW, parallel=parallel).num_rows == expected else WRONG
    except EngineBusyError:
        return REFUSED


@forking
@pytest.mark.parametrize(("mode", "sharing"), [("me-ip", Independent), ("se-cp", Collaborative)])
def test_a_child_made_in_the_middle_of_a_match_does_not_take_its_part_for_the_whole(
    mode, sharing, engine, monkeypatch
):
    parallel, plain = Parallel(mode, 2), sharing.match
    expected = engine.match_batch(FEW, parallel=parallel).num_rows
    fork = Fork()

    def match(self: object, *arguments: object) -> bool:
        fork()
        return plain(self, *arguments)

    monkeypatch.setattr(sharing, "match", match)
    assert match_in_both(engine, fork, parallel, expected) == REFUSED


@forking
def test_a_child_made_before_the_work_is_shared_does_not_wait_for_threads_that_it_lacks(engine, monkeypatch):
    parallel, plain = Parallel("se-cp", 2), Collaborative.__init__
    expected = engine.match_batch(FEW, parallel=parallel).num_rows
    fork = Fork()

    def begin(self: object, *arguments: object) -> None:
        plain(self, *arguments)
        fork()

    monkeypatch.setattr(Collaborative, "__init__", begin)
    assert match_in_both(engine, fork, parallel, expected) == REFUSED


STORMS = """
import random, signal, time
from harken import Engine, Parallel

engine = Engine("dynamic")
engine.subscribe_many((at, f"x > {at}") for at in range(200))
few = [{"x": at} for at in range(50)]
ways = [Parallel(mode, threads=3) for mode in ("me-ip", "se-cp", "hybrid")]
expected = {engine.match_batch(few, parallel=way).num_rows for way in ways}
left = 0

class Stop(BaseException):
    pass

def handle(_, frame):
    global left
    if left and frame is not None and "harken" in frame.f_code.co_filename:
        left -= 1
        raise Stop

signal.signal(signal.SIGALRM, handle)
drawn, until = random.Random(5), time.monotonic() + 4
while time.monotonic() < until:
    way, left = drawn.choice(ways), 4
    for _ in range(9):
        try:
            signal.setitimer(signal.ITIMER_REAL, drawn.uniform(1e-5, 1e-3), drawn.choice([5e-6, 2e-5, 5e-5]))
            while left:
                engine.match_batch(few, parallel=way)
        except Stop:
            pass
    left = 0
    signal.setitimer(signal.ITIMER_REAL, 0)
    expected.add(engine.match_batch(few, parallel=way).num_rows)
assert len(expected) == 1, expected
"""


def test_however_many_interrupts_come_at_once_the_next_call_is_answered():
    done = subprocess.run([sys.executable, "-c", STORMS], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("mode", ["me-ip", "se-cp"])
def test_a_thread_that_fails_at_the_door_fails_the_call_and_no_other(mode, engine, monkeypatch):
    parallel, plain, left = Parallel(mode, 2), Door._new_reader, [True]
    expected = engine.match_batch(FEW, parallel=Parallel(threads=1)).num_rows
    with team_of(2):
        pass  # so that there is a thread

    def fail_once(self: Door, helps: bool) -> object:
        if threading.current_thread().name.startswith("harken") and left:
            left.pop()
            raise MemoryError
        return plain(self, helps)

    monkeypatch.setattr(Door, "_new_reader", fail_once)
    with pytest.raises(MemoryError):
        engine.match_batch(FEW, parallel=parallel)
    assert engine.match_batch(FEW, parallel=parallel).num_rows == expected


def test_parts_are_called_off_where_those_who_have_some_say_that_they_are_over():
    run = _Run(lambda number: None, partial(list[bool]().append, True), 3, None)
    parts = run._parts
    parts[1] = TAKEN
    assert run._goes_on(finished=False)
    parts[1] = OVER  # as its thread does, without the lock
    assert not run._goes_on(finished=False)


def test_who_is_interrupted_while_threads_start_keeps_them_from_nobody_though_the_error_is_kept(monkeypatch):
    def interrupted(count):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(_THREADS, "_have", interrupted)
        with pytest.raises(KeyboardInterrupt) as kept:
            team_of(2)
    with team_of(2) as team:
        assert team.threads == 2
    assert kept.tb is not None


def test_a_call_that_had_to_go_alone_does_not_settle_how_many_threads_there_are():
    record, parallel = Record(), Parallel("hybrid", 4, target_latency_ms=1.0)
    assert record.group_for(parallel, threads=1) == 1
    record._sizes[parallel].saw(0.003)
    record._sizes[parallel].saw(0.003)
    assert record.group_for(parallel, threads=4) == 4
