"""Matching: an event picks one tree of each segment, and walks it (Kale et al. 2005, section 4.2)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.matching.kernels.layout import (
    CHECKS,
    REPEATS,
    TOUCHED,
    VISITS,
    Events,
    PredicateArrays,
    Results,
    Scratch,
)
from harken.matching.kernels.truth import is_true, mark, unmark
from harken.matching.trees.kernels.layout import (
    NOBODY,
    NODE,
    ONE,
    SEVERAL,
    SLOT,
    SPARSE,
    WORTH_A_NODE,
    Contents,
    Forest,
)

Roles = npt.NDArray[np.int8]
Entries = npt.NDArray[np.int32]

WIDE = 8
"""Where a node has so many branches for each predicate that holds, those of the latter are looked up."""


@part
def list_properties(predicates: PredicateArrays, roles: Roles, scratch: Scratch) -> int:
    """Write down the properties of the event whose predicates are marked, each once; how many there are."""
    count = 0
    for at in range(scratch.counts[TOUCHED]):
        predicate = scratch.touched[at]
        if roles[predicate] == ONE:
            dimension = predicates.dimension[predicate]
            if scratch.columns[dimension] == 0:
                scratch.columns[dimension] = 1
                scratch.places[count] = dimension
                count += 1
    return count


@part
def forget_properties(scratch: Scratch, count: int) -> None:
    """Leave the notes as they were before the event."""
    for at in range(count):
        scratch.columns[scratch.places[at]] = 0


@part
def blocks_with(scratch: Scratch, listed: int, light: int, dimensions: int) -> int:
    """The blocks, of light + 1 of them, in which the event has properties: a bit for each."""
    mask = 0
    for at in range(listed):
        if scratch.places[at] < dimensions:
            mask |= 1 << (scratch.places[at] * (light + 1) // dimensions)
    return mask


@part
def pick_tree(forest: Forest, segment: int, scratch: Scratch, listed: int) -> int:
    """The tree of a segment in which all clauses are that the event could satisfy."""
    dimensions, light, properties = forest.dimensions[segment], forest.light[segment], 0
    for at in range(listed):
        properties += scratch.places[at] < dimensions
    if properties > light:
        last = forest.base[segment] + (light + 1) * (light + 2) // 2
        return last + (forest.sparse[segment] and properties * SPARSE > dimensions)
    mask = blocks_with(scratch, listed, properties, dimensions)
    first = forest.base[segment] + properties * (properties + 1) // 2
    picked = -1
    for block in range(properties + 1):
        if not (mask >> block) & 1:
            tree = first + block
            size = forest.stop[tree] - forest.start[tree]
            if picked < 0 or size < forest.stop[picked] - forest.start[picked]:
                picked = tree
    return picked


@part
def tell(contents: Contents, clause: int, event: int, scratch: Scratch, results: Results, found: int) -> int:
    """Write down a match as far as there is room, unless the clause has left; how many there are now."""
    owner = np.int64(contents.owner[clause])
    if owner == NOBODY:
        return found
    if found < len(results.slot):
        results.event[found], results.slot[found] = event, owner & SLOT
        scratch.counts[REPEATS] += owner >= SEVERAL
    return found + 1


@part
def find_branch(entries: Entries, begin: int, count: int, predicate: int) -> int:
    """Where among a node's branches, which are in order, those begin that ask a predicate, if any does."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if entries[begin + 2 * middle] < predicate:
            low = middle + 1
        else:
            high = middle
    return low


@part
def follow_tails(
    predicates: PredicateArrays,
    contents: Contents,
    entries: Entries,
    events: Events,
    event: int,
    count: int,
    scratch: Scratch,
    results: Results,
    found: int,
) -> int:
    """Ask what is left of clauses that are alone, of all of them one predicate after the other."""
    tails, ended, ends = scratch.waiting, scratch.survivors, 0
    while count > 0:
        kept = 0
        scratch.counts[CHECKS] += count
        for each in range(count):
            at = tails[each]
            word = np.int64(entries[at])
            goes_on = word >= 0
            # Written before it is known whether it is to be kept: nothing has to be guessed.
            ended[ends], tails[kept] = ~word, at + 1
            ends += not goes_on
            kept += goes_on & is_true(predicates, events, event, scratch, max(word, np.int64(0)))
        count = kept
    for each in range(ends):
        found = tell(contents, ended[each], event, scratch, results, found)
    return found


@part
def look_up(
    entries: Entries, root: int, node: int, satisfied: int, scratch: Scratch, top: int, waiting: int
) -> tuple[int, int]:
    """Find the branches of a node that ask what is known to hold; how many nodes and tails are left then."""
    begin, known = node + NODE, entries[node]
    for each in range(satisfied):
        predicate = scratch.touched[each]
        branch = find_branch(entries, begin, known, predicate)
        while branch < known and entries[begin + 2 * branch] == predicate:
            target = np.int64(entries[begin + 2 * branch + 1])
            if target >= 0:
                scratch.places[top] = root + target
                top += 1
            else:
                scratch.waiting[waiting] = root + ~target
                waiting += 1
            branch += 1
    return top, waiting


@part
def test_branches(
    predicates: PredicateArrays,
    entries: Entries,
    root: int,
    begin: int,
    end: int,
    events: Events,
    event: int,
    scratch: Scratch,
    top: int,
    waiting: int,
) -> tuple[int, int]:
    """Ask some branches of a node one after the other; how many nodes and tails are left then."""
    nodes, tails = scratch.places, scratch.waiting
    for at in range(begin, end, 2):
        holds = is_true(predicates, events, event, scratch, entries[at])
        target = np.int64(entries[at + 1])
        # Written before it is known whether it is to be kept: nothing has to be guessed.
        nodes[top], tails[waiting] = root + target, root + ~target
        top += holds & (target >= 0)
        waiting += holds & (target < 0)
    return top, waiting


@part
def walk(
    predicates: PredicateArrays,
    contents: Contents,
    forest: Forest,
    tree: int,
    events: Events,
    event: int,
    listed: int,
    scratch: Scratch,
    results: Results,
    found: int,
) -> int:
    """Follow all branches of a tree whose predicates hold. The first `listed` places are taken."""
    entries, root, satisfied = forest.entries, forest.start[tree], scratch.counts[TOUCHED]
    # As many as can end, and one that is written in vain.
    room, top, waiting = len(scratch.survivors) - 1, listed + 1, 0
    scratch.places[listed] = root
    while top > listed:
        top -= 1
        node = scratch.places[top]
        begin, known = node + NODE, entries[node]
        end = begin + 2 * (known + entries[node + 1])
        for at in range(end, end + entries[node + 2]):
            found = tell(contents, entries[at], event, scratch, results, found)
        while begin < end:
            looked_up = begin == node + NODE and known > WIDE * satisfied and WORTH_A_NODE * satisfied <= room
            size = WORTH_A_NODE * satisfied if looked_up else min((end - begin) // 2, room - waiting)
            if waiting + max(1, size) > room:
                found = follow_tails(
                    predicates, contents, entries, events, event, waiting, scratch, results, found
                )
                waiting = 0
            elif looked_up:
                top, waiting = look_up(entries, root, node, satisfied, scratch, top, waiting)
                begin += 2 * known
            else:
                stop = begin + 2 * size
                top, waiting = test_branches(
                    predicates, entries, root, begin, stop, events, event, scratch, top, waiting
                )
                scratch.counts[CHECKS] += size
                begin = stop
    return follow_tails(predicates, contents, entries, events, event, waiting, scratch, results, found)


@part
def scan(
    predicates: PredicateArrays,
    contents: Contents,
    begin: int,
    events: Events,
    event: int,
    scratch: Scratch,
    results: Results,
    found: int,
) -> int:
    """Ask each clause from `begin` on, which are in no tree."""
    for clause in range(begin, contents.end):
        holds = True
        for at in range(contents.first[clause], contents.first[clause + 1]):
            if not is_true(predicates, events, event, scratch, contents.words[at]):
                holds = False
                break
        if holds:
            found = tell(contents, clause, event, scratch, results, found)
    scratch.counts[CHECKS] += contents.end - begin
    return found


@tight
def match_events(
    predicates: PredicateArrays,
    roles: Roles,
    contents: Contents,
    forest: Forest,
    events: Events,
    start: int,
    scratch: Scratch,
    results: Results,
) -> tuple[int, int]:
    """Match events from `start` on until done or until the results are full.

    Returns the first event not matched and how many results there are.
    """
    found, segments = 0, len(forest.base)
    for event in range(start, events.code.shape[0]):
        mark(predicates, events, event, scratch)
        listed, now = list_properties(predicates, roles, scratch), found
        for segment in range(segments):
            tree = pick_tree(forest, segment, scratch, listed)
            now = walk(predicates, contents, forest, tree, events, event, listed, scratch, results, now)
        now = scan(predicates, contents, forest.built, events, event, scratch, results, now)
        scratch.counts[VISITS] += segments
        forget_properties(scratch, listed)
        unmark(predicates, events, scratch)
        if now > len(results.slot):
            return event, found
        found = now
    return events.code.shape[0], found
