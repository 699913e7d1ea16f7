"""Events: attribute-value pairs. Nested mappings become dotted attributes; None means missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from harken.errors import EventError, ValueOutOfRangeError
from harken.model.values import Box, EventValue, Point, checked_value

Event: TypeAlias = Mapping[str, object]
"""An event as users write it: names to values, mappings inside mappings allowed."""

FlatEvent: TypeAlias = dict[str, EventValue]
"""An event as matchers see it: dotted names, checked values, nothing missing."""

MAX_NESTING = 64


class Unsupported:
    """A value of a type the language has not (a list, say): harmless until a subscription asks for it."""

    __slots__ = ("type_name",)

    def __init__(self, value: object) -> None:
        self.type_name = type(value).__name__


def flatten(event: Event) -> tuple[FlatEvent, dict[str, Unsupported]]:
    """The event's values under dotted names, and apart from them the values the language has no type for.

    Raises EventError for a name that occurs twice (`{"a.b": 1, "a": {"b": 2}}`), and for values out of range.
    """
    if not isinstance(event, Mapping):
        raise EventError(f"an event is a mapping of names to values, found {type(event).__name__}")
    flat: FlatEvent = {}
    unsupported: dict[str, Unsupported] = {}
    for name, value in _pairs(event, "", 1):
        if name in flat or name in unsupported:
            raise EventError(f"attribute {name!r} occurs twice", attribute=name)
        try:
            flat[name] = checked_value(value)
        except ValueOutOfRangeError as error:
            raise EventError(f"attribute {name!r}: {error}", attribute=name) from None
        except TypeError:
            unsupported[name] = Unsupported(value)
    return flat, unsupported


def _pairs(event: Event, prefix: str, depth: int) -> Iterator[tuple[str, object]]:
    if depth > MAX_NESTING:
        raise EventError(f"the event nests deeper than {MAX_NESTING} levels", attribute=prefix)
    for key, value in event.items():
        if not isinstance(key, str) or not key:
            raise EventError(f"attribute names are non-empty strings, found {key!r}")
        name = f"{prefix}.{key}" if prefix else key
        if not isinstance(value, Mapping):
            if value is not None:
                yield name, value
            continue
        shape = _shape(name, value)
        if shape is not None:
            yield name, shape
        else:
            yield from _pairs(value, name, depth + 1)


def _shape(name: str, value: Mapping[str, object]) -> Point | Box | None:
    """A point or box in its JSON form, as in `{"type": "Point", "coordinates": [2.35, 48.86]}`."""
    makers = {"Point": Point, "Box": Box}
    maker = makers.get(value["type"]) if set(value) == {"type", "coordinates"} else None  # type: ignore[call-overload]
    if maker is None:
        return None
    coordinates = value["coordinates"]
    try:
        return maker(*coordinates)  # type: ignore[misc,no-any-return]
    except (TypeError, ValueOutOfRangeError) as error:
        said = f"attribute {name!r}: bad {value['type']} coordinates {coordinates!r} ({error})"
        raise EventError(said, attribute=name) from None
