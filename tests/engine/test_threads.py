"""Any call from any thread: a match sees all of a change or nothing of it."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import threading
from collections.abc import Iterator
from math import nan
from pathlib import Path

import pytest

from harken import Engine, algorithms
from harken.bench.experiments.threads import Scene
from harken.errors import CopyError, EngineBusyError, UnknownSubscriptionError
from harken.locking import Reader, _wait_until
from harken.matching.events.batch import _ADDING
from harken.model.expressions import Comparison

EVERY = {"x": 1}


@pytest.mark.parametrize("algorithm", algorithms())
def test_threads_that_match_see_changes_of_others_whole_or_not_at_all(algorithm):
    done = Scene(algorithm, seed=1).run(1.5)
    assert min(done.values()) >= 1


def test_rows_that_ask_and_change_the_engine_while_it_takes_them_in_do_no_harm():
    engine = Engine()
    engine.subscribe("old", "x = 1")

    def rows() -> Iterator[tuple[str, str]]:
        for at in range(3):
            assert "old" in engine.match(EVERY)
            engine.subscribe(f"within {at}", "x = 1")
            yield f"row {at}", "x = 1"

    engine.subscribe_many(rows(), progress=lambda _: engine.subscribe("told", "x = 1", replace=True))
    assert len(engine.match(EVERY)) == len(engine) == 8


def test_matches_give_way_while_rows_are_read():
    engine, given_way = Engine(), list[bool]()

    def rows() -> Iterator[tuple[int, str]]:
        for id in range(3):
            given_way.append(bool(engine._door.changers))
            engine.subscribe(f"within {id}", "x = 1")
            yield f"row {id}", "x = 1"

    engine.subscribe_many(rows())
    assert given_way == [True] * 3
    assert not engine._door.changers


@pytest.mark.parametrize(
    "change",
    [
        lambda engine: engine.subscribe("b", "x = 2"),
        lambda engine: engine.subscribe_many([("b", "x = 2")]),
        lambda engine: engine.unsubscribe("a"),
        lambda engine: engine.unsubscribe_many(["a"]),
        lambda engine: engine.learn([{"x": 1}]),
    ],
    ids=["subscribe", "subscribe_many", "unsubscribe", "unsubscribe_many", "learn"],
)
def test_matches_give_way_to_every_change_from_its_beginning_to_its_end(change, monkeypatch):
    engine, times = Engine(), list[Reader]()
    engine.subscribe("a", "x = 1")
    monkeypatch.setattr(Reader, "give_way", lambda reader: times.append(reader))
    with engine._door.turn():
        changing = threading.Thread(target=change, args=(engine,), daemon=True)
        changing.start()
        _wait_until(lambda: bool(engine._door.changers), patience=60)
        assert engine.match({"x": 1}) == ["a"]
        assert len(times) == 1
    changing.join(60)
    engine.match({"x": 1})
    assert len(times) == 1
    with pytest.raises(UnknownSubscriptionError):
        engine.unsubscribe("nobody")
    assert not engine._door.changers


def test_rows_that_wait_for_a_change_by_another_thread_do_not_wait_for_ever():
    engine = Engine()

    def rows() -> Iterator[tuple[int, str]]:
        other = threading.Thread(target=engine.subscribe, args=(1, "x = 1"))
        other.start()
        other.join(60)
        assert not other.is_alive()
        yield 2, "x = 1"

    engine.subscribe_many(rows())
    assert sorted(engine) == [1, 2]


def test_events_and_ids_that_change_the_engine_while_it_reads_them_do_no_harm():
    engine = Engine()
    engine.subscribe_many([(1, "x = 1"), (2, "x = 1")])

    def events() -> Iterator[dict[str, int]]:
        engine.subscribe(3, "x = 1")
        yield EVERY

    def ids() -> Iterator[int]:
        yield 1
        engine.unsubscribe(2)

    assert sorted(engine.match_batch(events()).column("subscription").to_pylist()) == [1, 2, 3]
    engine.unsubscribe_many(ids())
    assert list(engine) == [3]


def test_ids_are_those_there_were_when_they_were_asked_for():
    engine = Engine()
    engine.subscribe_many((id, "x = 1") for id in range(5))
    ids = iter(engine)
    engine.unsubscribe_many([0, 1, 2])
    assert list(ids) == [0, 1, 2, 3, 4]


class Meddler(dict):
    """An event that changes the engine where it is read."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(x=1, y={"z": 1})
        self._engine = engine

    def items(self):
        self._engine.subscribe("meddled", "x = 1")
        return super().items()


def test_an_event_that_changes_the_engine_while_it_is_matched_is_told_so_and_nothing_hangs():
    engine = Engine()
    engine.subscribe("old", "x = 1")
    with pytest.raises(EngineBusyError, match="in use further up in this very thread"):
        engine.match(Meddler(engine))
    engine.subscribe("new", "x = 1")
    assert sorted(engine.match(EVERY)) == ["new", "old"]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_a_whole_engine_whatever_other_threads_were_doing():
    engine = Engine("dynamic", patience=10)
    engine.subscribe_many((id, f"x = 1 and y != {id}") for id in range(50))
    over = threading.Event()

    def churn() -> None:
        while not over.is_set():
            engine.subscribe_many((id, "x = 1") for id in range(100, 120))
            engine.unsubscribe_many(range(100, 120))

    def match() -> None:
        while not over.is_set():
            engine.match({"x": 1, "y": -1})

    threads = [threading.Thread(target=each) for each in (churn, match)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            assert _in_child(lambda: _works(engine))
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert _works(engine)


def _works(engine: Engine) -> bool:
    seen = len(engine.match({"x": 1, "y": -1}))
    engine.subscribe("1" if seen == 0 else 999, "x = 1")
    found = len(engine.match({"x": 1, "y": -1}))
    engine.unsubscribe(999)
    engine.stats()
    return seen in (50, 70) and found == seen + 1


def _saves(engine: Engine, folder: Path) -> bool:
    engine.save(folder)
    return len(Engine.load(folder)) == len(engine)


def test_a_process_forked_while_others_count_what_they_have_seen_can_save(tmp_path):
    engine = Engine("dynamic")
    engine.subscribe(1, "x = 1")
    with engine._matcher._seen_lock:
        assert _in_child(lambda: _saves(engine, tmp_path / "saved"))


def test_a_process_forked_while_others_count_foreign_values_can_match():
    engine, held, over = Engine(), threading.Event(), threading.Event()
    engine.subscribe(1, "x IS NOT NULL")

    def count() -> None:
        with _ADDING.lock:
            held.set()
            over.wait(60)

    thread = threading.Thread(target=count)
    thread.start()
    held.wait(60)
    try:
        assert _in_child(lambda: engine.match({"x": nan}) == [1])
    finally:
        over.set()
        thread.join()


def test_a_signal_handler_may_match_while_its_thread_counts_foreign_values():
    engine, found = Engine(), list[object]()
    engine.subscribe(1, "x IS NOT NULL")

    def handle() -> None:
        with _ADDING.lock:
            found.extend(engine.match({"x": nan}))

    thread = threading.Thread(target=handle, daemon=True)
    thread.start()
    thread.join(10)
    assert found == [1]


def _in_child(check) -> bool:
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            os._exit(0 if check() else 3)
        except BaseException:
            os._exit(4)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_a_copy_of_a_small_engine_is_an_engine_of_its_own(duplicate):
    engine = Engine()
    engine.subscribe(1, "x = 1", owner="me")
    twin = duplicate(engine)
    twin.subscribe(2, "x = 1")
    assert engine.match(EVERY) == [1]
    assert sorted(twin.match(EVERY)) == [1, 2]
    assert twin.subscription(1).owner == "me"


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_a_copy_is_of_one_moment_whatever_others_change_meanwhile(duplicate, monkeypatch):
    engine = Engine()
    engine.subscribe_many([(at, f"x = {at}") for at in range(20)])
    copying, changed = threading.Event(), threading.Event()

    def change() -> None:
        copying.wait(10)
        engine.unsubscribe_many(range(10))
        engine.subscribe_many([(at, f"x = {at}") for at in range(50, 90)])
        changed.set()

    copy_expression = Comparison.__reduce_ex__

    def slowly(self, protocol):  # called for each expression that is copied or pickled
        copying.set()
        changed.wait(0.02)
        return copy_expression(self, protocol)

    monkeypatch.setattr(Comparison, "__reduce_ex__", slowly)
    changer = threading.Thread(target=change)
    changer.start()
    twin = duplicate(engine)
    changer.join()
    assert sorted(twin) == list(range(20))
    assert all(twin.match({"x": at}) == [at] for at in range(20))
    assert sorted(engine) == [*range(10, 20), *range(50, 90)]
    twin.unsubscribe_many(range(20))
    assert len(twin) == twin.stats()["subscriptions"] == 0


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_an_engine_with_an_index_says_that_it_is_to_be_saved_rather_than_copied(duplicate):
    engine = Engine("dynamic")
    engine.subscribe(1, "x = 1")
    with pytest.raises(CopyError, match="save"):
        duplicate(engine)
    assert engine.match(EVERY) == [1]
