"""Taking turns at compiling: of several processes that want one kernel, one compiles it and the others wait.

Workers of one machine start together and want the same: each would compile for a minute what one can for all.
Whoever compiles holds a lock on a file beside the kernel's, which ends with the process at the latest. Where no
such lock can be had, and after so long a wait that something must be wrong, everybody compiles for himself.
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

_held: dict[Path, int] = {}
"""Locks of this process, by their files. Read and written under numba's own lock."""


def take(kernel: Path) -> None:
    """Be the one who compiles what is to lie there. If another process does, wait for it: then look again."""
    path = _lock_of(kernel)
    if path in _held:
        return
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:
        return
    begin = time.monotonic()
    try:
        while not _is_taken(lock):
            if time.monotonic() > begin + PATIENCE:
                raise TimeoutError
            time.sleep(_PAUSE)
    except OSError:
        os.close(lock)
    except BaseException:
        os.close(lock)
        raise
    else:
        _held[path] = lock


def give_up(kernel: Path) -> None:
    """Let others have their turn: the kernel is there, or never will be."""
    path = _lock_of(kernel)
    lock = _held.pop(path, None)
    if lock is not None:
        with contextlib.suppress(OSError):
            path.unlink()
        with contextlib.suppress(OSError):
            # Said, and not left to closing: a child that was forked meanwhile has the file open too.
            fcntl.flock(lock, fcntl.LOCK_UN)
        os.close(lock)


def _is_taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lock_of(kernel: Path) -> Path:
    return kernel.with_name(f"{kernel.name}.lock")
