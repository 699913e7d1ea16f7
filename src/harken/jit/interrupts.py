"""Numba finds out what has been registered with it before each kernel, and must not be interrupted meanwhile.

What it reads on from where it was are generators. An exception that a signal's handler raises, such as that of
Ctrl-C, ends the one that it meets for good, and with it the compiling and loading of kernels in this process.
"""

from __future__ import annotations

import functools
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from numba.core import base
from numba.core.typing import context

_NAMES = ("INT", "TERM", "HUP", "ALRM", "VTALRM", "PROF", "USR1", "USR2", "CHLD", "BREAK")

_SIGNALS = [getattr(signal, f"SIG{name}") for name in _NAMES if hasattr(signal, f"SIG{name}")]
"""Those that programs handle; not every system has all."""


def refresh_at_once() -> None:
    """Have numba take note of what is new without being interrupted, from now on."""
    for each in (base.BaseContext, context.BaseContext):
        if not hasattr(each.refresh, "__wrapped__"):
            each.refresh = _held_back(each.refresh)  # type: ignore[method-assign]  # for all of their kind


def _held_back(call: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(call)
    def done(of: Any) -> None:
        with held_back():
            call(of)

    return done


@contextmanager
def held_back() -> Iterator[None]:
    """Have the handlers of signals run after the block. They run in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held = _Held({each: known for each in _SIGNALS if callable(known := signal.getsignal(each))})
    try:
        held.begin()
        yield
    finally:
        held.end()


class _Held:
    """What comes meanwhile, for handlers that are away."""

    def __init__(self, handlers: dict[int, Any]) -> None:
        self._handlers = handlers
        self._holds = False
        self._came: list[int] = []

    def begin(self) -> None:
        with suppress(ValueError):  # where threading has mistaken another thread for the main one
            for each in self._handlers:
                signal.signal(each, self._note)
        self._holds = True

    def end(self) -> None:
        # From here on what comes is handled, though an exception of one handler keeps others from being put back.
        self._holds = False
        with suppress(ValueError):
            for each, known in self._handlers.items():
                signal.signal(each, known)
        self._tell()

    def _note(self, number: int, frame: FrameType | None) -> None:
        """Note a signal that has come, or have it handled as before."""
        if self._holds:
            self._came.append(number)
        else:
            self._handlers[number](number, frame)

    def _tell(self) -> None:
        """Handle all that came, though one handler may raise. No signal is raised again: others would count it."""
        if self._came:
            number = self._came.pop(0)
            try:
                self._handlers[number](number, sys._getframe())
            finally:
                self._tell()
