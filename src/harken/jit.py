"""Compiling Python functions to machine code. Importing this loads numba: do it where a kernel is needed.

Kernels are plain functions over flat arrays. They release the GIL, are compiled on first use and cached on
disk. A cached kernel does not notice edits in callees of another file, so a kernel's callees stand in its own.
With NUMBA_DISABLE_JIT=1 they run as ordinary Python, which is how the test suite runs them a second time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba
import numpy as np
from numba.core import event

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class _Announcement(event.Listener):
    """Tells once that kernels are being compiled, so that nobody wonders about the wait."""

    def __init__(self) -> None:
        self._told = False

    def on_start(self, _: object) -> None:
        """A kernel is not in the cache and will be compiled."""
        if not self._told:
            self._told = True
            logging.getLogger("harken").warning(
                "compiling kernels for this machine; this takes up to half a minute, once"
            )

    def on_end(self, _: object) -> None:
        """It has been compiled."""


event.register("numba:compile", _Announcement())  # type: ignore[no-untyped-call]


def tight(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function that makes no arrays of its own.

    Arrays that travel between other kernels are counted in and out, which in a hot loop costs more than the
    work itself. Here nothing is counted; what works on arrays made elsewhere does not have to.
    """
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # set from the environment
        return np.errstate(over="ignore")(function)
    compiled = numba.njit(cache=True, nogil=True, error_model="numpy", _nrt=False)(function)  # type: ignore[call-overload]
    return cast("Callable[Parameters, Result]", compiled)


def part(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a part of tight kernels, for those to call only: it is built into each of them.

    A call would hand on every array of the structures it takes, which for a short part is most of the work.
    """
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # set from the environment
        return np.errstate(over="ignore")(function)
    compiled = numba.njit(  # type: ignore[call-overload]
        nogil=True,
        error_model="numpy",
        forceinline=True,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        _nrt=False,
    )(function)
    return cast("Callable[Parameters, Result]", compiled)


def kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function that works on flat arrays and numbers only."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # set from the environment
        # Machine integers wrap around; numpy's scalars would warn of it.
        return np.errstate(over="ignore")(function)
    compiled = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return cast("Callable[Parameters, Result]", compiled)
