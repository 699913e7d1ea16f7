"""What one side holds: a few constraints that came last, compared one by one, and segments, each indexed.

New constraints wait; when there are enough, they become a segment, together with the segments before them that are
not much larger. So there are few segments, each several times as large as the next, and over time a constraint is
indexed a few times only (O'Neil et al. 1996, the log-structured merge tree). Removed ones are marked, and left out
when their segment is made anew, at the latest when half of it is dead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import count as numbers_from
from operator import itemgetter

import numpy as np
import pyarrow as pa

from harken.matching.growing import GrowingArray
from harken.matching.runs import changes
from harken.model.schema import Schema
from harken.model.subscriptions import SubscriptionId, moment_of
from harken.normal.operators import microseconds
from harken.symmetric.contract import Held, Pair, Side
from harken.symmetric.guarding import Journal, Scalar
from harken.symmetric.memory.clauses import Clauses, joined
from harken.symmetric.memory.drafts import Draft
from harken.symmetric.memory.forms import Dimensions
from harken.symmetric.memory.kernels.layout import SEVERAL, UNSURE, Places, Words
from harken.symmetric.memory.loading import read
from harken.symmetric.memory.queries import query_of
from harken.symmetric.memory.records import Records
from harken.symmetric.memory.segments import FIRST_ROOM, ClauseSegment, fits_a_segment
from harken.symmetric.semantics import Boxes

PORTION = 1024
"""Asked constraints that are taken together."""

NOWHERE = -1
"""In place of a segment: the constraint waits, or has no clause."""

MOST_ROOM = 1 << 18
"""Finds that there is room for, without having to look twice, at most."""

_PLACE = itemgetter(0)

Portion = list[tuple[int, Boxes]]
"""Asked constraints, by place."""

Matches = Callable[[Boxes, Boxes], bool]
"""Whether an asked and a held constraint match."""


class Holdings:
    """The constraints of one side. Any number of threads may match while none changes anything.

    What a change does is noted in a journal before it is done.
    """

    def __init__(self, side: Side, journal: Journal, *, waiting: int, growth: int, smallest_tree: int) -> None:
        self._side: Side = side
        self._journal = journal
        self._most_waiting = waiting
        self._growth = growth
        self._smallest_tree = smallest_tree
        self._start_anew()

    def _start_anew(self) -> None:
        self.records = Records(self._side, self._journal)
        self._dimensions = Dimensions()
        self._waiting: dict[int, Boxes] = {}
        self._segments: dict[int, ClauseSegment] = {}
        self._alive = GrowingArray(np.uint8)
        self._home = GrowingArray(np.int32, fill=NOWHERE)
        self._room = FIRST_ROOM

    # ------------------------------------------------------------ changing

    def put(self, several: Iterable[Held]) -> None:
        """Keep constraints; one whose id is taken takes the other's place."""
        for held in several:
            if held.id in self.records.slot_of:
                self.remove([held.id])
            slot = self.records.add(held)
            self._arrive(np.array([slot]))
            if held.boxes.boxes:
                self._journal.note(self._waiting.pop, slot, None)
                self._waiting[slot] = held.boxes
        if len(self._waiting) > self._most_waiting:
            draft = Draft(self._dimensions)
            for slot, boxes in self._waiting.items():
                draft.add(slot, boxes)
            self._add_clauses(draft.finish())
            self._journal.note(setattr, self, "_waiting", self._waiting)
            self._waiting = {}

    def load(self, ids: list[SubscriptionId], table: pa.Table, schema: Schema | None) -> None:
        """Keep the rows of a compiled table, under ids that are new."""
        clauses = read(table, schema, self._dimensions)
        slots = self.records.add_table(ids, table, schema)
        self._arrive(slots)
        clauses.slot = slots[clauses.slot].astype(np.int32)
        self._add_clauses(clauses)

    def remove(self, ids: Iterable[SubscriptionId]) -> None:
        """Forget constraints; UnknownSubscriptionError, and no change, if one is not there."""
        slots = self.records.slots_of(ids)
        if not slots:
            return
        if len(slots) == len(self.records):
            self._journal.note(self.__dict__.update, dict(self.__dict__))
            self._start_anew()
            return
        self.records.forget(slots)
        at = np.array(slots, np.int64)
        homes = self._home.values[at]
        self._set(self._alive, at, 0)
        homeless = at[homes == NOWHERE].tolist()
        waiting = {slot: self._waiting[slot] for slot in homeless if slot in self._waiting}
        self._journal.note(self._waiting.update, waiting)
        for slot in waiting:
            del self._waiting[slot]
        self.records.release(homeless)
        for number, count in zip(*np.unique(homes[homes != NOWHERE], return_counts=True), strict=True):
            segment = self._segments[int(number)]
            self._journal.note(setattr, segment, "dead", segment.dead)
            segment.dead += int(count)
            if 2 * segment.dead > segment.constraints and segment.can_be_made_anew:
                self._settle([int(number)])

    def _arrive(self, slots: Places) -> None:
        """Slots come into use."""
        count = len(self.records.ids)
        self._alive.grow_to(count)
        self._home.grow_to(count)
        self._set(self._alive, slots, 1)
        self._set(self._home, slots, NOWHERE)

    def _set(self, array: GrowingArray[Scalar], slots: Places | Words, value: int) -> None:
        self._journal.note_values(array, slots)
        array.values[slots] = value

    def _add_clauses(self, clauses: Clauses) -> None:
        """Make a segment of new clauses; several, if one might not hold them all."""
        slots = np.unique(clauses.slot) if clauses.several.any() else clauses.slot
        if len(slots) > 1 and not fits_a_segment(len(clauses), len(clauses.rows.axis), len(clauses.axes)):
            first = clauses.slot < np.sort(slots)[len(slots) // 2]
            self._add_clauses(clauses.only(first))
            self._add_clauses(clauses.only(~first))
        else:
            self._add_segment(clauses, len(slots))

    def _add_segment(self, clauses: Clauses, constraints: int) -> None:
        """Make a segment of new clauses and of those before that are not much larger, as many as it can hold."""
        together, size, rows, axes = [], len(clauses), len(clauses.rows.axis), len(clauses.axes)
        for number, segment in sorted(self._segments.items(), key=lambda each: len(each[1])):
            if len(segment) > self._growth * size:
                break
            rows, axes = rows + segment.rows, axes + segment.axes
            if not fits_a_segment(size + len(segment), rows, axes):
                break
            together.append(number)
            size += len(segment)
        self._settle(together, clauses, constraints)

    def _settle(self, numbers: Sequence[int], new: Clauses | None = None, constraints: int = 0) -> None:
        """Make one segment of several and of new clauses, without what is dead. They stay until it is there."""
        parts, dead = [] if new is None else [new], []
        for segment in (self._segments[number] for number in numbers):
            clauses = segment.clauses()
            if segment.dead:
                living = self._alive.values[clauses.slot] != 0
                dead.append(np.unique(clauses.slot[~living]))
                clauses = clauses.only(living)
            constraints += segment.constraints - segment.dead
            parts.append(clauses)
        staying = {number: segment for number, segment in self._segments.items() if number not in numbers}
        if constraints:
            clauses = joined(parts)
            # Numbers are used again, lest they run out: there are few segments at any time.
            number = next(each for each in numbers_from(0) if each not in self._segments)
            staying[number] = ClauseSegment(clauses, self._dimensions, constraints, self._smallest_tree)
            self._set(self._home, clauses.slot, number)
        self._journal.note(setattr, self, "_segments", self._segments)
        self._segments = staying
        for slots in dead:
            self.records.release(slots.tolist())

    # ------------------------------------------------------------ matching

    def attributes(self) -> set[str]:
        """Those that are constrained, or were not long ago."""
        return {name for boxes in self._waiting.values() for box in boxes.boxes for name in box}.union(
            self._dimensions.of_attribute
        )

    def match(
        self, asked: Sequence[Boxes], decides: bool, matches: Matches, moment: datetime | None
    ) -> list[Pair]:
        """The places of asked constraints, ascending, and the ids of what is held and matches at a moment (now).

        `decides` says that the attributes of the asked ones have to be covered.
        """
        pairs: list[Pair] = []
        if not len(self.records):
            return pairs
        now = microseconds(moment_of(moment)) if self.records.bounded else None
        for first in range(0, len(asked), PORTION):
            portion = list(enumerate(asked[first : first + PORTION], first))
            found = self._indexed(portion, decides, matches, now)
            newest = self._newest(portion, matches, now)
            if newest:
                found = sorted(found + newest, key=_PLACE)
            pairs += found
        return pairs

    def _newest(self, asked: Portion, matches: Matches, now: int | None) -> list[Pair]:
        """What of those that wait matches."""
        ids, begins, ends = self.records.ids, self.records.begins.values, self.records.ends.values
        return [
            (place, ids[slot])
            for slot, held in self._waiting.items()
            if now is None or begins[slot] <= now < ends[slot]
            for place, boxes in asked
            if matches(boxes, held)
        ]

    def _indexed(self, asked: Portion, decides: bool, matches: Matches, now: int | None) -> list[Pair]:
        """What of those in segments matches."""
        query = query_of(self._dimensions, asked, decides) if self._segments else None
        if query is None:
            return []
        alive, flags, finds = self._alive.values, SEVERAL if query.repeats else 0, []
        for segment in self._segments.values():
            columns, of_any = segment.find(query, alive, self._room)
            if columns.shape[1]:
                finds.append(columns)
                flags |= of_any
        if not finds:
            return []
        columns = finds[0]
        if len(finds) > 1:
            columns = np.concatenate(finds, axis=1)
            columns = columns[:, np.argsort(columns[0], kind="stable")]
        self._room = max(self._room, min(columns.shape[1], MOST_ROOM))
        if now is not None:
            columns = columns[:, self.records.holding(columns[1], now)]
        if flags & SEVERAL:
            columns = _distinct(columns)
        if flags & UNSURE:
            columns = self._made_sure(columns, dict(asked), matches)
        return list(zip(columns[0].tolist(), map(self.records.ids.__getitem__, columns[1].tolist()), strict=True))

    def _made_sure(self, columns: Places, asked: dict[int, Boxes], matches: Matches) -> Places:
        """Those finds that are sure, or are so on a closer look."""
        place, slot, flags = columns
        kept = np.ones(len(place), np.bool_)
        for at in np.flatnonzero(flags & UNSURE).tolist():
            kept[at] = matches(asked[int(place[at])], self.records.held_at(int(slot[at])).boxes)
        return columns[:, kept]


def _distinct(columns: Places) -> Places:
    """Each place and slot once, and sure if one of its finds was."""
    place, slot, flags = columns
    columns = columns[:, np.lexsort((flags & UNSURE, slot, place))]
    return columns[:, changes(columns[0], columns[1])]
