"""Single events are checked while they are read: whatever is odd about one, it is answered as it ever was."""

from __future__ import annotations

import enum
import math
import sys
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import Box, Engine, Point
from harken.errors import EventError
from harken.matching.encoding import reading
from harken.model.events import PLAIN, _pairs, is_flat

pytestmark = pytest.mark.kernel

UNCHECKED = {"dynamic": {}, "static": {}, "propagation": {}, "auto": {"small": 0}}

ASKED = [
    "x = 1",
    "x = 1.5",
    "x = TRUE",
    "x = 'one'",
    "x = 'Zürich'",
    "x = 100000000000000000000.0",
    "x = 1e20",
    "x = 9223372036854775807",
    "x != 1",
    "x < 2",
    "x >= 9223372036854775808.0",
    "x > 'm'",
    "x LIKE 'o%'",
    "x IS NULL",
    "x IS NOT NULL",
    "x WITHIN BOX(0, 0, 5, 5)",
    "x.y = 1",
    "x.y IS NULL",
    "a = 1 AND x = 1",
    "a = 1 AND b = 'b' AND c = 2.5 AND d = TRUE",
    "x IS NULL AND a = 1",
]


class Text(str):
    """A string that notes who asks for its hash, or whether it is equal to another."""

    asked = 0

    def __eq__(self, other):
        Text.asked += 1
        return str.__eq__(self, other)

    def __hash__(self):
        Text.asked += 1
        return str.__hash__(self)


class Odd(type):
    """Classes that cannot be hashed, and are equal to all others."""

    def __eq__(cls, other):
        raise AssertionError("nobody has to ask")

    def __hash__(cls):
        raise AssertionError("nobody has to ask")


class Number(int):
    pass


class Color(enum.StrEnum):
    ONE = "one"


class Broken(metaclass=Odd):
    pass


VALUES = [
    *(0, 1, -1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**20, 10**400),
    *(1.0, 1.5, -0.0, math.nan, math.inf, -math.inf, 1e20, float(2**63)),
    *("", "one", "two", "Zürich", "Genève", "\ud800", "o\udfff", "\x00"),
    *(True, False, None, Number(1), Number(2**70), Color.ONE, np.int64(1), np.float64(math.nan), np.str_("one")),
    *(Decimal("1.5"), Decimal("1e20"), Decimal("nan"), date(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)),
    *(Point(1, 2), Box(0, 0, 1, 1), [1], (1,), {1}, b"one", object(), 1j),
    *({}, {"y": 1}, {"y": None}, {"y": {"z": 1}}, {"": 1}, {1: 1}, {"type": "Point", "coordinates": [1, 2]}),
]
NAMES = ["", Text("x"), np.str_("x"), Color.ONE, 1, None, ("x",), b"x", "x.y", "é", "\ud800", "one"]
PLAIN_PART = {"a": 1, "b": "b", "c": 2.5, "d": True}


def made(algorithm, **options):
    engine = Engine(algorithm, **options)
    engine.subscribe_many(enumerate(ASKED))
    return engine


@pytest.fixture(scope="module")
def judge():
    return made("reference")


@pytest.fixture(scope="module", params=UNCHECKED)
def engine(request):
    return made(request.param, **UNCHECKED[request.param])


def answer(engine, event):
    """What an event is answered with: who matches, or the error."""
    try:
        return sorted(engine.match(event))
    except EventError as error:
        return type(error), str(error), error.attribute, error.value


def with_item(name, value, position):
    """A plain event with one more item at a position."""
    items = list(PLAIN_PART.items())
    return dict([*items[:position], (name, value), *items[position:]])


def check(engine, judge, event):
    before = [Counter(each.stats()["foreign"]) for each in (engine, judge)]
    assert answer(engine, event) == answer(judge, event), event
    after = [Counter(each.stats()["foreign"]) for each in (engine, judge)]
    assert after[0] - before[0] == after[1] - before[1], event
    # What was half read leaves nothing behind.
    assert answer(engine, PLAIN_PART) == answer(judge, PLAIN_PART), event


@pytest.mark.parametrize("name", ["x", "x.y", "a", "unasked"])
@pytest.mark.parametrize("position", [0, 2, 4])
def test_odd_values_are_answered_as_ever(engine, judge, name, position):
    for value in VALUES:
        check(engine, judge, with_item(name, value, position))


@pytest.mark.parametrize("position", [0, 2, 4])
def test_odd_names_are_answered_as_ever(engine, judge, position):
    for name in NAMES:
        for value in (1, "one", None, [1], {"y": 1}):
            check(engine, judge, with_item(name, value, position))


def test_odd_events_are_answered_as_ever(engine, judge):
    class Events(dict):
        pass

    for event in ({}, Events(a=1, x=1), None, 1, "x", [("x", 1)], {"x": {"y": 1}, "x.y": 1}):
        check(engine, judge, event)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_whatever_comes_together_is_answered_as_ever(engine, judge, data):
    names = st.sampled_from(["a", "b", "c", "d", "x", "x.y", "unasked", *(each for each in NAMES if each != "x")])
    items = data.draw(st.lists(st.tuples(names, st.sampled_from(VALUES)), max_size=6))
    event = dict(items)
    if is_flat(event):
        assert engine._matcher.match_unchecked(event) is not None
    check(engine, judge, event)


def test_a_constant_says_that_a_value_is_sound_unless_an_integer_is_too_large(engine):
    matcher = engine._matcher
    assert matcher.match_unchecked({"x": "Zürich"}) is not None
    assert matcher.match_unchecked({"x": "Genève"}) is not None
    assert matcher.match_unchecked({"x": "\ud800"}) is None
    assert matcher.match_unchecked({"x": 1e20}) is not None
    assert matcher.match_unchecked({"x": 10**20}) is None
    assert matcher.match_unchecked({"x": 2**63 - 1}) is not None
    assert matcher.match_unchecked({"x": 2**63}) is None


def test_constants_of_one_value_and_several_classes_are_told_apart(engine, judge):
    for value in (1, 1.0, True, "1"):
        check(engine, judge, {"x": value})
    assert 2 in engine.match({"x": True})
    assert 2 not in engine.match({"x": 1})
    assert 0 in engine.match({"x": 1.0})
    assert 0 not in engine.match({"x": True})


def test_no_code_of_others_is_run_where_an_event_is_read_unchecked(engine):
    matcher, text = engine._matcher, Text("x")
    for event in ({"a": 1, "x": Broken()}, {"unasked": Broken()}, {"x": text}, {"unasked": text}, {text: 1}):
        before = Text.asked
        assert matcher.match_unchecked(event) is None
        assert Text.asked == before


def test_a_value_whose_class_cannot_be_hashed_is_foreign_or_an_error_as_ever(engine, judge):
    class Unhashable(type):
        def __eq__(cls, other):
            return cls is other

    class Value(metaclass=Unhashable):
        pass

    for name in ("x", "unasked"):
        check(engine, judge, {"a": 1, name: Value()})


@pytest.mark.parametrize("algorithm", UNCHECKED)
def test_events_with_more_attributes_than_columns_are_read_anew_or_refused(algorithm):
    engine, judge = Engine(algorithm, **UNCHECKED[algorithm]), Engine("reference")
    count = 1_200
    for each in (engine, judge):
        each.subscribe_many((number, f"a{number} = {number}") for number in range(count))
    wide = {f"a{number}": number for number in range(count)}
    for event in ({"a1": 1}, wide, {**wide, "z": math.nan}, {**wide, "a7": "é"}, {**wide, "": 1}, {"a1": 1}):
        assert answer(engine, event) == answer(judge, event)


@pytest.mark.parametrize("algorithm", UNCHECKED)
def test_events_with_ever_other_attributes_that_nobody_asks_for_are_matched(algorithm, monkeypatch):
    monkeypatch.setattr(reading, "MOST_UNASKED", 3)
    engine = made(algorithm, **UNCHECKED[algorithm])
    wanted = sorted(engine.match(PLAIN_PART))
    for number in range(20):
        assert sorted(engine.match({**PLAIN_PART, f"n{number}": number, "m": "m"})) == wanted
        with pytest.raises(EventError, match="non-empty"):
            engine.match({**PLAIN_PART, f"n{number}": number, "": 1})


@pytest.mark.parametrize("algorithm", UNCHECKED)
def test_a_schema_is_held_to_though_an_event_is_flat(algorithm):
    engine = Engine(algorithm, schema={"x": "int"}, **UNCHECKED[algorithm])
    engine.subscribe(1, "x = 1")
    assert engine.match({"x": 1}) == [1]
    with pytest.raises(EventError, match="declared int"):
        engine.match({"x": "one"})


def test_what_is_plain_is_what_is_flat():
    for value in VALUES:
        is_plain = PLAIN.get(type(value), lambda _: False) if type(type(value)) is type else lambda _: False
        assert is_plain(value) is is_flat({"x": value}), value


READING = {is_flat.__code__, reading.RowReader.read.__code__}

IN_KERNELS = set() if numba.config.DISABLE_JIT else set(UNCHECKED)
"""Algorithms that read and check events in kernels, which no other thread can come between."""


@pytest.mark.parametrize("algorithm", [*UNCHECKED, "counting", "reference"])
@pytest.mark.parametrize("times", [1, 2, 5])
def test_an_event_that_another_thread_changes_while_it_is_read_is_matched_as_it_was_once(algorithm, times):
    """As if by another thread: at a line of whoever reads it, after the first value."""
    engine = Engine(algorithm, **UNCHECKED.get(algorithm, {}))
    engine.subscribe_many(enumerate(["a = 1 AND b = 'b'", "c > 2 AND b IS NOT NULL", "z9 = 1"]))
    changed = []

    def trace(frame, what, _):
        read = frame.f_locals.get("event")
        if what == "line" and "value" in frame.f_locals and "its_class" in frame.f_locals and len(changed) < times:
            changed.append(read.update({f"z{len(read)}": 1}))
        return trace

    def match(wanted):
        del changed[:]
        sys.settrace(lambda frame, *_: trace if frame.f_code in READING else None)
        try:
            found = wanted()
        finally:
            sys.settrace(None)
        return found

    engine.match({"a": 1, "b": "b", "c": 3})
    engine.match_batch([{"a": 1, "b": "b", "c": 3}])
    for _ in range(2):
        event = {"a": 1, "b": "b", "c": 3}
        assert {0, 1} <= set(match(lambda event=event: engine.match(event)))
        assert bool(changed) is (algorithm not in IN_KERNELS)
        event = {"a": 1, "b": "b", "c": 3}
        batch = [{"a": 1}, event, {"c": 3, "b": ""}]
        told = match(lambda batch=batch: engine.match_batch(batch, on_error="collect"))
        assert bool(changed) is (algorithm not in IN_KERNELS)
        assert not len(told.rejects)
        pairs = set(zip(*told.matches.to_pydict().values(), strict=True))
        assert {(1, 0), (1, 1), (2, 1)} <= pairs


@pytest.mark.parametrize("algorithm", [*UNCHECKED, "counting", "reference"])
def test_a_mapping_within_an_event_that_another_thread_changes_is_read_as_it_was_once(algorithm):
    engine = Engine(algorithm, **UNCHECKED.get(algorithm, {}))
    engine.subscribe_many(enumerate(["m.a = 1 AND m.b = 'b'", "m.n.c > 2"]))

    def trace(frame, what, _):
        if what == "line" and "value" in frame.f_locals:
            for each in (inner, inner["n"]):
                each.update({f"z{len(each)}": 1})
        return trace

    for match in (lambda event: engine.match(event), lambda event: set(_matched(engine, event))):
        inner = {"a": 1, "b": "b", "n": {"c": 3, "d": 4}}
        event = {"x": 1, "m": inner}
        sys.settrace(lambda frame, *_: trace if frame.f_code is _pairs.__code__ else None)
        try:
            found = match(event)
        finally:
            sys.settrace(None)
        assert len(inner) > 3
        assert sorted(found) == [0, 1]


def _matched(engine, event):
    told = engine.match_batch([{"x": 1}, event], on_error="collect")
    assert not len(told.rejects)
    return told.matches.column("subscription").to_pylist()


def test_what_a_handler_of_signals_raises_while_an_event_is_read_is_no_change_of_it():
    engine = Engine("dynamic")
    engine.subscribe(0, "a = 1")

    def trace(frame, what, _):
        if what == "line" and "value" in frame.f_locals:
            raise RuntimeError("dictionary changed size during iteration")
        return trace

    for matched in (lambda: engine.match({"a": 1}), lambda: engine.match_batch([{"a": 1}])):
        sys.settrace(lambda frame, *_: trace if frame.f_code in READING else None)
        try:
            with pytest.raises(RuntimeError, match="changed size"):
                matched()
        finally:
            sys.settrace(None)
