"""Finding the clauses that events satisfy (figures 2 and 4 of Mishra and Sahni)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.matching.kernels.layout import (
    CHECKS,
    REPEATS,
    VISITS,
    Events,
    PredicateArrays,
    Results,
    Scratch,
)
from harken.matching.kernels.prefetch import prefetch
from harken.matching.kernels.truth import is_true, mark, unmark
from harken.matching.pubsub.kernels.layout import HASH, INTERVAL_TREE, ROOT, UNDIVIDED, Database
from harken.matching.structures.kernels import interval_trees, priority_search_trees
from harken.matching.structures.kernels.attributes import (
    NOTHING,
    PRESENCE,
    RANGE,
    WAYS,
    list_attributes,
    lowest,
)
from harken.matching.structures.kernels.clauses import Contents
from harken.matching.structures.kernels.hashing import find, key_of
from harken.matching.structures.kernels.records import RECORD, TOLD, satisfies

TOGETHER = 64
"""Candidates that are verified together."""

SHORT = 32
"""Buckets of so many entries per attribute of the event are looked through one by one."""


class Route(NamedTuple):
    """What one event leads to; belongs to one thread."""

    attribute: npt.NDArray[np.int32]
    key: npt.NDArray[np.int64]
    """The event's key in each attribute."""
    waiting: npt.NDArray[np.int32]
    """Buckets to be looked at: each is met once at most, so there is room for as many as there are."""
    pending: npt.NDArray[np.int32]
    """Nodes of a priority search tree to be looked at."""


@part
def open_structure(
    database: Database, structure: int, key: int, is_further: bool, route: Route, waiting: int
) -> int:
    """Have those buckets of a structure looked at that may hold clauses satisfied by a key; how many wait then.

    If it is a further key of the same attribute, what does not depend on keys is waiting already.
    """
    kind, root = database.structures.kind[structure], np.int64(database.structures.root[structure])
    if kind == UNDIVIDED:
        if not is_further:
            route.waiting[waiting] = root
            waiting += 1
        return waiting
    if kind == HASH:
        bucket = find(database.by_code, key_of(structure, key))
        if bucket >= 0:
            route.waiting[waiting] = bucket
            waiting += 1
        return waiting
    if kind == INTERVAL_TREE:
        return interval_trees.stab(database.intervals, root, key, route.waiting, waiting)
    return priority_search_trees.stab(database.ranges, root, key, route.pending, route.waiting, waiting)


@part
def first_from(
    database: Database, predicates: PredicateArrays, begin: int, end: int, attribute: int, key: int
) -> int:
    """The first of some entries in order whose range does not begin before a key, or is of a later attribute."""
    entries = database.entries
    while begin < end:
        middle = (begin + end) >> 1
        its = entries.attribute[middle]
        is_before = its < attribute
        if its == attribute:
            is_before = lowest(predicates, entries.predicate[middle]) < key
        if is_before:
            begin = middle + 1
        else:
            end = middle
    return begin


@part
def begin_of(database: Database, begin: int, end: int, attribute: int) -> int:
    """The first of some entries in order that is not of an earlier attribute."""
    attributes = database.entries.attribute
    while begin < end:
        middle = (begin + end) >> 1
        if attributes[middle] < attribute:
            begin = middle + 1
        else:
            end = middle
    return begin


@part
def look_at(
    database: Database,
    contents: Contents,
    predicates: PredicateArrays,
    events: Events,
    event: int,
    scratch: Scratch,
    results: Results,
    begin: int,
    end: int,
    level: int,
    found: int,
) -> int:
    """Match entries one by one; how many matches there are then, told as far as they fit."""
    entries, candidates = database.entries, scratch.survivors
    at = begin
    while at < end:
        # Some at a time, so that what is known of them is on its way from memory while others are looked at.
        count = 0
        while at < end and count < TOGETHER:
            predicate, clause = np.int64(entries.predicate[at]), np.int64(entries.clause[at])
            at += 1
            if predicate < 0 or is_true(predicates, events, event, scratch, predicate):
                candidates[count] = clause
                count += 1
                prefetch(database.records, clause * RECORD)
        scratch.counts[CHECKS] += count
        for number in range(count):
            clause = candidates[number]
            if satisfies(database.records, contents, predicates, events, event, scratch, clause, level):
                if found < len(results.slot):
                    told = np.int64(database.records[clause * RECORD + TOLD])
                    results.event[found], results.slot[found] = event, max(told, ~told)
                    scratch.counts[REPEATS] += told < 0
                found += 1
    return found


@part
def look_into(
    database: Database,
    contents: Contents,
    predicates: PredicateArrays,
    events: Events,
    event: int,
    scratch: Scratch,
    results: Results,
    route: Route,
    attributes: int,
    bucket: int,
    found: int,
) -> int:
    """Match the clauses of a bucket; how many matches there are then."""
    buckets = database.buckets
    begin, level = buckets.start[bucket], np.int64(buckets.level[bucket])
    end, ordered = begin + np.int64(buckets.length[bucket]), begin + np.int64(buckets.sorted[bucket])
    if end - begin <= SHORT * attributes:
        ordered = begin
    # First those that are in order, group by group; then the rest. One loop, so that looking is built in once.
    for turn in range(-1, attributes + 1):
        at, to = begin, ordered
        if turn == attributes:
            at, to = ordered, end
        elif ordered == begin:
            continue
        elif turn < 0:
            to = begin_of(database, begin, ordered, NOTHING + 1)
        else:
            attribute, key = np.int64(route.attribute[turn]), route.key[turn]
            way = attribute % WAYS
            if way != RANGE and way != PRESENCE:
                at = first_from(database, predicates, begin, ordered, attribute, key)
                to = at
                while to < ordered and database.entries.attribute[to] == attribute:
                    if lowest(predicates, database.entries.predicate[to]) != key:
                        break
                    to += 1
            else:
                at = begin_of(database, begin, ordered, attribute)
                if at == ordered or database.entries.attribute[at] != attribute:
                    continue
                if way == RANGE:
                    to = first_from(database, predicates, at, ordered, attribute, key + 1)
                else:
                    to = begin_of(database, at, ordered, attribute + 1)
        if at < to:
            found = look_at(database, contents, predicates, events, event, scratch, results, at, to, level, found)
    return found


@tight
def match_events(
    database: Database,
    contents: Contents,
    predicates: PredicateArrays,
    events: Events,
    start: int,
    route: Route,
    scratch: Scratch,
    results: Results,
) -> tuple[int, int]:
    """Match events from `start` on until done or until the results are full.

    Returns the first event not matched and how many results there are.
    """
    found, buckets = 0, database.buckets
    for event in range(start, events.code.shape[0]):
        mark(predicates, events, event, scratch)
        attributes = list_attributes(
            database.frequency, predicates, events, event, scratch, route.attribute, route.key
        )
        now = found
        route.waiting[0], waiting = ROOT, 1
        while waiting > 0:
            waiting -= 1
            bucket = np.int64(route.waiting[waiting])
            scratch.counts[VISITS] += 1
            if buckets.below[bucket] > 0:
                for at in range(attributes):
                    structure = find(database.by_attribute, key_of(bucket, route.attribute[at]))
                    if structure >= 0:
                        is_further = at > 0 and route.attribute[at - 1] == route.attribute[at]
                        waiting = open_structure(database, structure, route.key[at], is_further, route, waiting)
            if buckets.length[bucket] > 0:
                now = look_into(
                    database,
                    contents,
                    predicates,
                    events,
                    event,
                    scratch,
                    results,
                    route,
                    attributes,
                    bucket,
                    now,
                )
        unmark(predicates, events, scratch)
        if now > len(results.slot):
            return event, found
        found = now
    return events.code.shape[0], found
