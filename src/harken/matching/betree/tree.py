"""A BE-Tree as growing arrays: who makes room for what kernels put there."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from harken.matching.betree.kernels.layout import (
    END_ENTRY,
    END_NODE,
    NO_NODE,
    ROOT,
    SIZE,
    TOTALS,
    WANTED,
    Nodes,
    Tree,
)
from harken.matching.betree.kernels.placing import AT_LEAST, PER_ENTRY, insert
from harken.matching.growing import GrowingArray
from harken.matching.kernels.layout import PredicateArrays
from harken.matching.structures.intervals import GrowingHashTable
from harken.matching.structures.kernels.attributes import NOTHING, WAYS
from harken.matching.structures.kernels.clauses import Contents
from harken.matching.structures.kernels.records import RECORD

MORE = 4
"""One part in so many is added whenever room is made."""


class GrowingTree:
    """The nodes, their entries, and what each clause is in. Changes must not run beside anything else."""

    def __init__(self, node_size: int) -> None:
        wide = {"start", "middle"}
        self._nodes: list[GrowingArray[Any]] = [
            GrowingArray(np.int64 if name in wide else np.int32) for name in Nodes._fields
        ]
        self._entries = GrowingArray(np.uint32)
        self._by_attribute = GrowingHashTable()
        self._node_of, self._place_of = GrowingArray(np.int32, fill=NO_NODE), GrowingArray(np.int32)
        self._records = GrowingArray(np.int32)
        self._frequency, self._tally = GrowingArray(np.int64), GrowingArray(np.int32)
        self._spare = np.zeros(TOTALS, np.int64)
        self._spare[SIZE], self._spare[END_NODE] = node_size, ROOT + 1
        self._make_room(0)
        nodes = self.arrays().nodes
        nodes.limit[ROOT], nodes.attribute[ROOT] = node_size, NOTHING
        nodes.lower[ROOT], nodes.above[ROOT] = NO_NODE, NO_NODE

    def __len__(self) -> int:
        """How many nodes there are."""
        return int(self._spare[END_NODE])

    @property
    def directories(self) -> int:
        """How often space is cut by an attribute."""
        return len(self._by_attribute)

    @property
    def nbytes(self) -> dict[str, int]:
        """Bytes taken by each part, room to grow included."""
        return {
            "nodes": sum(each.nbytes for each in (*self._nodes, self._entries)) + self._by_attribute.nbytes,
            "records of clauses": sum(each.nbytes for each in (self._node_of, self._place_of, self._records)),
        }

    def arrays(self) -> Tree:
        """All of it as kernels see it."""
        return Tree(
            Nodes(*(each.values for each in self._nodes)),
            self._entries.values,
            self._by_attribute.arrays(),
            self._node_of.values,
            self._place_of.values,
            self._records.values,
            self._frequency.values,
            self._tally.values,
            self._spare,
        )

    def have_clauses(self, count: int) -> None:
        """Have a place for every clause below this one."""
        self._node_of.grow_to(count)
        self._place_of.grow_to(count)
        self._records.grow_to(count * RECORD)

    def have_dimensions(self, count: int) -> None:
        """Have a place for every attribute of so many dimensions."""
        self._frequency.grow_to(count * WAYS)
        self._tally.grow_to(count * WAYS)

    def insert(self, contents: Contents, predicates: PredicateArrays, clauses: npt.NDArray[np.int64]) -> None:
        """Put clauses that are in no node into some."""
        done = insert(self.arrays(), contents, predicates, clauses, 0)
        while done < len(clauses):
            self._make_room(int(self._spare[WANTED]))
            done = insert(self.arrays(), contents, predicates, clauses, done)

    def _make_room(self, entries: int) -> None:
        """Have room for what a cut makes of a node with so many entries, and for more to come."""
        for array in self._nodes:
            array.grow_to(_with_more(int(self._spare[END_NODE])) + 2)
        self._entries.grow_to(_with_more(int(self._spare[END_ENTRY])) + PER_ENTRY * entries + AT_LEAST)
        known = len(self._by_attribute)
        self._by_attribute.have_room(_with_more(known) - known + 1)


def _with_more(count: int) -> int:
    return count + count // MORE
