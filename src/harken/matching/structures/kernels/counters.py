"""Counting what clauses still lack, predicate by predicate.

**Lists.** Each predicate has the list of the clauses that contain it: a region of one flat array. The list of
predicate p is number p + 1; list EVERY is that of clauses without predicates, and every event walks it. The lists
that a clause is in are its words (clauses.py).

**Counters** run down: for each clause how many steps are still lacking until it matches. At 0 it does, and no
other number has to be read to see that. After an event all are as before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from harken.jit import part
from harken.matching.kernels.layout import ALONE, REPEATS, Results, Scratch
from harken.matching.structures.kernels.clauses import Contents

if TYPE_CHECKING:
    from harken.matching.structures.kernels.clauses import Counters

WORTH_COPYING = 16
"""Counters that can be copied in the time in which one is found and set back."""


class Lists(NamedTuple):
    """By list: the clauses that wait for its predicate."""

    start: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]
    capacity: npt.NDArray[np.int64]
    clause: npt.NDArray[np.uint32]
    """All regions; in each, clauses in any order."""


@part
def count_down(
    lists: Lists,
    contents: Contents,
    number: int,
    event: int,
    left: Counters,
    scratch: Scratch,
    results: Results,
    found: int,
) -> int:
    """Let the clauses of one list lack one step less; how many have matched then, told as far as they fit."""
    start = lists.start[number]
    for at in range(start, start + lists.length[number]):
        clause = lists.clause[at]
        lacking = left[clause] - 1
        left[clause] = lacking
        if lacking == 0:
            if found < len(results.slot):
                results.event[found], results.slot[found] = event, contents.slot[clause]
                scratch.counts[REPEATS] += contents.sibling[clause] != ALONE
            found += 1
    return found


@part
def set_back(
    lists: Lists,
    lacking: Counters,
    clauses: int,
    opened: npt.NDArray[np.int32],
    count: int,
    steps: int,
    left: Counters,
) -> None:
    """Leave counters as they were before the event, in the way that is shorter after so many steps.

    `lacking` says what each of so many clauses lacks at first.
    """
    if steps * WORTH_COPYING > clauses:
        for clause in range(clauses):
            left[clause] = lacking[clause]
        return
    for number in opened[:count]:
        start = lists.start[number]
        for at in range(start, start + lists.length[number]):
            left[lists.clause[at]] += 1
