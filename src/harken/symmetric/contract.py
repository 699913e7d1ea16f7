"""The contract between the symmetric engine and what holds the constraints: memory, or a database.

The engine reads texts, checks them, and turns them into boxes. A store keeps boxes under ids on two sides
(subscriptions, and publications that last), says which match, and holds notices until somebody has taken them.
Laws that every store obeys (tests/symmetric/checks.py): it agrees with `semantics.matches`; a batch gives what a
loop gives; the order of additions is irrelevant; adding and removing leaves no trace; what was acknowledged stays;
a call that fails, whatever the reason, has changed nothing; calls come from any thread; closed, it refuses all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, TypeAlias, TypeVar

import pyarrow as pa

from harken.errors import (
    DuplicatePublicationError,
    DuplicateSubscriptionError,
    SubscriptionError,
    UnknownPublicationError,
    UnknownSubscriptionError,
)
from harken.language import to_text
from harken.model.expressions import Expression
from harken.model.limits import DEFAULT_LIMITS, Limits
from harken.model.schema import Schema
from harken.model.subscriptions import ALWAYS, SubscriptionId, Validity, checked_id
from harken.symmetric.semantics import Boxes, Covers, boxes_of, matches

Side: TypeAlias = Literal["subscriptions", "publications"]
OTHER: dict[Side, Side] = {"subscriptions": "publications", "publications": "subscriptions"}

Pair: TypeAlias = tuple[int, SubscriptionId]
"""A match: the place of what was asked about, and the id of what is held."""


@dataclass(frozen=True, slots=True)
class Held:
    """A constraint that is kept: under its id, with its boxes, its text, and the times between which it holds."""

    id: SubscriptionId
    boxes: Boxes
    text: str
    valid_until: datetime | None = None
    valid_from: datetime | None = None

    @classmethod
    def of(
        cls,
        id: SubscriptionId,
        expression: str | Expression,
        schema: Schema | None = None,
        limits: Limits = DEFAULT_LIMITS,
        validity: Validity = ALWAYS,
    ) -> Held:
        """What an expression says, under an id; errors as with `boxes_of`."""
        boxes = boxes_of(expression, schema, limits)
        text = expression if isinstance(expression, str) else to_text(expression)
        return cls(checked_id(id), boxes, text, validity.valid_until, validity.valid_from)

    def holds_at(self, moment: datetime) -> bool:
        """Whether it holds: from its first moment on, and no longer at its last."""
        begun = self.valid_from is None or self.valid_from <= moment
        return begun and (self.valid_until is None or moment < self.valid_until)


@dataclass(frozen=True, slots=True)
class Notice:
    """A match that somebody is to be told of. Its number tells it apart: it may be delivered more than once."""

    number: int
    publication: SubscriptionId
    subscription: SubscriptionId
    made_at: datetime


class Numbered(Protocol):
    """Something to be told, that its number tells apart."""

    @property
    def number(self) -> int:
        """Older ones have lesser numbers."""


Item = TypeVar("Item", bound=Numbered)


class Outlet(Protocol[Item]):
    """Where what is to be told waits. Every call is a transaction."""

    def claim(self, limit: int, until: datetime, *, at: datetime | None = None) -> list[Item]:
        """The oldest that nobody has a claim on `at` that time (now), and claim them `until` another."""

    def release(self, numbers: Iterable[int], until: datetime) -> None:
        """Give back what was claimed until then; what others have claimed since stays theirs."""

    def settle(self, numbers: Iterable[int]) -> None:
        """Forget what was told; what is gone already does not matter."""


class Store(Outlet[Notice], Protocol):
    """Holds constraints. Every call is a transaction: it happens entirely or not at all."""

    def put(
        self,
        side: Side,
        several: Sequence[Held],
        covers: Covers,
        *,
        replace: bool = False,
        notify: bool = False,
        at: datetime | None = None,
    ) -> list[Pair]:
        """Keep constraints, and say what each matches on the other side, by its place; with `notify`, note it too.

        What does not hold at that time, of either side, is kept, but matches nothing.
        SubscriptionError, and no change, if a subscription's id is not of the kind of the others;
        DuplicateSubscriptionError, and no change, if an id is taken, or comes twice, and `replace` is not said.
        """

    def load(self, side: Side, table: pa.Table, schema: Schema | None) -> None:
        """Keep many constraints, given in the compiled form, without matching; ids must be new.

        ConstraintError, and no change, if one cannot be said in points.
        """

    def remove(self, side: Side, ids: Iterable[SubscriptionId]) -> None:
        """Forget constraints; UnknownSubscriptionError, and no change, if one is not there."""

    def match(
        self, side: Side, asked: Sequence[Boxes], covers: Covers, *, at: datetime | None = None
    ) -> list[Pair]:
        """What is held on this side and matches constraints of the other side, which are not kept.

        What does not hold `at` that time (now) does not match. Each pair comes once; places ascend.
        """

    def matched(
        self, side: Side, asked: Boxes, covers: Covers, *, at: datetime | None = None
    ) -> dict[SubscriptionId, Boxes]:
        """What `match` finds for one constraint, with its boxes as they were when it was found."""

    def attributes(self, side: Side) -> set[str]:
        """The attributes that constraints of this side are about, and perhaps some that they were about before."""

    def get(self, side: Side, id: SubscriptionId) -> Held | None:
        """What is kept under an id."""

    def ids(self, side: Side) -> list[SubscriptionId]:
        """All ids of one side."""

    def count(self, side: Side) -> int:
        """How many constraints one side has."""

    def notices(self, limit: int) -> list[Notice]:
        """The oldest notices that nobody has settled, by number, whoever has claimed them."""

    def close(self) -> None:
        """Let go of connections. All other calls afterwards raise ClosedError."""


NOTHING = Boxes(())


def judged(side: Side, asked: Boxes, held: Boxes, covers: Covers) -> bool:
    """Whether what is asked about matches what is held on a side."""
    return matches(asked, held, covers) if side == "subscriptions" else matches(held, asked, covers)


def arriving(several: Sequence[Held], moment: datetime) -> list[Boxes]:
    """What constraints that arrive at a moment ask of the other side; those that do not hold then, nothing."""
    return [each.boxes if each.holds_at(moment) else NOTHING for each in several]


def check_new(side: Side, ids: Sequence[SubscriptionId], taken: Mapping[SubscriptionId, object]) -> None:
    """DuplicateSubscriptionError if an id is taken or comes twice."""
    if len(set(ids)) == len(ids) and taken.keys().isdisjoint(ids):
        return
    seen: set[SubscriptionId] = set()
    for id in ids:
        if id in taken or id in seen:
            raise duplicate(side, id)
        seen.add(id)


def named(
    side: Side, several: Sequence[Held], pairs: Iterable[Pair]
) -> Iterator[tuple[SubscriptionId, SubscriptionId]]:
    """The publication and the subscription of matches that constraints which came to one side have."""
    for place, met in pairs:
        yield (several[place].id, met) if side == "publications" else (met, several[place].id)


def duplicate(side: Side, id: SubscriptionId) -> DuplicateSubscriptionError:
    """The error that an id of this side is taken."""
    return DuplicateSubscriptionError(id) if side == "subscriptions" else DuplicatePublicationError(id)


def unknown(side: Side, id: SubscriptionId) -> UnknownSubscriptionError:
    """The error that this side has no such id."""
    return UnknownSubscriptionError(id) if side == "subscriptions" else UnknownPublicationError(id)


def check_kind(side: Side, first: SubscriptionId | None, coming: Iterable[SubscriptionId]) -> None:
    """SubscriptionError unless ids of subscriptions are all strings or all integers, as the first there is.

    Matches of many publications have their ids in one column, which has one type.
    """
    if side == "publications":
        return
    for id in coming:
        first = id if first is None else first
        if isinstance(id, str) != isinstance(first, str):
            kinds = ["a string" if isinstance(each, str) else "an integer" for each in (first, id)]
            raise SubscriptionError(
                f"subscription {first!r} has {kinds[0]} as its id, and {id!r} is {kinds[1]}",
                suggestion="one engine holds ids of one kind",
            )
