"""What a clause asks of one attribute, merged into a single constraint.

The papers forbid an attribute to occur twice in a subscription. Harken merges instead: constraints on one
attribute meet in one constraint of the same few forms, or are empty, and then the clause never matches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from harken.model.evaluation import holds
from harken.model.expressions import Comparator, Comparison, Spatial, TextMatch
from harken.model.values import SPATIAL_KINDS, Kind, Value


@dataclass(frozen=True, slots=True)
class Test:
    """A predicate that no interval can say: a pattern, a spatial relation, a point to avoid."""

    predicate: TextMatch | Spatial | Comparison
    negated: bool = False

    def passes(self, value: Value) -> bool:
        """Whether a value of the right kind satisfies it."""
        return holds(self.predicate, value) is not self.negated


@dataclass(frozen=True, slots=True)
class Absent:
    """IS NULL."""


@dataclass(frozen=True, slots=True)
class Present:
    """IS NOT NULL: any value of any kind."""


# The two most common constraints are made by the million; frozen ones take three times as long to make.


@dataclass(slots=True)
class OneOf:
    """Equal to one of finitely many values of one kind; ascending, none twice."""

    kind: Kind
    values: tuple[Value, ...]


@dataclass(slots=True)
class Span:
    """Values of one ordered kind between two bounds (None: unbounded), some excluded, all tests passed.

    Excluded values lie strictly inside the bounds, ascending.
    """

    kind: Kind
    low: Value | None = None
    low_closed: bool = False
    high: Value | None = None
    high_closed: bool = False
    excluded: tuple[Value, ...] = ()
    tests: frozenset[Test] = frozenset()

    def admits(self, value: Value) -> bool:
        """Whether a value of this kind satisfies the constraint."""
        return self._within(value) and value not in self.excluded and all(t.passes(value) for t in self.tests)

    def _within(self, value: Value) -> bool:
        low, high = self.low, self.high
        above = low is None or value > low or (self.low_closed and value == low)  # type: ignore[operator]
        return above and (
            high is None or value < high or (self.high_closed and value == high)  # type: ignore[operator]
        )


@dataclass(frozen=True, slots=True)
class Region:
    """A point or a box (or, if `kind` says so, one of the two only) that passes all tests."""

    kind: Kind | None
    tests: frozenset[Test]


Constraint: TypeAlias = Absent | Present | OneOf | Span | Region


def one_of(kind: Kind, values: Iterable[Value]) -> OneOf:
    """The constraint to equal one of the values."""
    values = tuple(values)
    if len(values) == 1:
        return OneOf(kind, values)
    ascending = sorted(values)
    return OneOf(kind, tuple(v for at, v in enumerate(ascending) if not at or v != ascending[at - 1]))


def none_of(kind: Kind, attribute: str, values: Iterable[Value]) -> Constraint | None:
    """The constraint to be of this kind and to equal none of the values; None if no value is left."""
    if kind in SPATIAL_KINDS:
        return Region(kind, frozenset(Test(Comparison(attribute, Comparator.NE, v)) for v in values))
    return tidy(Span(kind, excluded=one_of(kind, values).values))


def meet(one: Constraint, other: Constraint) -> Constraint | None:
    """The constraint that asks for both; None if nothing satisfies it."""
    if isinstance(one, Absent) or isinstance(other, Absent):
        return one if one == other else None
    if isinstance(one, Present):
        return other
    if isinstance(other, Present):
        return one
    if isinstance(other, OneOf):
        one, other = other, one
    if isinstance(one, OneOf):
        return _filtered(one, other)
    if isinstance(one, Span) and isinstance(other, Span):
        return _met_spans(one, other) if one.kind is other.kind else None
    if isinstance(one, Region) and isinstance(other, Region):
        return _met_regions(one, other)
    return None


_STEPS_TO_TEST = 4


def cost(one: Constraint, other: Constraint) -> int:
    """About how many steps it takes to compare two constraints: each value may meet each test of the other."""
    if isinstance(one, OneOf) is not isinstance(other, OneOf):
        return _size(one) * _size(other)
    return _size(one) + _size(other)


def _size(constraint: Constraint) -> int:
    match constraint:
        case OneOf(values=values):
            return len(values)
        case Span(excluded=excluded, tests=tests):
            return 1 + len(excluded) + _STEPS_TO_TEST * len(tests)
        case Region(tests=tests):
            return 1 + _STEPS_TO_TEST * len(tests)
    return 1


def tidy(span: Span) -> Span | OneOf | None:
    """The same set in its one canonical form; None if it is empty."""
    if span.kind is Kind.BOOL:
        return _kept(OneOf(Kind.BOOL, (False, True)), span.admits)
    low, high = span.low, span.high
    if low is not None and high is not None:
        if low > high or (low == high and not (span.low_closed and span.high_closed)):  # type: ignore[operator]
            return None
        if low == high:
            return OneOf(span.kind, (low,)) if span.admits(low) else None
    return _opened(span) if span.excluded else span


def implies(one: Constraint, other: Constraint) -> bool:
    """Whether everything that satisfies `one` satisfies `other`; may say no when in doubt."""
    if one == other:
        return True
    if isinstance(other, Present):
        return not isinstance(one, Absent)
    if isinstance(one, OneOf):
        return meet(one, other) == one
    if isinstance(one, Span) and isinstance(other, Span):
        return one.kind is other.kind and _met_spans(one, other) == one
    if isinstance(one, Region) and isinstance(other, Region):
        return other.kind in (None, one.kind) and one.tests >= other.tests
    return False


def _filtered(points: OneOf, other: OneOf | Span | Region) -> OneOf | None:
    match other:
        case OneOf(kind=kind, values=values):
            wanted = set(values)
            return _kept(points, lambda value: value in wanted) if points.kind is kind else None
        case Span(kind=kind):
            return _kept(points, other.admits) if points.kind is kind else None
        case Region(kind=kind, tests=tests):
            if points.kind not in SPATIAL_KINDS or kind not in (None, points.kind):
                return None
            return _kept(points, lambda value: all(test.passes(value) for test in tests))


def _kept(points: OneOf, admits: Callable[[Value], bool]) -> OneOf | None:
    values = tuple(value for value in points.values if admits(value))
    return OneOf(points.kind, values) if values else None


def _met_spans(one: Span, other: Span) -> Span | OneOf | None:
    low, low_closed = _tighter_low(one, other)
    high, high_closed = _tighter_high(one, other)
    met = Span(one.kind, low, low_closed, high, high_closed, (), one.tests | other.tests)
    excluded = one.excluded + other.excluded
    if excluded:
        inside = (value for value in excluded if met._within(value))
        met = replace(met, excluded=one_of(one.kind, inside).values)
    return tidy(met)


def _tighter_low(one: Span, other: Span) -> tuple[Value | None, bool]:
    if other.low is None or (one.low is not None and one.low > other.low):  # type: ignore[operator]
        return one.low, one.low_closed
    if one.low is None or other.low > one.low:  # type: ignore[operator]
        return other.low, other.low_closed
    return one.low, one.low_closed and other.low_closed


def _tighter_high(one: Span, other: Span) -> tuple[Value | None, bool]:
    if other.high is None or (one.high is not None and one.high < other.high):  # type: ignore[operator]
        return one.high, one.high_closed
    if one.high is None or other.high < one.high:  # type: ignore[operator]
        return other.high, other.high_closed
    return one.high, one.high_closed and other.high_closed


def _opened(span: Span) -> Span:
    """An excluded value on a closed bound opens the bound instead."""
    low_closed = span.low_closed and span.low not in span.excluded
    high_closed = span.high_closed and span.high not in span.excluded
    inside = tuple(value for value in span.excluded if value not in (span.low, span.high))
    return replace(span, low_closed=low_closed, high_closed=high_closed, excluded=inside)


def _met_regions(one: Region, other: Region) -> Region | None:
    if one.kind is not None and other.kind is not None and one.kind is not other.kind:
        return None
    return Region(one.kind or other.kind, one.tests | other.tests)
