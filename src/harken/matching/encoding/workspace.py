"""What one thread needs to match: scratch for the kernels, and room for results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from harken.matching.contract import Pairs, Slots
from harken.matching.kernels.layout import (
    ALWAYS,
    CHECKS,
    COUNTERS,
    GROUP,
    GROUP_COLUMNS,
    NO_VALUE,
    PAIRED,
    REPEATS,
    RING,
    SECTORS,
    SHORT_NUMBERS,
    SHORT_SHIFT,
    TRUE,
    VISITS,
    Events,
    PredicateArrays,
    Results,
    Scratch,
)
from harken.model.events import Event

SURVIVORS = 4_096
"""Entries that are looked at together once their first predicate has held."""

FIRST_RESULTS = 4_096
"""Results that there is room for at first."""

MANY_RESULTS = 65_536
"""Results that a workspace keeps room for, at most: for more, there is room as long as they are wanted."""


class SingleEvents(Protocol):
    """What matches one event after the other in a workspace."""

    @property
    def events(self) -> Events:
        """The event that was matched last."""

    def note(self, events: int) -> None:
        """So many have been matched since this was last said."""

    def match(self, event: Event, ahead: bool, *, is_checked: bool = True) -> Slots | None:
        """The slots that match, each perhaps several times. None if the event has to be checked first."""


@dataclass(slots=True)
class Workspace:
    """Belongs to one thread, and fits one state of one index. Serves one match at a time."""

    index: object
    scratch: Scratch
    results: Results
    busy: bool = False
    """Whether a match is using it: one that interrupts that in the same thread has to take another."""
    single: SingleEvents | None = None
    """What matches single events here, once one has come."""
    events: int = 0
    """Matched since they were last counted."""
    matches: int = 0

    @classmethod
    def fit(
        cls,
        old: Workspace | None,
        index: object,
        predicates: PredicateArrays,
        places: int,
        columns: int = 0,
        together: int = 0,
    ) -> Workspace:
        """A workspace for an index of these predicates, made of the old one if it can be.

        There is room for so many places that an event may open, so many digits of keys, and so many tables that
        events look into together.

        The old one may not be used any more: what is known of predicates is known of this index only.
        """
        known, dimensions = len(predicates.initial), len(predicates.equal_first)
        if old is None:
            made = cls(index, _scratch(known, dimensions, places, columns, together), first_results())
        else:
            scratch = old.scratch
            fits = len(scratch.touched) >= known and len(scratch.places) >= RING * places
            fits &= len(scratch.columns) >= columns and len(scratch.value) > dimensions
            has_group = (
                len(scratch.group_found) >= GROUP * together and len(scratch.group_digits) >= GROUP * columns
            )
            if not fits or (together and not has_group):
                scratch = _scratch(known, dimensions, places, columns, together)._replace(counts=scratch.counts)
            made = cls(index, scratch, old.results, events=old.events, matches=old.matches)
        made.scratch.truth[:known] = predicates.initial
        made.scratch.value[1:] = NO_VALUE
        return made

    def count(self, events: int, matches: int) -> None:
        """Take note of what was matched."""
        self.events += events
        if matches:
            self.scratch.counts[REPEATS] = 0
            self.matches += matches

    def counted(self) -> list[int]:
        """Events, matches, visits and checks since this was last asked."""
        counts = self.scratch.counts
        found = [self.events, self.matches, int(counts[VISITS]), int(counts[CHECKS])]
        counts[:] = 0
        self.events = self.matches = 0
        return found

    def leave(self) -> None:
        """Hold on to no index: a thread that works for others may not come back for long."""
        self.index = self.single = None

    def told(self) -> Told:
        """Where the matches of several events go."""
        return Told(self.results)

    def had(self, told: Told) -> None:
        """Take note of how much room matches took: others may take as much."""
        if told.count > len(self.results.slot) < MANY_RESULTS:
            self.results = more_results(self.results)

    def distinct(self, rows: npt.NDArray[np.int64], slots: npt.NDArray[np.int64]) -> Pairs:
        """Matches without those that several clauses of one subscription have told."""
        if not self.scratch.counts[REPEATS]:
            return rows, slots
        pairs = each_once(rows << 32 | slots)
        return pairs >> 32, pairs & 0xFFFF_FFFF


class Told:
    """Matches of several events as they are found: in the room a workspace has, or in more if that is full."""

    def __init__(self, room: Results) -> None:
        self._shared = self._room = room
        self.count = 0

    def room(self) -> Results:
        """Room for those that come next."""
        return Results(self._room.event[self.count :], self._room.slot[self.count :])

    def have_more(self, part: float) -> None:
        """Make room for what is to come when so large a part of the events has been matched."""
        known = len(self._room.slot)
        foreseen = int(1.1 * self.count / part) if part else 0
        larger = _results(min(max(foreseen, 4 * known), 16 * known))
        for old, new in zip(self._room, larger, strict=True):
            new[: self.count] = old[: self.count]
        self._room = larger

    def pairs(self) -> Pairs:
        """The matches, for good."""
        rows, slots = (each[: self.count] for each in self._room)
        return (rows.copy(), slots.copy()) if self._room is self._shared else (rows, slots)


def each_once(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The numbers there are, ascending. numpy's own way to find them takes many times as long as to sort them."""
    ordered = np.sort(numbers)
    is_new = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]


def first_results() -> Results:
    """Room for as many results as most events have."""
    return _results(FIRST_RESULTS)


def more_results(full: Results) -> Results:
    """Room for more: the matches of one event did not fit."""
    return _results(4 * len(full.slot))


def _results(room: int) -> Results:
    return Results(np.empty(room, np.int64), np.empty(room, np.int64))


def _scratch(known: int, dimensions: int, places: int, columns: int, together: int) -> Scratch:
    """Scratch for so many predicates, dimensions, places of events, digits, and tables looked into at once."""
    room = known + known // 2 + 64
    short = np.zeros(SHORT_SHIFT + max(room, SHORT_NUMBERS), np.uint8)
    short[ALWAYS] = TRUE
    return Scratch(
        short[SHORT_SHIFT:],
        short,
        np.zeros(room, np.int32),
        np.zeros(1 + dimensions + dimensions // 2, np.int64),
        np.zeros(RING * (places + places // 2), np.int64),
        np.zeros(RING, np.int64),
        np.zeros(2 * RING * (places + places // 2), np.int64),
        np.zeros(columns + columns // 2, np.int64),
        np.zeros(2 * SURVIVORS, np.int64),
        np.zeros(SURVIVORS + 1, np.int64),
        np.zeros(COUNTERS, np.int64),
        np.zeros(columns + columns // 2, np.int32),
        np.zeros(PAIRED * SECTORS, np.int64),
        *_group_scratch(columns + columns // 2, together + together // 4),
    )


def _group_scratch(columns: int, together: int) -> tuple[npt.NDArray[Any], ...]:
    """What is at hand of events that look into so many tables together."""
    group = GROUP if together else 0
    return (
        np.zeros(group * GROUP_COLUMNS, np.uint16),
        np.zeros(group * columns, np.int64),
        np.zeros(group, np.int64),
        np.zeros(SHORT_SHIFT + SHORT_NUMBERS if together else 0, np.uint32),
        np.zeros(group * together, np.uint32),
        np.zeros(group * together, np.int64),
        np.zeros(group + 2, np.int64),
    )
