"""Workload specifications after Fabret et al. 2000, section 6.1, and the generator that follows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.normal.compiled import OPERATOR_CODE, PredicateColumns, assemble

CHUNK = 262_144
"""Subscriptions made together."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """A predicate that every subscription has."""

    attribute: int
    operator: str = "="


@dataclass(frozen=True, slots=True)
class Specification:
    """What subscriptions and events look like. Values are integers, uniform over their domain."""

    attributes: int = 32
    """How many there are; events have them all."""
    fixed: tuple[Fixed, ...] = ()
    free: int = 3
    """Further predicates, each on another attribute of `free_from`."""
    free_from: tuple[int, ...] = ()
    free_operators: tuple[str, ...] = ("=",)
    low: int = 1
    high: int = 35
    domains: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Attributes whose values lie elsewhere."""
    selectivity: float | None = None
    """For order predicates: the part of events that satisfies each; None draws constants like values."""

    @property
    def names(self) -> list[str]:
        """The attributes' names."""
        digits = max(2, len(str(self.attributes - 1)))
        return [f"a{number:0{digits}d}" for number in range(self.attributes)]

    def domain(self, attribute: int) -> tuple[int, int]:
        """The least and greatest value of an attribute."""
        return self.domains.get(attribute, (self.low, self.high))


def assembled(
    first_id: int,
    names: list[str],
    attribute: npt.NDArray[np.int64],
    low: npt.NDArray[np.int64],
    high: npt.NDArray[np.int64],
    rows: npt.NDArray[np.bool_],
) -> pa.Table:
    """Subscriptions with one predicate per column, `=` if its ends are one and otherwise `>=` and `<=`.

    Which of the two rows of each predicate there are is said by `rows`.
    """
    below = np.where(low == high, OPERATOR_CODE["="], OPERATOR_CODE[">="])
    operator = np.stack([below, np.full(low.shape, OPERATOR_CODE["<="])], axis=2)
    predicates = PredicateColumns.numeric(
        names,
        np.repeat(attribute[:, :, None], 2, axis=2)[rows].astype(np.int32),
        operator[rows].astype(np.int8),
        np.stack([low, high], axis=2)[rows],
    )
    size = len(attribute)
    return assemble(
        pa.array(np.arange(first_id, first_id + size)),
        np.arange(size + 1, dtype=np.int32),
        np.concatenate([[0], np.cumsum(rows.sum(axis=(1, 2)))]).astype(np.int32),
        predicates,
    )


class Workload:
    """Subscriptions and events by a specification. The same seed makes the same ones, in any order of asking."""

    def __init__(self, specification: Specification, seed: int) -> None:
        self.specification = specification
        self._seed = seed

    def subscriptions(self, count: int, *, first_id: int = 0) -> Iterator[pa.Table]:
        """Compiled tables of subscriptions with ids first_id, first_id + 1, ..., chunk by chunk."""
        for start in range(0, count, CHUNK):
            size = min(CHUNK, count - start)
            yield self._chunk(first_id + start, size)

    def events(self, count: int, *, part: int = 0) -> pa.Table:
        """A table of events, one int32 column per attribute; parts differ."""
        chance = np.random.default_rng([self._seed, 1, part])
        columns = [
            self._values(chance, np.full(count, attribute)).astype(np.int32)
            for attribute in range(self.specification.attributes)
        ]
        return pa.table(dict(zip(self.specification.names, columns, strict=True)))

    def _chunk(self, first_id: int, size: int) -> pa.Table:
        said = self.specification
        chance = np.random.default_rng([self._seed, 0, first_id])
        attribute = np.empty((size, len(said.fixed) + said.free), np.int64)
        operator = np.empty(attribute.shape, np.int8)
        for column, fixed in enumerate(said.fixed):
            attribute[:, column] = fixed.attribute
            operator[:, column] = OPERATOR_CODE[fixed.operator]
        if said.free:
            among = np.array(said.free_from)
            picked = np.argpartition(chance.random((size, len(among))), said.free - 1, axis=1)[:, : said.free]
            attribute[:, len(said.fixed) :] = np.sort(among[picked], axis=1)
            codes = np.array([OPERATOR_CODE[each] for each in said.free_operators], np.int8)
            operator[:, len(said.fixed) :] = chance.choice(codes, (size, said.free))
        value = self._constants(chance, attribute, operator)
        width = attribute.shape[1]
        predicates = PredicateColumns.numeric(
            said.names, attribute.ravel().astype(np.int32), operator.ravel(), value.ravel()
        )
        return assemble(
            pa.array(np.arange(first_id, first_id + size)),
            np.arange(size + 1, dtype=np.int32),
            np.arange(0, size * width + 1, width, dtype=np.int32),
            predicates,
        )

    def _values(self, chance: np.random.Generator, attribute: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        domains = np.array([self.specification.domain(each) for each in range(self.specification.attributes)])
        low, high = domains[attribute, 0], domains[attribute, 1]
        return np.asarray(chance.integers(low, high + 1), np.int64)

    def _constants(
        self, chance: np.random.Generator, attribute: npt.NDArray[np.int64], operator: npt.NDArray[np.int8]
    ) -> npt.NDArray[np.int64]:
        value = self._values(chance, attribute)
        part = self.specification.selectivity
        if part is None:
            return value
        # x < c holds for the part of the domain below c; around the asked-for part, constants vary a little.
        span = self.specification.high - self.specification.low + 1
        offset = np.maximum(1, np.rint(span * part * chance.uniform(0.5, 1.5, value.shape))).astype(np.int64)
        below = operator == OPERATOR_CODE["<"]
        return np.where(below, self.specification.low + offset, self.specification.high - offset)
