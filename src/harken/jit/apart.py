"""Compiling and loading kernels in a thread of its own, which no interrupt reaches, while who wants one waits.

LLVM asks Python for what it needs by functions that cannot raise: an exception that comes there is dropped,
whatever it is, and without the answer the process ends. And numba reads what has been registered with it from
generators, which end for good at the first that meets an exception. But handlers of signals run in the main
thread, exceptions that are sent to a thread name it, and a thread that begins has all of its stack: none of these
comes to a fresh thread that nobody knows. Who waits may be interrupted; the kernel is made all the same.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from numba.core.compiler_lock import global_compiler_lock

from harken.locking import OwnedLock

Result = TypeVar("Result")

LOOK = 1.0
"""Seconds after which who waits looks whether it is in a child by now, where nobody does the work."""


def compiler_lock() -> OwnedLock:
    """Numba's own. In a child that was forked while somebody compiled it is another one."""
    return global_compiler_lock._lock  # type: ignore[return-value]  # see OwnedLock


def apart(call: Callable[[], Result]) -> Result:
    """What a call returns or raises that is made in a thread of its own, which holds the lock meanwhile.

    It is made in this thread if that holds the lock already, or if no thread can be started.
    """
    if compiler_lock()._is_owned():
        return call()
    work, process = _Work(call), os.getpid()
    try:
        threading.Thread(target=work.do, name="harken kernels").start()
    except RuntimeError:  # there are as many as there may be, or the interpreter is about to end
        with compiler_lock():
            return call()
    while True:
        try:
            result, error = work.done.get(timeout=LOOK)
        except queue.Empty:
            if os.getpid() != process:  # forked by a handler of signals, which has waited for long
                return apart(call)
            continue
        if error is not None:
            raise error
        return result[0]


class _Work(Generic[Result]):
    """What is to be done, and what came of it."""

    def __init__(self, call: Callable[[], Result]) -> None:
        self._call = call
        self.done: queue.SimpleQueue[tuple[list[Result], BaseException | None]] = queue.SimpleQueue()

    def do(self) -> None:
        """Do it, and say so before the lock is given back: who waits for that to fork has the answer then."""
        with compiler_lock():
            try:
                self.done.put(([self._call()], None))
            except BaseException as error:  # raised by the one who waits
                self.done.put(([], error))
