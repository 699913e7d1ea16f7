"""What is known of each constraint besides its clauses: its id, its end, and what it was made from.

Inside, a constraint is a **slot**, a small integer. Constraints that came singly are kept as they came; of those
that came in a table, the table is kept, and a row becomes a `Held` again only when somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.errors import DuplicateSubscriptionError, UnknownSubscriptionError
from harken.language import to_text
from harken.matching.growing import GrowingArray
from harken.model import capacity
from harken.model.schema import Schema
from harken.model.subscriptions import SubscriptionId
from harken.normal.decompiled import expressions_of
from harken.normal.operators import EPOCH, microseconds
from harken.symmetric.contract import Held
from harken.symmetric.semantics import Boxes, boxes_of

Slots = npt.NDArray[np.int64]

ALWAYS = 2**63 - 1
"""In place of the microsecond at which something ends: it does not."""


@dataclass(slots=True)
class _Batch:
    """A table that was loaded, or what is left of it."""

    table: pa.Table
    schema: Schema | None
    left: int


class Records:
    """Ids, slots and origins of the constraints of one side. Threads may look while none changes."""

    def __init__(self) -> None:
        self.slot_of: dict[SubscriptionId, int] = {}
        self.ids: list[SubscriptionId] = []
        """By slot; what stands at slots that are not in use means nothing."""
        self.ends = GrowingArray(np.int64, fill=ALWAYS)
        """By slot: the first microsecond at which it holds no more."""
        self.ending = 0
        """How many constraints have an end."""
        self._held: dict[int, Held] = {}
        self._batches: dict[int, _Batch] = {}
        self._batch = GrowingArray(np.int32)
        self._row = GrowingArray(np.int32)
        self._next_batch = 0
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self.slot_of)

    def check_room(self, more: int) -> None:
        """CapacityError if there are no slots for so many more constraints, or no number for one more table."""
        capacity.check("constraints of one side", len(self.ids) - len(self._free) + more, capacity.CONSTRAINTS)
        capacity.check("tables loaded", self._next_batch + 1, capacity.LOADS)

    def check_new(self, ids: Sequence[SubscriptionId]) -> None:
        """DuplicateSubscriptionError if an id is taken or comes twice."""
        if len(set(ids)) == len(ids) and self.slot_of.keys().isdisjoint(ids):
            return
        seen: set[SubscriptionId] = set()
        for id in ids:
            if id in self.slot_of or id in seen:
                raise DuplicateSubscriptionError(id)
            seen.add(id)

    def slots_of(self, ids: Iterable[SubscriptionId]) -> list[int]:
        """The slots of ids, each once; UnknownSubscriptionError if one is not there."""
        slots: dict[int, None] = {}
        for id in ids:
            slot = self.slot_of.get(id)
            if slot is None:
                raise UnknownSubscriptionError(id)
            slots[slot] = None
        return list(slots)

    def add(self, held: Held) -> int:
        """Keep one constraint under a new id; its slot."""
        (slot,) = self._admit([held.id])
        self._held[slot] = held
        if held.valid_until is not None:
            self.ends.values[slot] = microseconds(held.valid_until)
            self.ending += 1
        return slot

    def add_table(self, ids: list[SubscriptionId], table: pa.Table, schema: Schema | None) -> Slots:
        """Keep the rows of a compiled table under new ids; their slots."""
        slots = np.array(self._admit(ids), np.int64)
        self._batches[self._next_batch] = _Batch(table.select(["clauses"]), schema, len(ids))
        self._batch.values[slots], self._row.values[slots] = self._next_batch, np.arange(len(ids))
        self._next_batch += 1
        ends = table.column("valid_until").cast(pa.int64()).fill_null(ALWAYS).to_numpy()
        self.ends.values[slots] = ends
        self.ending += int((ends != ALWAYS).sum())
        return slots

    def forget(self, slots: list[int]) -> None:
        """Ids and origins of constraints. The slots are in use until they are released."""
        for slot in slots:
            del self.slot_of[self.ids[slot]]
            self.ids[slot] = ""
        at = np.array(slots, np.int64)
        self.ending -= int((self.ends.values[at] != ALWAYS).sum())
        self.ends.values[at] = ALWAYS
        loaded = [slot for slot in slots if self._held.pop(slot, None) is None]
        if loaded:
            self._forget_rows(np.array(loaded, np.int64))

    def release(self, slots: Iterable[int]) -> None:
        """Let slots be used again, of which nothing is left."""
        self._free.extend(slots)

    def held_at(self, slot: int) -> Held:
        """What is kept at a slot."""
        held = self._held.get(slot)
        if held is not None:
            return held
        batch, row = self._batches[int(self._batch.values[slot])], int(self._row.values[slot])
        (expression,) = expressions_of(batch.table.slice(row, 1))
        end = int(self.ends.values[slot])
        until = None if end == ALWAYS else EPOCH + timedelta(microseconds=end)
        return Held(self.ids[slot], boxes_of(expression, batch.schema), to_text(expression), until)

    def boxes_at(self, slot: int) -> Boxes:
        """The boxes of what is kept at a slot."""
        return self.held_at(slot).boxes

    def _admit(self, ids: list[SubscriptionId]) -> list[int]:
        """Slots for new ids, used ones first."""
        reused = min(len(ids), len(self._free))
        slots = self._free[len(self._free) - reused :]
        del self._free[len(self._free) - reused :]
        for slot, id in zip(slots, ids, strict=False):
            self.ids[slot] = id
        slots += range(len(self.ids), len(self.ids) + len(ids) - reused)
        self.ids += ids[reused:]
        self.slot_of.update(zip(ids, slots, strict=True))
        for array in (self.ends, self._batch, self._row):
            array.grow_to(len(self.ids))
        return slots

    def _forget_rows(self, slots: Slots) -> None:
        """Rows of tables; a table of which less than half is left becomes smaller."""
        numbers, counts = np.unique(self._batch.values[slots], return_counts=True)
        self._batch.values[slots] = -1
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            batch = self._batches[number]
            batch.left -= count
            if not batch.left:
                del self._batches[number]
            elif 2 * batch.left < batch.table.num_rows:
                staying = np.flatnonzero(self._batch.values == number)
                batch.table = batch.table.take(pa.array(self._row.values[staying]))
                self._row.values[staying] = np.arange(len(staying))
