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
from harken.symmetric.pointsets import Anything, Interval, Intervals, PointSet, Shapes, common, meet
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
    sets = [side[key.name] for side in (publication, subscription) if key.name in side]
    return _best([each for each in sets if isinstance(each, Intervals)], key.descending)


def _best(sets: list[Intervals], descending: bool) -> Value | None:
    """The greatest, or the least, that one or two sets allow; None without such a bound."""
    allowed = common(sets[0], sets[-1]) if sets else []
    if not allowed:
        return None
    return allowed[-1].high if descending else allowed[0].low


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
    accepted = sum(_length(each) for each in common(publication, subscription))
    return accepted / total if total != float("inf") else 0.0


def _length(interval: Interval) -> float:
    """From one end to the other; strings have no distance, and count as if they were apart by one."""
    low, high = interval.low, interval.high
    if low is None or high is None:
        return float("inf")
    if low == high:
        return 0.0
    if isinstance(low, int | float) and isinstance(high, int | float):
        return float(high - low)
    if hasattr(low, "toordinal") and not isinstance(low, str):
        return float((high - low).total_seconds())  # type: ignore[operator,union-attr]  # dates and timestamps
    return 1.0
