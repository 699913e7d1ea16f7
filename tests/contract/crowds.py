"""The laws under load: events with tens of thousands of matches, calls in any order, several threads at once.

As `checks`, but with a crowd of subscriptions of one form, of which arithmetic says which match: nobody has to
evaluate each of them to know what is right.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken import Engine
from harken.model.evaluation import truth
from harken.model.expressions import Expression
from tests.contract.checks import Event, Make
from tests.strategies import FREE, Generator

OTHERS = 1_000_000
"""Ids from here on are not of the crowd."""

THREADS = 4

Ids = TypeVar("Ids", int, npt.NDArray[np.int64])

ALIKE = 16
"""So many of a crowd ask for the same: a crowd is there for its matches, not for its constants."""


def crowd(first: int, last: int) -> list[tuple[int, str]]:
    """Subscriptions of which an event a = 1, b = n satisfies those of a larger rank."""
    return [(id, f"a = 1 AND b < {rank(id)}") for id in range(first, last)]


def rank(id: Ids) -> Ids:
    return id - id % ALIKE


def event_with(matches: int, size: int) -> Event:
    """An event with so many matches, to the next that are not alike, in a crowd of this size."""
    return {"a": 1, "b": max(size - matches, 0) - 1}


def crowd_matches(events: Sequence[Event], size: int) -> list[int]:
    """What a crowd of this size matches, by arithmetic."""
    first = [rank(int(event["b"])) + ALIKE for event in events]
    return numbered(
        np.repeat(np.arange(len(first)), [max(size - each, 0) for each in first]), _ranges(first, size)
    )


def _ranges(first: Sequence[int], last: int) -> npt.NDArray[np.int64]:
    return np.concatenate([np.arange(each, last) for each in first])


def numbered(rows: npt.ArrayLike, ids: npt.ArrayLike) -> list[int]:
    """Matches as one number each, ascending: tens of thousands of pairs would take long to compare."""
    return np.sort(np.asarray(rows, np.int64) << 32 | np.asarray(ids, np.int64)).tolist()


def found_one_by_one(engine: Engine, events: Sequence[Event]) -> list[int]:
    """All matches, event by event."""
    found = [engine.match(event) for event in events]
    return numbered(np.repeat(np.arange(len(found)), list(map(len, found))), [id for ids in found for id in ids])


def found_in_batch(engine: Engine, events: object) -> list[int]:
    """All matches, in one call."""
    rows, ids = (column.to_numpy() for column in engine.match_batch(events).columns)
    assert np.all(rows[1:] >= rows[:-1]), "events ascend"
    return numbered(rows, ids)


def check_many_matches_and_few_take_turns(make: Make, size: int, seed: int) -> None:
    """A batch with many matches leaves alone what single events use, and the other way round; in any order."""
    engine = make()
    engine.subscribe_many(crowd(0, size))
    chance = random.Random(seed)
    few, many = [0, ALIKE, 3 * ALIKE], [size // 4, size // 2, size - 1]
    for turn in range(6):
        matches = chance.choice(many) if turn % 2 else chance.choice(few)
        events = [event_with(matches, size), event_with(chance.choice(few), size)]
        match = (found_one_by_one, found_in_batch)[(turn // 2 + seed) % 2]
        assert match(engine, events) == crowd_matches(events, size)
        assert found_one_by_one(engine, events[1:]) == crowd_matches(events[1:], size)


def check_calls_mixed_at_random_agree_with_the_semantics(make: Make, size: int, seed: int) -> None:
    """Matching one and many, changing, saving and loading, in an order that nobody thought of."""
    with tempfile.TemporaryDirectory() as folder:
        mixture = _Mixture(make(), size, seed, Path(folder))
        mixture.grow()
        for _ in range(24):
            mixture.chance.choice(mixture.calls)()


class _Mixture:
    """An engine, and a model of what it holds: a crowd without some, and expressions of any form."""

    def __init__(self, engine: Engine, size: int, seed: int, folder: Path) -> None:
        self.engine = engine
        self.size, self.folder = size, folder
        self.chance = random.Random(seed)
        self.generator = Generator(f"mixture-{seed}", FREE)
        self.crowd: set[int] = set()
        self.others: dict[int, Expression] = {}
        # Matching is what most calls are, and comes between any two others.
        self.calls: list[Callable[[], None]] = [
            *2 * [self.match_one, self.match_many],
            *2 * [self.join, self.leave],
            self.grow,
            self.shrink,
            self.replace,
            self.save_and_load,
        ]

    def grow(self) -> None:
        top = max(self.crowd, default=-1) + 1
        if top < 2 * self.size:
            self.engine.subscribe_many(crowd(top, top + self.size // 2))
            self.crowd.update(range(top, top + self.size // 2))

    def shrink(self) -> None:
        gone = self.chance.sample(sorted(self.crowd), len(self.crowd) // 3)
        self.engine.unsubscribe_many(gone)
        self.crowd.difference_update(gone)

    def join(self) -> None:
        id, expression = OTHERS + len(self.others), self.generator.expression()
        if id not in self.others:
            self.engine.subscribe(id, expression)
            self.others[id] = expression

    def leave(self) -> None:
        if self.others:
            id = self.chance.choice(sorted(self.others))
            self.engine.unsubscribe(id)
            del self.others[id]

    def replace(self) -> None:
        new = {
            id: self.generator.expression()
            for id in self.chance.sample(sorted(self.others), len(self.others) // 2)
        }
        self.engine.subscribe_many(new.items(), replace=True)
        self.others |= new

    def save_and_load(self) -> None:
        self.engine.save(self.folder / "engine")
        self.engine = Engine.load(self.folder / "engine")

    def match_one(self) -> None:
        events = self.events(1)
        assert found_one_by_one(self.engine, events) == self.expected(events)

    def match_many(self) -> None:
        events = self.events(self.chance.choice([2, 5]))
        assert found_in_batch(self.engine, events) == self.expected(events)

    def events(self, count: int) -> list[Event]:
        """Events of any form that also match some of the crowd: most few of it, some nearly all."""
        thresholds = [self.chance.choice([0, 1, 2 * self.size - 3, 2 * self.size]) for _ in range(count)]
        return [{**self.generator.event(), "a": 1, "b": threshold} for threshold in thresholds]

    def expected(self, events: Sequence[Event]) -> list[int]:
        crowd, rows, ids = np.array(sorted(self.crowd), np.int64), list[int](), list[int]()
        for row, event in enumerate(events):
            found = crowd[rank(crowd) > int(event["b"])].tolist()
            found += [id for id, each in self.others.items() if truth(each, event) is True]
            rows += len(found) * [row]
            ids += found
        return numbered(rows, ids)


def check_several_threads_match_at_once(make: Make, size: int, seed: int) -> None:
    """Single events and batches, with few matches and with many, of dictionaries and of columns."""
    engine = make()
    engine.subscribe_many(crowd(0, size))
    with tempfile.TemporaryDirectory() as folder:
        engine.save(Path(folder) / "engine")
        loaded = Engine.load(Path(folder) / "engine")
        with ThreadPoolExecutor(THREADS) as pool:
            turns = [(engine, loaded)[number % 2] for number in range(2 * THREADS)]
            for done in [pool.submit(_match_in_turns, each, size, seed + at) for at, each in enumerate(turns)]:
                done.result()


def _match_in_turns(engine: Engine, size: int, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(5):
        events = [
            event_with(chance.choice([0, ALIKE, 3 * ALIKE, size // 3, size - 1]), size)
            for _ in range(chance.choice([1, 3]))
        ]
        given, match = chance.choice(
            [(events, found_one_by_one), (events, found_in_batch), (pa.Table.from_pylist(events), found_in_batch)]
        )
        assert match(engine, given) == crowd_matches(events, size)


CROWD_CHECKS: tuple[Callable[[Make, int, int], None], ...] = tuple(
    check for name, check in list(globals().items()) if name.startswith("check_")
)
