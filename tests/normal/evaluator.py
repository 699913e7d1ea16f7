"""A second opinion on normal forms: a few lines per constraint, sharing no comparison code with the engine.

Numbers are compared as fractions, LIKE by trying everything, regular expressions by Python's own engine (the
patterns the tests use mean the same in both).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from harken.model.expressions import Comparison, Spatial, SpatialOperator, TextMatch
from harken.model.text import TextOperator
from harken.model.values import Box, Kind, Point, Value
from harken.normal.constraints import Absent, Constraint, OneOf, Present, Region, Span, Test
from harken.normal.form import Clause, NormalForm

KINDS = {
    "bool": Kind.BOOL,
    "int": Kind.NUMBER,
    "float": Kind.NUMBER,
    "str": Kind.STRING,
    "date": Kind.DATE,
    "datetime": Kind.TIMESTAMP,
    "Point": Kind.POINT,
    "Box": Kind.BOX,
}


def matches(form: NormalForm, event: Mapping[str, Value]) -> bool:
    """Whether some clause accepts the event."""
    return any(accepts(clause, event) for clause in form.clauses)


def accepts(clause: Clause, event: Mapping[str, Value]) -> bool:
    """Whether each constraint of the clause is satisfied."""
    return all(satisfied(constraint, event.get(attribute)) for attribute, constraint in clause.items())


def satisfied(constraint: Constraint, value: Value | None) -> bool:
    """Whether a value, or its absence, satisfies a constraint."""
    if isinstance(constraint, Absent):
        return value is None
    if value is None:
        return False
    kind = KINDS[type(value).__name__]
    match constraint:
        case Present():
            return True
        case OneOf():
            return kind is constraint.kind and any(_key(value) == _key(each) for each in constraint.values)
        case Span():
            return kind is constraint.kind and _inside(constraint, value)
        case Region():
            suits = constraint.kind is kind or (constraint.kind is None and kind in (Kind.POINT, Kind.BOX))
            return suits and all(_passes(test, value) for test in constraint.tests)


def _key(value: Value) -> Any:
    match value:
        case bool() | Point() | Box():
            return value
        case int() | float():
            return Fraction(value)
        case str():
            return [ord(char) for char in value]
    return value


def _inside(span: Span, value: Value) -> bool:
    key = _key(value)
    if span.low is not None and not (key > _key(span.low) or (span.low_closed and key == _key(span.low))):
        return False
    if span.high is not None and not (key < _key(span.high) or (span.high_closed and key == _key(span.high))):
        return False
    return all(key != _key(each) for each in span.excluded) and all(_passes(test, value) for test in span.tests)


def _passes(test: Test, value: Value) -> bool:
    match test.predicate:
        case Comparison(value=avoided):
            held = _key(value) != _key(avoided)
        case TextMatch(operator=operator, pattern=pattern, escape=escape):
            held = _looks(operator, pattern, escape, str(value))
        case Spatial(operator=operator, shape=shape):
            held = _lies(value, operator, shape)  # type: ignore[arg-type]
    return held is not test.negated


def _looks(operator: TextOperator, pattern: str, escape: str | None, value: str) -> bool:
    match operator:
        case TextOperator.STARTS_WITH:
            return value[: len(pattern)] == pattern
        case TextOperator.ENDS_WITH:
            return not pattern or value[-len(pattern) :] == pattern
        case TextOperator.CONTAINS:
            return value.find(pattern) >= 0
        case TextOperator.LIKE:
            return _like(pattern, escape, value)
        case TextOperator.MATCHES:
            # RE2's $ is the end of the text; Python's also takes a line end before it.
            return re.search(pattern.replace("$", r"\Z"), value) is not None


def _like(pattern: str, escape: str | None, value: str) -> bool:
    if not pattern:
        return not value
    head, rest = pattern[0], pattern[1:]
    if head == escape:
        return value[:1] == rest[0] and _like(rest[1:], escape, value[1:])
    if head == "%":
        return any(_like(rest, escape, value[at:]) for at in range(len(value) + 1))
    return bool(value) and head in ("_", value[0]) and _like(rest, escape, value[1:])


def _lies(one: Point | Box, operator: SpatialOperator, other: Point | Box) -> bool:
    a, b = one.bounds, other.bounds
    match operator:
        case SpatialOperator.CONTAINS:
            return a[0] <= b[0] and a[1] <= b[1] and a[2] >= b[2] and a[3] >= b[3]
        case SpatialOperator.WITHIN:
            return b[0] <= a[0] and b[1] <= a[1] and b[2] >= a[2] and b[3] >= a[3]
        case SpatialOperator.OVERLAPS:
            return max(a[0], b[0]) <= min(a[2], b[2]) and max(a[1], b[1]) <= min(a[3], b[3])
