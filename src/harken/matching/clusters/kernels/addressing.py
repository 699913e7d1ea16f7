"""Handing a kernel many arrays at once: as one table of where they are, because taking each in costs time.

Row i of the table says of the i-th array its address, and its length in each of up to two dimensions. An address
keeps nothing alive: so tables are made and changed by `Arguments` only, which holds what its table names.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numba
import numpy as np
import numpy.typing as npt
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from harken.jit import tight
from harken.matching.clusters.kernels.matching import match_events
from harken.matching.kernels.layout import Blocks, Events, PredicateArrays, Results, Scratch, Tables

_PREDICATES = "int64 int32 int32 int32 int32 int8 int32 int64 int64 uint8 int32 int32 int64"
_TABLES = "int64 int32 int32 int64 int64 bool int64"
_BLOCKS = "uint32 uint32 uint32 uint32 int32 int32:2 int64"
_EVENTS = "int32:2 int64:2 int32 int32 int32 int32 int64 int32"
_SCRATCH = "uint8 int32 int64 int64 int64 int64 int64 int32"
_RESULTS = "int64 int64"
"""What `match_at` takes the arrays of each structure for, in its order: types and, of several, dimensions."""

Structure: TypeAlias = tuple[npt.NDArray[Any], ...]
"""A named tuple of arrays, of several types."""


class Arguments:
    """All that `match_at` reads and writes, and the table of where it is.

    The one place that has addresses. Every array that the table names is held here, so that none can be freed or
    moved under it, whatever others do with theirs; and whoever wants another in its place replaces it here, which
    writes the new address into the same table at once.
    """

    __slots__ = ("_events", "_index", "_results", "_scratch", "table")

    def __init__(
        self,
        predicates: PredicateArrays,
        tables: Tables,
        blocks: Blocks,
        events: Events,
        scratch: Scratch,
        results: Results,
    ) -> None:
        self._index = predicates, tables, blocks
        self._events, self._scratch, self._results = events, scratch, results
        index = (_rows(predicates, _PREDICATES), _rows(tables, _TABLES), _rows(blocks, _BLOCKS))
        own = (_rows(events, _EVENTS), _rows(scratch, _SCRATCH), _rows(results, _RESULTS))
        self.table = np.array([row for rows in (*index, *own) for row in rows], np.int64)
        """For `match_at`, and nobody else."""

    @property
    def events(self) -> Events:
        """The events to be matched."""
        return self._events

    @events.setter
    def events(self, events: Events) -> None:
        self.table[_EVENTS_AT:_SCRATCH_AT] = _rows(events, _EVENTS)
        self._events = events

    @property
    def results(self) -> Results:
        """Where the matches are."""
        return self._results

    @results.setter
    def results(self, results: Results) -> None:
        self.table[_RESULTS_AT:] = _rows(results, _RESULTS)
        self._results = results

    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # set from the environment

        def match(self, ahead: bool) -> tuple[int, int]:
            """As `match_events` from the first event on."""
            return match_events(*self._index, self._events, 0, self._scratch, ahead, self._results)

    else:

        def match(self, ahead: bool) -> tuple[int, int]:
            """As `match_events` from the first event on."""
            return match_at(self.table, ahead)


_EVENTS_AT = sum(len(each.split()) for each in (_PREDICATES, _TABLES, _BLOCKS))
_SCRATCH_AT = _EVENTS_AT + len(_EVENTS.split())
_RESULTS_AT = _SCRATCH_AT + len(_SCRATCH.split())


def _rows(structure: Structure, types_of: str) -> list[tuple[int, int, int]]:
    """The rows of one structure. What a kernel would take for something else is refused: it could not tell."""
    rows = []
    for array, wanted in zip(structure, types_of.split(), strict=True):
        name, _, dimensions = wanted.partition(":")
        if array.dtype != name or array.ndim != int(dimensions or 1) or not array.flags.c_contiguous:
            raise TypeError(f"an array of {array.dtype} in {array.ndim} dimensions is none of {wanted}")
        rows.append((array.ctypes.data, array.shape[0], array.shape[1] if dimensions else 1))
    return rows


def _array_at(item: Any, dimensions: int) -> Any:
    """An intrinsic (address, rows, columns) that makes the array of a type that lies at an address.

    numba's own carray may not be used in kernels that count no references.
    """

    def view(typing_context: Any, address: Any, rows: Any, columns: Any) -> Any:
        array = types.Array(item, dimensions, "C")

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            made = make_array(array)(context, builder)
            size = context.get_abi_sizeof(context.get_data_type(item))
            width = context.get_constant(types.intp, size)
            pointer = builder.inttoptr(arguments[0], context.get_data_type(item).as_pointer())
            shape, strides = [arguments[1]], [width]
            if dimensions == 2:
                shape, strides = [*arguments[1:]], [builder.mul(arguments[2], width), width]
            populate_array(
                made,
                data=pointer,
                shape=cgutils.pack_array(builder, shape),
                strides=cgutils.pack_array(builder, strides),
                itemsize=width,
                meminfo=None,
            )
            return made._getvalue()

        return array(types.int64, types.int64, types.int64), generate

    return intrinsic(view)


if not numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # set from the environment
    _int64, _int64_2d = _array_at(types.int64, 1), _array_at(types.int64, 2)
    _int32, _int32_2d = _array_at(types.int32, 1), _array_at(types.int32, 2)
    _uint32, _uint8 = _array_at(types.uint32, 1), _array_at(types.uint8, 1)
    _int8, _bool = _array_at(types.int8, 1), _array_at(types.boolean, 1)

    @tight
    def match_at(at: npt.NDArray[np.int64], ahead: bool) -> tuple[int, int]:
        """`match_events`, with all its structures in one table, one after the other, each in its own order."""
        predicates = PredicateArrays(
            _int64(at[0, 0], at[0, 1], at[0, 2]),
            _int32(at[1, 0], at[1, 1], at[1, 2]),
            _int32(at[2, 0], at[2, 1], at[2, 2]),
            _int32(at[3, 0], at[3, 1], at[3, 2]),
            _int32(at[4, 0], at[4, 1], at[4, 2]),
            _int8(at[5, 0], at[5, 1], at[5, 2]),
            _int32(at[6, 0], at[6, 1], at[6, 2]),
            _int64(at[7, 0], at[7, 1], at[7, 2]),
            _int64(at[8, 0], at[8, 1], at[8, 2]),
            _uint8(at[9, 0], at[9, 1], at[9, 2]),
            _int32(at[10, 0], at[10, 1], at[10, 2]),
            _int32(at[11, 0], at[11, 1], at[11, 2]),
            _int64(at[12, 0], at[12, 1], at[12, 2]),
        )
        tables = Tables(
            _int64(at[13, 0], at[13, 1], at[13, 2]),
            _int32(at[14, 0], at[14, 1], at[14, 2]),
            _int32(at[15, 0], at[15, 1], at[15, 2]),
            _int64(at[16, 0], at[16, 1], at[16, 2]),
            _int64(at[17, 0], at[17, 1], at[17, 2]),
            _bool(at[18, 0], at[18, 1], at[18, 2]),
            _int64(at[19, 0], at[19, 1], at[19, 2]),
        )
        blocks = Blocks(
            _uint32(at[20, 0], at[20, 1], at[20, 2]),
            _uint32(at[21, 0], at[21, 1], at[21, 2]),
            _uint32(at[22, 0], at[22, 1], at[22, 2]),
            _uint32(at[23, 0], at[23, 1], at[23, 2]),
            _int32(at[24, 0], at[24, 1], at[24, 2]),
            _int32_2d(at[25, 0], at[25, 1], at[25, 2]),
            _int64(at[26, 0], at[26, 1], at[26, 2]),
        )
        events = Events(
            _int32_2d(at[27, 0], at[27, 1], at[27, 2]),
            _int64_2d(at[28, 0], at[28, 1], at[28, 2]),
            _int32(at[29, 0], at[29, 1], at[29, 2]),
            _int32(at[30, 0], at[30, 1], at[30, 2]),
            _int32(at[31, 0], at[31, 1], at[31, 2]),
            _int32(at[32, 0], at[32, 1], at[32, 2]),
            _int64(at[33, 0], at[33, 1], at[33, 2]),
            _int32(at[34, 0], at[34, 1], at[34, 2]),
        )
        scratch = Scratch(
            _uint8(at[35, 0], at[35, 1], at[35, 2]),
            _int32(at[36, 0], at[36, 1], at[36, 2]),
            _int64(at[37, 0], at[37, 1], at[37, 2]),
            _int64(at[38, 0], at[38, 1], at[38, 2]),
            _int64(at[39, 0], at[39, 1], at[39, 2]),
            _int64(at[40, 0], at[40, 1], at[40, 2]),
            _int64(at[41, 0], at[41, 1], at[41, 2]),
            _int32(at[42, 0], at[42, 1], at[42, 2]),
        )
        results = Results(
            _int64(at[43, 0], at[43, 1], at[43, 2]),
            _int64(at[44, 0], at[44, 1], at[44, 2]),
        )
        return match_events(predicates, tables, blocks, events, 0, scratch, ahead, results)
