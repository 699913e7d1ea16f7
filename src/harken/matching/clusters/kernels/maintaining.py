"""Finding out which further tables would pay, and moving clauses into them (Fabret et al. 2000, section 4)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.matching.clusters.kernels.blocks import ask_ahead, header, insert, remove
from harken.matching.clusters.kernels.choosing import (
    AS_GOOD,
    NO_TABLE,
    Asked,
    ask,
    ask_no_more,
    choose,
    choose_one,
    emptiest,
    note_as_good,
    residual_of,
)
from harken.matching.clusters.kernels.filters import add_to_filter, renew_filter
from harken.matching.clusters.kernels.pairs import (
    chance_of,
    choose_pair,
    count_clauses,
    is_of_pairs,
    pair_at,
)
from harken.matching.clusters.kernels.placing import clause_predicates
from harken.matching.kernels.layout import (
    CAPACITY,
    EQUAL,
    FIRST_KEY_TABLE,
    HEADER,
    KEY,
    LENGTH,
    LINE,
    NEXT,
    PREDICATE_TABLE,
    TABLE,
    WIDTH,
    Blocks,
    Chances,
    PredicateArrays,
    Tables,
)

EMPTIER = 2
"""By how many entries a key must have fewer for a clause to move there that is placed as well where it is."""


@part
def access_chance(
    predicates: PredicateArrays, tables: Tables, selectivity: npt.NDArray[np.float32], table: int, key: int
) -> float:
    """The chance that an event opens a cluster under equalities; 0 for clusters under anything else."""
    chance = 0.0
    if table == PREDICATE_TABLE:
        if predicates.operator[key] == EQUAL:
            chance = np.float64(selectivity[key])
    elif table >= FIRST_KEY_TABLE and not is_of_pairs(tables, table):
        chance = 1.0
        for at in range(tables.first[table], tables.first[table + 1]):
            code = key // tables.stride[at] % tables.radix[at]
            equality = predicates.equal[predicates.equal_first[tables.dimension[at]] + code]
            chance *= selectivity[equality] if equality >= 0 else 0.0
    return chance


@tight
def tally_savings(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    chances: Chances,
    places: npt.NDArray[np.int64],
    column: npt.NDArray[np.int32],
    savings: npt.NDArray[np.float64],
) -> None:
    """For each table and each further dimension: the checks per event that a table with both would save.

    `column` says which column of `savings` a dimension has, if any. Row t is for table t; clusters under one
    equality count in the row, past the tables, of its dimension. `places` are the directory entries to look at.
    """
    words, selectivity = blocks.words, chances.selectivity
    for at_place in range(len(places)):
        ask_ahead(blocks, places, at_place)
        block = np.int64(blocks.directory[places[at_place]])
        while block > 0:
            base = block * LINE
            table, key = np.int64(words[base + TABLE]), np.int64(words[base + KEY])
            length, capacity = np.int64(words[base + LENGTH]), np.int64(words[base + CAPACITY])
            width = np.int64(words[base + WIDTH])
            block = np.int64(words[base + NEXT])
            # What is left of a table that was closed has keys that mean nothing in the one it has become.
            chance = access_chance(predicates, tables, selectivity, table, key) if length > 0 else 0.0
            if chance == 0.0:
                continue
            row = table
            if table < FIRST_KEY_TABLE:
                if column[predicates.dimension[key]] < 0:
                    continue
                row = len(tables.base) + column[predicates.dimension[key]]
            for at in range(base + HEADER, base + HEADER + width * capacity, capacity):
                for word in words[at : at + length]:
                    at_column = column[predicates.dimension[word]]
                    if predicates.operator[word] == EQUAL and at_column >= 0:
                        savings[row, at_column] += chance * (1.0 - selectivity[word])


@tight
def saved_by(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    chances: Chances,
    table: int,
    places: npt.NDArray[np.int64],
    asked: Asked,
    clause: npt.NDArray[np.int64],
) -> float:
    """The checks per event that a table saves its clauses at these directory entries (section 4's benefit)."""
    words, saved = blocks.words, 0.0
    for at_place in range(len(places)):
        ask_ahead(blocks, places, at_place)
        block = np.int64(blocks.directory[places[at_place]])
        while block > 0:
            base = block * LINE
            length = np.int64(words[base + LENGTH])
            here = 0.0
            if length > 0:
                here = access_chance(predicates, tables, chances.selectivity, table, np.int64(words[base + KEY]))
            for entry in range(length):
                count = clause_predicates(predicates, tables, words, block, entry, clause)
                ask(predicates, chances, clause[:count], asked)
                _, _, elsewhere = choose(predicates, tables, chances, clause[:count], asked, table)
                ask_no_more(predicates, clause[:count], asked)
                saved += elsewhere - here
            block = np.int64(words[base + NEXT])
    return saved


@tight
def tally_pairs(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    chances: Chances,
    places: npt.NDArray[np.int64],
    clause: npt.NDArray[np.int64],
    pair: npt.NDArray[np.int64],
    chance: npt.NDArray[np.float64],
    alone: npt.NDArray[np.float64],
) -> int:
    """Write down the pair of each clause at these directory entries that it suits better, and both chances."""
    words, count = blocks.words, 0
    for at_place in range(len(places)):
        ask_ahead(blocks, places, at_place)
        block = np.int64(blocks.directory[places[at_place]])
        while block > 0:
            for entry in range(header(words, block, LENGTH)):
                size = clause_predicates(predicates, tables, words, block, entry, clause)
                at, in_pair = choose_pair(predicates, chances, clause[:size])
                _, _, single = choose_one(predicates, chances, clause[:size])
                if in_pair < single and count < len(pair):
                    pair[count], chance[count], alone[count] = at, in_pair, single
                    count += 1
            block = header(words, block, NEXT)
    return count


@tight
def expected_sectors(chances: Chances, pairs: npt.NDArray[np.int64], seen: npt.NDArray[np.bool_]) -> float:
    """How many of the sectors that are in some pair an event lies in, on average. `seen` has room for all."""
    total = 0.0
    for place in pairs:
        high, low = pair_at(place)
        for sector in (high, low):
            if not seen[sector]:
                seen[sector] = True
                total += chance_of(chances, sector)
    return total


class Room(NamedTuple):
    """Where clauses are moved by way of."""

    free: npt.NDArray[np.int64]
    """Free blocks (blocks.py)."""
    asked: Asked
    as_good: npt.NDArray[np.int64]
    """By table: keys as good (choosing.py)."""
    clause: npt.NDArray[np.int64]
    """What a clause says, at its longest, and what is left of that beside an access path."""
    residual: npt.NDArray[np.int64]


@tight
def redistribute(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    chances: Chances,
    places: npt.NDArray[np.int64],
    start: int,
    room: Room,
    moved: npt.NDArray[np.int64],
) -> int:
    """Move the clauses at these directory entries, from the start-th on, to better access paths.

    Returns the first entry that could not be finished for want of room, or their number; counts moves.
    """
    words = blocks.words
    for number in range(start, len(places)):
        ask_ahead(blocks, places, number)
        block = np.int64(blocks.directory[places[number]])
        while block > 0:
            base, before = block * LINE, moved[0]
            for entry in range(np.int64(words[base + LENGTH]) - 1, -1, -1):
                if not _move(predicates, tables, blocks, chances, block, entry, room, moved):
                    return number
            if moved[0] > before:
                table, key = np.int64(words[base + TABLE]), np.int64(words[base + KEY])
                renew_filter(predicates, tables, blocks, table, key)
            block = np.int64(words[base + NEXT])
    return len(places)


@part
def _move(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    chances: Chances,
    block: int,
    entry: int,
    room: Room,
    moved: npt.NDArray[np.int64],
) -> bool:
    """Move an entry to a better access path if there is one; False without room."""
    words, base, residual = blocks.words, block * LINE, room.residual
    table, key = np.int64(words[base + TABLE]), np.int64(words[base + KEY])
    clause = room.clause[: clause_predicates(predicates, tables, words, block, entry, room.clause)]
    ask(predicates, chances, clause, room.asked)
    to, at, chance = choose(predicates, tables, chances, clause, room.asked, NO_TABLE)
    if tables.filter[to] != 0:
        if tables.filter[table] != 0 and access_chance(predicates, tables, chances.selectivity, table, key) <= (
            AS_GOOD * chance
        ):
            to, at = table, key
        note_as_good(tables, room.asked, chance, room.as_good)
        to, at = emptiest(tables, blocks, room.as_good, to, at, EMPTIER)
    ask_no_more(predicates, clause, room.asked)
    if to == table and at == key:
        return True
    size = residual_of(predicates, tables, chances, to, at, clause, residual)
    width, capacity = np.int64(words[base + WIDTH]), np.int64(words[base + CAPACITY])
    entry_id = np.int64(words[base + HEADER + width * capacity + entry])
    if not insert(blocks, room.free, tables.base[to] + at, to, at, residual, size, entry_id):
        return False
    add_to_filter(predicates, tables, blocks, to, at, residual, size)
    remove(words, block, entry)
    count_clauses(tables, table, key, -1)
    count_clauses(tables, to, at, 1)
    moved[0] += 1
    return True
