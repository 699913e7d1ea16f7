"""Changes that fail or are interrupted anywhere: all of a change, or nothing of it.

`harken bench symmetric-faults --scale full` stops them at every line; here it is every so many.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from harken import Engine, Limits, SymmetricEngine, attr
from harken.bench.experiments.symmetric_faults import (
    AUCTION_CASES,
    ENGINE_CASES,
    in_memory,
    on_database,
    stop_everywhere,
)
from harken.bench.interrupting import FAULTS, Tripwire, count_lines
from harken.compiler import compile_texts
from harken.errors import BulkLoadError, SubscriptionError
from harken.intake import texts_of
from harken.symmetric import beside
from harken.symmetric.guarding import Journal

IN_MEMORY = {place.name: place for place in in_memory()}
TRIED = [(place, case) for place in IN_MEMORY.values() for case in place.cases]


@pytest.mark.parametrize(("place", "case"), TRIED, ids=lambda each: each.name)
def test_a_change_in_memory_that_is_stopped_is_made_entirely_or_not_at_all(place, case):
    first = 1 + TRIED.index((place, case)) % 61
    assert stop_everywhere(place, case, stride=61, first=first) > 1


@pytest.mark.service
@pytest.mark.parametrize("name", [case.name for case in ENGINE_CASES + AUCTION_CASES])
def test_a_change_on_sqlite_that_is_stopped_is_made_entirely_or_not_at_all(name, tmp_path):
    places = on_database("SQLite", {"url": f"sqlite:///{tmp_path}/faults.db"})
    place, case = next((place, case) for place in places for case in place.cases if case.name == name)
    assert stop_everywhere(place, case, stride=601, first=61) > 0


@pytest.mark.parametrize("name", ["subscribe", "publish, replacing", "cycle"])
def test_a_change_on_postgresql_that_is_stopped_is_made_entirely_or_not_at_all(name, postgres):
    places = on_database("PostgreSQL", {"url": postgres, "schema_name": f"faults_{name[:3]}"})
    place, case = next((place, case) for place in places for case in place.cases if case.name == name)
    assert stop_everywhere(place, case, stride=601, first=301) > 0


def test_a_second_kind_of_id_is_refused_and_not_kept_beside_an_engine():
    market = SymmetricEngine(covers="subscription")
    market.subscribe("one", "x > 0")
    with pytest.raises(SubscriptionError):
        market.subscribe(2, "x > 0")
    with pytest.raises(SubscriptionError):
        market.subscribe_many([(2, "x > 0")])
    assert len(market) == 1
    assert market.match({"x": 1}) == ["one"]
    assert market.match_batch(pa.table({"x": [1]})).to_pylist() == [{"publication": 0, "subscription": "one"}]


def test_an_engine_beside_is_made_when_events_come_as_columns_of_whatever_is_there_then():
    market, soon = SymmetricEngine(covers="subscription"), datetime.now(UTC) + timedelta(hours=1)
    events = [{"x": x} for x in range(8)]
    compiled = compile_texts(texts_of([(at, f"x = {at % 8}") for at in range(100)])).table
    market.subscribe_many(compiled.slice(0, 60))
    market.subscribe_many(compiled.slice(60))
    market.unsubscribe_many(range(20, 70))
    market.subscribe_many([(at, f"x > {at % 8}") for at in range(30, 40)])
    market.subscribe(5, "x = 7", replace=True)
    market.subscribe(200, "x < 3", valid_from=soon)
    market.subscribe(201, "x < 3", valid_until=soon)
    assert market._beside._engine is None
    expected = sorted((place, id) for place, event in enumerate(events) for id in market.match(event))
    assert market._beside._engine is None, "which events that come singly do not need"
    for _ in range(2):
        found = market.match_batch(pa.Table.from_pylist(events))
        assert sorted(zip(*found.to_pydict().values(), strict=True)) == expected
        market._beside._give_up()
    later = market.match_batch(pa.Table.from_pylist(events), at=soon).to_pydict()["subscription"]
    assert 200 in later
    assert 201 not in later


def compiled_rows(*texts: str, **changed: object) -> pa.Table:
    table = compile_texts(texts_of([(f"i{at}", text) for at, text in enumerate(texts)])).table
    return pa.Table.from_pylist([{**row, **changed} for row in table.to_pylist()], table.schema)


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
UNSOUND = {
    "no name": (compiled_rows("a = 1", id=""), Limits()),
    "no id": (compiled_rows("a = 1", id=None), Limits()),
    "never valid": (compiled_rows("a = 1", valid_from=NOON, valid_until=NOON), Limits()),
    "too many clauses": (compiled_rows("a = 1 OR b = 2 OR c = 3"), Limits(max_clauses=2)),
}


@pytest.mark.parametrize("covers", ["subscription", "publication"])
@pytest.mark.parametrize("asked_before", [True, False])
@pytest.mark.parametrize(("table", "limits"), UNSOUND.values(), ids=UNSOUND)
def test_what_comes_compiled_is_checked_whether_an_engine_is_beside_or_not(table, limits, asked_before, covers):
    market, events = SymmetricEngine(covers=covers, limits=limits), pa.table({"a": [1]})
    if asked_before:
        market.match_batch(events)
    with pytest.raises(BulkLoadError):
        market.subscribe_many(table)
    assert len(market) == 0
    assert market.match_batch(events).num_rows == 0


def test_a_signal_handler_may_match_a_table_though_no_engine_is_beside_yet():
    market, events = SymmetricEngine(covers="subscription"), pa.table({"x": [1]})
    market.subscribe("one", "x = 1")
    assert market._store.look(lambda: market.match_batch(events).num_rows) == 1


def test_an_engine_beside_is_made_once_though_several_ask_first(monkeypatch):
    market, events, made = SymmetricEngine(covers="subscription"), pa.table({"x": [1]}), []
    market.subscribe_many([(at, "x = 1") for at in range(1_000)])
    monkeypatch.setattr(beside, "Engine", lambda *given, **named: made.append(1) or Engine(*given, **named))
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda _: market.match_batch(events).num_rows, range(12)))
    assert set(found) == {1_000}
    assert len(made) == 1


LONG = [f"{at:01000}" for at in range(300)]
TAKEN = {
    "deeper than usual": (Limits(max_depth=300), "NOT " * 250 + "x = 1"),
    "longer than usual": (Limits(max_length=300_000), "x = 1" + " " * 280_000 + "OR x = 2"),
    "a tree that prints longer than may be written": (Limits(), (attr("x") == 1) | attr("y").is_in(LONG)),
    "a tree that prints deeper than may be written": (Limits(max_depth=2), (attr("x") == 1) | ~(attr("x") > 2)),
}


@pytest.mark.parametrize(("limits", "expression"), TAKEN.values(), ids=TAKEN)
@pytest.mark.parametrize("many", [False, True])
def test_an_engine_beside_is_made_anew_within_the_limits_that_all_was_taken_in_with(
    limits, expression, many, monkeypatch
):
    market, table = SymmetricEngine(covers="subscription", limits=limits), pa.table({"x": [1]})
    if many:
        market.subscribe_many([("one", expression)])
    else:
        market.subscribe("one", expression)
    before = market.match_batch(table)
    with monkeypatch.context() as patched:
        patched.setattr(Engine, "subscribe", interrupted)
        with pytest.raises(KeyboardInterrupt):
            market.subscribe("two", "x = 1")
    assert market._beside._engine is None
    assert before.num_rows == 1
    assert market.match_batch(table) == before


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_interrupted_while_it_is_taken_back_is_taken_back_by_the_next(fault):
    """An interrupt in the middle of recovering from another."""
    kept = {"a": 1}
    journal = Journal()

    def change() -> None:
        for at in range(5):
            journal.note(kept.pop, f"new-{at}", None)
            kept[f"new-{at}"] = at
        raise LookupError("in the end")

    def run() -> None:
        with suppress(LookupError):
            journal.run(change)

    lines = count_lines(run, ("symmetric/guarding.py",))
    assert kept == {"a": 1}
    for at in range(1, lines + 1):
        Tripwire(("symmetric/guarding.py",), at, fault).run(run)
        journal.take_back()
        assert kept == {"a": 1}


def test_reading_takes_back_what_an_interrupt_left(monkeypatch):
    market = SymmetricEngine()
    market.subscribe("one", "x > 0")

    def interrupted(self):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "take_back", interrupted)
        with pytest.raises(KeyboardInterrupt):
            market.subscribe("two", "x > 0")
    with monkeypatch.context() as patched:
        patched.setattr("harken.symmetric.memory.store.MemoryStore._notify", interrupted)
        patched.setattr(Journal, "run", lambda self, work: work())
        with pytest.raises(TypeError):
            market.publish("offer", "x = 1", notify=True)
    assert market._store.journal.is_pending, "half a change is there"
    assert market.match("x = 1") == ["one"]
    assert market._store.ids("publications") == []


def test_a_tripwire_counts_and_stops():
    def call() -> None:
        SymmetricEngine().subscribe("one", "x > 0")

    lines = count_lines(call, ("symmetric",))
    assert lines > 50
    wire = Tripwire(("symmetric",), lines, KeyboardInterrupt)
    wire.run(call)
    assert wire.lines >= lines
    with pytest.raises(ZeroDivisionError):
        Tripwire(("symmetric",), 1, RuntimeError).run(lambda: 1 / 0)
