"""Events: flattening, missing values, and what is wrong with those that are no values."""

from __future__ import annotations

import math
from collections import OrderedDict
from datetime import datetime, timedelta, timezone
from types import MappingProxyType

import pytest

from harken.errors import EventError
from harken.model.events import MAX_NESTING, flatten
from harken.model.foreign import parents
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
    ("value", "what", "shown"),
    [
        ([1, 2], "a list", "[1, 2]"),
        (b"x", "bytes", "b'x'"),
        (math.nan, "NaN", "nan"),
        (2**63, "an integer past 64 bits", "9223372036854775808"),
        (10**5000, "an integer past 64 bits", "a number of 16610 bits"),
        ("\ud800", "a string with a lone surrogate", repr("\ud800")),
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))), "a timestamp outside the calendar in UTC", None),
        ({"type": "Point", "coordinates": [1]}, "a shape with bad coordinates", None),
        ({"type": "Point", "coordinates": 7}, "a shape with bad coordinates", None),
        ({"type": "Point", "coordinates": [math.nan, 1]}, "a shape with bad coordinates", None),
        ({"type": "Point", "coordinates": [10**5000, 1]}, "a shape with bad coordinates", None),
        ({"type": "Box", "coordinates": [1, 1, 0, 0]}, "a shape with bad coordinates", None),
        ({"type": "Point", "coordinates": None}, "a shape with bad coordinates", None),
        ([0] * 10**6, "a list", None),
    ],
    ids=lambda value: repr(type(value)),
)
def test_what_the_language_has_no_type_for_is_foreign_and_can_be_told(value, what, shown):
    flat, foreign = flatten({"a": value, "b": 1})
    assert flat == {"a": foreign["a"], "b": 1}
    assert list(foreign) == ["a"]
    assert foreign["a"].what == what
    assert len(foreign["a"].shown) <= 80
    assert shown is None or foreign["a"].shown == shown


def test_the_parents_of_a_name_are_the_names_above_it():
    assert list(parents("a.b.c")) == ["a", "a.b"]
    assert list(parents("a")) == []


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
