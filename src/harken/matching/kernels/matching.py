"""Matching a batch of encoded events against clusters (Fabret et al. 2000, sections 2.2 and 3).

Phase one marks the predicates an event satisfies and collects the access paths it opens; phase two visits
their clusters. All directory entries of an event are asked for before the first is read, and so are all blocks:
the waits for memory overlap.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import tight
from harken.matching.kernels.layout import (
    ALL_TABLE,
    CAPACITY,
    DIFFERENT,
    FIRST_KEY_TABLE,
    HEADER,
    INTERVAL,
    IS_ABSENT,
    LAZY,
    LENGTH,
    LINE,
    MISSING,
    NEXT,
    PREDICATE_TABLE,
    PRESENCE_TABLE,
    UNLISTED,
    WIDTH,
    Blocks,
    Events,
    Predicates,
    Scratch,
    Tables,
)
from harken.matching.kernels.prefetch import prefetch

GROUP = 16
"""Events that take each step together, so that the memory one waits for is on its way while others are seen to."""

LOOKAHEAD = 8 * LINE
"""How far ahead of a scan its words are asked for (section 2.2.3)."""


@tight
def lazy_truth(predicates: Predicates, events: Events, event: int, predicate: int) -> bool:
    """Evaluate one predicate where it is met."""
    operator, dimension = predicates.operator[predicate], predicates.dimension[predicate]
    code = events.code[event, dimension]
    if operator == IS_ABSENT:
        return code == MISSING
    if code == MISSING:
        return False
    if operator == INTERVAL:
        label = events.label[event, events.label_column[dimension]]
        return predicates.low[predicate] <= label <= predicates.high[predicate]
    return operator != DIFFERENT or code != predicates.low[predicate]


@tight
def satisfied(predicates: Predicates, events: Events, event: int, touched: npt.NDArray[np.int32]) -> int:
    """Phase one: list every enumerated predicate the event satisfies; how many there are."""
    code, equal, member_head = events.code, predicates.equal, predicates.member_head
    count = 0
    for dimension in range(code.shape[1]):
        its_code = code[event, dimension]
        if its_code == MISSING:
            continue
        if its_code != UNLISTED:
            at = predicates.equal_first[dimension] + its_code
            if equal[at] >= 0:
                touched[count] = equal[at]
                count += 1
            node = member_head[at]
            while node >= 0:
                touched[count] = predicates.member[node]
                count += 1
                node = predicates.member_next[node]
        eager = predicates.eager_head[dimension]
        while eager >= 0:
            if lazy_truth(predicates, events, event, eager):
                touched[count] = eager
                count += 1
            eager = predicates.eager_next[eager]
    for other in range(events.also_first[event], events.also_first[event + 1]):
        touched[count] = events.also[other]
        count += 1
    return count


@tight
def key_places(
    tables: Tables,
    directory: npt.NDArray[np.uint32],
    code: npt.NDArray[np.int32],
    event: int,
    places: npt.NDArray[np.int64],
    into: int,
    ahead: bool,
) -> int:
    """Collect, from places[into] on, where in the directory the event's keys are; how many it has."""
    count = 0
    for table in range(FIRST_KEY_TABLE, len(tables.base)):
        if tables.closed[table]:
            continue
        key = 0
        for at in range(tables.first[table], tables.first[table + 1]):
            its_code = code[event, tables.dimension[at]]
            if its_code <= UNLISTED or its_code >= tables.radix[at]:
                key = -1
                break
            key += its_code * tables.stride[at]
        if key >= 0:
            place = tables.base[table] + key
            if ahead:
                prefetch(directory, place)
            places[into + count] = place
            count += 1
    return count


@tight
def entry_holds(
    predicates: Predicates,
    words: npt.NDArray[np.uint32],
    events: Events,
    event: int,
    truth: npt.NDArray[np.uint8],
    at: int,
    capacity: int,
    width: int,
) -> bool:
    """Whether all predicate words of an entry hold; they stand one capacity apart. Few entries come so far."""
    lazy = np.uint32(LAZY)
    for place in range(at, at + width * capacity, capacity):
        word = words[place]
        if word < lazy:
            if truth[word] == 0:
                return False
        elif not lazy_truth(predicates, events, event, np.int64(word - lazy)):
            return False
    return True


@tight
def open_group(
    predicates: Predicates,
    tables: Tables,
    directory: npt.NDArray[np.uint32],
    events: Events,
    group: int,
    members: int,
    scratch: Scratch,
    ahead: bool,
) -> None:
    """Collect the directory entries of all access paths that the events of a group open."""
    places, touched, code = scratch.places, scratch.touched, events.code
    room = len(places) // GROUP
    for member in range(members):
        event, into = group + member, member * room
        opened = key_places(tables, directory, code, event, places, into, ahead)
        if tables.population[PREDICATE_TABLE] > 0:
            for at in range(satisfied(predicates, events, event, touched)):
                places[into + opened] = tables.base[PREDICATE_TABLE] + touched[at]
                opened += 1
        if tables.population[PRESENCE_TABLE] > 0:
            for dimension in range(code.shape[1]):
                if code[event, dimension] != MISSING:
                    places[into + opened] = tables.base[PRESENCE_TABLE] + dimension
                    opened += 1
        places[into + opened] = tables.base[ALL_TABLE]
        scratch.opened[member] = opened + 1


@tight
def fetch_group(blocks: Blocks, members: int, scratch: Scratch, ahead: bool) -> None:
    """Replace directory entries by the blocks they lead to, and ask for those blocks."""
    places, words, directory = scratch.places, blocks.words, blocks.directory
    room = len(places) // GROUP
    for member in range(members):
        into = member * room
        kept = into
        for at in range(into, into + scratch.opened[member]):
            block = np.int64(directory[places[at]])
            if block > 0:
                if ahead:
                    prefetch(words, block * LINE)
                places[kept] = block
                kept += 1
        scratch.opened[member] = kept - into
    if not ahead:
        return
    for member in range(members):
        into = member * room
        for at in range(into, into + scratch.opened[member]):
            base = places[at] * LINE
            end = base + HEADER + min(np.int64(words[base + LENGTH]), LOOKAHEAD)
            for line in range(base + LINE, end, LINE):
                prefetch(words, line)


@tight
def first_hits(
    words: npt.NDArray[np.uint32], first: int, length: int, truth: npt.NDArray[np.uint8], ahead: bool
) -> int:
    """How many entries of a cluster survive their first predicate: for most clusters none.

    Predicates that are yet to be evaluated count as holding. Seeing that there is nothing takes no branch per
    entry.
    """
    last = np.uint32(len(truth) - 1)
    far = first + length - LOOKAHEAD if ahead else first
    hits = 0
    for entry in range(first, first + length):
        if entry < far and entry % LINE == 0:
            prefetch(words, entry + LOOKAHEAD)
        hits += truth[min(words[entry], last)]
    return hits


@tight
def check_event(
    predicates: Predicates,
    words: npt.NDArray[np.uint32],
    events: Events,
    event: int,
    opened: npt.NDArray[np.int64],
    scratch: Scratch,
    ahead: bool,
    found_event: npt.NDArray[np.int64],
    found_id: npt.NDArray[np.uint32],
    found: int,
) -> int:
    """Check the clusters an event has opened; the number of results then, or -1 if they did not fit."""
    truth, touched, last = scratch.truth, scratch.touched, np.uint32(len(scratch.truth) - 1)
    marked = satisfied(predicates, events, event, touched)
    for at in range(marked):
        truth[touched[at]] = 1
    for block in opened:
        while block > 0 and found >= 0:
            base = block * LINE
            length, capacity = np.int64(words[base + LENGTH]), np.int64(words[base + CAPACITY])
            width = np.int64(words[base + WIDTH])
            block = np.int64(words[base + NEXT])
            scratch.counts[0] += 1
            scratch.counts[1] += length
            if found + length > len(found_id):
                # Rather than count exactly, ask for room for the whole block.
                found = -1
                break
            first = base + HEADER
            if width > 0 and first_hits(words, first, length, truth, ahead) == 0:
                continue
            for entry in range(first, first + length):
                if width > 0 and truth[min(words[entry], last)] == 0:
                    continue
                if entry_holds(predicates, words, events, event, truth, entry, capacity, width):
                    found_event[found] = event
                    found_id[found] = words[entry + width * capacity]
                    found += 1
        if found < 0:
            break
    for at in range(marked):
        truth[touched[at]] = 0
    return found


@tight
def match_events(
    predicates: Predicates,
    tables: Tables,
    blocks: Blocks,
    events: Events,
    start: int,
    scratch: Scratch,
    ahead: bool,
    found_event: npt.NDArray[np.int64],
    found_id: npt.NDArray[np.uint32],
) -> tuple[int, int]:
    """Match events from `start` on until done or until the results are full.

    Returns the first event not matched and how many results there are. `ahead` switches prefetching.
    """
    found, count, room = 0, events.code.shape[0], len(scratch.places) // GROUP
    for group in range(start, count, GROUP):
        members = min(GROUP, count - group)
        open_group(predicates, tables, blocks.directory, events, group, members, scratch, ahead)
        fetch_group(blocks, members, scratch, ahead)
        for member in range(members):
            opened = scratch.places[member * room : member * room + scratch.opened[member]]
            now = check_event(
                predicates, blocks.words, events, group + member, opened, scratch, ahead,
                found_event, found_id, found,
            )  # fmt: skip
            if now < 0:
                return group + member, found
            found = now
    return count, found
