"""What a newcomer is told who hands in something else than is asked for: what to write instead."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal

import pytest

from harken import Engine, Schema, attr, parse
from harken.errors import (
    ArgumentTypeError,
    ExpressionError,
    HarkenError,
    SchemaError,
    SubscriptionError,
    UnknownAlgorithmError,
)

CONSTANTS = [
    (None, "write attr(...).is_null(), or IS NULL"),
    (math.nan, "write attr(...).is_null(), or IS NULL"),
    (Decimal("NaN"), "write attr(...).is_null(), or IS NULL"),
    (math.inf, "leave out the bound"),
    (Decimal("Infinity"), "leave out the bound"),
    (2**63, "as a Decimal it is kept exactly"),
    (b"a", "decode it"),
    ([1, 2], "is_in([...])"),
    ((1, 2), "is_in([...])"),
    ({1, 2}, "is_in([...])"),
    (attr("y"), "two attributes cannot be compared yet"),
]


@pytest.mark.parametrize(("value", "advice"), CONSTANTS, ids=[repr(value) for value, _ in CONSTANTS])
def test_what_is_no_constant_is_refused_with_what_to_write(value, advice):
    for build in (attr("x").__eq__, attr("x").__lt__, lambda each: attr("x").is_in([each])):
        with pytest.raises(ExpressionError) as caught:
            build(value)
        assert advice in caught.value.suggestion


def test_a_number_past_64_bits_is_taken_as_the_decimal_that_was_advised():
    assert (attr("x") == Decimal(2**63)).value == 2**63
    with pytest.raises(ExpressionError) as caught:
        attr("x").__eq__(10**400)
    assert caught.value.suggestion is None


@pytest.mark.parametrize("values", ["abc", b"abc", 5, None])
def test_several_values_are_not_the_letters_of_one(values):
    with pytest.raises(ExpressionError, match=r"is_in on 'x' takes several values") as caught:
        attr("x").is_in(values)
    assert caught.value.suggestion == f"write is_in([{values!r}])"


def test_an_attribute_alone_is_no_condition_and_no_truth():
    condition = attr("x") == 1
    for wrong in (lambda: condition & attr("y"), lambda: ~attr("y"), lambda: attr("y") and condition):
        with pytest.raises(TypeError, match=r"attr\('y'\) == True"):
            wrong()
    with pytest.raises(TypeError, match=r"write parse\('y = 2'\)"):
        condition & "y = 2"


@pytest.mark.parametrize(
    ("given", "advice"),
    [(None, "TRUE"), (b"x = 1", "decode it"), (attr("x"), "write a condition, like attr('x') == True"), (5, None)],
)
def test_what_is_no_expression_is_refused_with_what_to_write(given, advice):
    for take in (parse, lambda each: Engine().subscribe("s", each)):
        with pytest.raises(ExpressionError, match="an expression is a string, found") as caught:
            take(given)
        assert (caught.value.suggestion is None) == (advice is None)
        assert advice is None or advice in caught.value.suggestion


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (5, "a schema maps attributes to types"),
        ("price", "a schema maps attributes to types"),
        ([("price", "float")], "a schema maps attributes to types"),
        ({5: "int"}, "an attribute name is a non-empty string, found 5"),
        ({"": "int"}, "an attribute name is a non-empty string, found ''"),
        ({"x": str}, "did you mean 'string'?"),
        ({"x": datetime}, "did you mean 'timestamp'?"),
        ({"x": "number"}, "did you mean 'float'?"),
        ({"x": "decimal"}, "write float: it takes decimals"),
        ({"x": None}, "is declared None; the types are int, float"),
    ],
)
def test_what_is_no_schema_is_refused_with_what_to_write(given, said):
    with pytest.raises(SchemaError) as caught:
        Schema(given)
    assert said in str(caught.value)


def test_parse_takes_a_schema_as_a_mapping_too():
    with pytest.raises(SchemaError, match="did you mean 'price'"):
        parse("prise < 5", schema={"price": "float"})


@pytest.mark.parametrize("moment", ["2026-01-01", date(2026, 1, 1), 5])
def test_a_time_that_is_none_is_refused_with_what_to_write(moment):
    engine = Engine()
    with pytest.raises(SubscriptionError, match="write a datetime"):
        engine.subscribe("s", "x = 1", valid_from=moment)
    engine.subscribe("s", "x = 1", valid_from=datetime(2026, 1, 1))
    with pytest.raises(ArgumentTypeError, match=r"at is a timestamp.*write a datetime"):
        engine.match({"x": 1}, at=moment)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (None, "write a list of pairs"),
        ("x = 1", "write a list of pairs"),
        ([1], 'write ("alice", "price < 300")'),
        ([{"id": 1, "expresion": "x = 1"}], "did you mean 'expression'?"),
        ([{"id": 1, "zzz": "x = 1"}], "the fields are id, expression, owner"),
    ],
)
def test_what_are_no_rows_of_subscriptions_is_refused_with_what_to_write(rows, said):
    with pytest.raises(SubscriptionError) as caught:
        Engine().subscribe_many(rows)
    assert said in str(caught.value)


@pytest.mark.parametrize("name", [None, 5, "clusters"])
def test_what_is_no_algorithm_is_refused_with_those_there_are(name):
    with pytest.raises(UnknownAlgorithmError, match="there are auto, counting") as caught:
        Engine(name)
    assert isinstance(caught.value, HarkenError)
