"""Events: attribute-value pairs. Nested mappings become dotted attributes; None means missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from harken.errors import EventError, ValueOutOfRangeError
from harken.model.values import INT_MAX, INT_MIN, Box, EventValue, Point, checked_value

Event: TypeAlias = Mapping[str, object]
"""An event as users write it: names to values, mappings inside mappings allowed."""

FlatEvent: TypeAlias = dict[str, EventValue]
"""An event as matchers see it: dotted names, checked values, nothing missing."""

MAX_NESTING = 64


def is_flat(event: Event) -> bool:
    """Whether an event is already as matchers see it: no nesting, nothing missing, values that need no check.

    Says no in doubt. Most events of applications are flat, and finding that out is far quicker than flattening.
    """
    if type(event) is not dict:
        return False
    for name, value in event.items():
        its_class = type(value)
        if its_class is int:
            if not INT_MIN <= value <= INT_MAX:
                return False
        elif its_class is str:
            if not value.isascii():
                return False
        elif its_class is float:
            if value != value:
                return False
        elif its_class is not bool:
            return False
        if type(name) is not str or not name:
            return False
    return True


def flatten(event: Event) -> tuple[FlatEvent, dict[str, EventError]]:
    """The event's values under dotted names; apart from them, what is wrong with those that are no values.

    A value of a type the language has not (a list), or out of range (NaN), is harmless until a subscription
    asks for it: whoever matches decides. A name that occurs twice (`{"a.b": 1, "a": {"b": 2}}`), or that is
    no string, is an error at once.
    """
    if not isinstance(event, Mapping):
        raise EventError(f"an event is a mapping of names to values, found {type(event).__name__}")
    flat: FlatEvent = {}
    faults: dict[str, EventError] = {}
    for name, value in _pairs(event, "", 1):
        if name in flat or name in faults:
            raise EventError(f"attribute {name!r} occurs twice", attribute=name)
        try:
            flat[name] = _shape(value) if isinstance(value, Mapping) else checked_value(value)
        except (TypeError, ValueOutOfRangeError) as error:
            faults[name] = EventError(f"attribute {name!r}: {error}", attribute=name)
    return flat, faults


def _pairs(event: Event, prefix: str, depth: int) -> Iterator[tuple[str, object]]:
    if depth > MAX_NESTING:
        raise EventError(f"the event nests deeper than {MAX_NESTING} levels", attribute=prefix)
    for key, value in event.items():
        if not isinstance(key, str) or not key:
            raise EventError(f"attribute names are non-empty strings, found {key!r}")
        name = f"{prefix}.{key}" if prefix else key
        if isinstance(value, Mapping) and not _is_shape(value):
            yield from _pairs(value, name, depth + 1)
        elif value is not None:
            yield name, value


def _is_shape(value: Mapping[str, object]) -> bool:
    """Whether this is a point or box in its JSON form: `{"type": "Point", "coordinates": [2.35, 48.86]}`."""
    return len(value) == 2 and value.get("type") in ("Point", "Box") and "coordinates" in value


def _shape(value: Mapping[str, object]) -> Point | Box:
    coordinates = value["coordinates"]
    if not isinstance(coordinates, Sequence):
        raise TypeError(f"coordinates are a list of numbers, found {coordinates!r}")
    try:
        return Point(*coordinates) if value["type"] == "Point" else Box(*coordinates)
    except TypeError:
        raise TypeError(f"a {value['type']} does not have {len(coordinates)} coordinates") from None
