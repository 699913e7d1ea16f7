"""Decimals of many digits: one answer from every algorithm, whichever way event and constant come."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import Engine, algorithms, attr, parse
from harken.compiler import Texts, compile_texts
from harken.errors import BulkLoadError, SchemaError
from harken.model.evaluation import truth
from harken.model.numbers import Exact

pytestmark = pytest.mark.kernel

WRITTEN = (
    *("90071992547409.93", "90071992547409.92", "90071992547409.94", "90071992547409.9375", "0.1", "0.5"),
    *("0.10000000000000001", "0.1000000000000000055511151231257827021181583404541015625", "9007199254740993.0"),
    *("9007199254740992.0", "9007199254740992.5", "-90071992547409.93", "100000000000000000000000.0", "1e23"),
    *("12345678901234567890.12345678901234567890", "9223372036854775808.0", "1e300", "3.0"),
)
FLOATS = (90071992547409.93, 0.1, 0.5, 9007199254740992.0, -90071992547409.93, 1e23, 1e300, 3.0, 2.0**63, 0.25)
INTS = (0, 3, 2**53, 2**53 + 1, 90071992547409, 90071992547410, -90071992547410, 2**63 - 1)
DECIMALS = tuple(Decimal(each) for each in (*WRITTEN, "5E-20", "90071992547409.935"))
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


@pytest.fixture(params=algorithms())
def algorithm(request):
    return request.param


def texts():
    compared = [f"x {operator} {written}" for written in WRITTEN for operator in OPERATORS]
    ranges = [f"x BETWEEN {low} AND {high}" for low in WRITTEN[:9] for high in WRITTEN[:9]]
    return [*compared, *ranges, f"x IN ({', '.join(WRITTEN)})", f"x NOT IN ({', '.join(WRITTEN[::2])})"]


def engine_of(algorithm, expressions, **options):
    engine = Engine(algorithm, **options)
    engine.subscribe_many(enumerate(expressions))
    return engine


def pairs(table):
    return sorted(zip(table.column("event").to_pylist(), table.column("subscription").to_pylist(), strict=True))


def wanted(values):
    """Every event against every expression, by the definition."""
    trees = [parse(text) for text in texts()]
    return [(row, at) for row, x in enumerate(values) for at, tree in enumerate(trees) if truth(tree, {"x": x})]


def test_a_decimal_equals_the_constant_written_with_the_same_digits(algorithm):
    engine = engine_of(algorithm, ["x = 90071992547409.93", "x < 90071992547409.93", "x > 90071992547409.93"])
    assert engine.match({"x": Decimal("90071992547409.93")}) == [0]
    assert engine.match({"x": Decimal("90071992547409.92")}) == [1]
    assert engine.match({"x": Decimal("90071992547409.94")}) == [2]


@pytest.mark.parametrize("values", [FLOATS, INTS, DECIMALS], ids=["floats", "ints", "decimals"])
def test_events_from_dictionaries_match_as_defined(algorithm, values):
    engine = engine_of(algorithm, texts())
    events = [{"x": value} for value in values]
    assert pairs(engine.match_batch(events)) == wanted(values)
    assert [(row, id) for row, event in enumerate(events) for id in sorted(engine.match(event))] == wanted(values)


@pytest.mark.parametrize("values", [FLOATS, INTS], ids=["floats", "ints"])
def test_columns_of_machine_numbers_match_as_defined(algorithm, values):
    engine = engine_of(algorithm, texts())
    assert pairs(engine.match_batch(pa.table({"x": pa.array(values)}))) == wanted(values)


@pytest.mark.parametrize("kind", [pa.decimal128(38, 20), pa.decimal256(76, 55)], ids=str)
def test_columns_of_decimals_match_as_defined(algorithm, kind):
    engine = engine_of(algorithm, texts())
    fitting = [value for value in DECIMALS if abs(value) < 10 ** (kind.precision - kind.scale)]
    fitting = [value for value in fitting if -value.as_tuple().exponent <= kind.scale]
    assert len(fitting) > 10
    column = pa.array(fitting, kind)
    assert pairs(engine.match_batch(pa.table({"x": column}))) == wanted(fitting)


def test_a_saved_engine_answers_as_before(algorithm, tmp_path):
    engine = engine_of(algorithm, texts())
    events = [{"x": value} for value in DECIMALS]
    before = pairs(engine.match_batch(events))
    engine.save(tmp_path / "engine")
    again = Engine.load(tmp_path / "engine")
    assert pairs(again.match_batch(events)) == before
    again.subscribe(-1, "x = 90071992547409.93")
    assert -1 in again.match({"x": Decimal("90071992547409.93")})


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(texts()), min_size=1, max_size=12), st.sampled_from((*FLOATS, *INTS, *DECIMALS)))
def test_constants_come_and_go_without_disturbing_others(chosen, value):
    for name in algorithms():
        engine = engine_of(name, chosen)
        for id in range(0, len(chosen), 2):
            engine.unsubscribe(id)
        kept = [id for id in range(1, len(chosen), 2) if truth(parse(chosen[id]), {"x": value})]
        assert sorted(engine.match({"x": value})) == kept
        assert pairs(engine.match_batch([{"x": value}])) == [(0, id) for id in kept]


def test_an_int_a_decimal_and_a_float_that_are_equal_are_one_constant(algorithm):
    engine = Engine(algorithm)
    engine.subscribe_many([("int", "x = 9007199254740993"), ("decimal", "x = 9007199254740993.0")])
    assert sorted(engine.match({"x": 9007199254740993})) == ["decimal", "int"]
    engine.unsubscribe("int")
    assert engine.match({"x": Decimal("9007199254740993.00")}) == ["decimal"]
    engine.subscribe("int", "x = 9007199254740993")
    engine.unsubscribe("decimal")
    assert engine.match({"x": 9007199254740993}) == ["int"]


def test_the_builder_takes_decimals():
    engine = Engine()
    engine.subscribe("built", (attr("x") == Decimal("90071992547409.93")) & (attr("y") < Decimal("1e23")))
    assert engine.match({"x": Decimal("90071992547409.930"), "y": Decimal("99999999999999999999999")}) == ["built"]
    assert attr("x").is_in([Decimal("0.5"), Decimal("3.00")]).values == (0.5, 3)
    assert isinstance(attr("x").between(Decimal("0.1"), Decimal("0.10000000000000001")).high, Exact)


def test_a_compiled_table_carries_decimals_as_text(tmp_path):
    compiled = compile_texts(Texts([0, 1], ["x = 90071992547409.93", "x > 9007199254740993.0"])).table
    fields = [clause[0] for [clause] in compiled.column("clauses").to_pylist()]
    assert [(each["type"], each["text"], each["real"]) for each in fields] == [
        ("decimal", "90071992547409.93", None),
        ("decimal", "9007199254740993.0", None),
    ]
    engine = Engine()
    engine.subscribe_many(compiled)
    assert engine.match({"x": Decimal("90071992547409.93")}) == [0]
    assert engine.match({"x": 9007199254740994}) == [1]


@pytest.mark.parametrize(
    "written", ["one", "", "NaN", "Infinity", "1e999999999", "1e-999999999", "0." + "1" * 99, "٣"]
)
def test_a_decimal_of_a_compiled_table_is_checked(written):
    compiled = compile_texts(Texts([0, 1], ["x = 90071992547409.93", "y = 1"])).table
    rows = compiled.to_pylist()
    rows[0]["clauses"][0][0]["text"] = written
    with pytest.raises(BulkLoadError, match="1 rejected, the first is row 0"):
        Engine().subscribe_many(pa.Table.from_pylist(rows, compiled.schema))


def test_a_decimal_of_a_compiled_table_that_is_a_float_or_an_int_is_that_constant():
    compiled = compile_texts(Texts([0, 1], ["x = 90071992547409.93", "y = 90071992547409.93"])).table
    rows = compiled.to_pylist()
    rows[0]["clauses"][0][0]["text"] = "0.50"
    rows[1]["clauses"][0][0]["text"] = "3.0"
    for name in algorithms():
        engine = Engine(name)
        engine.subscribe_many([(2, "x = 0.5"), (3, "y = 3")])
        engine.subscribe_many(pa.Table.from_pylist(rows, compiled.schema))
        assert sorted(engine.match({"x": 0.5, "y": 3})) == [0, 1, 2, 3]


def test_a_schema_takes_decimals_where_it_declares_floats():
    engine = Engine(schema={"x": "float", "n": "int"})
    engine.subscribe("s", "x = 90071992547409.93")
    assert engine.match({"x": Decimal("90071992547409.93")}) == ["s"]
    with pytest.raises(SchemaError, match="'n' is declared int, found decimal"):
        engine.subscribe("t", "n = 9007199254740993.0")
    with pytest.raises(SchemaError, match="write float: it takes decimals"):
        Engine(schema={"x": "decimal"})


@pytest.mark.parametrize("written", ["1e300", "9223372036854775808.0", "-1e30", "100000000000000000000000.0"])
def test_a_whole_constant_past_64_bits_stops_no_batch(algorithm, written):
    engine = engine_of(algorithm, [f"x = {written}", "x = 1"])
    assert pairs(engine.match_batch(pa.table({"x": pa.array([1, 2, 2**62])}))) == [(0, 1)]
    assert pairs(engine.match_batch(pa.table({"x": pa.array([1.0, 2.5])}))) == [(0, 1)]
