"""Putting clauses into clusters, taking them out, and finding out again what a clause says.

The clause `a = 3 AND b = 5 AND c < 9` of slot 40, its predicates numbered 2, 7 and 8, is placed in three steps:

1. `choose` finds the access path that the fewest events open: the key of (a, b) in a key table, say.
2. `residual_of` leaves what that does not say already: predicate 8. So the width of the entry is 1.
3. `_enter` puts (8; 40) into the block of width 1 under that key (blocks.py). If an entry (8; ...) is there, it
   becomes one of a shared clause, which slot 40 owns too (owning.py).

Reading an entry goes the other way: the key says 2 and 7, its columns 8.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.matching.clusters.kernels.blocks import AHEAD, append, cluster_for, find_entry, header, ids_at, remove
from harken.matching.clusters.kernels.choosing import (
    NO_TABLE,
    Asked,
    ask,
    ask_no_more,
    choose,
    emptiest,
    note_as_good,
    residual_of,
)
from harken.matching.clusters.kernels.filters import add_to_filter, filter_of, renew_filter
from harken.matching.clusters.kernels.owning import (
    add_owner,
    drop_owner,
    free_shared,
    has_room_to_share,
    new_shared,
)
from harken.matching.clusters.kernels.pairs import count_clauses
from harken.matching.kernels.layout import (
    AFTER,
    CAPACITY,
    CLAUSE,
    FIRST_KEY_TABLE,
    HEADER,
    KEY,
    LENGTH,
    LINE,
    NEXT,
    PREDICATE_TABLE,
    SHARED,
    SIBLING,
    SLOT,
    TABLE,
    WIDTH,
    Blocks,
    Chances,
    Clauses,
    PredicateArrays,
    Tables,
)
from harken.matching.kernels.prefetch import prefetch

TOGETHER = 32
"""Clauses that are placed together: as many cache lines as the processor can wait for at once, and more."""

SEEN = 256
"""Entries of a cluster that are looked at for one that asks the same."""


# ---------------------------------------------------------------- in


class Paths(NamedTuple):
    """The access paths of clauses that are placed together."""

    table: npt.NDArray[np.int64]
    key: npt.NDArray[np.int64]
    as_good: npt.NDArray[np.int64]
    """By clause and table: keys about as good (choosing.py)."""


def no_paths(tables: Tables, clauses: int) -> Paths:
    """Room for those of so many clauses, as far as they are placed together."""
    count = min(clauses, TOGETHER)
    as_good = np.zeros((count, len(tables.base)), np.int64)
    return Paths(np.zeros(count, np.int64), np.zeros(count, np.int64), as_good)


@tight
def place_clauses(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    free: npt.NDArray[np.int64],
    chances: Chances,
    clauses: Clauses,
    start: int,
    asked: Asked,
    paths: Paths,
    residual: npt.NDArray[np.int64],
) -> int:
    """Put clauses, from `start` on, under their best access paths; the first without room, or their number.

    Where they go lies all over the memory. So each step is made for some of them, one after the other, and asks
    for the cache lines of the next step, which have come when it begins.
    """
    for first in range(start, len(clauses.slot), TOGETHER):
        last = min(first + TOGETHER, len(clauses.slot))
        for clause in range(first, last):
            words = clauses.words[clauses.first[clause] : clauses.first[clause + 1]]
            _choose_path(predicates, tables, blocks, chances, words, asked, paths, clause - first)
        for at in range(last - first):
            _prefer_the_emptiest(tables, blocks, paths, at)
        for at in range(last - first):
            block = np.int64(blocks.directory[tables.base[paths.table[at]] + paths.key[at]])
            prefetch(blocks.words, block * LINE)
            prefetch(blocks.words, (block + 1) * LINE)
        for clause in range(first, last):
            table, key = paths.table[clause - first], paths.key[clause - first]
            words = clauses.words[clauses.first[clause] : clauses.first[clause + 1]]
            slot, alone = clauses.slot[clause], clauses.alone[clause]
            width = residual_of(predicates, tables, chances, table, key, words, residual)
            if not _enter(predicates, tables, blocks, free, table, key, residual, width, slot, alone):
                return clause
    return len(clauses.slot)


@part
def _choose_path(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    chances: Chances,
    words: npt.NDArray[np.int64],
    asked: Asked,
    paths: Paths,
    at: int,
) -> None:
    """Note the best access path of a clause and, if it has a filter, those about as good; fetch their filters."""
    ask(predicates, chances, words, asked)
    table, key, chance = choose(predicates, tables, chances, words, asked, NO_TABLE)
    paths.table[at], paths.key[at] = table, key
    if tables.filter[table] != 0:
        note_as_good(tables, asked, chance, paths.as_good[at])
        for other in range(FIRST_KEY_TABLE, len(tables.base)):
            if paths.as_good[at, other] >= 0:
                prefetch(blocks.filters, filter_of(tables, other, paths.as_good[at, other]))
    ask_no_more(predicates, words, asked)


@part
def _prefer_the_emptiest(tables: Tables, blocks: Blocks, paths: Paths, at: int) -> None:
    """Settle for the emptiest of keys that are as good, and ask for its place in the directory."""
    table, key = paths.table[at], paths.key[at]
    if tables.filter[table] != 0:
        table, key = emptiest(tables, blocks, paths.as_good[at], table, key, 0)
        paths.table[at], paths.key[at] = table, key
    prefetch(blocks.directory, tables.base[table] + key)


@part
def _enter(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    free: npt.NDArray[np.int64],
    table: int,
    key: int,
    residual: npt.NDArray[np.int64],
    width: int,
    slot: int,
    alone: bool,
) -> bool:
    """Put a new clause under its access path, or share the same one there. False without room."""
    place = tables.base[table] + key
    block = cluster_for(blocks, free, place, table, key, width)
    if block == 0 or not has_room_to_share(blocks):
        return False
    same = _same_clause(blocks.words, block, residual, width) if width > 0 else -1
    if same >= 0:
        _share(blocks, block, same, slot, alone)
        return True
    if alone:
        if not append(blocks, free, place, block, residual, width, slot):
            return False
        count_clauses(tables, table, key, 1)
        add_to_filter(predicates, tables, blocks, table, key, residual, width)
        return True
    number = new_shared(blocks, block)
    if not append(blocks, free, place, block, residual, width, SHARED + number):
        free_shared(blocks, number)
        return False
    add_owner(blocks, number, slot, False)
    count_clauses(tables, table, key, 1)
    add_to_filter(predicates, tables, blocks, table, key, residual, width)
    return True


@part
def _same_clause(words: npt.NDArray[np.uint32], block: int, residual: npt.NDArray[np.int64], width: int) -> int:
    """The entry of a cluster that asks for the same, or -1. What many ask for comes early: not all are seen."""
    first, capacity = block * LINE + HEADER, header(words, block, CAPACITY)
    seen, wanted = min(header(words, block, LENGTH), SEEN), np.uint32(residual[0])
    alike = 0
    for at in range(first, first + seen):
        alike += words[at] == wanted
    if alike == 0:
        return -1
    for entry in range(seen):
        same = words[first + entry] == wanted
        for column in range(1, width):
            if not same:
                break
            same = words[first + column * capacity + entry] == residual[column]
        if same:
            return entry
    return -1


@part
def _share(blocks: Blocks, block: int, entry: int, slot: int, alone: bool) -> None:
    """Let a subscription own an entry too; one that was a subscription's own becomes a shared clause first."""
    at = ids_at(blocks.words, block) + entry
    entry_id = np.int64(blocks.words[at])
    if entry_id < SHARED:
        number = new_shared(blocks, block)
        add_owner(blocks, number, entry_id, True)
        entry_id = SHARED + number
        blocks.words[at] = entry_id
    add_owner(blocks, entry_id - SHARED, slot, alone)


# ---------------------------------------------------------------- out


@tight
def take_out(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    slots: npt.NDArray[np.int64],
    widest: int,
    taken: npt.NDArray[np.int64],
    start: int,
    count: int,
) -> tuple[int, int]:
    """Remove subscriptions, from `start` on, and write down what they asked for.

    Returns the first that found no room for its words, or their number; and how many words there are.
    """
    for at in range(start, len(slots)):
        _ask_ahead(tables, blocks, slots, at)
        while blocks.block_of[slots[at]] > 0:
            if count + widest > len(taken):
                return at, count
            count += _take_clause(predicates, tables, blocks, slots[at], taken[count:])
    return len(slots), count


@part
def _ask_ahead(tables: Tables, blocks: Blocks, slots: npt.NDArray[np.int64], at: int) -> None:
    """Have the cache lines fetched that later slots need: first their blocks, then what stands at their keys."""
    if at + 2 * AHEAD < len(slots):
        block = np.int64(blocks.block_of[slots[at + 2 * AHEAD]])
        if block < SHARED:
            prefetch(blocks.words, block * LINE)
            prefetch(blocks.words, (block + 1) * LINE)
    if at + AHEAD < len(slots):
        block = np.int64(blocks.block_of[slots[at + AHEAD]])
        if 0 < block < SHARED:
            table, key = header(blocks.words, block, TABLE), header(blocks.words, block, KEY)
            prefetch(blocks.directory, tables.base[table] + key)
            if tables.filter[table] != 0:
                prefetch(blocks.filters, filter_of(tables, table, key))


@part
def _take_clause(
    predicates: PredicateArrays, tables: Tables, blocks: Blocks, slot: int, into: npt.NDArray[np.int64]
) -> int:
    """Remove the first clause of a subscription, and write down what it asks for; how many words."""
    located = np.int64(blocks.block_of[slot])
    block, entry_id, is_last, following = located, slot, True, 0
    if located >= SHARED:
        node = located - SHARED
        number, sibling = np.int64(blocks.nodes[node, CLAUSE]), np.int64(blocks.nodes[node, SIBLING])
        drop_owner(blocks, node)
        block, entry_id = np.int64(blocks.shared_block[number]), SHARED + number
        is_last = blocks.shared_head[number] < 0
        following = SHARED + sibling if sibling >= 0 else 0
        if is_last:
            free_shared(blocks, number)
    entry = find_entry(blocks.words, block, entry_id)
    count = clause_predicates(predicates, tables, blocks.words, block, entry, into)
    if is_last:
        remove(blocks.words, block, entry)
        table, key = header(blocks.words, block, TABLE), header(blocks.words, block, KEY)
        count_clauses(tables, table, key, -1)
        renew_filter(predicates, tables, blocks, table, key)
    blocks.block_of[slot] = following
    return count


# ---------------------------------------------------------------- what they say


@tight
def clause_predicates(
    predicates: PredicateArrays,
    tables: Tables,
    words: npt.NDArray[np.uint32],
    block: int,
    entry: int,
    into: npt.NDArray[np.int64],
) -> int:
    """All predicate words of an entry: those of its access path, then the others. How many."""
    table, key = header(words, block, TABLE), header(words, block, KEY)
    count = 0
    if table == PREDICATE_TABLE:
        into[0] = key
        count = 1
    elif table >= FIRST_KEY_TABLE:
        for at in range(tables.first[table], tables.first[table + 1]):
            code = key // tables.stride[at] % tables.radix[at]
            into[count] = predicates.equal[predicates.equal_first[tables.dimension[at]] + code]
            count += 1
    first, capacity = block * LINE + HEADER, header(words, block, CAPACITY)
    for column in range(header(words, block, WIDTH)):
        into[count] = words[first + column * capacity + entry]
        count += 1
    return count


class ReadClauses(NamedTuple):
    """Clauses that were read, as many as there is room for."""

    counts: npt.NDArray[np.int64]
    """How many clauses there are, and how many words of all."""
    size: npt.NDArray[np.int64]
    slot: npt.NDArray[np.int64]
    words: npt.NDArray[np.int64]


@tight
def read_clauses(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    places: npt.NDArray[np.int64],
    wanted: npt.NDArray[np.bool_],
    clause: npt.NDArray[np.int64],
    into: ReadClauses,
) -> None:
    """Write down size, owner and words of the clauses of wanted slots at these directory entries.

    A clause that several ask for is written down for each. `clause` has room for the longest.
    """
    into.counts[:] = 0
    words = blocks.words
    for place in places:
        block = np.int64(blocks.directory[place])
        while block > 0:
            for entry in range(header(words, block, LENGTH)):
                size = clause_predicates(predicates, tables, words, block, entry, clause)
                entry_id = np.int64(words[ids_at(words, block) + entry])
                _write_for_owners(blocks, entry_id, wanted, clause[:size], into)
            block = header(words, block, NEXT)


@part
def _write_for_owners(
    blocks: Blocks,
    entry_id: int,
    wanted: npt.NDArray[np.bool_],
    clause: npt.NDArray[np.int64],
    into: ReadClauses,
) -> None:
    if entry_id < SHARED:
        _write(entry_id, wanted, clause, into)
        return
    node = np.int64(blocks.shared_head[entry_id - SHARED])
    while node >= 0:
        _write(np.int64(blocks.nodes[node, SLOT]), wanted, clause, into)
        node = np.int64(blocks.nodes[node, AFTER])


@part
def _write(owner: int, wanted: npt.NDArray[np.bool_], clause: npt.NDArray[np.int64], into: ReadClauses) -> None:
    """Write down and count a clause of a wanted slot; one that there is no room for is only counted."""
    counts = into.counts
    if owner < len(wanted) and wanted[owner]:
        if counts[0] < len(into.size):
            into.size[counts[0]], into.slot[counts[0]] = len(clause), owner
            for at in range(len(clause)):
                into.words[counts[1] + at] = clause[at]
        counts[0] += 1
        counts[1] += len(clause)
