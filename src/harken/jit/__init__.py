"""Compiling Python functions to machine code. Importing this loads numba: do it where a kernel is needed.

Kernels are plain functions over flat arrays. They release the GIL, are compiled on first use and kept on disk
(`keeping`) under a name that covers all they are made of (`sources`): whoever edits a kernel, or what it calls,
gets the new one. Some options that numba does not document make them fast; `options` tries these out first.
Kernels return numbers, truths, tuples of these, or nothing; results of other kinds go into arrays that the caller
made. For an array, and even more so a named tuple, numba runs Python code on the way out, and does not see to what
that raises: an interrupt that came while the kernel ran would end the process.
With NUMBA_DISABLE_JIT=1 kernels run as ordinary Python, which is how the test suite runs them a second time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numpy as np
from numba.core.compiler_lock import global_compiler_lock

from harken.errors import EngineBusyError
from harken.jit import options, sources, turns
from harken.jit.interrupts import do_as_a_whole
from harken.jit.keeping import KeptKernels
from harken.locking import HeldForFork, OwnedLock, is_free, watch_forks_last

PATIENCE, BRIEFLY = 30.0, 1.0
"""Seconds that a fork waits for those who compile: before it keeps others from changing anything, and after."""

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def tight(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function that makes no arrays of its own.

    Arrays that travel between other kernels are counted in and out, which in a hot loop costs more than the
    work itself. Here nothing is counted; what works on arrays made elsewhere does not have to.
    """
    return _compiled(function, options.UNCOUNTED)


def holding(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a tight kernel that keeps the interpreter's lock: what asks Python's own objects needs it."""
    return _compiled(function, options.HOLDING)


def part(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a part of tight kernels, for those to call only: it is built into each of them.

    A call would hand on every array of the structures it takes, which for a short part is most of the work.
    """
    return _compiled(function, options.BUILT_IN, keep=False)


def called(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function for tight kernels only to call: nothing is made to call it by itself, or kept of it.

    Where there are many, that takes half the time; whether one is built into another is left to the compiler.
    """
    return _compiled(function, options.CALLED, keep=False)


def kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function that works on flat arrays and numbers only."""
    return _compiled(function, {})


def _compiled(
    function: Callable[Parameters, Result], tuned: options.Options, keep: bool = True
) -> Callable[Parameters, Result]:
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # set from the environment
        # Machine integers wrap around; numpy's scalars would warn of it.
        return np.errstate(over="ignore")(function)
    sources.note(function)
    tuned = options.trusted(tuned)
    dispatcher: Any = numba.njit(**(options.COMMON | tuned))(function)
    dispatcher._compile_for_args = _unless_compiling(dispatcher._compile_for_args)
    if keep:
        # numba would tell by a kernel's own file whether it is still the same, and not look at its callees'.
        dispatcher._cache = kept = KeptKernels(function, tuned)
        dispatcher.compile = kept.in_turn(dispatcher.compile)
    return cast("Callable[Parameters, Result]", dispatcher)


def _unless_compiling(compiling: Callable[..., Any]) -> Callable[..., Any]:
    """Numba's way to compile what is called, refused in a signal handler that came while its thread compiled."""

    def compiled(*arguments: Any, **named: Any) -> Any:
        if is_compiling():
            raise EngineBusyError(
                "kernels are being compiled further up in this very thread, and this needs another"
            )
        return compiling(*arguments, **named)

    return compiled


def is_compiling() -> bool:
    """Whether this very thread is compiling a kernel, further up."""
    return _lock()._is_owned()


def _lock() -> OwnedLock:
    return global_compiler_lock._lock  # type: ignore[return-value]  # see OwnedLock


class _Compiling:
    """A process that forks while a thread compiles would have a child that waits for that thread for ever.

    The wait for it has an end: the thread may itself wait for somebody that the one who forks keeps waiting, as in
    a signal handler that came while it compiled.
    """

    def __init__(self) -> None:
        self._held = HeldForFork()

    def wait(self) -> None:
        """Wait until nobody compiles, for so long as that may take."""
        if _lock().acquire(timeout=PATIENCE):
            _lock().release()

    def before_fork(self) -> None:
        """Have nobody compile."""
        self._held.take(_lock(), BRIEFLY)

    def after_fork(self, *, child: bool) -> None:
        """Go on compiling, here and there; in the child nobody else does."""
        if child:
            turns.forget()
        self._held.give_back(_lock())
        if child and not is_free(_lock()):
            global_compiler_lock._lock = threading.RLock()


watch_forks_last(_Compiling())
do_as_a_whole()
