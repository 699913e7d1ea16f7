"""Several threads that match, as one would, beside each other and beside changes, and nothing is left behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pyarrow as pa
import pytest

from harken import Engine, Parallel
from harken.bench.experiments.threads import WAYS, Scene
from harken.errors import ArgumentError
from harken.matching.encoding import matcher as encoding
from harken.matching.events.batch import EventBatch
from harken.matching.parallel.team import team_of
from tests.matching.parallel.conftest import ALONE, EVENTS, ORDER


@pytest.mark.parametrize("sync", ["static", "lock", "stm"])
@pytest.mark.parametrize("threads", [2, 3, 7])
def test_threads_with_events_of_their_own_give_the_matches_of_one_thread(crowd, events, sync, threads):
    found = crowd.match_batch(events, parallel=Parallel("me-ip", threads, sync=sync))
    assert (np.diff(found["event"]) >= 0).all()
    assert found.sort_by(ORDER).equals(crowd.match_batch(events, parallel=ALONE).sort_by(ORDER))


@pytest.mark.parametrize("parallel", [each for each in WAYS if each.mode != "me-ip"], ids=str)
def test_threads_that_share_events_give_the_same_matches_by_event_and_slot(crowd, events, parallel):
    some = events.slice(0, 200)
    found = crowd.match_batch(some, parallel=parallel)
    expected = crowd.match_batch(some, parallel=ALONE)
    assert found.equals(expected.sort_by(ORDER))  # nobody has left, so that slots are as ids


@pytest.mark.parametrize("algorithm", ["dynamic", "auto", "rapid within auto", "reference within auto"])
@pytest.mark.parametrize("mode", ["se-cp", "hybrid"])
@pytest.mark.parametrize("threads", [1, 2])
def test_events_shared_by_however_many_threads_have_their_matches_ordered_by_slot(algorithm, mode, threads):
    engine = Engine(algorithm.split()[-1], parallel=Parallel(mode, threads))
    rows = [
        (at, f"x = {at % 50} or y in ({at % 7}, 3)") for at in range(500 if "reference" in algorithm else 3_000)
    ]
    engine.subscribe_many(rows)
    if "rapid" in algorithm:
        other = Engine("rapid")
        other.subscribe_many(rows)
        engine._matcher._become("rapid", other._matcher)
    events = [{"x": at % 60, "y": at % 9} for at in range(200)]
    found = engine.match_batch(events)
    assert found.num_rows > 1_000
    assert found.equals(found.sort_by(ORDER))
    assert all(each == sorted(each) for each in map(engine.match, events))


@pytest.mark.parametrize(
    "algorithm", ["counting", "siena", "tree", "rapid", "pubsub", "be-tree", "propagation", "static", "auto"]
)
@pytest.mark.parametrize("sync", ["static", "lock"])
def test_every_algorithm_can_share_events(algorithm, sync):
    engine = Engine(algorithm)
    engine.subscribe_many((at, f"x = {at % 50} or y in ({at % 7}, 3)") for at in range(2_000))
    events = [{"x": at % 60, "y": at % 9} for at in range(500)]
    found = engine.match_batch(events, parallel=Parallel(threads=3, sync=sync))
    assert found.sort_by(ORDER).equals(engine.match_batch(events, parallel=ALONE).sort_by(ORDER))
    told = engine.stats()["parallel"]
    assert (told["mode"], told["sync"], told["threads"], told["events"]) == ("me-ip", sync, 3, len(events))


@pytest.mark.parametrize("algorithm", ["counting", "siena", "rapid", "pubsub", "be-tree", "reference"])
def test_algorithms_without_clusters_say_that_threads_cannot_share_an_event(algorithm):
    engine = Engine(algorithm)
    engine.subscribe_many((at, f"x = {at}") for at in range(10))
    with pytest.raises(ArgumentError, match="need"):
        Engine(algorithm, parallel=Parallel("hybrid", 2))
    with pytest.raises(ArgumentError, match="need") as raised:
        engine.match_batch([{"x": 1}], parallel=Parallel("se-cp", 2))
    assert raised.value.argument == "mode"
    assert "me-ip" in str(raised.value.suggestion)


def test_one_event_can_be_matched_by_all():
    engine = Engine("dynamic", parallel=Parallel("se-cp", 3))
    engine.subscribe_many((at, f"x > {at % 100}") for at in range(5_000))
    assert engine.match({"x": 50}) == [at for at in range(5_000) if at % 100 < 50]
    assert engine.match({"y": 50}) == []


def test_results_that_do_not_fit_are_told_when_there_is_room(monkeypatch):
    engine = Engine("dynamic")
    engine.subscribe_many((at, "x > 1") for at in range(30_000))
    engine.subscribe_many((30_000 + at, f"x > 1 and y = {at % 3}") for at in range(30_000))
    alone = engine.match_batch([{"x": 2, "y": 1}] * 5, parallel=ALONE)
    for parallel in (Parallel("se-cp", 2), Parallel("hybrid", 3, 2), Parallel("me-ip", 2, block=1)):
        found = engine.match_batch([{"x": 2, "y": 1}] * 5, parallel=parallel)
        assert len(found) == len(alone) == 200_000
        assert sorted(zip(*found.to_pydict().values(), strict=True)) == sorted(
            zip(*alone.to_pydict().values(), strict=True)
        )


def test_a_subscription_of_several_clauses_is_told_once_though_several_threads_find_it():
    engine = Engine("dynamic")
    engine.subscribe_many((at, " or ".join(f"a{each} > 0" for each in range(8))) for at in range(500))
    event = {f"a{each}": 1 for each in range(8)}
    for sync in ("static", "lock", "stm"):
        found = engine.match_batch([event], parallel=Parallel("se-cp", 4, sync=sync, block=1))
        assert found["subscription"].to_pylist() == list(range(500))


def test_what_threads_did_is_told_of_one_index_of_auto_after_another():
    engine = Engine(small=0)
    engine.subscribe_many((at, f"x = {at % 50}") for at in range(3_000))
    engine.match_batch([{"x": 1}] * 100, parallel=Parallel(threads=2))
    other = Engine("rapid")
    engine._matcher._become("rapid", other._matcher)
    assert engine.stats()["parallel"]["events"] == 100


def test_statistics_count_what_threads_did_together(crowd, events):
    before = crowd.stats()
    crowd.match_batch(events, parallel=Parallel("me-ip", 3, sync="stm"))
    after = crowd.stats()
    assert after["events"] - before["events"] == EVENTS
    told = after["parallel"]
    assert (told["mode"], told["sync"], told["threads"]) == ("me-ip", "stm", 3)
    assert told["transactions"]["committed"] > 0


def test_columns_that_come_late_in_a_batch_are_found_by_whoever_encodes_them(monkeypatch):
    monkeypatch.setattr(encoding, "BLOCK", 64)
    engine = Engine("dynamic")
    engine.subscribe_many((at, f"a{at % 80} = {at} or a{at % 80}.b is not null") for at in range(2_000))
    table = pa.table({f"a{at}": pa.array([None] * (10 * at) + [at] * (900 - 10 * at)) for at in range(80)})
    found = engine.match_batch(table, parallel=Parallel(threads=4))
    assert found.equals(engine.match_batch(table, parallel=ALONE))
    assert len(found) > 0


def test_foreign_values_are_counted_once_by_however_many_threads():
    engine = Engine("dynamic")
    engine.subscribe("a", "x = 1")
    table = pa.table({"x": pa.array([1.0, float("nan")] * 4_000)})
    assert len(engine.match_batch(table, parallel=Parallel(threads=3))) == 4_000
    assert engine.stats()["foreign"] == {"x": 4_000}


def test_calls_at_the_same_time_are_all_answered(crowd, events):
    expected = crowd.match_batch(events, parallel=ALONE)
    wrong = []

    def match(parallel: Parallel) -> None:
        if not crowd.match_batch(events, parallel=parallel).sort_by(ORDER).equals(expected.sort_by(ORDER)):
            wrong.append(parallel)

    threads = [threading.Thread(target=match, args=(each,)) for each in WAYS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    assert not wrong


def test_a_call_while_another_has_the_threads_goes_on_alone():
    with team_of(3) as first:
        assert first.threads == 3
        with team_of(3) as second:
            assert second.threads == 1
    with team_of(2) as third:
        assert third.threads == 2


@pytest.mark.parametrize("parallel", WAYS, ids=str)
def test_threads_that_share_their_work_see_changes_whole_or_not_at_all(parallel):
    done = Scene("dynamic", 1, parallel).run(0.5)
    assert min(done.values()) >= 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
@pytest.mark.parametrize("mode", ["me-ip", "se-cp"])
def test_a_forked_process_has_threads_of_its_own(mode, crowd, events):
    parallel, some = Parallel(mode, 2), events.slice(0, 300)
    expected = crowd.match_batch(some, parallel=parallel).num_rows
    child = os.fork()
    if child == 0:
        try:
            found = crowd.match_batch(some, parallel=parallel).num_rows
            os._exit(0 if found == expected else 1)
        except BaseException:
            os._exit(2)
    deadline = time.monotonic() + 60
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.01)
    if ended == (0, 0):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert ended == (child, 0)
    assert crowd.match_batch(some, parallel=parallel).num_rows == expected


LEFT = """
import logging, os, threading, sys
from harken import Engine, Parallel
logging.disable(logging.WARNING)  # who is the first is told that kernels are compiled
engine = Engine("dynamic")
engine.subscribe_many((at, f"x > {at % 100}") for at in range(2_000))
for mode in ("me-ip", "se-cp", "hybrid"):
    engine.match_batch([{"x": at} for at in range(100)], parallel=Parallel(mode, 3))
print(threading.active_count(), len(os.listdir("/proc/self/task")) if sys.platform == "linux" else 0)
threading.Thread(target=lambda: engine.match_batch([{"x": 5}] * 5_000, parallel=Parallel("se-cp", 3))).start()
"""


def test_a_process_ends_though_threads_wait_or_work():
    done = subprocess.run([sys.executable, "-c", LEFT], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert int(done.stdout.split()[0]) == 3


def test_a_clause_of_many_predicates_among_many_attributes_takes_no_room_that_is_not_there():
    engine = Engine("dynamic")
    engine.subscribe_many((at, f"a{at} = 1") for at in range(5_000))
    engine.subscribe(10**9, " and ".join(f"b{at} > 1" for at in range(200)))
    shared = engine._matcher._sharing(
        next(engine._matcher._encoder.blocks(EventBatch([{"a1": 1}], {}, 1)))[1], Parallel("se-cp", 64), 64
    )
    assert sum(group.pieces.nbytes for group in shared._groups) < 20_000_000
    assert engine.match_batch([{"a1": 1}], parallel=Parallel("se-cp", 4))["subscription"].to_pylist() == [1]


@pytest.mark.parametrize("algorithm", ["counting", "siena", "dynamic", "tree", "rapid", "pubsub", "be-tree"])
def test_threads_that_wait_hold_on_to_no_index(algorithm):
    engine = Engine(algorithm)
    engine.subscribe_many((at, f"x = {at % 50}") for at in range(500))
    events = [{"x": at % 60} for at in range(200)]
    engine.match_batch(events, parallel=Parallel(threads=4))
    index = engine._matcher._index if algorithm != "siena" else engine._matcher._index.table
    held = weakref.ref(
        next(
            each
            for part in index
            for each in (part if isinstance(part, tuple) else (part,))
            if isinstance(each, np.ndarray)
        )
    )
    del index
    engine.subscribe_many((500 + at, f"x = {at} and y = {at}") for at in range(500))
    engine.match_batch(events, parallel=ALONE)
    gc.collect()
    assert held() is None
