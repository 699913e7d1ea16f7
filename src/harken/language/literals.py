"""Literals: what each written constant stands for. Raises ExpressionError for those that stand for nothing."""

from __future__ import annotations

import re
from datetime import date, datetime

from harken.errors import ExpressionError
from harken.model.numbers import INT_MAX, INT_MIN, MAX_DIGITS, Exact, real_constant
from harken.model.values import Type, Value, checked_constant

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?"
# As far as PostgreSQL has them; no place on earth is more than 14 hours off.
_OFFSET = r"(?:Z|[+-](?:0\d|1[0-5])(?::?[0-5]\d)?)"
_TIMESTAMP = re.compile(rf"\d{{4}}-\d\d-\d\d(?:[ T]{_TIME}{_OFFSET}?)?", re.ASCII)
_INT_DIGITS = 19


def read_literal(kind: Type, literal: str) -> Value:
    """The value of a literal that stands where this type is meant; dates without their keyword."""
    match kind:
        case Type.INT | Type.FLOAT:
            return read_number(literal)
        case Type.DATE:
            return read_date(literal)
        case Type.TIMESTAMP:
            return read_timestamp(literal)
    return read_string(literal)


def read_number(literal: str) -> int | float | Exact:
    """An int unless written with a point or an exponent."""
    if literal.strip("+-0123456789"):
        return real_constant(literal)
    digits = literal.lstrip("+-").lstrip("0") if len(literal) > _INT_DIGITS else ""
    number = int(literal) if len(digits) <= _INT_DIGITS else INT_MAX + 1
    if not INT_MIN <= number <= INT_MAX:
        said = f"as a decimal, write {literal}.0" if len(digits) <= MAX_DIGITS else None
        raise ExpressionError("the number does not fit a 64-bit integer", suggestion=said)
    return number


def read_string(literal: str) -> str:
    """What stands between the quotes."""
    return checked_constant(unquoted(literal))  # type: ignore[return-value]


def read_date(literal: str) -> date:
    """The date in a quoted string."""
    return _moment(unquoted(literal), _DATE, "DATE '2026-11-15'").date()


def read_timestamp(literal: str) -> datetime:
    """The moment in a quoted string, in UTC; without an offset it is read as UTC."""
    moment = _moment(unquoted(literal), _TIMESTAMP, "TIMESTAMP '2026-11-15 10:30:00Z'")
    return checked_constant(moment)  # type: ignore[return-value]  # a datetime comes back as one, in UTC


def unquoted(literal: str) -> str:
    """A quoted text without its quotes."""
    return literal[1:-1].replace("''", "'")


def _moment(text: str, form: re.Pattern[str], example: str) -> datetime:
    if form.fullmatch(text):
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass
    raise ExpressionError(f"no such moment: {text!r}", suggestion=f"write it like {example}")
