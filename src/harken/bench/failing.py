"""Failures on purpose: an exception at the n-th step of a call, or memory that has run out from a point on."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import harken

_SOURCES = str(Path(harken.__file__).parent)
_COMPILED = (f"{_SOURCES}/matching/kernels", f"{_SOURCES}/bench", f"{_SOURCES}/jit.py")
"""No exception can come up in the middle of a kernel: it is compiled. The judges are left alone as well."""

_ALLOCATING = ("zeros", "ones", "full", "empty", "arange", "concatenate", "append", "flatnonzero", "array")


class InjectedError(RuntimeError):
    """The ordinary exception among those that are injected."""


FAILURES: tuple[type[BaseException], ...] = (InjectedError, KeyboardInterrupt, MemoryError)


class Steps:
    """Counts the steps of Harken's own code, lines begun and calls done, and raises at one of them.

    `within` narrows down whose steps count: parts of paths of modules.
    """

    def __init__(
        self, at: int = 0, failure: type[BaseException] = InjectedError, within: tuple[str, ...] = ()
    ) -> None:
        self.count = 0
        self._at, self._failure = at, failure
        self._entered: dict[int, set[int]] = {}
        self._within = tuple(f"{_SOURCES}/{part}" for part in within) or (_SOURCES,)

    @property
    def raised(self) -> bool:
        """Whether the call came as far as to fail."""
        return 0 < self._at <= self.count

    def of(self, call: Callable[[], object]) -> Steps:
        """Make a call, and fail on the way if it comes to that."""
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            call()
        except self._failure:
            if not self.raised:
                raise
        finally:
            sys.settrace(before)
        return self

    def _enter(self, frame: FrameType, event: str, _: object) -> Callable[[FrameType, str, Any], Any] | None:
        name = frame.f_code.co_filename
        if not name.startswith(self._within) or name.startswith(_COMPILED):
            return None
        self._entered[id(frame)] = set()
        return self._step

    def _step(self, frame: FrameType, event: str, _: object) -> Callable[[FrameType, str, Any], Any]:
        if event == "return" or (event == "line" and not self._leaves_with(frame)):
            self.count += 1
            if self.count == self._at:
                raise self._failure(f"at step {self._at}")
        return self._step

    def _leaves_with(self, frame: FrameType) -> bool:
        """Whether a `with` statement is come back to, to leave it: there CPython looks for no interrupt."""
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        if line == "pass":  # nothing that could fail, and a `with` around it is left at once
            return True
        if not line.startswith("with "):
            return False
        entered = self._entered[id(frame)]
        leaves = frame.f_lineno in entered
        entered ^= {frame.f_lineno}
        return leaves


class Allocations:
    """Counts the arrays that Harken asks for, and has none left from one of them on, up to `times` of them."""

    def __init__(self, at: int = 0, times: int = 1) -> None:
        self.count = 0
        self._at, self._times = at, times

    @property
    def raised(self) -> bool:
        """Whether the call came as far as to fail."""
        return 0 < self._at <= self.count

    def of(self, call: Callable[[], object]) -> Allocations:
        """Make a call, and fail on the way if it comes to that."""
        with self._counted():
            try:
                call()
            except MemoryError:
                if not self.raised:
                    raise
        return self

    @contextmanager
    def _counted(self) -> Iterator[None]:
        before = {name: getattr(np, name) for name in _ALLOCATING}
        try:
            for name, function in before.items():
                setattr(np, name, self._counting(function))
            yield
        finally:
            for name, function in before.items():
                setattr(np, name, function)

    def _counting(self, function: Callable[..., object]) -> Callable[..., object]:
        def counted(*given: object, **named: object) -> object:
            name = sys._getframe(1).f_code.co_filename
            if name.startswith(_SOURCES) and not name.startswith(_COMPILED):
                self.count += 1
                if self._at and self._at <= self.count < self._at + self._times:
                    raise MemoryError(f"at allocation {self.count}")
            return function(*given, **named)

        return counted
