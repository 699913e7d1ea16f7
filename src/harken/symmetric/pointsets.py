"""What a constraint allows of one attribute, as a set of points, and whether two such sets meet.

A set of ordered values is a few intervals, ascending and apart. Where values have neighbours (dates, timestamps,
ints under a schema) intervals are closed, so that two meet exactly if a value lies in both; a string's lower bound
is closed too, since the string after `s` is `s` and a zero character. A set of shapes is finite, or all that lie
in a certain way to others.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from harken.errors import ConstraintError
from harken.model.evaluation import lies
from harken.model.expressions import Spatial, SpatialOperator
from harken.model.numbers import Exact
from harken.model.values import SPATIAL_KINDS, Box, Kind, Point, Type, Value
from harken.normal.constraints import Absent, Constraint, OneOf, Present, Region, Span, Test


@dataclass(frozen=True, slots=True)
class Interval:
    """Values between two bounds; None is unbounded, and then the end is open."""

    low: Value | None
    low_closed: bool
    high: Value | None
    high_closed: bool

    @classmethod
    def point(cls, value: Value) -> Interval:
        """One value."""
        return cls(value, True, value, True)

    @property
    def is_point(self) -> bool:
        """Whether there is exactly one value in it."""
        return self.low is not None and self.low == self.high

    @property
    def is_empty(self) -> bool:
        """Whether there is none: of two bounds that are equal, both have to be closed."""
        if self.low is None or self.high is None:
            return False
        if self.low == self.high:
            return not (self.low_closed and self.high_closed)
        return bool(self.low > self.high)  # type: ignore[operator]  # of one kind


@dataclass(frozen=True, slots=True)
class Anything:
    """Any value of any kind."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """Values of one ordered kind, in intervals that ascend and lie apart."""

    kind: Kind
    intervals: tuple[Interval, ...]


@dataclass(frozen=True, slots=True)
class Shapes:
    """Finitely many points, or finitely many boxes."""

    kind: Kind
    values: tuple[Point | Box, ...]


@dataclass(frozen=True, slots=True)
class Lying:
    """All points and boxes (or, if `kind` says so, one of the two) that lie as asked to others.

    Within `within`, if there is one; around all of `around`; and with something in common with each of `over`.
    """

    kind: Kind | None = None
    within: Box | None = None
    around: tuple[Point | Box, ...] = ()
    over: tuple[Point | Box, ...] = ()


PointSet: TypeAlias = Anything | Intervals | Shapes | Lying


def point_set(attribute: str, constraint: Constraint, declared: Type | None = None) -> PointSet | None:
    """The set that a constraint allows, None if it is empty; ConstraintError if it cannot be said in points."""
    match constraint:
        case Absent():
            raise ConstraintError.absence(attribute)
        case Present():
            return Anything()
        case OneOf(kind=kind, values=values) if kind in SPATIAL_KINDS:
            return Shapes(kind, values)  # type: ignore[arg-type]  # of a spatial kind, as just seen
        case OneOf(kind=kind, values=values):
            _check_digits(attribute, *values)
            return _intervals(kind, [Interval.point(value) for value in values], declared)
        case Span(tests=tests) if tests:
            raise ConstraintError.pattern(attribute)
        case Span(kind=kind):
            _check_digits(attribute, constraint.low, constraint.high, *constraint.excluded)
            return _intervals(kind, _pieces(constraint), declared)
        case Region():
            return _lying(attribute, constraint)


def meet(one: PointSet, other: PointSet) -> bool:
    """Whether two sets have a point in common."""
    match one, other:
        case (Anything(), _) | (_, Anything()):
            return True
        case Intervals(), Intervals():
            return one.kind is other.kind and any(
                _overlap(first, second) for first in one.intervals for second in other.intervals
            )
        case Shapes(), Shapes():
            return one.kind is other.kind and not set(one.values).isdisjoint(other.values)
        case Shapes(), Lying():
            return any(_lies_so(value, one.kind, other) for value in one.values)
        case Lying(), Shapes():
            return meet(other, one)
        case Lying(), Lying():
            both = _both(one, other)
            return both is not None and _is_possible(both)
    return False


# ---------------------------------------------------------------- intervals


def _check_digits(attribute: str, *values: Value | None) -> None:
    """Not every store has room for decimals that are no 64-bit number, so none takes them."""
    for value in values:
        if isinstance(value, Exact):
            raise ConstraintError.digits(attribute, value)


def _pieces(span: Span) -> list[Interval]:
    """A span without its excluded values."""
    pieces, low, low_closed = [], span.low, span.low_closed
    for value in span.excluded:
        pieces.append(Interval(low, low_closed, value, False))
        low, low_closed = value, False
    return [*pieces, Interval(low, low_closed, span.high, span.high_closed)]


def _intervals(kind: Kind, pieces: list[Interval], declared: Type | None) -> Intervals | None:
    closed = [_canonical(kind, piece, declared) for piece in pieces]
    kept = tuple(piece for piece in closed if piece is not None and not piece.is_empty)
    return Intervals(kind, kept) if kept else None


_STEPS: dict[Kind, Any] = {Kind.DATE: timedelta(days=1), Kind.TIMESTAMP: timedelta(microseconds=1)}
"""From a value to the next, in kinds where there is a next one; each is added to values of its own kind."""


def _canonical(kind: Kind, piece: Interval, declared: Type | None) -> Interval | None:
    """The same values with bounds that are values, where there is such a bound; None if there is no value."""
    step = 1 if declared is Type.INT else "\0" if kind is Kind.STRING else _STEPS.get(kind)
    if step is None:
        return piece
    low, high, high_closed = piece.low, piece.high, piece.high_closed
    try:
        if low is not None and not piece.low_closed:
            low = low + step  # type: ignore[operator,assignment]  # a step of its kind
        if high is not None and not high_closed and kind is not Kind.STRING:
            high, high_closed = high - step, True  # type: ignore[operator,assignment]
    except OverflowError:  # nothing comes after the last day
        return None
    return Interval(low, low is not None, high, high_closed)


def common(one: Intervals, other: Intervals) -> list[Interval]:
    """Where two sets of one kind overlap, ascending."""
    return [
        _clipped(first, second)
        for first in one.intervals
        for second in other.intervals
        if one.kind is other.kind and _overlap(first, second)
    ]


def _clipped(one: Interval, other: Interval) -> Interval:
    """What two intervals that overlap have in common: from the later start to the earlier end."""
    starts = [(each.low, not each.low_closed) for each in (one, other) if each.low is not None]
    ends = [(each.high, each.high_closed) for each in (one, other) if each.high is not None]
    low, low_open = max(starts, default=(None, True))  # of one kind
    high, high_closed = min(ends, default=(None, False))
    return Interval(low, not low_open, high, high_closed)


def _overlap(one: Interval, other: Interval) -> bool:
    return _reaches(one, other) and _reaches(other, one)


def _reaches(one: Interval, other: Interval) -> bool:
    """Whether one begins no later than another ends."""
    if one.low is None or other.high is None:
        return True
    if one.low == other.high:
        return one.low_closed and other.high_closed
    return bool(one.low < other.high)  # type: ignore[operator]  # of one kind


# ---------------------------------------------------------------- shapes


def _lying(attribute: str, region: Region) -> Lying | None:
    lying = Lying(region.kind)
    for test in region.tests:
        if (both := _both(lying, _one_way(attribute, test))) is None:
            return None
        lying = both
    return lying if _is_possible(lying) else None


def _one_way(attribute: str, test: Test) -> Lying:
    match test:
        case Test(Spatial(operator=SpatialOperator.WITHIN, shape=shape), negated=False):
            return Lying(within=Box(*shape.bounds))
        case Test(Spatial(operator=SpatialOperator.CONTAINS, shape=shape), negated=False):
            return Lying(around=(shape,))
        case Test(Spatial(operator=SpatialOperator.OVERLAPS, shape=shape), negated=False):
            return Lying(over=(shape,))
    raise ConstraintError.avoidance(attribute)


def _both(one: Lying, other: Lying) -> Lying | None:
    """What lies as both ask; None if nothing can."""
    if one.kind is not None and other.kind is not None and one.kind is not other.kind:
        return None
    within = one.within or other.within
    if one.within and other.within and (within := _common(one.within, other.within)) is None:
        return None
    return Lying(one.kind or other.kind, within, one.around + other.around, one.over + other.over)


def _common(one: Point | Box, other: Point | Box) -> Box | None:
    """What two closed regions have in common."""
    min_x, min_y = max(one.bounds[0], other.bounds[0]), max(one.bounds[1], other.bounds[1])
    max_x, max_y = min(one.bounds[2], other.bounds[2]), min(one.bounds[3], other.bounds[3])
    return Box(min_x, min_y, max_x, max_y) if min_x <= max_x and min_y <= max_y else None


def _is_possible(lying: Lying) -> bool:
    """Whether a point or a box lies so. The larger a box, the more it contains and meets: the largest decides."""
    if lying.kind is not Kind.POINT and (lying.within is None or _reaches_all(lying.within, lying)):
        return True
    return lying.kind is not Kind.BOX and _a_point_can(lying)


def _reaches_all(value: Point | Box, lying: Lying) -> bool:
    """Whether a shape lies around all and over all that it should."""
    around = all(lies(value, SpatialOperator.CONTAINS, shape) for shape in lying.around)
    return around and all(lies(value, SpatialOperator.OVERLAPS, shape) for shape in lying.over)


def _a_point_can(lying: Lying) -> bool:
    """A point must lie in everything, and contains nothing but itself."""
    room: Box | None = lying.within
    for shape in (*lying.around, *lying.over):
        room = Box(*shape.bounds) if room is None else _common(room, shape)
        if room is None:
            return False
    return all(shape.bounds[:2] == shape.bounds[2:] for shape in lying.around)


def _lies_so(value: Point | Box, kind: Kind, lying: Lying) -> bool:
    return (
        lying.kind in (None, kind)
        and (lying.within is None or lies(value, SpatialOperator.WITHIN, lying.within))
        and _reaches_all(value, lying)
    )


def is_single(points: PointSet) -> bool:
    """Whether a set is one value of an ordered kind."""
    return isinstance(points, Intervals) and len(points.intervals) == 1 and points.intervals[0].is_point
