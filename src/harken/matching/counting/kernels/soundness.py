"""Looking at the lists of the counting algorithm that come from a file, before its other kernels do.

See soundness.py. Linear in the size of all but for clauses of many predicates, where it is quadratic in those.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import tight
from harken.matching.structures.kernels.clauses import NOBODY, Contents
from harken.matching.structures.kernels.counters import Lists


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
