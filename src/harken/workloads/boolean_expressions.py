"""Subscriptions and events as BEGen makes them, with the parameters of Mishra and Sahni, figure 6.

Of thousands of attributes an event has fifteen: of subscriptions that draw theirs freely next to none would match.
So both are drawn around **topics**. A topic has some attributes, with a value each; its subscriptions ask for
values near by of some of these, and its events have nearly these values. How many topics there are decides with
what probability an event matches a subscription.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.errors import ArgumentError
from harken.workloads.specification import Specification, Workload, assembled

Integers = npt.NDArray[np.int64]

VALUES = 1_000
"""Values are 1 up to this."""

ROUND = 50
"""Ranges begin and end at multiples of this, as those that people write do."""

NEAR = 200
"""How far from its topic's value a range begins and ends at most, before it is rounded."""

SIZES, EVENT_SIZES = (4, 10), (10, 20)
"""The fewest and the most predicates of a subscription, and attributes of an event: 7 and 15 on average."""

TWO_SIDED = 0.5
"""The part of ranges that have two ends."""

ASTRAY = 0.5
"""The part of events with one value that is not their topic's."""

OTHER_TOPICS = 64
"""Topics that only events have: so any probability can be reached."""

_TRIALS = 20_000


@dataclass(frozen=True, slots=True)
class BooleanExpressions:
    """What to make: how many attributes there are, how they are drawn, and how much matches."""

    dimensions: int = 400
    matching: float = 0.01
    """The probability that an event matches a subscription."""
    distribution: Literal["uniform", "zipf"] = "uniform"
    equalities: float = 0.3
    """The part of predicates that are equalities."""


class _Topics(NamedTuple):
    """By topic: its attributes, how many of these it has, and the value of each."""

    attribute: Integers
    size: Integers
    value: Integers


class _Asked(NamedTuple):
    """By subscription, and then by predicate: the place of its attribute in the topic, and what is asked of it."""

    topic: Integers
    place: Integers
    low: Integers
    high: Integers
    """The least and the greatest value; 0 and VALUES + 1 if there is none."""
    is_there: npt.NDArray[np.bool_]


class BooleanExpressionWorkload(Workload):
    """Subscriptions of equalities and ranges, and events with few of many attributes."""

    def __init__(self, said: BooleanExpressions, seed: int) -> None:
        super().__init__(Specification(attributes=said.dimensions, low=1, high=VALUES), seed)
        if said.dimensions < EVENT_SIZES[1]:
            raise ArgumentError.of("dimensions", f"at least {EVENT_SIZES[1]}", said.dimensions)
        self._said = said
        chance = np.random.default_rng([seed, 2])
        within = self._matching_within(chance)
        if not 0 < said.matching <= within:
            raise ArgumentError.of("matching", f"more than 0 and at most {within:.2f}", said.matching)
        self._count = int(within / said.matching)
        self._share = said.matching * self._count / within
        """The part of events that are of a topic which subscriptions have."""
        self._topics = self._drawn_topics(chance, self._count + OTHER_TOPICS)

    def events(self, count: int, *, part: int = 0) -> pa.Table:
        """A table of events, one int32 column per attribute, null where an event has none; parts differ."""
        chance = np.random.default_rng([self._seed, 1, part])
        topic = chance.integers(0, self._count, count)
        other = chance.integers(self._count, len(self._topics.size), count)
        topic = np.where(chance.random(count) < self._share, topic, other)
        value = self._topics.value[topic]
        astray = np.flatnonzero(chance.random(count) < ASTRAY)
        value[astray, chance.integers(0, self._topics.size[topic[astray]])] = chance.integers(
            1, VALUES + 1, len(astray)
        )
        matrix = np.zeros((self._said.dimensions, count), np.int32)
        has = np.arange(EVENT_SIZES[1]) < self._topics.size[topic][:, None]
        rows = np.broadcast_to(np.arange(count)[:, None], has.shape)
        matrix[self._topics.attribute[topic][has], rows[has]] = value[has]
        columns = [pa.array(column, mask=column == 0) for column in matrix]
        return pa.table(dict(zip(self.specification.names, columns, strict=True)))

    def _chunk(self, first_id: int, size: int) -> pa.Table:
        chance = np.random.default_rng([self._seed, 0, first_id])
        asked = self._drawn_subscriptions(chance, chance.integers(0, self._count, size), self._topics)
        attribute = self._topics.attribute[asked.topic[:, None], asked.place]
        order = np.argsort(np.where(asked.is_there, attribute, self._said.dimensions), axis=1)
        attribute, low, high = (np.take_along_axis(each, order, 1) for each in (attribute, asked.low, asked.high))
        there = np.take_along_axis(asked.is_there, order, 1)
        is_equal, from_below, from_above = low == high, low > 0, high <= VALUES
        rows = np.stack([there & from_below, there & from_above & ~is_equal], axis=2)
        return assembled(first_id, self.specification.names, attribute, low, high, rows)

    def _drawn_topics(self, chance: np.random.Generator, count: int) -> _Topics:
        most = EVENT_SIZES[1]
        attribute = np.empty((count, most), np.int64)
        ranks = np.arange(1, self._said.dimensions + 1)
        weight = 1 / ranks if self._said.distribution == "zipf" else np.ones(len(ranks))
        for start in range(0, count, 1_024):
            # Exponential times, the more frequent the sooner: the first ones are drawn without any twice.
            times = chance.exponential(size=(min(1_024, count - start), len(ranks))) / weight
            attribute[start : start + 1_024] = np.argsort(times, axis=1)[:, :most]
        attribute = chance.permuted(attribute, axis=1)
        size = chance.integers(EVENT_SIZES[0], most + 1, count)
        return _Topics(attribute, size, chance.integers(1, VALUES + 1, (count, most)))

    def _drawn_subscriptions(self, chance: np.random.Generator, topic: Integers, topics: _Topics) -> _Asked:
        fewest, most = SIZES
        size = chance.integers(fewest, most + 1, len(topic))
        keys = chance.random((len(topic), EVENT_SIZES[1]))
        keys[np.arange(EVENT_SIZES[1]) >= topics.size[topic][:, None]] = 2.0
        place = np.argsort(keys, axis=1)[:, :most]
        value = topics.value[topic[:, None], place]
        low = (value - chance.integers(0, NEAR, place.shape)) // ROUND * ROUND
        high = -(-(value + chance.integers(0, NEAR, place.shape)) // ROUND) * ROUND
        one_sided = chance.random(place.shape)
        low = np.where(one_sided < (1 - TWO_SIDED) / 2, 0, np.maximum(low, 1))
        high = np.where(one_sided > (1 + TWO_SIDED) / 2, VALUES + 1, np.minimum(high, VALUES))
        is_equal = chance.random(place.shape) < self._said.equalities
        low, high = (np.where(is_equal, value, each) for each in (low, high))
        return _Asked(topic, place, low, high, np.arange(most) < size[:, None])

    def _matching_within(self, chance: np.random.Generator) -> float:
        """How probable it is that an event matches a subscription of its own topic."""
        topics = self._drawn_topics(chance, OTHER_TOPICS)
        asked = self._drawn_subscriptions(chance, chance.integers(0, OTHER_TOPICS, _TRIALS), topics)
        astray = chance.integers(0, topics.size[asked.topic])[:, None]
        value = chance.integers(1, VALUES + 1, _TRIALS)[:, None]
        missed = (asked.place == astray) & ((value < asked.low) | (value > asked.high)) & asked.is_there
        return float(1 - ASTRAY * missed.any(axis=1).mean())
