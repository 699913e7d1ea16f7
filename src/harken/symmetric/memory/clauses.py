"""Clauses as codes, columnwise, before they are indexed: joined, thinned out and split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from harken.symmetric.memory.constants import Constants, join_constants
from harken.symmetric.memory.kernels.building import copy_parts, count_parts
from harken.symmetric.memory.kernels.layout import ClauseRows, Mask, Places, Words
from harken.symmetric.memory.runs import changes, edges, ranges

MOST_ROWS = 4096
"""Rows that splitting one clause may make."""

_NONE = -1


@dataclass(slots=True)
class Clauses:
    """Rows of codes, and whose they are. Rows number the axes by their place in `axes`."""

    axes: Words
    """Their numbers in the store, ascending."""
    constants: Constants
    rows: ClauseRows
    slot: Words
    """By clause: its owner."""
    several: Mask
    """By clause: whether the owner has more than one."""

    def __len__(self) -> int:
        return len(self.slot)

    @property
    def codes(self) -> Places:
        """How many codes each axis has."""
        return 2 * self.constants.counts + 1

    def boxes(self) -> ClauseRows:
        """The bounding boxes of clauses: one row for each axis of a clause, around all its rows there."""
        rows = self.rows
        clause = np.repeat(np.arange(len(self)), np.diff(rows.first))
        at = np.flatnonzero(changes(clause, rows.axis))
        if len(at) == len(clause):
            return rows
        first = edges(np.bincount(clause[at], minlength=len(self)))
        low, high = np.minimum.reduceat(rows.low, at), np.maximum.reduceat(rows.high, at)
        return ClauseRows(first, rows.axis[at], low, high)

    def split(self) -> Clauses:
        """The same, with clauses that list points on an axis split up, one for each. Only for new ones."""
        split_at, parts = np.empty(len(self), np.int64), np.empty(len(self), np.int64)
        count_parts(self.rows, MOST_ROWS, split_at, parts)
        if not len(parts) or parts.max() == 1:
            return self
        lengths = np.diff(self.rows.first)
        first = np.empty(parts.sum() + 1, np.int64)
        source = np.empty((np.where(parts > 1, lengths - parts + 1, lengths) * parts).sum(), np.int64)
        copy_parts(self.rows.first, split_at, parts, first, source)
        return replace(
            self,
            rows=ClauseRows(first, *(column[source] for column in self.rows[1:])),
            slot=np.repeat(self.slot, parts),
            several=np.repeat(self.several | (parts > 1), parts),
        )

    def only(self, kept: Mask) -> Clauses:
        """Some of the clauses, and the axes and constants that those use."""
        chosen = np.flatnonzero(kept)
        fewer = replace(self, rows=taken(self.rows, chosen), slot=self.slot[kept], several=self.several[kept])
        axes = np.bincount(fewer.rows.axis, minlength=len(self.axes)) > 0
        counts, first = self.constants.counts, self.constants.first
        used = np.zeros(counts.sum() + 1, np.bool_)  # the last one stands for none
        for constant in fewer._end_constants():
            used[constant] = True
        before = edges(used[:-1])
        ranks = before[:-1] - np.repeat(before[first], counts)
        fewer.axes = self.axes[axes]
        return fewer._recoded(self.constants.only(used[:-1], axes), np.cumsum(axes) - 1, ranks)

    def _end_constants(self) -> tuple[Places, Places]:
        """By row, the numbers of the constants that its lower and upper ends are made of; -1 if it has no end.

        A lower end is its constant or just after it, an upper end is its constant or just before it.
        """
        rows, first = self.rows, self.constants.first[self.rows.axis]
        last_code = 2 * self.constants.counts[rows.axis]
        low = np.where(rows.low > 0, first + (rows.low - 1) // 2, _NONE)
        high = np.where(rows.high < last_code, first + rows.high // 2, _NONE)
        return low, high

    def _recoded(self, constants: Constants, axes: Places, ranks: Places) -> Clauses:
        """The same clauses under other constants, among which the old ones have these ranks, on these axes.

        If 10 and 30 (codes 1 and 3) become 10, 20 and 30, they have the ranks 0 and 2 (codes 1 and 5): so what
        lies between them, from just after 10 to just before 30, was coded 2 to 2, and is coded 2 to 4.
        """
        rows, axis = self.rows, axes[self.rows.axis]
        low, high = self._end_constants()
        ranks = np.append(ranks, 0)  # of those without an end, for which it means nothing
        new_low = np.where(low == _NONE, 0, 2 * ranks[low] + 1 + (rows.low - 1) % 2)
        new_high = np.where(high == _NONE, 2 * constants.counts[axis], 2 * ranks[high] + rows.high % 2)
        columns = (column.astype(np.int32) for column in (axis, new_low, new_high))
        return replace(self, constants=constants, rows=ClauseRows(rows.first, *columns))


def taken(rows: ClauseRows, clauses: Places) -> ClauseRows:
    """The rows of some clauses, in the order given."""
    lengths = rows.first[clauses + 1] - rows.first[clauses]
    at = ranges(rows.first[clauses], lengths)
    return ClauseRows(edges(lengths), rows.axis[at], rows.low[at], rows.high[at])


def joined(several: Sequence[Clauses]) -> Clauses:
    """All clauses of several, under the same constants. O(n), but for texts."""
    if len(several) == 1:
        return several[0]
    axes = reduce(np.union1d, [each.axes for each in several]).astype(np.int32)
    own_axes = [np.searchsorted(axes, each.axes) for each in several]
    constants, ranks = join_constants([each.constants for each in several], own_axes)
    rows = [each._recoded(constants, *how).rows for each, *how in zip(several, own_axes, ranks, strict=True)]
    first = edges(np.concatenate([np.diff(each.first) for each in rows]))
    return Clauses(
        axes,
        constants,
        ClauseRows(first, *(np.concatenate(columns) for columns in list(zip(*rows, strict=True))[1:])),
        np.concatenate([each.slot for each in several]),
        np.concatenate([each.several for each in several]),
    )
