"""Choosing the access path of a clause: the one that the fewest events open (Fabret et al. 2000, section 3.1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.jit import part
from harken.matching.clusters.kernels.filters import entries_in
from harken.matching.clusters.kernels.pairs import choose_pair, is_in_pair, is_of_pairs, may_pair
from harken.matching.kernels.layout import (
    ALL_TABLE,
    EQUAL,
    FALSE,
    FIRST_KEY_TABLE,
    IS_ABSENT,
    PAIRS_TABLE,
    PREDICATE_TABLE,
    PRESENCE_TABLE,
    RANGE_TABLE,
    Blocks,
    Chances,
    PredicateArrays,
    Tables,
)

NO_TABLE = -1

AS_GOOD = 1.25
"""How many times the chance of the best key others may have that are as good."""


class Asked(NamedTuple):
    """What one clause asks for by equality. Between clauses, nothing."""

    code: npt.NDArray[np.int64]
    """By dimension: the code of the constant, or 0."""
    chance: npt.NDArray[np.float64]
    """That an event has it."""
    key: npt.NDArray[np.int64]
    """By table: the key of the clause that was last chosen for, or -1; and the chance that an event has it."""
    key_chance: npt.NDArray[np.float64]


def nothing_asked(predicates: PredicateArrays, tables: Tables) -> Asked:
    """Room for what clauses of these predicates ask for in these tables."""
    dimensions, count = len(predicates.equal_first), len(tables.base)
    return Asked(np.zeros(dimensions, np.int64), np.zeros(dimensions), np.zeros(count, np.int64), np.zeros(count))


@part
def ask(predicates: PredicateArrays, chances: Chances, clause: npt.NDArray[np.int64], asked: Asked) -> None:
    """Take note of the equalities of a clause."""
    for word in clause:
        if predicates.operator[word] == EQUAL:
            dimension = predicates.dimension[word]
            asked.code[dimension], asked.chance[dimension] = predicates.low[word], chances.selectivity[word]


@part
def ask_no_more(predicates: PredicateArrays, clause: npt.NDArray[np.int64], asked: Asked) -> None:
    """Have nothing noted again."""
    for word in clause:
        asked.code[predicates.dimension[word]] = 0


@part
def _key_of(tables: Tables, table: int, asked: Asked) -> tuple[int, float]:
    """The clause's key in a key table and the chance that an event has it; -1 if the clause has none there."""
    key, chance = 0, 1.0
    if tables.closed[table]:
        return -1, 1.0
    for at in range(tables.first[table], tables.first[table + 1]):
        code = asked.code[tables.dimension[at]]
        if code == 0 or code >= tables.radix[at]:
            return -1, 1.0
        chance *= asked.chance[tables.dimension[at]]
        key += code * tables.stride[at]
    return key, chance


@part
def choose(
    predicates: PredicateArrays,
    tables: Tables,
    chances: Chances,
    clause: npt.NDArray[np.int64],
    asked: Asked,
    without: int,
) -> tuple[int, int, float]:
    """The access path that the fewest events open: table, key, and the chance that an event does.

    One key table can be left out of account; NO_TABLE leaves out none.
    """
    best_table, best_key, best_chance = NO_TABLE, -1, 2.0
    for table in range(FIRST_KEY_TABLE, len(tables.base)):
        if table != without:
            key, chance = _key_of(tables, table, asked)
            asked.key[table], asked.key_chance[table] = key, chance
            if key >= 0 and chance < best_chance:
                best_table, best_key, best_chance = table, key, chance
    table, key, chance = choose_without_keys(predicates, tables, chances, clause)
    if chance < best_chance:
        return table, key, chance
    return best_table, best_key, best_chance


@part
def choose_without_keys(
    predicates: PredicateArrays, tables: Tables, chances: Chances, clause: npt.NDArray[np.int64]
) -> tuple[int, int, float]:
    """The same among the access paths that are no keys."""
    table, key, chance = choose_one(predicates, chances, clause)
    if may_pair(tables):
        pair, chance_of_pair = choose_pair(predicates, chances, clause)
        if chance_of_pair < chance:
            return tables.pairs[PAIRS_TABLE], pair, chance_of_pair
    return table, key, chance


@part
def choose_one(
    predicates: PredicateArrays, chances: Chances, clause: npt.NDArray[np.int64]
) -> tuple[int, int, float]:
    """The same among the access paths that are one predicate, or none."""
    best_table, best_key, best_chance = ALL_TABLE, 0, 1.0
    for word in clause:
        if predicates.initial[word] == FALSE:
            table, key, chance = PREDICATE_TABLE, word, np.float64(chances.selectivity[word])
        elif predicates.cell[word] >= 0:
            key = np.int64(predicates.cell[word])
            table, chance = RANGE_TABLE, np.float64(chances.cell[key])
        elif predicates.operator[word] != IS_ABSENT:
            key = np.int64(predicates.dimension[word])
            table, chance = PRESENCE_TABLE, np.float64(chances.presence[key])
        else:
            continue
        if chance < best_chance:
            best_table, best_key, best_chance = table, key, chance
    return best_table, best_key, best_chance


@part
def note_as_good(tables: Tables, asked: Asked, chance: float, keys: npt.NDArray[np.int64]) -> None:
    """By table: the key of the clause chosen for if it has a filter and is about as good as this chance; or -1."""
    for table in range(FIRST_KEY_TABLE, len(tables.base)):
        is_as_good = tables.filter[table] != 0 and asked.key_chance[table] <= AS_GOOD * chance
        keys[table] = asked.key[table] if is_as_good else -1


@part
def emptiest(
    tables: Tables, blocks: Blocks, keys: npt.NDArray[np.int64], table: int, key: int, least: int
) -> tuple[int, int]:
    """Of these keys by table and this one, the one with the fewest entries.

    It is this one if no other has at least so many fewer.
    """
    best_table, best_key, fewest = table, key, entries_in(tables, blocks, table, key) - least
    for other in range(FIRST_KEY_TABLE, len(tables.base)):
        if keys[other] >= 0 and other != table:
            entries = entries_in(tables, blocks, other, keys[other])
            if entries < fewest:
                best_table, best_key, fewest = other, keys[other], entries
    return best_table, best_key


@part
def residual_of(
    predicates: PredicateArrays,
    tables: Tables,
    chances: Chances,
    table: int,
    key: int,
    clause: npt.NDArray[np.int64],
    into: npt.NDArray[np.int64],
) -> int:
    """The predicate words that the access path does not already guarantee, least likely first; how many."""
    width, keyed = 0, table >= FIRST_KEY_TABLE
    for word in clause:
        guaranteed = table == PREDICATE_TABLE and word == key
        if keyed and predicates.operator[word] == EQUAL:
            for at in range(tables.first[table], tables.first[table + 1]):
                guaranteed |= tables.dimension[at] == predicates.dimension[word]
        if not guaranteed:
            at = width
            while at > 0 and _rank(predicates, tables, chances, table, key, into[at - 1]) > _rank(
                predicates, tables, chances, table, key, word
            ):
                into[at] = into[at - 1]
                at -= 1
            into[at] = word
            width += 1
    return width


@part
def _rank(predicates: PredicateArrays, tables: Tables, chances: Chances, table: int, key: int, word: int) -> float:
    """How late to ask for a predicate: one that the cell, or the pair, nearly guarantees comes last."""
    nearly = table == RANGE_TABLE and predicates.cell[word] == key
    if is_of_pairs(tables, table):
        nearly = is_in_pair(predicates, word, key)
    return 2.0 if nearly else np.float64(chances.selectivity[word])
