"""Where values lie on an axis: a key and a rest, compared in that order, and a nudge for open ends.

Dates, timestamps and bools are counted in whole numbers. A number's key is the nearest float, and its rest what is
missing: 0 for all floats and nearly all ints. Since rounding never swaps two numbers, this orders ints and floats
together, exactly. A nudge of 1 or -1 means just after, or just before: so an open end is a position like others.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import Any, TypeAlias

from harken.model.values import Kind
from harken.normal.operators import EPOCH, microseconds

INFINITY = float("inf")

Position: TypeAlias = tuple[float, int]
"""A key and a rest."""

_EXACT = 2**53
_FIRST_DAY = EPOCH.date().toordinal()


def position_of_number(number: float) -> Position:
    """The position of an int, a float or a bool."""
    key = float(number)
    if -_EXACT < key < _EXACT:
        return key, 0
    return key, int(number) - int(key)


def _position_of_date(day: date) -> Position:
    return float(day.toordinal() - _FIRST_DAY), 0


def _position_of_timestamp(moment: datetime) -> Position:
    return position_of_number(microseconds(moment))


POSITION_OF: dict[Kind, Callable[[Any], Position]] = {
    Kind.NUMBER: position_of_number,
    Kind.BOOL: position_of_number,
    Kind.DATE: _position_of_date,
    Kind.TIMESTAMP: _position_of_timestamp,
}
"""What gives the position of a value, by its kind. Each takes the class of that kind."""
