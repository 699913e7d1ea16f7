"""Foreign values: what events carry and the language has no type for. Here, and only here, it is decided which.

A foreign value is there, and nothing else can be said of it: IS NULL and EXISTS see it, every other predicate on
it is unknown. So it is with everything below it: nobody here looks into a list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TypeAlias

from harken.model.values import EventValue, checked_value

_SHOWN = 80
"""Characters of a value that people are shown."""

_LISTS = (list, tuple, set, frozenset, bytes, bytearray)
"""Classes met most: not worth an exception."""

_WORDS: dict[type, str] = {
    list: "a list",
    tuple: "a tuple",
    set: "a set",
    frozenset: "a set",
    bytes: "bytes",
    bytearray: "bytes",
    memoryview: "bytes",
    complex: "a complex number",
    timedelta: "a duration",
    time: "a time of day",
    float: "NaN",
}


class Foreign:
    """A value of no type of the language. What it is and how it looks is found out when somebody asks."""

    __slots__ = ("_what", "value")

    def __init__(self, value: object, what: str | None = None) -> None:
        self.value = value
        self._what = what

    @property
    def what(self) -> str:
        """What it is, in a few words: "a list"."""
        if self._what is None:
            try:
                self._what = _what_is(self.value)
            except Exception:  # whatever somebody else's class does
                self._what = f"a value of type {type(self.value).__name__}"
        return self._what

    @property
    def shown(self) -> str:
        """The value as people may see it, cut short."""
        return shown(self.value)

    def __repr__(self) -> str:
        return f"Foreign({self.what}: {self.shown})"


FlatValue: TypeAlias = EventValue | Foreign
"""What an event has under a name: a value of the language, or a foreign one."""


def event_value(value: object) -> FlatValue:
    """The value as an event may carry it; foreign if the language has no type for it, or if it cannot be read."""
    if type(value) in _LISTS:
        return Foreign(value)
    try:
        return checked_value(value)
    except Exception:  # whatever somebody else's class does, or its time zone
        return Foreign(value)


def parents(name: str) -> Iterator[str]:
    """The names above a dotted one, from the outermost: `a` and `a.b` for `a.b.c`."""
    at = name.find(".")
    while at >= 0:
        yield name[:at]
        at = name.find(".", at + 1)


def foreign_above(name: str, event: Mapping[str, object]) -> tuple[str, Foreign] | None:
    """The foreign value of a flat event that a name lies below, and where that stands."""
    for parent in parents(name):
        value = event.get(parent)
        if isinstance(value, Foreign):
            return parent, value
    return None


def shown(value: object) -> str:
    """Any value as text for people, cut short; never an error."""
    try:
        if isinstance(value, int) and abs(value) >= 10**30:
            return f"a number of {value.bit_length()} bits"  # Python refuses to print thousands of digits
        if isinstance(value, str | bytes | bytearray | list | tuple):
            value = value[:_SHOWN]  # so that a huge one is not written out first
        text = repr(value)
    except Exception:  # whatever somebody else's class does
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _what_is(value: object) -> str:
    known = _WORDS.get(type(value))
    if known is not None:
        return known
    match value:
        case int():
            return "an integer past 64 bits"
        case str():
            return "a string with a lone surrogate"
        case Decimal():
            return "NaN" if value.is_nan() else "an infinite decimal"
        case datetime():
            return _moment(value)
        case date():
            return "a date outside the calendar"
        case Mapping():
            return "a shape with bad coordinates"
    return f"a value of type {type(value).__name__}"


def _moment(value: datetime) -> str:
    if value != value:  # as pandas' NaT
        return "NaT"
    finer = getattr(value, "nanosecond", 0)
    return "a timestamp finer than a microsecond" if finer else "a timestamp outside the calendar in UTC"
