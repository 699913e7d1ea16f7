"""Numbers of all types are in one order, and constants keep every digit that was written."""

from __future__ import annotations

import math
import pickle
import time
from decimal import Context, Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harken.errors import ParseError, ValueOutOfRangeError
from harken.language import parse, to_text
from harken.model.builder import attr
from harken.model.numbers import MAX_DIGITS, Exact, decimal_constant, floor_of, reading, real_constant
from harken.model.values import INT_MAX, INT_MIN, checked_constant, compare

_floats = st.floats(allow_nan=False)
_ints = st.integers(INT_MIN, INT_MAX)
_near = st.builds(lambda digits, halvings: digits / 2**halvings, st.integers(-(2**55), 2**55), st.integers(0, 40))
_WIDE = Context(prec=200)


@st.composite
def _beside(draw):
    """A decimal that lies on a float, on what the float is printed as, or just beside one of these."""
    number = draw(_near)
    start = draw(st.sampled_from([Decimal(number), Decimal(repr(number))]))
    return _WIDE.add(start, Decimal(draw(st.integers(-2, 2))).scaleb(-draw(st.integers(0, 9))))


numbers = st.one_of(
    _floats, _ints, _near, _beside(), _beside().map(decimal_constant), st.decimals(-9, 9, places=20)
)


@given(numbers, numbers, numbers)
def test_numbers_of_all_types_are_in_one_order(one, other, third):
    assert compare(one, other) == -compare(other, one)
    assert compare(one, one) == 0
    low, middle, high = sorted((one, other, third), key=_place)
    assert compare(low, middle) <= 0
    assert compare(middle, high) <= 0
    assert compare(low, high) == min(compare(low, middle), compare(middle, high))


def _place(number):
    """Where a number lies, found without `compare`: every float at its reading, as a pair that sorts."""
    if isinstance(number, float) and math.isinf(number):
        return (math.copysign(1, number), Decimal(0))
    return (0.0, Decimal(reading(number)))


@given(numbers, numbers)
def test_two_numbers_compare_as_what_they_count_as_does(one, other):
    a, b = _place(one), _place(other)
    assert compare(one, other) == (a > b) - (a < b)


@given(st.one_of(_beside(), _near.map(Decimal)), st.one_of(_floats, _ints, _near, _beside().map(decimal_constant)))
@example(Decimal("0.1000000000000000055511151231257827021181583404541015625"), 0.1)
@example(Decimal(2**53 + 1), float(2**53))
def test_constants_that_are_no_64_bit_number_compare_and_hash_like_all_others(value, other):
    one = decimal_constant(value)
    sign = compare(one, other)
    assert (one == other, one != other) == (sign == 0, sign != 0)
    assert (one < other, one <= other, one > other, one >= other) == (sign < 0, sign <= 0, sign > 0, sign >= 0)
    assert (other < one, other > one) == (sign > 0, sign < 0)
    assert ({one: "found"}.get(other) == "found") == (sign == 0)


@given(_beside())
def test_a_decimal_is_a_constant_of_just_its_value(value):
    constant = decimal_constant(value)
    assert compare(constant, value) == 0
    assert checked_constant(value) == constant
    assert type(constant) in (int, float, Exact)


@given(st.one_of(_near, _floats.filter(math.isfinite)))
def test_what_python_prints_of_a_float_is_that_float(number):
    read = real_constant(repr(number))
    assert type(read) is float
    assert repr(read) == repr(number)


@given(_beside())
def test_a_constant_written_out_is_read_as_the_same_one(value):
    for constant in (
        decimal_constant(value),
        real_constant(f"{value:f}" if "." in f"{value:f}" else f"{value:f}.0"),
    ):
        expression = attr("x") == constant
        assert repr(parse(to_text(expression))) == repr(expression)


@given(st.integers(10**15, 10**40), st.integers(0, 45))
def test_every_digit_that_was_written_is_kept(digits, places):
    written = f"{Decimal(digits).scaleb(-places):f}" if places else f"{digits}.0"
    assert compare(real_constant(written), Decimal(written)) == 0


def test_the_float_below_a_decimal_is_the_greatest_that_counts_as_less():
    for written in ("90071992547409.93", "0.10000000000000001", "-0.10000000000000001", "9007199254740993.0"):
        constant = real_constant(written)
        assert isinstance(constant, Exact)
        below = floor_of(constant)
        assert below < constant < math.nextafter(below, math.inf)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("90071992547409.93", Exact("90071992547409.93")),
        ("90071992547409.94", 90071992547409.94),
        ("0.10000000000000001", Exact("0.10000000000000001")),
        ("9007199254740993.0", Exact("9007199254740993")),
        ("1e23", 1e23),
        ("100000000000000000000000.0", Exact("1e23")),
        ("99999999999999991611392.0", 1e23),
        ("5e-324", 5e-324),
        ("1.2345e-322", Exact("1.2345e-322")),
        ("0.000000000000000000000", 0.0),
        ("0e-99999999", 0.0),
        ("1.10000000000000000000000000", 1.1),
    ],
)
def test_a_real_literal_is_a_float_where_one_counts_as_the_same(written, value):
    read = real_constant(written)
    assert (type(read), read) == (type(value), value)


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("1e999999", "a constant must be finite"),
        ("1e99999999999999999999999", "a constant must be finite"),
        ("1" + "0" * 400 + ".5", "a constant must be finite"),
        ("1e-999999", "nearer to zero than any 64-bit number"),
        ("1e-99999999999999999999999", "nearer to zero than any 64-bit number"),
        ("0." + "1" * (MAX_DIGITS + 1), "a number has at most 76 digits, found 77"),
        ("0." + "1" * 200_000, "a number has at most 76 digits, found 200,000"),
    ],
)
def test_a_number_past_all_bounds_is_refused_with_its_place(written, reason):
    with pytest.raises(ParseError, match=reason) as caught:
        parse(f"x < {written}")
    assert caught.value.position.column == 5


def test_as_many_digits_as_there_may_be_are_kept():
    written = "0." + "1" * MAX_DIGITS
    assert parse(f"x = {written}").value == Decimal(written)


@pytest.mark.parametrize("value", [Decimal("1e999999"), Decimal("-1e400"), Decimal("1e-999999")])
def test_a_decimal_past_all_bounds_is_no_constant(value):
    with pytest.raises(ValueOutOfRangeError):
        checked_constant(value)


def test_a_decimal_of_any_exponent_compares_without_being_written_out():
    started = time.process_time()
    assert compare(Decimal("1e999999999"), 10**18) == 1
    assert compare(Decimal("1e-999999999"), 5e-324) == -1
    assert Exact("0.10000000000000001") < Decimal("1e999999999")
    assert time.process_time() - started < 5  # writing one out would take gigabytes


def test_an_exact_constant_survives_pickling():
    for written in ("90071992547409.93", "9007199254740993", "1e23"):
        again = pickle.loads(pickle.dumps(Exact(written)))
        assert (type(again), again, str(again)) == (Exact, Exact(written), str(Exact(written)))
