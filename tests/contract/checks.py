"""The laws of matching, as named checks that any engine can be put to.

A check takes a function that makes a fresh, empty engine and a case (subscriptions and events), and asserts
one law. Everything that matches is held to the same checks: registered algorithms, databases, Spark.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from harken import Engine
from harken.compiler import Texts, compile_texts
from harken.model.evaluation import truth
from harken.model.events import FlatEvent, flatten
from harken.model.expressions import Expression
from harken.model.values import Box, Kind, Point, Value
from tests.strategies import FREE, TYPED, Generator, Vocabulary

Event = dict[str, Value]
Matches = list[tuple[int, int]]


class Matching(Protocol):
    """The part of an engine that the laws speak of."""

    def subscribe_many(self, rows: object, *, replace: bool = ...) -> object: ...

    def unsubscribe_many(self, ids: Iterable[int]) -> None: ...

    def match(self, event: Event) -> list[int]: ...

    def match_batch(self, events: object) -> pa.Table: ...


Make = Callable[[], Engine]


@dataclass(frozen=True)
class Case:
    """Subscriptions by id, and events to match them with."""

    subscriptions: Mapping[int, Expression]
    events: Sequence[Event]
    vocabulary: Vocabulary

    @classmethod
    def made(cls, seed: str, vocabulary: Vocabulary = FREE, subscriptions: int = 60, events: int = 40) -> Case:
        """A case from a seed. Where attributes may hold anything, some hold what the language has no type for."""
        generator = Generator(seed, vocabulary, foreign=0.1 if vocabulary is FREE else 0.0)
        return cls(
            {number * 7: generator.expression() for number in range(subscriptions)},
            [generator.event() for _ in range(events)],
            vocabulary,
        )

    @cached_property
    def flat_events(self) -> list[FlatEvent]:
        """The events as the semantics see them."""
        return [flatten(event)[0] for event in self.events]

    @cached_property
    def matches(self) -> Mapping[int, frozenset[int]]:
        """By id the events that must match, by the semantics themselves: found once, whoever is held to them."""
        return {
            id: frozenset(row for row, event in enumerate(self.flat_events) if truth(expression, event) is True)
            for id, expression in self.subscriptions.items()
        }

    def expected(self, ids: Iterable[int] | None = None) -> Matches:
        """What must match."""
        wanted = self.subscriptions if ids is None else ids
        return sorted((row, id) for id in wanted for row in self.matches[id])


def found_one_by_one(engine: Matching, events: Sequence[Event]) -> Matches:
    """All matches, event by event."""
    return sorted((row, id) for row, event in enumerate(events) for id in engine.match(event))


def found_in_batch(engine: Matching, events: object) -> Matches:
    """All matches, in one call."""
    table = engine.match_batch(events)
    rows = table.column("event").to_pylist()
    assert rows == sorted(rows), "events ascend"
    return sorted(zip(rows, table.column("subscription").to_pylist(), strict=True))


def check_agrees_with_the_semantics(make: Make, case: Case) -> None:
    engine = make()
    engine.subscribe_many(case.subscriptions.items())
    assert found_one_by_one(engine, case.events) == case.expected()


def check_a_batch_gives_what_a_loop_gives(make: Make, case: Case) -> None:
    engine = make()
    engine.subscribe_many(case.subscriptions.items())
    assert found_in_batch(engine, case.events) == found_one_by_one(engine, case.events)


def check_arrow_gives_what_dictionaries_give(make: Make, case: Case) -> None:
    engine = make()
    engine.subscribe_many(case.subscriptions.items())
    table = arrow_events(case.events, case.vocabulary)
    assert found_in_batch(engine, table) == case.expected()
    parts = [table.slice(0, 7), table.slice(7, 1), table.slice(8)]
    assert found_in_batch(engine, pa.concat_tables(parts)) == case.expected()


def check_the_order_of_subscribing_is_irrelevant(make: Make, case: Case) -> None:
    rows = list(case.subscriptions.items())
    random.Random(1).shuffle(rows)
    engine = make()
    for start in range(0, len(rows), 7):
        engine.subscribe_many(rows[start : start + 7])
    assert found_in_batch(engine, case.events) == case.expected()


def check_one_by_one_is_like_many(make: Make, case: Case) -> None:
    engine = make()
    for id, expression in case.subscriptions.items():
        engine.subscribe(id, expression)
    assert found_in_batch(engine, case.events) == case.expected()


def check_adding_and_removing_leaves_no_trace(make: Make, case: Case) -> None:
    kept, passing = _halves(case)
    engine = make()
    engine.subscribe_many((id, case.subscriptions[id]) for id in kept)
    engine.subscribe_many((id, case.subscriptions[id]) for id in passing)
    engine.unsubscribe_many(passing)
    assert len(engine) == len(kept)
    assert found_in_batch(engine, case.events) == case.expected(kept)
    assert found_one_by_one(engine, case.events) == case.expected(kept)


def check_removing_one_disturbs_no_other(make: Make, case: Case) -> None:
    engine = make()
    engine.subscribe_many(case.subscriptions.items())
    remaining = list(case.subscriptions)
    random.Random(2).shuffle(remaining)
    while remaining:
        engine.unsubscribe(remaining.pop())
        if len(remaining) % 9 == 0:
            assert found_in_batch(engine, case.events) == case.expected(remaining)


def check_a_replaced_subscription_is_the_new_one(make: Make, case: Case) -> None:
    ids = list(case.subscriptions)
    rotated = dict(zip(ids, [case.subscriptions[id] for id in ids[1:] + ids[:1]], strict=True))
    engine = make()
    engine.subscribe_many(rotated.items())
    engine.subscribe_many(case.subscriptions.items(), replace=True)
    assert len(engine) == len(ids)
    assert found_in_batch(engine, case.events) == case.expected()


def check_room_is_used_again(make: Make, case: Case) -> None:
    kept, passing = _halves(case)
    engine = make()
    for _ in range(3):
        engine.subscribe_many((id, case.subscriptions[id]) for id in passing)
        engine.unsubscribe_many(passing)
    engine.subscribe_many((id, case.subscriptions[id]) for id in kept)
    assert found_in_batch(engine, case.events) == case.expected(kept)


def check_saving_and_loading_is_identity(make: Make, case: Case) -> None:
    engine = make()
    engine.subscribe_many(case.subscriptions.items())
    gone = list(case.subscriptions)[::5]
    engine.unsubscribe_many(gone)
    left = [id for id in case.subscriptions if id not in gone]
    with tempfile.TemporaryDirectory() as folder:
        engine.save(Path(folder) / "saved")
        loaded = Engine.load(Path(folder) / "saved")
        assert sorted(loaded) == sorted(left)
        assert found_in_batch(loaded, case.events) == case.expected(left)
        loaded.subscribe_many((id, case.subscriptions[id]) for id in gone)
        assert found_in_batch(loaded, case.events) == case.expected()


def check_the_compiled_form_loads_like_text(make: Make, case: Case) -> None:
    texts = Texts(list(case.subscriptions), list(case.subscriptions.values()))
    engine = make()
    engine.subscribe_many(compile_texts(texts).table)
    assert found_in_batch(engine, case.events) == case.expected()


def check_what_is_known_of_a_subscription_is_what_was_asked(make: Make, case: Case) -> None:
    engine = make()
    engine.subscribe_many(case.subscriptions.items())
    for id in case.subscriptions:
        known = engine.subscription(id).expression
        for row in range(10):
            assert (truth(known, case.flat_events[row]) is True) == (row in case.matches[id])
        for row in range(id % 5, 10, 5):  # to explain takes longer
            assert engine.explain(case.events[row], id).matches == (row in case.matches[id])


def check_an_empty_engine_matches_nothing(make: Make, case: Case) -> None:
    engine = make()
    assert found_in_batch(engine, case.events) == []
    assert found_in_batch(engine, []) == []
    assert engine.match({}) == []


CHECKS: tuple[Callable[[Make, Case], None], ...] = tuple(
    check for name, check in list(globals().items()) if name.startswith("check_")
)
ON_TYPED_EVENTS = (check_arrow_gives_what_dictionaries_give,)
"""Checks that need every attribute to be of one type, as columns are."""


def vocabulary_for(check: Callable[[Make, Case], None]) -> Vocabulary:
    """The attributes and kinds a check can be put to."""
    return TYPED if check in ON_TYPED_EVENTS else FREE


_ARROW_TYPES = {
    Kind.STRING: pa.string(),
    Kind.BOOL: pa.bool_(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Kind.POINT: pa.list_(pa.float64(), 2),
    Kind.BOX: pa.list_(pa.float64(), 4),
}


def arrow_events(events: Sequence[Event], vocabulary: Vocabulary) -> pa.Table:
    """Events as columns. Numbers become an int and a float column's worth of decimals: exact, as they must be."""
    columns = {}
    for name, (kind,) in vocabulary.items():
        values = [event.get(name) for event in events]
        if kind is Kind.NUMBER:
            columns[name] = _number_column(values)
        elif kind in (Kind.POINT, Kind.BOX):
            columns[name] = pa.array([_coordinates(value) for value in values], _ARROW_TYPES[kind])
        else:
            columns[name] = pa.array(values, _ARROW_TYPES[kind])
    return pa.table(columns)


def _coordinates(value: object) -> list[float] | None:
    if isinstance(value, Point):
        return [value.x, value.y]
    return list(value.bounds) if isinstance(value, Box) else None


def _number_column(values: Sequence[object]) -> pa.Array:
    from decimal import Decimal

    exact = [None if value is None else Decimal(repr(value)) for value in values]
    return pa.array(exact, pa.decimal128(38, 4))


def _halves(case: Case) -> tuple[list[int], list[int]]:
    ids = list(case.subscriptions)
    return ids[::2], ids[1::2]
