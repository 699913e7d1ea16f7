"""The workload of Kale et al. 2005, section 6: some of many properties asked for, and events with few of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.normal.compiled import OPERATOR_CODE, TYPE_CODE, PredicateColumns, assemble
from harken.workloads.specification import Specification, Workload

AROUND = 0.5
"""How far what a property is asked with is from the average, at most, as a part of that."""


@dataclass(frozen=True, slots=True)
class LightQueries(Specification):
    """Subscriptions that ask for some properties, and against some; events with few, in one of two ways."""

    attributes: int = 100
    ones: float = 0.05
    """About how likely a subscription asks that a property is there."""
    zeros: float = 0.05
    """About how likely it asks that it is not."""
    most: int = 100
    """The model's c: no event has more properties."""
    alpha: float = 2.0
    """An event has t properties, t from 1 on, with a chance in proportion to t to the power of -alpha."""
    chance: float | None = None
    """Instead of that: an event has each property with this chance."""


def zipf() -> LightQueries:
    """Most events have one property or two (figures 3 to 5)."""
    return LightQueries()


def exponential() -> LightQueries:
    """Events have each property with the same chance (figures 3, 4 and 6)."""
    return LightQueries(chance=0.1)


class LightQueryWorkload(Workload):
    """Subscriptions and events of the light query model. Attributes are booleans, and events have them all."""

    specification: LightQueries

    def __init__(self, specification: LightQueries, seed: int) -> None:
        super().__init__(specification, seed)
        self.specification = specification

    def events(self, count: int, *, part: int = 0) -> pa.Table:
        """A table of events, one boolean column per attribute; parts differ."""
        chance = np.random.default_rng([self._seed, 1, part])
        said = self.specification
        drawn = chance.random((count, said.attributes))
        has = drawn < said.chance if said.chance is not None else self._first_of(drawn, self._sizes(chance, count))
        return pa.table({name: has[:, at] for at, name in enumerate(said.names)})

    def _sizes(self, chance: np.random.Generator, count: int) -> npt.NDArray[np.int64]:
        """How many properties events have."""
        sizes = np.arange(1, self.specification.most + 1)
        weights = sizes ** -float(self.specification.alpha)
        return chance.choice(sizes, count, p=weights / weights.sum())

    @staticmethod
    def _first_of(drawn: npt.NDArray[np.float64], sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Those of each row that are among its so many least ones: all choices are equally likely."""
        ascending = np.argsort(drawn, axis=1)
        has = np.zeros(drawn.shape, np.bool_)
        np.put_along_axis(has, ascending, np.arange(drawn.shape[1]) < sizes[:, None], axis=1)
        return has

    def _chunk(self, first_id: int, size: int) -> pa.Table:
        said = self.specification
        # The same for all chunks: properties differ, not subscribers.
        likely = np.random.default_rng([self._seed, 2]).uniform(1 - AROUND, 1 + AROUND, (2, said.attributes))
        ones, zeros = said.ones * likely[0], said.zeros * likely[1]
        drawn = np.random.default_rng([self._seed, 0, first_id]).random((size, said.attributes))
        row, attribute = np.nonzero(drawn < ones + zeros)
        value = drawn[row, attribute] < ones[attribute]
        bounds = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=size))]).astype(np.int32)
        operator = np.full(len(row), OPERATOR_CODE["="], np.int8)
        predicates = PredicateColumns.numeric(
            said.names, attribute.astype(np.int32), operator, value.astype(np.int64)
        )
        predicates = replace(predicates, type=np.full(len(row), TYPE_CODE["bool"], np.int8))
        return assemble(
            pa.array(np.arange(first_id, first_id + size)), np.arange(size + 1, dtype=np.int32), bounds, predicates
        )
