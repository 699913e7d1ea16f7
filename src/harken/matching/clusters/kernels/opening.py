"""What an event opens: the keys that it has, their filters, and the other access paths.

Places of the directory are collected for each event in a share of its own of `scratch.places`, with the filter of
a key above them (layout.py). `sift` leaves out the keys whose filters say that nothing under them can match.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import called, part
from harken.matching.clusters.kernels.pairs import open_pairs
from harken.matching.clusters.kernels.ranges import range_places_in
from harken.matching.kernels.layout import (
    ALL_TABLE,
    DIGIT_DIMENSION,
    DIGIT_RADIX,
    DIGIT_STRIDE,
    FALSE,
    FILTER,
    FILTER_BITS,
    FILTERED,
    FIRST_DIGIT,
    LINE,
    MISSING,
    NARROW,
    NO_KEY,
    NOTHING,
    PREDICATE_TABLE,
    PRESENCE_TABLE,
    RANGE_TABLE,
    RING,
    SHORT_SHIFT,
    TRUE,
    Blocks,
    Events,
    PredicateArrays,
    Scratch,
    Tables,
)
from harken.matching.kernels.prefetch import prefetch
from harken.matching.kernels.truth import satisfied


@part
def event_at(events: Events, step: int) -> int:
    """Which event comes at a step."""
    return events.order[step] if len(events.order) > 0 else step


@part
def fetch_event(events: Events, step: int) -> None:
    """Ask for the codes of an event, if they do not just follow those of the one before."""
    if step < len(events.order):
        codes, width = events.code.reshape(events.code.size), events.code.shape[1]
        for at in range(events.order[step] * width, (events.order[step] + 1) * width, LINE):
            prefetch(codes, at)


@part
def find_columns(tables: Tables, events: Events, scratch: Scratch) -> None:
    """Find out once for all events which columns make the keys."""
    scratch.digits[NOTHING] = 0
    for digit in range(FIRST_DIGIT, len(tables.digits)):
        scratch.columns[digit] = events.column[tables.digits[digit, DIGIT_DIMENSION]]


@part
def find_digits(tables: Tables, its_code: npt.NDArray[np.int32], scratch: Scratch) -> None:
    """Work out what the values of an event add to the keys of all tables."""
    for digit in range(FIRST_DIGIT, len(tables.digits)):
        value = np.int64(its_code[np.uint32(scratch.columns[digit])])
        # Both ends in one comparison: as an unsigned number, what is below the first is far above the last.
        is_known = np.uint64(value - 1) < np.uint64(tables.digits[digit, DIGIT_RADIX] - 1)
        scratch.digits[digit] = value * tables.digits[digit, DIGIT_STRIDE] if is_known else NO_KEY


@called
def key_places(
    tables: Tables,
    first_row: int,
    filters: npt.NDArray[np.uint16],
    directory: npt.NDArray[np.uint32],
    digits: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    into: int,
    ahead: bool,
) -> int:
    """Collect, from places[into] on, where in the directory the keys of these digits are, and their filters.

    In all open key tables but the first so many.

    Built into a kernel, this would be short of registers: each step would fetch from memory where arrays are.
    Indices are made unsigned, here and below: those of numbers that might be negative are looked at first.
    """
    digit, width = tables.digit, tables.digit.shape[1]
    for at_row in range(first_row, len(digit)):
        row = np.uint32(at_row)
        # Written out: a loop over two or four takes twice as long.
        key = digits[np.uint32(digit[row, 1])] + digits[np.uint32(digit[row, 2])]
        if width > 3:
            key += digits[np.uint32(digit[row, 3])] + digits[np.uint32(digit[row, 4])]
            at = 5
            while at < width:
                key += digits[np.uint32(digit[row, np.uint32(at)])]
                at += 1
        table = np.uint32(digit[row, 0])
        place, number = tables.base[table] + key, tables.filter[table]
        if number != 0:
            number += key if number > 0 else -key
            if ahead:
                prefetch(filters, number * FILTER if number > 0 else -number * NARROW)
        elif ahead:
            prefetch(directory, place)
        # Without a branch: which keys an event lacks can't be foreseen.
        places[np.uint32(into)] = place | number << FILTER_BITS
        into += key >= 0
    return into


@part
def key_place(tables: Tables, events: Events, event: int, table: int) -> int:
    """Where in the directory the event's key in one table is, or -1."""
    key, has_key = 0, not tables.closed[table]
    for at in range(tables.first[table], tables.first[table + 1]):
        value = np.int64(events.code[event, events.column[tables.dimension[at]]])
        has_key &= 0 < value < tables.radix[at]
        key += value * tables.stride[at]
    return tables.base[table] + key if has_key else -1


@part
def places_of_group(scratch: Scratch, in_group: int, into: int) -> int:
    """Collect, from places[into] on, what `look_up_together` has found of one of its group."""
    for at in range(scratch.group_first[in_group], scratch.group_first[in_group + 1]):
        scratch.places[into] = scratch.group_places[at]
        into += 1
    return into


@part
def some_have_filters(tables: Tables, first_row: int) -> bool:
    """Whether keys have filters in an open key table, but for the first so many."""
    some = False
    for row in range(first_row, len(tables.digit)):
        some |= tables.filter[tables.digit[row, 0]] != 0
    return some


@part
def open_event(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    events: Events,
    step: int,
    together: int,
    in_group: int,
    scratch: Scratch,
    ahead: bool,
) -> None:
    """Collect the directory entries of all access paths that an event opens.

    In the first so many key tables it has been looked up together with others, and is the one of that number among
    them.
    """
    places, touched, code = scratch.places, scratch.touched, events.code
    begin, event = step % RING * (len(places) // RING), event_at(events, step)
    into = begin
    if together > 0:
        into = places_of_group(scratch, in_group, into)
    if together < len(tables.digit):
        find_digits(tables, code[event], scratch)
        into = key_places(tables, together, blocks.filters, blocks.directory, scratch.digits, places, into, ahead)
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
        for column in range(len(events.band)):
            into = range_places_in(predicates, tables, events, event, column, places, into)
    into = open_pairs(predicates, tables, blocks, events, event, scratch, into)
    if tables.population[ALL_TABLE] > 0:
        places[into] = tables.base[ALL_TABLE]
        into += 1
    scratch.opened[step % RING] = into - begin


@called
def let_through(
    places: npt.NDArray[np.int64],
    count: int,
    filters: npt.NDArray[np.uint16],
    short: npt.NDArray[np.uint8],
) -> int:
    """Keep, of so many places, those whose filters do not say that nothing there can match; how many."""
    kept = 0
    for at in range(count):
        place = places[np.uint32(at)]
        number, alive = place >> FILTER_BITS, np.int64(0)
        if number < 0:
            first = np.uint64(-number) * NARROW
            for word in range(NARROW):
                alive += np.int64(short[filters[np.uint64(first + word)]])
        else:
            first = np.uint64(number) * FILTER
            for word in range(FILTERED):
                alive += np.int64(short[filters[np.uint64(first + word)]])
        places[np.uint32(kept)] = place
        # Without a branch: which keys have something can't be foreseen.
        kept += (alive > 0) | (number == 0)
    count, kept = kept, 0
    for at in range(count):
        place = places[np.uint32(at)]
        number = place >> FILTER_BITS
        alive = np.int64(number <= 0)
        if number > 0:
            first = np.uint64(number) * FILTER
            for word in range(FILTERED):
                one, other = filters[np.uint64(first + word)], filters[np.uint64(first + word + FILTERED)]
                alive += np.int64(short[one]) * np.int64(short[other])
        places[np.uint32(kept)] = place & ((1 << FILTER_BITS) - 1)
        kept += alive > 0
    return kept


@part
def sift(predicates: PredicateArrays, blocks: Blocks, events: Events, step: int, scratch: Scratch) -> None:
    """Leave out the keys whose filters say that nothing under them can match."""
    places, filters, short = scratch.places, blocks.filters, scratch.short
    count = satisfied(predicates, events, event_at(events, step), scratch.touched)
    for at in range(count):
        short[np.uint32(scratch.touched[at] + SHORT_SHIFT)] = TRUE
    begin = step % RING * (len(places) // RING)
    scratch.opened[step % RING] = let_through(places[begin:], scratch.opened[step % RING], filters, short)
    for at in range(count):
        short[np.uint32(scratch.touched[at] + SHORT_SHIFT)] = FALSE
