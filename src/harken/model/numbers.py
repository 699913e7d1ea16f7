"""Numbers at their exact value, in one order: ints, floats and decimals together (docs/adr/0008).

An int and a decimal count as what they are. So does a whole float; any other float counts as the shortest decimal
that reads back as it, which is what Python prints. Two floats never share such a decimal, it lies where the float
lies, and it is never whole: so this is one order, in which everything that is equal is interchangeable.

A constant is an int or a float wherever one of these says it, and only otherwise an `Exact`: machine numbers stay
what they are.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation
from typing import NoReturn

from harken.errors import ValueOutOfRangeError

INT_MIN, INT_MAX = -(2**63), 2**63 - 1

MAX_DIGITS = 76
"""Of a decimal constant, from the first that is not zero to the last: as many as Arrow's widest decimals have."""

_LEAST_EXPONENT = -324
"""Of the first digit: no float is nearer to zero."""

SHORT = 16
"""Characters of a real literal that can hold no more than 15 digits, which every float gives back."""

TINY = 1e-290
"""Nearer to zero, floats have fewer digits."""

SHORTEST_TINY = 5
"""Characters of a real literal that are too few for such a number, unless it is zero: `1e-324` has more."""


_FORM = re.compile(r"[+-]?[0-9]{1,1000}(?:\.[0-9]{1,1000})?(?:[eE][+-]?[0-9]{1,9})?")


class Exact(Decimal):
    """A decimal constant that no 64-bit int or float says. Hashed and compared as the order above has it."""

    __slots__ = ()
    # An Exact equals ints and decimals, of which Python gives equal ones the same hash, and never a float.
    __hash__ = Decimal.__hash__

    def __eq__(self, other: object) -> bool:
        return Decimal.__eq__(self, reading(other))

    def __ne__(self, other: object) -> bool:
        return Decimal.__ne__(self, reading(other))

    def __lt__(self, other: Decimal | float) -> bool:  # type: ignore[override]  # floats too
        return Decimal.__lt__(self, reading(other))  # type: ignore[operator]

    def __le__(self, other: Decimal | float) -> bool:  # type: ignore[override]
        return Decimal.__le__(self, reading(other))  # type: ignore[operator]

    def __gt__(self, other: Decimal | float) -> bool:  # type: ignore[override]
        return Decimal.__gt__(self, reading(other))  # type: ignore[operator]

    def __ge__(self, other: Decimal | float) -> bool:  # type: ignore[override]
        return Decimal.__ge__(self, reading(other))  # type: ignore[operator]

    def __str__(self) -> str:
        """As the language writes it: a whole one without an exponent, which would make it the nearest float."""
        if self.as_tuple().exponent >= 0:  # type: ignore[operator]  # finite, so a number
            return f"{self:f}.0"
        return Decimal.__str__(self)


def reading(number: object) -> object:
    """What a float that is not whole counts as beside a decimal; anything else is what it is."""
    # Whole floats are taken at their exact value: beyond 2^53 a shortest form may round past an int.
    if isinstance(number, float) and math.isfinite(number) and not number.is_integer():
        return Decimal(repr(number))
    return number


def says(number: float, value: Decimal) -> bool:
    """Whether a float counts as just this decimal."""
    return math.isfinite(number) and Decimal.__eq__(value, reading(number))


def floor_of(value: Exact) -> float:
    """The greatest float that counts as less than a constant."""
    nearest = float(value)
    while not nearest < value:
        nearest = math.nextafter(nearest, -math.inf)
    return nearest


def real_constant(written: str) -> float | Exact:
    """What a real literal stands for: a float that counts as the same, or else the decimal itself.

    With an exponent it is also the float that is printed so: `1e23` is one, though that float is not exactly 10²³.
    """
    nearest = float(written)
    if not may_be_exact(len(written), nearest):
        return nearest
    _check_reach(nearest)
    try:
        value = Decimal(written)
    except InvalidOperation:  # for an exponent that not even decimals have; upwards, it would be infinite
        _refuse_tiny()
    if says(nearest, value) or ("e" in written.lower() and Decimal(repr(nearest)) == value):
        return nearest
    return _exact(value)


def may_be_exact(length: int, nearest: float) -> bool:
    """Whether a literal of so many characters may be another number than its nearest float."""
    near_zero = abs(nearest) <= TINY and length > SHORTEST_TINY
    return length > SHORT or near_zero or math.isinf(nearest)


def decimal_constant(value: Decimal) -> int | float | Exact:
    """What a finite decimal stands for as a constant; an error if it has more digits than a constant may have."""
    nearest = float(value)
    _check_reach(nearest)
    if INT_MIN <= value <= INT_MAX and value == value.to_integral_value():
        return int(value)
    return nearest if says(nearest, value) else _exact(value)


def read_decimal(written: str) -> int | float | Exact:
    """The constant that a decimal stands for which was kept as text."""
    if not _FORM.fullmatch(written):
        raise ValueOutOfRangeError(f"{written[:40]!r} is no decimal")
    return decimal_constant(Decimal(written))


def equal_constant(value: Decimal) -> float | Decimal:
    """What a decimal of an event is looked up as among constants, which are hashed: equal ones hash alike."""
    nearest = float(value)
    return nearest if says(nearest, value) else Exact(value)


def _exact(value: Decimal) -> Exact:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "only finite decimals come here"
    kept = len(digits)
    while kept > 1 and digits[kept - 1] == 0:
        kept -= 1
    if kept > MAX_DIGITS:
        raise ValueOutOfRangeError(
            f"a number has at most {MAX_DIGITS} digits, found {kept:,}", suggestion="round it to fewer"
        )
    if value.adjusted() < _LEAST_EXPONENT:
        _refuse_tiny()
    return Exact((sign, digits[:kept], exponent + len(digits) - kept))


def _refuse_tiny() -> NoReturn:
    raise ValueOutOfRangeError(
        "the number is nearer to zero than any 64-bit number", suggestion="compare with 0 instead"
    )


def _check_reach(nearest: float) -> None:
    if math.isinf(nearest):
        raise ValueOutOfRangeError(
            "a constant must be finite, and less than 1.8e308", suggestion="leave out the bound instead"
        )
