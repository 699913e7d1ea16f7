"""Constraints as rows: the bounds of intervals as keys that databases order as we do, and shapes as numbers.

A key is a number (dates and times are counted, truth is 0 or 1) or, for strings, bytes in the order of code
points. Where an interval is unbounded its key is beyond all others, and the end counts as closed, so that two
intervals meet if each begins no later than the other ends, and no case is special.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from harken.model.subscriptions import SubscriptionId
from harken.model.values import Box, Kind, Point, Value
from harken.normal.operators import EPOCH, microseconds
from harken.symmetric.pointsets import Anything, Interval, Intervals, Lying, PointSet, Shapes

Key: TypeAlias = int | float | bytes

Edges: TypeAlias = tuple[float, float, float, float]
"""min_x, min_y, max_x, max_y."""

LEAST: dict[type, Key] = {float: -math.inf, bytes: b""}
GREATEST: dict[type, Key] = {float: math.inf, bytes: b"t"}
"""Beyond all keys: those of strings are their characters behind an s."""


class Sort(IntEnum):
    """What a row is about. Numbers are stored: they must not change."""

    ANYTHING = 0
    NUMBER = 1
    BOOL = 2
    DATE = 3
    TIMESTAMP = 4
    STRING = 5
    SHAPE = 6


KINDS: dict[Sort, Kind] = {
    Sort.NUMBER: Kind.NUMBER,
    Sort.BOOL: Kind.BOOL,
    Sort.DATE: Kind.DATE,
    Sort.TIMESTAMP: Kind.TIMESTAMP,
    Sort.STRING: Kind.STRING,
}
SORTS: dict[Kind, Sort] = {kind: sort for sort, kind in KINDS.items()}


class KeySpan(NamedTuple):
    """An interval of keys. Unbounded ends are closed, at a key beyond all others."""

    low: Key
    low_closed: bool
    high: Key
    high_closed: bool

    @property
    def is_point(self) -> bool:
        """Whether it has one key only."""
        return self.low == self.high


UNBOUNDED: dict[type, KeySpan] = {of: KeySpan(LEAST[of], True, GREATEST[of], True) for of in LEAST}


def sort_of(points: PointSet) -> Sort:
    """What the rows of a set are about."""
    match points:
        case Anything():
            return Sort.ANYTHING
        case Intervals(kind=kind):
            return SORTS[kind]
    return Sort.SHAPE


def spans_of(points: Intervals) -> Iterator[KeySpan]:
    """Its intervals as keys."""
    key = _KEYS[points.kind]
    least, _, greatest, _ = UNBOUNDED[bytes if points.kind is Kind.STRING else float]
    for low, low_closed, high, high_closed in map(_ends, points.intervals):
        yield KeySpan(
            least if low is None else key(low),
            low is None or low_closed,
            greatest if high is None else key(high),
            high is None or high_closed,
        )


def intervals_of(sort: Sort, spans: Iterable[KeySpan]) -> Intervals:
    """Back from keys to values."""
    value = _VALUES[sort]
    least, _, greatest, _ = UNBOUNDED[bytes if sort is Sort.STRING else float]
    found = []
    for low, low_closed, high, high_closed in sorted(spans):
        # What is infinite on both ends is one infinite value, which a publication may have.
        above, below = low == least != high, high == greatest != low
        found.append(
            Interval(
                None if above else value(low),
                low_closed and not above,
                None if below else value(high),
                high_closed and not below,
            )
        )
    return Intervals(KINDS[sort], tuple(found))


def _ends(interval: Interval) -> tuple[Value | None, bool, Value | None, bool]:
    return interval.low, interval.low_closed, interval.high, interval.high_closed


_KEYS: dict[Kind, Callable[..., Key]] = {
    Kind.NUMBER: lambda value: value,
    Kind.BOOL: int,
    Kind.DATE: date.toordinal,
    Kind.TIMESTAMP: microseconds,
    Kind.STRING: lambda value: b"s" + value.encode(),
}


def _number(key: Key) -> int | float:
    """A number as databases give it back: a decimal on PostgreSQL."""
    return int(key) if math.isfinite(key) and key == int(key) else float(key)  # type: ignore[arg-type]


_VALUES: dict[Sort, Callable[[Key], Value]] = {
    Sort.NUMBER: _number,
    Sort.BOOL: bool,
    Sort.DATE: lambda key: date.fromordinal(int(key)),
    Sort.TIMESTAMP: lambda key: _moment(int(key)),
    Sort.STRING: lambda key: bytes(key)[1:].decode(),  # type: ignore[arg-type]  # bytes, of this sort
}


def _moment(count: int) -> datetime:
    return EPOCH + timedelta(microseconds=count)


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
            return [_place(Lying(None, None, (), ()), "")]
        case Lying():
            return [_place(points, json.dumps(_lying_said(points)))]
        case Shapes(kind=kind, values=values):
            return [
                _place(Lying(kind, Box(*each.bounds), (each,), ()), json.dumps(_shape_said(each)))
                for each in values
            ]


def shapes_of(said: Iterable[str]) -> Shapes | Lying:
    """Back from alternatives to the set."""
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
