"""How subscriptions are divided over shards, and which shards an event can concern.

This is the grid of Tomasic et al. 2006, section 7.2: each shard holds the subscriptions of one partition, which a
constraint describes, and an event goes to the shards whose constraint it satisfies. Here partitions are made of
the values of one attribute that most subscriptions ask for by equality. A value that is asked for too often has
several shards; what does not fit any partition is held by shards without a constraint, to which all events go.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.model.expressions import FALSE, Expression, Membership
from harken.model.values import Value
from harken.normal.columns import NestedClauses, is_any_of

LEAST_SHARE = 0.5
"""Subscriptions that must ask for one attribute by equality for it to divide them."""

HOT = 1.25
"""How many times its fair part of the work one value may bring before it gets several shards."""

Constant: TypeAlias = int | str
Frequencies: TypeAlias = Mapping[Constant, float]
"""What part of the events has a value."""


@dataclass(frozen=True, slots=True)
class Division:
    """Which shard a subscription belongs to.

    Without an `attribute`, all shards are alike, and subscriptions are dealt out by their ids.
    """

    shards: int
    attribute: str | None = None
    shards_of: Mapping[Constant, tuple[int, ...]] = field(default_factory=dict)
    """By value of the attribute, the shards that its subscriptions are dealt out to."""
    free: tuple[int, ...] = ()
    """The shards of all others. Every event goes to these."""

    def constraint(self, shard: int) -> Expression | None:
        """What an event must satisfy to concern a shard; None if every event may."""
        if self.attribute is None or shard in self.free:
            return None
        values: list[Value] = [value for value, shards in self.shards_of.items() if shard in shards]
        return Membership(self.attribute, tuple(values)) if values else FALSE

    def assign(self, table: pa.Table) -> npt.NDArray[np.int64]:
        """The shard of every subscription of a compiled table."""
        if self.shards == 1:
            return np.zeros(table.num_rows, np.int64)
        return np.concatenate(
            [np.zeros(0, np.int64), *(self._assign(batch) for batch in table.to_batches() if batch.num_rows)]
        )

    def _assign(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        dealt = _numbers_of(batch.column(batch.schema.get_field_index("id")))
        everywhere = np.arange(self.shards) if self.attribute is None else np.array(self.free)
        if self.attribute is None:
            return everywhere[dealt % len(everywhere)]
        keys = _keys(batch, self.attribute)
        groups = list(dict.fromkeys(self.shards_of.values()))
        number = {shards: at for at, shards in enumerate(groups)}
        of_key = np.array(
            [number.get(self.shards_of.get(key, ()), -1) for key in keys.constants] or [-1], np.int64
        )
        group = keys.agreed(of_key)
        shard = everywhere[dealt % len(everywhere)]
        for at, shards in enumerate(groups):
            here = group == at
            shard[here] = np.array(shards)[dealt[here] % len(shards)]
        return shard

    def to_json(self) -> dict[str, Any]:  # as JSON has it
        """As it is written down."""
        dealt = [[value, list(shards)] for value, shards in self.shards_of.items()]
        return {"shards": self.shards, "attribute": self.attribute, "dealt": dealt, "free": list(self.free)}

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> Division:
        """What `to_json` wrote."""
        dealt = {value: tuple(shards) for value, shards in written["dealt"]}
        return cls(written["shards"], written["attribute"], dealt, tuple(written["free"]))


def divide(sample: Sequence[pa.RecordBatch], shards: int, events: Mapping[str, Frequencies]) -> Division:
    """A division for subscriptions like these and, where anything is known of them, for such events.

    Takes the attribute that divides most of the subscriptions, if it divides at least half of them.
    """
    total = sum(batch.num_rows for batch in sample)
    if shards == 1 or not total:
        return Division(shards)
    attribute, counts = _best_attribute(sample)
    keyed = sum(counts.values())
    if attribute is None or keyed < LEAST_SHARE * total or len(counts) < 2:
        return Division(shards)
    # New values, and what asks for several at once, always need a place that all events come to.
    free = max(1, round(shards * (total - keyed) / total))
    dividing = shards - free
    if dividing < 1:
        return Division(shards)
    work = _work(counts, events.get(attribute, {}))
    return Division(shards, attribute, _dealt(work, dividing), tuple(range(dividing, shards)))


def _work(counts: Mapping[Constant, int], frequency: Frequencies) -> dict[Constant, float]:
    """By value, the work it brings: subscriptions, times events if these are known."""
    if not frequency:
        return dict(counts)
    unseen = min(frequency.values()) / 2
    return {value: count * frequency.get(value, unseen) for value, count in counts.items()}


def _dealt(work: Mapping[Constant, float], shards: int) -> dict[Constant, tuple[int, ...]]:
    """Values to shards, so that none has much more work than others: the heaviest first, to the idlest."""
    fair = sum(work.values()) / shards
    load = np.zeros(shards)
    dealt = {}
    for value, amount in sorted(work.items(), key=lambda each: (-each[1], str(each[0]))):
        several = min(shards, math.ceil(amount / fair)) if amount > HOT * fair else 1
        idlest = np.argsort(load, kind="stable")[:several]
        load[idlest] += amount / several
        dealt[value] = tuple(sorted(int(each) for each in idlest))
    return dealt


def _best_attribute(sample: Sequence[pa.RecordBatch]) -> tuple[str | None, Counter[Constant]]:
    """The attribute that most subscriptions ask one value of, and how many ask for which."""
    asked: defaultdict[str, Counter[Constant]] = defaultdict(Counter)
    for batch in sample:
        for attribute in _columns(batch).predicates.field("attribute").dictionary.to_pylist():
            keys = _keys(batch, attribute)
            only = keys.agreed(np.arange(len(keys.constants)) if keys.constants else np.array([-1]))
            at, often = np.unique(only[only >= 0], return_counts=True)
            for place, count in zip(at.tolist(), often.tolist(), strict=True):
                asked[attribute][keys.constants[place]] += count
    if not asked:
        return None, Counter()
    best = max(asked, key=lambda name: (sum(asked[name].values()), len(asked[name]), name))
    return best, asked[best]


@dataclass(frozen=True, slots=True)
class _Keys:
    """The equalities that the subscriptions of a batch ask of one attribute."""

    constants: list[Constant]
    place: npt.NDArray[np.int64]
    """By equality, the place of its constant."""
    subscription: npt.NDArray[np.int64]
    """By equality, whose it is."""
    covered: npt.NDArray[np.bool_]
    """By subscription, whether every one of its clauses has such an equality."""

    def agreed(self, number: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """By subscription, the number that all its constants have; -1 if they differ, or a clause has none."""
        low = np.full(len(self.covered), np.iinfo(np.int64).max)
        high = np.full(len(self.covered), -1)
        numbers = number[self.place]
        np.minimum.at(low, self.subscription, numbers)
        np.maximum.at(high, self.subscription, numbers)
        return np.where(self.covered & (low == high), high, -1)


def _columns(batch: pa.RecordBatch) -> NestedClauses:
    return NestedClauses.of(batch.column(batch.schema.get_field_index("clauses")))


def _keys(batch: pa.RecordBatch, attribute: str) -> _Keys:
    columns = _columns(batch)
    predicates, clause_of, subscription_of = columns.predicates, columns.clause_of, columns.subscription_of
    asked = is_any_of(predicates.field("attribute"), {attribute})
    asked &= is_any_of(predicates.field("operator"), {"=", "in"})
    dividing = is_any_of(predicates.field("type"), _DIVIDING)
    keyed = np.flatnonzero(asked & dividing)
    constants, place = _constants(predicates.take(pa.array(keyed)))
    covered_clause = np.zeros(len(subscription_of), bool)
    covered_clause[clause_of[keyed]] = True
    covered_clause[clause_of[asked & ~dividing]] = False  # an alternative that no shard is for
    uncovered = np.bincount(subscription_of[~covered_clause], minlength=batch.num_rows)
    covered = (columns.clause_counts > 0) & (uncovered == 0)
    return _Keys(constants, place, subscription_of[clause_of[keyed]], covered)


_DIVIDING = {"int", "string"}
"""Types of constants that divide: their equality is plain."""


def _constants(predicates: pa.StructArray) -> tuple[list[Constant], npt.NDArray[np.int64]]:
    """The distinct constants of equalities, and the place of each one's."""
    numbers = predicates.field("integer").dictionary_encode()
    texts = predicates.field("text").dictionary_encode()
    known = numbers.dictionary.to_pylist()
    first = numbers.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    second = texts.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return known + texts.dictionary.to_pylist(), np.where(first >= 0, first, second + len(known))


def _numbers_of(ids: pa.Array) -> npt.NDArray[np.int64]:
    """A number for every id that does not depend on the others, to deal out by."""
    if pa.types.is_integer(ids.type):
        return np.abs(np.asarray(ids.to_numpy(zero_copy_only=False), np.int64))
    return np.array([zlib.crc32(id.encode()) for id in ids.to_pylist()], np.int64)


def router_rows(division: Division) -> Iterable[tuple[int, Expression]]:
    """The constraints of shards that have one, as subscriptions by shard."""
    for shard in range(division.shards):
        constraint = division.constraint(shard)
        if constraint is not None:
            yield shard, constraint
