"""Which sets hold a constant: linked lists in flat arrays, by the constant's place."""

from __future__ import annotations

import numpy as np

from harken.matching.growing import GrowingArray
from harken.matching.saving import State, require


class Members:
    """The sets of each constant. Changes must not run beside anything else."""

    def __init__(self) -> None:
        self.head = GrowingArray(np.int32, fill=-1)
        self.next = GrowingArray(np.int32, fill=-1)
        self.predicate = GrowingArray(np.int32)
        self._free: list[int] = []

    @property
    def nbytes(self) -> int:
        """Bytes taken."""
        return self.head.nbytes + self.next.nbytes + self.predicate.nbytes

    def state(self) -> State:
        """The lists as they are."""
        free = np.array(self._free, np.int64)
        lists = {"head": self.head.values, "next": self.next.values, "predicate": self.predicate.values}
        return State({}, {**lists, "free": free})

    def restore(self, state: State) -> None:
        """Have the lists that others had."""
        self.head = GrowingArray.of(state.array("head", np.int32), fill=-1)
        self.next = GrowingArray.of(state.array("next", np.int32), fill=-1)
        self.predicate = GrowingArray.of(state.array("predicate", np.int32, size=len(self.next)))
        self._free = state.array("free", np.int64).tolist()
        self._check_free()

    def _check_free(self) -> None:
        """ValueError if the lists do not end, or a node that is free is in one."""
        following, free = self.next.values.tolist(), set(self._free)
        require(len(free) == len(self._free) <= len(following), "a place for a set is free twice")
        require(all(0 <= node < len(following) for node in free), "a place for a set is free that there is not")
        seen: set[int] = set()
        for node in self.head.values[self.head.values >= 0].tolist():
            while node >= 0:
                require(node < len(following) and node not in seen and node not in free, "a list does not end")
                seen.add(node)
                node = following[node]

    def add(self, place: int, predicate: int) -> None:
        """A set holds the constant at this place."""
        if self._free:
            node = self._free.pop()
        else:
            node = self.next.append(-1)
            self.predicate.append(0)
        self.predicate.values[node] = predicate
        self.next.values[node] = self.head.values[place]
        self.head.values[place] = node

    def discard(self, place: int, predicate: int) -> None:
        """It no longer does."""
        before, node = -1, int(self.head.values[place])
        while self.predicate.values[node] != predicate:
            before, node = node, int(self.next.values[node])
        following = self.next.values[node]
        if before < 0:
            self.head.values[place] = following
        else:
            self.next.values[before] = following
        self._free.append(node)
