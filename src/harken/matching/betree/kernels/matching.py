"""Finding the clauses that events satisfy, in a BE-Tree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.matching.betree.kernels.layout import NO_NODE, ROOT, Tree
from harken.matching.kernels.layout import CHECKS, REPEATS, VISITS, Events, PredicateArrays, Results, Scratch
from harken.matching.kernels.prefetch import prefetch
from harken.matching.kernels.truth import mark, unmark
from harken.matching.structures.kernels.attributes import list_attributes
from harken.matching.structures.kernels.clauses import Contents
from harken.matching.structures.kernels.hashing import find, key_of
from harken.matching.structures.kernels.records import RECORD, TOLD, satisfies

AHEAD = 8
"""Entries whose records are asked for before they are looked at."""


class Route(NamedTuple):
    """What one event leads to; belongs to one thread."""

    attribute: npt.NDArray[np.int32]
    key: npt.NDArray[np.int64]
    """The event's key in each attribute."""
    waiting: npt.NDArray[np.int32]
    """Nodes to be looked at: each is met once at most, so there is room for as many as there are."""


@part
def look_into(
    tree: Tree,
    contents: Contents,
    predicates: PredicateArrays,
    events: Events,
    event: int,
    scratch: Scratch,
    results: Results,
    node: int,
    found: int,
) -> int:
    """Match the entries of a node; how many matches there are then, told as far as they fit."""
    entries, start = tree.entries, tree.nodes.start[node]
    end = start + np.int64(tree.nodes.length[node])
    scratch.counts[CHECKS] += end - start
    for at in range(start, min(start + AHEAD, end)):
        prefetch(tree.records, np.int64(entries[at]) * RECORD)
    for at in range(start, end):
        if at + AHEAD < end:
            prefetch(tree.records, np.int64(entries[at + AHEAD]) * RECORD)
        clause = np.int64(entries[at])
        if satisfies(tree.records, contents, predicates, events, event, scratch, clause, 0):
            if found < len(results.slot):
                told = np.int64(tree.records[clause * RECORD + TOLD])
                results.event[found], results.slot[found] = event, max(told, ~told)
                scratch.counts[REPEATS] += told < 0
            found += 1
    return found


@part
def open_directory(tree: Tree, top: int, key: int, route: Route, waiting: int) -> int:
    """Have the top of a directory looked at, and the halves that a key is in; how many nodes wait then."""
    nodes, node = tree.nodes, np.int64(top)
    while True:
        route.waiting[waiting] = node
        waiting += 1
        if nodes.lower[node] == NO_NODE:
            return waiting
        node = nodes.lower[node] + (key > nodes.middle[node])


@tight
def match_events(
    tree: Tree,
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
    found, nodes = 0, tree.nodes
    for event in range(start, events.code.shape[0]):
        mark(predicates, events, event, scratch)
        attributes = list_attributes(
            tree.frequency, predicates, events, event, scratch, route.attribute, route.key
        )
        now = found
        route.waiting[0], waiting = ROOT, 1
        while waiting > 0:
            waiting -= 1
            node = np.int64(route.waiting[waiting])
            scratch.counts[VISITS] += 1
            if nodes.below[node] > 0:
                for at in range(attributes):
                    if at > 0 and route.attribute[at - 1] == route.attribute[at]:
                        continue  # several keys of one attribute lead to the same directory
                    top = find(tree.by_attribute, key_of(node, route.attribute[at]))
                    if top >= 0:
                        waiting = open_directory(tree, top, route.key[at], route, waiting)
            if nodes.length[node] > 0:
                now = look_into(tree, contents, predicates, events, event, scratch, results, node, now)
        unmark(predicates, events, scratch)
        if now > len(results.slot):
            return event, found
        found = now
    return events.code.shape[0], found
