"""Looking at the lists and clauses of the counting algorithm that come from a file, before its other kernels do.

See soundness.py. Linear in the size of all but for clauses of many predicates, where it is quadratic in those.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.matching.counting.kernels.matching import EVERY, FREE_WORDS, LIVE, NOBODY, Contents, Lists
from harken.matching.kernels.layout import ALONE, LAST


@tight
def regions_are_sound(lists: Lists, taken: npt.NDArray[np.bool_]) -> bool:
    """Whether each list lies within its region, and no two regions overlap; `taken` is by place, and none is."""
    for number in range(len(lists.start)):
        start, length, capacity = lists.start[number], lists.length[number], lists.capacity[number]
        if length < 0 or length > capacity or capacity > len(taken) or start < 0 or start > len(taken) - capacity:
            return False
        for at in range(start, start + capacity):
            if taken[at]:
                return False
            taken[at] = True
    return True


@tight
def contents_are_sound(
    contents: Contents,
    operator: npt.NDArray[np.int8],
    in_use: npt.NDArray[np.bool_],
    uses: npt.NDArray[np.int64],
    taken: npt.NDArray[np.bool_],
    listed: npt.NDArray[np.bool_],
) -> bool:
    """Whether clauses have words of their own, are of predicates that there are, and are somebody's or free.

    Counts the uses of predicates. `taken` is by word and `listed` by clause, both for those in use, and none is.
    """
    end, end_word = len(listed), len(taken)
    live, idle = 0, 0
    for clause in range(end):
        first, width = np.int64(contents.first[clause]), np.int64(contents.width[clause])
        if width >= len(contents.free) or (width > 0 and first + width > end_word):
            return False
        for at in range(first, first + width):
            if taken[at]:
                return False
            taken[at] = True
        if contents.slot[clause] == NOBODY:
            idle += width
            continue
        live += 1
        if width == 0 or contents.slot[clause] >= len(in_use) or not in_use[contents.slot[clause]]:
            return False
        for at in range(first, first + width):
            number = np.int64(contents.words[at])
            if number == EVERY:
                continue
            if number > len(operator) or operator[number - 1] < 0:
                return False
            uses[number - 1] += 1
    if live != contents.spare[LIVE] or idle != contents.spare[FREE_WORDS]:
        return False
    return _chains_are_sound(contents, listed)


@part
def _chains_are_sound(contents: Contents, listed: npt.NDArray[np.bool_]) -> bool:
    """Whether every clause is in the list of its subscription, or if free of its width, and in no other."""
    for slot in range(len(contents.head)):
        clause, alone = np.int64(contents.head[slot]), True
        if clause == -1:
            continue
        while clause != LAST and not (clause == ALONE and alone):
            alone = clause == contents.head[slot]
            if clause < 0 or clause >= len(listed) or listed[clause] or contents.slot[clause] != slot:
                return False
            listed[clause] = True
            clause = np.int64(contents.sibling[clause])
    for width in range(len(contents.free)):
        clause = contents.free[width]
        while clause != -1:
            if clause < 0 or clause >= len(listed) or listed[clause]:
                return False
            if contents.slot[clause] != NOBODY or np.int64(contents.width[clause]) != width:
                return False
            listed[clause] = True
            clause = np.int64(contents.sibling[clause])
    known = 0
    for each in listed:
        known += each
    return known == len(listed)


@tight
def lists_are_sound(
    lists: Lists, contents: Contents, latest: npt.NDArray[np.int64], count: npt.NDArray[np.int64]
) -> bool:
    """Whether the lists that a clause is in are those that it names.

    `latest` is for the list that each clause was last seen in, -1 at first, and `count` for how many there were.
    """
    end = len(count)
    for number in range(len(lists.start)):
        for at in range(lists.start[number], lists.start[number] + lists.length[number]):
            clause = np.int64(lists.clause[at])
            if clause >= end or contents.slot[clause] == NOBODY or latest[clause] == number:
                return False
            latest[clause] = number
            first, named = np.int64(contents.first[clause]), False
            for word in range(first, first + np.int64(contents.width[clause])):
                named |= np.int64(contents.words[word]) == number
            if not named:
                return False
            count[clause] += 1
    for clause in range(end):
        if contents.slot[clause] != NOBODY and count[clause] != np.int64(contents.width[clause]):
            return False
    return True
