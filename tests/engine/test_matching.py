"""Matching: one event, many, dictionaries and Arrow columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import Box, Engine, Point, algorithms
from harken.errors import EventError
from harken.language import to_text
from harken.model.evaluation import truth
from harken.model.values import Kind
from tests.strategies import SMALL, TYPED, Generator, events, expressions

pytestmark = pytest.mark.kernel


@pytest.fixture(params=algorithms())
def algorithm(request):
    return request.param


def engine_of(algorithm, *expressions, **options):
    """An engine whose subscriptions are numbered as they are given."""
    engine = Engine(algorithm, **options)
    engine.subscribe_many(enumerate(expressions))
    return engine


def pairs(table):
    return sorted(zip(table.column("event").to_pylist(), table.column("subscription").to_pylist(), strict=True))


# ---------------------------------------------------------------- one event, many events


def test_a_batch_gives_what_a_loop_gives(algorithm):
    generator = Generator("batch and loop")
    written = [generator.expression() for _ in range(60)]
    engine = engine_of(algorithm, *written)
    happened = [generator.event() for _ in range(60)]
    wanted = [(row, id) for row, event in enumerate(happened) for id in sorted(engine.match(event))]
    assert pairs(engine.match_batch(happened)) == wanted
    assert pairs(engine.match_batch(iter(happened))) == wanted
    assert wanted == [
        (row, id) for row, e in enumerate(happened) for id, expr in enumerate(written) if truth(expr, e) is True
    ]


def test_a_batch_is_a_table_ordered_by_event(algorithm):
    engine = engine_of(algorithm, "x >= 0", "x >= 1", "x >= 2")
    table = engine.match_batch([{"x": 2}, {}, {"x": 0}, {"x": 1}])
    assert table.column_names == ["event", "subscription"]
    assert [field.type for field in table.schema] == [pa.int64(), pa.int64()]
    assert table.column("event").to_pylist() == [0, 0, 0, 2, 3, 3]


def test_an_empty_batch_and_an_empty_engine_give_an_empty_table(algorithm):
    for table in (engine_of(algorithm, "TRUE").match_batch([]), engine_of(algorithm).match_batch([{}, {"x": 1}])):
        assert table.num_rows == 0
        assert table.column_names == ["event", "subscription"]
    assert engine_of(algorithm).match({"x": 1}) == []
    columnless = engine_of(algorithm, "TRUE", "x IS NULL").match_batch(pa.table({"y": [1, 2]}))
    assert pairs(columnless) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_nested_mappings_are_dotted_attributes(algorithm):
    engine = engine_of(algorithm, "a.b = 1 AND c.d.e = 'x'")
    assert engine.match({"a": {"b": 1}, "c": {"d": {"e": "x"}}}) == [0]
    assert engine.match({"a.b": 1, "c.d": {"e": "x"}}) == [0]


@pytest.mark.parametrize("event", [5, None, "x", [("x", 1)], {1: 2}, {"": 1}, {"a": {"b": 1}, "a.b": 1}])
def test_what_is_no_event_is_an_error_with_its_row(event, algorithm):
    engine = engine_of(algorithm, "x = 1")
    with pytest.raises(EventError):
        engine.match(event)
    with pytest.raises(EventError, match="event 1: ") as caught:
        engine.match_batch([{"x": 1}, event])
    assert caught.value.row == 1


def test_what_was_asked_for_is_no_longer_when_its_subscription_is_gone(algorithm):
    engine = engine_of(algorithm, "x = 1", "y = 1")
    engine.unsubscribe(0)
    assert engine.match({"x": [], "y": 1}) == [1]
    assert pairs(engine.match_batch(pa.table({"x": [[1]], "y": [1]}))) == [(0, 1)]


def test_a_schema_refuses_values_of_another_type_and_names_the_attribute(algorithm):
    engine = engine_of(algorithm, "price < 5", schema={"price": "float", "name": "string"})
    assert engine.match({"price": 1, "name": "a", "other": []}) == [0]
    assert engine.match({"price": Decimal("1.5")}) == [0]
    for event in ({"price": "1"}, {"price": 1, "name": 5}, {"name": []}):
        with pytest.raises(EventError, match=r"'price'|'name'") as caught:
            engine.match(event)
        assert caught.value.attribute in ("price", "name")
    with pytest.raises(EventError, match="declared float, found string"):
        engine.match_batch(pa.table({"price": ["1"]}))
    with pytest.raises(EventError, match="'name' is declared string, found int64"):
        engine.match_batch(pa.table({"name": [1]}))
    assert pairs(engine.match_batch(pa.table({"price": pa.array([1, None, 9], pa.int8())}))) == [(0, 0)]


def test_infinity_is_a_value_of_events(algorithm):
    engine = engine_of(algorithm, "x > 1", "x < 1", "x = 1", "x != 1")
    assert sorted(engine.match({"x": math.inf})) == [0, 3]
    assert pairs(engine.match_batch(pa.table({"x": [-math.inf]}))) == [(0, 1), (0, 3)]


@pytest.mark.parametrize(
    "value",
    [np.int32(1), np.float32(1), np.uint64(1), Decimal(1), Decimal("1.00"), 1.0],
    ids=lambda v: type(v).__name__,
)
def test_numbers_of_every_make_are_numbers(value, algorithm):
    engine = engine_of(
        algorithm, "x = 1", "x = 1.0", "x IN (1, 2)", "x != 1", "x = TRUE", "x = '1'", "x >= 1 AND x < 2"
    )
    assert sorted(engine.match({"x": value})) == [0, 1, 2, 6]


# ---------------------------------------------------------------- Arrow columns

NUMERIC = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64(), pa.decimal128(10, 2), pa.decimal256(50, 5)),
]


@pytest.mark.parametrize("kind", NUMERIC, ids=str)
def test_every_numeric_arrow_type_is_a_number(kind, algorithm):
    engine = engine_of(algorithm, "x = 1", "x > 1.5", "x IN (3, 4)", "x IS NULL", "x != 3", "x BETWEEN 1 AND 2")
    numbers = [1, 2, None, 3]
    made = (
        [None if number is None else np.float16(number) for number in numbers] if kind == pa.float16() else numbers
    )
    column = (
        pa.array([None if n is None else Decimal(n) for n in numbers], kind) if pa.types.is_decimal(kind) else None
    )
    column = pa.array(made, kind) if column is None else column
    wanted = [(0, 0), (0, 4), (0, 5), (1, 1), (1, 4), (1, 5), (2, 3), (3, 1), (3, 2)]
    assert pairs(engine.match_batch(pa.table({"x": column}))) == wanted


STRINGS = [
    *(pa.string(), pa.large_string(), pa.string_view()),
    *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint32(), pa.large_string())),
]


@pytest.mark.parametrize("kind", STRINGS, ids=str)
def test_every_arrow_string_type_is_a_string(kind, algorithm):
    engine = engine_of(algorithm, "x = 'a'", "x LIKE '_b%'", "x > 'a'", "x IS NULL", "x = ''", "x CONTAINS 'ä'")
    column = pa.array(["a", "ab", None, "", "bä"]).cast(kind)
    wanted = [(0, 0), (1, 1), (1, 2), (2, 3), (3, 4), (4, 2), (4, 5)]
    assert pairs(engine.match_batch(pa.table({"x": column}))) == wanted


def test_booleans_are_not_numbers(algorithm):
    engine = engine_of(algorithm, "x", "NOT x", "x = 1", "x IS NULL", "x IN (TRUE, FALSE)")
    table = pa.table({"x": pa.array([True, False, None])})
    assert pairs(engine.match_batch(table)) == [(0, 0), (0, 4), (1, 1), (1, 4), (2, 3)]


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()], ids=str)
def test_both_arrow_date_types_are_dates(kind, algorithm):
    engine = engine_of(
        algorithm, "x = DATE '2026-02-28'", "x < DATE '1970-01-01'", "x > DATE '2026-02-28'", "x = 1"
    )
    column = pa.array([date(2026, 2, 28), date(1969, 12, 31), None, date(2026, 3, 1)], kind)
    assert pairs(engine.match_batch(pa.table({"x": column}))) == [(0, 0), (1, 1), (3, 2)]


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin", "+05:30"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_arrow_timestamps_of_every_unit_and_zone_are_moments_in_utc(unit, zone, algorithm):
    noon = "TIMESTAMP '2026-02-28 12:00:00Z'"
    engine = engine_of(algorithm, f"x = {noon}", f"x < {noon}", f"x > {noon}", "x = DATE '2026-02-28'")
    moment = datetime(2026, 2, 28, 12, tzinfo=UTC)
    moments = [moment, moment - timedelta(seconds=1), None, moment + timedelta(seconds=1)]
    column = pa.array(moments, pa.timestamp("us", "UTC")).cast(pa.timestamp(unit, "UTC"))
    column = (
        column.cast(pa.timestamp(unit, zone))
        if zone
        else pa.array(moments, pa.timestamp("us")).cast(pa.timestamp(unit))
    )
    assert pairs(engine.match_batch(pa.table({"x": column}))) == [(0, 0), (1, 1), (3, 2)]


def test_decimals_are_exact(algorithm):
    engine = engine_of(algorithm, "x = 1.10", "x > 1.10", "x < 1.10", "x IN (1.1, 5)", "x != 1.1")
    values = [Decimal("1.10"), Decimal("1.1000000000000000001"), Decimal("1.0999999999999999999"), Decimal("5")]
    wanted = [[0, 3], [1, 4], [2, 4], [1, 3, 4]]
    assert [sorted(engine.match({"x": value})) for value in values] == wanted
    column = pa.array(values, pa.decimal128(38, 19))
    assert pairs(engine.match_batch(pa.table({"x": column}))) == [(at, id) for at in range(4) for id in wanted[at]]


def test_integers_past_2_to_the_53_are_exact(algorithm):
    big = 2**53
    engine = engine_of(algorithm, f"x = {big}.0", f"x = {big + 1}", f"x > {big}.0", f"x IN ({big + 1}, 5)")
    for source in (
        [{"x": big}, {"x": big + 1}, {"x": float(big)}],
        pa.table({"x": pa.array([big, big + 1, big])}),
    ):
        assert pairs(engine.match_batch(source)) == [(0, 0), (1, 1), (1, 2), (1, 3), (2, 0)]
    assert engine.match({"x": 2**63 - 1}) == [2]


def test_fixed_size_lists_of_two_and_four_are_points_and_boxes(algorithm):
    engine = engine_of(
        algorithm, "p WITHIN BOX(0, 0, 1, 1)", "p = POINT(1, 1)", "b CONTAINS POINT(2, 2)", "b IS NULL"
    )
    table = pa.table(
        {
            "p": pa.array([[1, 1], [2, 0], None], pa.list_(pa.float64(), 2)),
            "b": pa.array([[0, 0, 3, 3], None, [0, 0, 1, 1]], pa.list_(pa.float32(), 4)),
        }
    )
    assert pairs(engine.match_batch(table)) == [(0, 0), (0, 1), (0, 2), (1, 3)]
    assert sorted(engine.match({"p": Point(1, 1), "b": Box(0, 0, 3, 3)})) == [0, 1, 2]
    assert sorted(engine.match({"p": {"type": "Point", "coordinates": [0, 0]}})) == [0, 3]


def test_a_column_of_nulls_is_missing_throughout(algorithm):
    engine = engine_of(algorithm, "x IS NULL", "x = 1", "NOT x = 1")
    assert pairs(engine.match_batch(pa.table({"x": pa.nulls(2)}))) == [(0, 0), (1, 0)]
    assert pairs(engine.match_batch(pa.table({"x": pa.nulls(2, pa.int64())}))) == [(0, 0), (1, 0)]


def test_nested_structs_are_dotted_and_a_null_struct_has_no_fields(algorithm):
    engine = engine_of(algorithm, "a.b = 1", "a.c.d = 'x'", "a.b IS NULL", "a IS NULL")
    table = pa.table({"a": [{"b": 1, "c": {"d": "x"}}, {"b": None, "c": {"d": "x"}}, None, {"b": 1, "c": None}]})
    wanted = [(0, 0), (0, 1), (0, 3), (1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 0), (3, 3)]
    assert pairs(engine.match_batch(table)) == wanted
    assert pairs(engine.match_batch(table.to_pylist())) == wanted
    assert pairs(engine.match_batch(table.slice(1, 2))) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)]


def test_a_name_that_occurs_twice_in_a_table_is_an_error(algorithm):
    engine = engine_of(algorithm, "a.b = 1")
    for table in (
        pa.table([[1], [2]], names=["a.b", "a.b"]),
        pa.table({"a": [{"b": 1}], "a.b": [2]}),
    ):
        with pytest.raises(EventError, match=r"'a\.b' occurs twice"):
            engine.match_batch(table)


def test_tables_name_attributes_and_nest_as_events_do(algorithm):
    engine = engine_of(algorithm, "x IS NULL")
    for table in (pa.table({"": [1]}), pa.table({"a": [{"": 1}]}), pa.table({"a": [{"b": {"": 1}}]})):
        for source in (table, table.to_pylist()):
            with pytest.raises(EventError, match="attribute names are non-empty strings"):
                engine.match_batch(source)
    nested = pa.int64()
    for depth in range(2, 66):
        nested = pa.struct([("a", nested)])
        table = pa.table({"a": pa.nulls(1, nested)})
        value = 1
        for _ in range(depth - 1):
            value = {"a": value}
        for source in (table, [{"a": value}]):
            if depth <= 64:
                assert pairs(engine.match_batch(source)) == [(0, 0)]
                continue
            with pytest.raises(EventError, match="deeper than 64 levels"):
                engine.match_batch(source)
    for _ in range(3_000):
        nested = pa.struct([("a", nested)])
    with pytest.raises(EventError, match="deeper than 64 levels"):
        engine.match_batch(pa.table({"a": pa.nulls(1, nested)}))


def test_chunks_slices_and_record_batches_do_not_show(algorithm):
    engine = engine_of(algorithm, "x > 1 AND s = 'a'", "x < 2 OR s LIKE 'b%'", "s IS NULL")
    table = pa.table({"x": [0, 1, 2, 3, None, 5] * 3, "s": ["a", "b", "a", None, "bb", "a"] * 3})
    wanted = pairs(engine.match_batch(table))
    chunked = pa.concat_tables([table.slice(0, 5), table.slice(5, 1), table.slice(6, 0), table.slice(6)])
    assert pairs(engine.match_batch(chunked)) == wanted
    assert pairs(engine.match_batch(table.to_batches()[0])) == wanted
    shifted = [(row - 4, id) for row, id in wanted if row >= 4]
    assert pairs(engine.match_batch(table.slice(4))) == shifted


KIND_TYPES = {
    Kind.NUMBER: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.BOOL: pa.bool_(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us", "UTC"),
    Kind.POINT: pa.list_(pa.float64(), 2),
    Kind.BOX: pa.list_(pa.float64(), 4),
}


def columns_of(flat_events):
    """Typed events as Arrow columns, dotted names and all."""
    columns = {}
    for name, (kind,) in TYPED.items():
        values = [event.get(name) for event in flat_events]
        if kind is Kind.POINT:
            values = [None if value is None else [value.x, value.y] for value in values]
        elif kind is Kind.BOX:
            values = [None if value is None else list(value.bounds) for value in values]
        elif kind is Kind.NUMBER:
            values = [None if value is None else float(value) for value in values]
        columns[name] = pa.array(values, KIND_TYPES[kind])
    return pa.table(columns)


@given(
    st.lists(expressions(TYPED, max_leaves=5), min_size=1, max_size=6),
    st.lists(events(TYPED), min_size=1, max_size=6),
)
@settings(max_examples=60)
def test_arrow_columns_and_dictionaries_give_the_same_matches(written, happened):
    # A column of doubles holds each number as a float.
    happened = [{n: float(v) if type(v) is int else v for n, v in event.items()} for event in happened]
    wanted = [
        (row, id) for row, e in enumerate(happened) for id, expr in enumerate(written) if truth(expr, e) is True
    ]
    for name in algorithms():
        engine = engine_of(name, *written)
        assert pairs(engine.match_batch(columns_of(happened))) == wanted, (name, list(map(to_text, written)))
        assert pairs(engine.match_batch(happened)) == wanted, name


def test_small_domains_cover_every_column_type():
    assert set(KIND_TYPES) == set(SMALL) == set(Kind)


# ---------------------------------------------------------------- validity

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
TICK = timedelta(microseconds=1)


@pytest.fixture
def timed(algorithm):
    engine = Engine(algorithm)
    engine.subscribe("always", "x = 1")
    engine.subscribe("from noon", "x = 1", valid_from=NOON)
    engine.subscribe("until noon", "x = 1", valid_until=NOON)
    engine.subscribe("an hour", "x = 1", valid_from=NOON, valid_until=NOON + HOUR)
    return engine


@pytest.mark.parametrize(
    ("at", "valid"),
    [
        (NOON - TICK, ["always", "until noon"]),
        (NOON, ["always", "an hour", "from noon"]),
        (NOON + HOUR - TICK, ["always", "an hour", "from noon"]),
        (NOON + HOUR, ["always", "from noon"]),
    ],
)
def test_validity_includes_its_start_and_excludes_its_end(timed, at, valid):
    elsewhere = at.astimezone(timezone(timedelta(hours=-7)))
    for moment in (at, elsewhere, at.replace(tzinfo=None)):
        assert sorted(timed.match({"x": 1}, at=moment)) == valid
        assert sorted(timed.match_batch([{"x": 1}], at=moment).column("subscription").to_pylist()) == valid
    assert timed.match({"x": 2}, at=at) == []


def test_without_a_moment_the_present_counts(algorithm):
    engine = Engine(algorithm)
    now = datetime.now(UTC)
    engine.subscribe("past", "TRUE", valid_until=now)
    engine.subscribe("present", "TRUE", valid_from=now, valid_until=now + 1000 * HOUR)
    engine.subscribe("future", "TRUE", valid_from=now + 1000 * HOUR)
    assert engine.match({}) == ["present"]
    assert engine.match_batch([{}]).column("subscription").to_pylist() == ["present"]


# ---------------------------------------------------------------- statistics


def test_stats_tell_the_algorithm_and_what_it_holds(algorithm):
    engine = engine_of(algorithm, "x = 1", "x = 2")
    engine.match({"x": 1})
    engine.match_batch([{"x": 1}, {"x": 3}])
    stats = engine.stats()
    assert stats["algorithm"] == ("reference" if algorithm == "auto" else algorithm), "auto evaluates a few"
    assert stats["subscriptions"] == 2


def test_the_reference_counts_what_was_asked_of_it():
    engine = engine_of("reference", "x = 1", "x > 0")
    engine.match({"x": 1})
    engine.match_batch([{"x": 1}, {"x": 3}])
    engine.unsubscribe(0)
    assert engine.stats() == {
        "algorithm": "reference",
        "subscriptions": 1,
        "events": 3,
        "matches": 5,
        "checks_per_event": 1,
        "foreign": {},
    }


class Broken(Mapping):
    """A mapping whose own code fails."""

    def __init__(self, deep: bool) -> None:
        self._deep = deep

    def __getitem__(self, name):
        return Broken(False)

    def __iter__(self):
        if not self._deep:
            raise LookupError("the row is gone")
        return iter(["a"])

    def __len__(self):
        return 1


@pytest.mark.parametrize("deep", [False, True])
def test_an_event_whose_own_code_fails_is_an_event_at_fault_and_stops_no_other(deep: bool) -> None:
    engine = Engine()
    engine.subscribe("one", "n = 1")
    with pytest.raises(EventError, match="the event cannot be read: Broken raises LookupError: the row is gone"):
        engine.match(Broken(deep))
    found = engine.match_batch([{"n": 1}, Broken(deep), {"n": 1}], on_error="collect")
    assert found.matches.column("event").to_pylist() == [0, 2]
    assert len(found.rejects) == 1
