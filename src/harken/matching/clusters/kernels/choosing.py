"""Choosing the access path of a clause: the one that the fewest events open (Fabret et al. 2000, section 3.1)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import part
from harken.matching.kernels.layout import (
    ALL_TABLE,
    EQUAL,
    FALSE,
    FIRST_KEY_TABLE,
    IS_ABSENT,
    PREDICATE_TABLE,
    PRESENCE_TABLE,
    RANGE_TABLE,
    Chances,
    PredicateArrays,
    Tables,
)

NO_TABLE = -1


@part
def _key_of(
    predicates: PredicateArrays,
    tables: Tables,
    table: int,
    clause: npt.NDArray[np.int64],
    selectivity: npt.NDArray[np.float32],
) -> tuple[int, float]:
    """The clause's key in a key table and the chance that an event has it; -1 if the clause has none there."""
    key, chance = 0, 1.0
    if tables.closed[table]:
        return -1, 1.0
    for at in range(tables.first[table], tables.first[table + 1]):
        wanted, code = tables.dimension[at], -1
        for word in clause:
            if predicates.operator[word] == EQUAL and predicates.dimension[word] == wanted:
                code = predicates.low[word]
                chance *= selectivity[word]
        if code < 0 or code >= tables.radix[at]:
            return -1, 1.0
        key += code * tables.stride[at]
    return key, chance


@part
def choose(
    predicates: PredicateArrays, tables: Tables, chances: Chances, clause: npt.NDArray[np.int64], without: int
) -> tuple[int, int, float]:
    """The access path that the fewest events open: table, key, and the chance that an event does.

    One key table can be left out of account; NO_TABLE leaves out none.
    """
    best_table, best_key, best_chance = ALL_TABLE, 0, 1.0
    for table in range(FIRST_KEY_TABLE, len(tables.base)):
        if table == without:
            continue
        key, chance = _key_of(predicates, tables, table, clause, chances.selectivity)
        if key >= 0 and chance < best_chance:
            best_table, best_key, best_chance = table, key, chance
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
            while at > 0 and _rank(predicates, chances, table, key, into[at - 1]) > _rank(
                predicates, chances, table, key, word
            ):
                into[at] = into[at - 1]
                at -= 1
            into[at] = word
            width += 1
    return width


@part
def _rank(predicates: PredicateArrays, chances: Chances, table: int, key: int, word: int) -> float:
    """How late to ask for a predicate: one that the cell nearly guarantees comes last."""
    nearly = table == RANGE_TABLE and predicates.cell[word] == key
    return 2.0 if nearly else np.float64(chances.selectivity[word])
