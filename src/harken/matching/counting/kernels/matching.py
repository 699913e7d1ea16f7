"""The counting algorithm: hits of clauses, counted predicate by predicate (Fabret et al. 2000, section 5).

Each predicate has the list of the clauses that contain it, which has room to grow, and each clause a counter, its
number of predicates to begin with (structures/kernels/counters.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.matching.kernels.layout import CHECKS, Clauses, Events, PredicateArrays, Results, Scratch
from harken.matching.kernels.truth import holds, satisfied
from harken.matching.structures.kernels.clauses import END, EVERY, Contents, add_clause, set_free
from harken.matching.structures.kernels.counters import Lists, count_down, set_back

if TYPE_CHECKING:
    from harken.matching.structures.kernels.clauses import Counters


@part
def open_lists(
    predicates: PredicateArrays,
    unlisted: npt.NDArray[np.int64],
    events: Events,
    event: int,
    opened: npt.NDArray[np.int32],
) -> int:
    """Write down the lists of all predicates that an event satisfies; how many there are.

    Predicates that its values do not lead to are `unlisted`, and are asked one by one.
    """
    count = satisfied(predicates, events, event, opened)
    for predicate in unlisted:
        if holds(predicates, events, event, predicate):
            opened[count] = predicate
            count += 1
    for at in range(count):
        opened[at] += 1
    opened[count] = EVERY
    return count + 1


@tight
def match_events(
    predicates: PredicateArrays,
    unlisted: npt.NDArray[np.int64],
    lists: Lists,
    contents: Contents,
    events: Events,
    start: int,
    left: Counters,
    scratch: Scratch,
    results: Results,
) -> tuple[int, int]:
    """Match events from `start` on until done or until the results are full.

    Returns the first event not matched and how many results there are.
    """
    found, opened = 0, scratch.touched
    for event in range(start, events.code.shape[0]):
        count, steps, now = open_lists(predicates, unlisted, events, event, opened), 0, found
        for number in opened[:count]:
            now = count_down(lists, contents, number, event, left, scratch, results, now)
            steps += lists.length[number]
        set_back(lists, contents.width, contents.spare[END], opened, count, steps, left)
        if now > len(results.slot):
            return event, found
        found = now
        scratch.counts[CHECKS] += steps
    return events.code.shape[0], found


@tight
def enter(lists: Lists, contents: Contents, clauses: Clauses) -> None:
    """Take in clauses, for which there is room everywhere."""
    for new in range(len(clauses.slot)):
        clause = add_clause(contents, clauses, new)
        first = np.int64(contents.first[clause])
        for at in range(first, first + np.int64(contents.width[clause])):
            number = contents.words[at]
            lists.clause[lists.start[number] + lists.length[number]] = clause
            lists.length[number] += 1


@tight
def take_out(lists: Lists, contents: Contents, slots: npt.NDArray[np.int64], words: npt.NDArray[np.int64]) -> None:
    """Remove the clauses of these slots, and write down all the lists they were in."""
    count = 0
    for slot in slots:
        clause = np.int64(contents.head[slot])
        contents.head[slot] = -1
        while clause >= 0:
            following = np.int64(contents.sibling[clause])
            first = np.int64(contents.first[clause])
            for at in range(first, first + np.int64(contents.width[clause])):
                _strike(lists, contents.words[at], clause)
                words[count] = contents.words[at]
                count += 1
            set_free(contents, clause)
            clause = following


@part
def _strike(lists: Lists, number: int, clause: int) -> None:
    """Take a clause off a list; the last one fills its place. Linear in the list's length."""
    at, last = lists.start[number], lists.start[number] + lists.length[number] - 1
    while lists.clause[at] != clause:
        at += 1
    lists.clause[at] = lists.clause[last]
    lists.length[number] -= 1


@tight
def move_lists(
    lists: Lists,
    numbers: npt.NDArray[np.int64],
    room: npt.NDArray[np.int64],
    into: npt.NDArray[np.uint32],
    end: int,
) -> int:
    """Copy lists to where there is room for them, one after the other from `end` on; where they end."""
    for at in range(len(numbers)):
        number, start = numbers[at], lists.start[numbers[at]]
        for entry in range(lists.length[number]):
            into[end + entry] = lists.clause[start + entry]
        lists.start[number], lists.capacity[number] = end, room[at]
        end += room[at]
    return end
