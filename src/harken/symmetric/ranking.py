"""Which of the subscriptions that a publication matches is the best: the question the paper leaves open.

Both sides leave room: the values they could agree on are where their boxes meet. An attribute, ascending, ranks
by the least value that both allow, and descending by the greatest. `overlap` ranks by how much of what the
publication leaves open the subscription accepts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cmp_to_key
from typing import TypeAlias

from harken.errors import ExpressionError
from harken.model.subscriptions import SubscriptionId
from harken.model.values import Value, compare
from harken.symmetric.pointsets import Anything, Interval, Intervals, PointSet, Shapes, meet
from harken.symmetric.semantics import Box, Boxes, boxes_match

OVERLAP = "overlap"


@dataclass(frozen=True, slots=True)
class Key:
    """An attribute, or `overlap`, and which end of it is best."""

    name: str
    descending: bool


@dataclass(frozen=True, slots=True)
class Order:
    """What counts first, second, and so on."""

    keys: tuple[Key, ...]

    @classmethod
    def parse(cls, text: str) -> Order:
        """An order like "price asc, overlap desc"; without a direction it is ascending.

        >>> Order.parse("price desc, overlap desc").keys[0]
        Key(name='price', descending=True)
        """
        keys = []
        for part in text.split(","):
            name, _, direction = part.strip().rpartition(" ")
            if direction.lower() not in ("asc", "desc"):
                name, direction = part.strip(), "asc"
            if not name or " " in name:
                raise ExpressionError(f"{part.strip()!r} is no order; write it like 'price asc, overlap desc'")
            keys.append(Key(name, direction.lower() == "desc"))
        return cls(tuple(keys))

    def ranked(self, publication: Boxes, subscriptions: Mapping[SubscriptionId, Boxes]) -> list[SubscriptionId]:
        """Ids, the best first; equals stay in the order given. Costs a comparison of boxes each, and sorting."""
        marks = {id: self._best_marks(publication, boxes) for id, boxes in subscriptions.items()}
        rank = cmp_to_key(self._compare)
        return sorted(subscriptions, key=lambda id: rank(marks[id]))

    def _best_marks(self, publication: Boxes, subscription: Boxes) -> Marks:
        """The marks of the two boxes that rank best."""
        met = [
            tuple(_mark(key, one, other) for key in self.keys)
            for one in publication.boxes
            for other in subscription.boxes
            if boxes_match(one, other, "publication") or boxes_match(one, other, "subscription")
        ]
        return min(met, key=cmp_to_key(self._compare), default=tuple(None for _ in self.keys))

    def _compare(self, one: Marks, other: Marks) -> int:
        for key, mine, theirs in zip(self.keys, one, other, strict=True):
            if mine is None or theirs is None:
                if mine is not theirs:
                    return 1 if mine is None else -1  # what has no mark comes last
                continue
            sign = compare(mine, theirs)
            if sign:
                return -sign if key.descending else sign
        return 0


Marks: TypeAlias = tuple[Value | None, ...]
"""What subscriptions are ranked by, key by key; None where there is nothing to rank by."""


def _mark(key: Key, publication: Box, subscription: Box) -> Value | None:
    if key.name == OVERLAP:
        shares = [
            _share(points, subscription[name]) for name, points in publication.items() if name in subscription
        ]
        return sum(shares) / len(shares) if shares else None
    one, other = publication.get(key.name), subscription.get(key.name)
    ends = [_end(points, key.descending) for points in (one, other) if isinstance(points, Intervals)]
    known = [end for end in ends if end is not None]
    if not known:
        return None
    # Of two upper bounds the lower one counts, and of two lower bounds the higher one.
    if len(known) == 1:
        return known[0]
    first_is_less = compare(known[0], known[1]) < 0
    return known[0] if first_is_less is key.descending else known[1]


def _end(points: Intervals, high: bool) -> Value | None:
    return points.intervals[-1].high if high else points.intervals[0].low


def _share(publication: PointSet, subscription: PointSet) -> float:
    """How much of what one side leaves open the other accepts, from 0 to 1."""
    if isinstance(subscription, Anything) or publication == subscription:
        return 1.0
    if isinstance(publication, Shapes) and isinstance(subscription, Shapes):
        return len(set(publication.values) & set(subscription.values)) / len(publication.values)
    if not isinstance(publication, Intervals) or not isinstance(subscription, Intervals):
        return 1.0 if isinstance(publication, Shapes) else 0.0
    total = sum(_length(each) for each in publication.intervals)
    if total == 0.0:  # single values
        hits = [meet(Intervals(publication.kind, (each,)), subscription) for each in publication.intervals]
        return sum(hits) / len(hits)
    common = sum(_common(one, other) for one in publication.intervals for other in subscription.intervals)
    return common / total if total != float("inf") else 0.0


def _length(interval: Interval) -> float:
    return _distance(interval.low, interval.high)


def _distance(low: Value | None, high: Value | None) -> float:
    """From one value to another; strings have no distance, and count as if they were apart by one."""
    if low is None or high is None:
        return float("inf")
    if low == high:
        return 0.0
    if isinstance(low, int | float) and isinstance(high, int | float):
        return float(high - low)
    if hasattr(low, "toordinal") and not isinstance(low, str):
        return float((high - low).total_seconds())  # type: ignore[operator,union-attr]  # dates and timestamps
    return 1.0


def _common(one: Interval, other: Interval) -> float:
    low = _greater(one.low, other.low)
    high = _less(one.high, other.high)
    if low is not None and high is not None and compare(low, high) > 0:
        return 0.0
    return _distance(low, high)


def _greater(one: Value | None, other: Value | None) -> Value | None:
    if one is None or other is None:
        return other if one is None else one
    return one if compare(one, other) >= 0 else other


def _less(one: Value | None, other: Value | None) -> Value | None:
    if one is None or other is None:
        return other if one is None else one
    return one if compare(one, other) <= 0 else other
