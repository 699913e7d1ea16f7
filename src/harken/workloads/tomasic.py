"""The workloads of Tomasic et al. 2006, section 5: publications and subscriptions are constraints.

What they look like depends on how many there are of each, so that the expected number of matches does not.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from harken.model.expressions import And, Comparator, Comparison, Expression
from harken.model.values import Box
from harken.normal.compiled import OPERATOR_CODE, PREDICATE, TYPE_CODE, PredicateColumns, assemble
from harken.workloads.specification import CHUNK

MATCHES = 5
"""Matches to be expected in all, where their number is fixed."""

EPSILON = 1e-9
"""The width of a subscription's box: as good as a point."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many there are of each, which the constraints depend on."""

    subscriptions: int
    publications: int = 1


class ConstraintWorkload(ABC):
    """Subscriptions and publications of one kind, from a seed."""

    def __init__(self, sizes: Sizes, seed: int) -> None:
        self.sizes = sizes
        self._seed = seed

    def subscriptions(self) -> Iterator[pa.Table]:
        """Compiled tables of all subscriptions, with ids from 0."""
        for first in range(0, self.sizes.subscriptions, CHUNK):
            size = min(CHUNK, self.sizes.subscriptions - first)
            yield self._table(np.random.default_rng([self._seed, 0, first]), first, size)

    def publications(self, part: int = 0) -> list[Expression]:
        """As many publications as the sizes say; parts differ."""
        chance = np.random.default_rng([self._seed, 1, part])
        return [self._publication(chance) for _ in range(self.sizes.publications)]

    @abstractmethod
    def _table(self, chance: np.random.Generator, first: int, size: int) -> pa.Table:
        """So many subscriptions, with ids from `first`."""

    @abstractmethod
    def _publication(self, chance: np.random.Generator) -> Expression:
        """One publication."""


class EqualityWorkload(ConstraintWorkload):
    """One equality with a number up to `values`."""

    @property
    def values(self) -> int:
        """How many numbers there are to draw from."""
        return max(1, self.sizes.subscriptions * self.sizes.publications // MATCHES)

    def _table(self, chance: np.random.Generator, first: int, size: int) -> pa.Table:
        return _equalities(["x"], chance.integers(1, self.values + 1, (size, 1)), first)

    def _publication(self, chance: np.random.Generator) -> Expression:
        return Comparison("x", Comparator.EQ, int(chance.integers(1, self.values + 1)))


class ProportionalWorkload(EqualityWorkload):
    """The same with few numbers: a hundredth of the subscriptions match."""

    @property
    def values(self) -> int:
        """How many numbers there are to draw from."""
        return 100 * self.sizes.publications


class IntermediateWorkload(ConstraintWorkload):
    """Equalities with 0 or 1 on many attributes: half of all agree on each, hardly any on all."""

    @property
    def terms(self) -> int:
        """How many attributes there are, so that about five pairs agree on all."""
        pairs = self.sizes.subscriptions * self.sizes.publications
        return max(1, round(math.log2(max(1.0, pairs / MATCHES))))

    def _table(self, chance: np.random.Generator, first: int, size: int) -> pa.Table:
        return _equalities(self._names, chance.integers(0, 2, (size, self.terms)), first)

    def _publication(self, chance: np.random.Generator) -> Expression:
        values = chance.integers(0, 2, self.terms).tolist()
        terms = tuple(
            Comparison(name, Comparator.EQ, value) for name, value in zip(self._names, values, strict=True)
        )
        return terms[0] if len(terms) == 1 else And(terms)

    @property
    def _names(self) -> list[str]:
        return [f"x{number:02d}" for number in range(self.terms)]


class GeometricWorkload(ConstraintWorkload):
    """Subscriptions to tiny boxes in the unit square, and publications of boxes that overlap about five."""

    @property
    def width(self) -> float:
        """Of a publication's box."""
        return math.sqrt(min(1.0, MATCHES / (self.sizes.subscriptions * self.sizes.publications)))

    def _table(self, chance: np.random.Generator, first: int, size: int) -> pa.Table:
        corners = chance.random((size, 2))
        shapes = np.concatenate([corners, corners + EPSILON], axis=1)
        offsets = pa.array(np.arange(0, 4 * size + 1, 4), pa.int32())
        predicates = PredicateColumns(
            ["b"],
            np.zeros(size, np.int32),
            np.full(size, OPERATOR_CODE["overlaps"], np.int8),
            np.full(size, TYPE_CODE["box"], np.int8),
            np.zeros(size, np.int64),
            np.zeros(size),
            pa.nulls(size, pa.string()),
            pa.ListArray.from_arrays(offsets, pa.array(shapes.ravel())).cast(PREDICATE.field("shape").type),
        )
        return _one_clause_each(predicates, 1, first, size)

    def _publication(self, chance: np.random.Generator) -> Expression:
        x, y = (float(each) for each in chance.random(2) * (1 - self.width))
        return Comparison("b", Comparator.EQ, Box(x, y, x + self.width, y + self.width))


CONSTRAINT_WORKLOADS: dict[str, type[ConstraintWorkload]] = {
    "fixed": EqualityWorkload,
    "proportional": ProportionalWorkload,
    "large-intermediate-results": IntermediateWorkload,
    "fixed-geometric": GeometricWorkload,
}


def _equalities(names: list[str], values: np.ndarray, first: int) -> pa.Table:
    size, width = values.shape
    attribute = np.tile(np.arange(width, dtype=np.int32), size)
    operator = np.full(size * width, OPERATOR_CODE["="], np.int8)
    predicates = PredicateColumns.numeric(names, attribute, operator, values.ravel().astype(np.int64))
    return _one_clause_each(predicates, width, first, size)


def _one_clause_each(predicates: PredicateColumns, width: int, first: int, size: int) -> pa.Table:
    return assemble(
        pa.array(np.arange(first, first + size)),
        np.arange(size + 1, dtype=np.int32),
        np.arange(0, size * width + 1, width, dtype=np.int32),
        predicates,
    )
