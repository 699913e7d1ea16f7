"""Foreign values: what the language has no type for is there, and no event is refused for it.

Whatever somebody subscribes to, the matches of all others stay as they are.
"""

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
from harken.errors import EventError, SubscriptionError
from harken.matching.events import batch as batches
from harken.matching.events.batch import OTHERS
from harken.model.evaluation import truth
from harken.model.events import flatten
from harken.model.values import Kind, Point
from tests.strategies import FREE, events_with_foreign, expressions, foreign_values

pytestmark = pytest.mark.kernel


@pytest.fixture(params=algorithms())
def algorithm(request):
    return request.param


def engine_of(algorithm, *written, **options):
    engine = Engine(algorithm, **options)
    engine.subscribe_many(enumerate(written))
    return engine


def pairs(table):
    return sorted(zip(table.column("event").to_pylist(), table.column("subscription").to_pylist(), strict=True))


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


# ---------------------------------------------------------------- Arrow

FAR = 2**62
COLUMNS = {
    "NaN": (pa.array([0.0, math.nan, None]), "x < 5"),
    "float32 NaN": (pa.array([0.0, math.nan, None], pa.float32()), "x < 5"),
    "uint64": (pa.array([0, 2**63, None], pa.uint64()), "x < 5"),
    "date": (pa.array([0, 10**7, None], pa.int32()).cast(pa.date32()), "x < DATE '2026-01-01'"),
    "half a day": (pa.array([0, 1, None], pa.int64()).view(pa.date64()), "x < DATE '2026-01-01'"),
    "microseconds": (pa.array([0, FAR, None], pa.timestamp("us", "UTC")), "x < TIMESTAMP '2026-01-01'"),
    "milliseconds": (pa.array([0, FAR, None], pa.timestamp("ms")), "x < TIMESTAMP '2026-01-01'"),
    "seconds": (pa.array([0, -FAR, None], pa.timestamp("s")), "x < TIMESTAMP '2026-01-01'"),
    "nanoseconds": (pa.array([0, 1, None], pa.timestamp("ns", "UTC")), "x < TIMESTAMP '2026-01-01'"),
    "point": (pa.array([[0, 0], [math.nan, 0], None], pa.list_(pa.float64(), 2)), "x WITHIN BOX(0, 0, 1, 1)"),
    "point of null": (pa.array([[0, 0], [None, 0], None], pa.list_(pa.float64(), 2)), "x = POINT(0, 0)"),
    "box": (pa.array([[0] * 4, [1, 1, 0, 0], None], pa.list_(pa.float64(), 4)), "x OVERLAPS POINT(0, 0)"),
    "no UTF-8": (pa.array([b"a", b"\xff", None]).view(pa.string()), "x LIKE '%'"),
    "dictionary": (pa.array([0.0, math.nan, None]).dictionary_encode(), "x < 5"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_foreign_value_in_a_column_is_that_of_its_row_alone(name, algorithm):
    column, asked = COLUMNS[name]
    wanted = [(0, 0), (0, 2), (1, 2), (1, 4), (2, 1), (2, 3)]
    engine = engine_of(algorithm, asked, "x IS NULL", "EXISTS x", "x.y IS NULL AND x IS NULL", "EXISTS x.y")
    assert pairs(engine.match_batch(pa.table({"x": column}))) == wanted
    assert engine.stats()["foreign"] == {"x": 1}
    for alone in range(4):
        single = engine_of(algorithm, [asked, "x IS NULL", "EXISTS x", "x IS NULL"][alone])
        rows = [row for row, id in wanted if id == alone]
        assert pairs(single.match_batch(pa.table({"x": column}))) == [(row, 0) for row in rows]


TYPES = [
    *(pa.list_(pa.int64()), pa.large_list(pa.string()), pa.list_(pa.float64(), 3), pa.list_(pa.string(), 2)),
    *(pa.binary(), pa.large_binary(), pa.binary(2), pa.binary_view(), pa.time32("s"), pa.duration("us")),
    *(pa.map_(pa.string(), pa.int64()), pa.month_day_nano_interval(), pa.list_(pa.struct([("y", pa.int64())]))),
    pa.dictionary(pa.int8(), pa.binary()),
]


def value_of(kind):
    """Any value that a column of this type can hold."""
    if pa.types.is_map(kind):
        return [("a", 1)]
    if pa.types.is_fixed_size_list(kind):
        return [value_of(kind.value_type)] * kind.list_size
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return []
    if pa.types.is_string(kind):
        return "a"
    if pa.types.is_dictionary(kind):
        return value_of(kind.value_type)
    if pa.types.is_interval(kind):
        return (1, 1, 1)
    if pa.types.is_time(kind):
        return time(1)
    if pa.types.is_duration(kind):
        return timedelta(1)
    return 1.0 if pa.types.is_floating(kind) else b"ab"


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_a_column_of_a_type_that_the_language_has_not_is_foreign(kind, algorithm):
    values = [value_of(kind), None]
    column = pa.array(values, kind)
    nested = pa.StructArray.from_arrays([column], ["odd"])
    table = pa.table({"x": [1, 2], "odd": column, "s": nested})
    engine = engine_of(algorithm, "x = 2")
    assert pairs(engine.match_batch(table)) == [(1, 0)]
    for name in ("odd", "s.odd"):
        asked = [f"{name} IS NULL", f"EXISTS {name}", f"{name} = 1", f"NOT {name} = 'a'", f"EXISTS {name}.y"]
        engine = engine_of(algorithm, "x = 2", *asked)
        assert pairs(engine.match_batch(table)) == [(0, 2), (0, 5), (1, 0), (1, 1)]
        assert engine.stats()["foreign"] == {name: 1}


@pytest.mark.parametrize("kind", [pa.binary(), pa.binary_view(), pa.duration("us"), pa.list_(pa.int64())], ids=str)
def test_a_null_of_a_dictionary_is_a_null_of_the_column_however_it_is_cut(kind, algorithm):
    values = pa.array([value_of(kind), None], kind)
    first = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), values)
    engine = engine_of(algorithm, "x IS NULL", "EXISTS x")
    wanted = [(0, 1), (1, 0)]
    assert pairs(engine.match_batch(pa.table({"x": first}))) == wanted
    more = pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), values)
    other = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array([None, value_of(kind)], kind))
    cut = pa.chunked_array([first, more, other])
    assert pairs(engine.match_batch(pa.table({"x": cut}))) == [*wanted, (2, 1), (3, 0), (4, 0), (5, 1)]
    assert pairs(engine.match_batch(pa.table({"x": cut.slice(0, 0)}))) == []


@pytest.mark.parametrize("kind", [pa.decimal32(5, 2), pa.decimal64(12, 2), pa.decimal256(50, 2)], ids=str)
def test_decimals_of_every_width_are_read(kind, algorithm):
    engine = engine_of(algorithm, "x > 1", "x = 1.5", "x IS NULL", "y = 1")
    plain = pa.array([Decimal("1.5"), None, Decimal("0.5")], kind)
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), plain)
    for column in (plain, coded):
        found = engine.match_batch(pa.table({"x": column, "y": [1, 2, 3]}))
        assert pairs(found) == [(0, 0), (0, 1), (0, 3), (1, 2)]


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()], ids=str)
def test_runs_of_views_are_read(kind, algorithm):
    engine = engine_of(algorithm, "x IS NULL", "EXISTS x")
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["a", None], kind))
    assert pairs(engine.match_batch(pa.table({"x": runs}))) == [(0, 1), (1, 1), (2, 0)]


def test_lists_of_structs_are_foreign_and_so_are_the_names_inside(algorithm):
    engine = engine_of(algorithm, "d.items.id IS NULL", "EXISTS d.items.id", "d.items.id = 1", "d.items IS NULL")
    events = [{"d": {"items": [{"id": 1}]}}, {"d": {"items": None}}, {"d": None}, {"d": {"items": []}}]
    wanted = [(0, 1), (1, 0), (1, 3), (2, 0), (2, 3), (3, 1)]
    assert pairs(engine.match_batch(events)) == wanted
    assert pairs(engine.match_batch(pa.Table.from_pylist(events))) == wanted
    assert engine.stats()["foreign"] == {"d.items": 4}


def test_unions_and_run_ends_show_their_nulls(algorithm):
    engine = engine_of(algorithm, "u IS NULL", "EXISTS u", "r IS NULL", "r = 1")
    union = pa.UnionArray.from_dense(
        pa.array([0, 0], pa.int8()), pa.array([0, 1], pa.int32()), [pa.array([1, None])]
    )
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array([1, None]))
    assert pairs(engine.match_batch(pa.table({"u": union, "r": runs}))) == [(0, 1), (0, 3), (1, 0), (1, 2)]


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


# ---------------------------------------------------------------- schemas

SCHEMA = {"price": "float", "stock": "int", "at": "timestamp", "item.id": "int"}


@pytest.mark.parametrize(
    ("event", "attribute", "said", "value"),
    [
        ({"price": "1"}, "price", "declared float, found string", "'1'"),
        ({"price": math.nan}, "price", "declared float, found NaN", "nan"),
        ({"stock": 2**63}, "stock", "declared int, found an integer past 64 bits", str(2**63)),
        ({"stock": [1, 2]}, "stock", "declared int, found a list", "[1, 2]"),
        ({"item": [{"id": 1}]}, "item.id", "declared int, found a list", "[{'id': 1}]"),
        ({"at": pd.NaT}, "at", "declared timestamp, found NaT", "NaT"),
    ],
)
def test_under_a_schema_a_value_of_another_type_is_a_fault_of_that_event(event, attribute, said, value, algorithm):
    engine = engine_of(algorithm, "price < 5", "TRUE", schema=SCHEMA)
    with pytest.raises(EventError, match=said) as caught:
        engine.match(event)
    assert (caught.value.attribute, caught.value.row, caught.value.value) == (attribute, None, value)
    batch = [{"price": 1}, event, {}]
    with pytest.raises(EventError, match="event 1: "):
        engine.match_batch(batch)
    matches, rejects = engine.match_batch(batch, on_error="collect")
    assert pairs(matches) == [(0, 0), (0, 1), (2, 1)]
    assert rejects.to_pylist() == [
        {"event": 1, "attribute": attribute, "reason": f"attribute {attribute!r} is {said}", "value": value}
    ]


def test_an_event_that_is_none_is_collected_too(algorithm):
    engine = engine_of(algorithm, "TRUE")
    batch = [5, {}, {1: 2}, {"a": {"b": 1}, "a.b": 2}, None]
    found = engine.match_batch(batch, on_error="collect")
    assert pairs(found.matches) == [(1, 0)]
    assert found.rejects.column("event").to_pylist() == [0, 2, 3, 4]
    assert found.rejects.column("attribute").to_pylist() == [None, None, "a.b", None]


def test_under_a_schema_a_column_is_at_fault_only_where_it_has_values(algorithm):
    engine = engine_of(algorithm, "price < 5", "price IS NULL", schema=SCHEMA)
    table = pa.table(
        {
            "price": [1.0, math.nan, None, None, 2.0],
            "stock": pa.array([None, None, "x", None, None]),
            "item": [None, None, None, [1], None],
        }
    )
    table = pa.concat_tables([table.slice(0, 2), table.slice(2)])
    with pytest.raises(EventError, match="event 1: attribute 'price' is declared float, found NaN"):
        engine.match_batch(table)
    found = engine.match_batch(table, on_error="collect")
    assert pairs(found.matches) == [(0, 0), (4, 0)]
    assert found.rejects.column("event").to_pylist() == [1, 2, 3]
    assert found.rejects.column("attribute").to_pylist() == ["price", "stock", "item.id"]
    assert found.rejects.column("value").to_pylist() == ["nan", "'x'", "[1]"]
    reasons = found.rejects.column("reason").to_pylist()
    assert reasons[:2] == [
        "attribute 'price' is declared float, found NaN",
        "attribute 'stock' is declared int, found string",
    ]
    assert reasons[2].startswith("attribute 'item.id' is declared int, found list<")
    assert pairs(engine.match_batch(table.select(["stock"]).slice(0, 2))) == [(0, 1), (1, 1)]


@pytest.mark.parametrize("name", COLUMNS)
def test_a_reject_shows_a_value_that_python_has_not(name, algorithm):
    column, _ = COLUMNS[name]
    kinds = {"date": "date", "day": "date", "onds": "timestamp", "point": "point", "box": "box", "UTF-8": "string"}
    declared = next((kind for part, kind in kinds.items() if part in name), "float")
    engine = engine_of(algorithm, schema={"x": "int" if name == "uint64" else declared})
    rejects = engine.match_batch(pa.table({"x": column}), on_error="collect").rejects
    assert rejects.column("event").to_pylist() == [1]
    assert rejects.column("value")[0].as_py()


def test_on_error_is_one_of_two_words():
    engine = engine_of("auto", "TRUE")
    with pytest.raises(ValueError, match="on_error is one of"):
        engine.match_batch([{}], on_error="ignore")


def test_learning_passes_over_events_that_cannot_be_matched():
    engine = engine_of("dynamic", *[f"stock = {number}" for number in range(50)], schema=SCHEMA)
    engine.learn([{"stock": "x"}, {"stock": 1}] * 50)
    assert engine.match({"stock": 1}) == [1]


# ---------------------------------------------------------------- data frames


class Frame:
    """What Polars and others hand over: nothing but the Arrow stream interface."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("make", [Frame, lambda table: table.to_pandas(), lambda table: table.to_reader()])
def test_data_frames_go_straight_in(make, algorithm):
    engine = Engine(algorithm)
    subscriptions = pa.table({"id": ["a", "b"], "expression": ["price < 5", "item = 'x' OR price IS NULL"]})
    assert engine.subscribe_many(make(subscriptions)).loaded == 2
    events = pa.table({"price": [1.0, None, 9.0], "item": ["x", "y", None]})
    engine.learn(make(events))
    assert pairs(engine.match_batch(make(events))) == [(0, "a"), (0, "b"), (1, "b")]
    found = engine.match_batch(make(events), on_error="collect")
    assert (pairs(found.matches), found.rejects.num_rows) == ([(0, "a"), (0, "b"), (1, "b")], 0)


def test_a_frame_in_polars_types_is_read(algorithm):
    engine = engine_of(algorithm, "s = 'a'", "t > TIMESTAMP '2026-01-01'", "c = 'x'", "EXISTS l")
    table = pa.table(
        {
            "s": pa.array(["a", None], pa.string_view()),
            "t": pa.array([datetime(2026, 2, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
            "c": pa.DictionaryArray.from_arrays(
                pa.array([0, None], pa.uint32()), pa.array(["x", "y"], pa.string_view())
            ),
            "l": pa.array([[1], None], pa.large_list(pa.int64())),
        }
    )
    assert pairs(engine.match_batch(Frame(table))) == [(0, 0), (0, 1), (0, 2), (0, 3)]
    engine = engine_of(
        algorithm, "s = 'a'", "c = 'x'", "EXISTS s", schema={"s": "string", "c": "string", "n": "int"}
    )
    events = pa.concat_tables([table.slice(0, 1)] * 3).append_column(
        "n", pa.array([None, "x", None], pa.string_view())
    )
    found = engine.match_batch(Frame(events), on_error="collect")
    assert pairs(found.matches) == [(row, id) for row in (0, 2) for id in (0, 1, 2)]
    assert found.rejects.column("value").to_pylist() == ["'x'"]
    nobody = engine.match_batch(Frame(events.slice(1, 1)), on_error="collect")
    assert (nobody.matches.num_rows, nobody.rejects.num_rows) == (0, 1)


def test_the_compiled_form_may_come_as_a_frame():
    from harken.compiler import Texts, compile_texts

    engine = Engine()
    engine.subscribe_many(Frame(compile_texts(Texts([1], ["x = 1"])).table))
    assert engine.match({"x": 1}) == [1]


def test_a_frame_that_cannot_be_read_says_why():
    engine = engine_of("auto", "x = 1")
    twice = pd.DataFrame([[1, 2]], columns=["x", "x"])
    with pytest.raises(EventError, match="a DataFrame that cannot be read as an Arrow table"):
        engine.match_batch(twice)
    with pytest.raises(SubscriptionError, match="needs the columns id and expression"):
        engine.subscribe_many(Frame(pa.table({"id": [1]})))


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
