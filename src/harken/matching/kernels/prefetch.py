"""The processor's prefetch instruction: ask for a cache line now, read it a little later without waiting."""

from __future__ import annotations

from typing import Any

import numba
import numpy.typing as npt
from numba.core import cgutils, types
from numba.extending import intrinsic


def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    signature = types.void(array, index)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from llvmlite import ir

        array_type = signature.args[0]
        pointer = cgutils.get_item_pointer(
            context,
            builder,
            array_type,
            context.make_array(array_type)(context, builder, arguments[0]),
            [arguments[1]],
            wraparound=False,
            boundscheck=False,
        )
        byte = ir.IntType(8).as_pointer()
        int32 = ir.IntType(32)
        name = "llvm.prefetch.p0"
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [byte, int32, int32, int32]), name
        )
        # read, keep in all cache levels, data rather than instructions
        flags = [ir.Constant(int32, 0), ir.Constant(int32, 3), ir.Constant(int32, 1)]
        builder.call(function, [builder.bitcast(pointer, byte), *flags])
        return context.get_dummy_value()

    return signature, generate


if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # set from the environment

    def prefetch(array: npt.NDArray[Any], index: int) -> None:
        """Plain Python has nothing to prefetch with."""

else:
    prefetch = intrinsic(_prefetch)
    """prefetch(array, index): ask for the cache line of one element of a one-dimensional array."""
