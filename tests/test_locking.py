"""The lock: readers at once, changes alone, nobody starved, nothing left behind."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harken.errors import EngineBusyError
from harken.locking import Door


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
