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

import pyarrow as pa

from harken import Engine
from harken.model.evaluation import truth
from harken.model.expressions import Expression
from tests.contract.checks import Event, Make, Matches, found_in_batch, found_one_by_one
from tests.strategies import FREE, Generator

OTHERS = 1_000_000
"""Ids from here on are not of the crowd."""

THREADS = 4

ALIKE = 16
"""So many of a crowd ask for the same: a crowd is there for its matches, not for its constants."""


def crowd(first: int, last: int) -> list[tuple[int, str]]:
    """Subscriptions of which an event a = 1, b = n satisfies those of a larger rank."""
    return [(id, f"a = 1 AND b < {rank(id)}") for id in range(first, last)]


def rank(id: int) -> int:
    return id - id % ALIKE


def event_with(matches: int, size: int) -> Event:
    """An event with so many matches, to the next that are not alike, in a crowd of this size."""
    return {"a": 1, "b": max(size - matches, 0) - 1}


def crowd_matches(events: Sequence[Event], size: int) -> Matches:
    """What a crowd of this size matches, by arithmetic."""
    return [(row, id) for row, event in enumerate(events) for id in range(rank(int(event["b"])) + ALIKE, size)]


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

    def expected(self, events: Sequence[Event]) -> Matches:
        found = [(row, id) for row, event in enumerate(events) for id in self.crowd if rank(id) > int(event["b"])]
        for row, event in enumerate(events):
            found += [(row, id) for id, each in self.others.items() if truth(each, event) is True]
        return sorted(found)


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
