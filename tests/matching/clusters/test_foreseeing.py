"""Whether it pays to reorganise is found out before matches have to wait for it."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from harken import Engine
from harken.matching.clusters.dynamic import DynamicMatcher
from harken.matching.encoding.statistics import ObservedEvents
from harken.matching.predicates.bands import Bands
from harken.workloads import workload


@pytest.fixture
def reorganised(monkeypatch):
    """How often an index was reorganised."""
    times = []
    reorganise = DynamicMatcher.reorganise_in_portions

    def note(self, pace):
        times.append(len(times))
        return reorganise(self, pace)

    monkeypatch.setattr(DynamicMatcher, "reorganise_in_portions", note)
    return times


def swap(engine: Engine, made, oldest: int, newest: int, size: int) -> None:
    engine.subscribe_many(pa.concat_tables(made.subscriptions(size, first_id=newest)))
    engine.unsubscribe_many(range(oldest, oldest + size))


def test_small_changes_that_change_nothing_reorganise_nothing(reorganised):
    made, engine = workload("w0", 1), Engine("dynamic")
    for table in made.subscriptions(30_000):
        engine.subscribe_many(table)
    engine.match_batch(made.events(4_000))
    engine.learn(made.events(2_000))
    before = len(reorganised)
    for turn in range(60):  # six times what has to change
        swap(engine, made, turn * 300, 30_000 + turn * 300, 300)
    assert len(reorganised) - before <= 2  # once or twice, as the tables were made for other subscriptions
    assert engine.match_batch(made.events(500)).num_rows == sum(
        len(engine.match(event)) for event in made.events(500).to_pylist()
    )


def test_small_changes_that_make_tables_pay_have_them_made(reorganised):
    engine = Engine("dynamic")
    engine.subscribe_many((at, f"a = {at % 7}") for at in range(10))
    engine.match_batch([{"a": 1, "b": 2}] * 100)
    for first in range(10, 6_000, 200):
        engine.subscribe_many(
            (at, f"a = {at % 7} and b = {at % 11} and c = {at}") for at in range(first, first + 200)
        )
    assert reorganised
    stats = engine.stats()
    assert stats["tables_made"] > 0


def test_a_large_change_is_followed_at_once(reorganised):
    engine = Engine("dynamic")
    engine.subscribe_many((at, f"a = {at % 7} and b = {at % 11} and c = {at}") for at in range(5_000))
    assert len(reorganised) == 1


def test_foreseeing_changes_no_answer_and_counts_anew(reorganised):
    engine = Engine("dynamic", patience=10)
    engine.subscribe_many((at, f"a = {at % 3}") for at in range(100))
    before = len(reorganised)
    for at in range(100, 200):  # three, one after the other
        engine.subscribe(at, f"a = {at % 3}")
        assert len(engine.match({"a": at % 3})) == sum(each % 3 == at % 3 for each in range(at + 1))
    assert len(reorganised) - before < 10


@pytest.fixture
def looked_at(monkeypatch):
    """The dimensions whose ranges were looked at, once for each time."""
    seen = Counter[str]()
    for owner, name in ((ObservedEvents, "_cells_of"), (Bands, "outgrown")):
        asked = getattr(owner, name)

        def note(self, *rest, name=name, asked=asked):
            seen[name] += 1
            return asked(self, *rest)

        monkeypatch.setattr(owner, name, note)
    return seen


def test_a_range_on_a_new_attribute_is_not_paid_for_by_all_ranges_on_others(looked_at):
    engine = Engine("dynamic")
    engine.subscribe_many((number, f"a{number} > {number}") for number in range(400))
    looked_at.clear()
    for number in range(8):
        engine.subscribe(1_000 + number, f"b{number} > {number}")
    assert looked_at == {"_cells_of": 8, "outgrown": 8}
    engine.subscribe(2_000, "b0 = 1")
    assert looked_at["outgrown"] == 8


def test_chances_are_estimated_anew_when_an_eighth_has_come_of_many_beside_those_who_match(monkeypatch):
    engine = Engine("dynamic")
    engine.subscribe_many((number, f"a{number} > {number}") for number in range(1_200))
    alone, chances = list[bool](), ObservedEvents.chances

    def note(self, predicates):
        alone.append(engine._door.closed)
        return chances(self, predicates)

    monkeypatch.setattr(ObservedEvents, "chances", note)
    for number in range(1_200, 1_600):
        engine.subscribe(number, f"a{number} > {number}")
    assert 2 <= len(alone) <= 4
    assert not any(alone)
