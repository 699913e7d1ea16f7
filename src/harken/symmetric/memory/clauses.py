"""Clauses as codes, columnwise, before they are indexed: joined, thinned out and split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from harken.matching.runs import changes, edges, ranges, starts
from harken.symmetric.memory.constants import Constants, join_constants
from harken.symmetric.memory.kernels.layout import ClauseRows, Mask, Places, Words

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
        rows, (clause, at) = self.rows, runs_of(self.rows)
        if len(at) == len(clause):
            return rows
        first = edges(np.bincount(clause[at], minlength=len(self)))
        low, high = np.minimum.reduceat(rows.low, at), np.maximum.reduceat(rows.high, at)
        return ClauseRows(first, rows.axis[at], low, high)

    def split(self) -> Clauses:
        """The same, with clauses that list points on an axis split up, one for each. Only for new ones.

        The bounding box of points that lie apart says little; each in a clause of its own is found at once. What
        lists points on several axes is split on that with the most.
        """
        rows, (clause, at) = self.rows, runs_of(self.rows)
        if len(at) == len(clause):
            return self
        points, clause = np.diff(np.append(at, len(clause))), clause[at]
        chosen = np.flatnonzero((points > 1) & np.logical_and.reduceat(rows.low == rows.high, at))
        chosen = chosen[points[chosen] * (np.diff(rows.first)[clause[chosen]] - points[chosen] + 1) <= MOST_ROWS]
        if not len(chosen):
            return self
        chosen = chosen[np.lexsort((-points[chosen], clause[chosen]))]
        chosen = chosen[changes(clause[chosen])]
        begin, end = rows.first[:-1], rows.first[1:]
        split_at, listed = begin.copy(), np.zeros(len(self), np.int64)
        split_at[clause[chosen]], listed[clause[chosen]] = at[chosen], points[chosen]
        parts = np.maximum(listed, 1)
        part_of = np.repeat(np.arange(len(self)), parts)
        point = np.arange(len(part_of)) - starts(parts)[part_of]
        # A part has what comes before the list, one of its points, and what comes after it.
        sources = np.column_stack([begin[part_of], split_at[part_of] + point, (split_at + listed)[part_of]])
        counts = np.column_stack([split_at - begin, listed > 0, end - split_at - listed])[part_of]
        source = ranges(sources.ravel(), counts.ravel())
        return replace(
            self,
            rows=ClauseRows(edges(counts.sum(axis=1)), *(column[source] for column in rows[1:])),
            slot=self.slot[part_of],
            several=(self.several | (parts > 1))[part_of],
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


def runs_of(rows: ClauseRows) -> tuple[Places, Places]:
    """By row its clause; and where the rows that a clause has on one axis begin."""
    clause = np.repeat(np.arange(len(rows.first) - 1), np.diff(rows.first))
    return clause, np.flatnonzero(changes(clause, rows.axis))


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
