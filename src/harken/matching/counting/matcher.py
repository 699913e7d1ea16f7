"""Counting, for every clause, how many of its predicates an event satisfies (Fabret et al. 2000, section 5).

The classical algorithm, and the measure of the others. Its work for an event is the sum of the lengths of the
lists of all predicates that hold, which grows with the number of subscriptions.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.matching.contract import AccessPath, Slots, Stats
from harken.matching.counting.kernels.matching import (
    END,
    END_WORD,
    EVERY,
    FREE_WORDS,
    LIVE,
    TOTALS,
    Contents,
    Counters,
    Lists,
    count_words,
    enter,
    match_events,
    move_lists,
    move_words,
    read_clauses,
    take_out,
)
from harken.matching.counting.kernels.soundness import contents_are_sound, lists_are_sound, regions_are_sound
from harken.matching.encoding.matcher import EncodedMatcher
from harken.matching.encoding.workspace import Workspace
from harken.matching.events.batch import EventBatch
from harken.matching.growing import GrowingArray
from harken.matching.kernels.layout import UNKNOWN, Clauses, Events, PredicateArrays
from harken.matching.predicates.soundness import in_use
from harken.matching.saving import Arrays, State, counted, require
from harken.model import capacity
from harken.model.events import FlatEvent

SPARE = 8
"""One part in so many is added to the room that lists need, and to that of the array they are in."""

_WIDTHS: dict[str, type[np.unsignedinteger]] = {"uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32}
"""What the numbers of predicates of clauses can be kept in."""

WASTE = 2
"""What takes so many times the room it needs is laid anew."""


class CountingIndex(NamedTuple):
    """All that matching reads: views that are valid until the next change."""

    predicates: PredicateArrays
    unlisted: npt.NDArray[np.int64]
    lists: Lists
    contents: Contents


class CountingMatcher(EncodedMatcher):
    """For every predicate the clauses that contain it, and for every clause a counter.

    Each thread that matches has its own counters: one byte per clause, more only if some clause has more than 255
    predicates.
    """

    _index: CountingIndex

    def __init__(self) -> None:
        super().__init__()
        self._lists = ClauseLists()
        self._contents = ClauseContents()
        self._left = threading.local()
        self._changed()

    def match(self, event: FlatEvent) -> Slots:
        """Match one event."""
        return self.match_batch(EventBatch([event], {}, 1))[1]

    def access(self, slot: int) -> list[AccessPath]:
        """How events find the clauses of a subscription: through every predicate of each."""
        lists = [number for numbers in self._contents.lists_of(slot) for number in numbers]
        return [
            AccessPath(self._said([_predicates_of([number])]), self._lists.size(number) - 1) for number in lists
        ]

    def stats(self) -> Stats:
        """Sizes, bytes by part, and what matching has done; a check is one step of one counter."""
        return {
            **self._common_stats(),
            "clauses": len(self._contents),
            "bytes": {
                "lists": self._lists.nbytes,
                "clauses": self._contents.nbytes,
                "counters of a thread": self._contents.arrays().width.nbytes,
                "predicates": self._predicates.nbytes,
            },
        }

    def _parts(self) -> dict[str, State]:
        return {"lists": self._lists.state(), "contents": self._contents.state()}

    def _restore_parts(self, state: State, slots: Slots) -> None:
        self._lists.restore(state.part("lists"))
        self._contents.restore(state.part("contents"))
        self._predicates.check_uses(self._checked_uses(slots))

    def _checked_uses(self, slots: Slots) -> npt.NDArray[np.int64]:
        """How often predicates are used; ValueError if lists and clauses are not what kernels take them for."""
        lists, contents, operator = (
            self._lists.arrays(),
            self._contents.arrays(),
            self._predicates.arrays().operator,
        )
        end, end_word = (counted("a total", int(contents.spare[at])) for at in (END, END_WORD))
        require(end <= len(contents.first) and end_word <= len(contents.words), "clauses are missing")
        require(len(lists.start) > len(operator), "lists are missing")
        uses, used = np.zeros(len(operator), np.int64), in_use(slots, len(contents.head))
        taken, listed = np.zeros(end_word, np.bool_), np.zeros(end, np.bool_)
        require(regions_are_sound(lists, np.zeros(len(lists.clause), np.bool_)), "lists overlap")
        require(contents_are_sound(contents, operator, used, uses, taken, listed), "clauses are none")
        latest, count = np.full(end, -1, np.int64), np.zeros(end, np.int64)
        require(lists_are_sound(lists, contents, latest, count), "clauses are in other lists than they name")
        return uses

    def _observe(self, events: Events) -> None:
        """Nothing here depends on what events look like."""

    def _have_slots(self, count: int) -> None:
        self._contents.have_slots(count)

    def _check_clauses(self, clauses: int, predicates: int) -> None:
        self._contents.check_room(clauses, predicates)

    def _enter(self, clauses: Clauses) -> None:
        coming = np.bincount(clauses.words + 1, minlength=len(self._predicates) + 1)
        coming[EVERY] = np.count_nonzero(np.diff(clauses.first) == 0)
        self._lists.make_room(coming)
        self._contents.make_room(clauses)
        enter(self._lists.arrays(), self._contents.arrays(), clauses)

    def _take_out(self, slots: Slots) -> npt.NDArray[np.int64]:
        """Strike each clause off the lists of its predicates. Linear in the lengths of these lists."""
        words = np.zeros(count_words(self._contents.arrays(), slots), np.int64)
        take_out(self._lists.arrays(), self._contents.arrays(), slots, words)
        self._lists.compact()
        self._contents.compact()
        return np.asarray(words[words != EVERY] - 1, np.int64)

    def _read_clauses(self, slots: Slots) -> Clauses:
        return self._contents.read(slots)

    def _clauses_of(self, slot: int) -> list[list[int]]:
        return [_predicates_of(numbers) for numbers in self._contents.lists_of(slot)]

    def _changed(self) -> None:
        self._encoder.refresh()
        predicates = self._predicates.arrays()
        # After a change that has failed they may differ in length: nobody matches then, but that is to be settled.
        size = min(len(predicates.initial), len(predicates.operator))
        unlisted = np.flatnonzero((predicates.initial[:size] == UNKNOWN) & (predicates.operator[:size] >= 0))
        self._index = CountingIndex(predicates, unlisted, self._lists.arrays(), self._contents.arrays())

    def _fitted(self, old: Workspace | None) -> Workspace:
        index = self._index
        # A match within a match shares them: after every call of the kernel they are as before it.
        self._left.counters = _fit(getattr(self._left, "counters", None), index.contents.width)
        return Workspace.fit(old, index, index.predicates.initial, 1)

    def _match_from(self, start: int, events: Events, workspace: Workspace) -> tuple[int, int]:
        left = self._left.counters
        return match_events(*self._index, events, start, left, workspace.scratch, workspace.results)


def _predicates_of(lists: list[int]) -> list[int]:
    """The predicates of these lists; that of every event has none."""
    return [number - 1 for number in lists if number != EVERY]


def _fit(old: Counters | None, width: Counters) -> Counters:
    """Counters for clauses of these widths: the old ones if large enough."""
    if old is None or old.dtype != width.dtype or len(old) < len(width):
        old = np.zeros(len(width) + len(width) // SPARE, width.dtype)
    old[: len(width)] = width
    return old


class ClauseLists:
    """The clauses of each predicate. Changes must not run beside anything else; matching only reads."""

    def __init__(self) -> None:
        self._start = GrowingArray(np.int64)
        self._length = GrowingArray(np.int64)
        self._capacity = GrowingArray(np.int64)
        self._clause: npt.NDArray[np.uint32] = np.zeros(16, np.uint32)
        self._end = 0
        self._have_lists(EVERY + 1)

    @property
    def nbytes(self) -> int:
        """Bytes taken, room to grow included."""
        return self._clause.nbytes + sum(each.nbytes for each in (self._start, self._length, self._capacity))

    def arrays(self) -> Lists:
        """The lists as kernels see them."""
        return Lists(self._start.values, self._length.values, self._capacity.values, self._clause)

    def state(self) -> State:
        """The lists as they lie."""
        start, length, capacity, clause = self.arrays()
        arrays: Arrays = {"start": start, "length": length, "capacity": capacity, "clause": clause[: self._end]}
        return State({}, arrays)

    def restore(self, state: State) -> None:
        """Hold the lists that were saved."""
        self._start = GrowingArray.of(state.array("start", np.int64))
        self._length = GrowingArray.of(state.array("length", np.int64, size=len(self._start)))
        self._capacity = GrowingArray.of(state.array("capacity", np.int64, size=len(self._start)))
        self._clause = state.array("clause", np.uint32)
        self._end = len(self._clause)

    def size(self, number: int) -> int:
        """How many clauses a list has."""
        return int(self._length.values[number])

    def make_room(self, coming: npt.NDArray[np.int64]) -> None:
        """Have room for so many more clauses in each list. A full list moves to the end, with room to spare."""
        self._have_lists(len(coming))
        needed = self._length.values.copy()
        needed[: len(coming)] += coming
        full = np.flatnonzero(needed > self._capacity.values)
        room = _with_spare(needed[full])
        if self._end + int(room.sum()) > len(self._clause):
            self._lay_anew(needed)
        else:
            self._end = move_lists(self.arrays(), full, room, self._clause, self._end)

    def compact(self) -> None:
        """Lay the lists side by side if much room lies idle. Linear in their size."""
        if self._end > WASTE * int(self._length.values.sum()):
            self._lay_anew(self._length.values)

    def _lay_anew(self, needed: npt.NDArray[np.int64]) -> None:
        room = _with_spare(needed)
        into = np.empty(max(16, int(_with_spare(room.sum()))), np.uint32)
        self._end = move_lists(self.arrays(), np.arange(len(room)), room, into, 0)
        self._clause = into

    def _have_lists(self, count: int) -> None:
        for array in (self._start, self._length, self._capacity):
            array.grow_to(count)


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

    def lists_of(self, slot: int) -> list[list[int]]:
        """For each clause of a subscription, the lists it is in."""
        lists, clause = [], int(self._head.values[slot])
        while clause >= 0:
            first, width = int(self._first.values[clause]), int(self._width.values[clause])
            lists.append(self._words.values[first : first + width].tolist())
            clause = int(self._sibling.values[clause])
        return lists

    def read(self, slots: Slots) -> Clauses:
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
        return Clauses(np.concatenate([[0], np.cumsum(size)]), words, slot, alone)

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


def _with_spare(needed: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return needed + needed // SPARE
