"""What is said of threads: how many, in which way, and what cannot be."""

from __future__ import annotations

import os
import sys
import threading

import numpy as np
import pyarrow as pa
import pytest

from harken import Engine, Parallel
from harken.errors import ArgumentError, ArgumentTypeError
from harken.matching.parallel.options import MOST_THREADS, cores
from harken.matching.parallel.record import PROMISES, Record


@pytest.mark.parametrize(
    ("said", "argument"),
    [
        ({"mode": "me_ip"}, "mode"),
        ({"sync": "locks"}, "sync"),
        ({"threads": 0}, "threads"),
        ({"threads": MOST_THREADS + 1}, "threads"),
        ({"threads": True}, "threads"),
        ({"threads": "many"}, "threads"),
        ({"block": 0}, "block"),
        ({"group": 2}, "group"),
        ({"mode": "hybrid", "group": -1}, "group"),
        ({"target_latency_ms": 1.0}, "target_latency_ms"),
        ({"mode": "hybrid", "target_latency_ms": 0}, "target_latency_ms"),
        ({"mode": "hybrid", "target_latency_ms": float("nan")}, "target_latency_ms"),
        ({"mode": "hybrid", "target_latency_ms": 2**1024}, "target_latency_ms"),
        ({"mode": "hybrid", "target_latency_ms": 1.0, "group": 2}, "group"),
        ({"mode": np.array(["me-ip", "hybrid"])}, "mode"),
        ({"threads": np.array([1, 2])}, "threads"),
    ],
)
def test_what_cannot_be_is_refused_by_name(said, argument):
    with pytest.raises(ArgumentError) as raised:
        Parallel(**said)
    assert raised.value.argument == argument


@pytest.mark.parametrize("wrong", ["5", True, [5]])
def test_a_latency_of_another_type_is_refused_as_such(wrong):
    with pytest.raises(ArgumentTypeError, match="target_latency_ms is a number of milliseconds above 0"):
        Parallel("hybrid", target_latency_ms=wrong)


def test_parallel_is_a_parallel():
    with pytest.raises(ArgumentTypeError, match="a Parallel"):
        Engine(parallel="me-ip")
    with pytest.raises(ArgumentTypeError, match="a Parallel"):
        Engine().match_batch([{"x": 1}], parallel=2)


def test_all_is_what_the_process_may_use_or_what_is_said(monkeypatch):
    monkeypatch.delenv("HARKEN_THREADS", raising=False)
    assert Parallel().count == cores() == len(os.sched_getaffinity(0))
    monkeypatch.setenv("HARKEN_THREADS", "3")
    assert Parallel().count == 3
    assert Parallel(threads=5).count == 5
    for wrong in ("0", "many", "-1", "1000"):
        monkeypatch.setenv("HARKEN_THREADS", wrong)
        with pytest.raises(ArgumentError, match="HARKEN_THREADS"):
            Parallel().count  # noqa: B018


def test_large_batches_are_shared_by_all_cores_without_a_word(monkeypatch):
    monkeypatch.setenv("HARKEN_THREADS", "2")
    engine = Engine("dynamic")
    engine.subscribe_many((at, f"x = {at}") for at in range(2_000))
    engine.match_batch(pa.table({"x": np.arange(4_095)}))
    assert "parallel" not in engine.stats()
    engine.match_batch(pa.table({"x": np.arange(4_096)}))
    assert engine.stats()["parallel"]["threads"] == 2


def test_groups_grow_and_shrink_with_how_long_events_take():
    engine = Engine("dynamic", parallel=Parallel("hybrid", 4, target_latency_ms=1e-6))
    engine.subscribe_many((at, f"x > {at}") for at in range(3_000))
    for _ in range(3):
        engine.match({"x": 1_000})
    told = engine.stats()["parallel"]
    assert told["group"] == 4
    assert len(told["decisions"]) == 2
    easy = Parallel("hybrid", 4, target_latency_ms=1e9)
    engine.match_batch([{"x": 1}], parallel=easy)
    assert engine.stats()["parallel"]["group"] == 1


def test_what_was_learned_for_one_promise_is_kept_for_the_next_time_and_told_of_that_one_only():
    engine = Engine("dynamic")
    engine.subscribe_many((at, f"x > {at}") for at in range(3_000))
    hard, other = (Parallel("hybrid", 4, target_latency_ms=each) for each in (1e-6, 2e-6))
    for _ in range(3):
        engine.match_batch([{"x": 1_000}], parallel=hard)
    engine.match_batch([{"x": 1_000}], parallel=other)
    assert engine.stats()["parallel"]["target_latency_ms"] == 2e-6
    engine.match_batch([{"x": 1_000}], parallel=Parallel("me-ip", 2))
    assert not {"group", "target_latency_ms", "decisions"} & engine.stats()["parallel"].keys()
    engine.match_batch([{"x": 1_000}], parallel=hard)
    told = engine.stats()["parallel"]
    assert (told["group"], len(told["decisions"])) == (4, 2)


def test_the_first_call_of_a_kind_which_loads_kernels_decides_nothing():
    engine = Engine("dynamic", parallel=Parallel("hybrid", 4, target_latency_ms=1e-6))
    engine.subscribe_many((at, f"x > {at}") for at in range(3_000))
    engine.match({"x": 1_000})
    assert engine.stats()["parallel"]["group"] == 1


def test_what_is_told_and_learned_meanwhile_is_whole():
    record, wrong = Record(), list[BaseException]()
    promises = [Parallel("hybrid", 2, target_latency_ms=1.0 + at % (PROMISES + 3)) for at in range(200)]
    interval = sys.getswitchinterval()

    def use() -> None:
        try:
            for _ in range(20):
                for each in promises:
                    record.group_for(each, 2)
                    record.note(each, 2, 1, 0.01)
                    record.stats()
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=use) for _ in range(4)]
    try:
        sys.setswitchinterval(1e-6)
        for each in threads:
            each.start()
        for each in threads:
            each.join(60)
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []
    assert record.stats()["parallel"]["events"] == 4 * 20 * 200
    assert len(record._sizes) <= PROMISES
