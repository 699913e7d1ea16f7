"""The clauses of an index: the predicates of each, and whose it is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.matching.growing import GrowingArray
from harken.matching.kernels.layout import Clauses
from harken.matching.runs import edges
from harken.matching.saving import State, counted, require
from harken.matching.structures.kernels.clauses import (
    END,
    END_WORD,
    FREE_WORDS,
    LIVE,
    TOTALS,
    Contents,
    contents_are_sound,
    move_words,
    read_clauses,
)
from harken.model import capacity

_WIDTHS: dict[str, type[np.unsignedinteger]] = {"uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32}
"""What the numbers of predicates of clauses can be kept in."""

WASTE = 2
"""What takes so many times the room it needs is laid anew."""


class ClauseContents:
    """The lists that each clause is in, and whose it is. Changes must not run beside anything else."""

    def __init__(self) -> None:
        self._first = GrowingArray(np.uint32)
        self._width: GrowingArray[np.unsignedinteger] = GrowingArray(np.uint8)
        self._slot = GrowingArray(np.uint32)
        self._sibling = GrowingArray(np.int32)
        self._words = GrowingArray(np.uint32)
        self._head = GrowingArray(np.int32, fill=-1)
        self._free = GrowingArray(np.int64, fill=-1, size=2)
        self._spare = np.zeros(TOTALS, np.int64)

    def __len__(self) -> int:
        return int(self._spare[LIVE])

    @property
    def nbytes(self) -> int:
        """Bytes taken, room to grow included."""
        arrays = (self._first, self._width, self._slot, self._sibling, self._words, self._head, self._free)
        return sum(each.nbytes for each in arrays)

    def arrays(self) -> Contents:
        """The clauses as kernels see them."""
        return Contents(
            self._first.values,
            self._width.values,
            self._slot.values,
            self._sibling.values,
            self._words.values,
            self._head.values,
            self._free.values,
            self._spare,
        )

    def state(self) -> State:
        """The clauses as they lie."""
        return State({"width": self._width.values.dtype.name}, self.arrays()._asdict())

    def restore(self, state: State) -> None:
        """Hold the clauses that were saved."""
        width = _WIDTHS.get(str(state.fact("width")))
        if width is None:
            raise ValueError(f"{state.fact('width')} is no type of widths")
        self._first = GrowingArray.of(state.array("first", np.uint32))
        size = len(self._first)
        self._width = GrowingArray.of(state.array("width", width, size=size))
        self._slot = GrowingArray.of(state.array("slot", np.uint32, size=size))
        self._sibling = GrowingArray.of(state.array("sibling", np.int32, size=size))
        self._words = GrowingArray.of(state.array("words", np.uint32))
        self._head = GrowingArray.of(state.array("head", np.int32), fill=-1)
        self._free = GrowingArray.of(state.array("free", np.int64), fill=-1)
        self._spare = state.array("spare", np.int64, size=TOTALS)

    def checked(
        self, operator: npt.NDArray[np.int8], used: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.int64], int]:
        """How often predicates are used, and where numbers of clauses end; ValueError if these clauses are none.

        `operator` is that of each predicate, and `used` says which slots are in use.
        """
        contents = self.arrays()
        end, end_word = (counted("a total", int(contents.spare[at])) for at in (END, END_WORD))
        require(end <= len(contents.first) and end_word <= len(contents.words), "clauses are missing")
        uses, taken, listed = (
            np.zeros(len(operator), np.int64),
            np.zeros(end_word, np.bool_),
            np.zeros(end, np.bool_),
        )
        require(contents_are_sound(contents, operator, used, uses, taken, listed), "clauses are none")
        return uses, end

    def numbers_of(self, slot: int) -> list[int]:
        """The clauses of a subscription."""
        numbers, clause = [], int(self._head.values[slot])
        while clause >= 0:
            numbers.append(clause)
            clause = int(self._sibling.values[clause])
        return numbers

    def lists_of(self, slot: int) -> list[list[int]]:
        """For each clause of a subscription, its words."""
        lists = []
        for clause in self.numbers_of(slot):
            first, width = int(self._first.values[clause]), int(self._width.values[clause])
            lists.append(self._words.values[first : first + width].tolist())
        return lists

    def read(self, slots: npt.NDArray[np.int64]) -> Clauses:
        """All clauses of these slots, also where a change of others has failed."""
        contents, counts = self.arrays(), np.zeros(2, np.int64)
        nothing = np.zeros(0, np.int64)
        read_clauses(contents, slots, counts, nothing, nothing, nothing)
        size, slot, words = (
            np.zeros(counts[0], np.int64),
            np.zeros(counts[0], np.int64),
            np.zeros(counts[1], np.int64),
        )
        read_clauses(contents, slots, counts, size, slot, words)
        alone = np.bincount(slot, minlength=1)[slot] == 1
        return Clauses(edges(size), words, slot, alone)

    def have_slots(self, count: int) -> None:
        """Have a place for every slot below this one."""
        self._head.grow_to(count)

    def check_room(self, clauses: int, predicates: int) -> None:
        """CapacityError if there is no number for so many more clauses, or for where their predicates are."""
        capacity.check("clauses", int(self._spare[END]) + clauses, capacity.CLAUSES)
        # A clause that asks nothing has a word all the same.
        words = int(self._spare[END_WORD]) + predicates + clauses
        capacity.check("predicates of all clauses together", words, capacity.WORDS)

    def make_room(self, clauses: Clauses) -> None:
        """Have room for new clauses."""
        widths = np.maximum(np.diff(clauses.first), 1)
        widest = int(widths.max(initial=1))
        self._have_width(widest)
        for array in (self._first, self._width, self._slot, self._sibling):
            array.grow_to(int(self._spare[END]) + len(widths))
        self._words.grow_to(int(self._spare[END_WORD]) + int(widths.sum()))

    def compact(self) -> None:
        """Lay the words of clauses side by side if many are of no clause. Linear in the number of clauses."""
        used, idle = int(self._spare[END_WORD]), int(self._spare[FREE_WORDS])
        if used > WASTE * (used - idle):
            into, first = GrowingArray(np.uint32, size=used - idle), GrowingArray.of(self._first.values.copy())
            move_words(self.arrays()._replace(first=first.values), into.values)
            # At once, so that whatever fails the clauses can be read.
            self._words, self._first = into, first

    def _have_width(self, widest: int) -> None:
        """Have counters, and lists of free numbers, for clauses of this width."""
        self._free.grow_to(widest + 1)
        dtype = np.min_scalar_type(widest)
        if dtype.itemsize > self._width.values.itemsize:
            wider: GrowingArray[np.unsignedinteger] = GrowingArray(dtype.type, size=len(self._width))
            wider.values[:] = self._width.values
            self._width = wider
