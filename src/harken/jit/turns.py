"""Taking turns at compiling: of several processes that want one kernel, one compiles it and the others wait.

Workers of one machine start together and want the same: each would compile for a minute what one can for all.
Whoever compiles holds a lock on a file beside the kernel's, which ends with the process at the latest: a child
that it forks closes what it inherits. Where no such lock can be had, and after so long a wait that something must
be wrong, everybody compiles for himself.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path

PATIENCE = 60.0
"""Seconds that one waits for another process: longer than any kernel takes."""

_PAUSE = 0.05


class _Turns:
    """The files that this process has open, by name, and those of them it has locked.

    Read and written under numba's own lock. Names are plain strings: no interrupt comes between a file and its
    name, as it could in a method of a path.
    """

    def __init__(self) -> None:
        self.open: dict[str, int] = {}
        self.locked: set[str] = set()
        self.in_vain = False
        """Whether waiting has turned out to be of no use."""


_own = _Turns()


def take(kernel: Path) -> None:
    """Be the one who compiles what is to lie there; if another process does, wait for it. Then look again.

    OSError if there can be no turns there. Whatever becomes of this, `give_up` has to follow.
    """
    name = f"{kernel}.lock"
    if name in _own.open or _own.in_vain:
        return
    lock = _own.open[name] = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    until = time.monotonic() + PATIENCE
    try:
        while not _is_locked(lock):
            if time.monotonic() > until:
                wait_no_more()
                return
            time.sleep(_PAUSE)
    except OSError:
        give_up(kernel)
        raise
    _own.locked.add(name)


def give_up(kernel: Path) -> None:
    """Let others have their turn: the kernel is there, or never will be."""
    name = f"{kernel}.lock"
    lock = _own.open.get(name)
    if lock is None:
        return
    try:
        if name in _own.locked:
            with contextlib.suppress(OSError):
                os.unlink(name)
            _own.locked.discard(name)
    finally:
        os.close(_own.open.pop(name))


def wait_no_more() -> None:
    """Compile whatever is wanted from now on: who else does takes too long, or nothing can be kept."""
    _own.in_vain = True


def forget() -> None:
    """Have no turn, in a process that was forked from one that has."""
    while _own.open:
        _, lock = _own.open.popitem()
        os.close(lock)
    _own.locked.clear()


def _is_locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
