"""The forwarding table, made of all clauses at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from harken.matching.kernels.layout import (
    DIFFERENT,
    HIGHEST,
    INTERVAL,
    IS_ABSENT,
    IS_PRESENT,
    LOWEST,
    PredicateArrays,
)
from harken.matching.predicates.dimensions import Dimension
from harken.matching.siena.kernels.building import count_filters, fill_lists
from harken.matching.siena.kernels.matching import Constraints, Table
from harken.matching.siena.kernels.names import NO_NODE, UNKNOWN_NAME, Names, enter_names
from harken.matching.structures.kernels.clauses import Contents
from harken.matching.structures.kernels.counters import Lists


def forwarding_table(contents: Contents, predicates: PredicateArrays, dimensions: Sequence[Dimension]) -> Table:
    """A table for these clauses, which ask of these dimensions and no others.

    Linear in the clauses, but for putting names and the ends of ranges in their order.
    """
    constraints = _constraints(predicates, len(predicates.equal_first))
    ends = np.ones(len(predicates.operator) + 1, np.int64)  # a word is the number of a predicate plus 1
    ends[np.intersect1d(constraints.lower, constraints.upper) + 1] = 2
    length, lacking = np.zeros(len(ends), np.int64), np.zeros(len(contents.first), np.int64)
    count_filters(contents, ends, length, lacking)
    lists = Lists(
        np.cumsum(length) - length, np.zeros_like(length), length, np.zeros(int(length.sum()), np.uint32)
    )
    fill_lists(contents, lists)
    names = _names(dimensions, len(predicates.equal_first))
    return Table(names, constraints, lists, lacking.astype(_counters(lacking)))


def _counters(lacking: npt.NDArray[np.int64]) -> np.dtype[np.unsignedinteger]:
    """As narrow numbers as will do."""
    return np.min_scalar_type(int(lacking.max(initial=0)))


def _constraints(predicates: PredicateArrays, dimensions: int) -> Constraints:
    operator, low, high = predicates.operator, predicates.low, predicates.high
    ranges = operator == INTERVAL
    lower, lower_first = _by_dimension(predicates, ranges & (low > LOWEST), low, dimensions)
    upper, upper_first = _by_dimension(predicates, ranges & (high < HIGHEST), -high, dimensions)
    asked = (operator == DIFFERENT) | (operator == IS_PRESENT)
    other, other_first = _by_dimension(predicates, asked, low, dimensions)
    absent = np.flatnonzero(operator == IS_ABSENT).astype(np.int32)
    return Constraints(lower_first, lower, low[lower], upper_first, upper, high[upper], other_first, other, absent)


def _by_dimension(
    predicates: PredicateArrays, chosen: npt.NDArray[np.bool_], key: npt.NDArray[np.int64], dimensions: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """The chosen predicates, dimension by dimension and in order of a key within each; and where each begins."""
    numbers = np.flatnonzero(chosen)
    numbers = numbers[np.lexsort((key[numbers], predicates.dimension[numbers]))]
    first = np.searchsorted(predicates.dimension[numbers], np.arange(dimensions + 1))
    return numbers.astype(np.int32), first.astype(np.int64)


def _names(dimensions: Sequence[Dimension], count: int) -> Names:
    """The names of dimensions below this number, each with its type, whose own name has no null character."""
    texts = [f"{each.attribute}\0{each.kind.value if each.kind else ''}".encode() for each in dimensions]
    text = np.frombuffer(b"".join(texts), np.uint8)
    bounds = np.cumsum([0, *map(len, texts)])
    byte, (lower, equal, higher, end) = np.zeros_like(text), np.full((4, len(text)), NO_NODE, np.int32)
    numbers = np.array([each.number for each in dimensions], np.int32)
    name_of = np.full(count, UNKNOWN_NAME, np.int32)
    name_of[numbers] = np.arange(len(numbers))
    names = Names(byte, lower, equal, higher, end, text, bounds, numbers, name_of)
    enter_names(names, _middle_first(sorted(range(len(texts)), key=texts.__getitem__)))
    return names


def _middle_first(ordered: list[int]) -> npt.NDArray[np.int64]:
    """What is in order, in one that makes a trie shallow: the middle one, then those of both halves."""
    found, parts = list[int](), [ordered]
    for part in parts:
        if part:
            middle = len(part) // 2
            found.append(part[middle])
            parts += [part[:middle], part[middle + 1 :]]
    return np.array(found, np.int64)
