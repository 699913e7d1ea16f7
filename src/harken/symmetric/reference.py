"""The slow store: compares everything with everything. It is the judge of the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import count

import pyarrow as pa

from harken.errors import ClosedError
from harken.language import to_text
from harken.model.schema import Schema
from harken.model.subscriptions import SubscriptionId, moment_of
from harken.normal.compiled import conform
from harken.normal.decompiled import expressions_of
from harken.symmetric.contract import (
    OTHER,
    Held,
    Notice,
    Pair,
    Side,
    arriving,
    check_kind,
    check_new,
    judged,
    named,
    unknown,
)
from harken.symmetric.semantics import Boxes, Covers, boxes_of


class ReferenceStore:
    """Holds constraints in two dictionaries. Not for use by several threads."""

    def __init__(self) -> None:
        self._sides: dict[Side, dict[SubscriptionId, Held]] = {"subscriptions": {}, "publications": {}}
        self._notices: dict[int, Notice] = {}
        self._claimed: dict[int, datetime] = {}
        self._numbers = count(1)

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
        """Keep constraints, and compare each with all of the other side."""
        moment = moment_of(at)
        held = self._held[side]
        ids = [each.id for each in several]
        check_kind(side, next(iter(held), None), ids)
        if not replace:
            check_new(side, ids, held)
        held |= zip(ids, several, strict=True)
        pairs = self.match(OTHER[side], arriving(several, moment), covers, at=moment)
        if notify:
            for publication, subscription in named(side, several, pairs):
                number = next(self._numbers)
                self._notices[number] = Notice(number, publication, subscription, moment)
        return pairs

    def load(self, side: Side, table: pa.Table, schema: Schema | None) -> None:
        """Keep constraints given in the compiled form."""
        table = conform(table)
        ids, begins, ends = (table.column(name).to_pylist() for name in ("id", "valid_from", "valid_until"))
        expressions = expressions_of(table)
        several = [
            Held(id, boxes_of(expression, schema), to_text(expression), end, begin)
            for id, expression, begin, end in zip(ids, expressions, begins, ends, strict=True)
        ]
        self.put(side, several, "publication")

    def remove(self, side: Side, ids: Iterable[SubscriptionId]) -> None:
        """Forget constraints."""
        going, held = list(ids), self._held[side]
        for id in going:
            if id not in held:
                raise unknown(side, id)
        for id in going:
            held.pop(id, None)

    def match(
        self, side: Side, asked: Sequence[Boxes], covers: Covers, *, at: datetime | None = None
    ) -> list[Pair]:
        """Compare each with each."""
        moment = moment_of(at)
        holding = [each for each in self._held[side].values() if each.holds_at(moment)]
        return [
            (place, held.id)
            for place, boxes in enumerate(asked)
            for held in holding
            if judged(side, boxes, held.boxes, covers)
        ]

    def matched(
        self, side: Side, asked: Boxes, covers: Covers, *, at: datetime | None = None
    ) -> dict[SubscriptionId, Boxes]:
        """What matches one constraint, with its boxes."""
        return {id: self._held[side][id].boxes for _, id in self.match(side, [asked], covers, at=at)}

    def attributes(self, side: Side) -> set[str]:
        """The attributes that constraints are about."""
        return {name for held in self._held[side].values() for box in held.boxes.boxes for name in box}

    def get(self, side: Side, id: SubscriptionId) -> Held | None:
        """What is kept under an id."""
        return self._held[side].get(id)

    def ids(self, side: Side) -> list[SubscriptionId]:
        """All ids of one side."""
        return list(self._held[side])

    def count(self, side: Side) -> int:
        """How many there are."""
        return len(self._held[side])

    def notices(self, limit: int) -> list[Notice]:
        """The oldest notices that nobody has settled."""
        self._check_open()
        return [self._notices[number] for number in sorted(self._notices)[:limit]]

    def claim(self, limit: int, until: datetime, *, at: datetime | None = None) -> list[Notice]:
        """The oldest notices that nobody has a claim on."""
        moment = moment_of(at)
        free = [each for each in self.notices(len(self._notices)) if not self._is_claimed(each.number, moment)]
        self._claimed |= {each.number: until for each in free[:limit]}
        return free[:limit]

    def release(self, numbers: Iterable[int], until: datetime) -> None:
        """Give notices back."""
        self._check_open()
        for number in numbers:
            if self._claimed.get(number) == until:
                del self._claimed[number]

    def settle(self, numbers: Iterable[int]) -> None:
        """Forget notices."""
        self._check_open()
        for number in numbers:
            self._notices.pop(number, None)
            self._claimed.pop(number, None)

    def close(self) -> None:
        """Nothing is there any more."""
        self._sides = {}

    @property
    def _held(self) -> dict[Side, dict[SubscriptionId, Held]]:
        self._check_open()
        return self._sides

    def _check_open(self) -> None:
        if not self._sides:
            raise ClosedError("use the store")

    def _is_claimed(self, number: int, moment: datetime) -> bool:
        return number in self._claimed and moment < self._claimed[number]
