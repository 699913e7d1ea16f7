"""What the language has no type for is there, and no event is refused for it, nor for what others ask."""

from __future__ import annotations

import math
from collections import deque
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import Engine, algorithms
from harken.matching.events import batch as batches
from harken.matching.events.batch import OTHERS
from harken.model.evaluation import truth
from harken.model.events import flatten
from harken.model.values import Kind, Point
from tests.engine.engines import engine_of, pairs
from tests.strategies import FREE, events_with_foreign, expressions, foreign_values

pytestmark = pytest.mark.kernel


class Unfriendly:
    """An object that helps nobody."""

    def __repr__(self):
        raise RuntimeError("not told")


class Nowhere(tzinfo):
    """A time zone that cannot say how far it is."""

    def utcoffset(self, _):
        raise KeyError("nowhere")


class Unreadable(Decimal):
    """A number that nobody may look at, not even to print it."""

    def __abs__(self):
        raise RuntimeError("not told")

    __repr__ = __str__ = is_nan = __abs__


FOREIGN = {
    "in no time zone": datetime(2026, 11, 15, tzinfo=Nowhere()),
    "unreadable": Unreadable("NaN"),
    "NaN": math.nan,
    "numpy NaN": np.float32("nan"),
    "2^63": 2**63,
    "-2^63-1": -(2**63) - 1,
    "10,000 digits": 10**10_000,
    "list": [1],
    "empty list": [],
    "list of objects": [{"id": 1}],
    "tuple": (1, 2),
    "set": {1},
    "deque": deque([1]),
    "array": np.array([1, 2]),
    "bytes": b"x",
    "bytearray": bytearray(b"x"),
    "lone surrogate": "\ud800",
    "decimal NaN": Decimal("NaN"),
    "signalling NaN": Decimal("sNaN"),
    "infinite decimal": Decimal("-Infinity"),
    "complex": 1j,
    "duration": timedelta(1),
    "numpy duration": np.timedelta64(1, "s"),
    "time of day": time(1),
    "NaT": pd.NaT,
    "NA": pd.NA,
    "numpy NaT": np.datetime64("NaT"),
    "nanoseconds": pd.Timestamp(1),
    "numpy nanoseconds": np.datetime64(1, "ns"),
    "before the calendar": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
    "point of one": {"type": "Point", "coordinates": [1]},
    "point of NaN": {"type": "Point", "coordinates": [math.nan, 0]},
    "box inside out": {"type": "Box", "coordinates": [1, 1, 0, 0]},
    "uuid": UUID(int=1),
    "object": object(),
    "unfriendly": Unfriendly(),
}

ASKED = [
    "x IS NULL",
    "x IS NOT NULL",
    "EXISTS x",
    "x = 1",
    "x != 1",
    "NOT (x = 1)",
    "x < 1 OR x >= 1",
    "x IN (1, 'a')",
    "x NOT IN ('a', 'b')",
    "x LIKE '%'",
    "x NOT LIKE 'a%'",
    "x",
    "NOT x",
    "x < DATE '2026-01-01'",
    "x > TIMESTAMP '2026-01-01'",
    "x = POINT(0, 0)",
    "x WITHIN BOX(0, 0, 1, 1)",
    "NOT (x OVERLAPS BOX(0, 0, 1, 1))",
]
PRESENT = [1, 2]


@pytest.mark.parametrize("value", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_value_is_there_and_unknown_to_all_else(value, algorithm):
    engine = engine_of(algorithm, *ASKED)
    assert sorted(engine.match({"x": value})) == PRESENT
    assert pairs(engine.match_batch([{}, {"x": value}])) == [(0, 0), (1, 1), (1, 2)]


@pytest.mark.parametrize("value", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("poison", ["x = 'new'", "x IS NULL", "x.y = 1", "x WITHIN BOX(0, 0, 1, 1)"])
def test_nobody_can_subscribe_so_that_others_lose_their_matches(value, poison, algorithm):
    engine = engine_of(algorithm, "price < 300")
    event = {"price": 1, "x": value}
    assert engine.match(event) == [0]
    engine.subscribe(1, poison)
    assert engine.match(event) == [0]
    assert pairs(engine.match_batch([event])) == [(0, 0)]


class Red(str, Enum):  # noqa: UP042  # the two print differently
    RED = "red"


class Amount(Decimal):
    """A subclass."""


class Here(Point):
    """Another one."""


def test_subclasses_are_matched_as_what_they_are_and_names_too(algorithm):
    engine = engine_of(algorithm, "c = 'red'", "x > 1", "p WITHIN BOX(0, 0, 2, 2)", "n.red = 1", "red = 1")
    event = {"c": Red.RED, "x": Amount("1.5"), "p": Here(1, 1), "n": {Red.RED: 1}, Red.RED: 1}
    assert sorted(engine.match(event)) == [0, 1, 2, 3, 4]
    found = engine.match_batch([{}, event], on_error="collect")
    assert pairs(found.matches) == [(1, id) for id in range(5)]
    assert found.rejects.num_rows == 0


def test_under_a_schema_what_cannot_be_read_is_a_fault_of_its_event_alone(algorithm):
    engine = engine_of(algorithm, "x = 1", schema={"x": "int", "t": "timestamp"})
    odd = [{"x": Unreadable("NaN")}, {"t": datetime(2026, 11, 15, tzinfo=Nowhere())}]
    found = engine.match_batch([*odd, {"x": 1}], on_error="collect")
    assert pairs(found.matches) == [(2, 0)]
    assert found.rejects.column("event").to_pylist() == [0, 1]


def test_what_lies_below_a_foreign_value_is_foreign_too(algorithm):
    engine = engine_of(
        algorithm, "d.items.id IS NULL", "EXISTS d.items.id", "d.items.id = 1", "d.items IS NULL", "d IS NULL"
    )
    nested = {"d": {"items": [{"id": 1}]}}
    for event in (nested, {"d.items": [{"id": 1}]}, {"d": {"items": []}}):
        assert sorted(engine.match(event)) == [1, 4]
    assert sorted(engine.match({"d": {"items": None}})) == [0, 3, 4], "a missing list has nothing inside"
    assert sorted(engine.match({"d": {"items": 5}})) == [0, 4], "nor has a value of the language"
    assert sorted(engine.match({"d": [1]})) == [1]
    assert sorted(engine.match({"d": {"items": {}}})) == [0, 3, 4], "an empty mapping has nothing"


def test_a_value_of_its_own_stands_even_below_a_foreign_one(algorithm):
    engine = engine_of(algorithm, "a.b = 1", "a.b IS NULL", "a.b IS NOT NULL", "a.c IS NULL")
    for event in ({"a.b": 1, "a": []}, {"a": [], "a.b": 1}):
        assert sorted(engine.match(event)) == [0, 2]
    table = pa.table({"a.b": [1, None], "a": [[1], [2]]})
    assert pairs(engine.match_batch(table)) == [(0, 0), (0, 2), (1, 2)]
    assert pairs(engine.match_batch(table.select(["a", "a.b"]))) == [(0, 0), (0, 2), (1, 2)]


def test_presence_is_no_longer_asked_below_when_its_subscription_is_gone(algorithm):
    engine = engine_of(algorithm, "EXISTS a.b", "EXISTS a.c")
    engine.unsubscribe(0)
    assert engine.match({"a": [1]}) == [1]
    engine.unsubscribe(1)
    assert engine.match({"a": [1]}) == []
    assert engine.stats()["foreign"] == {"a": 1}


# ---------------------------------------------------------------- laws


@given(
    st.lists(expressions(FREE, max_leaves=4), min_size=1, max_size=4),
    st.lists(expressions(FREE, max_leaves=4), min_size=1, max_size=4),
    st.lists(events_with_foreign(FREE), min_size=1, max_size=4),
)
@settings(max_examples=60)
def test_no_subscription_changes_what_others_match_or_whether_an_event_is_taken(mine, theirs, happened):
    flat = [flatten(event)[0] for event in happened]
    wanted = [(row, id) for row, e in enumerate(flat) for id, each in enumerate(mine) if truth(each, e) is True]
    for name in algorithms():
        engine = engine_of(name, *mine)
        assert pairs(engine.match_batch(happened)) == wanted, name
        engine.subscribe_many(enumerate(theirs, 1_000))
        found = [
            (row, id) for row, event in enumerate(happened) for id in sorted(engine.match(event)) if id < 1_000
        ]
        assert found == wanted, name
        assert [pair for pair in pairs(engine.match_batch(happened)) if pair[1] < 1_000] == wanted, name


COLUMNWISE = {
    "n": (Kind.NUMBER,),
    "u": (Kind.NUMBER, Kind.STRING),
    "t": (Kind.TIMESTAMP,),
    "l": (Kind.NUMBER, Kind.BOX),
    "l.b": (Kind.NUMBER, Kind.STRING),
    "u.v": (Kind.NUMBER,),
}
NOON = datetime(2026, 2, 28, 12, 30, tzinfo=UTC)
IN_COLUMNS = {
    "n": st.sampled_from([None, 0.5, 1.0, math.nan]),
    "u": st.sampled_from([None, 0, 1, 3, 2**63, 2**64 - 1]),
    "t": st.sampled_from([None, NOON, pd.Timestamp(NOON), pd.Timestamp(NOON) + pd.Timedelta(1, "ns")]),
    "l": st.sampled_from([None, [], [{"b": 1}], [{"b": None}, {}]]),
}
COLUMN_TYPES = {
    "n": pa.float64(),
    "u": pa.uint64(),
    "t": pa.timestamp("ns", "UTC"),
    "l": pa.list_(pa.struct([("b", pa.int64())])),
}


@given(
    st.lists(expressions(COLUMNWISE, max_leaves=4), min_size=1, max_size=6),
    st.lists(st.fixed_dictionaries(IN_COLUMNS), min_size=1, max_size=6),
)
@settings(max_examples=60)
def test_foreign_values_in_columns_are_those_of_dictionaries(written, happened):
    flat = [flatten(event)[0] for event in happened]
    wanted = [(row, id) for row, e in enumerate(flat) for id, each in enumerate(written) if truth(each, e) is True]
    table = pa.table({name: pa.array([e[name] for e in happened], kind) for name, kind in COLUMN_TYPES.items()})
    for name in algorithms():
        engines = [engine_of(name, *written) for _ in range(2)]
        assert pairs(engines[0].match_batch(table)) == wanted, name
        assert pairs(engines[1].match_batch(happened)) == wanted, name
        assert engines[0].stats()["foreign"] == engines[1].stats()["foreign"], name


@given(foreign_values)
def test_every_foreign_value_can_be_told(value):
    for foreign in flatten({"x": value})[1].values():
        assert foreign.what
        assert len(foreign.shown) <= 80


def test_a_decimal_of_a_billion_digits_takes_no_time(algorithm):
    engine = engine_of(algorithm, "x = 5", "x > 5", "x != 5", "x IN (1, 2.5)", "x < 0.5")
    for value, wanted in (("1E+999999", [1, 2]), ("-1E+999999", [2, 4]), ("1E-999999", [2, 4])):
        assert sorted(engine.match({"x": Decimal(value)})) == wanted


# ---------------------------------------------------------------- counting and explaining


def test_stats_count_foreign_values_where_somebody_asks(algorithm):
    engine = engine_of(algorithm, "tags = 'new'", "price < 1", "d.items.id = 1")
    assert engine.stats()["foreign"] == {}
    engine.match({"tags": ["new"], "other": [1]})
    engine.match_batch([{"tags": b"", "price": math.nan}, {"price": 1}, {"d": {"items": [1]}}])
    assert engine.stats()["foreign"] == {"tags": 2, "price": 1, "d.items": 1}
    table = pa.table({"price": [math.nan, 1.0, None, math.nan], "tags": [["a"], None, [], []], "other": [b""] * 4})
    engine.match_batch(table)
    assert engine.stats()["foreign"] == {"tags": 5, "price": 3, "d.items": 1}
    engine.learn(table)
    assert engine.stats()["foreign"] == {"tags": 5, "price": 3, "d.items": 1}


def test_explain_says_on_the_line_that_a_value_is_foreign():
    engine = engine_of("auto", "tags = 'new' OR d.items.id = 1 OR price < 1 OR when > TIMESTAMP '2026-01-01'")
    event = {"tags": ["new"], "d": {"items": [{"id": 1}]}, "price": math.nan, "when": pd.NaT}
    lines = str(engine.explain(event, 0))
    for said in (
        "? unknown  tags = 'new'   [tags is foreign: a list]",
        "? unknown  d.items.id = 1   [d.items.id is foreign: d.items is a list]",
        "? unknown  price < 1   [price is foreign: NaN]",
        "[when is foreign: NaT]",
    ):
        assert said in lines
    assert engine.stats()["foreign"] == {}, "explaining is not matching"


@pytest.mark.parametrize("ask", [Engine.match, lambda engine, event: engine.match_batch([event])])
def test_foreign_values_of_more_attributes_than_can_be_named_are_counted_together(ask, monkeypatch):
    monkeypatch.setattr(batches, "MOST_NAMES", 3)
    engine = Engine()
    for at in range(8):
        engine.subscribe(at, f"a{at} = 1")
        ask(engine, {f"a{at}": math.nan, "a1": math.nan})
        engine.unsubscribe(at)
    assert engine.stats()["foreign"] == {"a0": 1, "a1": 1, "a2": 1, OTHERS: 5}


def test_foreign_values_of_a_batch_are_counted_together_past_a_thousand_names():
    engine = Engine()
    names = [f"a{at}" for at in range(1_003)]
    engine.subscribe(1, " AND ".join(f"{name} IS NOT NULL" for name in names))
    table = pa.table({name: [math.nan, math.nan] for name in names})
    for _ in range(2):
        engine.match_batch(table)
    found = engine.stats()["foreign"]
    assert len(found) == 1_001
    assert (found["a0"], found[OTHERS]) == (4, 12)
