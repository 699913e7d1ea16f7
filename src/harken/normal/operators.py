"""The operators of the compiled form: how a constraint is said in predicates of one operand each.

All predicates of a clause must hold, with one exception: the `in` predicates on one attribute are
alternatives of which one must hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple, TypeAlias

from harken.model.expressions import (
    FALSE,
    TRUE,
    And,
    Comparator,
    Comparison,
    Expression,
    Membership,
    Not,
    Or,
    Predicate,
    Presence,
    Spatial,
    SpatialOperator,
    TextMatch,
)
from harken.model.numbers import Exact, read_decimal
from harken.model.text import TextOperator
from harken.model.values import Box, Kind, Point, Type, Value
from harken.normal.constraints import Absent, Constraint, OneOf, Present, Region, Span, Test
from harken.normal.rules.patterns import ESCAPE

_COMPARATORS = {comparator.value: comparator for comparator in Comparator}
_TEXT = {operator.value.lower(): operator for operator in TextOperator}
_SPATIAL = {operator.value.lower(): operator for operator in SpatialOperator}

OPERATORS: tuple[str, ...] = (
    *_COMPARATORS,
    "in",
    "is",
    "is null",
    "is not null",
    *dict.fromkeys([*_TEXT, *_SPATIAL]),
    *dict.fromkeys(f"not {name}" for name in [*_TEXT, *_SPATIAL]),
)
"""`is` asks only for the kind that its type names; `is null` and `is not null` have no operand at all."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KIND_TYPE = {kind: Type.FLOAT if kind is Kind.NUMBER else Type(kind.value) for kind in Kind}
_MICROSECOND = timedelta(microseconds=1)


class Operand(NamedTuple):
    """A constant in the typed columns of the compiled form."""

    type: str | None = None
    integer: int = 0
    real: float = 0.0
    text: str | None = None
    shape: tuple[float, ...] | None = None


OperandSource: TypeAlias = Value | Type | None
"""What a predicate compares with: a constant, a mere type (for `is`), or nothing."""


def rows_of(constraint: Constraint) -> Sequence[tuple[str, OperandSource]]:
    """The predicates that say a constraint: operator and operand."""
    match constraint:
        case OneOf(values=(value,)):
            return [("=", value)]
        case OneOf(values=values):
            return [("in", value) for value in values]
        case Span():
            return list(_span_rows(constraint))
        case Absent():
            return [("is null", None)]
        case Present():
            return [("is not null", None)]
        case Region(tests=tests):
            return list(_test_rows(tests))


def _span_rows(span: Span) -> Iterator[tuple[str, OperandSource]]:
    if span.low is not None:
        yield ">=" if span.low_closed else ">", span.low
    if span.high is not None:
        yield "<=" if span.high_closed else "<", span.high
    for value in span.excluded:
        yield "!=", value
    yield from _test_rows(span.tests)
    if span.low is None and span.high is None and not span.excluded and not span.tests:
        yield "is", _KIND_TYPE[span.kind]


def _test_rows(tests: frozenset[Test]) -> Iterator[tuple[str, OperandSource]]:
    for test in sorted(tests, key=repr):
        match test.predicate:
            case Comparison(value=value):
                yield "!=", value
            case TextMatch(operator=operator, pattern=operand) | Spatial(operator=operator, shape=operand):
                word = operator.value.lower()
                yield f"not {word}" if test.negated else word, operand


def operand_of(source: OperandSource) -> Operand:
    """A constant spread over the typed columns."""
    if source is None:
        return Operand()
    if isinstance(source, Type):
        return Operand(source.value)
    match source:
        case bool():
            return Operand("bool", int(source))
        case int():
            return Operand("int", source)
        case float():
            return Operand("float", 0, source)
        case Exact():
            return Operand("decimal", text=str(source))
        case str():
            return Operand("string", 0, 0.0, source)
        case datetime():
            return Operand("timestamp", microseconds(source))
        case date():
            return Operand("date", (source - EPOCH.date()).days)
        case Point():
            return Operand("point", shape=(source.x, source.y))
        case Box():
            return Operand("box", shape=source.bounds)


def microseconds(moment: datetime) -> int:
    """A UTC timestamp as microseconds since 1970, exactly."""
    return (moment - EPOCH) // _MICROSECOND


def moment_from(count: int) -> datetime:
    """Back from microseconds since 1970."""
    return EPOCH + int(count) * _MICROSECOND


CALENDAR: dict[Type, tuple[int, int]] = {
    Type.DATE: (operand_of(date.min).integer, operand_of(date.max).integer),
    Type.TIMESTAMP: (
        operand_of(datetime.min.replace(tzinfo=UTC)).integer,
        operand_of(datetime.max.replace(tzinfo=UTC)).integer,
    ),
}
"""The first and last day and moment there are, as operands."""


def constant_of(operand: Operand) -> Value | None:
    """The constant an operand stands for; None where there is only a type or nothing."""
    match operand:
        case Operand(type="int", integer=integer):
            return integer
        case Operand(type="float", real=real):
            return real
        case Operand(type="decimal", text=str(text)):
            return read_decimal(text)
        case Operand(type="bool", integer=integer):
            return bool(integer)
        case Operand(type="date", integer=integer):
            return EPOCH.date() + timedelta(days=integer)
        case Operand(type="timestamp", integer=integer):
            return EPOCH + integer * _MICROSECOND
        case Operand(type="string", text=text):
            return text
        case Operand(type="point", shape=(x, y)):
            return Point(x, y)
        case Operand(type="box", shape=(min_x, min_y, max_x, max_y)):
            return Box(min_x, min_y, max_x, max_y)
    return None


def expression_of(clauses: Sequence[Sequence[tuple[str, str, Operand]]]) -> Expression:
    """The expression that compiled clauses say; each predicate is (attribute, operator, operand)."""
    spoken = [_clause(clause) for clause in clauses]
    if not spoken:
        return FALSE
    return spoken[0] if len(spoken) == 1 else Or(tuple(spoken))


def _clause(rows: Sequence[tuple[str, str, Operand]]) -> Expression:
    terms: list[Expression] = []
    alternatives: dict[str, list[Value]] = {}
    for attribute, operator, operand in rows:
        value = constant_of(operand)
        if operator == "in" and value is not None:
            alternatives.setdefault(attribute, []).append(value)
        else:
            terms.append(_predicate(attribute, operator, operand.type, value))
    terms.extend(Membership(attribute, tuple(values)) for attribute, values in alternatives.items())
    if not terms:
        return TRUE
    return terms[0] if len(terms) == 1 else And(tuple(terms))


def _predicate(attribute: str, operator: str, type_name: str | None, value: Value | None) -> Expression:
    if operator in ("is null", "is not null"):
        return Presence(attribute, operator == "is not null")
    if operator == "is":
        return _kind_test(attribute, Type(type_name).kind)
    if value is None:
        raise ValueError(f"the predicate {operator!r} on {attribute!r} has no operand")
    if operator in _COMPARATORS:
        return Comparison(attribute, _COMPARATORS[operator], value)
    word = operator.removeprefix("not ")
    leaf = _looking(attribute, word, value)
    return leaf if word == operator else Not(leaf)


def _looking(attribute: str, word: str, value: Value) -> Predicate:
    if isinstance(value, Point | Box):
        return Spatial(attribute, _SPATIAL[word], value)
    escape = ESCAPE if word == "like" else None
    return TextMatch(attribute, _TEXT[word], value, escape)  # type: ignore[arg-type]  # it checks itself


def _kind_test(attribute: str, kind: Kind) -> Expression:
    """`x <= c OR x > c` is true for exactly the values of c's kind."""
    anything: dict[Kind, Value] = {
        Kind.NUMBER: 0,
        Kind.STRING: "",
        Kind.BOOL: False,
        Kind.DATE: EPOCH.date(),
        Kind.TIMESTAMP: EPOCH,
    }
    value = anything[kind]
    return Or((Comparison(attribute, Comparator.LE, value), Comparison(attribute, Comparator.GT, value)))
