"""A lock that costs readers next to nothing, so that an engine can guard itself.

Many threads read (match) at the same time and one at a time changes, alone. A reader only counts itself in and
out, in a counter of its own thread. Whoever changes **closes** the door and then waits until every counter is 0;
from then on all readers that were in are out, and whoever comes sees the closed door and steps aside until the
change is over. That this is enough, without any lock for readers, is owed to the interpreter's own: what one
thread has assigned before it looks, another one sees.

**Fair.** Readers that find the door closed wait, so that a change is not starved by readers; the next change lets
those that waited in first, so that readers are not starved by changes.

**The interpreter.** A thread that matches one short event after the other would give it away only when it is made
to, after 5 ms; and a change wants it back some twenty times while it is prepared, after each kernel. So whoever
changes says so from the beginning (`changing`), and of the matches that come meanwhile some first **give way**.

**In portions.** A large change does its work in many portions, and opens the door between them. That nobody sees
what it has done so far is not the door's business. **Long readers**, which stay inside for longer than a moment,
must not have others wait until they are out: a change first keeps those that come outside, waits for those that
are in while others come and go, and only then closes the door. So that neither starves, it lets long ones in again
once it has had as long as it had to wait for them.

**Interrupts** come after calls and at jumps back only. Between counting in and the `try` that counts out again
there are none; and the one lock, that of changes, is held by `with` on a lock written in C, which is as safe. An
interrupted change may leave the door closed: the next to come settles what was left undone and opens it.

**Signal handlers and finalisers** run in the middle of whatever their thread does, and may match: every lock here
lets the thread in that holds it, and what would see half a change or make one within another is refused.

**What goes by itself**, by a callback of a weak reference, is taken out by a function written in C: an interrupt
that came within such a callback would be printed and lost.

**Threads that end** take their counter with them. **Forks** wait for running changes, so that the child has whole
engines; it starts with new locks and no readers, as nobody is left to leave. They wait in the order in which doors
were made: whoever holds one while waiting for another made that one later. What is taken within changes, and never
the other way round, they wait for last. No such wait is for ever, as who forks may be waited for in turn: then the
child finds a change that was interrupted.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import ClassVar, Protocol, TypeAlias, TypeVar

from harken.errors import EngineBusyError
from harken.portions import ALONE, Needs, Pace

Result = TypeVar("Result")
Counts: TypeAlias = tuple[int, int]
"""How many times a reader is inside, and how many of these it stays."""

PAUSE = 50e-6
"""Seconds until a second look at whether others are in, or out; twice as many before each further one."""

LONGEST_PAUSE = 1e-3
"""Seconds between two looks at most. Each look wants the interpreter, which those who are waited for want, too."""

PATIENCE = 0.1
"""Seconds until those who stepped aside are taken not to come."""

KEEPS = 16
"""So often does a reader come in beside changes until it gives way once, for 50 microseconds at least, however
short the sleep. More often, and those who match have next to no turns; less often, and those who change."""

CROWD = 4
"""For so many that wait is done as much more at once, at most: others, who sleep, wait for the door alone."""

FORK_PATIENCE = 10.0
"""Seconds that a fork waits for a change."""


class OwnedLock(Protocol):
    """A lock that one thread may take several times: `threading.RLock`, which can say more than it is typed to."""

    def acquire(self, *, timeout: float = -1) -> bool:
        """Take it, once more; False if that takes longer than so many seconds."""

    def release(self) -> None:
        """Give it back, once."""

    def __enter__(self) -> bool: ...
    def __exit__(self, *_: object) -> None: ...
    def _is_owned(self) -> bool: ...
    def _release_save(self) -> object: ...


class Reader:
    """One thread, as a door knows it."""

    __slots__ = ("__weakref__", "inside", "kept", "stays")

    def __init__(self) -> None:
        self.kept = 0
        """How often it has not given way since it last did."""
        self.inside = 0
        """How many times it reads now: more than once, if one reading calls another."""
        self.stays = 0
        """How many of these take longer than a moment."""

    def give_way(self) -> None:
        """Let those who change something have the interpreter, every now and then."""
        self.kept += 1
        if self.kept >= KEEPS:
            self.kept = 0
            time.sleep(0)


class Door:
    """Lets any number of threads read at once, and one at a time change, alone.

    To read, exactly so, as every other way costs more or can be interrupted in between:

        reader = door.reading()
        if door.changers:
            reader.give_way()
        reader.inside += 1
        try:
            if door.closed:
                door.step_aside(settle)
            ...
        finally:
            reader.inside -= 1

    and `wait_outside`, not `step_aside`, if it may go on between two portions of a change. What takes longer than
    a moment counts itself in by `stays`, too, and looks at `is_shut` instead; it need not give way.

    To change: `with door.changing():` around all that is done for it, and in this `with door.turn():`, which
    keeps other changes out but no readers, and then `close` and `open`, or `in_portions`. `settle` makes good
    whatever an interrupted change left, and opens the door.
    """

    def __init__(self) -> None:
        self.closed = False
        self.is_shut = False
        """Whether it is closed to those that stay: before a change goes on alone, and whenever it is closed."""
        self._is_alone = False
        """Whether nobody is in, behind the closed door: who is counted all the same has only come to look."""
        self.changers = set[weakref.ref[Reader]]()
        """The threads that prepare a change, wait for their turn or make it; those that end go by themselves."""
        self._own = threading.local()
        self._readers: set[weakref.ref[Reader]] = set()
        self._aside: set[Reader] = set()
        self._only: int | None = None
        self._are_several = False
        """Whether more than one thread has read so far; `_only` is the first of them."""
        self._waiting, self._staying = set[Reader](), set[Reader]()
        """Those that come in between two portions, and those of them that stay."""
        self._changes, self._held = owned_lock(), HeldForFork()
        self._lobby, self._portion = owned_lock(), owned_lock()
        """What a change in portions holds while it keeps long readers out, and while it keeps all out."""
        watch_forks(self)

    def reading(self, *, helps: bool = False) -> Reader:
        """The reader that stands for this thread, which may be one that only comes in to help others."""
        try:
            return self._own.reader  # type: ignore[no-any-return]  # set below
        except AttributeError:
            return self._new_reader(helps)

    def _new_reader(self, helps: bool) -> Reader:
        # In one step, without a lock: a handler or finaliser that comes in between may match with other threads,
        # which come here too. Readers of threads that have ended go by themselves.
        reader = Reader()
        self._readers.add(weakref.ref(reader, self._readers.discard))
        self._own.reader = reader
        if not helps:
            this = threading.get_ident()
            self._are_several |= self._only not in (None, this)
            self._only = this
        return reader

    def look(self, work: Callable[[], Result], settle: Callable[[], None]) -> Result:
        """Do some work as a reader, for those to whom the cost of a call is nothing."""
        reader = self.reading()
        reader.inside += 1
        try:
            if self.closed:
                self.step_aside(settle)
            return work()
        finally:
            reader.inside -= 1

    def step_aside(self, settle: Callable[[], None]) -> None:
        """Wait, having come in, until no change goes on; within an earlier reading, go ahead."""
        self._wait(self._aside, lambda own, counts: False, settle)

    def wait_outside(self, settle: Callable[[], None]) -> None:
        """Wait, having come in, until the door is open, if only between two portions of a change."""
        if self.reading().stays:
            self._wait(self._staying, self._come_to_stay, settle)
        else:
            self._wait(self._waiting, self._come_in, settle)

    def _wait(
        self, where: set[Reader], come_in: Callable[[Reader, Counts], bool], settle: Callable[[], None]
    ) -> None:
        """Wait, with others in one place, until this one can come in, at the latest at the end of the change."""
        own = self.reading()
        if self._is_in_the_way():
            raise EngineBusyError(
                "the engine is in the middle of a change that this very thread makes, or waits for"
            )
        counts = own.inside, own.stays
        if own.inside > 1 and not self._is_alone:  # whoever closed the door waits for this thread
            return
        own.inside = own.stays = 0
        try:
            where.add(own)
            if not come_in(own, counts):
                with self._changes:
                    settle()
                    own.inside, own.stays = counts  # before the next change, which would close the door again
        finally:
            own.inside, own.stays = counts  # the caller counts it out
            where.discard(own)

    def _is_in_the_way(self) -> bool:
        """Whether a change would wait for what this thread holds: further up, where a handler of signals came."""
        return self._changes._is_owned() or self._lobby._is_owned() or self._portion._is_owned()

    def _come_in(self, own: Reader, counts: Counts) -> bool:
        """Come in between two portions; False if a portion has failed, and the door is still closed."""
        with self._portion:
            if self.closed:
                return False
            own.inside, own.stays = counts
            return True

    def _come_to_stay(self, own: Reader, counts: Counts) -> bool:
        with self._lobby:
            return self._come_in(own, counts)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Have those who read give way for as long as this thread does anything for a change."""
        own = weakref.ref(self.reading(), self.changers.discard)
        is_within_another = own in self.changers
        try:
            self.changers.add(own)
            yield
        finally:
            if not is_within_another:
                self.changers.discard(own)

    def turn(self) -> OwnedLock:
        """What to hold in order to change, or to have no changes; readers that had to wait come in first."""
        if self._is_in_the_way() or self.reading().inside:
            raise EngineBusyError("the engine is in use further up in this very thread, and cannot be changed now")
        mine = {self.reading()}  # it may wait there itself, further up
        for where in (self._aside, self._waiting, self._staying):
            if where:  # who does not come in time may wait for another change: that one is to know of them
                _wait_until(partial(where.issubset, mine), PATIENCE)
        return self._changes

    def is_quiet(self) -> bool:
        """Whether no other thread has read so far, but to help this one."""
        self.reading()
        return not self._are_several

    def in_portions(self, portions: Iterator[Needs], pace: Pace) -> None:
        """Do some work, and let others in between any two of its portions. Only in turn.

        If it fails in the middle of a portion, the door stays closed.
        """
        if pace.seconds is None:
            self._do_all(portions, pace)
            return
        try:
            _TURNS.begin(portions)
            self._do_all(portions, pace)
        finally:
            try:
                _TURNS.end(portions)
            finally:
                _TURNS.end(portions)  # an interrupt may come before the first has begun

    def _do_all(self, portions: Iterator[Needs], pace: Pace) -> None:
        needs: Needs | None = ALONE
        crowd = 1
        while needs is not None:
            if needs is not ALONE:  # which keeps nobody out, and may take long
                needs = self._do_some(needs, portions, pace, crowd)
                continue
            with self._lobby:
                until = self._keep_long_ones_out()
                while needs is ALONE:
                    needs = self._do_some(needs, portions, pace, crowd)
                    if needs is not None:
                        crowd = min(max(1, len(self._waiting)), CROWD)
                        _let_in(self._waiting)
                    if time.monotonic() >= until:
                        break
                self.is_shut = False
            if needs is not None:
                _let_in(self._staying)

    def _keep_long_ones_out(self) -> float:
        """Wait for those that are in; until when the others have to wait, for as long as they were waited for."""
        began = time.monotonic()
        self.is_shut = True
        _wait_until(self._no_long_ones_are_in)
        now = time.monotonic()
        return 2 * now - began

    def _do_some(self, needs: Needs, portions: Iterator[Needs], pace: Pace, crowd: int) -> Needs | None:
        """Do a portion, or alone as many as are over soon; what the next one needs, or None at the end.

        Whoever comes in waits for the interpreter as well, for a turn of each other thread. So the more wait, the
        more is done before they are let in: otherwise a change would get one turn of many for each small portion.
        """
        if needs is not ALONE:
            return next(portions, None)
        with self._portion:
            self.close()
            began = now = time.monotonic()
            following: Needs | None = ALONE
            while following is ALONE and now - began <= crowd * pace.briefly:
                before, following = now, next(portions, None)
                now = time.monotonic()
                pace.took = now - before
            self.closed = self._is_alone = False
        return following

    def close(self) -> None:
        """Let nobody in, and wait until all readers are out. Only in turn.

        Threads that help a reader come in while it is inside, perhaps just after they were looked at: so they are
        looked at once more when nobody was seen. From then on whoever is counted has only come to look; a handler
        of signals that reads before its thread has stepped aside must not take that for being in.
        """
        self.is_shut = self.closed = True
        for _ in ("those who read", "those who help them"):
            _wait_until(self._nobody_is_in)
        self._is_alone = True
        while not self._nobody_is_in():
            self._is_alone = False
            _wait_until(self._nobody_is_in)
            self._is_alone = True

    def _nobody_is_in(self) -> bool:
        # Copied in one step, as readers of threads that have ended go by themselves, perhaps meanwhile.
        for each in self._readers.copy():  # as fast as can be: each change asks several times
            reader = each()
            if reader is not None and reader.inside:
                return False
        return True

    def _no_long_ones_are_in(self) -> bool:
        for each in self._readers.copy():
            reader = each()
            if reader is not None and reader.stays:
                return False
        return True

    def open(self) -> None:
        """Let readers in. Only in turn."""
        self.closed = self.is_shut = self._is_alone = False

    def before_fork(self) -> None:
        """Wait for a running change, unless it waits until this very thread is out, and so has not begun."""
        if not self.reading().inside:
            self._held.take(self._changes, FORK_PATIENCE)

    def after_fork(self, *, child: bool) -> None:
        """Go on; in the child, without those that nobody is left to release."""
        self._held.give_back(self._changes)
        if child:
            self._forget_others()

    def _forget_others(self) -> None:
        """Have no readers and no changes but those that this thread is in the middle of, if a handler forks there.

        What others were changing is there to be settled, as after an interrupt: within a reading, too, which
        nobody waits for.
        """
        own, readers = self.reading(), set[weakref.ref[Reader]]()
        readers.add(weakref.ref(own, readers.discard))
        self._readers, self._only, self._are_several = readers, threading.get_ident(), False
        self._aside, self._waiting, self._staying, self.changers = set(), set(), set(), set()
        self._is_alone |= not is_free(self._changes)
        held = (self._changes, self._lobby, self._portion)
        self._changes, self._lobby, self._portion = (each if each._is_owned() else _anew(each) for each in held)


class HeldForFork(threading.local):
    """Whether this thread holds a lock because it forks.

    What it holds anyway is not taken once more. So all can be given back at any time, and again, whatever was
    interrupted, and though a handler has forked as well meanwhile.
    """

    is_held = False

    def take(self, lock: OwnedLock, patience: float) -> None:
        """Hold a lock while the process forks, if it can be had soon enough."""
        if not lock._is_owned():
            self.is_held = True  # before it is, as an interrupt may come in between
            self.is_held = lock.acquire(timeout=patience)

    def give_back(self, lock: OwnedLock) -> None:
        """Hold it no more, if it was taken."""
        if self.is_held and lock._is_owned():
            lock.release()
        self.is_held = False


def is_free(lock: OwnedLock) -> bool:
    """Whether no other thread holds a lock."""
    if not lock.acquire(timeout=0):
        return False
    lock.release()
    return True


def _anew(lock: OwnedLock) -> OwnedLock:
    """A lock in place of one that nobody is left to release; this thread may be waiting for that, further up."""
    if not is_free(lock):
        with suppress(RuntimeError):  # it was about to be taken
            lock._release_save()
    return owned_lock()


def owned_lock() -> OwnedLock:
    """A lock that knows its thread."""
    return threading.RLock()  # type: ignore[return-value]  # see OwnedLock


def _let_in(where: set[Reader]) -> None:
    """Wait until all who wait in one place have come in."""
    if not _wait_until(lambda: not where, PATIENCE):
        where.clear()  # one of them was interrupted, and will not come


def _wait_until(holds: Callable[[], bool], patience: float = math.inf) -> bool:
    """Look again and again whether something holds, less and less often; whether it did while patience lasted."""
    pause, slept = PAUSE, 0.0
    while not holds():
        if slept >= patience:
            return False
        time.sleep(pause)
        slept += pause
        pause = min(2 * pause, LONGEST_PAUSE)
    return True


class SharedLock:
    """What is held for a moment, by `with each.lock`: reentrant, and in a forked process nobody's.

    What it guards must stand being met in the middle, by a signal handler or in a child.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        watch_forks(self)

    def before_fork(self) -> None:
        """Wait for nobody."""
        return

    def after_fork(self, *, child: bool) -> None:
        """In the child, whoever held it is gone."""
        if child:
            self.lock = threading.RLock()


class Forked(Protocol):
    """What has to know where a process forks."""

    def before_fork(self) -> None:
        """Wait for what must not be cut in two."""

    def after_fork(self, *, child: bool) -> None:
        """Go on, in the parent or in the child; again, if interrupted. Not every wait succeeded or began."""


class ForkedLast(Forked, Protocol):
    """What has to know when all others do, and is waited for before any of them."""

    def wait(self) -> None:
        """Wait, for longer than `before_fork` may, as so far nobody is kept from changing anything."""


class _Forks:
    """All that has to know. Without a lock, as whoever holds one of theirs may make another of them."""

    watched: ClassVar[dict[weakref.ref[Forked], None]] = {}
    last: ClassVar[list[ForkedLast]] = []

    @classmethod
    def living(cls) -> list[Forked]:
        """Those that there are, in the order in which they came."""
        return [*(one for each in list(cls.watched) if (one := each()) is not None), *cls.last]

    @classmethod
    def before(cls) -> None:
        for each in cls.last:
            each.wait()
        for one in cls.living():
            one.before_fork()  # if an interrupt ends this wait, the process forks all the same

    @classmethod
    def after(cls, *, child: bool) -> None:
        _go_on(cls.living(), child=child)


def _go_on(living: list[Forked], *, child: bool) -> None:
    try:
        while living:
            living[-1].after_fork(child=child)
            living.pop()
    finally:  # whatever is raised in between, the others are not left waiting
        if living:
            _go_on(living, child=child)


def watch_forks(one: Forked) -> None:
    """Tell something of forks, as long as it lives."""
    _Forks.watched[weakref.ref(one, _Forks.watched.pop)] = None


def watch_forks_last(one: ForkedLast) -> None:
    """Tell something of forks when all others have been told, as long as the process lives."""
    _Forks.last.append(one)


class _QuickTurns:
    """Threads take turns with the interpreter more often, as long as a change in portions goes on beside others.

    Who wants it back waits for 5 ms, usually. To those who match that would be the longest wait of all, and a
    change that lets them in after every portion would go ten times as slowly as they do.
    """

    INTERVAL = 0.5e-3

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._going_on: dict[object, int] = {}
        """What has begun, and in which thread."""
        self._usual: float | None = None
        """What to go back to, as long as turns are quick."""
        watch_forks(self)

    def begin(self, change: object) -> None:
        """Have quick turns until this change is over. An interrupt at whatever line is made good by `end`."""
        with self._lock:
            self._going_on[change] = threading.get_ident()
            if self._usual is None:
                self._usual = sys.getswitchinterval()
            sys.setswitchinterval(min(self._usual, self.INTERVAL))

    def end(self, change: object) -> None:
        """Have usual turns again, if this was the last change, and nobody has wanted others meanwhile."""
        with self._lock:
            self._going_on.pop(change, None)
            if not self._going_on:
                self._go_back()

    def _go_back(self) -> None:
        if self._usual is not None and abs(sys.getswitchinterval() - min(self._usual, self.INTERVAL)) < 2e-6:
            sys.setswitchinterval(self._usual + 0.5e-6)  # as whole microseconds are what is left of it
        self._usual = None

    def before_fork(self) -> None:
        """Wait for nobody."""
        return

    def after_fork(self, *, child: bool) -> None:
        """In the child, changes of other threads do not go on."""
        if child:
            self._lock, this = threading.RLock(), threading.get_ident()
            self._going_on = {change: thread for change, thread in self._going_on.items() if thread == this}
            if not self._going_on:
                self._go_back()


_TURNS = _QuickTurns()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_Forks.before,
        after_in_parent=lambda: _Forks.after(child=False),
        after_in_child=lambda: _Forks.after(child=True),
    )
