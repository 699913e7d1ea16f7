"""Whether what comes from a file is an index: checked before any kernel walks it (kernels/soundness.py).

A saved folder is data that somebody may have damaged, or made up. What is wrong with it is a ValueError here,
which becomes an IndexFormatError where the folder is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from harken.matching.bands import Bands
from harken.matching.contract import Slots
from harken.matching.dimensions import Dimension
from harken.matching.kernels.layout import (
    ALL_TABLE,
    CELLS,
    DIFFERENT,
    END_NODE,
    END_SHARED,
    EQUAL,
    FALSE,
    FIRST_KEY_TABLE,
    INTERVAL,
    LINE,
    MEMBER,
    NODE,
    PREDICATE_TABLE,
    PRESENCE_TABLE,
    RANGE_TABLE,
    SPARE,
    TESTED,
    UNKNOWN,
    Blocks,
    Predicates,
    Tables,
)
from harken.matching.kernels.placing import FREE_CLASSES
from harken.matching.kernels.soundness import Found, clusters_are_sound, owners_are_sound, room_is_sound
from harken.matching.saving import require
from harken.model.values import Value

Integers = npt.NDArray[np.integer[Any]]


def in_use(slots: Slots, size: int) -> npt.NDArray[np.bool_]:
    """Which of the first so many slots are in use; ValueError if others are."""
    require(not len(slots) or slots[-1] < size, "there are subscriptions that the index has no place for")
    used = np.zeros(size, np.bool_)
    used[slots] = True
    return used


def lie_apart(first: Integers, size: Integers, room: int) -> bool:
    """Whether regions of these sizes lie within so much room, and no two of them overlap."""
    if (size < 0).any() or (first < 0).any() or (size > room).any() or (first > room - size).any():
        return False
    own = np.flatnonzero(size)
    order = own[np.argsort(first[own], kind="stable")]
    return bool((first[order][1:] >= (first + size)[order][:-1]).all())


class Sense(NamedTuple):
    """What a predicate says, from its words: all that kernels know of it follows from that."""

    operator: int
    dimension: Dimension
    constants: Sequence[Value]
    low: int
    high: int


def check_predicates(
    senses: Mapping[int, Sense],
    arrays: Predicates,
    equal_room: Sequence[int],
    dimensions: Sequence[Dimension],
    bands: Bands,
) -> None:
    """Whether what kernels know of predicates, and how often constants are used, is what these say."""
    _check_places(arrays, np.array(equal_room, np.int64), dimensions)
    numbers = np.fromiter(senses, np.int64, len(senses))
    operator = np.fromiter((each.operator for each in senses.values()), np.int64, len(senses))
    dimension = np.fromiter((each.dimension.number for each in senses.values()), np.int64, len(senses))
    low, high = (
        np.array([getattr(each, end) for each in senses.values()], np.int64).reshape(-1) for end in ("low", "high")
    )
    require(np.array_equal(numbers, np.flatnonzero(arrays.operator >= 0)), "there are predicates that say nothing")
    require(np.array_equal(operator, arrays.operator[numbers]), "predicates have other operators")
    require(np.array_equal(dimension, arrays.dimension[numbers]), "predicates are of other dimensions")
    bounded, listed = operator == INTERVAL, np.isin(operator, (EQUAL, MEMBER, TESTED))
    valued = bounded | (operator == EQUAL) | (operator == DIFFERENT)
    require(np.array_equal(low[valued], arrays.low[numbers[valued]]), "predicates have other constants")
    require(np.array_equal(high[bounded], arrays.high[numbers[bounded]]), "predicates have other bounds")
    require(
        np.array_equal(np.where(listed, FALSE, UNKNOWN), arrays.initial[numbers]), "predicates are listed wrongly"
    )
    _check_equalities(arrays, numbers[operator == EQUAL])
    _check_members(arrays, {number: each for number, each in senses.items() if each.operator == MEMBER})
    _check_cells(arrays, bands, numbers[bounded], numbers[~bounded])
    _check_uses(senses.values(), dimensions, bands)


def _check_places(arrays: Predicates, room: Integers, dimensions: Sequence[Dimension]) -> None:
    require(len(arrays.equal_first) == len(room) == len(dimensions), "dimensions are not as many as they are")
    require(len(arrays.equal) == len(arrays.member_head), "there are not as many lists of sets as constants")
    require(lie_apart(arrays.equal_first, room, len(arrays.equal)), "constants of two dimensions have one place")
    codes = np.array([len(each.constants) for each in dimensions], np.int64)
    require((codes <= np.maximum(room, 1)).all(), "there are constants without a place")


def _check_equalities(arrays: Predicates, numbers: Integers) -> None:
    expected = np.full(len(arrays.equal), -1, np.int32)
    expected[arrays.equal_first[arrays.dimension[numbers]] + arrays.low[numbers]] = numbers
    require(np.array_equal(expected, arrays.equal), "equalities are not found where their constants are")


def _check_members(arrays: Predicates, sets: Mapping[int, Sense]) -> None:
    """Whether the lists of sets are such, and each constant's list has the sets that hold it, once."""
    expected: set[tuple[int, int]] = set()
    for number, sense in sets.items():
        first = int(arrays.equal_first[sense.dimension.number])
        places = {first + sense.dimension.codes[constant] for constant in sense.constants}
        require(len(places) == len(sense.constants), "a set holds a constant twice")
        expected |= {(place, number) for place in places}
    found: set[tuple[int, int]] = set()
    following, member = arrays.member_next.tolist(), arrays.member.tolist()
    for place in np.flatnonzero(arrays.member_head >= 0).tolist():
        node = int(arrays.member_head[place])
        while node >= 0:
            require((place, member[node]) not in found, "a set is in a list twice")
            found.add((place, member[node]))
            node = following[node]
    require(found == expected, "constants are in other sets than those say")


def _check_cells(arrays: Predicates, bands: Bands, bounded: Integers, others: Integers) -> None:
    require((arrays.cell[others] == -1).all(), "a predicate without bounds stands in a cell")
    for dimension in np.unique(arrays.dimension[bounded]).tolist():
        numbers = bounded[arrays.dimension[bounded] == dimension]
        cells = bands.cells(dimension, arrays.low[numbers], arrays.high[numbers])
        require(np.array_equal(cells, arrays.cell[numbers]), "predicates stand in other cells than their bounds")


def _check_uses(senses: Any, dimensions: Sequence[Dimension], bands: Bands) -> None:
    """Whether constants are used as often as is said, by predicates and by bands."""
    codes: list[Counter[Value]] = [Counter() for _ in dimensions]
    labels: list[Counter[Value]] = [Counter() for _ in dimensions]
    for sense in senses:
        if sense.operator in (EQUAL, DIFFERENT, MEMBER):
            codes[sense.dimension.number].update(sense.constants)
        elif sense.operator == INTERVAL:
            labels[sense.dimension.number].update(sense.constants)
    for number, cuts in bands.cuts():
        labels[number].update(cuts)
    for dimension in dimensions:
        held = {constant: uses for constant, _, uses in dimension.held()}
        ordered = {constant: uses for constant, _, uses in dimension.order.held() if uses}
        require(codes[dimension.number] == held, "constants are used more or less often than is said")
        require(labels[dimension.number] == ordered, "bounds are used more or less often than is said")


def check_tables(
    predicates: Predicates,
    tables: Tables,
    size: Integers,
    directory: npt.NDArray[np.uint32],
    schemas: Sequence[Sequence[int]],
) -> None:
    """Whether every key that an event can have leads to a place of its table."""
    count, dimensions = len(tables.base), len(predicates.equal_first)
    require(count >= FIRST_KEY_TABLE, "there are too few tables")
    for each in (size, tables.closed, tables.population, schemas):
        require(len(each) == count, "not all is said of all tables")
    first = tables.first
    require(len(first) == count + 1 and first[0] == 0 and (np.diff(first) >= 0).all(), "tables have no schemas")
    keyed = int(first[-1])
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


def check_clusters(
    predicates: Predicates,
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
    return found
