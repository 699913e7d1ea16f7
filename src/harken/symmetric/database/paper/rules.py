"""The rules of the paper's encoding: for every pair of operators, when two predicates on one attribute meet.

Tomasic et al. 2006, section 3.2.1: a query for each pair that is in use, made by a generator. A predicate is an
operator and one value, or two for ranges; `p` is what is asked, `s` what is held.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from harken.symmetric.database.rows import Key, KeySpan, all_keys
from harken.symmetric.pointsets import Lying, Shapes


class Bounds(NamedTuple):
    """Which columns bound an operator's values, if any do, and whether the bounds are among the values."""

    low: str | None
    low_closed: bool
    high: str | None
    high_closed: bool


OPERATORS: dict[str, Bounds] = {
    "=": Bounds("val", True, "val", True),
    "<": Bounds(None, False, "val", False),
    "<=": Bounds(None, False, "val", True),
    ">": Bounds("val", False, None, False),
    ">=": Bounds("val", True, None, False),
    "[]": Bounds("val", True, "val2", True),
    "[)": Bounds("val", True, "val2", False),
    "(]": Bounds("val", False, "val2", True),
    "()": Bounds("val", False, "val2", False),
    "is": Bounds(None, False, None, False),
}
"""All that values in an order are asked. `is` asks for a value of the type; IN and != are several rows, any of
which may meet: = for each value, < and > around those that are left out."""

SHAPE_OPERATORS = ("=", "within", "contains", "overlaps")
"""What shapes are asked. One that is asked several things has the first of these that it is asked."""

ALWAYS = "1 = 1"
"""What holds anyway."""

_WITHIN_BOUNDS = SHAPE_OPERATORS[:2]


def rule(asked: str, held: str) -> str:
    """The condition for an operator of what is asked and one of what is held to meet, if their fields are one.

    >>> rule("<", ">=")
    's.val < p.val'
    >>> rule("=", "=")
    'p.val = s.val'
    >>> rule("[)", "<=")
    'p.val <= s.val'
    >>> rule("<", "<")
    '1 = 1'
    """
    if asked == held == "=":
        return "p.val = s.val"
    p, s = OPERATORS[asked], OPERATORS[held]
    return " AND ".join([*_reaches("p", p, "s", s), *_reaches("s", s, "p", p)]) or ALWAYS


def _reaches(one: str, its: Bounds, other: str, others: Bounds) -> list[str]:
    """One begins no later than the other ends."""
    if its.low is None or others.high is None:
        return []
    comparison = "<=" if its.low_closed and others.high_closed else "<"
    return [f"{one}.{its.low} {comparison} {other}.{others.high}"]


RULES: dict[tuple[str, str], str] = {(p, s): rule(p, s) for p in OPERATORS for s in OPERATORS}


def shortened(condition: str, cut: Callable[[str], str]) -> str:
    """A condition said of shortened values too, which is all that an index has; what is cut may become equal."""
    if condition == ALWAYS:
        return condition
    hints = []
    for comparison in condition.split(" AND "):
        one, operator, other = comparison.split()
        hints.append(f"{cut(one)} {'=' if operator == '=' else '<='} {cut(other)}")
    return " AND ".join([condition, *hints])


def lies_apart(asked: str, held: str) -> bool:
    """Whether shapes under these operators are told apart by where they lie: not if neither has bounds."""
    return asked in _WITHIN_BOUNDS or held in _WITHIN_BOUNDS


def said(span: KeySpan) -> tuple[str, Key, Key]:
    """The operator of an interval, with its values; the second counts for ranges only."""
    low, low_closed, high, high_closed = span
    if span.is_point:
        return "=", low, high
    if span.has_low and span.has_high:
        return ("[" if low_closed else "(") + ("]" if high_closed else ")"), low, high
    if span.has_high:
        return "<=" if high_closed else "<", high, high
    if span.has_low:
        return ">=" if low_closed else ">", low, low
    return "is", low, high


def span_said(operator: str, val: Key, val2: Key) -> KeySpan:
    """Back to the interval."""
    low, low_closed, high, high_closed = OPERATORS[operator]
    values, beyond = {"val": val, "val2": val2}, all_keys(val)
    return KeySpan(
        beyond.low if low is None else values[low],
        low is None or low_closed,
        beyond.high if high is None else values[high],
        high is None or high_closed,
    )


def shape_operator(points: Shapes | Lying) -> str:
    """The operator of a set of shapes."""
    if isinstance(points, Shapes):
        return "="
    if points.within is not None:
        return "within"
    return "contains" if points.around else "overlaps"
