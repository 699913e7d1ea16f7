"""A segment: clauses that do not change, indexed. kernels/layout.py says how it lies in memory."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.model import capacity
from harken.symmetric.memory.clauses import Clauses
from harken.symmetric.memory.constants import Constants
from harken.symmetric.memory.dimensions import Dimensions
from harken.symmetric.memory.kernels.building import lay_rows
from harken.symmetric.memory.kernels.layout import (
    AXES,
    AXES_AT,
    AXIS,
    CLAUSES,
    FIRST_AT,
    FLAG_BITS,
    HEADER,
    OPEN_TREE,
    OWNERS_AT,
    RESTS_AT,
    ROW,
    ROW_AXIS,
    ROW_HIGH,
    ROW_LOW,
    ROWS_AT,
    TREE,
    TREES_AT,
)
from harken.symmetric.memory.kernels.matching import find
from harken.symmetric.memory.orders import Mask
from harken.symmetric.memory.packing import Packing, packed
from harken.symmetric.memory.queries import Query

FIRST_ROOM = 512
"""Finds that there is room for at first."""

WORDS_PER_ROW, WORDS_PER_AXIS = 16, 96
"""Words that trees have at most for each row of a clause, which is in two of them, each with a node
of up to two axes and some above; and beside those for each axis, whose trees have one node more on each level."""

_FLAGS = (1 << FLAG_BITS) - 1

Columns: TypeAlias = npt.NDArray[np.int64]
"""What was found: a row of places, one of slots, one of flags."""


def fits_a_segment(clauses: int, rows: int, axes: int) -> bool:
    """Whether one segment surely can have so many clauses, rows and axes, whatever trees they come to stand in."""
    of_axes, of_clauses = (AXIS + WORDS_PER_AXIS) * axes, (4 + TREE) * clauses
    return HEADER + of_axes + of_clauses + (ROW + WORDS_PER_ROW) * rows <= capacity.SEGMENT_WORDS


class ClauseSegment:
    """Immutable, but for the count of its dead. Any number of threads may ask at the same time."""

    __slots__ = ("_arrays", "_axes", "_constants", "constraints", "dead")

    def __init__(self, clauses: Clauses, dimensions: Dimensions, constraints: int, smallest_tree: int) -> None:
        self.constraints = constraints
        """Owners of clauses in it."""
        self.dead = 0
        """How many of those have been removed since."""
        leads = np.array([dimensions.leads(axis) for axis in clauses.axes.tolist()], np.bool_)
        plan = packed(clauses, leads, smallest_tree)
        keys, text_at, text, self._constants = _apart(clauses.constants)
        rests_at = 0 if clauses.constants.rests is None else len(clauses.constants.keys)
        self._arrays = _laid(clauses, leads, plan, rests_at), keys, text_at, text
        self._axes = clauses.axes

    def __len__(self) -> int:
        """How many clauses it has, dead ones included."""
        return int(self._arrays[0][CLAUSES])

    @property
    def nbytes(self) -> int:
        """Bytes taken."""
        return sum(array.nbytes for array in self._arrays)

    def find(self, asked: Query, alive: npt.NDArray[np.uint8], room: int = FIRST_ROOM) -> tuple[Columns, int]:
        """What the asked constraints meet here, and all flags that any has.

        Where there is not room for all, all are looked for a second time.
        """
        scratch = np.empty(len(self._axes) + len(asked.stream), np.int32)
        while True:
            columns = np.empty((3, room), np.int64)
            found = find(*self._arrays, alive, asked.stream, asked.text, scratch, columns)
            count = found >> FLAG_BITS
            if count <= room:
                return columns[:, :count], found & _FLAGS
            room = count

    @property
    def axes(self) -> int:
        """How many axes those have."""
        return len(self._axes)

    @property
    def can_be_made_anew(self) -> bool:
        """Whether any of its clauses surely fit one segment: fewer may take more words, in other trees."""
        return fits_a_segment(len(self), self.rows, self.axes)

    @property
    def rows(self) -> int:
        """How many rows its clauses have."""
        words = self._arrays[0]
        return int(words[words[FIRST_AT] + words[CLAUSES]])

    def clauses(self) -> Clauses:
        """What it was made of, in another order."""
        words = self._arrays[0]
        count = int(words[CLAUSES])
        first = words[words[FIRST_AT] : words[FIRST_AT] + count + 1].astype(np.int64)
        rows = words[words[ROWS_AT] : words[ROWS_AT] + ROW * first[-1]].reshape(-1, ROW)
        axis, low, high = (np.ascontiguousarray(rows[:, column]) for column in (ROW_AXIS, ROW_LOW, ROW_HIGH))
        owners = words[words[OWNERS_AT] : words[OWNERS_AT] + count]
        several = (owners & 1).astype(np.bool_)
        return Clauses(self._axes, self._constants, first, axis, low, high, owners >> 1, several)


def _apart(
    constants: Constants,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.uint8], Constants]:
    """Keys with the rests behind them, where texts begin, and their bytes, as kernels take them: writable.

    And the same constants as parts of those arrays, so that they are kept once.
    """
    count = len(constants.keys)
    keys = constants.keys if constants.rests is None else np.concatenate([constants.keys, constants.rests])
    _, at, data = constants.texts.buffers()
    begin, texts = constants.texts.offset, len(constants.texts)
    text_at, text = np.zeros(1, np.int64), np.zeros(0, np.uint8)
    if texts:
        text_at = np.array(np.frombuffer(at, np.int64)[begin : begin + texts + 1])
        text = np.array(np.frombuffer(data or b"", np.uint8)[text_at[0] : text_at[-1]])
        text_at -= text_at[0]
    buffers = [None, pa.py_buffer(text_at), pa.py_buffer(text)]
    same = Constants(
        constants.counts,
        constants.is_text,
        keys[:count],
        None if constants.rests is None else keys[count:],
        pa.Array.from_buffers(pa.large_string(), texts, buffers),
    )
    return keys, text_at, text, same


def _laid(clauses: Clauses, leads: Mask, plan: Packing, rests_at: int) -> npt.NDArray[np.int32]:
    """All words of a segment."""
    count = len(clauses)
    sizes = [AXIS * len(leads), TREE * len(plan.trees), count + 1, ROW * len(clauses.axis), count]
    axes_at, trees_at, first_at, rows_at, owners_at, body_at = (HEADER + np.cumsum([0, *sizes])).tolist()
    capacity.check("words of one segment", body_at + len(plan.body), capacity.SEGMENT_WORDS)
    words = np.empty(body_at + len(plan.body), np.int32)
    words[:HEADER] = 0
    words[[AXES, AXES_AT, CLAUSES, FIRST_AT, ROWS_AT]] = len(leads), axes_at, count, first_at, rows_at
    words[[OWNERS_AT, TREES_AT, OPEN_TREE, RESTS_AT]] = owners_at, trees_at, plan.open_tree, rests_at
    plan.move(body_at)
    constants = clauses.constants
    own = (clauses.axes, constants.is_text, leads, constants.places, constants.counts)
    words[axes_at:trees_at] = np.column_stack([*own, plan.access]).ravel()
    words[trees_at:first_at] = plan.trees.ravel()
    rows = clauses.first, clauses.axis, clauses.low, clauses.high
    lay_rows(*rows, plan.order, words[first_at:rows_at], words[rows_at:owners_at])
    words[owners_at:body_at] = clauses.slot[plan.order] * 2 + clauses.several[plan.order]
    words[body_at:] = plan.body
    return words
