"""Typed values, and the one place that says how two of them compare.

A **type** is what a constant is of (`int`, `float`, ...). A **kind** is what comparison looks at: int, float and
decimal are one kind, number, because `5 = 5.0`. Values of different kinds never compare: the answer is
unknown, as for a missing value.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NoReturn, TypeAlias

from harken.errors import ExpressionError, ValueOutOfRangeError, ValueTypeError
from harken.model.numbers import INT_MAX as INT_MAX
from harken.model.numbers import INT_MIN as INT_MIN
from harken.model.numbers import MAX_DIGITS, Exact, decimal_constant, reading


class Kind(enum.Enum):
    """What can be compared with what."""

    NUMBER = "number"
    STRING = "string"
    BOOL = "bool"
    DATE = "date"
    TIMESTAMP = "timestamp"
    POINT = "point"
    BOX = "box"

    # Members are singletons, and hashing one happens for every predicate: identity is enough.
    __hash__ = object.__hash__

    @property
    def is_ordered(self) -> bool:
        """Whether < and > make sense between two values of this kind."""
        return self not in SPATIAL_KINDS


SPATIAL_KINDS = frozenset({Kind.POINT, Kind.BOX})


class Type(enum.Enum):
    """What constants are of, and what a schema can declare an attribute to be.

    It can declare all but decimal: decimals count as float there.
    """

    INT = "int"
    FLOAT = "float"
    STRING = "string"
    BOOL = "bool"
    DATE = "date"
    TIMESTAMP = "timestamp"
    POINT = "point"
    BOX = "box"
    DECIMAL = "decimal"

    @property
    def kind(self) -> Kind:
        """The kind under which values of this type compare."""
        return Kind.NUMBER if self in NUMERIC_TYPES else Kind(self.value)


NUMERIC_TYPES = frozenset({Type.INT, Type.FLOAT, Type.DECIMAL})


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """A point in the plane."""

    x: float
    y: float

    def __post_init__(self) -> None:
        _check_coordinates("a point", self.x, self.y)
        object.__setattr__(self, "x", _plain_float(self.x))
        object.__setattr__(self, "y", _plain_float(self.y))

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """The point as the box that holds nothing else."""
        return self.x, self.y, self.x, self.y


@dataclass(frozen=True, slots=True, order=True)
class Box:
    """An axis-parallel rectangle, its edges included."""

    min_x: float
    min_y: float
    max_x: float
    max_y: float

    def __post_init__(self) -> None:
        _check_coordinates("a box", self.min_x, self.min_y, self.max_x, self.max_y)
        if self.min_x > self.max_x or self.min_y > self.max_y:
            raise ValueOutOfRangeError(
                f"a box needs min <= max on both axes, found {self.bounds}",
                suggestion="write BOX(min_x, min_y, max_x, max_y)",
            )
        for field in ("min_x", "min_y", "max_x", "max_y"):
            object.__setattr__(self, field, _plain_float(getattr(self, field)))

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """The four edges: min_x, min_y, max_x, max_y."""
        return self.min_x, self.min_y, self.max_x, self.max_y


Value: TypeAlias = int | float | Exact | str | bool | date | datetime | Point | Box
"""A constant of an expression."""

EventValue: TypeAlias = Value | Decimal
"""A value of an event: what a constant may be, and exact decimals as databases and Spark send them."""

_KIND_OF_CLASS: dict[type, Kind] = {
    bool: Kind.BOOL,
    int: Kind.NUMBER,
    float: Kind.NUMBER,
    Decimal: Kind.NUMBER,
    Exact: Kind.NUMBER,
    str: Kind.STRING,
    datetime: Kind.TIMESTAMP,
    date: Kind.DATE,
    Point: Kind.POINT,
    Box: Kind.BOX,
}


CLASSES = tuple(_KIND_OF_CLASS)
"""Those that values of events are of."""


def kind_of(value: EventValue) -> Kind:
    """The kind of a value that has passed `checked_constant` or `checked_value`."""
    return _KIND_OF_CLASS[type(value)]


def kind_of_class(its_class: type) -> Kind:
    """The kind of values of a class, one of those that events may carry."""
    return _KIND_OF_CLASS[its_class]


def type_of(value: EventValue) -> Type:
    """The type of a value."""
    kind = kind_of(value)
    if kind is Kind.NUMBER:
        return Type.INT if isinstance(value, int) else Type.DECIMAL if isinstance(value, Decimal) else Type.FLOAT
    return Type(kind.value)


def checked_constant(value: object) -> Value:
    """The value as a constant of an expression may hold it, or a clear error.

    Constants are finite. A decimal becomes the 64-bit int or float that says exactly the same, if one does.
    """
    # Nearly all constants are plain; every one comes through here, when read and when a predicate is made.
    if (type(value) is str and value.isascii()) or (type(value) is int and INT_MIN <= value <= INT_MAX):
        return value
    if type(value) is Exact:  # as it was read: asked again, it could become an int
        return value
    try:
        checked = checked_value(value)
    except ExpressionError as error:
        raise type(error)(error.message, suggestion=_constant_advice(value) or error.suggestion) from None
    if isinstance(checked, float) and math.isinf(checked):
        raise ValueOutOfRangeError("a constant must be finite", suggestion="leave out the bound instead")
    return decimal_constant(checked) if isinstance(checked, Decimal) else checked


def _constant_advice(value: object) -> str | None:
    """What to write instead of something that is no constant."""
    if isinstance(value, int):
        return "as a Decimal it is kept exactly" if abs(value) < 10**MAX_DIGITS else None
    if isinstance(value, Decimal) and value.is_infinite():
        return "leave out the bound instead"
    if value is None or isinstance(value, float | Decimal):
        return "to ask whether an attribute is missing, write attr(...).is_null(), or IS NULL"
    if isinstance(value, list | tuple | set | frozenset):
        return "to ask for one of several values, write attr(...).is_in([...])"
    if isinstance(value, bytes | bytearray):
        return "decode it to a string"
    # By name, since attributes are built on values.
    is_attribute = type(value).__module__ == "harken.model.builder"
    return "two attributes cannot be compared yet" if is_attribute else None


def checked_value(value: object) -> EventValue:
    """The value as an event may carry it: one of our classes exactly, in range; or a clear error.

    Subclasses and numpy scalars come back as the plain Python value: what they are, not what they say they are
    (an Enum of strings prints as its own name).
    """
    match value:
        case bool():
            return bool(value)
        case str():
            return _checked_string(str.__str__(value))
        case int():
            return _checked_int(int.__index__(value))
        case float():
            return _checked_float(float.__float__(value))
        case datetime():
            return _utc(value)
        case date():
            return date(value.year, value.month, value.day)
        case Point():
            return value if type(value) is Point else Point(value.x, value.y)
        case Box():
            return value if type(value) is Box else Box(value.min_x, value.min_y, value.max_x, value.max_y)
        case Decimal():
            return _checked_decimal(value if type(value) is Exact else Decimal(value))
    plain = _from_numpy(value)
    if plain is not value:
        return checked_value(plain)
    raise ValueTypeError(f"{type(value).__name__} is not a type of the language")


def compare(left: EventValue, right: EventValue) -> int:
    """-1, 0 or 1 for two values of one kind, by exact value.

    Int and float compare exactly (2^53 + 1 differs from float 2^53). A decimal meets a float at the
    float's shortest decimal form, so that the decimal 1.10 equals the constant written 1.10.
    """
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        left, right = reading(left), reading(right)  # type: ignore[assignment]  # numbers stay numbers
    if left == right:
        return 0
    return -1 if left < right else 1  # type: ignore[operator]


def _checked_int(value: int) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise ValueOutOfRangeError(f"{_shown(value)} does not fit a 64-bit integer")
    return value


def _checked_float(value: float) -> float:
    return _refuse_nan(value) if math.isnan(value) else value


def _checked_decimal(value: Decimal) -> Decimal:
    return value if value.is_finite() else _refuse_nan(value)


def _refuse_nan(value: float | Decimal) -> NoReturn:
    raise ValueOutOfRangeError(f"{value} is not a number that can be compared", suggestion="leave it out")


def _checked_string(value: str) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueOutOfRangeError(
            f"a string holds a lone surrogate (U+{ord(value[error.start]):04X}) at index {error.start}"
        ) from None
    return value


def _utc(value: datetime) -> datetime:
    """A naive timestamp is read as UTC; any other is brought there."""
    if getattr(value, "nanosecond", 0):
        raise ValueOutOfRangeError(f"timestamp {value} is finer than a microsecond")
    try:
        plain = value if type(value) is datetime else _plain_moment(value)
        return plain.replace(tzinfo=UTC) if plain.tzinfo is None else plain.astimezone(UTC)
    except OverflowError:
        raise ValueOutOfRangeError(f"timestamp {value} is outside the calendar in UTC") from None


def _plain_moment(value: datetime) -> datetime:
    """A subclass's moment by its parts: its own methods may give anything, and pandas has other years."""
    parts = (value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
    return datetime(*parts, tzinfo=value.tzinfo, fold=value.fold)


def _check_coordinates(what: str, *coordinates: float) -> None:
    for number in coordinates:
        if not isinstance(number, int | float) or isinstance(number, bool) or not _is_finite(number):
            raise ValueOutOfRangeError(f"{what} needs finite numbers, found {_shown(number)}")


def _shown(value: object) -> str:
    if isinstance(value, int) and abs(value) >= 10**30:
        return f"a number of {value.bit_length()} bits"  # Python refuses to print thousands of digits
    return repr(value)


def _plain_float(number: float) -> float:
    """A coordinate as a float, whatever a subclass converts itself to."""
    return float.__float__(number) if isinstance(number, float) else float(int.__index__(number))


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # an int beyond all floats
        return False


def _from_numpy(value: object) -> object:
    """The Python value of a numpy scalar, without importing numpy for those who do not use it."""
    if type(value).__module__ != "numpy" or getattr(value, "shape", None) != ():
        return value
    scalar: Any = value  # a numpy scalar, whose type cannot be named here
    if scalar.dtype.kind == "M":
        return _from_datetime64(scalar)
    plain: object = scalar.item()
    # What Python has no type for stays numpy's, or becomes a bare int (timedelta64).
    return value if type(plain).__module__ == "numpy" or scalar.dtype.kind == "m" else plain


def _from_datetime64(moment: Any) -> object:
    plain: object = moment.item()
    if not isinstance(plain, int):
        return plain
    # Finer than a microsecond, or in a year Python has not: numpy gives a bare count.
    rounded = moment.astype("datetime64[us]")
    exact: object = rounded.item()
    if isinstance(exact, int) or rounded != moment:
        raise ValueOutOfRangeError(f"timestamp {moment} does not fit the calendar in microseconds")
    return exact
