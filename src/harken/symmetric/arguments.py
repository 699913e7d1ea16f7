"""Arguments that are checked before anything is done with them; each fault says what would have been accepted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from inspect import Parameter, signature

from harken.errors import ArgumentError, ArgumentTypeError, SubscriptionError, closest
from harken.model.limits import Limits
from harken.model.schema import Schema
from harken.model.subscriptions import SubscriptionId, checked_id
from harken.model.values import Type
from harken.symmetric.semantics import DIRECTIONS, Covers


def checked_covers(covers: object) -> Covers:
    """Whose attributes count."""
    for each in DIRECTIONS:
        if each == covers:
            return each
    raise ArgumentError.choice("covers", covers, DIRECTIONS)


def checked_schema(schema: Schema | Mapping[str, Type | str] | None) -> Schema | None:
    """A schema, or what one is made from."""
    if schema is None or isinstance(schema, Schema):
        return schema
    if not isinstance(schema, Mapping):
        expected = "a Schema or a mapping of attributes to types"
        raise ArgumentTypeError.of("schema", expected, type(schema).__name__)
    return Schema(schema)


def checked_limits(limits: object) -> Limits:
    """Bounds on what one constraint may ask."""
    if not isinstance(limits, Limits):
        raise ArgumentTypeError.of("limits", "a Limits", type(limits).__name__)
    return limits


def positive(argument: str, found: object) -> int:
    """A whole number from 1 on."""
    return _whole(argument, "a positive whole number", found, 1)


def natural(argument: str, found: object) -> int:
    """A whole number from 0 on."""
    return _whole(argument, "a whole number from 0 on", found, 0)


def _whole(argument: str, expected: str, found: object, least: int) -> int:
    if isinstance(found, bool) or not hasattr(found, "__index__"):
        raise ArgumentTypeError.of(argument, expected, repr(found))
    number = int(found.__index__())
    if number < least:
        raise ArgumentError.of(argument, expected, repr(found))
    return number


def seconds(argument: str, found: object) -> float:
    """How long something takes: a number of seconds, more than none."""
    expected = "a positive number of seconds"
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise ArgumentTypeError.of(argument, expected, repr(found))
    if not 0 < found < math.inf:
        raise ArgumentError.of(argument, expected, repr(found))
    return float(found)


def several_ids(ids: Iterable[SubscriptionId]) -> list[SubscriptionId]:
    """Many ids, each checked."""
    if isinstance(ids, str | bytes | Mapping) or not isinstance(ids, Iterable):
        message = f"unsubscribe_many takes several ids, found {type(ids).__name__}"
        raise ArgumentTypeError(message, argument="ids", suggestion="for one there is unsubscribe")
    return [checked_id(each) for each in ids]


def checked_text(what: str, found: object) -> str:
    """A text that is not empty."""
    if not isinstance(found, str):
        raise SubscriptionError(f"{what} is a text, found {type(found).__name__}")
    return str(checked_id(found))


def check_options(kind: type, where: str, options: Iterable[str]) -> None:
    """ArgumentTypeError if a store has no such option."""
    known = [name for name, each in signature(kind).parameters.items() if each.kind is Parameter.KEYWORD_ONLY]
    for name in options:
        if name not in known:
            near = closest(name, known)
            message = f"there is no option {name!r} {where}; there are {', '.join(known)}"
            suggestion = f"did you mean {near!r}?" if near else None
            raise ArgumentTypeError(message, argument=name, suggestion=suggestion)
