"""Events: flattening, missing values, and what is wrong with those that are no values."""

from __future__ import annotations

import math
from collections import OrderedDict
from datetime import datetime, timedelta, timezone
from types import MappingProxyType

import pytest

from harken.errors import EventError
from harken.model.events import MAX_NESTING, flatten
from harken.model.values import Box, Point


def test_nested_mappings_become_dotted_names():
    flat, faults = flatten({"order": {"customer": {"name": "Ann"}, "total": 3}, "paid": True})
    assert flat == {"order.customer.name": "Ann", "order.total": 3, "paid": True}
    assert not faults


def test_any_mapping_is_an_event():
    assert flatten(MappingProxyType({"a": OrderedDict(b=1)}))[0] == {"a.b": 1}


def test_none_and_empty_mappings_are_missing():
    assert flatten({"a": None, "b": {"c": None}, "d": {}}) == ({}, {})


def test_a_point_or_box_in_its_json_form_is_one_value():
    flat, faults = flatten(
        {
            "at": {"type": "Point", "coordinates": [2.35, 48.86]},
            "in": {"area": {"type": "Box", "coordinates": (0, 0, 1, 1)}},
        }
    )
    assert flat == {"at": Point(2.35, 48.86), "in.area": Box(0, 0, 1, 1)}
    assert not faults


@pytest.mark.parametrize(
    "nested",
    [
        {"type": "Circle", "coordinates": 1},
        {"type": "Point", "coordinates": 1, "crs": "x"},
        {"type": "Point", "x": 1},
    ],
)
def test_a_mapping_that_only_resembles_a_shape_is_nested(nested):
    flat, _ = flatten({"a": nested})
    assert set(flat) == {f"a.{name}" for name in nested}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([1, 2], "list is not a type"),
        (b"x", "bytes is not a type"),
        (math.nan, "nan"),
        (2**63, "64-bit"),
        ("\ud800", "surrogate"),
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))), "'a'"),
        ({"type": "Point", "coordinates": [1]}, "1 coordinates"),
        ({"type": "Point", "coordinates": 7}, "list of numbers"),
        ({"type": "Point", "coordinates": [math.nan, 1]}, "finite"),
        ({"type": "Point", "coordinates": [10**5000, 1]}, "finite"),
        ({"type": "Box", "coordinates": [1, 1, 0, 0]}, "min <= max"),
        ({"type": "Point", "coordinates": None}, "list of numbers"),
    ],
)
def test_what_is_no_value_is_set_apart_with_its_reason(value, said):
    flat, faults = flatten({"a": value, "b": 1})
    assert flat == {"b": 1}
    assert list(faults) == ["a"]
    assert faults["a"].attribute == "a"
    assert said in str(faults["a"])


@pytest.mark.parametrize(
    "event", [{"a.b": 1, "a": {"b": 2}}, {"a.b": [], "a": {"b": 2}}, {"a.b": 1, "a": {"b": []}}]
)
def test_a_name_that_occurs_twice_is_an_error_at_once(event):
    with pytest.raises(EventError, match=r"'a\.b' occurs twice") as caught:
        flatten(event)
    assert caught.value.attribute == "a.b"


@pytest.mark.parametrize("event", [{1: "a"}, {"": 1}, {"a": {None: 1}}, {"a": {"": 1}}])
def test_names_are_non_empty_strings(event):
    with pytest.raises(EventError, match="attribute names are non-empty strings"):
        flatten(event)


@pytest.mark.parametrize("event", [None, "a", [("a", 1)], 5])
def test_an_event_is_a_mapping(event):
    with pytest.raises(EventError, match="an event is a mapping"):
        flatten(event)


def test_nesting_is_bounded_on_both_sides_of_the_bound():
    def nested(levels):
        event = {"x": 1}
        for _ in range(levels - 1):
            event = {"a": event}
        return event

    assert len(flatten(nested(MAX_NESTING))[0]) == 1
    with pytest.raises(EventError, match=f"deeper than {MAX_NESTING}"):
        flatten(nested(MAX_NESTING + 1))


def test_an_event_that_contains_itself_is_refused_rather_than_followed():
    event: dict[str, object] = {}
    event["a"] = event
    with pytest.raises(EventError, match="nests deeper"):
        flatten(event)
