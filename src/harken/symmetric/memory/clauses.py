"""Clauses as codes, columnwise, before they are indexed: joined, thinned out and split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import numpy.typing as npt

from harken.symmetric.memory.constants import Constants, join_constants
from harken.symmetric.memory.kernels.building import copy_parts, count_parts
from harken.symmetric.memory.orders import Mask, Places

MOST_ROWS = 4096
"""Rows that splitting one clause may make."""


@dataclass(slots=True)
class Clauses:
    """Clause c has the rows first[c] to first[c + 1], ascending by axis; a row is an axis and a range of codes.

    Rows number the axes by their place in `axes`, which has their numbers in the store, ascending. See
    kernels/layout.py for what codes mean.
    """

    axes: npt.NDArray[np.int32]
    constants: Constants
    first: Places
    axis: npt.NDArray[np.int32]
    low: npt.NDArray[np.int32]
    high: npt.NDArray[np.int32]
    slot: npt.NDArray[np.int32]
    several: Mask
    """Whether the owner has more than one clause."""

    def __len__(self) -> int:
        return len(self.slot)

    @property
    def codes(self) -> Places:
        """How many codes each axis has."""
        return 2 * self.constants.counts + 1

    def split(self) -> Clauses:
        """The same, with clauses that list points on an axis split up, one for each. Only for new ones."""
        split_at, parts = np.empty(len(self), np.int64), np.empty(len(self), np.int64)
        count_parts(self.first, self.axis, self.low, self.high, MOST_ROWS, split_at, parts)
        if not len(parts) or parts.max() == 1:
            return self
        lengths = np.diff(self.first)
        first = np.empty(parts.sum() + 1, np.int64)
        source = np.empty((np.where(parts > 1, lengths - parts + 1, lengths) * parts).sum(), np.int64)
        copy_parts(self.first, split_at, parts, first, source)
        return replace(
            self,
            first=first,
            axis=self.axis[source],
            low=self.low[source],
            high=self.high[source],
            slot=np.repeat(self.slot, parts),
            several=np.repeat(self.several | (parts > 1), parts),
        )

    def only(self, kept: Mask) -> Clauses:
        """Some of the clauses, and the axes and constants that those use."""
        lengths = np.diff(self.first)
        rows = np.repeat(kept, lengths)
        axis = self.axis[rows]
        used = np.bincount(axis, minlength=len(self.axes)) > 0
        places = (np.cumsum(used) - 1).astype(np.int32)
        fewer = Clauses(
            self.axes[used],
            self.constants.of_axes(used),
            np.concatenate([[0], np.cumsum(lengths[kept])]),
            places[axis],
            self.low[rows],
            self.high[rows],
            self.slot[kept],
            self.several[kept],
        )
        return fewer._with_used_constants()

    def _with_used_constants(self) -> Clauses:
        counts, first = self.constants.counts, self.constants.first
        used = np.zeros(counts.sum(), np.bool_)
        # A lower code belongs to the constant that it is or comes after, an upper one to that it is or precedes.
        low, high = (self.low - 1) >> 1, self.high >> 1
        used[(first[self.axis] + low)[self.low > 0]] = True
        used[(first[self.axis] + high)[high < counts[self.axis]]] = True
        number = np.cumsum(used) - 1
        fewer = self.constants.only(used)
        ranks = number - np.repeat(fewer.first, counts)
        return self._recoded(fewer, np.arange(len(counts)), ranks)

    def _recoded(self, constants: Constants, axes: Places, ranks: Places) -> Clauses:
        """The same clauses under other constants, among which the old ones have these ranks, on these axes."""
        counts = self.constants.counts
        # Codes of all axes one after the other: two for each constant and one more for the axis.
        base = 2 * self.constants.first + np.arange(len(counts))
        at = 2 * np.arange(len(ranks)) + np.repeat(np.arange(len(counts)), counts)
        low = np.zeros(2 * len(ranks) + len(counts), np.int32)
        high = np.zeros(len(low), np.int32)
        low[at + 1] = high[at + 1] = 2 * ranks + 1
        # Between two constants: an open lower end is just after the one, an open upper end just before the other.
        low[at + 2], high[at] = 2 * ranks + 2, 2 * ranks
        low[base], high[base + 2 * counts] = 0, 2 * constants.counts[axes]
        place = base[self.axis]
        return replace(
            self,
            constants=constants,
            axis=axes[self.axis].astype(np.int32),
            low=low[place + self.low],
            high=high[place + self.high],
        )


def joined(several: Sequence[Clauses]) -> Clauses:
    """All clauses of several, under the same constants. O(n), but for texts."""
    if len(several) == 1:
        return several[0]
    axes = reduce(np.union1d, [each.axes for each in several]).astype(np.int32)
    places = [np.searchsorted(axes, each.axes) for each in several]
    constants, ranks = join_constants([each.constants for each in several], places)
    recoded = [each._recoded(constants, *where) for each, *where in zip(several, places, ranks, strict=True)]
    counts = np.concatenate([np.diff(each.first) for each in recoded])
    return Clauses(
        axes,
        constants,
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([each.axis for each in recoded]),
        np.concatenate([each.low for each in recoded]),
        np.concatenate([each.high for each in recoded]),
        np.concatenate([each.slot for each in recoded]),
        np.concatenate([each.several for each in recoded]),
    )
