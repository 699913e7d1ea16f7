"""Events: attribute-value pairs. Nested mappings become dotted attributes; None means missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from harken.errors import EventError, HarkenError
from harken.model.foreign import FlatValue, Foreign, event_value
from harken.model.values import INT_MAX, INT_MIN, Box, Point

Event: TypeAlias = Mapping[str, object]
"""An event as users write it: names to values, mappings inside mappings allowed."""

FlatEvent: TypeAlias = dict[str, FlatValue]
"""An event as matchers see it: dotted names, checked or foreign values, nothing missing."""

MAX_NESTING = 64


PLAIN: Mapping[type, Callable[[Any], bool]] = {
    int: lambda value: INT_MIN <= value <= INT_MAX,
    str: str.isascii,
    float: lambda value: value == value,
    bool: lambda _: True,
}
"""What `is_flat` asks of values, by their class, for those who look at them one by one."""


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


def is_changed_meanwhile(error: RuntimeError, read: Callable[..., Any]) -> bool:
    """Whether what `read` raised is that another thread has changed the dictionary that it was going through.

    What a handler of signals raises, or whatever else is called there, comes from further down.
    """
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return type(error) is RuntimeError and at is not None and at.tb_frame.f_code is read.__code__


def flatten(event: Event) -> tuple[FlatEvent, dict[str, Foreign]]:
    """The event's values under dotted names; and once more those among them that are foreign.

    A name that occurs twice (`{"a.b": 1, "a": {"b": 2}}`), or that is no string, is an error, and so is a mapping
    whose own methods fail.
    """
    if not isinstance(event, Mapping):
        raise EventError(f"an event is a mapping of names to values, found {type(event).__name__}")
    try:
        return _flattened(event)
    except HarkenError:  # of an event at fault, or of an engine that its code has called
        raise
    except Exception as error:
        said = f"the event cannot be read: {type(event).__name__} raises {type(error).__name__}: {error}"
        raise EventError(said) from error


def _flattened(event: Event) -> tuple[FlatEvent, dict[str, Foreign]]:
    flat: FlatEvent = {}
    foreign: dict[str, Foreign] = {}
    for name, value in _pairs(event, "", 1):
        if name in flat:
            raise EventError(f"attribute {name!r} occurs twice", attribute=name)
        flat[name] = made = _shape(value) if isinstance(value, Mapping) else event_value(value)
        if isinstance(made, Foreign):
            foreign[name] = made
    return flat, foreign


def _pairs(event: Event, prefix: str, depth: int) -> Iterator[tuple[str, object]]:
    if depth > MAX_NESTING:
        raise EventError(f"the event nests deeper than {MAX_NESTING} levels", attribute=prefix)
    if type(event) is dict:
        event = event.copy()  # in one step, whatever another thread does to it meanwhile
    for key, value in event.items():
        if not isinstance(key, str) or not key:
            raise EventError(f"attribute names are non-empty strings, found {key!r}")
        if type(key) is not str:
            key = str.__str__(key)  # an Enum of strings prints as something else
        name = f"{prefix}.{key}" if prefix else key
        if isinstance(value, Mapping) and not _is_shape(value):
            yield from _pairs(value, name, depth + 1)
        elif value is not None:
            yield name, value


def _is_shape(value: Mapping[str, object]) -> bool:
    """Whether this is a point or box in its JSON form: `{"type": "Point", "coordinates": [2.35, 48.86]}`."""
    if len(value) != 2 or "coordinates" not in value:
        return False
    named = value.get("type")
    return isinstance(named, str) and named in ("Point", "Box")


def _shape(value: Mapping[str, object]) -> Point | Box | Foreign:
    coordinates = value["coordinates"]
    try:
        if isinstance(coordinates, Sequence):
            return Point(*coordinates) if value["type"] == "Point" else Box(*coordinates)
    except Exception:  # too few, too many, no finite numbers, or whatever somebody else's class does
        pass
    return Foreign(value)
