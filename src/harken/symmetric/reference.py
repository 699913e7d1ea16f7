"""The slow store: compares everything with everything. It is the judge of the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import count

import pyarrow as pa

from harken.errors import DuplicateSubscriptionError, UnknownSubscriptionError
from harken.language import to_text
from harken.model.schema import Schema
from harken.model.subscriptions import SubscriptionId, moment_of
from harken.normal.decompiled import expressions_of
from harken.symmetric.contract import OTHER, Held, Notice, Pair, Side
from harken.symmetric.semantics import Boxes, Covers, boxes_of, matches


class ReferenceStore:
    """Holds constraints in two dictionaries. Not for use by several threads."""

    def __init__(self) -> None:
        self._held: dict[Side, dict[SubscriptionId, Held]] = {"subscriptions": {}, "publications": {}}
        self._notices: dict[int, Notice] = {}
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
        fresh: dict[SubscriptionId, Held] = {}
        for each in several:
            if not replace and (each.id in self._held[side] or each.id in fresh):
                raise DuplicateSubscriptionError(each.id)
            fresh[each.id] = each
        self._held[side] |= fresh
        pairs = self.match(OTHER[side], [each.boxes for each in several], covers, at=at)
        if notify:
            self._notify(side, several, pairs, moment_of(at))
        return pairs

    def load(self, side: Side, table: pa.Table, schema: Schema | None) -> None:
        """Keep constraints given in the compiled form."""
        ids, ends = table.column("id").to_pylist(), table.column("valid_until").to_pylist()
        expressions = expressions_of(table)
        several = [
            Held(id, boxes_of(expression, schema), to_text(expression), end)
            for id, expression, end in zip(ids, expressions, ends, strict=True)
        ]
        self.put(side, several, "publication")

    def remove(self, side: Side, ids: Iterable[SubscriptionId]) -> None:
        """Forget constraints."""
        going = list(ids)
        for id in going:
            if id not in self._held[side]:
                raise UnknownSubscriptionError(id)
        for id in going:
            self._held[side].pop(id, None)

    def match(
        self, side: Side, asked: Sequence[Boxes], covers: Covers, *, at: datetime | None = None
    ) -> list[Pair]:
        """Compare each with each."""
        moment = moment_of(at)
        holding = [
            each for each in self._held[side].values() if each.valid_until is None or moment < each.valid_until
        ]
        return [
            (place, held.id)
            for place, boxes in enumerate(asked)
            for held in holding
            if _match(side, boxes, held.boxes, covers)
        ]

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
        return [self._notices[number] for number in sorted(self._notices)[:limit]]

    def settle(self, numbers: Iterable[int]) -> None:
        """Forget notices."""
        for number in numbers:
            self._notices.pop(number, None)

    def close(self) -> None:
        """There is nothing to let go of."""

    def _notify(self, side: Side, several: Sequence[Held], pairs: list[Pair], moment: datetime) -> None:
        for place, id in pairs:
            known, found = several[place].id, id
            publication, subscription = (known, found) if side == "publications" else (found, known)
            number = next(self._numbers)
            self._notices[number] = Notice(number, publication, subscription, moment)


def _match(side: Side, asked: Boxes, held: Boxes, covers: Covers) -> bool:
    return matches(asked, held, covers) if side == "subscriptions" else matches(held, asked, covers)
