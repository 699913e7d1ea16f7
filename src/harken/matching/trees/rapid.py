"""Search trees of their own for events with few properties (Kale et al. 2005, section 4: RAPIDMatch)."""

from __future__ import annotations

from typing import Self

import numpy as np

from harken.matching.contract import Slots, Stats
from harken.matching.events.batch import EventBatch
from harken.matching.kernels.layout import Events
from harken.matching.saving import State, require
from harken.matching.trees.forest import NOT_LIGHT, Partition
from harken.matching.trees.kernels.layout import MOST_LIGHT
from harken.matching.trees.kernels.observing import count_properties
from harken.matching.trees.matcher import WAITING, SearchTreeMatcher
from harken.model.arguments import checked_count, checked_flag

COPIES = 2.0
"""In how many trees of light events a clause may be, on average, unless c is given."""

SAMPLE = 256
"""Events looked at per block."""

MEMORY = 50_000
"""About how many events are remembered before older ones fade."""

RARE = 0.001
"""Events of so many properties are as good as none if they are no larger a part of all."""


class RapidMatcher(SearchTreeMatcher):
    """Events of t properties, t up to c, walk one of t + 1 trees: that of a block in which they have none.

    In it are only clauses that ask for no more than t, and for none of that block. Other events walk a tree of all
    clauses. Without `c`, that follows what events look like and how often clauses have to be stored for it.
    """

    def __init__(self, *, c: int | None = None, reorder: bool = True, waiting: int = WAITING) -> None:
        """`reorder` has trees ask first what must be there; without, they ask property by property, as `tree`."""
        self._c = None if c is None else checked_count("c", c)
        self._reorder = checked_flag("reorder", reorder)
        self._properties_seen = np.zeros(MOST_LIGHT + 2, np.int64)
        super().__init__(waiting)

    def learn(self, events: EventBatch) -> None:
        """See how many properties events have, every one of them, and make all trees for such events.

        Linear in the events and in the clauses. Must not run beside anything else.
        """
        for block in [block for _, block in self._encoder.blocks(events, SAMPLE)]:
            self._observe(block)
        with self._changing():
            self._make_anew()

    def stats(self) -> Stats:
        """As every search tree, and the c of each segment of clauses."""
        return {**super().stats(), "c": [each.light for each in self._forest.segments]}

    def rescue(self, broken: Self, slots: Slots) -> None:
        """As every search tree, and what was seen of events."""
        self._properties_seen[:] = broken._properties_seen
        super().rescue(broken, slots)

    def _parts(self) -> dict[str, State]:
        seen = State({}, {"properties": self._properties_seen.copy()})
        return {**super()._parts(), "events": seen}

    def _restore_parts(self, state: State, slots: Slots) -> None:
        seen = state.part("events").array("properties", np.int64, size=len(self._properties_seen))
        require(bool(((seen >= 0) & (seen < 2**40)).all()), "fewer events than none were seen")
        self._properties_seen[:] = seen
        super()._restore_parts(state, slots)

    def _observe(self, events: Events) -> None:
        if self._properties_seen.sum() > MEMORY:
            self._properties_seen //= 2
        index = self._index
        step = max(1, len(events.code) // SAMPLE)
        count_properties(index.predicates, index.roles, events, step, self._properties_seen)

    def _partition(self) -> Partition:
        if self._c is not None:
            return Partition(self._c, None, self._reorder)
        return Partition(self._most_light(), COPIES, self._reorder)

    def _restored_partition(self) -> Partition:
        # What was light when clauses were more must not cost them that they are light now.
        partition = self._partition()._replace(light=MOST_LIGHT if self._c is None else self._c)
        return partition if partition.copies is None else partition._replace(copies=4 * COPIES)

    def _most_light(self) -> int:
        """The most properties that events have, but for rare ones; if none was seen, any number."""
        seen = self._properties_seen[: MOST_LIGHT + 1]
        total = int(self._properties_seen.sum())
        if not total:
            return MOST_LIGHT
        common = np.flatnonzero(seen > RARE * total)
        return int(common[-1]) if len(common) else NOT_LIGHT
