"""What verifying a clause takes, on one cache line: a candidate's can be asked for early."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from harken.jit import part
from harken.matching.kernels.layout import ALONE, Events, PredicateArrays, Scratch
from harken.matching.kernels.truth import is_true
from harken.matching.structures.kernels.clauses import EVERY, Contents

Records: TypeAlias = npt.NDArray[np.int32]
"""By clause: RECORD numbers with all that verifying it takes, if it is not too wide."""

RECORD = 16
TOLD, LENGTH, FIRST = range(3)
"""Of a clause's record: its slot, or the complement of that if the subscription has other clauses too; how many
predicates it has; and from where on these are."""


@part
def write_record(records: Records, contents: Contents, clause: int) -> None:
    """Write down what verifying a clause takes."""
    first, width = np.int64(contents.first[clause]), np.int64(contents.width[clause])
    begin, slot = clause * RECORD, np.int64(contents.slot[clause])
    records[begin + TOLD] = slot if contents.sibling[clause] == ALONE else ~slot
    records[begin + LENGTH] = 0 if contents.words[first] == EVERY else width
    for at in range(width if width < RECORD - FIRST else RECORD - FIRST):
        records[begin + FIRST + at] = np.int64(contents.words[first + at]) - 1


@part
def satisfies(
    records: Records,
    contents: Contents,
    predicates: PredicateArrays,
    events: Events,
    event: int,
    scratch: Scratch,
    clause: int,
    level: int,
) -> bool:
    """Whether an event satisfies a clause; what it asks with its first words, `level` of them, comes last."""
    begin = clause * RECORD + FIRST
    length = np.int64(records[clause * RECORD + LENGTH])
    if length > RECORD - FIRST:
        return satisfies_all(contents, predicates, events, event, scratch, clause)
    for at in range(begin + level, begin + length):
        if not is_true(predicates, events, event, scratch, np.int64(records[at])):
            return False
    for at in range(begin, begin + level):
        if not is_true(predicates, events, event, scratch, np.int64(records[at])):
            return False
    return True


@part
def satisfies_all(
    contents: Contents, predicates: PredicateArrays, events: Events, event: int, scratch: Scratch, clause: int
) -> bool:
    """The same for a clause that is too wide for a record."""
    first, width = np.int64(contents.first[clause]), np.int64(contents.width[clause])
    for at in range(first, first + width):
        if not is_true(predicates, events, event, scratch, np.int64(contents.words[at]) - 1):
            return False
    return True
