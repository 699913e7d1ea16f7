"""Siena's forwarding (Carzaniga and Wolf 2003): from attributes to the constraints that hold, and on to filters.

A **constraint** asks one thing of one attribute; a range is two, one for each end. Constraints are found by the
name and type of their attribute, and then by their operator: equalities by value, ends of ranges in their order,
where those that hold come first. A **filter** is a clause; it matches when as many constraints hold as it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.matching.kernels.layout import CHECKS, MISSING, Events, PredicateArrays, Results, Scratch
from harken.matching.kernels.truth import holds, satisfied_also, satisfied_in
from harken.matching.siena.kernels.names import UNKNOWN_NAME, Names, find_name
from harken.matching.structures.kernels.clauses import END, EVERY, Contents
from harken.matching.structures.kernels.counters import Lists, count_down, set_back

if TYPE_CHECKING:
    from harken.matching.structures.kernels.clauses import Counters


class Constraints(NamedTuple):
    """Those that values do not lead to by themselves. Dimensions index *_first."""

    lower_first: npt.NDArray[np.int64]
    lower: npt.NDArray[np.int32]
    """Predicates with a lower end ..."""
    least: npt.NDArray[np.int64]
    """... and that end, ascending within a dimension: those that hold come first."""
    upper_first: npt.NDArray[np.int64]
    upper: npt.NDArray[np.int32]
    most: npt.NDArray[np.int64]
    """The upper ends, descending within a dimension."""
    other_first: npt.NDArray[np.int64]
    other: npt.NDArray[np.int32]
    """Of an attribute that is there: that it is, or that it is not some value."""
    absent: npt.NDArray[np.int32]
    """Of attributes that are not there: asked for every event."""


class Table(NamedTuple):
    """The forwarding table."""

    names: Names
    constraints: Constraints
    lists: Lists
    lacking: Counters
    """By filter: how many constraints it has."""


class Opened(NamedTuple):
    """What one thread needs beside its scratch."""

    left: Counters
    """By filter: how many constraints it lacks of the event at hand."""
    lists: npt.NDArray[np.int32]
    """Those of the constraints that hold."""
    dimension: npt.NDArray[np.int32]
    """By column of the events: what its name leads to."""


@tight
def match_events(
    table: Table,
    contents: Contents,
    predicates: PredicateArrays,
    events: Events,
    start: int,
    opened: Opened,
    scratch: Scratch,
    results: Results,
) -> tuple[int, int]:
    """Match events from `start` on until done or until the results are full.

    Returns the first event not matched and how many results there are.
    """
    for column in range(1, len(events.dimension)):
        opened.dimension[column] = UNKNOWN_NAME
        dimension = events.dimension[column]
        if dimension >= 0 and table.names.name_of[dimension] != UNKNOWN_NAME:
            name, bounds = table.names.name_of[dimension], table.names.bounds
            opened.dimension[column] = find_name(table.names, bounds[name], bounds[name + 1])
    found = 0
    for event in range(start, events.code.shape[0]):
        count, steps, now = _open_lists(table.constraints, predicates, events, event, opened), 0, found
        for number in opened.lists[:count]:
            now = count_down(table.lists, contents, number, event, opened.left, scratch, results, now)
            steps += table.lists.length[number]
        set_back(table.lists, table.lacking, contents.spare[END], opened.lists, count, steps, opened.left)
        if now > len(results.slot):
            return event, found
        found = now
        scratch.counts[CHECKS] += steps
    return events.code.shape[0], found


@part
def _open_lists(
    constraints: Constraints, predicates: PredicateArrays, events: Events, event: int, opened: Opened
) -> int:
    """Write down the lists of all constraints that an event satisfies; how many there are."""
    lists, code = opened.lists, events.code[event]
    count, has_sets = 0, len(predicates.member) > 0
    for column in range(1, len(code)):
        if code[column] != MISSING and opened.dimension[column] >= 0:
            count = satisfied_in(predicates, events, column, code[column], has_sets, lists, count)
            dimension = opened.dimension[column]
            count = _ends_that_hold(constraints, events, event, column, dimension, lists, count)
            for at in range(constraints.other_first[dimension], constraints.other_first[dimension + 1]):
                lists[count] = constraints.other[at]
                count += holds(predicates, events, event, constraints.other[at])
    count = satisfied_also(events, event, lists, count)
    for predicate in constraints.absent:
        lists[count] = predicate
        count += holds(predicates, events, event, predicate)
    for at in range(count):
        lists[at] += 1
    lists[count] = EVERY
    return count + 1


@part
def _ends_that_hold(
    constraints: Constraints,
    events: Events,
    event: int,
    column: int,
    dimension: int,
    lists: npt.NDArray[np.int32],
    count: int,
) -> int:
    """Append the ranges of an attribute, once for each end that the value keeps; how many there are then."""
    if events.label_column[column] < 0:
        return count
    label = events.label[event, events.label_column[column]]
    for at in range(constraints.lower_first[dimension], constraints.lower_first[dimension + 1]):
        if constraints.least[at] > label:
            break
        lists[count] = constraints.lower[at]
        count += 1
    for at in range(constraints.upper_first[dimension], constraints.upper_first[dimension + 1]):
        if constraints.most[at] < label:
            break
        lists[count] = constraints.upper[at]
        count += 1
    return count
