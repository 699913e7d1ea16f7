"""Clauses as runs of attribute and constraint: how they meet, and which are superfluous. As in `normal.form`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.compiler.direct.constraints import cost, implies, meet
from harken.compiler.direct.layout import (
    CLAUSES,
    DECLINED,
    EMPTY,
    ENTRIES,
    LISTS,
    MOST_MET,
    NOTHING,
    Work,
    spend,
    taken,
)
from harken.jit import called

# As the normal form counts them.
_STEP = 1 + NOTHING
_STEPS_TO_MEET = 4
_COPIED_IN_ONE_STEP = 16


@called
def clause_of(work: Work) -> int:
    """A clause of the entries to come."""
    number = taken(work, CLAUSES)
    work.clause[number, 0], work.clause[number, 1] = work.tops[ENTRIES], 0
    return number


@called
def add_entry(work: Work, clause: int, attribute: int, asked: int) -> None:
    """Ask something of one more attribute in the clause that was made last."""
    at = taken(work, ENTRIES)
    work.entry[at, 0], work.entry[at, 1] = attribute, asked
    work.clause[clause, 1] = work.tops[ENTRIES] - work.clause[clause, 0]


@called
def add_to_list(work: Work, first: int, clause: int) -> None:
    """Put a clause into the list that begins there and ends with the last; more than may be are for others."""
    at = taken(work, LISTS)
    work.listed[at] = clause
    if work.tops[LISTS] - first > work.limits[MOST_MET]:
        work.tops[DECLINED] = 1


@called
def met(work: Work, data: npt.NDArray[np.uint8], one: int, other: int) -> int:
    """The clause that asks for what two ask for; EMPTY if nothing satisfies both."""
    clause, entry = work.clause, work.entry
    first, count = clause[one, 0], clause[one, 1]
    spend(work, _STEPS_TO_MEET + count // _COPIED_IN_ONE_STEP)
    number = clause_of(work)
    for at in range(first, first + count):
        add_entry(work, number, entry[at, 0], entry[at, 1])
    if work.tops[DECLINED]:  # not all of them have a place
        return EMPTY
    own = clause[number, 0]
    for at in range(clause[other, 0], clause[other, 0] + clause[other, 1]):
        place = _place(work, own, own + count, entry[at, 0])
        if place < 0:
            add_entry(work, number, entry[at, 0], entry[at, 1])
            continue
        spend(work, cost(work, entry[place, 1], entry[at, 1]))
        both = meet(work, data, entry[place, 1], entry[at, 1])
        if both == EMPTY:
            return EMPTY
        entry[place, 1] = both
    return number


@called
def _place(work: Work, first: int, past: int, attribute: int) -> int:
    """Where among entries an attribute is; -1 if it is not."""
    for at in range(first, past):
        if work.entry[at, 0] == attribute:
            return at
    return -1


@called
def without_redundant(work: Work, data: npt.NDArray[np.uint8], first: int, count: int) -> tuple[int, int]:
    """The clauses of a list that no other makes superfluous, those that ask less first: where, and how many."""
    if count < 2:
        return first, count
    listed, clause = work.listed, work.clause
    _by_size(work, first, count)
    kept, begin = 0, work.tops[LISTS]
    if begin + count > work.most[LISTS]:
        work.tops[DECLINED] = 1
        return first, 0
    for at in range(first, first + count):
        number = listed[at]
        superfluous = False
        for place in range(begin, begin + kept):
            if _inside(work, data, number, listed[place]):
                superfluous = True
                break
        if superfluous:
            continue
        left = 0
        for place in range(begin, begin + kept):
            other = listed[place]
            if clause[other, 1] < clause[number, 1] or not _inside(work, data, other, number):
                listed[begin + left] = other
                left += 1
        listed[begin + left] = number
        kept = left + 1
    return begin, kept


@called
def _by_size(work: Work, first: int, count: int) -> None:
    """Put clauses in the order of their sizes; of one size, they stay as they are."""
    listed, clause = work.listed, work.clause
    for at in range(first + 1, first + count):
        number, place = listed[at], at
        while place > first and clause[listed[place - 1], 1] > clause[number, 1]:
            listed[place] = listed[place - 1]
            place -= 1
        listed[place] = number


@called
def _inside(work: Work, data: npt.NDArray[np.uint8], inner: int, outer: int) -> bool:
    """Whether what satisfies one clause satisfies another."""
    spend(work, _STEP)
    clause, entry = work.clause, work.entry
    if clause[outer, 1] > clause[inner, 1]:
        return False
    first, past = clause[inner, 0], clause[inner, 0] + clause[inner, 1]
    steps = 0
    for at in range(clause[outer, 0], clause[outer, 0] + clause[outer, 1]):
        place = _place(work, first, past, entry[at, 0])
        if place < 0:
            return False
        steps += cost(work, entry[place, 1], entry[at, 1])
    spend(work, steps)
    for at in range(clause[outer, 0], clause[outer, 0] + clause[outer, 1]):
        place = _place(work, first, past, entry[at, 0])
        if not implies(work, data, entry[place, 1], entry[at, 1]):
            return False
    return True
