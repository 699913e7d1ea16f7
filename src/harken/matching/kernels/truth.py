"""Phase one: the truth of predicates for one event (Fabret et al. 2000, section 2.1).

Predicates that the event's values lead to (equalities, members of sets, tests of texts and shapes) are listed
here; the others are evaluated where they are met. Intervals are compared with the event's label every time, which
takes no longer than to look up what was found before; of all others the truth is noted, and found out once. Where
an event has more to check than there are predicates, all intervals are evaluated first, one after the other.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import part
from harken.matching.kernels.layout import (
    DIFFERENT,
    FALSE,
    INTERVAL,
    INTERVAL_WORDS,
    IS_ABSENT,
    MISSING,
    NO_VALUE,
    TOUCHED,
    TRUE,
    UNKNOWN,
    UNLISTED,
    Events,
    PredicateArrays,
    Scratch,
)


@part
def holds(predicates: PredicateArrays, events: Events, event: int, predicate: int) -> bool:
    """Evaluate one predicate."""
    operator, column = predicates.operator[predicate], events.column[predicates.dimension[predicate]]
    code = events.code[event, column]
    if operator == IS_ABSENT:
        return code == MISSING
    if code == MISSING:
        return False
    if operator == INTERVAL:
        label = events.label[event, events.label_column[column]]
        return predicates.low[predicate] <= label <= predicates.high[predicate]
    return operator != DIFFERENT or code != predicates.low[predicate]


@part
def satisfied_in(
    predicates: PredicateArrays,
    events: Events,
    column: int,
    its_code: int,
    has_sets: bool,
    touched: npt.NDArray[np.int32],
    count: int,
) -> int:
    """Append the predicates that one value of an event leads to; how many there are then."""
    if its_code > UNLISTED:  # and not missing
        at = np.uint64(predicates.equal_first[np.uint32(events.dimension[column])] + its_code)
        touched[np.uint32(count)] = predicates.equal[at]
        count += predicates.equal[at] >= 0
        node = predicates.member_head[at] if has_sets else np.int32(-1)
        while node >= 0:
            touched[count] = predicates.member[node]
            count += 1
            node = predicates.member_next[node]
    return count


@part
def satisfied_also(events: Events, event: int, touched: npt.NDArray[np.int32], count: int) -> int:
    """Append the predicates that tests have found true; how many there are then."""
    for other in range(events.also_first[event], events.also_first[event + 1]):
        touched[count] = events.also[other]
        count += 1
    return count


@part
def satisfied(predicates: PredicateArrays, events: Events, event: int, touched: npt.NDArray[np.int32]) -> int:
    """List every predicate that the event's values lead to and that it satisfies; how many there are."""
    code = events.code[event]
    count, has_sets = 0, len(predicates.member) > 0
    for column in range(1, len(code)):  # the first stands for dimensions that no event has
        count = satisfied_in(predicates, events, column, code[column], has_sets, touched, count)
    return satisfied_also(events, event, touched, count)


@part
def see_values(events: Events, event: int, scratch: Scratch) -> None:
    """Have the order labels of the event at hand where intervals find them."""
    for column in range(1, events.code.shape[1]):
        of_label = events.label_column[column]
        if of_label >= 0:
            is_there = events.code[event, column] != MISSING
            scratch.value[events.dimension[column] + 1] = events.label[event, of_label] if is_there else NO_VALUE


@part
def forget_values(events: Events, scratch: Scratch) -> None:
    """Leave no label behind: other events may not have these columns."""
    for column in range(1, events.code.shape[1]):
        if events.label_column[column] >= 0:
            scratch.value[events.dimension[column] + 1] = NO_VALUE


@part
def is_within(predicates: PredicateArrays, scratch: Scratch, predicate: int) -> bool:
    """Whether the event's label is within the bounds of an interval. Other predicates have none to keep.

    By signs, not comparisons: which of the two bounds it would fail on, if it does, can't be foreseen.
    """
    at = INTERVAL_WORDS * predicate
    value = scratch.value[predicates.interval[at]]
    return (value - predicates.interval[at + 1]) | (predicates.interval[at + 2] - value) >= 0


@part
def may_hold(predicates: PredicateArrays, scratch: Scratch, predicate: int) -> bool:
    """Whether a predicate can be true: not if it is known not to be, or is an interval of other labels."""
    known = scratch.truth[predicate]
    if known == UNKNOWN:
        return is_within(predicates, scratch, predicate)
    return known != FALSE


@part
def mark(predicates: PredicateArrays, events: Events, event: int, scratch: Scratch) -> None:
    """Write down the truth of the predicates that the event's values lead to."""
    count = satisfied(predicates, events, event, scratch.touched)
    for at in range(count):
        scratch.truth[scratch.touched[at]] = TRUE
    scratch.counts[TOUCHED] = count
    see_values(events, event, scratch)


@part
def is_true(predicates: PredicateArrays, events: Events, event: int, scratch: Scratch, predicate: int) -> bool:
    """The truth of a predicate for the event whose predicates are marked; evaluated if it is not known."""
    known = scratch.truth[predicate]
    if known == UNKNOWN:
        if predicates.interval[INTERVAL_WORDS * predicate] != 0:
            return is_within(predicates, scratch, predicate)
        known = TRUE if holds(predicates, events, event, predicate) else FALSE
        scratch.truth[predicate] = known
        scratch.touched[scratch.counts[TOUCHED]] = predicate
        scratch.counts[TOUCHED] += 1
    return known == TRUE


@part
def settle_intervals(predicates: PredicateArrays, scratch: Scratch) -> None:
    """Write down the truth of all intervals, one after the other: quicker than where they are met, if many are."""
    for predicate in range(len(predicates.initial)):
        if predicates.interval[INTERVAL_WORDS * predicate] != 0:
            scratch.truth[predicate] = TRUE if is_within(predicates, scratch, predicate) else FALSE


@part
def unsettle_intervals(predicates: PredicateArrays, scratch: Scratch) -> None:
    """Leave the truth vector as it was before, also of all others."""
    for predicate in range(len(predicates.initial)):
        scratch.truth[predicate] = predicates.initial[predicate]


@part
def unmark(predicates: PredicateArrays, events: Events, scratch: Scratch) -> None:
    """Leave the truth vector and the labels as they were before the event."""
    for at in range(scratch.counts[TOUCHED]):
        predicate = scratch.touched[at]
        scratch.truth[predicate] = predicates.initial[predicate]
    forget_values(events, scratch)
