"""What must not be interrupted where kernels are compiled or loaded is done without interrupts.

Numba finds out what has been registered with it before each kernel. What it reads on from where it was are
generators: an exception that a signal's handler raises, such as that of Ctrl-C, ends the one that it meets for
good, and with it the compiling and loading of kernels in this process. And LLVM asks Python for the code of kept
kernels by functions that cannot raise: an exception there, or a lack of stack, is dropped, and without the answer
the process ends. What one thread sends another as an exception is not held back.
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
from numba.core.codegen import JitEngine
from numba.core.typing import context

_NAMES = ("INT", "TERM", "HUP", "ALRM", "VTALRM", "PROF", "USR1", "USR2", "CHLD", "BREAK")

_SIGNALS = [getattr(signal, f"SIG{name}") for name in _NAMES if hasattr(signal, f"SIG{name}")]
"""Those that programs handle; not every system has all."""

_WHOLE = [
    *((each, "refresh") for each in (base.BaseContext, context.BaseContext)),
    *((JitEngine, name) for name in ("add_module", "finalize_object")),
    *((JitEngine, name) for name in ("get_function_address", "get_global_value_address")),
]
"""What is to be done as a whole: taking note of what has been registered, and all that LLVM may ask back in."""

_MARK = "_harken_does_it_as_a_whole"

FRAMES = 100
"""Calls within each other that there has to be room for: several times as many as it takes to answer LLVM."""


def do_as_a_whole() -> None:
    """Have numba do all this without being interrupted, from now on."""
    for its_class, name in _WHOLE:
        done = getattr(its_class, name, None)
        if done is not None and not hasattr(done, _MARK):
            setattr(its_class, name, _whole(done))


def _whole(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def done(*given: Any) -> Any:
        _have_room(FRAMES)
        with held_back():
            return method(*given)

    setattr(done, _MARK, True)
    return done


def _have_room(frames: int) -> None:
    """RecursionError here rather than where it would be lost."""
    if frames:
        _have_room(frames - 1)


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
