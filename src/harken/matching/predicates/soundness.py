"""Whether the predicates that come from a file are some: checked before any kernel reads them.

A saved folder is data that somebody may have damaged, or made up. What is wrong with it is a ValueError here,
which becomes an IndexFormatError where the folder is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from harken.matching.contract import Slots
from harken.matching.kernels.layout import (
    DIFFERENT,
    EQUAL,
    FALSE,
    INTERVAL,
    IS_ABSENT,
    IS_PRESENT,
    MEMBER,
    TESTED,
    UNKNOWN,
    PredicateArrays,
)
from harken.matching.predicates.bands import Bands
from harken.matching.predicates.dimensions import Dimension
from harken.matching.predicates.rows import BOUNDS, Row, canonical, constant_in, meaning
from harken.matching.saving import require
from harken.model.values import SPATIAL_KINDS, Kind, Value, kind_of
from harken.normal.operators import OPERATORS, expression_of

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


def sense_of(rows: tuple[Row, ...], by_attribute: Mapping[str, Mapping[Kind | None, Dimension]]) -> Sense:
    """What a predicate says of a dimension that is there; ValueError if it is none."""
    name, operator, operand = rows[0]
    operators = {row[1] for row in rows}
    require(len(rows) == 1 or operators == {"in"} or operators <= BOUNDS.keys(), "a predicate is several")
    require(all(row[0] == name for row in rows) and operator in OPERATORS, "a predicate is of two attributes")
    # The same predicate would be interned anew if it were said in any other way.
    require(rows == tuple(sorted(set(rows))), "a predicate is not said as it is known")
    require(all(each == canonical(operator, each) for _, _, each in rows), "an operand is not said as it is known")
    code, kind = meaning(operator, operand.type)
    dimension = by_attribute[name][kind]
    if code in (TESTED, IS_PRESENT, IS_ABSENT):
        expression_of([rows])  # looks at its parts itself
        return Sense(code, dimension, (), 0, 0)
    constants = [constant_in(each) for _, _, each in rows]
    require(all(kind_of(constant) is kind for constant in constants), "a predicate is of two kinds")
    low, high = 0, 0
    if code == INTERVAL:
        require(kind not in SPATIAL_KINDS, "shapes are in no order")
        low, high = dimension.bounds(rows)
    elif code != MEMBER:
        low = dimension.codes[constants[0]]
    return Sense(code, dimension, constants, low, high)


def check_predicates(
    senses: Mapping[int, Sense],
    arrays: PredicateArrays,
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


def _check_places(arrays: PredicateArrays, room: Integers, dimensions: Sequence[Dimension]) -> None:
    require(len(arrays.equal_first) == len(room) == len(dimensions), "dimensions are not as many as they are")
    require(len(arrays.equal) == len(arrays.member_head), "there are not as many lists of sets as constants")
    require(lie_apart(arrays.equal_first, room, len(arrays.equal)), "constants of two dimensions have one place")
    codes = np.array([len(each.constants) for each in dimensions], np.int64)
    require((codes <= np.maximum(room, 1)).all(), "there are constants without a place")


def _check_equalities(arrays: PredicateArrays, numbers: Integers) -> None:
    expected = np.full(len(arrays.equal), -1, np.int32)
    expected[arrays.equal_first[arrays.dimension[numbers]] + arrays.low[numbers]] = numbers
    require(np.array_equal(expected, arrays.equal), "equalities are not found where their constants are")


def _check_members(arrays: PredicateArrays, sets: Mapping[int, Sense]) -> None:
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


def _check_cells(arrays: PredicateArrays, bands: Bands, bounded: Integers, others: Integers) -> None:
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
