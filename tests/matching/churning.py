"""Engines of the algorithms that have an index in use, and what they should hold."""

from __future__ import annotations

import random

from harken import Engine
from harken.model.evaluation import truth
from tests.strategies import Generator

VARIANTS = {
    "propagation": ("propagation", {}),
    "dynamic": ("dynamic", {}),
    "dynamic-restless": ("dynamic", {"patience": 1, "margin": 0.0}),
    "dynamic-without-prefetch": ("dynamic", {"patience": 1, "margin": 0.0, "prefetch": False}),
    "static": ("static", {}),
    "counting": ("counting", {}),
    "siena": ("siena", {}),
    "tree": ("tree", {"waiting": 7}),
    "rapid": ("rapid", {"waiting": 0}),
    "pubsub": ("pubsub", {}),
    "be-tree": ("be-tree", {"node_size": 500}),
    "auto": ("auto", {"small": 5}),
}


def made(variant, **further):
    name, options = VARIANTS[variant]
    return Engine(name, **options, **further)


def contents(folder):
    """The bytes of all files by name."""
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def index_of(engine):
    return getattr(engine._matcher, "_matcher", engine._matcher)


def found(engine, events):
    table = engine.match_batch(events)
    pairs = sorted(zip(*table.to_pydict().values(), strict=True))
    assert pairs == sorted((row, id) for row, event in enumerate(events) for id in engine.match(event))
    return pairs


def expected(subscriptions, events):
    return sorted(
        (row, id)
        for row, event in enumerate(events)
        for id, expression in subscriptions.items()
        if truth(expression, event) is True
    )


class Churn:
    """An engine in use, what it should hold, and events to try it with."""

    def __init__(self, engine, seed):
        self.engine = engine
        self.held = {}
        self.generator = Generator(seed)
        self._chance = random.Random(seed)
        self._next = 0

    def add(self, count):
        """Some that are new, some of them asking for what others ask for."""
        fresh = {}
        for _ in range(count):
            self._next += 1
            known = list((self.held | fresh).values())
            again = bool(known) and self._chance.random() < 0.3
            fresh[self._next] = self._chance.choice(known) if again else self.generator.expression()
        self.engine.subscribe_many(fresh.items())
        self.held |= fresh

    def remove(self, count):
        going = self._chance.sample(list(self.held), min(count, len(self.held)))
        self.engine.unsubscribe_many(going)
        for id in going:
            del self.held[id]

    def check(self, count=10):
        events = [self.generator.event() for _ in range(count)]
        assert found(self.engine, events) == expected(self.held, events)
        assert set(self.engine) == set(self.held)
