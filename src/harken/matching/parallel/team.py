"""Threads that work together on one call: they are kept from one call to the next, and none is left behind."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from harken.locking import watch_forks
from harken.matching.parallel.options import MOST_THREADS

Item = TypeVar("Item")
Result = TypeVar("Result")


class NoThreads(Exception):  # noqa: N818  # says what to do, and nobody outside sees it
    """The interpreter is about to end and starts nothing any more: whoever still wants something does it alone."""


class _Threads:
    """The threads of this process. One call at a time has them: who matches beside it has a core already."""

    def __init__(self) -> None:
        self.taken = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        watch_forks(self)

    def submit(self, work: Callable[[int], None], number: int) -> None:
        """Have a thread do something, one that waits or a new one; NoThreads once the interpreter ends."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(MOST_THREADS, "harken")
        try:
            self._executor.submit(work, number)
        except RuntimeError:
            raise NoThreads from None

    def before_fork(self) -> None:
        """Wait for nobody: the child has no part in what goes on here."""
        return

    def after_fork(self, *, child: bool) -> None:
        """In the child there are no threads, and nobody has them."""
        if child:
            self.taken = threading.Lock()
            self._executor = None


_THREADS = _Threads()


@contextmanager
def team_of(threads: int) -> Iterator[Team]:
    """So many threads, this one among them; or this one alone, if another call has the threads."""
    taken = threads > 1 and _THREADS.taken.acquire(blocking=False)
    lock = _THREADS.taken
    try:
        yield Team(threads if taken else 1)
    finally:
        if taken:
            lock.release()


class Team:
    """Some threads, for one call after the other. The first of them is whoever calls."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def run(self, work: Callable[[int], None], stop: Callable[[], None]) -> None:
        """Have `work` done by every member at once, each by its number; on return all are done, whatever happens.

        Should one fail, here by an interrupt too, `stop` has to make the others come to an end. What failed first
        is raised.
        """
        if self.threads == 1:
            work(0)
            return
        run = _Run(work, stop, self.threads - 1)
        try:
            for number in range(1, self.threads):
                _THREADS.submit(run.member, number)
            work(0)
        except BaseException as error:
            run.fail(error)
            raise
        finally:
            try:
                run.end()
            finally:
                run.end()  # an interrupt may come before the first has begun
        if run.failed is not None:
            raise run.failed

    def map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """What `work` gives for each, in their order; whoever is free takes the next."""
        found: list[Result | None] = [None] * len(items)
        numbers, stopped = itertools.count(), threading.Event()

        def take(_: int) -> None:
            while (at := next(numbers)) < len(items) and not stopped.is_set():
                found[at] = work(items[at])

        helping = Team(min(self.threads, len(items))) if items else Team(1)
        helping.run(take, stopped.set)
        return found  # type: ignore[return-value]  # each has been filled


ALONE = Team(1)
"""Nobody but whoever calls."""


class _Run:
    """One piece of work that a thread does with some others.

    Of those others, who come when it is over do nothing. Whoever waits for them may be interrupted again and
    again, and waits all the same: they read what may be changed once all are out.
    """

    def __init__(self, work: Callable[[int], None], stop: Callable[[], None], others: int) -> None:
        self._work, self._stop, self._expected = work, stop, others
        self._state = threading.Condition(threading.RLock())
        self._inside = 0
        self._done = 0
        self._over = False
        self.failed: BaseException | None = None

    def member(self, number: int) -> None:
        """Do the part of one of the others; what fails is kept for the one who called. No signal comes here."""
        with self._state:
            if self._over:
                return
            self._inside += 1
        try:
            self._work(number)
        except BaseException as error:
            self.fail(error)
        finally:
            with self._state:
                self._inside -= 1
                self._done += 1
                self._state.notify_all()

    def fail(self, error: BaseException) -> None:
        """Take note that somebody has failed, and have all others stop."""
        try:
            with self._state:
                self._over = True
                if self.failed is None:
                    self.failed = error
        finally:
            self._stop()

    def end(self) -> None:
        """Wait until nobody is inside, and let nobody in any more."""
        try:
            with self._state:
                self._state.wait_for(self._is_over)
                self._over = True
        except BaseException as error:
            self.fail(error)
        finally:
            if not self._is_over():
                self.end()

    def _is_over(self) -> bool:
        return self._inside == 0 and (self._over or self._done == self._expected)
