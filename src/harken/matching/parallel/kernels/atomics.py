"""Atomic reads and writes of one word of an array, and what a thread does while it waits for another.

Every one of them is sequentially consistent: threads that look at several words see them change in one order.
Without compilation they take turns under a lock, as one Python statement is more than one step.
"""

from __future__ import annotations

import ctypes
import platform
import sys
import threading
import time
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba.core import cgutils, types
from numba.extending import intrinsic

Words = npt.NDArray[np.int64]

_ORDER = "seq_cst"
_WORD = 8
"""Bytes of a word."""


def _pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Where the word is that the first two arguments name."""
    array_type = signature.args[0]
    array = context.make_array(array_type)(context, builder, arguments[0])
    place = context.cast(builder, arguments[1], signature.args[1], types.intp)
    return cgutils.get_item_pointer(
        context, builder, array_type, array, [place], wraparound=False, boundscheck=False
    )


def _word(context: Any, builder: Any, signature: Any, arguments: Any, at: int) -> Any:
    """One of the arguments, as a word."""
    return context.cast(builder, arguments[at], signature.args[at], types.int64)


def _load(typing_context: Any, words: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_pointer(context, builder, signature, arguments), _ORDER, _WORD)

    return types.int64(words, at), generate


def _store(typing_context: Any, words: Any, at: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given = _word(context, builder, signature, arguments, 2)
        builder.store_atomic(given, _pointer(context, builder, signature, arguments), _ORDER, _WORD)
        return context.get_dummy_value()

    return types.void(words, at, value), generate


def _add(typing_context: Any, words: Any, at: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given = _word(context, builder, signature, arguments, 2)
        return builder.atomic_rmw("add", _pointer(context, builder, signature, arguments), given, _ORDER)

    return types.int64(words, at, value), generate


def _swap(typing_context: Any, words: Any, at: Any, expected: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        known, given = (_word(context, builder, signature, arguments, each) for each in (2, 3))
        where = _pointer(context, builder, signature, arguments)
        return builder.extract_value(builder.cmpxchg(where, known, given, _ORDER, _ORDER), 1)

    return types.boolean(words, at, expected, value), generate


def _now(typing_context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from llvmlite import ir

        if not HAS_CYCLES:
            return context.get_constant(types.int64, 0)
        name = "llvm.readcyclecounter"
        kind = ir.FunctionType(ir.IntType(64), [])
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(function, [])

    return types.int64(), generate


HAS_CYCLES = platform.machine() in ("x86_64", "AMD64")
"""Whether the processor lets anybody read its counter of cycles."""

YIELDS = sys.platform != "win32" and hasattr(ctypes.CDLL(None), "sched_yield")
"""Whether a thread that waits can let others have its core."""

if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # set from the environment
    _TURN = threading.Lock()

    def load(words: Words, at: int) -> int:
        """The word at a place."""
        return int(words[at])

    def store(words: Words, at: int, value: int) -> None:
        """Write a word."""
        with _TURN:
            words[at] = value

    def add(words: Words, at: int, value: int) -> int:
        """Add to a word; what it was before."""
        with _TURN:
            before = int(words[at])
            words[at] = before + value
            return before

    def swap(words: Words, at: int, expected: int, value: int) -> bool:
        """Write a word if it is what is expected; whether it was."""
        with _TURN:
            if words[at] != expected:
                return False
            words[at] = value
            return True

    def now() -> int:
        """A clock that only ever goes on."""
        return time.perf_counter_ns()

    def give_way() -> None:
        """Let another thread have the core."""
        time.sleep(0)

    def doze(microseconds: int) -> None:
        """Let others have the core for a moment."""
        time.sleep(int(microseconds) / 1e6)

else:
    load = intrinsic(_load)
    """load(words, at): the word at a place."""
    store = intrinsic(_store)
    """store(words, at, value): write a word."""
    add = intrinsic(_add)
    """add(words, at, value): add to a word; what it was before."""
    swap = intrinsic(_swap)
    """swap(words, at, expected, value): write a word if it is what is expected; whether it was."""
    now = intrinsic(_now)
    """now(): a clock that only ever goes on, in cycles; 0 where there is none."""

    if YIELDS:
        give_way = types.ExternalFunction("sched_yield", types.int32())
        """give_way(): let another thread have the core."""
        doze = types.ExternalFunction("usleep", types.int32(types.uint32))
        """doze(microseconds): let others have the core for a moment."""
        give_way.__module__ = doze.__module__ = __name__  # where kernels have them from
    else:

        @numba.njit(nogil=True)
        def give_way() -> None:
            """Nothing: there is no way to let another thread have the core."""

        @numba.njit(nogil=True)
        def doze(microseconds: int) -> None:
            """The same."""
