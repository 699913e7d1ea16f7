"""Matching encoded events by several threads: what they have in common, and the part of each."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from harken.matching.clusters.kernels.collaborative import (
    DONE,
    FIELDS,
    FULL,
    MEMBERS,
    NUMBER,
    PIECE,
    SEAT,
    Group,
    match_together,
)
from harken.matching.clusters.kernels.independent import match_shares
from harken.matching.encoding.workspace import Told
from harken.matching.kernels.layout import Blocks, Events, PredicateArrays, Scratch, Tables
from harken.matching.parallel.kernels.sharing import (
    AT,
    END,
    LOCK,
    STATIC,
    STM,
    WORDS,
    Control,
    new_controls,
    new_member,
)
from harken.matching.parallel.options import Parallel

_WAYS = {"static": STATIC, "lock": LOCK, "stm": STM}

PORTIONS, MOST_EVENTS = 16, 1_024
"""Blocks of events that each thread takes one after the other, about; and events of one, at most."""

PIECES = 16
"""Pieces of clusters that are claimed together, unless it is said how many."""


Index: TypeAlias = tuple[PredicateArrays, Tables, Blocks]
"""All that matching reads."""


class Independent:
    """Every thread matches events of its own: as many `at_once` as there are threads."""

    def __init__(self, index: Index, events: Events, parallel: Parallel, threads: int, ahead: bool) -> None:
        self._index = index
        self._events, self._ahead, self._way = events, ahead, _WAYS[parallel.sync]
        count = len(events.code)
        self._size = parallel.block or max(1, min(MOST_EVENTS, count // (threads * PORTIONS)))
        (self._control,), self.stop = new_controls(1)
        self.members, self.at_once = [new_member() for _ in range(threads)], threads
        if self._way == STATIC:
            for number, member in enumerate(self.members):
                member.share[AT], member.share[END] = count * number // threads, count * (number + 1) // threads

    def match(self, number: int, scratch: Scratch, told: Told) -> bool:
        """Match events until there are none left, which leaves the scratch as it was."""
        predicates, tables, blocks = self._index
        while True:
            done, count = match_shares(
                predicates,
                tables,
                blocks,
                self._events,
                self._control,
                self.members[number],
                self._way,
                self._size,
                scratch,
                self._ahead,
                told.room(),
            )
            told.count += count
            if done:
                return True
            told.have_more(0.0)


class Collaborative:
    """Groups of threads match events together, as many `at_once` as there are groups: one of all, or several."""

    def __init__(
        self,
        index: Index,
        events: Events,
        parallel: Parallel,
        threads: int,
        size: int,
        ahead: bool,
        blocks: int,
        satisfied: int,
    ) -> None:
        """Groups of `size` threads. An event may open so many blocks, and satisfy so many predicates, at most."""
        self._index, self._satisfied = index, satisfied
        self._events, self._ahead, self._way = events, ahead, _WAYS[parallel.sync]
        self._size = parallel.block or PIECES
        self.members = [new_member() for _ in range(threads)]
        self.at_once = -(-threads // size)
        self._pieces = FIELDS * (blocks + int(index[1].population.sum()) // PIECE + 1)
        (self._everyone, *controls), self.stop = new_controls(1 + self.at_once)
        self._groups = list[Group]()
        self._seats = np.zeros((threads, SEAT), np.int64)
        for number in range(self.at_once):
            seats = self._seats[number * size : (number + 1) * size]
            seats[:, NUMBER], seats[:, MEMBERS] = np.arange(len(seats)), len(seats)
            self._groups.append(self._new_group(controls[number], number, len(seats)))
        self._size_of_group = size

    def _new_group(self, control: Control, number: int, members: int) -> Group:
        claimed, count = new_member(), len(self._events.code)
        if self._way == STATIC:
            claimed.share[AT], claimed.share[END] = (count * each // self.at_once for each in (number, number + 1))
        # Next to nothing of these is ever touched.
        held = np.empty(members * self._satisfied, np.int32)
        pieces = np.empty(members * self._pieces, np.int64)
        holding, found = (np.zeros(members * WORDS, np.int64) for _ in range(2))
        return Group(control, claimed, held, holding, pieces, found)

    def match(self, number: int, scratch: Scratch, told: Told) -> bool:
        """Match events with the others of the group; whether there are none left, and the scratch is as it was."""
        group, seat = self._groups[number // self._size_of_group], self._seats[number]
        predicates, tables, blocks = self._index
        while True:
            state, count = match_together(
                predicates,
                tables,
                blocks,
                self._events,
                self._everyone,
                group,
                self.members[number],
                seat,
                self._way,
                self._size,
                scratch,
                self._ahead,
                told.room(),
            )
            told.count += count
            if state != FULL:
                return state == DONE
            told.have_more(0.0)
