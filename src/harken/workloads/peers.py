"""Workloads that other systems have been measured on, and one in which telling is most of the work."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from harken.workloads.specification import Specification, Workload, assembled


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conjunctions of so many attributes, drawn evenly, as are values from 0 on; events have some attributes."""

    attributes: int
    asked: int
    """Predicates of a subscription, each on another attribute."""
    having: int
    """Attributes of an event."""
    values: int
    equalities: float = 1.0
    """The part of predicates that are equalities; the others are ranges."""
    width: int = 0
    """How far a range reaches."""


def equalities() -> Conditions:
    """Equalities on 3 of 20 attributes with 50 values each."""
    return Conditions(attributes=20, asked=3, having=20, values=50)


def ranges_too() -> Conditions:
    """Two equalities for three ranges, on 5 of 50 attributes; events have 20."""
    return Conditions(attributes=50, asked=5, having=20, values=1_001, equalities=0.4, width=100)


def parallel() -> Conditions:
    """Ten equalities on 100 attributes with 15 values each; events have 50 (Farroukh et al. 2009, table 1)."""
    return Conditions(attributes=100, asked=10, having=50, values=15)


def parallel_blocks() -> Conditions:
    """The same with six equalities, and events of 30: the paper's workload for the size of blocks."""
    return Conditions(attributes=100, asked=6, having=30, values=15)


def output() -> Conditions:
    """One equality each: an event matches one subscription in a hundred, whatever else it has."""
    return Conditions(attributes=1, asked=1, having=1, values=100)


class ConditionWorkload(Workload):
    """Subscriptions and events by such conditions."""

    def __init__(self, said: Conditions, seed: int) -> None:
        super().__init__(Specification(attributes=said.attributes, low=0, high=said.values - 1), seed)
        self._said = said

    def events(self, count: int, *, part: int = 0) -> pa.Table:
        """A table of events, one int32 column per attribute, null where an event has none; parts differ."""
        said, chance = self._said, np.random.default_rng([self._seed, 1, part])
        value = chance.integers(0, said.values, (said.attributes, count), dtype=np.int32)
        lacks = np.argsort(chance.random(value.shape), axis=0) >= said.having
        columns = [pa.array(column, mask=mask) for column, mask in zip(value, lacks, strict=True)]
        return pa.table(dict(zip(self.specification.names, columns, strict=True)))

    def _chunk(self, first_id: int, size: int) -> pa.Table:
        said, chance = self._said, np.random.default_rng([self._seed, 0, first_id])
        drawn = np.argpartition(chance.random((size, said.attributes)), said.asked - 1, axis=1)
        attribute = np.sort(drawn[:, : said.asked], axis=1)
        value = chance.integers(0, said.values, attribute.shape)
        is_equal = chance.random(attribute.shape) < said.equalities
        rows = np.stack([np.ones(attribute.shape, np.bool_), ~is_equal], axis=2)
        high = np.where(is_equal, value, value + said.width)
        return assembled(first_id, self.specification.names, attribute, value, high, rows)
