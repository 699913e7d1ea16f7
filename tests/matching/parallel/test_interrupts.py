"""Signals and interrupts in the middle of a match by several threads."""

from __future__ import annotations

import gc
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

import pytest

from harken import Parallel, locking
from harken.matching.parallel import team
from harken.matching.parallel.team import team_of
from tests.matching.parallel.conftest import ALONE


@contextmanager
def raising(number: int = signal.SIGALRM) -> Iterator[None]:
    """A signal that raises KeyboardInterrupt, as Ctrl-C does.

    What others hang on the garbage collection (hypothesis times it) is left out meanwhile: Python drops
    what is raised there, and an interrupt would be lost that Harken never saw.
    """
    callbacks = gc.callbacks[:]
    gc.callbacks.clear()
    previous = signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(number, previous)
        gc.callbacks[:] = callbacks


@pytest.mark.parametrize("mode", ["me-ip", "se-cp", "hybrid"])
def test_signals_in_the_middle_leave_an_engine_that_works(mode, crowd, events):
    expected = crowd.match_batch(events, parallel=ALONE).num_rows
    interrupted = 0
    with raising():
        for at in range(30):
            signal.setitimer(signal.ITIMER_REAL, 0.0005 + 0.0007 * at)
            try:
                crowd.match_batch(events, parallel=Parallel(mode, 2))
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupted += 1
    assert interrupted > 0
    assert crowd.match_batch(events, parallel=Parallel(mode, 2)).num_rows == expected
    with team_of(2) as team:
        assert team.threads == 2  # and nobody else has them


def test_interrupts_anywhere_leave_threads_that_work(crowd):
    chance, few = random.Random(5), [{"a00": 1}, {"a00": 2}]
    expected = crowd.match_batch(few, parallel=ALONE).num_rows
    with raising():
        for _ in range(300):
            with suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-5, 6e-4))
                for _ in range(20_000):
                    crowd.match_batch(few, parallel=Parallel(threads=3))
                raise AssertionError("an interrupt was lost")
            assert crowd.match_batch(few, parallel=Parallel(threads=3)).num_rows == expected
    gc.collect()
    crowd.match_batch(few, parallel=Parallel(threads=3))
    assert crowd.stats()["parallel"]["threads"] == 3


def test_interrupts_again_and_again_end_no_call_before_its_threads_are_done():
    begun, stopped, over = [], [], []

    def work(number: int) -> None:
        if number:
            begun.append(number)
            while not stopped:
                time.sleep(0.001)
            time.sleep(0.3)
            over.append(number)
        else:
            while len(begun) < 2:  # or they would have nothing to end
                time.sleep(0.001)
            signal.setitimer(signal.ITIMER_REAL, 0.05, 0.002)
            time.sleep(10)

    with raising():
        with team_of(3) as three, pytest.raises(KeyboardInterrupt):
            three.run(work, partial(stopped.append, True))
        signal.setitimer(signal.ITIMER_REAL, 0)
    assert sorted(over) == [1, 2]


def test_a_handler_that_matches_with_threads_waits_for_nothing_that_its_own_thread_holds(crowd):
    few, found = [{"a00": at} for at in range(50)], []
    expected = crowd.match_batch(few, parallel=ALONE).num_rows

    def match(*_: object) -> None:
        found.append(crowd.match_batch(few, parallel=Parallel(threads=2)).num_rows)
        signal.setitimer(signal.ITIMER_REAL, 0.0031)  # not before: handlers within handlers would have no end

    previous = signal.signal(signal.SIGALRM, match)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0013)
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            with crowd._matcher._seen_lock:  # as whoever notes what it saw
                time.sleep(0.002)
            crowd.match_batch(few, parallel=ALONE)
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert found
    assert set(found) == {expected}


def test_a_handler_may_match_with_threads_between_any_two_lines_of_those_that_have_them(crowd):
    few, found, lines = [{"a00": at} for at in range(50)], [], set()
    expected = crowd.match_batch(few, parallel=ALONE).num_rows

    def within(frame, event, _):
        if event == "line" and (frame.f_code, frame.f_lineno) not in lines:
            lines.add((frame.f_code, frame.f_lineno))
            match()
        return within

    def enter(frame, event, _):
        return within if frame.f_code.co_filename in (team.__file__, locking.__file__) else None

    def match() -> None:
        found.append(crowd.match_batch(few, parallel=Parallel(threads=2)).num_rows)

    def trace() -> None:
        sys.settrace(enter)
        match()

    tracing = threading.Thread(target=trace, daemon=True)
    tracing.start()
    tracing.join(60)
    assert not tracing.is_alive()
    assert len(lines) > 30
    assert len(found) == len(lines) + 1
    assert set(found) == {expected}
