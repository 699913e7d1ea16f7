"""Matching a batch of encoded events against clusters (Fabret et al. 2000, sections 2.2 and 3).

Phase one marks the predicates an event satisfies and collects the access paths it opens; phase two visits
their clusters. What is read is asked for long before: the filters of an event's keys some events ahead, then, for
what filters let through of many events, the directory entries, the blocks they lead to, and the rest of those
blocks. So the waits for memory overlap with each other and with the work for other events.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import called, part, tight
from harken.matching.clusters.kernels.opening import (
    event_at,
    fetch_event,
    find_columns,
    open_event,
    sift,
    some_have_filters,
)
from harken.matching.clusters.kernels.together import (
    look_up_together,
    tables_together,
    translate_words,
)
from harken.matching.kernels.layout import (
    AFTER,
    ALONE,
    CAPACITY,
    CHECKS,
    FALSE,
    GROUP,
    HEADER,
    LENGTH,
    LINE,
    NEXT,
    REPEATS,
    RING,
    SHARED,
    SIBLING,
    SLOT,
    VISITS,
    WIDTH,
    Blocks,
    Events,
    PredicateArrays,
    Results,
    Scratch,
    Tables,
)
from harken.matching.kernels.prefetch import prefetch
from harken.matching.kernels.truth import is_true, mark, may_hold, settle_intervals, unmark, unsettle_intervals

STAGE = 4
"""How many events ahead filters are asked for."""

ROUND = 256
"""Events, at most, whose candidates are checked together: where results run full, these are opened again."""

SHORT = 2 * LINE - HEADER
"""Clusters of up to so many entries, which their first two lines hold, are short."""

SETTLED = 2
"""Intervals are all evaluated first if an event has one entry to check for so many predicates, or more entries."""

LOOKAHEAD = 8 * LINE
"""How far ahead of a scan its words are asked for (section 2.2.3)."""


@part
def collect(blocks: Blocks, step: int, scratch: Scratch, count: int, ahead: bool) -> int:
    """Append what an event has opened to the candidates, and ask for where in the directory they are; how many."""
    begin = step % RING * (len(scratch.places) // RING)
    for at in range(begin, begin + scratch.opened[step % RING]):
        scratch.candidates[2 * count], scratch.candidates[2 * count + 1] = step, scratch.places[at]
        if ahead:
            prefetch(blocks.directory, scratch.places[at])
        count += 1
    return count


@part
def fetch_blocks(blocks: Blocks, scratch: Scratch, count: int, ahead: bool) -> int:
    """Replace directory entries by the blocks they lead to, and ask for the beginnings of those; how many."""
    candidates, words, kept = scratch.candidates, blocks.words, 0
    for at in range(count):
        block = np.int64(blocks.directory[candidates[2 * at + 1]])
        if block > 0:
            if ahead:
                prefetch(words, block * LINE)
            candidates[2 * kept], candidates[2 * kept + 1] = candidates[2 * at], block
            kept += 1
    return kept


@part
def fetch_columns(blocks: Blocks, scratch: Scratch, count: int) -> None:
    """Ask for the rest of the first columns, or as much as lies within the look-ahead."""
    words = blocks.words
    for at in range(count):
        base = scratch.candidates[2 * at + 1] * LINE
        end = base + HEADER + min(np.int64(words[base + LENGTH]), LOOKAHEAD)
        for line in range(base + LINE, end, LINE):
            prefetch(words, line)


@part
def note(
    predicates: PredicateArrays,
    scratch: Scratch,
    words: npt.NDArray[np.uint32],
    base: int,
    first: int,
    last: int,
    count: int,
) -> int:
    """Append entries of a short cluster whose first predicate may hold to those that wait; how many wait then."""
    waiting = scratch.waiting
    for entry in range(base + HEADER + first, base + HEADER + last):
        waiting[np.uint64(2 * count)], waiting[np.uint64(2 * count + 1)] = entry, base
        # Without a branch: which of them may hold can't be foreseen.
        count += may_hold(predicates, scratch, np.int64(words[np.uint64(entry)]))
    return count


@part
def scan(
    words: npt.NDArray[np.uint32],
    first: int,
    last: int,
    truth: npt.NDArray[np.uint8],
    survivors: npt.NDArray[np.int64],
    ahead: bool,
) -> int:
    """List those entries of a long cluster, from first to last, whose first predicate is not false; how many."""
    count = 0
    for chunk in range(first, last, LOOKAHEAD):
        end = min(chunk + LOOKAHEAD, last)
        if ahead:
            for line in range(end, min(end + LOOKAHEAD, last), LINE):
                prefetch(words, line)
        for entry in range(chunk, end):
            survivors[np.uint64(count)] = entry
            count += truth[words[np.uint64(entry)]] != FALSE
    return count


@part
def narrow(
    predicates: PredicateArrays,
    words: npt.NDArray[np.uint32],
    events: Events,
    event: int,
    base: int,
    scratch: Scratch,
    count: int,
) -> int:
    """Of the survivors of one long cluster, keep those whose predicates all hold, column by column; how many."""
    survivors = scratch.survivors
    capacity, width = np.int64(words[base + CAPACITY]), np.int64(words[base + WIDTH])
    for column in range(width):
        kept = 0
        for at in range(count):
            entry = survivors[np.uint64(at)]
            word = np.int64(words[np.uint64(entry + column * capacity)])
            survivors[np.uint64(kept)] = entry
            kept += is_true(predicates, events, event, scratch, word)
        count = kept
    return count


@part
def narrow_waiting(
    predicates: PredicateArrays,
    words: npt.NDArray[np.uint32],
    events: Events,
    event: int,
    scratch: Scratch,
    count: int,
) -> int:
    """Of the entries that wait, keep those whose predicates all hold, column by column; how many."""
    waiting = scratch.waiting
    column, widest = 0, 0
    while count > 0 and column <= widest:
        kept = 0
        for at in range(count):
            entry, base = waiting[np.uint64(2 * at)], waiting[np.uint64(2 * at + 1)]
            last = np.int64(words[np.uint64(base + WIDTH)]) - 1
            # Where a cluster has fewer columns, its last is looked at again: without a branch.
            place = entry + min(column, last) * np.int64(words[np.uint64(base + CAPACITY)])
            waiting[np.uint64(2 * kept)], waiting[np.uint64(2 * kept + 1)] = entry, base
            kept += is_true(predicates, events, event, scratch, np.int64(words[np.uint64(place)]))
            widest = max(widest, last)
        count = kept
        column += 1
    return count


@part
def tell(blocks: Blocks, event: int, entry_id: int, scratch: Scratch, results: Results, found: int) -> int:
    """Write down a match for every owner of a clause; how many results there are then, -1 if they do not fit."""
    if entry_id < SHARED:
        if found == len(results.slot):
            return -1
        results.event[found], results.slot[found] = event, entry_id
        return found + 1
    node = np.int64(blocks.shared_head[entry_id - SHARED])
    while node >= 0:
        if found == len(results.slot):
            return -1
        results.event[found], results.slot[found] = event, blocks.nodes[node, SLOT]
        scratch.counts[REPEATS] += blocks.nodes[node, SIBLING] != ALONE
        found += 1
        node = np.int64(blocks.nodes[node, AFTER])
    return found


@part
def tell_all(
    blocks: Blocks, event: int, first: int, length: int, scratch: Scratch, results: Results, found: int
) -> int:
    """Tell all entries of a cluster whose access path says everything; as `tell` returns."""
    for at in range(first, first + length):
        found = tell(blocks, event, np.int64(blocks.words[at]), scratch, results, found)
        if found < 0:
            break
    return found


@part
def tell_survivors(
    blocks: Blocks, event: int, base: int, count: int, scratch: Scratch, results: Results, found: int
) -> int:
    """Tell the entries of a long cluster that are left; as `tell` returns."""
    words = blocks.words
    ids = np.int64(words[base + WIDTH]) * np.int64(words[base + CAPACITY])
    for at in range(count):
        found = tell(blocks, event, np.int64(words[scratch.survivors[at] + ids]), scratch, results, found)
        if found < 0:
            break
    return found


@part
def settle(
    predicates: PredicateArrays,
    blocks: Blocks,
    events: Events,
    event: int,
    scratch: Scratch,
    count: int,
    results: Results,
    found: int,
) -> int:
    """Find out which of the entries that wait hold, and tell; as `tell` returns."""
    words, waiting = blocks.words, scratch.waiting
    for at in range(narrow_waiting(predicates, words, events, event, scratch, count)):
        entry, base = waiting[2 * at], waiting[2 * at + 1]
        ids = entry + np.int64(words[base + WIDTH]) * np.int64(words[base + CAPACITY])
        found = tell(blocks, event, np.int64(words[ids]), scratch, results, found)
        if found < 0:
            break
    return found


@part
def check_entries(
    predicates: PredicateArrays,
    blocks: Blocks,
    events: Events,
    event: int,
    base: int,
    first: int,
    last: int,
    scratch: Scratch,
    ahead: bool,
    count: int,
    results: Results,
    found: int,
) -> tuple[int, int]:
    """Check the entries of one block from first to last: how many wait then, and the results as `tell` returns."""
    words, room = blocks.words, len(scratch.waiting) // 2 - SHORT
    if words[base + WIDTH] == 0:
        found = tell_all(blocks, event, base + HEADER + first, last - first, scratch, results, found)
    elif last - first <= SHORT and count <= room:
        count = note(predicates, scratch, words, base, first, last, count)
    else:
        at, end = base + HEADER + first, base + HEADER + last
        while at < end and found >= 0:
            until = min(end, at + room)
            many = scan(words, at, until, scratch.truth, scratch.survivors, ahead)
            many = narrow(predicates, words, events, event, base, scratch, many)
            found = tell_survivors(blocks, event, base, many, scratch, results, found)
            at = until
    return count, found


@part
def settle_all(
    predicates: PredicateArrays,
    blocks: Blocks,
    events: Events,
    event: int,
    scratch: Scratch,
    ahead: bool,
    count: int,
    results: Results,
    found: int,
) -> int:
    """Settle the entries that wait, their second columns asked for first; as `tell` returns."""
    words, waiting = blocks.words, scratch.waiting
    if ahead:
        for at in range(count):
            prefetch(words, waiting[2 * at] + np.int64(words[waiting[2 * at + 1] + CAPACITY]))
    return settle(predicates, blocks, events, event, scratch, count, results, found)


@part
def entries_to_check(predicates: PredicateArrays, blocks: Blocks, scratch: Scratch, begin: int, end: int) -> int:
    """How many entries the candidates from begin to end have, in their first blocks; 0 if there are no ranges."""
    total = 0
    if len(predicates.banded) > 0:
        for at in range(begin, end):
            total += np.int64(blocks.words[scratch.candidates[2 * at + 1] * LINE + LENGTH])
    return total


@part
def check_event(
    predicates: PredicateArrays,
    blocks: Blocks,
    events: Events,
    event: int,
    begin: int,
    end: int,
    scratch: Scratch,
    ahead: bool,
    results: Results,
    found: int,
) -> int:
    """Check the candidates from begin to end, all of one event; the results then, or -1 if they did not fit."""
    words = blocks.words
    mark(predicates, events, event, scratch)
    is_settled = SETTLED * entries_to_check(predicates, blocks, scratch, begin, end) > len(predicates.initial)
    if is_settled:
        settle_intervals(predicates, scratch)
    count, visits, checks = 0, 0, 0
    for at in range(begin, end):
        block = scratch.candidates[2 * at + 1]
        while block > 0 and found >= 0:
            base = block * LINE
            length = np.int64(words[base + LENGTH])
            block = np.int64(words[base + NEXT])
            visits += 1
            checks += length
            count, found = check_entries(
                predicates, blocks, events, event, base, 0, length, scratch, ahead, count, results, found
            )
    if found >= 0:
        found = settle_all(predicates, blocks, events, event, scratch, ahead, count, results, found)
    if is_settled:
        unsettle_intervals(predicates, scratch)
    unmark(predicates, events, scratch)
    scratch.counts[VISITS] += visits
    scratch.counts[CHECKS] += checks
    return found


@part
def check_candidates(
    predicates: PredicateArrays,
    blocks: Blocks,
    events: Events,
    count: int,
    scratch: Scratch,
    ahead: bool,
    results: Results,
    found: int,
) -> tuple[int, int]:
    """Check all candidates: the step whose results did not fit, or -1, and how many there are of those before."""
    candidates = scratch.candidates
    count = fetch_blocks(blocks, scratch, count, ahead)
    if ahead:
        fetch_columns(blocks, scratch, count)
    begin = 0
    while begin < count:
        step, end = candidates[2 * begin], begin + 1
        while end < count and candidates[2 * end] == step:
            end += 1
        event = event_at(events, step)
        now = check_event(predicates, blocks, events, event, begin, end, scratch, ahead, results, found)
        if now < 0:
            return step, found
        begin, found = end, now
    return -1, found


@part
def match_span(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    events: Events,
    start: int,
    stop: int,
    together: int,
    scratch: Scratch,
    ahead: bool,
    results: Results,
) -> tuple[int, int]:
    """As `match_events`, of events that have been looked up together in the first so many key tables."""
    found, listed, checked = 0, 0, start
    most = len(scratch.candidates) // 2 - len(scratch.places) // RING
    has_filters = some_have_filters(tables, together)
    for ahead_of in range(start, stop + STAGE):
        if ahead_of < stop:
            if ahead:
                fetch_event(events, ahead_of + STAGE)
            open_event(predicates, tables, blocks, events, ahead_of, together, ahead_of - start, scratch, ahead)
        step = ahead_of - STAGE
        if step < start:
            continue
        if has_filters:
            sift(predicates, blocks, events, step, scratch)
        listed = collect(blocks, step, scratch, listed, ahead)
        if listed > most or step == stop - 1 or step - checked == ROUND:
            full, found = check_candidates(predicates, blocks, events, listed, scratch, ahead, results, found)
            if full >= 0:
                return full, found
            listed, checked = 0, step
    return stop, found


@called
def match_groups(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    events: Events,
    start: int,
    stop: int,
    together: int,
    scratch: Scratch,
    ahead: bool,
    results: Results,
) -> tuple[int, int]:
    """As `match_events`, group by group, each looked up together in the first so many key tables."""
    translate_words(predicates, events, scratch)
    reached, found = start, 0
    while reached < stop:
        end = stop if together == 0 else min(reached + GROUP, stop)
        if together > 0 and not look_up_together(tables, blocks, events, reached, end, together, scratch):
            together = 0
        room = Results(results.event[found:], results.slot[found:])
        reached, count = match_span(
            predicates, tables, blocks, events, reached, end, together, scratch, ahead, room
        )
        found += count
        if reached < end:
            break
    return reached, found


@tight
def match_events(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    events: Events,
    start: int,
    stop: int,
    scratch: Scratch,
    ahead: bool,
    results: Results,
) -> tuple[int, int]:
    """Match events in their order, from the start-th to before the stop-th, or until the results are full.

    Returns the first not matched and how many results there are. `ahead` switches prefetching.
    """
    find_columns(tables, events, scratch)
    together = tables_together(tables, events, scratch, stop - start)
    if together > 0:
        return match_groups(predicates, tables, blocks, events, start, stop, together, scratch, ahead, results)
    # Apart from that, and with a number that the compiler knows: or this would be a tenth slower.
    return match_span(predicates, tables, blocks, events, start, stop, 0, scratch, ahead, results)
