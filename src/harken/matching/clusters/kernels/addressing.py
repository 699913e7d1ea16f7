"""Handing a kernel many arrays at once: as one table of where they are, because taking each in costs time.

The kernels take seven structures of layout.py. Their arrays, one structure after the other and each in the order
in which its class declares them, have a row each in the table: address, and length along each of up to two axes.

    first row   PredicateArrays.equal_first   0x7f3a5c0010   32    1
    next row    PredicateArrays.equal         0x7f3a5c2a40   512   1
    ...
    last row    Reading.steps                 0x7f3a5d9b90   256   8

Rows, types and axes all come from the classes: who adds an array declares it there, and nothing here changes. An
address keeps nothing alive: so tables are made and changed by `Arguments` only, which holds what its table names.
"""

from __future__ import annotations

import functools
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias, get_args, get_type_hints

import numba
import numpy as np
import numpy.typing as npt
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from harken.jit import holding, tight
from harken.matching.clusters.kernels.matching import match_events, match_span
from harken.matching.clusters.kernels.opening import find_columns
from harken.matching.kernels.layout import Blocks, Events, PredicateArrays, Reading, Results, Scratch, Tables
from harken.matching.kernels.reading import FAILED, IN_KERNELS

Structure: TypeAlias = tuple[npt.NDArray[Any], ...]
"""A named tuple of arrays, of several types."""

_STRUCTURES: tuple[type[Structure], ...] = (PredicateArrays, Tables, Blocks, Events, Scratch, Results, Reading)
"""What `match_at` takes, in the order of the table."""


class Field(NamedTuple):
    """What an array of a structure has to be."""

    item: np.dtype[Any]
    axes: int


@functools.cache
def fields_of(structure: type[Structure]) -> list[Field]:
    """The arrays that a structure declares, in its order.

    >>> fields_of(Results)
    [Field(item=dtype('int64'), axes=1), Field(item=dtype('int64'), axes=1)]
    """
    fields = []
    for hint in get_type_hints(structure, include_extras=True).values():
        axes = getattr(hint, "__metadata__", (1,))[0]  # a `Matrix` says that it has two
        array = get_args(hint)[0] if axes == 2 else hint
        _, item = get_args(array)
        fields.append(Field(np.dtype(get_args(item)[0]), axes))
    return fields


_FIRST = dict(
    zip(_STRUCTURES, accumulate((len(fields_of(each)) for each in _STRUCTURES), initial=0), strict=False)
)
"""The first row of each structure."""


class Arguments:
    """All that `match_at` reads and writes, and the table of where it is.

    The one place that has addresses. Every array that the table names is held here, so that none can be freed or
    moved under it, whatever others do with theirs; and whoever wants another in its place replaces it here, which
    writes the new address into the same table at once.
    """

    __slots__ = ("_events", "_index", "_reading", "_results", "_scratch", "_where", "table")

    def __init__(
        self,
        predicates: PredicateArrays,
        tables: Tables,
        blocks: Blocks,
        events: Events,
        scratch: Scratch,
        results: Results,
        reading: Reading,
    ) -> None:
        self._index = predicates, tables, blocks
        self._events, self._scratch, self._results, self._reading = events, scratch, results, reading
        structures = (*self._index, events, scratch, results, reading)
        self.table = np.array([row for each in structures for row in rows_of(each)], np.int64)
        """For the kernels below, and nobody else."""
        self._where = self.table.ctypes.data

    @property
    def events(self) -> Events:
        """The events to be matched."""
        return self._events

    @events.setter
    def events(self, events: Events) -> None:
        self._name(events)
        self._events = events

    @property
    def results(self) -> Results:
        """Where the matches are."""
        return self._results

    @results.setter
    def results(self, results: Results) -> None:
        self._name(results)
        self._results = results

    @property
    def reading(self) -> Reading:
        """What it takes to read events."""
        return self._reading

    @reading.setter
    def reading(self, reading: Reading) -> None:
        self._name(reading)
        self._reading = reading

    def _name(self, structure: Structure) -> None:
        """Have the table name the arrays of a structure instead of those it names."""
        first = _FIRST[type(structure)]
        self.table[first : first + len(structure)] = rows_of(structure)

    if not IN_KERNELS:

        def match_object(self, event: object, is_checked: bool, ahead: bool) -> tuple[int, int, int]:
            """Nothing: Python is to read all of it."""
            return FAILED, 0, 0

    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # set from the environment

        def match(self, ahead: bool) -> tuple[int, int]:
            """As `match_events` of the first event."""
            return match_events(*self._index, self._events, 0, 1, self._scratch, ahead, self._results)

    else:

        def match(self, ahead: bool) -> tuple[int, int]:
            """As `match_events` of the first event."""
            return match_at(self._where, ahead)

    if IN_KERNELS:

        def match_object(self, event: object, is_checked: bool, ahead: bool) -> tuple[int, int, int]:
            """Read a dictionary, as `read_event` does: what became of it; then, if it is read, match it."""
            return match_object_at(id(event), self._where, is_checked, ahead)


def rows_of(structure: Structure) -> list[tuple[int, int, int]]:
    """The rows of one structure. What a kernel would take for something else is refused: it could not tell."""
    rows = []
    for array, (item, axes) in zip(structure, fields_of(type(structure)), strict=True):
        if array.dtype != item or array.ndim != axes or not array.flags.c_contiguous:
            raise TypeError(f"an array of {array.dtype} in {array.ndim} dimensions is none of {item} in {axes}")
        rows.append((array.ctypes.data, array.shape[0], array.shape[1] if axes == 2 else 1))
    return rows


def structure_at(structure: type[Structure], first: int) -> Any:
    """An intrinsic (address) that makes a structure of the arrays that the rows of a table, from `first` on, name.

    numba's own carray, which makes one array, may not be used in kernels that count no references.
    """
    arrays = [types.Array(numba.from_dtype(item), axes, "C") for item, axes in fields_of(structure)]

    def typed(typing_context: Any, address: Any) -> Any:
        made = types.BaseTuple.from_types(arrays, structure)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            words = builder.inttoptr(arguments[0], context.get_data_type(types.intp).as_pointer())

            def word(row: int, column: int) -> Any:
                place = context.get_constant(types.intp, 3 * row + column)
                return builder.load(builder.gep(words, [place]))

            values = [
                _array_at(context, builder, array, *(word(row, column) for column in range(3)))
                for row, array in enumerate(arrays, first)
            ]
            return context.make_tuple(builder, made, values)

        return made(types.intp), generate

    return intrinsic(typed)


def _array_at(context: Any, builder: Any, array: Any, address: Any, rows: Any, columns: Any) -> Any:
    """Machine code that makes an array of a type, of what lies at an address."""
    item = context.get_data_type(array.dtype)
    width = context.get_constant(types.intp, context.get_abi_sizeof(item))
    shape, strides = [rows], [width]
    if array.ndim == 2:
        shape, strides = [rows, columns], [builder.mul(columns, width), width]
    made = make_array(array)(context, builder)
    populate_array(
        made,
        data=builder.inttoptr(address, item.as_pointer()),
        shape=cgutils.pack_array(builder, shape),
        strides=cgutils.pack_array(builder, strides),
        itemsize=width,
        meminfo=None,
    )
    return made._getvalue()


if not numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # set from the environment
    _predicates, _tables, _blocks, _events, _scratch, _results, _reading = (
        structure_at(structure, first) for structure, first in _FIRST.items()
    )

    @tight
    def match_at(at: int, ahead: bool) -> tuple[int, int]:
        """`match_events` of one event, with all its structures in one table."""
        tables, events, scratch = _tables(at), _events(at), _scratch(at)
        find_columns(tables, events, scratch)
        return match_span(_predicates(at), tables, _blocks(at), events, 0, 1, 0, scratch, ahead, _results(at))


if IN_KERNELS:
    from harken.matching.kernels.objects import let_others_run, run_again
    from harken.matching.kernels.reading import READ, read_event

    _MAY_RAISE = bool(numba.config.BOUNDSCHECK)  # type: ignore[attr-defined]  # set from the environment
    """Whether an index may turn out to be wrong. Then the lock is kept: an error is raised by who holds it."""

    @holding
    def match_object_at(event: int, at: int, is_checked: bool, ahead: bool) -> tuple[int, int, int]:
        """Read an event, and if nothing of it remains, match it while others may run."""
        events = _events(at)
        became = read_event(event, is_checked, _reading(at), events.code, events.label, 0)
        if became != READ:
            return became, 0, 0
        if _MAY_RAISE:
            reached, count = match_at(at, ahead)
            return became, reached, count
        this_thread = let_others_run()
        reached, count = match_at(at, ahead)
        run_again(this_thread)
        return became, reached, count
