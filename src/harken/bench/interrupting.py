"""Stopping a call at any of its lines, to see what it leaves behind."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import harken

FAULTS: tuple[type[BaseException], ...] = (RuntimeError, KeyboardInterrupt, MemoryError)
"""What may go wrong: an ordinary error, an interrupt, and no memory."""

_ROOT = Path(harken.__file__).parent


class Tripwire:
    """Counts the lines that are executed in some packages of Harken, and raises at one of them.

    It is raised once, at the given line, counted from 1; with 0 never. Only the thread that sets it is watched.
    The line of a `with` is traced once more when it is left, before the lock or the connection is given back: no
    interrupt can come there, and none is made.
    """

    def __init__(self, packages: tuple[str, ...], at: int = 0, fault: type[BaseException] = RuntimeError) -> None:
        self._watched = tuple(str(_ROOT / package) for package in packages)
        self._at = at
        self._fault = fault
        self._entered: set[tuple[FrameType, int]] = set()
        self.lines = 0

    def run(self, call: Callable[[], object]) -> None:
        """Make a call under watch; what was raised here is caught."""
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            call()
        except self._fault:
            if not 0 < self._at <= self.lines:
                raise
        finally:
            sys.settrace(before)

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:  # what sys.settrace wants
        return self._line if frame.f_code.co_filename.startswith(self._watched) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and not self._leaves(frame):
            self.lines += 1
            if self.lines == self._at:
                raise self._fault("stopped here, on purpose")
        return self._line

    def _leaves(self, frame: FrameType) -> bool:
        """Whether the line is that of a `with` that was entered before."""
        if not linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith("with "):
            return False
        here = frame, frame.f_lineno
        entered = here in self._entered
        self._entered.add(here)
        return entered


def count_lines(call: Callable[[], object], packages: tuple[str, ...]) -> int:
    """How many lines a call executes."""
    wire = Tripwire(packages)
    wire.run(call)
    return wire.lines
