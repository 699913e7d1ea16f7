"""The truth of an expression for an event: true, false or unknown (None). Slow and obvious on purpose.

This is the semantics in code. The reference matcher is nothing but this, and everything faster is judged
by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from harken.model.expressions import (
    And,
    Comparator,
    Comparison,
    Constant,
    Expression,
    Membership,
    Not,
    Or,
    Predicate,
    Presence,
    Range,
    Spatial,
    SpatialOperator,
    TextMatch,
)
from harken.model.foreign import FlatValue, Foreign, foreign_above
from harken.model.text import text_test
from harken.model.values import Box, EventValue, Point, Value, compare, kind_of

Truth: TypeAlias = bool | None
"""True, False, or None for unknown."""

_SIGN_TESTS: dict[Comparator, Callable[[int], bool]] = {
    Comparator.EQ: lambda sign: sign == 0,
    Comparator.NE: lambda sign: sign != 0,
    Comparator.LT: lambda sign: sign < 0,
    Comparator.LE: lambda sign: sign <= 0,
    Comparator.GT: lambda sign: sign > 0,
    Comparator.GE: lambda sign: sign >= 0,
}


def truth(expression: Expression, event: Mapping[str, FlatValue]) -> Truth:
    """Whether a flat event satisfies the expression."""
    match expression:
        case And(terms=terms):
            return all_of([truth(term, event) for term in terms])
        case Or(terms=terms):
            return any_of([truth(term, event) for term in terms])
        case Not(term=term):
            return negation_of(truth(term, event))
        case Constant(truth=constant):
            return constant
        case Presence(attribute=attribute, present=present):
            return is_there(attribute, event) is present
    value = event.get(expression.attribute)
    return None if value is None or isinstance(value, Foreign) else holds(expression, value)


def is_there(attribute: str, event: Mapping[str, FlatValue]) -> bool:
    """Whether a flat event has an attribute: a value, a foreign one, or one inside of a foreign one."""
    return attribute in event or foreign_above(attribute, event) is not None


def holds(predicate: Predicate, value: EventValue) -> Truth:
    """Whether a value that is there satisfies a predicate; unknown if it is of another kind."""
    match predicate:
        case Comparison(operator=operator, value=constant):
            return compared(value, operator, constant)
        case Range(low=low, high=high, low_closed=low_closed, high_closed=high_closed):
            above = compared(value, Comparator.GE if low_closed else Comparator.GT, low)
            below = compared(value, Comparator.LE if high_closed else Comparator.LT, high)
            return all_of([above, below])
        case Membership(values=constants):
            return any_of([compared(value, Comparator.EQ, constant) for constant in constants])
        case TextMatch(operator=operator, pattern=pattern, escape=escape):
            return text_test(operator, pattern, escape)(value) if isinstance(value, str) else None
        case Spatial(operator=operator, shape=shape):
            return lies(value, operator, shape) if isinstance(value, Point | Box) else None
        case Presence(present=present):
            return present


def compared(value: EventValue, operator: Comparator, constant: Value) -> Truth:
    """`value operator constant`, unknown across kinds."""
    if kind_of(value) is not kind_of(constant):
        return None
    return _SIGN_TESTS[operator](compare(value, constant))


def lies(region: Point | Box, operator: SpatialOperator, shape: Point | Box) -> bool:
    """How two closed regions lie to each other."""
    if operator is SpatialOperator.WITHIN:
        return _covers(shape, region)
    if operator is SpatialOperator.CONTAINS:
        return _covers(region, shape)
    min_x, min_y, max_x, max_y = region.bounds
    other_min_x, other_min_y, other_max_x, other_max_y = shape.bounds
    apart = max_x < other_min_x or other_max_x < min_x or max_y < other_min_y or other_max_y < min_y
    return not apart


def _covers(outer: Point | Box, inner: Point | Box) -> bool:
    min_x, min_y, max_x, max_y = outer.bounds
    inner_min_x, inner_min_y, inner_max_x, inner_max_y = inner.bounds
    return min_x <= inner_min_x and min_y <= inner_min_y and inner_max_x <= max_x and inner_max_y <= max_y


def all_of(truths: list[Truth]) -> Truth:
    """Three-valued AND."""
    if False in truths:
        return False
    return None if None in truths else True


def any_of(truths: list[Truth]) -> Truth:
    """Three-valued OR."""
    if True in truths:
        return True
    return None if None in truths else False


def negation_of(value: Truth) -> Truth:
    """Three-valued NOT."""
    return None if value is None else not value
