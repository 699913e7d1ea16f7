"""Whether it pays to reorganise is found out before matches have to wait for it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from harken import Engine
from harken.matching.clusters.dynamic import DynamicMatcher
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
