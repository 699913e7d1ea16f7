"""Values: which are taken, what they become, and how two of them compare."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.errors import HarkenError, ValueOutOfRangeError
from harken.model.numbers import Exact, reading
from harken.model.values import (
    INT_MAX,
    INT_MIN,
    Box,
    Kind,
    Point,
    Type,
    checked_constant,
    checked_value,
    compare,
    kind_of,
    type_of,
)
from tests.strategies import WIDE, wide_values

HUGE = pytest.param(10**5000, id="huge")  # Python refuses to print it


class Money(float):
    """A subclass, as libraries like to pass."""


class Stamp(datetime):
    """Another one."""


@given(wide_values)
def test_a_value_of_the_language_is_taken_as_it_is(value):
    assert repr(checked_value(value)) == repr(value)
    assert repr(checked_constant(value)) == repr(value)


@pytest.mark.parametrize(
    ("given_value", "taken"),
    [
        (np.int8(5), 5),
        (np.uint64(5), 5),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.datetime64("2026-02-28"), date(2026, 2, 28)),
        (np.datetime64("2026-02-28T10:30", "us"), datetime(2026, 2, 28, 10, 30, tzinfo=UTC)),
        (np.datetime64("2026-02-28T10:30", "ns"), datetime(2026, 2, 28, 10, 30, tzinfo=UTC)),
        (Money(2.5), 2.5),
        (datetime(2026, 2, 28, 10), datetime(2026, 2, 28, 10, tzinfo=UTC)),
        (datetime(2026, 2, 28, 10, tzinfo=timezone(timedelta(hours=2))), datetime(2026, 2, 28, 8, tzinfo=UTC)),
    ],
)
def test_numpy_scalars_subclasses_and_other_time_zones_become_plain_values(given_value, taken):
    checked = checked_value(given_value)
    assert repr(checked) == repr(taken)
    assert type(checked) is type(taken)


class Colour(str, Enum):  # noqa: UP042  # the two print differently
    RED = "red"


class Size(IntEnum):
    LARGE = 3


class Liar(float):
    """Says that it is something else than it is."""

    def __float__(self) -> float:
        return math.nan


class Amount(Decimal):
    """A subclass."""


class Here(Point):
    """Another one."""


class Lot(Box):
    """And another."""


class Odd(datetime):
    """Comes to nothing wherever its own methods are asked."""

    def replace(self, *_: object, **__: object) -> datetime:
        raise KeyError("replace")

    astimezone = date = time = replace


class Day(date):
    """A day."""


@pytest.mark.parametrize(
    ("given_value", "taken"),
    [
        (Colour.RED, "red"),
        (Size.LARGE, 3),
        (Liar(2.5), 2.5),
        (Amount("1.5"), Decimal("1.5")),
        (Here(1, 2), Point(1, 2)),
        (Lot(1, 2, 3, 4), Box(1, 2, 3, 4)),
        (Point(Liar(1.5), Size.LARGE), Point(1.5, 3.0)),
        (Day(2026, 2, 28), date(2026, 2, 28)),
        (Odd(2026, 2, 28, 10), datetime(2026, 2, 28, 10, tzinfo=UTC)),
        (Odd(2026, 2, 28, 10, tzinfo=timezone(timedelta(hours=2))), datetime(2026, 2, 28, 8, tzinfo=UTC)),
    ],
)
def test_a_subclass_is_taken_for_the_plain_value_that_it_is(given_value, taken):
    checked = checked_value(given_value)
    assert type(checked) is type(taken)
    assert repr(checked) == repr(taken)


@pytest.mark.parametrize("value", [Amount("NaN"), Amount("Infinity")])
def test_a_subclass_of_decimal_that_is_no_number_is_out_of_range(value):
    with pytest.raises(ValueOutOfRangeError):
        checked_value(value)


def test_a_subclass_of_datetime_keeps_its_last_microsecond_in_any_year():
    moment = Stamp(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    checked = checked_value(moment)
    assert type(checked) is datetime
    assert checked == datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)


@pytest.mark.parametrize("value", [INT_MAX + 1, INT_MIN - 1, HUGE, pytest.param(-(10**5000), id="-huge")])
def test_an_int_past_64_bits_is_out_of_range(value):
    with pytest.raises(ValueOutOfRangeError, match="64-bit integer") as caught:
        checked_value(value)
    assert len(str(caught.value)) < 100


@pytest.mark.parametrize(
    "value", [math.nan, Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), np.float64("nan")]
)
def test_what_is_not_a_number_is_out_of_range(value):
    with pytest.raises(ValueOutOfRangeError):
        checked_value(value)


def test_a_string_with_a_lone_surrogate_is_out_of_range_and_the_error_says_where():
    with pytest.raises(ValueOutOfRangeError, match=r"U\+D800.*index 2"):
        checked_value("ab\ud800")


@pytest.mark.parametrize(
    "moment",
    [
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
        datetime(9999, 12, 31, 23, 59, tzinfo=timezone(timedelta(hours=-1))),
        np.datetime64("20000-01-01"),
    ],
)
def test_a_moment_whose_utc_is_outside_the_calendar_is_out_of_range(moment):
    with pytest.raises(ValueOutOfRangeError):
        checked_value(moment)


def test_a_moment_finer_than_a_microsecond_is_out_of_range_not_rounded():
    with pytest.raises(ValueOutOfRangeError, match="microsecond"):
        checked_value(np.datetime64("2026-02-28T10:30:00.000000001", "ns"))


@pytest.mark.parametrize(
    "value",
    [
        *(None, [], (), {}, b"bytes", object(), 1j, timedelta(1)),
        *(
            np.array([1, 2]),
            np.array([1]),
            np.longdouble(1),
            np.bytes_(b"a"),
            np.complex64(1),
            np.timedelta64(5, "ns"),
        ),
    ],
)
def test_what_the_language_has_no_type_for_is_a_type_error(value):
    with pytest.raises(TypeError, match="is not a type of the language"):
        checked_value(value)


def test_an_infinite_float_may_be_in_an_event_but_not_in_an_expression():
    assert checked_value(math.inf) == math.inf
    with pytest.raises(ValueOutOfRangeError, match="finite"):
        checked_constant(-math.inf)


@pytest.mark.parametrize(
    ("given_value", "taken"),
    [
        (Decimal("3"), 3),
        (Decimal("3.00"), 3),
        (Decimal("0.1"), 0.1),
        (Decimal("-1.10"), -1.1),
        (Decimal("1E+3"), 1000),
    ],
)
def test_a_decimal_constant_becomes_the_number_that_says_the_same(given_value, taken):
    assert repr(checked_constant(given_value)) == repr(taken)


@pytest.mark.parametrize("value", ["0.12345678901234567890123", "1E+23", "9223372036854775809"])
def test_a_decimal_constant_that_no_64_bit_number_equals_is_kept_as_it_is(value):
    kept = checked_constant(Decimal(value))
    assert type(kept) is Exact
    assert kept == Decimal(value)


@pytest.mark.parametrize("x", [math.nan, math.inf, "1", True, None, HUGE])
def test_a_point_needs_finite_numbers(x):
    with pytest.raises(ValueOutOfRangeError, match="finite numbers"):
        Point(x, 0)


@pytest.mark.parametrize("edges", [(1, 0, 0, 1), (0, 1, 1, 0)])
def test_a_box_needs_its_minima_first(edges):
    with pytest.raises(ValueOutOfRangeError, match="min <= max") as caught:
        Box(*edges)
    assert caught.value.suggestion == "write BOX(min_x, min_y, max_x, max_y)"


def test_whole_coordinates_become_floats():
    assert repr(Box(0, 1, 2, 3)) == "Box(min_x=0.0, min_y=1.0, max_x=2.0, max_y=3.0)"
    assert Point(1, 2).bounds == (1.0, 2.0, 1.0, 2.0)


@pytest.mark.parametrize(
    ("value", "kind", "named"),
    [
        (True, Kind.BOOL, Type.BOOL),
        (1, Kind.NUMBER, Type.INT),
        (1.0, Kind.NUMBER, Type.FLOAT),
        (Decimal(1), Kind.NUMBER, Type.DECIMAL),
        ("1", Kind.STRING, Type.STRING),
        (date(2026, 1, 1), Kind.DATE, Type.DATE),
        (datetime(2026, 1, 1, tzinfo=UTC), Kind.TIMESTAMP, Type.TIMESTAMP),
        (Point(0, 0), Kind.POINT, Type.POINT),
        (Box(0, 0, 0, 0), Kind.BOX, Type.BOX),
    ],
)
def test_every_value_has_a_kind_and_a_type_that_agree(value, kind, named):
    assert kind_of(value) is kind
    assert type_of(value) is named
    assert named.kind is kind


def test_only_points_and_boxes_have_no_order():
    assert {kind for kind in Kind if not kind.is_ordered} == {Kind.POINT, Kind.BOX}


@given(WIDE[Kind.NUMBER], WIDE[Kind.NUMBER])
def test_numbers_compare_by_exact_value(left, right):
    decimals = isinstance(left, Exact) or isinstance(right, Exact)
    left_value, right_value = (Fraction(reading(each) if decimals else each) for each in (left, right))
    difference = left_value - right_value
    assert compare(left, right) == (difference > 0) - (difference < 0)


def test_an_int_past_2_to_the_53_is_told_apart_from_the_nearest_float():
    assert compare(2**53 + 1, float(2**53)) == 1
    assert compare(2**53, float(2**53)) == 0
    assert compare(float(2**63), INT_MAX) == 1


@given(st.integers(-(10**6), 10**6), st.integers(0, 6))
def test_a_decimal_meets_a_float_at_the_float_as_written(digits, places):
    written = Decimal(digits).scaleb(-places)
    assert compare(written, float(written)) == 0
    assert compare(written + Decimal("1e-20"), float(written)) == 1
    assert compare(float(written), written + Decimal("1e-20")) == -1


def test_a_decimal_meets_an_int_and_infinity_exactly():
    assert compare(Decimal(2**53 + 1), 2**53 + 1) == 0
    assert compare(Decimal(2**63), float(2**63)) == 0  # whose shortest form is 9.223372036854776e+18
    assert compare(Decimal("1E+400"), math.inf) == -1
    assert compare(Decimal("1E+400"), 1.7976931348623157e308) == 1


@given(WIDE[Kind.STRING], WIDE[Kind.STRING])
def test_strings_compare_by_code_point(left, right):
    one, other = [ord(char) for char in left], [ord(char) for char in right]
    assert compare(left, right) == (one > other) - (one < other)


def test_errors_of_values_are_value_errors_under_the_one_root():
    assert issubclass(ValueOutOfRangeError, ValueError)
    assert issubclass(ValueOutOfRangeError, HarkenError)
