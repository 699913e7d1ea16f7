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
from harken.matching.counting.kernels.matching import enter, match_events, move_lists, take_out
from harken.matching.counting.kernels.soundness import lists_are_sound, regions_are_sound
from harken.matching.encoding.clauses import ClauseMatcher, asked_by, predicates_of
from harken.matching.encoding.workspace import Workspace
from harken.matching.growing import GrowingArray
from harken.matching.kernels.layout import UNKNOWN, Clauses, Events, PredicateArrays, Results
from harken.matching.predicates.soundness import in_use
from harken.matching.saving import Arrays, State, require
from harken.matching.structures.clauses import WASTE
from harken.matching.structures.kernels.clauses import EVERY, Contents, Counters, count_words
from harken.matching.structures.kernels.counters import Lists

SPARE = 8
"""One part in so many is added to the room that lists need, and to that of the array they are in."""


class CountingIndex(NamedTuple):
    """All that matching reads: views that are valid until the next change."""

    predicates: PredicateArrays
    unlisted: npt.NDArray[np.int64]
    lists: Lists
    contents: Contents


class CountingMatcher(ClauseMatcher):
    """For every predicate the clauses that contain it, and for every clause a counter.

    Each thread that matches has its own counters: one byte per clause, more only if some clause has more than 255
    predicates.
    """

    _index: CountingIndex

    def __init__(self) -> None:
        super().__init__()
        self._lists = ClauseLists()
        self._left = threading.local()
        self._changed()

    def access(self, slot: int) -> list[AccessPath]:
        """How events find the clauses of a subscription: through every predicate of each."""
        lists = [number for numbers in self._contents.lists_of(slot) for number in numbers]
        return [
            AccessPath(self._said([predicates_of([number])]), self._lists.size(number) - 1) for number in lists
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
        lists, contents = self._lists.arrays(), self._contents.arrays()
        operator = self._predicates.arrays().operator
        require(len(lists.start) > len(operator), "lists are missing")
        require(regions_are_sound(lists, np.zeros(len(lists.clause), np.bool_)), "lists overlap")
        uses, end = self._contents.checked(operator, in_use(slots, len(contents.head)))
        latest, count = np.full(end, -1, np.int64), np.zeros(end, np.int64)
        require(lists_are_sound(lists, contents, latest, count), "clauses are in other lists than they name")
        return uses

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
        return asked_by(words)

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
        return Workspace.fit(old, index, index.predicates, 1)

    def _match_from(self, start: int, events: Events, workspace: Workspace, results: Results) -> tuple[int, int]:
        left = self._left.counters
        return match_events(*self._index, events, start, left, workspace.scratch, results)


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


def _with_spare(needed: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return needed + needed // SPARE
