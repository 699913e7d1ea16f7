"""Schemas: how they are declared and what they refuse."""

from __future__ import annotations

from decimal import Decimal

import pytest

from harken.errors import SchemaError
from harken.model.schema import Schema
from harken.model.values import Point, Type


def test_a_schema_is_a_mapping_from_names_to_types_however_they_are_written():
    schema = Schema({"price": "FLOAT", "maker": Type.STRING})
    assert dict(schema) == {"price": Type.FLOAT, "maker": Type.STRING}
    assert len(schema) == 2
    assert repr(schema) == "Schema({'price': 'float', 'maker': 'string'})"


@pytest.mark.parametrize(
    ("declared", "meant"), [("strng", "string"), ("integer", "int"), ("timestmp", "timestamp")]
)
def test_an_unknown_type_is_refused_with_the_nearest_one(declared, meant):
    with pytest.raises(SchemaError, match="the types are int, float, string") as caught:
        Schema({"x": declared})
    assert caught.value.attribute == "x"
    assert caught.value.suggestion == f"did you mean {meant!r}?"


def test_a_type_that_is_no_name_at_all_is_refused():
    with pytest.raises(SchemaError) as caught:
        Schema({"x": 5})
    assert caught.value.suggestion is None


def test_a_value_of_an_attribute_the_schema_has_not_is_left_alone():
    Schema({"x": "int"}).check_value("y", "anything")


def test_an_int_is_a_float_but_a_float_is_no_int():
    schema = Schema({"i": "int", "f": "float"})
    schema.check_value("f", 1)
    schema.check_value("f", Decimal("1.5"))
    with pytest.raises(SchemaError, match="'i' is declared int, found float"):
        schema.check_value("i", 1.0)


def test_a_wrong_value_is_an_error_with_fields():
    with pytest.raises(SchemaError) as caught:
        Schema({"x": "bool"}).check_value("x", Point(0, 0))
    assert (caught.value.attribute, caught.value.expected, caught.value.found) == ("x", "bool", "point")
