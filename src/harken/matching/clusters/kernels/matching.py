"""Matching a batch of encoded events against clusters (Fabret et al. 2000, sections 2.2 and 3).

Phase one marks the predicates an event satisfies and collects the access paths it opens; phase two visits
their clusters. Events go through four stages, each some events behind the one before: the directory entries of an
event are asked for, then the blocks they lead to, then the rest of those blocks; only then are they checked. So
what a stage reads has long been on its way, and the waits for memory overlap with the work for other events.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.matching.kernels.layout import (
    ABOVE_CELLS,
    AFTER,
    ALL_TABLE,
    ALONE,
    BANDS,
    BETWEEN_CELLS,
    CAPACITY,
    CELLS,
    CHECKS,
    FALSE,
    FIRST_KEY_TABLE,
    HEADER,
    LENGTH,
    LEVELS,
    LINE,
    MISSING,
    NEXT,
    PREDICATE_TABLE,
    PRESENCE_TABLE,
    RANGE_TABLE,
    REPEATS,
    RING,
    SHARED,
    SIBLING,
    SLOT,
    UNKNOWN,
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
from harken.matching.kernels.truth import is_true, mark, satisfied, unmark

STAGE = 3
"""How many events a stage is behind the one before."""

SHORT = 2 * LINE - HEADER
"""Clusters of up to so many entries, which their first two lines hold, are short."""

LOOKAHEAD = 8 * LINE
"""How far ahead of a scan its words are asked for (section 2.2.3)."""


@part
def key_places(
    tables: Tables,
    directory: npt.NDArray[np.uint32],
    events: Events,
    event: int,
    scratch: Scratch,
    into: int,
    ahead: bool,
) -> int:
    """Collect, from places[into] on, where in the directory the event's keys are; where they end."""
    its_code, columns, places = events.code[event], scratch.columns, scratch.places
    at = tables.first[FIRST_KEY_TABLE]
    for table in range(FIRST_KEY_TABLE, len(tables.base)):
        place, has_key, end = tables.base[table], not tables.closed[table], tables.first[table + 1]
        while at < end:
            value = np.int64(its_code[columns[at]])
            # Both ends in one comparison: as an unsigned number, what is below the first is far above the last.
            has_key &= np.uint64(value - 1) < np.uint64(tables.radix[at] - 1)
            place += value * tables.stride[at]
            at += 1
        if has_key:
            if ahead:
                prefetch(directory, place)
            places[into] = place
            into += 1
    return into


@part
def find_columns(tables: Tables, events: Events, scratch: Scratch) -> None:
    """Find out once for all events which columns make the keys."""
    for at in range(tables.first[len(tables.base)]):
        scratch.columns[at] = events.column[tables.dimension[at]]


@part
def band_of(predicates: PredicateArrays, number: int, label: int) -> int:
    """The band, of the banded dimension of this number, that a label lies in: how many bands begin at or below."""
    low, high = number * (BANDS - 1), (number + 1) * (BANDS - 1)
    first = low
    while low < high:
        middle = (low + high) // 2
        if predicates.band_first[middle] <= label:
            low = middle + 1
        else:
            high = middle
    return low - first


@part
def range_places(
    predicates: PredicateArrays,
    directory: npt.NDArray[np.uint32],
    base: int,
    events: Events,
    event: int,
    places: npt.NDArray[np.int64],
    into: int,
) -> int:
    """Collect the cells of the range table that an event opens and in which clauses stand; where they end."""
    for column in range(len(events.band)):
        number = np.int64(events.band[column])
        if number < 0 or events.code[event, column] == MISSING:
            continue
        cells = base + number * CELLS
        band = band_of(predicates, number, events.label[event, events.label_column[column]])
        for place in range(cells + band, cells + BANDS):
            places[into] = place
            into += directory[place] != 0
        for place in range(cells + ABOVE_CELLS, cells + ABOVE_CELLS + band + 1):
            places[into] = place
            into += directory[place] != 0
        level_cells, size = cells + BETWEEN_CELLS, BANDS
        for level in range(LEVELS):
            # A range spans two bands of its level at most, and stands where it begins.
            for place in range(level_cells + max(0, (band >> level) - 1), level_cells + (band >> level) + 1):
                places[into] = place
                into += directory[place] != 0
            level_cells += size
            size >>= 1
    return into


@part
def open_event(
    predicates: PredicateArrays,
    tables: Tables,
    directory: npt.NDArray[np.uint32],
    events: Events,
    event: int,
    scratch: Scratch,
    ahead: bool,
) -> None:
    """Stage one: collect the directory entries of all access paths that an event opens."""
    places, touched, code = scratch.places, scratch.touched, events.code
    begin = event % RING * (len(places) // RING)
    into = key_places(tables, directory, events, event, scratch, begin, ahead)
    if tables.population[PREDICATE_TABLE] > 0:
        for at in range(satisfied(predicates, events, event, touched)):
            places[into] = tables.base[PREDICATE_TABLE] + touched[at]
            into += 1
    if tables.population[PRESENCE_TABLE] > 0:
        for column in range(code.shape[1]):
            if code[event, column] != MISSING:
                places[into] = tables.base[PRESENCE_TABLE] + events.dimension[column]
                into += 1
    if tables.population[RANGE_TABLE] > 0:
        into = range_places(predicates, directory, tables.base[RANGE_TABLE], events, event, places, into)
    places[into] = tables.base[ALL_TABLE]
    scratch.opened[event % RING] = into + 1 - begin


@part
def fetch_blocks(blocks: Blocks, event: int, scratch: Scratch, ahead: bool) -> None:
    """Stage two: replace directory entries by the blocks they lead to, and ask for the beginnings of those."""
    places, words, directory = scratch.places, blocks.words, blocks.directory
    begin = event % RING * (len(places) // RING)
    kept = begin
    for at in range(begin, begin + scratch.opened[event % RING]):
        block = np.int64(directory[places[at]])
        if block > 0:
            if ahead:
                prefetch(words, block * LINE)
            places[kept] = block
            kept += 1
    scratch.opened[event % RING] = kept - begin


@part
def fetch_columns(blocks: Blocks, event: int, scratch: Scratch) -> None:
    """Stage three: ask for the rest of the first columns, or as much as lies within the look-ahead."""
    places, words = scratch.places, blocks.words
    begin = event % RING * (len(places) // RING)
    for at in range(begin, begin + scratch.opened[event % RING]):
        base = places[at] * LINE
        end = base + HEADER + min(np.int64(words[base + LENGTH]), LOOKAHEAD)
        for line in range(base + LINE, end, LINE):
            prefetch(words, line)


@part
def note(
    words: npt.NDArray[np.uint32],
    base: int,
    length: int,
    truth: npt.NDArray[np.uint8],
    waiting: npt.NDArray[np.int64],
    count: int,
) -> int:
    """Append entries of a short cluster whose first predicate is not false to those that wait; how many wait then.

    Most clusters have none: seeing that takes no branch per entry.
    """
    alive = 0
    for entry in range(base + HEADER, base + HEADER + length):
        alive += np.int64(truth[words[entry]])
    if alive > 0:
        for entry in range(base + HEADER, base + HEADER + length):
            if truth[words[entry]] != FALSE:
                waiting[2 * count], waiting[2 * count + 1] = entry, base
                count += 1
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
    for line in range(first, last, LINE):
        if ahead:
            prefetch(words, min(line + LOOKAHEAD, last))
        for entry in range(line, min(line + LINE, last)):
            survivors[count] = entry
            count += truth[words[entry]] != FALSE
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
    truth, survivors = scratch.truth, scratch.survivors
    capacity, width = np.int64(words[base + CAPACITY]), np.int64(words[base + WIDTH])
    for column in range(width):
        kept = 0
        for at in range(count):
            entry = survivors[at]
            word = np.int64(words[entry + column * capacity])
            survivors[kept] = entry
            if truth[word] == UNKNOWN:
                is_true(predicates, events, event, scratch, word)
            kept += np.int64(truth[word])
        count = kept
    return count


@part
def survives(
    predicates: PredicateArrays,
    words: npt.NDArray[np.uint32],
    events: Events,
    event: int,
    scratch: Scratch,
    at: int,
    base: int,
) -> bool:
    """Whether all predicate words of an entry hold; they stand one capacity apart."""
    capacity, width = np.int64(words[base + CAPACITY]), np.int64(words[base + WIDTH])
    for place in range(at, at + width * capacity, capacity):
        if not is_true(predicates, events, event, scratch, np.int64(words[place])):
            return False
    return True


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
    for number in range(count):
        at, base = waiting[2 * number], waiting[2 * number + 1]
        if survives(predicates, words, events, event, scratch, at, base):
            ids = at + np.int64(words[base + WIDTH]) * np.int64(words[base + CAPACITY])
            found = tell(blocks, event, np.int64(words[ids]), scratch, results, found)
            if found < 0:
                break
    return found


@part
def check_event(
    predicates: PredicateArrays,
    blocks: Blocks,
    events: Events,
    event: int,
    opened: npt.NDArray[np.int64],
    scratch: Scratch,
    ahead: bool,
    results: Results,
    found: int,
) -> int:
    """Check the clusters an event has opened; the number of results then, or -1 if they did not fit."""
    words, truth, waiting, survivors = blocks.words, scratch.truth, scratch.waiting, scratch.survivors
    room = len(waiting) // 2 - SHORT
    mark(predicates, events, event, scratch)
    count, visits, checks = 0, 0, 0
    for block in opened:
        while block > 0 and found >= 0:
            base = block * LINE
            length = np.int64(words[base + LENGTH])
            block = np.int64(words[base + NEXT])
            visits += 1
            checks += length
            if words[base + WIDTH] == 0:
                found = tell_all(blocks, event, base + HEADER, length, scratch, results, found)
            elif length <= SHORT and count <= room:
                count = note(words, base, length, truth, waiting, count)
            else:
                first, last = base + HEADER, base + HEADER + length
                while first < last and found >= 0:
                    end = min(last, first + room)
                    many = scan(words, first, end, truth, survivors, ahead)
                    many = narrow(predicates, words, events, event, base, scratch, many)
                    found = tell_survivors(blocks, event, base, many, scratch, results, found)
                    first = end
    if found >= 0:
        if ahead:
            for at in range(count):
                prefetch(words, waiting[2 * at] + np.int64(words[waiting[2 * at + 1] + CAPACITY]))
        found = settle(predicates, blocks, events, event, scratch, count, results, found)
    unmark(predicates, scratch)
    scratch.counts[VISITS] += visits
    scratch.counts[CHECKS] += checks
    return found


@tight
def match_events(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    events: Events,
    start: int,
    scratch: Scratch,
    ahead: bool,
    results: Results,
) -> tuple[int, int]:
    """Match events from `start` on until done or until the results are full.

    Returns the first event not matched and how many results there are. `ahead` switches prefetching.
    """
    found, count, room = 0, events.code.shape[0], len(scratch.places) // RING
    find_columns(tables, events, scratch)
    for step in range(start, count + 3 * STAGE):
        if step < count:
            open_event(predicates, tables, blocks.directory, events, step, scratch, ahead)
        if start + STAGE <= step < count + STAGE:
            fetch_blocks(blocks, step - STAGE, scratch, ahead)
        if ahead and start + 2 * STAGE <= step < count + 2 * STAGE:
            fetch_columns(blocks, step - 2 * STAGE, scratch)
        event = step - 3 * STAGE
        if event >= start:
            begin = event % RING * room
            opened = scratch.places[begin : begin + scratch.opened[event % RING]]
            now = check_event(predicates, blocks, events, event, opened, scratch, ahead, results, found)
            if now < 0:
                return event, found
            found = now
    return count, found
