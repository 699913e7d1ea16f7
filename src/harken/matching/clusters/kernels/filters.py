"""Filters: what stands under a key, in half a cache line whose address is computed rather than read.

Most clusters under keys are short, and most of them hold nothing for the event that opens them: one of the first
predicates of every entry is false. A filter says so without a look at directory, header and block. It has two
words of 16 bits for each of up to 8 entries: numbers of predicates, plus 2 (layout.py), that the entry asks for.

    first   9  17   9   0   0   0   0   0     second   23   1  40   0   0   0   0   0

Three entries: the first asks for predicates 7 and 21; the second for 15 and nothing else that a filter can say. If
no entry has both words true, none can match. Where there are more entries than a filter has room for, all that it
says is ALWAYS, ALWAYS: a look at the cluster has to tell.

Where keys have less than one entry on average, filters are **narrow**: one word for each of two entries. So many
more of them are in the processor's caches.

Filters are never more than a summary: what they let through is checked as if there were none.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.matching.kernels.layout import (
    ALWAYS,
    CAPACITY,
    FALSE,
    FILTER,
    FILTERED,
    HEADER,
    LENGTH,
    LINE,
    NARROW,
    NEVER,
    NEXT,
    SHORT_NUMBERS,
    SHORT_SHIFT,
    WIDTH,
    Blocks,
    PredicateArrays,
    Tables,
)

TURNS, TURN = 1 << 16, 24_693
"""How many numbers there are that follow each other as if by chance, and by what each is multiplied: what leaves 5
when divided by 8, so that all have come before one comes again."""


@part
def _pair(
    predicates: PredicateArrays, words: npt.NDArray[np.integer], at: int, step: int, width: int
) -> tuple[int, int]:
    """The words of a filter for an entry whose predicate words begin there and stand so far apart."""
    first, second = ALWAYS, ALWAYS
    for column in range(width):
        predicate = np.int64(words[at + column * step])
        # The truth of others is not known before they are met.
        if predicate < SHORT_NUMBERS and predicates.initial[predicate] == FALSE:
            if first == ALWAYS:
                first = predicate + SHORT_SHIFT
            else:
                second = predicate + SHORT_SHIFT
                break
    return first, second


@part
def filter_of(tables: Tables, table: int, key: int) -> int:
    """Where the filter of a key begins, in a table that has filters."""
    number = tables.filter[table]
    return (number + key) * FILTER if number > 0 else (key - number) * NARROW


@part
def room_in_filter(tables: Tables, table: int) -> int:
    """How many entries a filter of a table has room for."""
    return FILTERED if tables.filter[table] > 0 else NARROW


@part
def _let_through(filters: npt.NDArray[np.uint16], at: int, room: int, first: int, second: int) -> bool:
    """Add an entry to a filter with room for so many; False if it says ALWAYS then."""
    if first != ALWAYS:
        for place in range(at, at + room):
            if filters[place] == NEVER:
                filters[place] = first
                if room == FILTERED:
                    filters[place + FILTERED] = second
                return True
    filters[at] = ALWAYS
    if room == FILTERED:
        filters[at + FILTERED] = ALWAYS
    return False


@part
def add_to_filter(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    table: int,
    key: int,
    residual: npt.NDArray[np.int64],
    width: int,
) -> None:
    """Have the filter of a key, if it has one, let through what an entry of these predicates asks for."""
    if tables.filter[table] != 0:
        at = filter_of(tables, table, key)
        if blocks.filters[at] != ALWAYS:
            first, second = _pair(predicates, residual, 0, 1, width)
            _let_through(blocks.filters, at, room_in_filter(tables, table), first, second)


@part
def renew_filter(predicates: PredicateArrays, tables: Tables, blocks: Blocks, table: int, key: int) -> None:
    """Have the filter of a key, if it has one, let through what the entries ask for that are there now."""
    if tables.filter[table] == 0:
        return
    words, filters = blocks.words, blocks.filters
    at, room = filter_of(tables, table, key), room_in_filter(tables, table)
    for word in range(at, at + (FILTER if room == FILTERED else NARROW)):
        filters[word] = NEVER
    block = np.int64(blocks.directory[tables.base[table] + key])
    while block > 0:
        base = block * LINE
        capacity, width = np.int64(words[base + CAPACITY]), np.int64(words[base + WIDTH])
        for entry in range(base + HEADER, base + HEADER + np.int64(words[base + LENGTH])):
            first, second = _pair(predicates, words, entry, capacity, width)
            if not _let_through(filters, at, room, first, second):
                return
        block = np.int64(words[base + NEXT])


@part
def entries_in(tables: Tables, blocks: Blocks, table: int, key: int) -> int:
    """How many entries the filter of a key tells of; more than it has room for if it can't tell."""
    at, room = filter_of(tables, table, key), room_in_filter(tables, table)
    if blocks.filters[at] == ALWAYS:
        return room + 1
    count = 0
    for place in range(at, at + room):
        count += blocks.filters[place] != NEVER
    return count


@tight
def make_filters(predicates: PredicateArrays, tables: Tables, blocks: Blocks, table: int, keys: int) -> None:
    """Make the filters of all keys of a table anew."""
    for key in range(keys):
        renew_filter(predicates, tables, blocks, table, key)


@tight
def telling_keys(
    predicates: PredicateArrays, tables: Tables, blocks: Blocks, table: int, keys: int, step: int
) -> tuple[int, int]:
    """Of one key in every so many: under how many something stands, and of how many a filter could tell by one.

    Which one varies: keys that lie equally far apart may all have the same digit, and one of no constant at all.
    """
    words, used, telling, turn = blocks.words, 0, 0, 0
    for first in range(0, keys, step):
        turn = (turn * TURN + 1) % TURNS
        key = min(first + turn * step // TURNS, keys - 1)
        base = np.int64(blocks.directory[tables.base[table] + key]) * LINE
        # Where nothing stands any more, what is left there says nothing, and may be no predicate.
        if base > 0 and words[base + LENGTH] > 0:
            capacity, width = np.int64(words[base + CAPACITY]), np.int64(words[base + WIDTH])
            by_one, _ = _pair(predicates, words, base + HEADER, capacity, width)
            used += 1
            telling += by_one != ALWAYS
    return used, telling


@tight
def filters_are_sound(predicates: PredicateArrays, tables: Tables, blocks: Blocks, table: int, keys: int) -> bool:
    """Whether the filters of a table let through all that its keys hold."""
    room = room_in_filter(tables, table)
    for key in range(keys):
        block = np.int64(blocks.directory[tables.base[table] + key])
        at = filter_of(tables, table, key)
        while block > 0 and blocks.filters[at] != ALWAYS:
            if not _lets_through(predicates, blocks, at, room, block):
                return False
            block = np.int64(blocks.words[block * LINE + NEXT])
        if room == FILTERED and blocks.filters[at] == ALWAYS and blocks.filters[at + FILTERED] != ALWAYS:
            return False
    return True


@part
def _lets_through(predicates: PredicateArrays, blocks: Blocks, at: int, room: int, block: int) -> bool:
    """Whether a filter has the words of every entry of a block."""
    words, filters, base = blocks.words, blocks.filters, block * LINE
    capacity, width = np.int64(words[base + CAPACITY]), np.int64(words[base + WIDTH])
    for entry in range(base + HEADER, base + HEADER + np.int64(words[base + LENGTH])):
        first, second = _pair(predicates, words, entry, capacity, width)
        known = False
        for place in range(at, at + room):
            known |= filters[place] == first and (room == NARROW or filters[place + FILTERED] == second)
        if not known:
            return False
    return True
