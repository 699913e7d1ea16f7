"""Which of the subscriptions that a publication matches is the best: the question the paper leaves open.

Both sides leave room: the values they could agree on are where their boxes meet. An attribute, ascending, ranks
by the least value that both allow, and descending by the greatest: what has no bound there goes farther than any
value, and a bound that is itself not allowed falls just short of one that is. What says nothing of the attribute
comes last. `overlap` ranks by how much of what the publication leaves open the subscription accepts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cmp_to_key
from typing import NamedTuple, TypeAlias

from harken.errors import ArgumentTypeError, ExpressionError, closest
from harken.model.schema import Schema
from harken.model.subscriptions import SubscriptionId
from harken.model.values import Kind, Value, compare, kind_of
from harken.symmetric.pointsets import Anything, Interval, Intervals, PointSet, Shapes, common, meet
from harken.symmetric.semantics import Box, Boxes, boxes_match

OVERLAP = "overlap"

_DIRECTIONS = ("asc", "desc")
_KINDS = list(Kind)


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
        if not isinstance(text, str):
            message = f"an order is a text like 'price asc, overlap desc', found {type(text).__name__}"
            raise ArgumentTypeError(message, argument="order_by")
        return cls(tuple(_key(part.strip()) for part in text.split(",")))

    def check_declared(self, schema: Schema | None) -> None:
        """SchemaError if there is a schema that lacks an attribute."""
        for key in self.keys if schema is not None else ():
            if key.name != OVERLAP:
                schema.declared(key.name)  # type: ignore[union-attr]  # there is one

    def check_known(self, known: Collection[str]) -> None:
        """ExpressionError if an attribute is none of those that anybody constrains."""
        for key in self.keys:
            if key.name != OVERLAP and key.name not in known:
                near = closest(key.name, known)
                suggestion = f"did you mean {near!r}?" if near else None
                raise ExpressionError(f"nobody constrains {key.name!r} to rank by", suggestion=suggestion)

    def names(self) -> set[str]:
        """The attributes that it goes by."""
        return {key.name for key in self.keys} - {OVERLAP}

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
            sign = _compare(mine, theirs)
            if sign:
                return -sign if key.descending else sign
        return 0


class _Mark(NamedTuple):
    """A value, or None beyond all values; `beyond` tells on which side of the value, if it is not that itself."""

    value: Value | None
    beyond: int = 0


Marks: TypeAlias = tuple[_Mark | None, ...]
"""What subscriptions are ranked by, key by key; None where there is nothing to rank by."""


def _key(part: str) -> Key:
    name, _, direction = part.rpartition(" ")
    if direction.lower() not in _DIRECTIONS:
        name, direction = part, "asc"
    if not name or " " in name:
        near = closest(name.rpartition(" ")[2], _DIRECTIONS) if name else None
        raise ExpressionError(
            f"{part!r} is no order; write it like 'price asc, overlap desc'",
            suggestion=f"did you mean {near!r}?" if near else None,
        )
    return Key(name, direction.lower() == "desc")


def _compare(one: _Mark, other: _Mark) -> int:
    """Which is the greater; values of different kinds have some order, always the same."""
    if one.value is None or other.value is None:
        return (one.beyond if one.value is None else 0) - (other.beyond if other.value is None else 0)
    kinds = [_KINDS.index(kind_of(each.value)) for each in (one, other) if each.value is not None]
    if kinds[0] != kinds[1]:
        return -1 if kinds[0] < kinds[1] else 1
    return compare(one.value, other.value) or one.beyond - other.beyond


def _mark(key: Key, publication: Box, subscription: Box) -> _Mark | None:
    if key.name == OVERLAP:
        shares = [
            _share(points, subscription[name]) for name, points in publication.items() if name in subscription
        ]
        return _Mark(sum(shares) / len(shares)) if shares else None
    sets = [side[key.name] for side in (publication, subscription) if key.name in side]
    if sets and all(isinstance(each, Anything) for each in sets):
        return _Mark(None, 1 if key.descending else -1)
    return _best([each for each in sets if isinstance(each, Intervals)], key.descending)


def _best(sets: list[Intervals], descending: bool) -> _Mark | None:
    """The greatest, or the least, that one or two sets allow; None without such sets."""
    allowed = common(sets[0], sets[-1]) if sets else []
    if not allowed:
        return None
    if descending:
        last = allowed[-1]
        return _Mark(last.high, 1 if last.high is None else 0 if last.high_closed else -1)
    first = allowed[0]
    return _Mark(first.low, -1 if first.low is None else 0 if first.low_closed else 1)


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
    accepted = common(publication, subscription)
    if total == float("inf"):  # of what has no end, the ends count
        return _open_ends(accepted) / (_open_ends(publication.intervals) or 1)
    return sum(_length(each) for each in accepted) / total


def _open_ends(intervals: Iterable[Interval]) -> int:
    return sum((each.low is None) + (each.high is None) for each in intervals)


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
