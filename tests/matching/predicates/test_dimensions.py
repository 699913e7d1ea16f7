"""Attributes come and go: their dimensions are given back, and an event pays for its own only."""

from __future__ import annotations

import pyarrow as pa
import pytest

from harken import Engine
from harken.language import parse
from harken.matching.encoding.columns import FIRST_ROOM, MOST_ROOM
from harken.matching.events.batch import EventBatch
from tests.matching.churning import VARIANTS, expected, found, index_of, made

pytestmark = pytest.mark.kernel
every_variant = pytest.mark.parametrize("variant", VARIANTS)

ASKED = (
    "{0} = {1}",
    "{0} IN ({1}, 7)",
    "{0} < {1} AND {0} >= -3",
    "{0} <> {1}",
    "{0} IS NULL",
    "EXISTS {0}.below",
    "{0} LIKE 'x%'",
    "{0} = {1} AND k = {1}",
    "{0} > {1} OR k = {1}",
    "NOT {0}",
)
VALUES = (0, 1, 2, 7, -5, 1.5, "xy", "ab", True, [1])


def dimensions(engine):
    return index_of(engine)._predicates.dimensions


def batched(engine, events):
    return sorted(zip(*engine.match_batch(events).to_pydict().values(), strict=True))


def round_of(name):
    """What is asked of an attribute, and events that have it."""
    asked = {at: text.format(name, at % 3) for at, text in enumerate(ASKED)}
    return asked, [{name: value, "k": at % 3} for at, value in enumerate(VALUES)]


@every_variant
@pytest.mark.parametrize("saved", [False, True])
def test_attributes_that_come_and_go_leave_nothing_to_those_that_take_their_numbers(variant, saved, tmp_path):
    engine, most = made(variant), 0
    engine.subscribe("stays", "k >= 0 AND k < 3")
    for turn in range(5):
        names = [f"a{turn}", f"b{turn}"] if turn % 2 else [f"b{turn}", f"a{turn}", f"c{turn}"]
        written = {f"{name} {at}": text for name in names for at, text in round_of(name)[0].items()}
        engine.subscribe_many(written.items())
        judge = Engine("reference")
        judge.subscribe_many([("stays", "k >= 0 AND k < 3"), *written.items()])
        events = [event | {"other": 1} for name in names for event in round_of(name)[1]]
        events.append({name: at for at, name in enumerate(names)})
        numbers = [dict.fromkeys(names, at) | {"k": at % 3} for at in range(9)]
        for some in (events, events, numbers):
            assert found(engine, some) == found(judge, some)
        assert batched(engine, pa.Table.from_pylist(numbers)) == found(judge, numbers)
        engine.unsubscribe_many(written)
        if saved:
            engine.save(tmp_path / "engine")
            engine = Engine.load(tmp_path / "engine")
        most = most or len(dimensions(engine))
        assert len(dimensions(engine)) == most, "the first turn has the most attributes"


def test_an_attribute_that_comes_back_before_its_number_is_needed_gets_it_back():
    engine = Engine("dynamic")
    engine.subscribe_many([(1, "a = 1"), (2, "b = 1"), (3, "c = 1")])
    before = [(each.number, each.attribute) for each in dimensions(engine)]
    engine.unsubscribe_many([1, 2])
    engine.subscribe(2, "b = 1")
    engine.subscribe(4, "d = 1")
    after = {each.attribute: each.number for each in dimensions(engine)}
    assert (after["b"], after["c"]) == (before[1][0], before[2][0])
    assert after["d"] == before[0][0], "the lowest that is free"
    assert engine.match({"a": 1, "b": 1, "c": 1, "d": 1}) == [2, 3, 4]


@pytest.mark.parametrize("algorithm", ["static", "dynamic"])
def test_tables_of_an_attribute_that_is_gone_are_not_those_of_the_next(algorithm):
    engine = Engine(algorithm, checks_per_lookup=0.1) if algorithm == "static" else Engine(algorithm, margin=0.01)
    engine.subscribe_many([(at, f"a = {at % 7} AND b = {at % 11}") for at in range(2_000)])
    assert any(each["access"] in ("a, b", "b, a") for each in engine.stats()["tables"])
    engine.subscribe(-1, "z = 1")
    engine.unsubscribe_many(range(2_000))
    for at in range(40):
        engine.subscribe(at, f"c = {at % 20} AND d = {at % 30}")
        engine.subscribe(1_000 + at, f"d = {at % 30}")
    events = [{"c": at % 20, "d": at % 30, "a": 1, "b": 1} for at in range(60)]
    held = {at: parse(f"c = {at % 20} AND d = {at % 30}") for at in range(40)}
    held |= {1_000 + at: parse(f"d = {at % 30}") for at in range(40)}
    assert found(engine, events) == expected(held, events)
    assert not any("a" in each["access"].split(", ") for each in engine.stats()["tables"])


def width_of_single(engine):
    return index_of(engine)._own.workspaces[0].single.events.code.shape[1]


def widths_of_batch(engine, events):
    index = index_of(engine)
    blocks = index._encoder.blocks(EventBatch.of(events, index.attributes))
    return [block.code.shape for _, block in blocks]


@every_variant
def test_an_event_is_as_wide_as_it_is_however_many_attributes_others_ask_about(variant):
    engine = made(variant)
    engine.subscribe_many([(at, f"a{at} = 1") for at in range(500)])
    engine.subscribe_many([(1_000 + at, f"a{at} < 1") for at in range(0, 500, 2)])
    engine.subscribe(9_999, "k = 1 AND x < 5")
    event = {"k": 1, "x": 3, "a7": 1, "a8": 0}
    assert sorted(engine.match(event)) == [7, 1_008, 9_999]
    if hasattr(index_of(engine), "_new_single"):
        assert width_of_single(engine) <= FIRST_ROOM
    assert widths_of_batch(engine, [event] * 3) == [(3, FIRST_ROOM)]
    assert widths_of_batch(engine, pa.Table.from_pylist([event] * 3)) == [(3, 5)]


@every_variant
def test_events_of_very_many_attributes_are_matched_and_forgotten(variant):
    count = MOST_ROOM + 200
    engine = made(variant)
    engine.subscribe_many([(at, f"a{at} = {at % 3} OR a{at} > 100") for at in range(count)])
    every = {f"a{at}": at % 3 for at in range(count)}
    half = {f"a{at}": at % 3 for at in range(count // 2)}
    few = {"a3": 0, "a4": 500}
    assert sorted(engine.match(every)) == list(range(count))
    assert sorted(engine.match(few)) == [3, 4]
    if hasattr(index_of(engine), "_new_single"):
        assert width_of_single(engine) <= FIRST_ROOM
    assert sorted(engine.match(half)) == list(range(count // 2))
    assert sorted(engine.match(few)) == [3, 4]
    apart = [{f"a{at}": at % 3} for at in range(count)]
    assert batched(engine, apart) == [(at, at) for at in range(count)]
    assert max(width for _, width in widths_of_batch(engine, apart)) <= MOST_ROOM
    after_wide = [few] * 4_000 + [half]
    assert engine.match_batch([every]).num_rows == count
    assert max(height * width for height, width in widths_of_batch(engine, after_wide)) <= 4_096 * MOST_ROOM
    assert engine.match_batch(after_wide).num_rows == 8_000 + count // 2
    table = pa.Table.from_pylist([every, few])
    assert engine.match_batch(table).num_rows == engine.match_batch([every, few]).num_rows == count + 2


@every_variant
def test_a_column_that_is_foreign_reaches_all_names_below_it(variant):
    engine = made(variant)
    engine.subscribe_many([(at, f"a.b{at} IS NULL") for at in range(200)])
    table = pa.table({"a": pa.array([[1], None, [2]], pa.list_(pa.int64()))})
    assert set(engine.match_batch(table).column("event").to_pylist()) == {1}
    assert engine.match_batch(table.to_pylist()).num_rows == engine.match_batch(table).num_rows == 200
    assert engine.stats()["foreign"] == {"a": 6}
