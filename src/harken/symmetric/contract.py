"""The contract between the symmetric engine and what holds the constraints: memory, or a database.

The engine reads texts, checks them, and turns them into boxes. A store keeps boxes under ids on two sides
(subscriptions, and publications that last), says which match, and holds notices until somebody has taken them.
Laws that every store obeys (tests/symmetric/checks.py): it agrees with `semantics.matches`; a batch gives what a
loop gives; the order of additions is irrelevant; adding and removing leaves no trace; what was acknowledged stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

import pyarrow as pa

from harken.model.schema import Schema
from harken.model.subscriptions import SubscriptionId
from harken.symmetric.semantics import Boxes, Covers

Side: TypeAlias = Literal["subscriptions", "publications"]
OTHER: dict[Side, Side] = {"subscriptions": "publications", "publications": "subscriptions"}

Pair: TypeAlias = tuple[int, SubscriptionId]
"""A match: the place of what was asked about, and the id of what is held."""


@dataclass(frozen=True, slots=True)
class Held:
    """A constraint that is kept: under its id, with its boxes, its text, and the time until which it holds."""

    id: SubscriptionId
    boxes: Boxes
    text: str
    valid_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """A match that somebody is to be told of. Its number tells it apart: it may be delivered more than once."""

    number: int
    publication: SubscriptionId
    subscription: SubscriptionId
    made_at: datetime


class Store(Protocol):
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

        What no longer holds `at` that time (now) does not match. Each pair comes once; places ascend.
        """

    def get(self, side: Side, id: SubscriptionId) -> Held | None:
        """What is kept under an id."""

    def ids(self, side: Side) -> list[SubscriptionId]:
        """All ids of one side."""

    def count(self, side: Side) -> int:
        """How many constraints one side has."""

    def notices(self, limit: int) -> list[Notice]:
        """The oldest notices that nobody has settled, by number."""

    def settle(self, numbers: Iterable[int]) -> None:
        """Forget notices that were delivered; those that are gone already do not matter."""

    def close(self) -> None:
        """Let go of connections. Calls afterwards fail."""
