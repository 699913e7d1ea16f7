"""Expressions: boolean conditions over attributes, as frozen trees.

Leaves are predicates on one attribute; inner nodes are And, Or and Not. A leaf checks itself when it is
made, so a tree that exists is well-formed. Truth is three-valued: a predicate on a missing attribute, or on
a value of another kind, is unknown.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from harken.errors import BoundError, ExpressionError, SchemaError
from harken.model.limits import Limits
from harken.model.schema import Schema
from harken.model.text import TextOperator, check_pattern
from harken.model.values import SPATIAL_KINDS, Box, Kind, Point, Type, Value, checked_constant, kind_of


class Comparator(enum.Enum):
    """The six comparison operators."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    __hash__ = object.__hash__

    @property
    def negated(self) -> Comparator:
        """NOT (x op c) is x negated c; both need x."""
        return _NEGATED[self]

    @property
    def flipped(self) -> Comparator:
        """`c op x` is `x flipped c`."""
        return _FLIPPED[self]


_C = Comparator
_NEGATED = {_C.EQ: _C.NE, _C.NE: _C.EQ, _C.LT: _C.GE, _C.GE: _C.LT, _C.GT: _C.LE, _C.LE: _C.GT}
_FLIPPED = {_C.EQ: _C.EQ, _C.NE: _C.NE, _C.LT: _C.GT, _C.GT: _C.LT, _C.LE: _C.GE, _C.GE: _C.LE}


class SpatialOperator(enum.Enum):
    """How two closed regions can lie; a point is the region of itself."""

    OVERLAPS = "OVERLAPS"
    CONTAINS = "CONTAINS"
    WITHIN = "WITHIN"

    __hash__ = object.__hash__


class Node:
    """What all expressions share: they combine with &, | and ~, and are not Python truth values."""

    __slots__ = ()

    def __and__(self, other: Expression) -> And:
        return And((*_terms(self, And), *_terms(other, And)))

    def __or__(self, other: Expression) -> Or:
        return Or((*_terms(self, Or), *_terms(other, Or)))

    def __invert__(self) -> Not:
        return Not(_expression(self))

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "an expression has no truth value by itself; combine with & | ~ (and parentheses), "
            "not with and, or, not or a chained comparison"
        )


@dataclass(frozen=True, slots=True)
class Comparison(Node):
    """`attribute op constant`."""

    attribute: str
    operator: Comparator
    value: Value

    def __post_init__(self) -> None:
        _check_attribute(self.attribute)
        object.__setattr__(self, "value", checked_constant(self.value))
        if self.operator is not Comparator.EQ and self.operator is not Comparator.NE:
            _check_ordered(self.attribute, self.value, self.operator.value)


@dataclass(frozen=True, slots=True)
class Range(Node):
    """A value between two bounds, each end open or closed; BETWEEN closes both."""

    attribute: str
    low: Value
    high: Value
    low_closed: bool = True
    high_closed: bool = True

    def __post_init__(self) -> None:
        _check_attribute(self.attribute)
        object.__setattr__(self, "low", checked_constant(self.low))
        object.__setattr__(self, "high", checked_constant(self.high))
        _check_ordered(self.attribute, self.low, "a range")
        if kind_of(self.low) is not kind_of(self.high):
            raise ExpressionError(
                f"the range on {self.attribute!r} goes from a {kind_of(self.low).value} "
                f"to a {kind_of(self.high).value}"
            )


@dataclass(frozen=True, slots=True)
class Membership(Node):
    """`attribute IN (constants)`: equal to one of them."""

    attribute: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        _check_attribute(self.attribute)
        object.__setattr__(self, "values", tuple(checked_constant(value) for value in self.values))
        if not self.values:
            raise ExpressionError(f"IN on {self.attribute!r} needs at least one value")


@dataclass(frozen=True, slots=True)
class TextMatch(Node):
    """A predicate that looks inside a string."""

    attribute: str
    operator: TextOperator
    pattern: str
    escape: str | None = None

    def __post_init__(self) -> None:
        _check_attribute(self.attribute)
        if not isinstance(self.pattern, str):
            raise ExpressionError(f"{self.operator.value} on {self.attribute!r} needs a string")
        object.__setattr__(self, "pattern", checked_constant(self.pattern))
        check_pattern(self.operator, self.pattern, self.escape)


@dataclass(frozen=True, slots=True)
class Spatial(Node):
    """How the attribute's region lies to a constant one."""

    attribute: str
    operator: SpatialOperator
    shape: Point | Box

    def __post_init__(self) -> None:
        _check_attribute(self.attribute)
        if not isinstance(self.shape, Point | Box):
            raise ExpressionError(f"{self.operator.value} on {self.attribute!r} needs a POINT or a BOX")


@dataclass(frozen=True, slots=True)
class Presence(Node):
    """IS NOT NULL (`present`) or IS NULL: never unknown."""

    attribute: str
    present: bool

    def __post_init__(self) -> None:
        _check_attribute(self.attribute)


@dataclass(frozen=True, slots=True)
class Constant(Node):
    """TRUE or FALSE."""

    truth: bool


@dataclass(frozen=True, slots=True)
class And(Node):
    """True when all terms are; false when one is."""

    terms: tuple[Expression, ...]

    def __post_init__(self) -> None:
        _check_terms(self.terms, "AND")


@dataclass(frozen=True, slots=True)
class Or(Node):
    """True when one term is; false when all are."""

    terms: tuple[Expression, ...]

    def __post_init__(self) -> None:
        _check_terms(self.terms, "OR")


@dataclass(frozen=True, slots=True)
class Not(Node):
    """True when the term is false; unknown stays unknown."""

    term: Expression


Predicate: TypeAlias = Comparison | Range | Membership | TextMatch | Spatial | Presence
Expression: TypeAlias = Predicate | Constant | And | Or | Not

TRUE, FALSE = Constant(True), Constant(False)


def children(expression: Expression) -> tuple[Expression, ...]:
    """The direct parts of an inner node; none for a leaf."""
    if isinstance(expression, (And, Or)):  # a tuple is checked faster than a union
        return expression.terms
    return (expression.term,) if isinstance(expression, Not) else ()


def predicates(expression: Expression) -> Iterator[Predicate]:
    """All leaves that look at an attribute, from left to right."""
    stack = [expression]
    while stack:
        node = stack.pop()
        stack.extend(reversed(children(node)))
        if not isinstance(node, And | Or | Not | Constant):
            yield node


def constants(predicate: Predicate) -> tuple[Value, ...]:
    """The constants a predicate compares with."""
    match predicate:
        case Comparison(value=value):
            return (value,)
        case Range(low=low, high=high):
            return low, high
        case Membership(values=values):
            return values
        case TextMatch(pattern=pattern):
            return (pattern,)
        case Spatial(shape=shape):
            return (shape,)
        case Presence():
            return ()


_CAN_EXCEED = (And, Or, Not, TextMatch)


def check_limits(expression: Expression, limits: Limits) -> None:
    """Refuse a tree that is too deep or too large to walk, or a pattern too long to compile. Does not recurse."""
    stack = [(expression, 1)]
    regexes = parts = 0
    while stack:
        node, depth = stack.pop()
        parts += 1
        if parts > limits.max_length:
            # A text cannot say so much, but a tree whose parts are shared can.
            raise BoundError("max_length", limits.max_length, "the expression has more parts")
        regexes += isinstance(node, TextMatch) and node.operator is TextOperator.MATCHES
        if depth > limits.max_depth and not isinstance(node, TextMatch):
            raise BoundError("max_depth", limits.max_depth, "the expression nests too deeply")
        stack.extend((child, depth + 1) for child in children(node) if isinstance(child, _CAN_EXCEED))
        if isinstance(node, TextMatch) and len(node.pattern) > limits.max_pattern:
            raise BoundError(
                "max_pattern",
                limits.max_pattern,
                f"the pattern on {node.attribute!r} has {len(node.pattern):,} characters",
            )
    limits.check_regexes(regexes)


def check_schema(expression: Expression, schema: Schema) -> None:
    """Refuse attributes the schema has not, and constants its types can never equal."""
    for predicate in predicates(expression):
        declared = schema.declared(predicate.attribute)
        if isinstance(predicate, Spatial):
            _check_spatial(predicate, declared)
            continue
        for value in constants(predicate):
            schema.check_constant(predicate.attribute, value)


def _check_spatial(predicate: Spatial, declared: Type) -> None:
    if declared.kind not in SPATIAL_KINDS:
        raise SchemaError.wrong_type(predicate.attribute, declared.value, "a spatial predicate")


def _expression(node: object) -> Expression:
    if not isinstance(node, Node):
        meant = f"parse({node!r})" if isinstance(node, str) else f"a condition, like {node!r} == True"
        hint = f"; write {meant}" if isinstance(node, str) or type(node).__name__ == "Attribute" else ""
        raise TypeError(f"expected an expression, found {type(node).__name__}: {node!r}{hint}")
    return node  # type: ignore[return-value]  # Node's subclasses are exactly the union


def _terms(node: object, same: type[And] | type[Or]) -> tuple[Expression, ...]:
    return node.terms if isinstance(node, same) else (_expression(node),)


def _check_terms(terms: tuple[Expression, ...], name: str) -> None:
    if len(terms) < 2:
        raise ExpressionError(f"{name} needs at least two terms")


def _check_attribute(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise ExpressionError(f"an attribute name is a non-empty string, found {name!r}")
    checked_constant(name)


def _check_ordered(attribute: str, value: Value, operator: str) -> None:
    kind: Kind = kind_of(value)
    if not kind.is_ordered:
        raise ExpressionError(
            f"{operator} on {attribute!r}: a {kind.value} has no order",
            suggestion="use OVERLAPS, CONTAINS or WITHIN",
        )
