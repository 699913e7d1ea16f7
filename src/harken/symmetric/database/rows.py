"""Constraints as rows: the bounds of intervals as keys that databases order as we do, and shapes as numbers.

A key is a number (dates and times are counted, truth is 0 or 1) or, for strings, bytes in the order of code
points. Where an interval is unbounded its key is beyond all others, and the end counts as closed, so that two
intervals meet if each begins no later than the other ends, and no case is special.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

from harken.model.subscriptions import SubscriptionId
from harken.model.values import Box, Kind, Point, Value
from harken.normal.operators import microseconds, moment_from
from harken.symmetric.pointsets import Anything, Interval, Intervals, Lying, PointSet, Shapes

Key: TypeAlias = int | float | bytes

Edges: TypeAlias = tuple[float, float, float, float]
"""min_x, min_y, max_x, max_y."""


class Sort(IntEnum):
    """What a row is about. Numbers are stored: they must not change."""

    ANYTHING = 0
    NUMBER = 1
    BOOL = 2
    DATE = 3
    TIMESTAMP = 4
    STRING = 5
    SHAPE = 6


class KeySpan(NamedTuple):
    """An interval of keys. Unbounded ends are closed, at a key beyond all others."""

    low: Key
    low_closed: bool
    high: Key
    high_closed: bool

    @property
    def is_point(self) -> bool:
        """Whether it has one key only, be it an infinite one, which a publication may have."""
        return self.low == self.high

    @property
    def has_low(self) -> bool:
        """Whether it is bounded below."""
        return self.low != all_keys(self.low).low

    @property
    def has_high(self) -> bool:
        """Whether it is bounded above."""
        return self.high != all_keys(self.low).high


ALL_NUMBERS = KeySpan(-math.inf, True, math.inf, True)
ALL_STRINGS = KeySpan(b"", True, b"t", True)
"""From before to beyond all keys: those of strings are their characters behind an s."""


def all_keys(like: Key) -> KeySpan:
    """All keys that there are of the kind of one of them."""
    return ALL_STRINGS if isinstance(like, bytes) else ALL_NUMBERS


class _Coding(NamedTuple):
    """How values of a kind become keys, and keys values again."""

    kind: Kind
    key: Callable[[Any], Key]
    value: Callable[[Any], Value]


def _number(key: Any) -> int | float:
    """A number as databases give it back: a decimal on PostgreSQL."""
    return int(key) if math.isfinite(key) and key == int(key) else float(key)


_CODINGS = {
    Sort.NUMBER: _Coding(Kind.NUMBER, lambda value: value, _number),
    Sort.BOOL: _Coding(Kind.BOOL, int, bool),
    Sort.DATE: _Coding(Kind.DATE, date.toordinal, lambda key: date.fromordinal(int(key))),
    Sort.TIMESTAMP: _Coding(Kind.TIMESTAMP, microseconds, moment_from),
    Sort.STRING: _Coding(Kind.STRING, lambda value: b"s" + value.encode(), lambda key: bytes(key)[1:].decode()),
}
_SORTS = {coding.kind: sort for sort, coding in _CODINGS.items()}


def sort_of(points: PointSet) -> Sort:
    """What the rows of a set are about."""
    match points:
        case Anything():
            return Sort.ANYTHING
        case Intervals(kind=kind):
            return _SORTS[kind]
    return Sort.SHAPE


def spans_of(points: Intervals) -> Iterator[KeySpan]:
    """Its intervals as keys."""
    key = _CODINGS[_SORTS[points.kind]].key
    least, _, greatest, _ = ALL_STRINGS if points.kind is Kind.STRING else ALL_NUMBERS
    for each in points.intervals:
        yield KeySpan(
            least if each.low is None else key(each.low),
            each.low is None or each.low_closed,
            greatest if each.high is None else key(each.high),
            each.high is None or each.high_closed,
        )


def points_of(sort: Sort, parts: Sequence[Any]) -> PointSet:
    """Back from what rows say: the spans of intervals, or what places of shapes have `said`."""
    if sort is Sort.ANYTHING:
        return Anything()
    return _shapes(parts) if sort is Sort.SHAPE else _intervals(_CODINGS[sort], parts)


def _intervals(coding: _Coding, spans: Iterable[KeySpan]) -> Intervals:
    found = []
    for span in sorted(spans):
        has_low, has_high = span.has_low or span.is_point, span.has_high or span.is_point
        low = coding.value(span.low) if has_low else None
        high = coding.value(span.high) if has_high else None
        found.append(Interval(low, has_low and span.low_closed, high, has_high and span.high_closed))
    return Intervals(coding.kind, tuple(found))


# ---------------------------------------------------------------- shapes

NOWHERE: Edges = (math.inf, math.inf, -math.inf, -math.inf)
EVERYWHERE: Edges = (-math.inf, -math.inf, math.inf, math.inf)

_FAR = 1e150
"""As far as boxes in an index reach, so that no area overflows. What lies beyond counts as lying there."""


@dataclass(frozen=True, slots=True)
class ShapePlace:
    """A set of shapes, said in numbers that decide whether two sets have a shape in common.

    All conditions of spatial relations are on single edges, and boxes that meet pairwise have a point in common.
    So a box lies in both sets if each set's `room` (within what its boxes lie) reaches as far as the other's
    `demand` asks: down to its min and up to its max. A point lies in both if `common`, where all that it must lie
    in meets, overlaps the other's.
    """

    boxes: bool
    points: bool
    room: Edges
    demand: Edges
    common: Edges
    bounded: bool
    """Whether boxes lie within something; if not, two such sets always have a box in common."""
    reach: Edges
    """Two sets can only have something in common if these overlap, or if neither is bounded."""
    said: str
    """The set itself, to read it back."""

    @property
    def columns(self) -> tuple[object, ...]:
        """The numbers, in the order of `PLACE_COLUMNS`."""
        return (self.boxes, self.points, *self.room, *self.demand, *self.common, *self.reach)


PLACE_COLUMNS = (
    "boxes",
    "points",
    *(f"{name}_{edge}" for name in ("room", "demand", "common", "reach") for edge in ("x0", "y0", "x1", "y1")),
)


def places_of(points: Shapes | Lying | Anything) -> list[ShapePlace]:
    """A set of shapes as alternatives. One shape is all that contains it and lies within it."""
    match points:
        case Anything():
            return [_place(Lying(), "")]
        case Lying():
            return [_place(points, json.dumps(_lying_said(points)))]
        case Shapes(kind=kind, values=values):
            alike = [(Lying(kind, Box(*each.bounds), (each,)), json.dumps(_shape_said(each))) for each in values]
            return [_place(*each) for each in alike]


def _shapes(said: Iterable[str]) -> Shapes | Lying:
    read = [json.loads(each) for each in said]
    if isinstance(read[0], dict):
        lying = read[0]
        within = lying["within"]
        return Lying(
            None if lying["kind"] is None else Kind(lying["kind"]),
            None if within is None else Box(*within),
            tuple(map(_shape, lying["around"])),
            tuple(map(_shape, lying["over"])),
        )
    values = sorted(map(_shape, read))
    return Shapes(Kind.POINT if isinstance(values[0], Point) else Kind.BOX, tuple(values))


def _place(lying: Lying, said: str) -> ShapePlace:
    room = EVERYWHERE if lying.within is None else lying.within.bounds
    box = _edges([NOWHERE, *(each.bounds for each in lying.around)], (min, min, max, max))
    # Of all that has to be met, only the nearest and the farthest edges count.
    met = _edges([EVERYWHERE, *(each.bounds for each in lying.over)], (max, max, min, min))
    demand = (
        *(min(outer, near, far) for outer, near, far in zip(room[2:], box[:2], met[2:], strict=True)),
        *(max(outer, far, near) for outer, far, near in zip(room[:2], box[2:], met[:2], strict=True)),
    )
    common = _edges([room, met, *(each.bounds for each in lying.around)], (max, max, min, min))
    single = all(each.bounds[:2] == each.bounds[2:] for each in lying.around)
    nonempty = common[0] <= common[2] and common[1] <= common[3]
    bounded = lying.within is not None
    return ShapePlace(
        boxes=lying.kind is not Kind.POINT,
        points=lying.kind is not Kind.BOX and single and nonempty,
        room=room,
        demand=demand,  # type: ignore[arg-type]  # two pairs
        common=common,
        bounded=bounded,
        reach=_reach(room if bounded else demand),  # type: ignore[arg-type]
        said=said,
    )


def _edges(of: Iterable[Edges], chosen: tuple[Callable[[Iterable[float]], float], ...]) -> Edges:
    return tuple(choose(edges) for choose, edges in zip(chosen, zip(*of, strict=True), strict=True))  # type: ignore[return-value]


def _reach(edges: Edges) -> Edges:
    near = [max(-_FAR, min(_FAR, each)) for each in edges]
    return (min(near[0], near[2]), min(near[1], near[3]), max(near[0], near[2]), max(near[1], near[3]))


def _shape_said(shape: Point | Box) -> list[float]:
    return [shape.x, shape.y] if isinstance(shape, Point) else list(shape.bounds)


def _lying_said(lying: Lying) -> dict[str, object]:
    return {
        "kind": None if lying.kind is None else lying.kind.value,
        "within": None if lying.within is None else lying.within.bounds,
        "around": [_shape_said(each) for each in lying.around],
        "over": [_shape_said(each) for each in lying.over],
    }


def _shape(edges: list[float]) -> Point | Box:
    return Point(*edges) if len(edges) == 2 else Box(*edges)


def spatial_condition(one: str, other: str) -> str:
    """The SQL that decides whether two places, under these names, have a shape in common."""
    boxes = [
        f"{a}.demand_{axis}0 >= {b}.room_{axis}0 AND {a}.demand_{axis}1 <= {b}.room_{axis}1"
        for a, b in ((one, other), (other, one))
        for axis in "xy"
    ]
    points = [
        f"{a}.common_{axis}0 <= {b}.common_{axis}1" for a, b in ((one, other), (other, one)) for axis in "xy"
    ]
    return (
        f"(({one}.boxes AND {other}.boxes AND {' AND '.join(boxes)})"
        f" OR ({one}.points AND {other}.points AND {' AND '.join(points)}))"
    )


def span_condition(one: str, other: str) -> str:
    """The SQL that decides whether two intervals of keys, under these names, meet."""
    reaches = [
        f"({a}.low < {b}.high OR ({a}.low = {b}.high AND {a}.low_closed AND {b}.high_closed))"
        for a, b in ((one, other), (other, one))
    ]
    return " AND ".join(reaches)


# ---------------------------------------------------------------- names and ids


def id_text(id: SubscriptionId) -> str:
    """An id as JSON: its type is kept, and no character is one that databases refuse."""
    return json.dumps(id, ensure_ascii=False)


def id_of(text: str) -> SubscriptionId:
    """Back from JSON. Nearly all ids are plain, and there may be many."""
    if text[0] != '"':
        return int(text)
    return text[1:-1] if "\\" not in text else str(json.loads(text))
