"""Trees that find intervals, as growing arrays: how engines and tests hold them."""

from __future__ import annotations

import numpy as np

from harken.matching.growing import GrowingArray
from harken.matching.structures.kernels.hashing import EMPTY, HashTable, copy_into
from harken.matching.structures.kernels.interval_trees import LEAF, IntervalTrees
from harken.matching.structures.kernels.priority_search_trees import PrioritySearchTrees

FEWEST = 16
"""Places of the smallest hash table."""


class GrowingHashTable:
    """A hash table that can have more places. Changes must not run beside anything else."""

    def __init__(self) -> None:
        self._table = _empty(FEWEST)

    def __len__(self) -> int:
        return int(self._table.spare[0])

    @property
    def nbytes(self) -> int:
        """Bytes taken."""
        return self._table.key.nbytes + self._table.value.nbytes

    def arrays(self) -> HashTable:
        """The table as kernels see it."""
        return self._table

    def have_room(self, more: int) -> None:
        """Have room for so many more keys, and so that no more than half of all places are taken."""
        wanted = 2 * (len(self) + more)
        if wanted > len(self._table.key):
            larger = _empty(1 << max(wanted - 1, 1).bit_length())
            copy_into(self._table, larger)
            self._table = larger


def _empty(places: int) -> HashTable:
    return HashTable(np.full(places, EMPTY, np.int64), np.zeros(places, np.int32), np.zeros(1, np.int64))


class GrowingIntervalTrees:
    """Interval trees with a place for ever more items."""

    def __init__(self) -> None:
        self._centre = GrowingArray(np.int64, fill=LEAF)
        self._left, self._right = GrowingArray(np.int32, fill=-1), GrowingArray(np.int32, fill=-1)

    @property
    def nbytes(self) -> int:
        """Bytes taken, room to grow included."""
        return self._centre.nbytes + self._left.nbytes + self._right.nbytes

    def arrays(self) -> IntervalTrees:
        """The trees as kernels see them."""
        return IntervalTrees(self._centre.values, self._left.values, self._right.values)

    def have_items(self, count: int) -> None:
        """Have a place for every item below this one."""
        for array in (self._centre, self._left, self._right):
            array.grow_to(count)


class GrowingPrioritySearchTrees:
    """Priority search trees with a place for ever more items."""

    def __init__(self) -> None:
        self._low, self._high = GrowingArray(np.int64), GrowingArray(np.int64)
        self._left, self._right, self._up, self._top = (GrowingArray(np.int32, fill=-1) for _ in range(4))
        self._is_red, self._stands = GrowingArray(np.bool_), GrowingArray(np.uint8)

    @property
    def nbytes(self) -> int:
        """Bytes taken, room to grow included."""
        return sum(each.nbytes for each in vars(self).values())

    def arrays(self) -> PrioritySearchTrees:
        """The trees as kernels see them."""
        return PrioritySearchTrees(
            self._low.values,
            self._high.values,
            self._left.values,
            self._right.values,
            self._up.values,
            self._top.values,
            self._is_red.values,
            self._stands.values,
        )

    def have_items(self, count: int) -> None:
        """Have a place for every item below this one."""
        for array in vars(self).values():
            array.grow_to(count)
