"""Foreign values in columns of Arrow are those of their rows alone."""

from __future__ import annotations

import math
from datetime import time, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.engine.engines import engine_of, pairs

pytestmark = pytest.mark.kernel

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


@pytest.mark.parametrize("name", COLUMNS)
def test_a_reject_shows_a_value_that_python_has_not(name, algorithm):
    column, _ = COLUMNS[name]
    kinds = {"date": "date", "day": "date", "onds": "timestamp", "point": "point", "box": "box", "UTF-8": "string"}
    declared = next((kind for part, kind in kinds.items() if part in name), "float")
    engine = engine_of(algorithm, schema={"x": "int" if name == "uint64" else declared})
    rejects = engine.match_batch(pa.table({"x": column}), on_error="collect").rejects
    assert rejects.column("event").to_pylist() == [1]
    assert rejects.column("value")[0].as_py()
