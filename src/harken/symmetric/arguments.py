"""Arguments that are checked before anything is done with them; each fault says what would have been accepted."""

from __future__ import annotations

import math
from collections.abc import Mapping

from harken.errors import ArgumentError, ArgumentTypeError, SubscriptionError
from harken.model.schema import Schema
from harken.model.subscriptions import checked_id
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


def checked_text(what: str, found: object) -> str:
    """A text that is not empty."""
    if not isinstance(found, str):
        raise SubscriptionError(f"{what} is a text, found {type(found).__name__}")
    if not found:
        raise SubscriptionError(f"{what} cannot be the empty string")
    return str(checked_id(found))
