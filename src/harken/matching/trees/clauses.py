"""The clauses of an index of search trees, numbered as they come."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.matching.contract import Slots
from harken.matching.growing import GrowingArray
from harken.matching.kernels.layout import Clauses, PredicateArrays
from harken.matching.predicates.soundness import in_use
from harken.matching.runs import edges
from harken.matching.saving import State, require
from harken.matching.trees.kernels.keeping import (
    contents_are_sound,
    enter,
    move_clauses,
    read_clauses,
    take_out,
)
from harken.matching.trees.kernels.layout import NOBODY, Contents, tree_words
from harken.model import capacity

ARRAYS = ("first", "words", "owner", "sibling", "leader", "head")


class TreeClauses:
    """What each clause asks, and whose it is. Those that leave keep their numbers until all are numbered anew.

    Changes must not run beside anything else; matching only reads.
    """

    def __init__(self) -> None:
        self.first = GrowingArray(np.uint32, size=1)
        self.words = GrowingArray(np.int32)
        self.owner = GrowingArray(np.uint32)
        self.sibling = GrowingArray(np.int32)
        self.leader = GrowingArray(np.int32)
        self.head = GrowingArray(np.int32, fill=-1)
        self.end = 0
        """The number that the next clause gets."""
        self.left = 0
        """How many of those before have left."""

    def __len__(self) -> int:
        return self.end - self.left

    @property
    def nbytes(self) -> int:
        """Bytes taken, room to grow included."""
        return sum(getattr(self, name).nbytes for name in ARRAYS)

    @property
    def word_count(self) -> int:
        """How many predicates all clauses have, those that have left included."""
        return int(self.first.values[self.end])

    def arrays(self) -> Contents:
        """The clauses as kernels see them."""
        return Contents(
            self.first.values,
            self.words.values,
            self.owner.values,
            self.sibling.values,
            self.leader.values,
            self.head.values,
            self.end,
        )

    def state(self) -> State:
        """The clauses as they lie."""
        arrays = {name: getattr(self, name).values for name in ARRAYS if name != "leader"}
        size = {"first": self.end + 1, "words": self.word_count, "owner": self.end, "sibling": self.end}
        return State({"left": self.left}, {name: each[: size.get(name)] for name, each in arrays.items()})

    def restore(self, state: State, slots: Slots, predicates: PredicateArrays) -> npt.NDArray[np.int64]:
        """Hold the clauses that were saved; how often they use predicates. ValueError if they are none."""
        self.owner = GrowingArray.of(state.array("owner", np.uint32))
        self.end = len(self.owner)
        self.first = GrowingArray.of(state.array("first", np.uint32, size=self.end + 1))
        self.words = GrowingArray.of(state.array("words", np.int32))
        self.sibling = GrowingArray.of(state.array("sibling", np.int32, size=self.end))
        self.leader = GrowingArray(np.int32, size=self.end)
        self.head = GrowingArray.of(state.array("head", np.int32), fill=-1)
        self.left = state.count("left")
        require(int(self.first.values[0]) == 0 and self.word_count == len(self.words), "predicates are missing")
        uses, used = np.zeros(len(predicates.operator), np.int64), in_use(slots, len(self.head))
        listed = np.zeros(self.end, np.bool_)
        arrays = self.arrays()
        sound = contents_are_sound(arrays, predicates.operator, predicates.dimension, used, uses, listed)
        require(sound, "clauses are none")
        require(np.count_nonzero(arrays.owner == NOBODY) == self.left, "more clauses have left, or fewer")
        return uses

    def have_slots(self, count: int) -> None:
        """Have a place for every slot below this one."""
        self.head.grow_to(count)

    def check_room(self, clauses: int, predicates: int) -> None:
        """CapacityError if there is no number for so many more clauses, or no room in one tree."""
        capacity.check("clauses", self.end + clauses, capacity.CLAUSES)
        words = tree_words(self.end + clauses, self.word_count + predicates)
        capacity.check("words of a search tree", words, capacity.TREE_WORDS)

    def enter(self, clauses: Clauses, dimension: npt.NDArray[np.int32]) -> None:
        """Take in clauses, in the order of the dimensions of their predicates."""
        begin, end = self.end, self.end + len(clauses.slot)
        self.words.grow_to(self.word_count + len(clauses.words))
        for array in (self.owner, self.sibling, self.leader):
            array.grow_to(end)
        self.first.grow_to(end + 1)
        enter(self.arrays(), begin, clauses, dimension)
        self.end = end

    def take_out(self, slots: Slots) -> npt.NDArray[np.int64]:
        """Let the clauses of these slots go; the numbers of their predicates, one by one."""
        going = self.read(slots)
        take_out(self.arrays(), slots)
        self.left += len(going.slot)
        return going.words

    def read(self, slots: Slots) -> Clauses:
        """All clauses of these slots, also where a change of others has failed."""
        contents, counts, nothing = self.arrays(), np.zeros(2, np.int64), np.zeros(0, np.int64)
        read_clauses(contents, slots, counts, nothing, nothing, nothing)
        size, slot = np.zeros((2, counts[0]), np.int64)
        words = np.zeros(counts[1], np.int64)
        read_clauses(contents, slots, counts, size, slot, words)
        alone = np.bincount(slot, minlength=1)[slot] == 1
        return Clauses(edges(size), words, slot, alone)

    def compacted(self) -> TreeClauses:
        """The same without those that have left, numbered anew. Linear in the number of clauses."""
        other = TreeClauses()
        sizes = {"first": len(self) + 1, "words": self.word_count, "head": len(self.head)}
        for name in ARRAYS:
            getattr(other, name).grow_to(sizes.get(name, len(self)))
        other.end = len(self)
        move_clauses(self.arrays(), other.arrays())
        # Of the words no more than there were could be known before.
        other.words = GrowingArray.of(other.words.values[: other.word_count].copy())
        return other
