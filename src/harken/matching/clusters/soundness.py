"""Whether what comes from a file is clusters: checked before any kernel walks it (kernels/soundness.py)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from harken.matching.clusters.kernels.blocks import FREE_CLASSES, cluster_sizes
from harken.matching.clusters.kernels.filters import filters_are_sound
from harken.matching.clusters.kernels.pairs import pairs_for, sectors_for
from harken.matching.clusters.kernels.soundness import Found, clusters_are_sound, owners_are_sound, room_is_sound
from harken.matching.contract import Slots
from harken.matching.kernels.layout import (
    ALL_TABLE,
    CELLS,
    END_NODE,
    END_SHARED,
    FILTER,
    FIRST_KEY_TABLE,
    IN_PAIRS,
    LINE,
    NARROW,
    NODE,
    PAIRS_OPEN,
    PAIRS_TABLE,
    PREDICATE_TABLE,
    PRESENCE_TABLE,
    RANGE_TABLE,
    SPARE,
    Blocks,
    PredicateArrays,
    Tables,
)
from harken.matching.predicates.soundness import Integers, in_use, lie_apart
from harken.matching.saving import require

MOST_DIGITS = 1 << 22
"""More than there are ever: who made room for as many as a file says might run out of memory."""


def check_tables(
    predicates: PredicateArrays,
    tables: Tables,
    size: Integers,
    directory: npt.NDArray[np.uint32],
    schemas: Sequence[Sequence[int]],
) -> None:
    """Whether every key that an event can have leads to a place of its table."""
    count, dimensions = len(tables.base), len(predicates.equal_first)
    require(count >= FIRST_KEY_TABLE, "there are too few tables")
    for each in (size, tables.closed, tables.population, tables.filter, schemas):
        require(len(each) == count, "not all is said of all tables")
    first = tables.first
    require(len(first) == count + 1 and first[0] == 0 and (np.diff(first) >= 0).all(), "tables have no schemas")
    keyed = int(first[-1])
    require(count * int(np.diff(first).max()) <= MOST_DIGITS, "there are too many tables")
    require(first[FIRST_KEY_TABLE] == 0, "a table that is none of keys has a schema")
    for each in (tables.dimension, tables.stride, tables.radix):
        require(len(each) == keyed, "schemas are not as long as they are")
    require(not keyed or 0 <= tables.dimension.min() <= tables.dimension.max() < dimensions, "no such dimension")
    require(lie_apart(tables.base, size, len(directory)), "two tables have one place")
    least = {
        ALL_TABLE: 1,
        PREDICATE_TABLE: len(predicates.operator),
        PRESENCE_TABLE: dimensions,
        RANGE_TABLE: len(predicates.banded) * CELLS,
    }
    require(all(size[table] >= places for table, places in least.items()), "a table has too few places")
    within = sum(
        np.count_nonzero(directory[base : base + each]) for base, each in zip(tables.base, size, strict=True)
    )
    require(within == np.count_nonzero(directory), "a place is of no table")
    for table in range(FIRST_KEY_TABLE, count):
        _check_keys(tables, table, int(size[table]))
    _check_pairs(predicates, tables, size)
    for table, schema in enumerate(schemas):
        its_own = sorted(tables.dimension[first[table] : first[table + 1]].tolist())
        wanted = [] if table < FIRST_KEY_TABLE or tables.closed[table] else its_own
        require(list(schema) == wanted and len(set(wanted)) == len(wanted), "a table has another schema")


def _check_keys(tables: Tables, table: int, size: int) -> None:
    places = 1
    for at in range(tables.first[table], tables.first[table + 1]):
        require(int(tables.stride[at]) == places and tables.radix[at] >= 1, "keys have no places")
        places *= int(tables.radix[at])
        require(places <= size, "a table has fewer places than keys")


def _check_pairs(predicates: PredicateArrays, tables: Tables, size: Integers) -> None:
    sectors = sectors_for(len(predicates.banded))
    require(len(tables.pairs) == IN_PAIRS + sectors, "not all is said of sectors")
    table, is_open = int(tables.pairs[PAIRS_TABLE]), int(tables.pairs[PAIRS_OPEN])
    require(is_open in (0, 1) and is_open <= table, "no pairs, or more")
    without_keys = np.flatnonzero(np.diff(tables.first)[FIRST_KEY_TABLE:] == 0) + FIRST_KEY_TABLE
    require(without_keys.tolist() == ([table] if table else []), "a table has neither keys nor pairs")
    if table:
        require(FIRST_KEY_TABLE <= table < len(size) and tables.closed[table], "there is no table of pairs")
        require(tables.first[table] == tables.first[table + 1], "pairs have keys")
        require(size[table] >= pairs_for(sectors), "pairs have no places")


def _in_sectors(tables: Tables, size: Integers, blocks: Blocks) -> Integers:
    """By sector, how many clauses stand in its pairs."""
    table, count = int(tables.pairs[PAIRS_TABLE]), len(tables.pairs) - IN_PAIRS
    first = int(tables.base[table])
    places = np.flatnonzero(blocks.directory[first : first + size[table]]) if table else np.zeros(0, np.int64)
    high = ((1 + np.sqrt(1 + 8 * places)) / 2).astype(np.int64)
    clauses = cluster_sizes(blocks, first + places)
    sectors = np.concatenate([high, places - high * (high - 1) // 2])
    return np.bincount(sectors, np.tile(clauses, 2), minlength=count).astype(np.int64)


def check_filters(predicates: PredicateArrays, tables: Tables, blocks: Blocks) -> None:
    """Whether filters let through all that is there. Tables and clusters have been checked."""
    room = len(blocks.filters) // FILTER
    require(room * FILTER == len(blocks.filters) and room > 0, "filters are missing")
    require(not blocks.filters[:FILTER].any(), "what has no filter has one")
    first, size, keys = (np.zeros(len(tables.filter), np.int64) for _ in range(3))
    for table in np.flatnonzero(tables.filter).tolist():
        require(table >= FIRST_KEY_TABLE and not tables.closed[table], "a table has filters that can have none")
        keys[table] = np.prod(tables.radix[tables.first[table] : tables.first[table + 1]])
        each = FILTER // NARROW if tables.filter[table] > 0 else 1
        first[table] = each * min(abs(int(tables.filter[table])), len(blocks.filters))
        size[table] = each * keys[table]
    require(first[first > 0].min(initial=FILTER) >= FILTER // NARROW, "what has no filter has one")
    require(lie_apart(first, size, room * (FILTER // NARROW)), "two tables have one filter")
    for table in np.flatnonzero(tables.filter).tolist():
        sound = filters_are_sound(predicates, tables, blocks, table, int(keys[table]))
        require(sound, "a filter holds back what is there")


def check_clusters(
    predicates: PredicateArrays,
    tables: Tables,
    size: npt.NDArray[np.int64],
    blocks: Blocks,
    free: npt.NDArray[np.int64],
    slots: Slots,
) -> Found:
    """Whether clusters and owners are what kernels take them for; what they hold. Tables have been checked."""
    lines = len(blocks.words) // LINE
    require(
        len(free) == FREE_CLASSES and free[0] == lines and lines * LINE == len(blocks.words), "words are missing"
    )
    require(lines >= 1 and len(blocks.spare) == SPARE, "there is no room")
    require(blocks.spare[END_SHARED] == len(blocks.shared_head) == len(blocks.shared_block), "shared clauses lack")
    require(blocks.nodes.shape == (blocks.spare[END_NODE], NODE), "owners of shared clauses lack")
    used = in_use(slots, len(blocks.block_of))
    found = Found(
        np.zeros(len(blocks.shared_head), np.int64),
        np.zeros(len(predicates.operator), np.int64),
        np.zeros(len(tables.base), np.int64),
        np.zeros(lines, np.bool_),
        np.zeros(len(blocks.block_of), np.bool_),
        np.zeros(len(blocks.shared_head), np.bool_),
        np.zeros(len(blocks.nodes), np.uint8),
        np.zeros(1, np.int64),
    )
    require(owners_are_sound(blocks, used, found), "shared clauses and their owners do not fit together")
    require(clusters_are_sound(predicates, tables, size, blocks, used, found), "a cluster is none")
    require(room_is_sound(blocks, free, used, found), "clusters and subscriptions do not fit together")
    require(np.array_equal(found.population, tables.population), "tables hold more or less than is said")
    in_sectors = _in_sectors(tables, size, blocks)
    require(np.array_equal(in_sectors, tables.pairs[IN_PAIRS:]), "pairs hold more or less than is said")
    return found
