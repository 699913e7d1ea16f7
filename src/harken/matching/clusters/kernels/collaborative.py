"""Single event, collaborative processing (Farroukh et al. 2009, section 4.2): several threads match one event.

    phase one   each thread takes blocks of what the event asks with (key tables, and columns of its values), and
                lists the predicates that hold and the clusters that are opened
    barrier     after which each thread marks what all have listed in a truth vector of its own: one that all write
                to would go from core to core with every predicate that is first evaluated later on
    phase two   each thread takes blocks of pieces of those clusters, and tells which of their entries match
    barrier     and the next event

A cluster may hold a million entries: it is cut into **pieces** that take about equally long, so that threads are
done at about the same time. Filters are not looked at: what stands behind them is checked all the same.

Groups of threads (section 4.3) each have their own lists, pieces and control words, and claim events from words
that all groups share.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.matching.clusters.kernels.matching import check_entries, settle_all
from harken.matching.clusters.kernels.opening import key_place
from harken.matching.clusters.kernels.pairs import open_pairs
from harken.matching.clusters.kernels.ranges import range_places_in
from harken.matching.kernels.layout import (
    ALL_TABLE,
    CHECKS,
    FIRST_KEY_TABLE,
    LENGTH,
    LINE,
    MISSING,
    NEXT,
    PREDICATE_TABLE,
    PRESENCE_TABLE,
    RANGE_TABLE,
    TOUCHED,
    TRUE,
    VISITS,
    Blocks,
    Events,
    PredicateArrays,
    Results,
    Scratch,
    Tables,
)
from harken.matching.kernels.prefetch import prefetch
from harken.matching.kernels.truth import satisfied_also, satisfied_in, see_values, unmark
from harken.matching.parallel.kernels.atomics import now
from harken.matching.parallel.kernels.sharing import (
    AT,
    CLAIMED,
    END,
    FIRST_TIME,
    FURTHER,
    SECOND_TIME,
    UNIT,
    WORDS,
    Control,
    Member,
    begin_share,
    claim,
    meet,
)

PIECE = 1_024
"""Entries of a cluster, at most, that one thread checks before it asks for more."""

ASKED = 4
"""Key tables and columns that are claimed together in phase one."""

BLOCK, FIRST, LAST, FIELDS = range(4)
"""Of a piece: the block it is of, and its entries, from the first to before the last."""

DONE, FULL, STOPPED = range(3)
"""What becomes of a call: all events are matched; there is no room for results; another member has failed."""


class Group(NamedTuple):
    """What the threads of a group have in common, beside control words."""

    control: Control
    events: Member
    """What the group has claimed; the first of it acts for all."""
    held: npt.NDArray[np.int32]
    """Predicates that each member has found to hold, in a share of its own."""
    holding: npt.NDArray[np.int64]
    """How many that are, a cache line for each member."""
    pieces: npt.NDArray[np.int64]
    """Those that each member has found, in a share of its own."""
    found: npt.NDArray[np.int64]
    """How many that are, a cache line for each member."""


NUMBER, MEMBERS, CHECKING, SEAT = range(4)
"""Of a thread's seat: which member it is, of how many; and whether it is checking, so that there is an event."""


@part
def open_unit(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    events: Events,
    event: int,
    unit: int,
    scratch: Scratch,
    opened: int,
) -> int:
    """List what one key table or one column leads to: predicates that hold, and places; how many places then."""
    keys = len(tables.base) - FIRST_KEY_TABLE
    if unit < keys:
        scratch.places[opened] = key_place(tables, events, event, FIRST_KEY_TABLE + unit)
        return opened + (scratch.places[opened] >= 0)
    column, before = unit - keys, scratch.counts[TOUCHED]
    if column == 0:  # which stands for no dimension: here, for what no value leads to
        scratch.counts[TOUCHED] = satisfied_also(events, event, scratch.touched, before)
        opened = open_pairs(predicates, tables, blocks, events, event, scratch, opened)
        if tables.population[ALL_TABLE] > 0:
            scratch.places[opened] = tables.base[ALL_TABLE]
            opened += 1
    else:
        code, has_sets = events.code[event, column], len(predicates.member) > 0
        scratch.counts[TOUCHED] = satisfied_in(predicates, events, column, code, has_sets, scratch.touched, before)
        if tables.population[PRESENCE_TABLE] > 0 and code != MISSING:
            scratch.places[opened] = tables.base[PRESENCE_TABLE] + events.dimension[column]
            opened += 1
        if tables.population[RANGE_TABLE] > 0:
            opened = range_places_in(predicates, tables, events, event, column, scratch.places, opened)
    if tables.population[PREDICATE_TABLE] > 0:
        for at in range(before, scratch.counts[TOUCHED]):
            scratch.places[opened] = tables.base[PREDICATE_TABLE] + scratch.touched[at]
            opened += 1
    return opened


@part
def cut(blocks: Blocks, scratch: Scratch, opened: int, ahead: bool, pieces: npt.NDArray[np.int64]) -> int:
    """Cut the clusters at the places that were opened into pieces; how many there are."""
    words, count = blocks.words, 0
    if ahead:
        for at in range(opened):
            prefetch(blocks.directory, scratch.places[at])
        for at in range(opened):
            prefetch(words, np.int64(blocks.directory[scratch.places[at]]) * LINE)
    for at in range(opened):
        block = np.int64(blocks.directory[scratch.places[at]])
        while block > 0:
            length = np.int64(words[block * LINE + LENGTH])
            for first in range(0, length, PIECE):
                pieces[FIELDS * count + BLOCK] = block
                pieces[FIELDS * count + FIRST] = first
                pieces[FIELDS * count + LAST] = np.int64(min(first + PIECE, length))
                count += 1
            scratch.counts[VISITS] += 1
            scratch.counts[CHECKS] += length
            block = np.int64(words[block * LINE + NEXT])
    return count


@part
def hand_on(group: Group, seat: npt.NDArray[np.int64], scratch: Scratch) -> None:
    """Let the others have the predicates that this member has found to hold."""
    count, first = scratch.counts[TOUCHED], seat[NUMBER] * (len(group.held) // seat[MEMBERS])
    for at in range(count):
        group.held[first + at] = scratch.touched[at]
    group.holding[seat[NUMBER] * WORDS] = count


@part
def mark_held(group: Group, members: int, scratch: Scratch) -> None:
    """Write down the truth of all predicates that members have found to hold."""
    room, count = len(group.held) // members, 0
    for number in range(members):
        for at in range(number * room, number * room + group.holding[number * WORDS]):
            scratch.touched[count] = group.held[at]
            scratch.truth[group.held[at]] = TRUE
            count += 1
    scratch.counts[TOUCHED] = count


@part
def open_together(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    events: Events,
    event: int,
    group: Group,
    member: Member,
    seat: npt.NDArray[np.int64],
    way: int,
    scratch: Scratch,
    ahead: bool,
) -> None:
    """Phase one: find the predicates that hold, and what is to be checked."""
    share, opened = member.share, 0
    units = len(tables.base) - FIRST_KEY_TABLE + events.code.shape[1]
    scratch.counts[TOUCHED] = 0
    begin_share(member, way, seat[NUMBER], seat[MEMBERS], units)
    while claim(group.control, CLAIMED, member, way, units, ASKED):
        for unit in range(share[AT], share[END]):
            opened = open_unit(predicates, tables, blocks, events, event, unit, scratch, opened)
        share[AT] = share[END]
    room = len(group.pieces) // seat[MEMBERS]
    own = group.pieces[seat[NUMBER] * room : (seat[NUMBER] + 1) * room]
    group.found[seat[NUMBER] * WORDS] = cut(blocks, scratch, opened, ahead, own)
    hand_on(group, seat, scratch)


@part
def pieces_found(group: Group, members: int) -> int:
    """How many pieces all members have found."""
    count = 0
    for number in range(members):
        count += group.found[number * WORDS]
    return count


@part
def check_together(
    predicates: PredicateArrays,
    blocks: Blocks,
    events: Events,
    event: int,
    group: Group,
    member: Member,
    seat: npt.NDArray[np.int64],
    way: int,
    size: int,
    scratch: Scratch,
    ahead: bool,
    results: Results,
    found: int,
) -> tuple[bool, int]:
    """Phase two: check pieces, `size` at a time; whether all results fit, and how many are there."""
    share, room = member.share, len(group.pieces) // seat[MEMBERS]
    items = pieces_found(group, seat[MEMBERS])
    while claim(group.control, FURTHER, member, way, items, size):
        count, now_found = 0, found
        at, number = share[AT], 0
        while at >= group.found[number * WORDS]:
            at -= group.found[number * WORDS]
            number += 1
        for _ in range(share[AT], share[END]):
            while at == group.found[number * WORDS]:
                at, number = 0, number + 1
            piece = number * room + FIELDS * at
            base = group.pieces[piece + BLOCK] * LINE
            first, last = group.pieces[piece + FIRST], group.pieces[piece + LAST]
            count, now_found = check_entries(
                predicates, blocks, events, event, base, first, last, scratch, ahead, count, results, now_found
            )
            if now_found < 0:
                return False, found
            at += 1
        now_found = settle_all(predicates, blocks, events, event, scratch, ahead, count, results, now_found)
        if now_found < 0:
            return False, found
        share[AT], found = share[END], now_found
    return True, found


@part
def next_event(everyone: Control, group: Group, way: int, items: int) -> None:
    """Have the group's next event, or -1, and nothing of it claimed. The first member does that for all."""
    share, control = group.events.share, group.control.words
    event = np.int64(-1)
    if claim(everyone, CLAIMED, group.events, way, items, 1):
        event = share[AT]
        share[AT] += 1
    control[UNIT], control[CLAIMED], control[FURTHER] = event, 0, 0


@tight
def match_together(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    events: Events,
    everyone: Control,
    group: Group,
    member: Member,
    seat: npt.NDArray[np.int64],
    way: int,
    size: int,
    scratch: Scratch,
    ahead: bool,
    results: Results,
) -> tuple[int, int]:
    """Match events with the other members of the group, until done, or until the results of this member are full.

    Returns which it was, and how many results there are: then call it again, with more room. Unless all events are
    matched, the truth vector is left as it is.
    """
    control, members, found = group.control, seat[MEMBERS], 0
    while True:
        if seat[CHECKING] == 0:
            if seat[NUMBER] == 0:
                next_event(everyone, group, way, len(events.code))
            if not meet(control, members, member):
                return STOPPED, found
            if control.words[UNIT] < 0:
                return DONE, found
            began = now()
            event = control.words[UNIT]
            open_together(predicates, tables, blocks, events, event, group, member, seat, way, scratch, ahead)
            member.share[FIRST_TIME] += now() - began
            if not meet(control, members, member):
                return STOPPED, found
            mark_held(group, members, scratch)
            see_values(events, event, scratch)
            begin_share(member, way, seat[NUMBER], members, pieces_found(group, members))
            seat[CHECKING] = 1
        event = control.words[UNIT]
        began = now()
        fits, found = check_together(
            predicates, blocks, events, event, group, member, seat, way, size, scratch, ahead, results, found
        )
        member.share[SECOND_TIME] += now() - began
        if not fits:
            return FULL, found
        if not meet(control, members, member):
            return STOPPED, found
        unmark(predicates, events, scratch)
        seat[CHECKING] = 0
