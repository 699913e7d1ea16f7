"""What fails in one of several threads fails its call, and the engine goes on."""

from __future__ import annotations

import threading
import time

import numpy as np
import pyarrow as pa
import pytest

from harken import Engine, Parallel
from harken.errors import EngineBusyError
from harken.matching.clusters import sharing
from harken.matching.encoding import matcher as encoding
from harken.matching.encoding.encoder import Encoder
from harken.matching.encoding.workspace import Told
from harken.matching.parallel import team
from harken.matching.parallel.team import _Threads, team_of
from tests.matching.parallel.conftest import ALONE


def test_what_fails_in_a_thread_is_raised_to_the_caller_and_the_others_stop():
    stopped, came, seen = threading.Event(), threading.Barrier(4, timeout=30), []

    def work(number: int) -> None:
        came.wait()
        if number == 2:
            raise MemoryError("no more")
        assert stopped.wait(30)
        seen.append(number)

    with team_of(4) as four, pytest.raises(MemoryError, match="no more"):
        four.run(work, stopped.set)
    assert sorted(seen) == [0, 1, 3]


def test_an_interrupt_of_the_caller_waits_for_the_others():
    stopped, came, over = threading.Event(), threading.Barrier(3, timeout=30), []

    def work(number: int) -> None:
        came.wait()
        if number == 0:
            raise KeyboardInterrupt
        assert stopped.wait(30)
        time.sleep(0.05)
        over.append(number)

    with team_of(3) as three, pytest.raises(KeyboardInterrupt):
        three.run(work, stopped.set)
    assert sorted(over) == [1, 2]


@pytest.mark.parametrize("mode", ["me-ip", "se-cp", "hybrid"])
def test_a_thread_that_fails_at_the_kernel_leaves_an_engine_that_works(mode, crowd, events, monkeypatch):
    kind = sharing.Independent if mode == "me-ip" else sharing.Collaborative
    match = kind.match

    def fail(self, number, scratch, told):
        if number == 1:
            raise MemoryError
        match(self, number, scratch, told)

    parallel = Parallel(mode, 3)
    with monkeypatch.context() as patched:
        patched.setattr(kind, "match", fail)
        with pytest.raises(MemoryError):
            crowd.match_batch(events.slice(0, 300), parallel=parallel)
    assert len(crowd.match_batch(events.slice(0, 300), parallel=parallel)) == len(
        crowd.match_batch(events.slice(0, 300), parallel=ALONE)
    )
    crowd.subscribe(10**9, "a00 = 1")  # nobody is inside any more
    crowd.unsubscribe(10**9)


def test_what_fails_while_encoding_is_told(crowd, events, monkeypatch):
    def fail(*_: object) -> None:
        raise MemoryError("while encoding")

    monkeypatch.setattr(Encoder, "_encode_part", fail)
    with pytest.raises(MemoryError, match="while encoding"):
        crowd.match_batch(events, parallel=Parallel(threads=3))


def test_a_finaliser_that_changes_the_engine_in_another_thread_is_refused_as_in_this_one(monkeypatch, crowd):
    refused, threads = [], set()
    encode = Encoder._encode_part

    def change(self, *given):
        threads.add(threading.get_ident())
        try:
            crowd.unsubscribe(0)
        except EngineBusyError as error:
            refused.append(error)
        time.sleep(0.005)  # so that the others come too
        return encode(self, *given)

    monkeypatch.setattr(Encoder, "_encode_part", change)
    monkeypatch.setattr(encoding, "BLOCK", 64)
    crowd.match_batch(pa.table({"a00": np.arange(1_000)}), parallel=Parallel(threads=3))
    assert len(threads) > 1
    assert len(refused) >= len(threads)
    assert 0 in crowd


@pytest.mark.parametrize("after", [ALONE, Parallel("se-cp", 2)], ids=str)
def test_who_fails_in_the_middle_of_an_event_leaves_none_of_its_truths_behind(after, monkeypatch):
    def refuse(self, part):
        raise MemoryError

    engine = Engine("propagation")
    engine.subscribe_many((at, f"a = 1 and x > {at}") for at in range(20_000))
    with monkeypatch.context() as patched:
        patched.setattr(Told, "have_more", refuse)
        with pytest.raises(MemoryError):
            engine.match_batch([{"a": 1, "x": 20_000}], parallel=Parallel("se-cp", 2))
    assert sorted(engine.match_batch([{"a": 1, "x": 7}], parallel=after)["subscription"].to_pylist()) == [
        *range(7)
    ]


def test_where_no_thread_can_be_started_a_call_goes_on_alone(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    engine = Engine("dynamic")
    engine.subscribe_many((at, f"x > {at}") for at in range(100))
    rows = [{"x": 50}, {"x": [1, 2]}] * 10
    threads = _Threads()
    monkeypatch.setattr(team, "_THREADS", threads)
    engine.match_batch(rows, parallel=Parallel("se-cp", 2))
    before = len(threads.workers)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        for _ in range(3):
            assert engine.match_batch(rows, parallel=Parallel("se-cp", 3)).num_rows == 500
    assert engine.match_batch(rows, parallel=Parallel("se-cp", 3)).num_rows == 500
    assert (before, len(threads.workers)) == (1, 2)
    assert engine.stats()["foreign"] == {"x": 50}
    assert all(worker.inbox.empty() for worker in threads.workers)
