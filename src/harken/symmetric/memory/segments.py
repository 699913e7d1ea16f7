"""A segment: clauses that do not change, indexed. kernels/layout.py says how it lies in memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from harken.matching.runs import edges
from harken.matching.structures.tries import texts_of
from harken.model import capacity
from harken.symmetric.memory.clauses import Clauses, taken
from harken.symmetric.memory.constants import Constants
from harken.symmetric.memory.forms import Dimensions
from harken.symmetric.memory.kernels import layout
from harken.symmetric.memory.kernels.layout import FLAG_BITS, ROW, Bytes, ClauseRows, Floats, Mask, Places, Words
from harken.symmetric.memory.kernels.matching import find
from harken.symmetric.memory.packing import Packing, packed
from harken.symmetric.memory.queries import Query

FIRST_ROOM = 512
"""Finds that there is room for at first."""

WORDS_PER_ROW, WORDS_PER_AXIS = 16, 96
"""Words that trees have at most for each row of a clause, which is in two of them, each with a node
of up to two axes and some above; and beside those for each axis, whose trees have one node more on each level."""

_FLAGS = (1 << FLAG_BITS) - 1


def fits_a_segment(clauses: int, rows: int, axes: int) -> bool:
    """Whether one segment surely can have so many clauses, rows and axes, whatever trees they come to stand in."""
    of_axes, of_clauses = (layout.AXIS + WORDS_PER_AXIS) * axes, (4 + layout.TREE) * clauses
    return layout.HEADER + of_axes + of_clauses + (ROW + WORDS_PER_ROW) * rows <= capacity.SEGMENT_WORDS


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
        return int(self._arrays[0][layout.CLAUSES])

    def find(self, asked: Query, alive: Bytes, room: int = FIRST_ROOM) -> tuple[Places, int]:
        """What the asked constraints meet here: rows of places, slots and flags; and all flags that any has.

        Where there is not room for all, all are looked for a second time.
        """
        scratch = np.empty(len(self._axes) + 2 * len(asked.stream), np.int32)
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
        return int(words[words[layout.FIRST_AT] + words[layout.CLAUSES]])

    def clauses(self) -> Clauses:
        """What it was made of, in another order."""
        words, count = self._arrays[0], len(self)
        first_at, rows_at, owners_at = words[[layout.FIRST_AT, layout.ROWS_AT, layout.OWNERS_AT]].tolist()
        first = words[first_at : first_at + count + 1].astype(np.int64)
        columns = np.ascontiguousarray(words[rows_at : rows_at + ROW * first[-1]].reshape(-1, ROW).T)
        owners = words[owners_at : owners_at + count]
        several = (owners & 1).astype(np.bool_)
        return Clauses(self._axes, self._constants, ClauseRows(first, *columns), owners >> 1, several)


def _apart(constants: Constants) -> tuple[Floats, Places, Bytes, Constants]:
    """Keys with the rests behind them, where texts begin, and their bytes, as kernels take them: writable.

    And the same constants as parts of those arrays, so that they are kept once.
    """
    count = len(constants.keys)
    keys = constants.keys if constants.rests is None else np.concatenate([constants.keys, constants.rests])
    text, text_at = texts_of(constants.texts)
    text, text_at = text[text_at[0] : text_at[-1]].copy(), text_at - text_at[0]
    rests = None if constants.rests is None else keys[count:]
    buffers = [None, pa.py_buffer(text_at), pa.py_buffer(text)]
    kept = pa.Array.from_buffers(pa.large_string(), len(constants.texts), buffers)
    return keys, text_at, text, replace(constants, keys=keys[:count], rests=rests, texts=kept)


def _laid(clauses: Clauses, leads: Mask, plan: Packing, rests_at: int) -> Words:
    """All words of a segment."""
    constants, rows = clauses.constants, taken(clauses.rows, plan.order)
    axes = (clauses.axes, constants.is_text, leads, constants.places, constants.counts, plan.access)
    parts = [
        plan.words,
        np.column_stack(axes),
        plan.trees,
        rows.first,
        np.column_stack([rows.axis, rows.low, rows.high]),
        clauses.slot[plan.order] * 2 + clauses.several[plan.order],
    ]
    at = edges(np.array([part.size for part in parts]))
    capacity.check("words of one segment", int(at[-1]), capacity.SEGMENT_WORDS)
    words = np.concatenate([part.ravel().astype(np.int32, copy=False) for part in parts])
    words[: layout.HEADER] = 0
    words[[layout.AXES, layout.CLAUSES]] = len(leads), len(clauses)
    words[[layout.AXES_AT, layout.TREES_AT, layout.FIRST_AT, layout.ROWS_AT, layout.OWNERS_AT]] = at[1:-1]
    words[[layout.OPEN_TREE, layout.RESTS_AT]] = plan.open_tree, rests_at
    return words
