"""A lock that costs readers next to nothing, so that an engine can guard itself.

Many threads read (match) at the same time and one at a time changes, alone. A reader takes only a lock of its
own, which nobody else wants while nothing is changed: readers share no cache line. Whoever changes **closes** the
door and then passes through every reader's lock once; when it has, all readers that were in are out, and whoever
comes now sees the closed door and steps aside until the change is over.

**Fair.** Readers that find the door closed wait, so that a change is not starved by readers; the next change lets
those that waited in first, so that readers are not starved by changes.

**Interrupts.** Locks are held by `with` statements on locks written in C only, where an interrupt cannot come
between taking one and being bound to give it back. An interrupted change may leave the door closed: the next to
come in settles what was left undone and opens it.

**Threads that end** take their lock with them. **Forks** wait for a running change, so that the child has a whole
engine; it starts with new locks, as nobody is left to release the old ones.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import ClassVar, Protocol

from harken.errors import EngineBusyError

PAUSE = 50e-6
"""Seconds between looks at whether those who stepped aside are in."""

PATIENCE = 2_000
"""Looks until they are taken not to come."""


class OwnedLock(Protocol):
    """A lock that one thread may take several times: `threading.RLock`, which can say more than it is typed to."""

    def acquire(self) -> bool:
        """Take it, once more."""

    def release(self) -> None:
        """Give it back, once."""

    def __enter__(self) -> bool: ...
    def __exit__(self, *_: object) -> None: ...
    def _is_owned(self) -> bool: ...


class Door:
    """Lets any number of threads read at once, and one at a time change, alone.

    To read: `with door.reading():`, and first thing in there, `if door.closed: door.step_aside(settle)`. To
    change: `with door.turn():`, which keeps other changes out but no readers, and then `close` and `open`.
    `settle` makes good whatever an interrupted change left, and opens the door.
    """

    def __init__(self) -> None:
        self._start_anew()
        _Forks.watch(self)

    def _start_anew(self) -> None:
        self.closed = False
        self._own = threading.local()
        self._readers: weakref.WeakSet[OwnedLock] = weakref.WeakSet()
        self._aside: set[int] = set()
        self._registering = threading.Lock()
        self._changes: OwnedLock = threading.RLock()  # type: ignore[assignment]  # see OwnedLock

    def reading(self) -> OwnedLock:
        """The lock of this thread, to be held while it reads."""
        try:
            return self._own.lock  # type: ignore[no-any-return]  # set below
        except AttributeError:
            return self._new_reader()

    def _new_reader(self) -> OwnedLock:
        lock: OwnedLock = threading.RLock()  # type: ignore[assignment]
        with self._registering:
            self._readers.add(lock)
        self._own.lock = lock
        return lock

    def step_aside(self, settle: Callable[[], None]) -> None:
        """Wait, holding the lock of `reading`, until the door is open; within an earlier reading, go ahead."""
        own = self.reading()
        if self._changes._is_owned():
            raise EngineBusyError("the engine is in the middle of a change that this very thread makes")
        try:
            own.release()
            if not own._is_owned():  # else whoever closed the door waits for this thread
                self._aside.add(id(own))
                with self._changes:
                    if self.closed:
                        settle()
                    own.acquire()  # before the next change, which would close the door again
                return
        finally:
            self._aside.discard(id(own))
            if not own._is_owned():
                own.acquire()
        own.acquire()

    def turn(self) -> OwnedLock:
        """What to hold in order to change, or to have no changes; readers that had to wait come in first."""
        if self._changes._is_owned() or self.reading()._is_owned():
            raise EngineBusyError("the engine is in use further up in this very thread, and cannot be changed now")
        for _ in range(PATIENCE):
            if not self._aside:
                return self._changes
            time.sleep(PAUSE)
        self._aside.clear()  # one of them was interrupted, and will not come
        return self._changes

    def close(self) -> None:
        """Let nobody in, and wait until all readers are out. Only in turn."""
        self.closed = True
        with self._registering:
            readers = list(self._readers)
        for lock in readers:
            with lock:
                pass

    def open(self) -> None:
        """Let readers in. Only in turn."""
        self.closed = False

    def before_fork(self) -> None:
        """Wait for a running change."""
        self._changes.acquire()

    def after_fork(self, *, child: bool) -> None:
        """Go on; in the child, without those that nobody is left to release."""
        if not child:
            self._changes.release()
            return
        was_closed = self.closed
        self._start_anew()
        self.closed = was_closed  # as after an interrupt


class _Forks:
    """All doors there are, and what becomes of them where a process forks."""

    doors: ClassVar[weakref.WeakSet[Door]] = weakref.WeakSet()
    lock = threading.Lock()
    waited_for: ClassVar[list[Door]] = []

    @classmethod
    def watch(cls, door: Door) -> None:
        with cls.lock:
            cls.doors.add(door)

    @classmethod
    def before(cls) -> None:
        cls.lock.acquire()
        cls.waited_for = list(cls.doors)
        for door in cls.waited_for:
            door.before_fork()

    @classmethod
    def after(cls, *, child: bool) -> None:
        for door in cls.waited_for:
            door.after_fork(child=child)
        cls.waited_for = []
        cls.lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_Forks.before,
        after_in_parent=lambda: _Forks.after(child=False),
        after_in_child=lambda: _Forks.after(child=True),
    )
