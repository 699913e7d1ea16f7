"""Keys of many events looked up together, table by table, where filters are narrow.

Tables with narrow filters are many, and each filter that an event looks at is on a cache line of its own: one
event after the other, none of these lines is still near when it is wanted again. But all filters of one table are
near once some hundred events have looked there. So a group of events looks into one table after the other. Tables
without filters go with them: there the directory tells under which keys there is nothing.

No truth vector knows the truths of a whole group. So the words of filters are translated, once for all events: a
word becomes the column and the code that make it true, which is the case for equalities; others let all through.
What a filter lets through is checked, as ever.

    the group's codes, an event a row:  -1 12  7 40   word 23 (`c = 7`) becomes column 2, code 7: it holds here
                                        -1 12  9 40   and not here
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import called, part
from harken.matching.clusters.kernels.opening import event_at
from harken.matching.kernels.layout import (
    ALWAYS,
    DIGIT_DIMENSION,
    DIGIT_RADIX,
    DIGIT_STRIDE,
    EQUAL,
    FIRST_DIGIT,
    GROUP,
    GROUP_COLUMNS,
    MISSING,
    NARROW,
    NEVER,
    NO_KEY,
    NOTHING,
    SHORT_NUMBERS,
    SHORT_SHIFT,
    Blocks,
    Events,
    PredicateArrays,
    Scratch,
    Tables,
)

FEWEST = GROUP // 4
"""Events that it pays to look up together."""

FEW_TABLES = 32
"""Tables with narrow filters from which on it pays: the filters of fewer are near, for events that are ordered."""

COMMON = 4
"""Where one look-up in so many is let through, filters do not tell enough: then each event is looked up alone."""

CODE_BITS = 16
"""Bits of a code that are compared, and that a column is shifted by; higher ones are passed over."""

LOW_BITS = (1 << CODE_BITS) - 1

ROW_BITS = 20
"""Bits of a row of `Tables.digit`, above which is the event of the group."""


@part
def tables_together(tables: Tables, events: Events, scratch: Scratch, count: int) -> int:
    """How many tables, the first of `Tables.digit`, so many events look into together; 0 if that does not pay."""
    if count < FEWEST or len(scratch.group_code) == 0 or events.code.shape[1] > GROUP_COLUMNS:
        return 0
    rows, narrow, room = 0, 0, min(len(scratch.group_found) // GROUP, 1 << ROW_BITS)
    while rows < min(room, len(tables.digit)) and tables.filter[tables.digit[rows, 0]] <= 0:
        narrow += tables.filter[tables.digit[rows, 0]] < 0
        rows += 1
    return rows if narrow >= FEW_TABLES else 0


@part
def translate_words(predicates: PredicateArrays, events: Events, scratch: Scratch) -> None:
    """Find out what column and code make each word of filters true. Column 0 is missing throughout."""
    words, missing = scratch.group_words, np.uint32(MISSING & LOW_BITS)
    words[NEVER], words[ALWAYS] = np.uint32(0), missing
    for predicate in range(min(len(predicates.operator), SHORT_NUMBERS)):
        word = missing
        if predicates.operator[predicate] == EQUAL:
            column = np.uint32(events.column[predicates.dimension[predicate]])
            word = column << np.uint32(CODE_BITS) | np.uint32(predicates.low[predicate] & LOW_BITS)
        words[predicate + SHORT_SHIFT] = word


@part
def _copy_codes(events: Events, start: int, count: int, codes: npt.NDArray[np.uint16]) -> None:
    """Have the codes of a group side by side, an event a row, and as much of them as is compared."""
    width = events.code.shape[1]
    for at in range(count):
        event = event_at(events, start + at)
        for column in range(width):
            codes[np.uint64(at * width + column)] = np.uint16(events.code[event, column] & LOW_BITS)


@part
def _find_digits(tables: Tables, events: Events, start: int, count: int, scratch: Scratch) -> None:
    """Work out what the values of a group add to keys: digit by digit, event by event."""
    digits = scratch.group_digits
    for digit in range(FIRST_DIGIT, len(tables.digits)):
        column, base = events.column[tables.digits[digit, DIGIT_DIMENSION]], np.uint64(digit * GROUP)
        last, stride = np.uint64(tables.digits[digit, DIGIT_RADIX] - 1), tables.digits[digit, DIGIT_STRIDE]
        for at in range(count):
            value = np.int64(events.code[event_at(events, start + at), column])
            digits[base + np.uint64(at)] = value * stride if np.uint64(value - 1) < last else NO_KEY


@called
def _find_keys(
    digit: npt.NDArray[np.int32], digits: npt.NDArray[np.int64], count: int, keys: npt.NDArray[np.int64]
) -> None:
    """The keys of a group in the table that these digits make the keys of; below 0 where there is none."""
    one, other = np.uint64(digit[1] * GROUP), np.uint64(digit[2] * GROUP)
    for at in range(count):
        keys[np.uint64(at)] = digits[one + np.uint64(at)] + digits[other + np.uint64(at)]
    for further in range(3, len(digit)):
        if digit[further] != NOTHING:
            base = np.uint64(digit[further] * GROUP)
            for at in range(count):
                keys[np.uint64(at)] += digits[base + np.uint64(at)]


@called
def _sift_table(
    filters: npt.NDArray[np.uint16],
    first: int,
    keys: npt.NDArray[np.int64],
    count: int,
    words: npt.NDArray[np.uint32],
    codes: npt.NDArray[np.uint16],
    width: int,
    row: int,
    found: npt.NDArray[np.uint32],
    into: int,
) -> int:
    """Note the events of a group that the filters of a table let through; how many are noted then."""
    for at in range(count):
        key = keys[np.uint64(at)]
        place, row_of_codes = np.uint64((first + max(key, 0)) * NARROW), at * width
        one, other = words[filters[place]], words[filters[place + np.uint64(1)]]
        alive = codes[np.uint64(row_of_codes + np.int64(one >> CODE_BITS))] == one & LOW_BITS
        alive |= codes[np.uint64(row_of_codes + np.int64(other >> CODE_BITS))] == other & LOW_BITS
        found[np.uint64(into)] = at << ROW_BITS | row
        # Without a branch, as in `let_through`.
        into += alive & (key >= 0)
    return into


@called
def _look_into_directory(
    directory: npt.NDArray[np.uint32],
    base: int,
    keys: npt.NDArray[np.int64],
    count: int,
    row: int,
    found: npt.NDArray[np.uint32],
    into: int,
) -> int:
    """Note the events of a group under whose keys there is something; how many are noted then."""
    for at in range(count):
        key = keys[np.uint64(at)]
        found[np.uint64(into)] = at << ROW_BITS | row
        into += (directory[np.uint64(base + max(key, 0))] > 0) & (key >= 0)
    return into


@part
def _place_of(tables: Tables, row: int, at: int, scratch: Scratch) -> int:
    """Where in the directory the key is that an event of the group has in a table."""
    place = tables.base[tables.digit[row, 0]]
    for digit in range(1, tables.digit.shape[1]):
        if tables.digit[row, digit] != NOTHING:
            place += scratch.group_digits[tables.digit[row, digit] * GROUP + at]
    return place


@part
def _sort_by_event(tables: Tables, scratch: Scratch, found: int, count: int) -> None:
    """Have where in the directory the keys are that were noted, event by event."""
    noted, first, places = scratch.group_found, scratch.group_first, scratch.group_places
    first[: count + 2] = 0
    for at in range(found):
        first[(noted[at] >> ROW_BITS) + 2] += 1
    for event in range(2, count + 1):
        first[event + 1] += first[event]
    for at in range(found):
        event, row = np.int64(noted[at] >> ROW_BITS), np.int64(noted[at] & ((1 << ROW_BITS) - 1))
        places[first[event + 1]] = _place_of(tables, row, event, scratch)
        first[event + 1] += 1


@called
def look_up_together(
    tables: Tables, blocks: Blocks, events: Events, start: int, stop: int, rows: int, scratch: Scratch
) -> bool:
    """Find out which keys of a group, in the first so many tables, are let through; whether these are few."""
    digits, keys, words, codes = scratch.group_digits, scratch.group_keys, scratch.group_words, scratch.group_code
    width, noted, count = events.code.shape[1], scratch.group_found, stop - start
    _copy_codes(events, start, count, scratch.group_code)
    _find_digits(tables, events, start, count, scratch)
    found = 0
    for row in range(rows):
        table = tables.digit[row, 0]
        if tables.population[table] == 0:
            continue
        _find_keys(tables.digit[row], digits, count, keys)
        if tables.filter[table] < 0:
            first = -tables.filter[table]
            found = _sift_table(blocks.filters, first, keys, count, words, codes, width, row, noted, found)
        else:
            found = _look_into_directory(blocks.directory, tables.base[table], keys, count, row, noted, found)
    if found * COMMON > count * rows:
        return False
    _sort_by_event(tables, scratch, found, count)
    return True
