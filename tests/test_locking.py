"""The lock: readers at once, changes alone, nobody starved, nothing left behind."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import pytest

from harken.errors import EngineBusyError
from harken.locking import FORK_PATIENCE, KEEPS, Door, HeldForFork, SharedLock, _Forks, watch_forks
from harken.portions import ALONE, Pace, Portions


@contextmanager
def reading(door: Door) -> Iterator[None]:
    reader = door.reading()
    reader.inside += 1
    try:
        yield
    finally:
        reader.inside -= 1


def read(door: Door) -> None:
    with reading(door):
        if door.closed:
            door.step_aside(door.open)


def change(door: Door) -> None:
    with door.turn():
        door.close()
        door.open()


def in_thread(act, *given) -> threading.Thread:
    thread = threading.Thread(target=act, args=given, daemon=True)
    thread.start()
    return thread


def test_readers_read_at_the_same_time():
    door, meeting = Door(), threading.Barrier(3, timeout=60)

    def meet() -> None:
        with reading(door):
            assert not door.closed
            meeting.wait()

    threads = [in_thread(meet) for _ in range(2)]
    meet()
    for thread in threads:
        thread.join(60)
    assert not meeting.broken


def test_a_change_waits_for_readers_and_readers_for_the_change():
    door, begun, done = Door(), threading.Event(), list[str]()

    def read_slowly() -> None:
        with reading(door):
            begun.set()
            time.sleep(0.05)
            done.append("read")

    def change_slowly() -> None:
        with door.turn():
            door.close()
            done.append("alone")
            later.append(in_thread(lambda: (read(door), done.append("later"))))
            time.sleep(0.05)
            done.append("changed")
            door.open()

    later: list[threading.Thread] = []
    reader = in_thread(read_slowly)
    begun.wait(60)
    change_slowly()
    for thread in (reader, *later):
        thread.join(60)
    assert done == ["read", "alone", "changed", "later"]


def test_neither_readers_nor_changes_are_starved():
    door, over, counts = Door(), threading.Event(), {"read": 0, "change": 0}

    def repeat(name: str, act) -> None:
        while not over.is_set():
            act(door)
            counts[name] += 1

    threads = [in_thread(repeat, name, act) for name, act in (("read", read), ("read", read), ("change", change))]
    deadline = time.monotonic() + 60
    while min(counts.values()) < 50 and time.monotonic() < deadline:
        time.sleep(0.01)
    over.set()
    for thread in threads:
        thread.join(60)
    assert min(counts.values()) >= 50


def test_who_waits_for_one_change_is_not_forgotten_by_another_that_waits_as_well(monkeypatch):
    monkeypatch.setattr("harken.locking.PATIENCE", 0.02)
    door, over, looked = Door(), threading.Event(), list[int]()

    def portions() -> Portions:
        begun.set()
        over.wait(60)
        for number in range(200):
            time.sleep(0.002)
            done.append(number)
            yield ALONE

    def change_in_portions() -> None:
        with door.turn():
            door.in_portions(portions(), Pace(1e-9))

    def come_in() -> None:
        with reading(door):
            if door.closed:
                door.wait_outside(door.open)
            looked.append(len(done))

    begun, done = threading.Event(), list[int]()
    threads = [in_thread(change_in_portions)]
    begun.wait(60)
    threads.append(in_thread(come_in))
    while not door._waiting:
        time.sleep(0.001)
    threads.append(in_thread(change, door))
    time.sleep(0.2)
    over.set()
    for thread in threads:
        thread.join(60)
    assert looked[0] <= 2


def test_readers_give_way_every_now_and_then_while_others_change_and_only_then(monkeypatch):
    door, slept = Door(), list[float]()
    monkeypatch.setattr("harken.locking.time", SimpleNamespace(sleep=slept.append, monotonic=time.monotonic))

    def read_often() -> int:
        slept.clear()
        for _ in range(2 * KEEPS):
            if door.changers:
                door.reading().give_way()
            read(door)
        return len(slept)

    assert read_often() == 0
    with door.changing():
        assert read_often() == 2
        with suppress(ZeroDivisionError), door.changing():
            raise ZeroDivisionError
    assert read_often() == 0


def test_who_ends_in_the_middle_of_a_change_is_given_way_to_no_more():
    door, left = Door(), list[object]()

    def change_for_ever() -> None:
        left.append(door.changing())
        left[0].__enter__()

    in_thread(change_for_ever).join(60)
    gc.collect()
    assert not door.changers


def test_a_door_left_closed_is_settled_and_opened_by_the_next_to_come():
    door, settled = Door(), list[bool]()
    with door.turn():
        door.close()

    def settle() -> None:
        settled.append(True)
        door.open()

    with reading(door):
        assert door.closed
        door.step_aside(settle)
    assert settled == [True]
    assert not door.closed
    change(door)


def test_what_settling_raises_reaches_the_reader_and_leaves_no_lock_held():
    door = Door()
    with door.turn():
        door.close()
    with pytest.raises(ZeroDivisionError), reading(door):
        door.step_aside(lambda: 1 / 0)
    thread = in_thread(change, door)
    thread.join(60)
    assert not thread.is_alive()


def test_a_reader_that_reads_within_reads_on_though_a_change_waits():
    door, closed = Door(), threading.Event()

    def change_meanwhile() -> None:
        with door.turn():
            door.close()
            closed.set()
            door.open()

    with reading(door):
        thread = in_thread(change_meanwhile)
        while not door.closed:
            time.sleep(0.001)
        read(door)
        assert not closed.is_set()
    thread.join(60)
    assert closed.is_set()


def test_a_handler_that_reads_before_its_thread_has_stepped_aside_waits_as_well(monkeypatch):
    door, working, changed, seen = Door(), threading.Event(), threading.Event(), list[bool]()
    is_at_work = [False]

    def change_slowly() -> None:
        with door.turn():
            door.close()
            is_at_work[0] = True
            working.set()
            changed.wait(0.5)
            is_at_work[0] = False
            door.open()

    def look() -> None:
        door.look(lambda: seen.append(is_at_work[0]), door.open)

    def interrupted(settle) -> None:
        monkeypatch.undo()
        look()
        door.step_aside(settle)

    monkeypatch.setattr(door, "step_aside", interrupted)
    thread = in_thread(change_slowly)
    assert working.wait(60)
    look()
    changed.set()
    thread.join(60)
    assert seen == [False, False]
    assert not door.reading().inside
    change(door)


def test_a_change_within_reading_or_within_a_change_is_refused():
    door = Door()
    with reading(door), pytest.raises(EngineBusyError):
        door.turn()
    with door.turn(), pytest.raises(EngineBusyError):
        door.turn()
    with door.turn():
        door.close()
        with pytest.raises(EngineBusyError), reading(door):
            door.step_aside(door.open)
        door.open()
    change(door)


def test_the_locks_of_threads_that_have_ended_are_gone():
    door = Door()
    for _ in range(20):
        in_thread(read, door).join(60)
    gc.collect()
    assert len(door._readers) <= 2
    assert sum(each() is not None for each in door._readers) <= 1


# ---------------------------------------------------------------- signal handlers, and forks


def is_free(door: Door) -> bool:
    """Whether another thread can change something."""
    thread = in_thread(change, door)
    thread.join(10)
    return not thread.is_alive()


def test_a_fork_does_not_wait_for_a_change_that_waits_for_its_own_thread():
    door, done = Door(), list[str]()

    def change_slowly() -> None:
        with door.turn():
            door.close()
            done.append("changed")
            door.open()

    reader = door.reading()
    reader.inside += 1  # as a handler of signals that comes in the middle of a match
    changing = in_thread(change_slowly)
    while not door.closed:
        time.sleep(0.001)
    began = time.monotonic()
    _Forks.before()
    _Forks.after(child=False)
    assert time.monotonic() - began < FORK_PATIENCE / 2
    assert done == []
    reader.inside -= 1
    changing.join(60)
    assert done == ["changed"]
    assert is_free(door)


def test_a_fork_within_a_reading_within_a_turn_leaves_the_turn_held():
    door = Door()
    with door.turn():
        reader = door.reading()
        reader.inside += 1  # as a handler of signals that matches, and is met by one that forks
        _Forks.before()
        _Forks.after(child=False)
        assert door._changes._is_owned()
        reader.inside -= 1
    assert is_free(door)


def test_a_fork_waits_for_no_change_for_ever(monkeypatch):
    monkeypatch.setattr("harken.locking.FORK_PATIENCE", 0.05)
    door, held, over = Door(), threading.Event(), threading.Event()

    def change_for_ever() -> None:
        with door.turn():
            held.set()
            over.wait(60)

    changing = in_thread(change_for_ever)
    held.wait(60)
    _Forks.before()
    _Forks.after(child=False)
    over.set()
    changing.join(60)
    assert is_free(door)


def test_a_shared_lock_lets_its_thread_in_again_and_is_nobodys_in_a_child():
    shared, over = SharedLock(), threading.Event()
    held = threading.Event()

    def hold() -> None:
        with shared.lock, shared.lock:
            held.set()
            over.wait(60)

    thread = in_thread(hold)
    held.wait(60)
    shared.after_fork(child=False)
    assert not shared.lock.acquire(blocking=False)
    shared.after_fork(child=True)
    assert shared.lock.acquire(blocking=False)
    over.set()
    thread.join(60)


class Interrupted:
    """Something that is interrupted once, before a fork or after it."""

    def __init__(self, where: str) -> None:
        self.where = where
        watch_forks(self)

    def before_fork(self) -> None:
        self._interrupt("before")

    def after_fork(self, *, child: bool) -> None:
        self._interrupt("after")

    def _interrupt(self, where: str) -> None:
        if self.where == where:
            self.where = "nowhere"
            raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["before", "after"])
def test_an_interrupt_while_a_process_forks_leaves_no_lock_held(where):
    first = Door()
    interrupted = Interrupted(where)
    later = Door()
    for hook in (_Forks.before, lambda: _Forks.after(child=False)):
        try:
            hook()
        except KeyboardInterrupt:
            continue  # the interpreter prints it, and forks all the same
    assert interrupted.where == "nowhere"
    assert is_free(first)
    assert is_free(later)


def test_a_door_that_was_not_waited_for_to_the_end_is_let_be():
    door, held, over = Door(), threading.Event(), threading.Event()

    def change_slowly() -> None:
        with door.turn():
            held.set()
            over.wait(60)

    thread = in_thread(change_slowly)
    held.wait(60)
    door.after_fork(child=False)  # as after an interrupt
    over.set()
    thread.join(60)
    assert is_free(door)


class Forking:
    """Something that forks once itself, before a fork, as a handler of signals might that comes while it waits."""

    def __init__(self) -> None:
        self.has_forked = False
        watch_forks(self)

    def before_fork(self) -> None:
        if not self.has_forked:
            self.has_forked = True
            _Forks.before()
            _Forks.after(child=False)

    def after_fork(self, *, child: bool) -> None:
        return


def test_a_fork_while_another_one_waits_in_the_same_thread_leaves_no_lock_held():
    first, forking, later = Door(), Forking(), Door()
    _Forks.before()
    _Forks.after(child=False)
    assert forking.has_forked
    assert is_free(first)
    assert is_free(later)


def test_a_fork_that_waited_in_vain_while_another_one_waits_in_the_same_thread_leaves_no_lock_held():
    held = HeldForFork()

    class Lock:
        """A lock that is not to be had at first, when a handler forks that comes while its thread waits."""

        asked = count = 0

        def acquire(self, *, timeout: float) -> bool:
            self.asked += 1
            if self.asked == 1:
                held.take(self, timeout)
                held.give_back(self)
            self.count += self.asked != 2
            return self.asked != 2

        def release(self) -> None:
            self.count -= 1

        def _is_owned(self) -> bool:
            return self.count > 0

    lock = Lock()
    for _ in range(2):
        held.take(lock, 1)
        held.give_back(lock)
        assert lock.count == 0


@pytest.mark.parametrize("child", [False, True])
@pytest.mark.parametrize("where", ["before", "after"])
def test_a_fork_within_a_turn_leaves_the_turn_held_whenever_an_interrupt_comes(where, child, monkeypatch):
    door, original = Door(), getattr(Door, f"{where}_fork")

    def interrupted(self: Door, **given: bool) -> None:
        if self is not door:
            return
        if where == "after":  # after the call, as interrupts come there, and before it is known to be done
            original(self, **given)
        monkeypatch.undo()
        raise KeyboardInterrupt

    with door.turn():
        monkeypatch.setattr(Door, f"{where}_fork", interrupted)
        for hook in (_Forks.before, lambda: door.after_fork(child=True) if child else _Forks.after(child=False)):
            with suppress(KeyboardInterrupt):  # the interpreter prints it, and forks all the same
                hook()
        assert door._changes._is_owned()
    assert is_free(door)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_forked_by_a_handler_while_its_thread_waits_for_a_change_waits_no_more(monkeypatch):
    monkeypatch.setattr("harken.locking.FORK_PATIENCE", 0.05)
    door, held, over, children = Door(), threading.Event(), threading.Event(), list[int]()

    def change_slowly() -> None:
        with door.turn():
            door.close()
            held.set()
            over.wait(60)
            door.open()

    def fork(*_: object) -> None:
        children.append(os.fork())
        if not children[0]:
            signal.alarm(10)

    changing = in_thread(change_slowly)
    held.wait(60)
    before = signal.signal(signal.SIGUSR1, fork)
    in_thread(
        lambda: (while_empty(door._aside), os.kill(os.getpid(), signal.SIGUSR1), while_empty(children), over.set())
    )
    try:
        read(door)
    finally:
        if not children[0]:
            os._exit(0)
        signal.signal(signal.SIGUSR1, before)
    changing.join(60)
    assert os.waitpid(children[0], 0)[1] == 0


def while_empty(some: Collection[object]) -> None:
    while not some:
        time.sleep(0.001)


def test_a_change_may_make_another_door_while_a_fork_waits_for_the_change():
    door, forking, done = Door(), threading.Event(), list[str]()

    def change_slowly() -> None:
        with door.turn():
            forking.wait(60)
            time.sleep(0.05)
            Door()
            done.append("made")

    def fork() -> None:
        forking.set()
        _Forks.before()
        done.append("waited")
        _Forks.after(child=False)

    threads = [in_thread(change_slowly), in_thread(fork)]
    for thread in threads:
        thread.join(10)
    assert done == ["made", "waited"]
    assert is_free(door)


def test_a_fork_waits_for_doors_in_the_order_in_which_they_were_made():
    doors = [Door() for _ in range(50)]
    living = [each for each in _Forks.living() if each in doors]
    assert living == doors


def test_what_is_gone_is_not_told_of_forks():
    before = len(_Forks.watched)
    doors = [Door() for _ in range(20)]
    assert len(_Forks.watched) == before + 20
    doors.clear()
    gc.collect()
    assert len(_Forks.watched) <= before
