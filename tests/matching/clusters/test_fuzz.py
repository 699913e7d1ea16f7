"""A million random changes and matches, while tables come and go and clusters are arranged anew."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from harken import Engine, parse
from harken.matching.clusters import dynamic, filtering, keyed, static
from harken.matching.clusters.cost import USUAL
from harken.model.evaluation import truth
from harken.workloads.mixed import Mixed, event_table

OPERATIONS = {
    "subscribe": 16,
    "unsubscribe": 12,
    "replace": 8,
    "subscribe_many": 6,
    "unsubscribe_many": 5,
    "replace_many": 4,
    "match": 36,
    "match_rows": 6,
    "match_columns": 2,
    "learn": 1,
}

VARIANTS = {
    "restless": ("dynamic", {"patience": 1, "margin": 0.0}, 1_000),
    "patient": ("dynamic", {"patience": 60, "margin": 0.05}, 99_000),
    "filtered": ("dynamic", {"patience": 60, "margin": 0.0}, 100_000),
    "static": ("static", {}, 50_000),
}
"""Algorithm, options and how many operations; tables are made and dropped at every step, or every 60 or so."""


class Fuzz:
    """An engine, and the expressions that it should hold; whatever matches is compared with all of them."""

    def __init__(self, variant: str, seed: int) -> None:
        name, options, _ = VARIANTS[variant]
        self.engine = Engine(name, **options)
        self.held = {}
        self.done = Counter()
        self._mixed, self._chance = Mixed(seed), random.Random(seed)
        self._next, self._most = 0, 60

    def run(self, operations: int) -> None:
        names, weights = list(OPERATIONS), list(OPERATIONS.values())
        for name in self._chance.choices(names, weights, k=operations):
            getattr(self, name)()
            self.done[name] += 1
            if len(self.held) > self._most:
                self.unsubscribe_many(len(self.held) // 2)
                self._most = self._chance.choice([10, 60, 150])
                self._mixed.drift()

    def subscribe(self) -> None:
        self._take_in(self._fresh(1), one_by_one=True)

    def unsubscribe(self) -> None:
        for id in self._some(1):
            self.engine.unsubscribe(id)
            del self.held[id]

    def replace(self) -> None:
        self._take_in({id: self._mixed.text() for id in self._some(1)}, one_by_one=True)

    def subscribe_many(self) -> None:
        self._take_in(self._fresh(self._chance.randint(2, 20)))

    def unsubscribe_many(self, count: int = 6) -> None:
        going = self._some(count)
        self.engine.unsubscribe_many(going)
        for id in going:
            del self.held[id]

    def replace_many(self) -> None:
        self._take_in({id: self._mixed.text() for id in self._some(5)} | self._fresh(2))

    def match(self) -> None:
        event = self._mixed.event()
        assert sorted(self.engine.match(event)) == self._expected(event), event

    def match_rows(self) -> None:
        events = self._events(4)
        self._compare(self.engine.match_batch(events), events)

    def match_columns(self) -> None:
        events = self._events(6)
        self._compare(self.engine.match_batch(event_table(events)), events)

    def learn(self) -> None:
        self.engine.learn(self._events(20))

    def _take_in(self, texts: dict[int, str], *, one_by_one: bool = False) -> None:
        if one_by_one:
            for id, text in texts.items():
                self.engine.subscribe(id, text, replace=id in self.held)
        else:
            self.engine.subscribe_many(texts.items(), replace=True)
        self.held |= {id: parse(text) for id, text in texts.items()}

    def _fresh(self, count: int) -> dict[int, str]:
        self._next += count
        return {self._next - at: self._mixed.text() for at in range(count)}

    def _some(self, count: int) -> list[int]:
        return self._chance.sample(list(self.held), min(count, len(self.held)))

    def _events(self, most: int) -> list[dict[str, object]]:
        return [self._mixed.event() for _ in range(self._chance.randint(1, most))]

    def _expected(self, event: dict[str, object]) -> list[int]:
        return sorted(id for id, expression in self.held.items() if truth(expression, event) is True)

    def _compare(self, table, events) -> None:
        found = sorted(zip(*table.to_pydict().values(), strict=True))
        assert found == [(row, id) for row, event in enumerate(events) for id in self._expected(event)], events


@pytest.fixture
def fuzz(variant: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dynamic, "calibrated", lambda: USUAL)
    monkeypatch.setattr(filtering, "FILTERED_FROM", 0 if variant == "filtered" else 1 << 62)
    monkeypatch.setattr(filtering, "MOST", 1_000.0)
    for module in (keyed, static):  # with few clauses, millions of keys would be most of the work
        monkeypatch.setattr(module, "MOST_PLACES", 1 << 14)
    return lambda seed: Fuzz(variant, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("variant", VARIANTS)
def test_no_order_of_changes_and_matches_confuses(fuzz, variant: str, seed: int):
    trial, (name, _, operations) = fuzz(seed), VARIANTS[variant]
    trial.run(operations)
    assert set(trial.engine) == set(trial.held)
    assert trial.done.keys() == OPERATIONS.keys()
    if name == "dynamic":
        assert trial.engine.stats()["tables_dropped"] > 100, "tables come and go"
