"""The store in memory: both sides in flat arrays, changed at any time, matched by kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import count, islice

import pyarrow as pa

from harken.model.schema import Schema
from harken.model.subscriptions import SubscriptionId, moment_of
from harken.normal.compiled import conform
from harken.symmetric.contract import OTHER, Held, Notice, Pair, Side
from harken.symmetric.memory.holdings import Holdings, Matches
from harken.symmetric.semantics import Boxes, Covers, matches

_DIRECTIONS: dict[tuple[Side, Covers], tuple[bool, Matches]] = {
    ("subscriptions", "publication"): (True, lambda asked, held: matches(asked, held, "publication")),
    ("subscriptions", "subscription"): (False, lambda asked, held: matches(asked, held, "subscription")),
    ("publications", "publication"): (False, lambda asked, held: matches(held, asked, "publication")),
    ("publications", "subscription"): (True, lambda asked, held: matches(held, asked, "subscription")),
}
"""For each side that is asked and each direction: whether what is asked decides which attributes count, and what
tells whether an asked and a held constraint match."""


class MemoryStore:
    """Holds constraints in memory, each side indexed.

    A match costs a few microseconds, and more only for what comes near; a change costs some ten microseconds on
    average, though one in many takes longer, because segments are joined. Any number of threads may match and look
    at the same time, as long as none changes anything.

    `waiting` is how many constraints are compared one by one before they are indexed; `growth` how many times as
    large as what is new a segment may be to be joined with it; `smallest_tree` how many clauses have to have the
    same attributes to be indexed by all of them at once.
    """

    def __init__(self, *, waiting: int = 32, growth: int = 4, smallest_tree: int = 64) -> None:
        self._sides: dict[Side, Holdings] = {
            side: Holdings(waiting=waiting, growth=growth, smallest_tree=smallest_tree) for side in OTHER
        }
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
        """Keep constraints, and say what each matches on the other side; with `notify`, note it too."""
        moment = moment_of(at)
        if not replace:
            self._sides[side].records.check_new([each.id for each in several])
        self._sides[side].records.check_room(len(several))
        pairs = self.match(OTHER[side], [each.boxes for each in several], covers, at=moment)
        self._sides[side].put({each.id: each for each in several}.values())
        if notify:
            self._notify(side, several, pairs, moment)
        return pairs

    def load(self, side: Side, table: pa.Table, schema: Schema | None) -> None:
        """Keep many constraints, given in the compiled form, without matching. A million takes a few seconds.

        The table is kept too, as what `get` reads from: its memory is shared, not copied.
        """
        table = conform(table)
        ids = table.column("id").to_pylist()
        self._sides[side].records.check_new(ids)
        self._sides[side].records.check_room(len(ids))
        self._sides[side].load(ids, table, schema)

    def remove(self, side: Side, ids: Iterable[SubscriptionId]) -> None:
        """Forget constraints."""
        self._sides[side].remove(ids)

    def match(
        self, side: Side, asked: Sequence[Boxes], covers: Covers, *, at: datetime | None = None
    ) -> list[Pair]:
        """What is held on this side and matches constraints of the other side, which are not kept."""
        decides, judge = _DIRECTIONS[side, covers]
        return self._sides[side].match(asked, decides, judge, None if at is None else moment_of(at))

    def get(self, side: Side, id: SubscriptionId) -> Held | None:
        """What is kept under an id. What came in a table is put together anew, which takes a moment."""
        records = self._sides[side].records
        slot = records.slot_of.get(id)
        return None if slot is None else records.held_at(slot)

    def ids(self, side: Side) -> list[SubscriptionId]:
        """All ids of one side."""
        return list(self._sides[side].records.slot_of)

    def count(self, side: Side) -> int:
        """How many constraints one side has."""
        return len(self._sides[side].records)

    def notices(self, limit: int) -> list[Notice]:
        """The oldest notices that nobody has settled, by number."""
        return list(islice(self._notices.values(), limit))

    def settle(self, numbers: Iterable[int]) -> None:
        """Forget notices that were delivered."""
        for number in numbers:
            self._notices.pop(number, None)

    def close(self) -> None:
        """There is nothing to let go of."""

    def _notify(self, side: Side, several: Sequence[Held], pairs: list[Pair], moment: datetime) -> None:
        for place, id in pairs:
            known = several[place].id
            publication, subscription = (known, id) if side == "publications" else (id, known)
            number = next(self._numbers)
            self._notices[number] = Notice(number, publication, subscription, moment)
