"""Threads that work together on one call: they are kept from one call to the next, and none is waited for in vain.

Whoever calls may be interrupted between any two steps, by a signal whose handler raises, or by one that matches;
what runs in the other threads never is, for they are nobody's to send exceptions to. So nothing here waits for a
lock that such a step could leave behind: locks are held by `with` and for a moment only, and everything else is
written so that it can be done again.
"""

from __future__ import annotations

import itertools
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TypeVar

from harken.errors import EngineBusyError
from harken.locking import Door, watch_forks

Item = TypeVar("Item")
Result = TypeVar("Result")

OFFERED, TAKEN, OVER = range(3)
"""What becomes of a member's part: it is offered; its thread has taken it; it is done, or nobody will do it."""

PAUSE, PATIENCE = 50e-6, 5.0
"""Seconds between looks at whether a new thread is there, and until it is taken not to come."""

LOOK = 0.1
"""Seconds after which who waits looks whether all are done, should an interrupt have lost the word of it."""


ESCAPES = 8
"""Interrupts that may come where who waits is just about to wait, or to wait on: it is made sure so many times.

One is rare there, but not if interrupts come again and again while this thread has to wait for a core.
"""


class _Worker:
    """One thread, which does what it is handed until the process ends."""

    def __init__(self) -> None:
        self.inbox: queue.SimpleQueue[tuple[_Run, int]] = queue.SimpleQueue()

    def serve(self, workers: list[_Worker]) -> None:
        """Be there for whoever has the threads. That it is says the thread itself."""
        workers.append(self)
        while True:
            with suppress(BaseException):  # nobody would do what is handed to a thread that has ended
                self._serve_next()

    def _serve_next(self) -> None:
        run, number = self.inbox.get()
        run.member(number)


class _Threads:
    """The threads of this process. One call at a time has them: who matches beside it has a core already.

    No lock says whose they are, for a handler of signals may match while its own thread is between any two steps
    here, and would wait for ever. Teams stand in a queue instead, which they enter and leave in one step, and the
    first of them has the threads. Who is interrupted before it can leave is gone from it by itself.
    """

    def __init__(self) -> None:
        self._start_anew()
        watch_forks(self)

    def _start_anew(self) -> None:
        self.workers: list[_Worker] = []
        self._queue: list[weakref.ref[Team]] = []

    def take(self, team: Team, count: int) -> bool:
        """Let a team have the threads, if nobody has them and there are so many, or can be."""
        self._queue.append(weakref.ref(team))
        return self._first() is team and self._have(count)

    def give_back(self, team: Team) -> None:
        """Let another team have them; who never had them may say so too."""
        self._leave(weakref.ref(team))

    def _first(self) -> Team | None:
        for place in tuple(self._queue):
            if (team := place()) is not None:
                return team
            self._leave(place)
        return None

    def _leave(self, place: weakref.ref[Team]) -> None:
        with suppress(ValueError):
            self._queue.remove(place)

    def _have(self, count: int) -> bool:
        """Whether there are so many threads besides this one; they end with the process."""
        try:
            for _ in range(count - len(self.workers)):
                serve = _Worker().serve
                threading.Thread(target=serve, args=(self.workers,), name="harken", daemon=True).start()
        except RuntimeError:  # there are as many as there may be, or the interpreter is about to end
            return False
        until = time.monotonic() + PATIENCE
        while len(self.workers) < count:
            if time.monotonic() > until:
                return False
            time.sleep(PAUSE)
        return True

    def before_fork(self) -> None:
        """Wait for nobody: the child has no part in what goes on here."""
        return

    def after_fork(self, *, child: bool) -> None:
        """In the child there are no threads, and nobody has them."""
        if child:
            self._start_anew()


_THREADS = _Threads()


class Team:
    """Some threads, for one call after the other. The first of them is whoever calls.

    `door` is the one that the caller has entered: the others enter it too, so that nobody changes what they read,
    whatever becomes of the caller.
    """

    def __init__(self, threads: int, door: Door | None = None) -> None:
        self.threads = threads
        self._door = door

    def __enter__(self) -> Team:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        _THREADS.give_back(self)

    def run(self, work: Callable[[int], None], stop: Callable[[], None]) -> None:
        """Have `work` done by every member at once, each by its number; on return all are done, whatever happens.

        Should one fail, here by an interrupt too, `stop` has to make the others come to an end, and may be called
        several times. It has to be written in C: then, however many interrupts come, none comes before it. What
        failed first is raised.
        """
        if self.threads == 1:
            work(0)
            return
        run = _Run(work, stop, self.threads, self._door)
        workers = _THREADS.workers  # none, in a process that has been forked since this team was made
        if len(workers) < self.threads - 1:
            raise _left_alone()
        finished = False
        try:
            for number in range(1, self.threads):
                workers[number - 1].inbox.put((run, number))
            work(0)
            finished = True
        except BaseException:
            stop()
            raise
        finally:
            try:
                run.end(finished)
            finally:
                run.end(finished)  # an interrupt may come before the first has begun
        if run.failed is not None:
            raise run.failed

    def map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """What `work` gives for each, in their order; whoever is free takes the next."""
        found: list[Result | None] = [None] * len(items)
        numbers, stopped = itertools.count(), list[bool]()

        def take(_: int) -> None:
            while not stopped and (at := next(numbers)) < len(items):
                found[at] = work(items[at])

        helping = Team(max(1, min(self.threads, len(items))), self._door)
        helping.run(take, partial(stopped.append, True))
        return found  # type: ignore[return-value]  # each has been filled


ALONE = Team(1)
"""Nobody but whoever calls."""


def team_of(threads: int, door: Door | None = None) -> Team:
    """So many threads, this one among them; or this one alone, if another call has them or none can be started."""
    team = Team(threads, door)
    try:
        if threads == 1 or _THREADS.take(team, threads - 1):
            return team
    except BaseException:  # whose traceback may outlive this call, and keep the team
        _THREADS.give_back(team)
        raise
    _THREADS.give_back(team)
    return Team(1, door)


def _left_alone() -> EngineBusyError:
    return EngineBusyError("this process was forked in the middle of a match by several threads: match again")


class _Run:
    """One piece of work that a thread does with some others.

    In a child that a handler of signals forks meanwhile, those others are not there: what they had, it lacks.
    """

    def __init__(
        self, work: Callable[[int], None], stop: Callable[[], None], threads: int, door: Door | None
    ) -> None:
        self._work, self._stop, self._door = work, stop, door
        self._caller = None if door is None else door.reading()
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._parts = [OVER] + [OFFERED] * (threads - 1)
        self._told: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.failed: BaseException | None = None
        self._is_over = False
        watch_forks(self)

    def before_fork(self) -> None:
        """Wait for nobody."""
        return

    def after_fork(self, *, child: bool) -> None:
        """In the child, come to an end: nobody else is there."""
        if child:
            self.failed = self.failed or _left_alone()
            self._stop()

    def member(self, number: int) -> None:
        """Do the part of one of the others, if it is still wanted. What fails is kept for the one who called."""
        try:
            self._join(number)
        except BaseException as error:  # raised by the one who called
            self.failed = self.failed or error
            self._stop()
        finally:
            self._parts[number] = OVER
            self._told.put(number)

    def _join(self, number: int) -> None:
        """Enter the door, and do a part."""
        reader = None if self._door is None else self._door.reading(helps=True)
        if reader is not None:
            reader.inside += 1
        try:
            if self._take(number):
                self._work(number)
        finally:
            if reader is not None:
                reader.inside -= 1

    def _take(self, number: int) -> bool:
        with self._lock:
            if self._parts[number] != OFFERED or (self._caller is not None and not self._caller.inside):
                return False
            self._parts[number] = TAKEN
            return True

    def end(self, finished: bool, again: int = ESCAPES) -> None:
        """Wait until nobody is at it. Who has not finished its own part has all others stop."""
        try:
            if again:
                self.end(finished, again - 1)
        except BaseException:
            finished = False
            raise
        finally:
            if not self._is_over:
                self._wait(finished)

    def _wait(self, finished: bool) -> None:
        while self._goes_on(finished):
            try:
                if not finished:
                    self._stop()
                self._told.get(timeout=LOOK)
            except queue.Empty:
                continue
            except BaseException as error:
                finished = False
                self.failed = self.failed or error
        self._is_over = True

    def _goes_on(self, finished: bool) -> bool:
        """Whether some part is not over; those that nobody has taken are, if they are not wanted any more."""
        if os.getpid() != self._process:  # a child, which a handler of signals has made: there is nobody here
            return False
        with self._lock:
            # In place: who has a part says that it is over whenever that is, without the lock.
            for number, part in enumerate(self._parts):
                if part == OFFERED and (not finished or self.failed is not None):
                    self._parts[number] = OVER
            return any(part != OVER for part in self._parts)
