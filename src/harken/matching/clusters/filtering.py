"""Which key tables have filters: those where filters can tell what stands under keys, and pay for themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.matching.clusters.kernels.filters import make_filters, telling_keys
from harken.matching.kernels.layout import FILTER, FIRST_KEY_TABLE, NARROW, Blocks, PredicateArrays, Tables

FILTERED_FROM = 8 << 20
"""Bytes of clusters from which on filters pay: to look at what the caches hold is as quick as to look at them."""

MOST, MOST_OF_ONE = 6.0, 12.0
"""Clauses per key up to which filters pay: of all tables that have some together, and of a single one."""

FEWEST, FEWEST_AGAIN = 0.25, 0.125
"""Clauses per key, on average, from which on narrow filters pay, and at which they are given up again."""

TELLING, TELLING_FIRST = 0.4, 0.5
"""The part of a table's keys of which filters have to tell, and from which on a table that has none gets some."""

SAMPLED_KEYS = 256
"""Keys that are looked at for that, at least, if there are so many."""

FEW_OUT_OF_PLACE = 8
"""One clause in so many may be in tables whose filters are of another kind than would pay."""

ENOUGH = 8
"""Tables from which on it pays to find out for narrow filters what an event has."""


class FilteredTables(NamedTuple):
    """The tables with filters of eight entries, and those with narrow ones."""

    wide: list[int]
    narrow: list[int]


class Filtered(NamedTuple):
    """Filters, and by table the first of its own."""

    filters: npt.NDArray[np.uint16]
    first: npt.NDArray[np.int64]


def filtered_tables(tables: Tables) -> FilteredTables:
    """The tables that have filters."""
    return FilteredTables(np.flatnonzero(tables.filter > 0).tolist(), np.flatnonzero(tables.filter < 0).tolist())


def tables_to_filter(predicates: PredicateArrays, tables: Tables, blocks: Blocks, nbytes: int) -> FilteredTables:
    """The tables that filters pay for, where clusters take so many bytes."""
    told = [each for each in open_tables(tables.closed) if can_tell(predicates, tables, blocks, each)]
    wide = _most_crowded(tables, told) if nbytes >= FILTERED_FROM else []
    narrow = [table for table in told if table not in wide]
    all_keys, all_clauses = _keys_and_clauses(tables, narrow)
    # Clauses spread over the tables that have filters, so that what counts is how many all have together.
    fewest = FEWEST_AGAIN if (tables.filter < 0).any() else FEWEST
    pays = fewest * all_keys <= all_clauses <= all_keys and (len(narrow) >= ENOUGH or bool(wide))
    return FilteredTables(wide, narrow if pays else [])


def are_out_of_place(predicates: PredicateArrays, tables: Tables, blocks: Blocks, nbytes: int) -> bool:
    """Whether filters are not where they would pay, for more than a few clauses: tables may be on the edge."""
    wanted, present = tables_to_filter(predicates, tables, blocks, nbytes), filtered_tables(tables)
    misplaced = {table for one, other in zip(wanted, present, strict=True) for table in set(one) ^ set(other)}
    clauses = tables.population
    return int(clauses[list(misplaced)].sum()) * FEW_OUT_OF_PLACE > int(clauses[open_tables(tables.closed)].sum())


def made_filters(
    predicates: PredicateArrays, tables: Tables, blocks: Blocks, filtered: FilteredTables
) -> Filtered:
    """The filters of these tables. Linear in their keys and clauses; nothing is changed."""
    first = np.zeros(len(tables.filter), np.int64)
    end = FILTER  # in words; the first is of no key
    for some, size, sign in ((filtered.wide, FILTER, 1), (filtered.narrow, NARROW, -1)):
        for table in some:
            first[table] = sign * (end // size)
            end += keys_of(tables, table) * size
    filters = np.zeros(-(-end // FILTER) * FILTER, np.uint16)
    tables, blocks = tables._replace(filter=first), blocks._replace(filters=filters)
    for table in [*filtered.wide, *filtered.narrow]:
        make_filters(predicates, tables, blocks, table, keys_of(tables, table))
    return Filtered(filters, first)


def can_tell(predicates: PredicateArrays, tables: Tables, blocks: Blocks, table: int) -> bool:
    """Whether filters could tell what stands under most keys of a table, by a sample: not of ranges."""
    keys, population = keys_of(tables, table), int(tables.population[table])
    if population > MOST_OF_ONE * keys:
        return False
    step = 1 + min(keys, population) // SAMPLED_KEYS
    used, telling = telling_keys(predicates, tables, blocks, table, keys, step)
    return bool(used) and telling >= (TELLING if tables.filter[table] else TELLING_FIRST) * used


def open_tables(closed: npt.NDArray[np.bool_]) -> list[int]:
    """The key tables that events look into."""
    return (FIRST_KEY_TABLE + np.flatnonzero(~closed[FIRST_KEY_TABLE:])).tolist()


def keys_of(tables: Tables, table: int) -> int:
    """How many keys a key table has places for."""
    return int(np.prod(tables.radix[tables.first[table] : tables.first[table + 1]]))


def _most_crowded(tables: Tables, some: Sequence[int]) -> list[int]:
    """Of these tables, those with the most clauses per key, as long as they have enough of them together."""
    wanted = list[int]()
    all_keys, all_clauses = 0, _keys_and_clauses(tables, some)[1]
    for table in sorted(some, key=lambda table: -tables.population[table] / keys_of(tables, table)):
        all_keys += keys_of(tables, table)
        if all_keys > all_clauses:
            break
        wanted.append(table)
    return sorted(wanted) if all_clauses <= MOST * all_keys else []


def _keys_and_clauses(tables: Tables, some: Sequence[int]) -> tuple[int, int]:
    """How many keys these tables have together, and how many clauses."""
    return sum(keys_of(tables, each) for each in some), int(tables.population[list(some)].sum())
