"""Large changes are made in portions, and between any two of them others match, as if nothing or all was done."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from harken import Engine, Point, locking, parse, portions
from harken.bench.experiments.faults import (
    CALLS,
    Case,
    allocations_of,
    engine_of,
    fail_at_allocation,
    fail_at_step,
    sampled,
    steps_of,
)
from harken.bench.experiments.threads import Scene
from harken.errors import EngineBusyError
from harken.locking import Door
from harken.matching import identities
from harken.matching.auto import AutoMatcher
from harken.matching.clusters import dynamic, keyed
from harken.matching.clusters.clusters import ClusterStore
from harken.matching.clusters.cost import USUAL
from harken.matching.clusters.dynamic import DynamicMatcher
from harken.matching.contract import Gradual
from harken.matching.encoding.statistics import ObservedEvents
from harken.matching.predicates.columns import PredicateColumns
from harken.matching.predicates.intervals import Intervals
from harken.matching.predicates.ordering import ConstantOrder
from harken.matching.predicates.table import PredicateTable
from harken.matching.predicates.value_tests import ValueTests
from harken.matching.structures import segments
from harken.matching.structures.rectangles import PackedRectangles
from harken.matching.structures.tries import PatternTrie
from harken.model.evaluation import truth
from harken.portions import ALONE, BESIDE, Needs, Pace, Portions
from harken.workloads.mixed import Mixed

GRADUAL = ["auto", "dynamic", "static", "propagation"]
"""The algorithms that make large changes in portions."""


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """Portions of two, each by itself, whatever they take and whoever is there."""
    monkeypatch.setattr(portions, "FEW", 2)
    monkeypatch.setattr(portions, "FIRST", 2)
    monkeypatch.setattr(portions, "LEAST", 2)
    monkeypatch.setattr(portions, "MOST_FASTER", 1.0)
    monkeypatch.setattr(Pace, "briefly", 0.0)
    monkeypatch.setattr(Door, "is_quiet", lambda _: False)


class Pauses:
    """What is done between two portions."""

    def __init__(self, monkeypatch) -> None:
        self.count = 0
        self.work: Callable[[], object] = lambda: None
        do_some = Door._do_some

        def do(*given) -> Needs | None:
            needs = do_some(*given)
            if needs is not None:
                self.count += 1
                self.work()
            return needs

        monkeypatch.setattr(Door, "_do_some", do)


@pytest.fixture
def pauses(monkeypatch):
    return Pauses(monkeypatch)


@pytest.mark.kernel
@pytest.mark.parametrize("algorithm", GRADUAL)
def test_algorithms_with_clusters_are_changed_in_portions(algorithm):
    assert isinstance(engine_of(algorithm)._matcher, Gradual)


@pytest.mark.kernel
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("algorithm", GRADUAL)
def test_between_two_portions_a_match_finds_what_was_or_what_will_be(algorithm, call, pauses):
    for seed in range(3):
        engine, change, (_, after), events = Case(algorithm, call, seed).begin()
        found = _found(engine, events)
        seen = []
        pauses.work = lambda engine=engine, events=events, seen=seen: seen.append(_found(engine, events))
        pauses.count = 0
        change()
        pauses.work = lambda: None
        made = _found(engine, events)
        assert sorted(engine) == sorted(after)
        if algorithm == "dynamic" and "_" in call:
            assert len(seen) > 5
        assert all(each in (found, made) for each in seen)
        flips = [each == made for each in seen]
        assert found == made or flips == sorted(flips)


def _found(engine: Engine, events: list[Mapping[str, object]]) -> list[list[object]]:
    return [sorted(engine.match(event)) for event in events]


@pytest.mark.parametrize("algorithm", GRADUAL)
def test_a_change_looks_at_no_tests_of_attributes_that_it_does_not_ask_of(algorithm, monkeypatch):
    engine, looked_at = Engine(algorithm, **({"small": 5} if algorithm == "auto" else {})), []
    is_settled = ValueTests.is_settled.fget
    monkeypatch.setattr(ValueTests, "is_settled", property(lambda one: looked_at.append(one) or is_settled(one)))
    engine.subscribe_many((at, f"t{at} CONTAINS 'x'") for at in range(40))
    engine.subscribe(40, "t1 CONTAINS 'y'")
    del looked_at[:]
    engine.subscribe(41, "t2 CONTAINS 'y' AND x = 1")
    engine.unsubscribe(41)
    assert len(set(looked_at)) == 1
    assert engine.match({"t1": "xy", "t2": "y"}) == [1, 40]


@pytest.mark.kernel
@pytest.mark.parametrize("ids", [int, "subscriber {:03}".format])
@pytest.mark.parametrize("algorithm", ["auto", "dynamic"])
def test_owners_and_validity_change_with_the_rest(algorithm, ids, pauses):
    engine, now = Engine(algorithm, **({"small": 5} if algorithm == "auto" else {})), datetime.now(UTC)
    rows = [(ids(at), f"x = 1 AND y != {at}") for at in range(40)]
    engine.subscribe_many(rows)
    later = [
        {"id": ids(at), "expression": "x = 1", "owner": f"of {at}", "valid_until": now + timedelta(days=at - 30)}
        for at in range(20, 60)
    ]
    seen = []
    pauses.work = lambda: seen.append(sorted(engine.match({"x": 1, "y": -1}, at=now)))
    engine.subscribe_many(later, replace=True)
    pauses.work = lambda: None
    before = sorted(ids(at) for at in range(40))
    after = sorted(ids(at) for at in range(60) if at < 20 or at > 30)
    assert sorted(engine.match({"x": 1, "y": -1}, at=now)) == after
    assert before in seen
    assert after in seen
    assert all(each in (before, after) for each in seen)
    assert [engine.subscription(ids(at)).owner for at in (25, 5)] == ["of 25", None]
    engine.unsubscribe_many(ids(at) for at in range(60))
    assert not any(map(len, (engine, engine._owners, engine._validity)))


@pytest.mark.kernel
def test_integers_that_become_many_in_the_middle_of_a_change_keep_their_names(pauses):
    engine = Engine("dynamic")
    engine._identities._few = 30
    engine.subscribe_many((at, "x = 1") for at in range(20))
    seen = []
    pauses.work = lambda: seen.append(sorted(engine.match({"x": 1})))
    engine.subscribe_many(((at, "x = 1 AND z IS NULL") for at in range(10, 60)), replace=True)
    assert all(each in (list(range(20)), list(range(60))) for each in seen)
    assert len(seen) > 20
    pauses.work = lambda: None
    engine.unsubscribe_many(range(5, 55))
    assert sorted(engine.match({"x": 1})) == [*range(5), *range(55, 60)]
    assert sorted(engine) == [*range(5), *range(55, 60)]


def test_what_is_known_of_ids_waits_for_the_end_of_a_change(pauses):
    engine = Engine("dynamic")
    engine.subscribe_many((at, "x = 1") for at in range(10))
    told = []

    def look() -> None:
        for what in (lambda: len(engine), lambda: 3 in engine, lambda: engine.stats()):
            with pytest.raises(EngineBusyError, match="in the middle of a change"):
                what()
            told.append(what)

    pauses.work = look
    engine.subscribe_many((at, "x = 1") for at in range(10, 30))
    assert told
    sizes, asked = [], []

    def look_beside() -> None:
        if not asked:
            asked.append(threading.Thread(target=lambda: sizes.append(len(engine))))
            asked[0].start()

    pauses.work = look_beside
    engine.unsubscribe_many(range(12))
    asked[0].join(60)
    assert sizes == [18]


def test_others_match_in_the_middle_of_a_change(pauses):
    engine = Engine("dynamic")
    engine.subscribe_many((at, "x = 1") for at in range(10))
    found = []

    def match() -> None:
        other = threading.Thread(target=lambda: found.append(len(engine.match({"x": 1}))))
        other.start()
        other.join(60)
        assert not other.is_alive()

    pauses.work = match
    engine.subscribe_many((at, "x = 1") for at in range(10, 30))
    assert 10 in found
    assert set(found) <= {10, 30}


class Slow(dict):
    """An event that takes long to be read."""

    def __init__(self) -> None:
        super().__init__(x=1)
        self.begun, self.over = threading.Event(), threading.Event()

    def items(self):
        self.begun.set()
        assert self.over.wait(60)
        return super().items()


@pytest.mark.kernel
@pytest.mark.parametrize("many", [1, 20])
def test_who_matches_one_event_does_not_wait_for_a_change_that_waits_for_a_batch(many):
    engine, slow, found = Engine("dynamic"), Slow(), []
    engine.subscribe_many((at, "x = 1") for at in range(10))
    batch = threading.Thread(target=lambda: found.append(engine.match_batch([{"x": 1}, slow, {"x": 1}]).num_rows))
    rows = [(at, "x = 1") for at in range(10, 10 + many)]
    change = threading.Thread(target=engine.subscribe_many, args=(rows,))
    batch.start()
    assert slow.begun.wait(60)
    change.start()
    while not engine._door.is_shut:
        assert change.is_alive()
    assert len(engine.match({"x": 1})) == 10
    other = threading.Thread(target=lambda: found.append(engine.match_batch([{"x": 1}]).num_rows))
    other.start()  # another batch comes after the change, or between two portions of it
    slow.over.set()
    for each in (batch, change, other):
        each.join(60)
        assert not each.is_alive()
    assert found[0] == 30
    assert found[1] in (10, 10 + many)
    assert len(engine.match({"x": 1})) == 10 + many


@pytest.mark.kernel
def test_who_matches_one_event_does_not_wait_for_a_change_that_waits_for_who_asks_for_all_there_is(monkeypatch):
    engine, begun, over, told = Engine("dynamic"), threading.Event(), threading.Event(), []
    engine.subscribe_many((at, "x = 1") for at in range(10))
    tell = engine._matcher.stats

    def tell_slowly():
        begun.set()
        assert over.wait(60)
        return tell()

    monkeypatch.setattr(engine._matcher, "stats", tell_slowly)
    looking = threading.Thread(target=lambda: told.append(engine.stats()["subscriptions"]))
    change = threading.Thread(target=engine.subscribe, args=(10, "x = 1"))
    looking.start()
    assert begun.wait(60)
    change.start()
    while not engine._door.is_shut:
        assert change.is_alive()
    time.sleep(0.01)
    assert not engine._door.closed
    assert len(engine.match({"x": 1})) == 10
    over.set()
    for each in (looking, change):
        each.join(60)
        assert not each.is_alive()
    assert told == [10]
    assert len(engine.match({"x": 1})) == 11


@pytest.mark.kernel
def test_a_batch_does_not_wait_for_what_is_done_beside_others(monkeypatch):
    engine, found = Engine("propagation"), []
    engine.subscribe_many((at, f"x = 1 AND y > {at}") for at in range(10))
    estimate = engine._matcher._estimate_anew

    def match() -> None:
        batch = threading.Thread(target=lambda: found.append(engine.match_batch([{"x": 1, "y": 99}]).num_rows))
        batch.start()
        batch.join(60)
        assert not batch.is_alive()
        estimate()

    monkeypatch.setattr(engine._matcher, "_estimate_anew", match)
    engine.learn([{"x": 1, "y": at} for at in range(300)])
    assert found == [10]


@pytest.mark.kernel
def test_nothing_is_estimated_behind_a_closed_door_nor_is_who_matches_kept_from_counting(monkeypatch, tmp_path):
    monkeypatch.setattr(portions, "FIRST", 2_000)
    monkeypatch.setattr(Pace, "is_at_once", lambda *_: False)
    Engine("dynamic").save(tmp_path / "none")
    engine, doors = Engine.load(tmp_path / "none"), []
    chances, state = ObservedEvents.chances, PredicateTable.state

    def note(work):
        def noted(*given):
            count = threading.Thread(target=engine.match_batch, args=([{"x": 1}],))
            count.start()
            count.join(60)
            doors.append((engine._door.closed, count.is_alive()))
            return work(*given)

        return noted

    monkeypatch.setattr(ObservedEvents, "chances", note(chances))
    monkeypatch.setattr(PredicateTable, "state", note(state))
    for first in (0, 3_000):
        engine.subscribe_many((first + at, f"x = {at % 9} AND y = {at % 5}") for at in range(3_000))
    engine.learn([{"x": at % 9, "y": at % 5} for at in range(500)])
    engine.save(tmp_path / "some")
    assert len(doors) > 3
    assert set(doors) == {(False, False)}


@pytest.mark.kernel
@pytest.mark.parametrize("algorithm", GRADUAL)
def test_threads_see_changes_in_portions_whole_or_not_at_all(algorithm):
    done = Scene(algorithm, seed=2).run(2.0)
    assert min(done.values()) >= 1


@pytest.mark.kernel
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("algorithm", ["auto", "dynamic"])
def test_a_change_that_fails_in_any_portion_is_made_or_not(algorithm, call):
    case = Case(algorithm, call, seed=11)
    failed = [fail_at_step(case, at) for at in sampled(steps_of(case), 8, seed=len(call))]
    assert any(failed)
    assert all(fail_at_allocation(case, at, 1) for at in sampled(allocations_of(case), 2, 9))


@pytest.mark.kernel
def test_an_interrupt_between_two_portions_leaves_all_or_nothing(pauses):
    for at in range(1, 300):
        engine = engine_of("dynamic")
        engine.subscribe_many((id, "x = 1") for id in range(20))
        pauses.count = 0

        def interrupt(at=at) -> None:
            if pauses.count == at:
                raise KeyboardInterrupt

        pauses.work = interrupt
        try:
            engine.subscribe_many(((id, "x = 1 AND y IS NULL") for id in range(10, 30)), replace=True)
            raised = False
        except KeyboardInterrupt:
            raised = True
        pauses.work = lambda: None
        assert sorted(engine.match({"x": 1})) in ([*range(20)], [*range(30)])
        assert sorted(engine) == sorted(engine.match({"x": 1}))
        engine.subscribe_many((id, "x = 1") for id in range(100, 110))
        assert (engine._door.closed, engine._door.is_shut, engine._hidden.mask) == (False, False, None)
        if not raised:
            return
    raise AssertionError("there are more portions than were tried")


@pytest.mark.kernel
@pytest.mark.parametrize("seed", range(4))
def test_many_changes_in_portions_are_those_made_at_once(seed, pauses, monkeypatch):
    mixed, chance = Mixed(seed), random.Random(seed)
    engine, judge = engine_of("dynamic"), Engine("reference")
    held, next_id = list[int](), 0
    for _ in range(12):
        coming = [(next_id + at, mixed.text()) for at in range(chance.randrange(1, 40))]
        next_id += len(coming)
        replaced = [(id, mixed.text()) for id in chance.sample(held, min(len(held), chance.randrange(8)))]
        going = chance.sample(held, min(len(held), chance.randrange(12)))
        events = [mixed.event() for _ in range(8)]
        for each in (engine, judge):
            each.subscribe_many(coming)
            each.subscribe_many(replaced, replace=True)
            each.unsubscribe_many(going)
        engine.learn(events)
        held = sorted(judge)
        assert sorted(engine) == held
        for event in events:
            assert sorted(engine.match(event)) == sorted(judge.match(event))
    assert pauses.count > 100


@pytest.mark.kernel
def test_a_handler_that_asks_while_its_thread_waits_for_a_change_does_not_hang():
    engine, over, wrong = Engine("dynamic"), threading.Event(), []
    engine.subscribe_many((at, "x = 1") for at in range(20))

    def change() -> None:
        try:
            while not over.is_set():
                engine.subscribe_many((at, "x = 1") for at in range(20, 40))
                engine.unsubscribe_many(range(20, 40))
        except BaseException as error:
            wrong.append(error)

    def ask(*_: object) -> None:
        for what in (lambda: len(engine), lambda: engine.subscribe(1_000, "y = 1", replace=True)):
            with suppress(EngineBusyError):
                what()

    before = signal.signal(signal.SIGALRM, ask)
    thread = threading.Thread(target=change)
    thread.start()
    try:
        until, chance = time.monotonic() + 3.0, random.Random(1)
        while time.monotonic() < until:
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0002, 0.005))
            assert engine.match_batch([{"x": 1}] * 3).num_rows in (60, 120)
            assert len(engine.match({"x": 1})) in (20, 40)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        over.set()
        thread.join(60)
    assert not thread.is_alive()
    assert not wrong


class Asking(dict):
    """An event that asks the engine while it is matched."""

    def __init__(self, ask: Callable[[], object]) -> None:
        super().__init__(x=1)
        self._ask = ask

    def items(self):
        self._ask()
        return super().items()


@pytest.mark.kernel
def test_who_asks_for_ids_in_the_middle_of_a_match_sees_no_half_of_a_change(pauses):
    engine, seen, refused = Engine("dynamic"), [], []
    engine.subscribe_many((f"s{at}", "x = 1") for at in range(20))

    def ask() -> None:
        try:
            seen.append(sorted(engine) == sorted(f"s{at}" for at in range(20)))
        except EngineBusyError as error:
            refused.append(str(error))

    def match() -> None:
        other = threading.Thread(target=lambda: engine.match(Asking(ask)))
        other.start()
        other.join(60)

    pauses.work = match
    engine.unsubscribe_many([f"s{at}" for at in range(20)])
    pauses.work = lambda: None
    assert not seen
    assert "in the middle of a match" in refused[0]
    engine.match(Asking(ask))
    assert seen == [False]


@pytest.mark.kernel
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_forked_in_the_middle_of_a_change_has_all_of_it_or_nothing(pauses):
    engine, told = Engine("dynamic"), []
    engine.subscribe_many((at, "x = 1") for at in range(20))

    def child() -> bool:
        held = sorted(engine)
        return held in ([], [*range(20)]) and sorted(engine.match({"x": 1})) == held and len(engine) == len(held)

    def fork() -> None:
        pid = os.fork()
        if not pid:
            os._exit(0 if child() else 1)
        told.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

    def match() -> None:
        if len(told) < 12:
            other = threading.Thread(target=lambda: engine.match(Asking(fork)))
            other.start()
            other.join(60)

    pauses.work = match
    engine.unsubscribe_many(range(20))
    assert told
    assert set(told) == {0}


@pytest.mark.kernel
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("at", [4, 25, 60])
def test_a_child_forked_in_the_middle_of_a_match_finishes_that_as_it_was_begun(pauses, at):
    engine, children = Engine("dynamic"), list[int]()
    engine.subscribe_many((id, "x = 1") for id in range(30))
    match, begun = engine._matcher.match_unchecked, threading.Event()

    def fork(event):
        found = match(event)
        begun.set()
        while not engine._door.closed:
            time.sleep(0.001)
        children.append(os.fork())
        if not children[0]:  # as a handler of signals might
            asked.append(len(engine) == len(engine.match({"x": 1})) in (30, 50))
            with suppress(EngineBusyError):
                engine.unsubscribe_many(range(20))
                asked.append(False)
        return found

    def look() -> None:
        try:
            engine._matcher.match_unchecked = fork
            found = sorted(engine.match({"x": 1}))
            asked.append(found == [*range(30)] and len(engine) == len(engine.match({"x": 1})) in (30, 50))
        finally:
            if not children[0]:
                os._exit(0 if asked == [True, True] else 1)

    def begin() -> None:
        if pauses.count == at:
            threads.append(threading.Thread(target=look))
            threads[0].start()
            assert begun.wait(60)
            del engine._matcher.match_unchecked

    asked, threads = list[bool](), list[threading.Thread]()
    pauses.count, pauses.work = 0, begin
    engine.subscribe_many(((id, "x = 1 AND y IS NULL") for id in range(10, 50)), replace=True)
    threads[0].join(60)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0
    assert sorted(engine.match({"x": 1})) == [*range(50)]


@pytest.mark.kernel
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_forked_in_the_middle_of_a_portion_makes_the_rest_of_the_change(monkeypatch):
    engine, children, is_whole = Engine("dynamic"), list[int](), False
    engine.subscribe_many((id, "x = 1") for id in range(30))
    enter = engine._matcher._enter_some

    def fork(*given) -> None:
        enter(*given)
        if not children:
            children.append(os.fork())
            if not children[0]:  # as a handler of signals might
                with suppress(EngineBusyError):
                    refused.append(not engine.match({"x": 1}))

    refused = list[bool]()
    monkeypatch.setattr(engine._matcher, "_enter_some", fork)
    try:
        engine.subscribe_many(((id, "x = 1") for id in range(10, 50)), replace=True)
        is_whole = sorted(engine.match({"x": 1})) == sorted(engine) == [*range(50)] and not refused
    finally:
        if not children[0]:
            os._exit(0 if is_whole else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0
    assert is_whole


@pytest.mark.kernel
def test_two_interrupts_one_as_the_first_is_settled_leave_all_or_nothing(pauses, monkeypatch):
    settle = Engine._settle
    for at in (3, 7, 11, 19, 35):
        engine = Engine("dynamic", adapt=False)
        engine.subscribe_many((id, "x = 1") for id in range(20))
        pauses.count, interrupted = 0, []

        def interrupt(at=at) -> None:
            if pauses.count == at:
                raise KeyboardInterrupt

        def settle_later(self, interrupted=interrupted) -> None:
            if self._change is not None and not interrupted:
                interrupted.append(True)
                raise KeyboardInterrupt
            settle(self)

        pauses.work = interrupt
        with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
            patched.setattr(Engine, "_settle", settle_later)
            engine.unsubscribe_many(range(20))
        pauses.work = lambda: None
        held = sorted(engine)
        assert held in ([], [*range(20)])
        assert [id for id in range(20) if id in engine] == held == sorted(engine.match({"x": 1}))


def test_turns_are_as_they_were_whenever_an_interrupt_comes(monkeypatch):
    before, turns = sys.getswitchinterval(), locking._QuickTurns()
    for at in range(3):
        calls = []

        def interrupted(value: float, calls=calls, at=at, sys_set=sys.setswitchinterval) -> None:
            sys_set(value)
            calls.append(value)
            if len(calls) == at:
                raise KeyboardInterrupt

        with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
            patched.setattr(sys, "setswitchinterval", interrupted)
            try:
                turns.begin("a change")
                assert sys.getswitchinterval() == pytest.approx(turns.INTERVAL)
            finally:
                turns.end("a change")
        assert sys.getswitchinterval() == before
    turns.begin("one")
    turns.begin("another")
    turns.end("one")
    assert sys.getswitchinterval() == pytest.approx(turns.INTERVAL)
    sys.setswitchinterval(0.02)
    turns.end("another")
    assert sys.getswitchinterval() == pytest.approx(0.02)  # as somebody wanted it meanwhile
    sys.setswitchinterval(before)


def test_turns_are_as_they_were_though_an_interrupt_comes_before_the_first_line_of_their_end(monkeypatch):
    before, door, ends = sys.getswitchinterval(), Door(), list[object]()
    end = locking._TURNS.end

    def interrupted(change: object) -> None:
        ends.append(change)
        if len(ends) == 1:
            raise KeyboardInterrupt
        end(change)

    monkeypatch.setattr(locking._TURNS, "end", interrupted)
    with pytest.raises(KeyboardInterrupt), door.turn():
        door.in_portions(iter([ALONE]), Pace())
    assert sys.getswitchinterval() == before


@pytest.mark.kernel
def test_auto_compares_beside_those_who_match(monkeypatch):
    engine, doors = Engine("auto", small=5, many=10), []
    engine.subscribe_many((at, f"x = {at % 7} AND y = {at % 5}") for at in range(60))
    compare, index_of = AutoMatcher._compare, AutoMatcher._index_of

    def note(work):
        def noted(*given):
            doors.append(engine._door.closed)
            return work(*given)

        return noted

    monkeypatch.setattr(AutoMatcher, "_compare", note(compare))
    engine.learn([{"x": at % 7, "y": at % 5} for at in range(2_000)])
    monkeypatch.setattr(AutoMatcher, "_index_of", note(index_of))
    few = Engine("auto", small=5)
    few.subscribe_many((at, "x = 1") for at in range(4))
    few.subscribe_many((at, "x = 1") for at in range(4, 9))
    assert doors == [False, False]
    assert len(few.match({"x": 1})) == 9


def test_a_door_remembers_threads_that_have_ended(monkeypatch):
    monkeypatch.undo()
    door = Door()
    assert door.is_quiet()
    helper = threading.Thread(target=lambda: door.reading(helps=True))
    helper.start()
    helper.join()
    assert door.is_quiet()
    other = threading.Thread(target=door.reading)
    other.start()
    other.join()
    gc.collect()
    assert not door.is_quiet()


@pytest.mark.kernel
def test_portions_are_of_clauses_and_what_was_read_is_not_kept(pauses):
    engine = Engine("dynamic")
    rows = [(at, " AND ".join(f"(p{each} = {at} OR q{each} = {at})" for each in range(4))) for at in range(10)]
    engine.subscribe_many(rows)
    assert pauses.count > 40
    assert engine._matcher._read == (None, [])
    assert engine.match({f"p{each}": 3 for each in range(4)}) == [3]


def test_portions_are_as_large_as_takes_as_long_as_one_should(monkeypatch):
    monkeypatch.undo()
    pace, sizes = Pace(0.001), list[int]()
    for part in pace.parts(100_000):
        sizes.append(part.stop - part.start)
        pace.took = 1e-6 * sizes[-1] + 2e-4  # what each portion costs, and what each item
    assert sum(sizes) == 100_000
    assert sizes[0] == portions.FIRST
    assert 500 < max(sizes) < 1_000
    pace.took = 1.0
    assert all(part.stop - part.start >= portions.LEAST for part in list(pace.parts(1_000))[:-1])
    assert list(Pace(None).parts(10**9)) == [slice(0, 10**9)]


@pytest.mark.kernel
def test_a_thread_that_has_matched_does_not_wait_for_all_of_a_large_change(monkeypatch):
    monkeypatch.undo()
    engine, over, done = Engine("dynamic"), threading.Event(), []
    engine.subscribe_many((at, f"x = {at % 50} AND y = {at % 30}") for at in range(2_000))
    engine.match({"x": 1})
    took = []
    run = Door._do_some

    def do(self, needs, *given):
        found = run(self, needs, *given)
        took.append(needs)
        return found

    def match() -> None:
        while not over.is_set():
            done.append(len(engine.match({"x": 7, "y": 7})))

    monkeypatch.setattr(Door, "_do_some", do)
    thread = threading.Thread(target=match)
    thread.start()
    while not done:
        time.sleep(0.001)
    before = sys.getswitchinterval()
    engine.subscribe_many((at, f"x = {at % 50} AND y = {at % 30}") for at in range(2_000, 12_000))
    over.set()
    thread.join()
    assert len(took) > 20
    assert set(done) <= {14, 80}
    assert sys.getswitchinterval() == before


def test_a_door_opens_between_portions_and_is_closed_within_those_that_want_to_be_alone():
    door, seen = Door(), list[bool]()

    def work() -> Portions:
        for needs in (BESIDE, BESIDE, ALONE):
            seen.append(door.closed)
            yield needs
        seen.append(door.closed)

    with door.turn():
        door.in_portions(work(), Pace())
    assert seen == [True, False, False, True]
    assert (door.closed, door.is_shut) == (False, False)


def test_the_more_wait_the_more_is_done_before_they_are_let_in(monkeypatch):
    monkeypatch.undo()
    door, clock = Door(), iter(range(1_000))  # each look at the clock is a second later than the one before
    monkeypatch.setattr(locking, "time", SimpleNamespace(monotonic=lambda: float(next(clock)), sleep=time.sleep))
    with door.turn():
        counts = []
        for crowd in (1, 2, 5):
            work = iter([ALONE] * 20)
            door._do_some(ALONE, work, Pace(4.0), crowd)
            counts.append(20 - len(list(work)))
    assert counts == [3, 5, 11]
    assert not door.closed


def test_what_is_done_beside_others_is_never_done_alone():
    door, seen = Door(), list[bool]()

    def work() -> Portions:
        for needs in (ALONE, ALONE, BESIDE, BESIDE, ALONE):
            yield needs
            seen.append(door.closed)

    with door.turn():
        door.in_portions(work(), Pace(1e9))
    assert seen == [True, True, False, False, True]


@pytest.mark.kernel
@pytest.mark.parametrize("others", ["", " AND s LIKE 'k%'"])
def test_labels_bands_and_room_are_made_beside_those_who_match(monkeypatch, others):
    engine, doors, bound = Engine("dynamic"), list[tuple[str, bool]](), list[int]()
    engine.subscribe_many((at, f"x > {at}.5 AND y < {at * 7}") for at in range(400))

    def note(kind, name):
        work = getattr(kind, name)

        def noted(*given):
            doors.append((name, engine._door.closed))
            return work(*given)

        monkeypatch.setattr(kind, name, noted)

    for kind, name in (
        (ConstantOrder, "expect"),
        (Intervals, "recuts"),
        (Intervals, "bounds_of_new"),
        (ClusterStore, "make_room_beside"),
        (PredicateColumns, "make_room"),
    ):
        note(kind, name)
    monkeypatch.setattr(ClusterStore, "runs_short", lambda _: all(name != "make_room_beside" for name, _ in doors))
    bind = PredicateColumns.bound
    monkeypatch.setattr(PredicateColumns, "bound", lambda self, *given: (bound.append(1), bind(self, *given))[1])
    engine.subscribe_many((1_000 + at, f"x > {at} AND y < {at * 7 + 3}{others}") for at in range(300))
    assert {name for name, _ in doors} == {"expect", "recuts", "bounds_of_new", "make_room_beside", "make_room"}
    assert not any(closed for _, closed in doors)
    assert len(bound) == (3 if others else 2)  # once for each dimension, whatever comes there
    found = engine.match({"x": 50.2, "y": 5_000_000, "s": "kk"})
    assert found == []
    found = engine.match({"x": 50.2, "y": -1, "s": "kk"})
    assert sorted(found) == [*range(50), *range(1_000, 1_051)]


@pytest.mark.kernel
def test_constants_in_order_that_others_replace_are_freed_while_nobody_waits():
    engine, doors = Engine("dynamic"), list[bool]()
    engine.subscribe_many((at, f"s STARTS WITH 'k{at}'") for at in range(200))

    class Freed(list):
        def __del__(self):
            doors.append(engine._door.closed)

    (dimension,) = engine._matcher._predicates.dimensions
    dimension.order._sorted = Freed(dimension.order._sorted)
    engine.subscribe_many((200 + at, f"s STARTS WITH 'k{at}.'") for at in range(200))
    assert doors == [False]
    assert sorted(engine.match({"s": "k77.2"})) == [7, 77, 277]


def _looks_into(at: int) -> str:
    """One of several sorts of predicates, none of them said twice."""
    return [
        f"s CONTAINS '{at}.'",
        f"s LIKE '%{at}._1%'",
        f"NOT (s ENDS WITH '{at}.')",
        f"p WITHIN BOX({at % 13}, 0, {at % 13 + 1}, {at})",
    ][at % 4]


@pytest.mark.kernel
@pytest.mark.parametrize("algorithm", ["auto", "dynamic", "propagation"])
def test_structures_for_texts_and_shapes_are_made_beside_those_who_match(algorithm, pauses, monkeypatch):
    monkeypatch.setattr(segments, "WAITING", 4)
    engine, doors = Engine(algorithm, **({"small": 5} if algorithm == "auto" else {})), list[bool]()
    engine.subscribe_many((at, _looks_into(at)) for at in range(60))
    event, seen = {"s": "xx 7.41.33.50.100.", "p": Point(7.5, 0.5)}, list[list[object]]()
    for kind in (PatternTrie, PackedRectangles):

        def make(*given, _make=kind.__init__):
            doors.append(engine._door.closed)
            _make(*given)

        monkeypatch.setattr(kind, "__init__", make)
    pauses.work = lambda: seen.append(sorted(engine.match(event)))
    for change in (
        lambda: engine.subscribe_many(((at, _looks_into(at)) for at in range(20, 200)), replace=True),
        lambda: engine.unsubscribe_many(range(3, 150)),
        *(lambda at=at: engine.subscribe(at, _looks_into(at)) for at in range(3, 23)),
        *(lambda at=at: engine.unsubscribe(at) for at in range(150, 200)),
    ):
        before, made = sorted(engine.match(event)), len(doors)
        seen.clear()
        change()
        after = sorted(engine.match(event))
        assert after == sorted(at for at in engine if truth(parse(_looks_into(at)), event) is True)
        assert all(each in (before, after) for each in seen)
        assert seen or len(doors) == made
    assert len(doors) > 20
    assert not any(doors)


@pytest.mark.kernel
def test_changes_are_rehearsed_before_the_door_is_closed(monkeypatch):
    engine, doors = Engine("dynamic"), list[bool]()
    engine.subscribe_many((at, f"x > {at}") for at in range(20))
    monkeypatch.setattr(type(engine._matcher), "rehearse", lambda _: doors.append(engine._door.closed))
    engine.unsubscribe(3)
    assert doors == [False]
    monkeypatch.undo()
    type(engine._matcher).rehearse.__wrapped__(type(engine._matcher))
    assert len(engine.match({"x": 100})) == 19


@pytest.mark.kernel
@pytest.mark.parametrize("change", ["subscribe_many", "unsubscribe_many", "learn"])
def test_what_a_lookup_costs_is_not_measured_behind_a_closed_door(change, monkeypatch):
    engine, doors = Engine("dynamic", patience=150), list[bool]()
    engine.subscribe_many((at, f"a = {at % 9} AND b = {at % 5}") for at in range(100))
    for module in (dynamic, keyed):
        monkeypatch.setattr(module, "calibrated", lambda: (doors.append(engine._door.closed), USUAL)[1])
    if change == "subscribe_many":
        engine.subscribe_many((at, f"a = {at % 9} AND b = {at % 5}") for at in range(100, 200))
    elif change == "unsubscribe_many":
        engine.unsubscribe_many(range(80))
    else:
        engine.learn([{"a": 1, "b": 1}] * 20)
    assert doors
    assert not doors[0]  # it is known from then on


@pytest.mark.kernel
def test_changes_of_flat_integers_are_rehearsed_before_there_are_any(monkeypatch):
    engine, doors = Engine("dynamic"), list[bool]()
    engine.subscribe(0, "x = 1")
    monkeypatch.setattr(identities, "_rehearse", lambda: doors.append(engine._door.closed))
    engine.subscribe(1, "x = 1")
    assert not doors
    engine.subscribe_many((at, "x = 1") for at in range(2, identities.FEW + 2))
    assert doors == [False]
    assert len(engine.match({"x": 1})) == identities.FEW + 2


@pytest.mark.kernel
@pytest.mark.parametrize("few", [0, 3])
def test_who_becomes_an_index_in_a_change_is_rehearsed_before_the_door_is_closed(few, monkeypatch):
    engine, doors = Engine("auto", small=5), list[bool]()
    monkeypatch.setattr(DynamicMatcher, "rehearse", classmethod(lambda _: doors.append(engine._door.closed)))
    engine.subscribe_many((at, "x = 1") for at in range(few))
    assert not doors
    engine.subscribe_many((at, "x = 1") for at in range(few, 20))
    assert doors == [False]
    assert sorted(engine.match({"x": 1})) == [*range(20)]


@pytest.mark.kernel
def test_structures_that_are_replaced_are_freed_beside_those_who_match(monkeypatch):
    monkeypatch.setattr(segments, "WAITING", 4)
    engine, doors = Engine("dynamic"), list[bool]()
    for kind in (PatternTrie, PackedRectangles):

        def make(*given, _make=kind.__init__):
            weakref.finalize(given[0], lambda: doors.append(engine._door.closed))
            _make(*given)

        monkeypatch.setattr(kind, "__init__", make)
    for at in range(60):
        engine.subscribe(at, _looks_into(at))
    one_by_one = len(doors)
    engine.subscribe_many((at, _looks_into(at)) for at in range(60, 200))
    assert len(doors) > one_by_one + 5 > 10
    assert not any(doors)


@pytest.mark.kernel
def test_a_change_that_has_structures_made_is_followed_by_a_look_at_the_tables(monkeypatch):
    monkeypatch.setattr(segments, "WAITING", 0)
    engine, arranged, arrange = Engine("dynamic"), [], DynamicMatcher._rearrange_in_portions
    arranging = lambda self, *given: (arranged.append(given[:2]), arrange(self, *given))[1]  # noqa: E731
    monkeypatch.setattr(DynamicMatcher, "_rearrange_in_portions", arranging)
    engine.subscribe(0, "s CONTAINS 'a'")
    engine.subscribe(1, "x = 1")
    engine.unsubscribe(0)
    assert arranged == [(1, 0), (1, 0), (0, 1)]
