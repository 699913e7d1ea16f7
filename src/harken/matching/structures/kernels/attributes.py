"""Ways of asking about a dimension, and what of an event answers them.

An **attribute** is a dimension that is asked for a constant (EXACT), for a range (RANGE), for one of several
constants (ONE_OF), for a pattern or a shape (TEST), or for anything else that takes a value to be there
(PRESENCE). An event that has a value there has a **key** in each: the value's code, its label, or nothing in
particular. Of ONE_OF and TEST it has as many keys as there are predicates that it satisfies: their numbers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import part
from harken.matching.kernels.layout import (
    EQUAL,
    INTERVAL,
    IS_ABSENT,
    MEMBER,
    MISSING,
    TESTED,
    TOUCHED,
    UNLISTED,
    Events,
    PredicateArrays,
    Scratch,
)
from harken.matching.structures.kernels.clauses import EVERY, Contents

EXACT, RANGE, ONE_OF, TEST, PRESENCE, WAYS = range(6)
"""Ways of asking. Attribute WAYS * d + way is that of dimension d."""

NOTHING = -1
"""Instead of an attribute: the clause has no further one."""


@part
def attribute_of(predicates: PredicateArrays, predicate: int) -> int:
    """The attribute that a predicate asks of, which is not that something is absent."""
    operator = predicates.operator[predicate]
    way = PRESENCE
    if operator == EQUAL:
        way = EXACT
    elif operator == INTERVAL:
        way = RANGE
    elif operator == MEMBER:
        way = ONE_OF
    elif operator == TESTED:
        way = TEST
    return np.int64(predicates.dimension[predicate]) * WAYS + way


@part
def is_listed(predicates: PredicateArrays, predicate: int) -> bool:
    """Whether a predicate is ONE_OF or a TEST: events that satisfy it have its number for a key."""
    return predicates.operator[predicate] == MEMBER or predicates.operator[predicate] == TESTED


@part
def lowest(predicates: PredicateArrays, predicate: int) -> int:
    """The least key that satisfies a predicate, or some number if it asks for mere presence, or is none."""
    if predicate < 0:
        return np.int64(0)
    return np.int64(predicate) if is_listed(predicates, predicate) else predicates.low[predicate]


@part
def highest(predicates: PredicateArrays, predicate: int) -> int:
    """The greatest key that does."""
    if predicates.operator[predicate] == INTERVAL:
        return predicates.high[predicate]
    return lowest(predicates, predicate)


@part
def asked(contents: Contents, clause: int, level: int) -> int:
    """The predicate of a clause on its attribute of this level, counted from 0."""
    return np.int64(contents.words[np.int64(contents.first[clause]) + level]) - 1


@part
def is_needed(predicates: PredicateArrays, word: int) -> bool:
    """Whether a word asks of some attribute to be there."""
    return word != EVERY and predicates.operator[word - 1] != IS_ABSENT


@part
def list_attributes(
    frequency: npt.NDArray[np.int64],
    predicates: PredicateArrays,
    events: Events,
    event: int,
    scratch: Scratch,
    attribute: npt.NDArray[np.int32],
    key: npt.NDArray[np.int64],
) -> int:
    """Write down the attributes that an event has and some clause asks of, and its keys there; how many.

    `frequency` says, by attribute, how many words ask so. The event's predicates have just been marked. Keys of
    the same attribute follow each other, since they are found value by value.
    """
    count = 0
    for column in range(1, events.code.shape[1]):
        code = events.code[event, column]
        if code == MISSING:
            continue
        first = np.int64(events.dimension[column]) * WAYS
        if code != UNLISTED and frequency[first + EXACT] > 0:
            attribute[count], key[count] = first + EXACT, code
            count += 1
        if frequency[first + RANGE] > 0:
            attribute[count] = first + RANGE
            key[count] = events.label[event, events.label_column[column]]
            count += 1
        if frequency[first + PRESENCE] > 0:
            attribute[count], key[count] = first + PRESENCE, 0
            count += 1
    for at in range(scratch.counts[TOUCHED]):
        predicate = np.int64(scratch.touched[at])
        if is_listed(predicates, predicate):
            attribute[count], key[count] = attribute_of(predicates, predicate), predicate
            count += 1
    return count
