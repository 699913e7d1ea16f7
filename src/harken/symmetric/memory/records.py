"""What is known of each constraint besides its clauses: its id, when it holds, and what it was made from.

Inside, a constraint is a **slot**, a small integer. Constraints that came singly are kept as they came; of those
that came in a table, the table is kept, and a row becomes a `Held` again only when somebody asks.

An engine's `matching.identities` map ids to slots too, but not as is needed here: publications may have integers
and strings as ids at once, a slot stays in use until its clauses are gone, and the journal takes back each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.language import to_text
from harken.matching.growing import GrowingArray
from harken.model import capacity
from harken.model.schema import Schema
from harken.model.subscriptions import SubscriptionId
from harken.normal.compiled import MOMENT
from harken.normal.decompiled import expressions_of
from harken.normal.operators import microseconds, moment_from
from harken.symmetric.contract import Held, Side, check_kind, check_new, unknown
from harken.symmetric.guarding import Journal
from harken.symmetric.semantics import boxes_of

Slots = npt.NDArray[np.int64]

ALWAYS = 2**63 - 1
"""In place of the microsecond at which something ends: it does not."""

EVER = -(2**63)
"""In place of the microsecond at which something begins: it always did."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """A table that was loaded, or what is left of it."""

    table: pa.Table
    schema: Schema | None
    left: int


class Records:
    """Ids, slots and origins of the constraints of one side. Threads may look while none changes."""

    def __init__(self, side: Side, journal: Journal) -> None:
        self._side: Side = side
        self._journal = journal
        self.slot_of: dict[SubscriptionId, int] = {}
        self.ids: list[SubscriptionId] = []
        """By slot; what stands at slots that are not in use means nothing."""
        self.ends = GrowingArray(np.int64, fill=ALWAYS)
        """By slot: the first microsecond at which it holds no more."""
        self.begins = GrowingArray(np.int64, fill=EVER)
        """By slot: the first microsecond at which it holds."""
        self.bounded = 0
        """How many constraints have an end, or a beginning."""
        self._first_id: SubscriptionId | None = None
        self._held: dict[int, Held] = {}
        self._batches: dict[int, _Batch] = {}
        self._batch = GrowingArray(np.int32)
        self._row = GrowingArray(np.int32)
        self._next_batch = 0
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self.slot_of)

    def check_coming(
        self, ids: Sequence[SubscriptionId], *, replace: bool = False, are_alike: bool = False
    ) -> None:
        """An error if constraints may not come under these ids, which may be known to be of one kind, or cannot.

        SubscriptionError if they are not of the kind of those there are; DuplicateSubscriptionError if one is
        taken or comes twice, and may not replace what has it; CapacityError if there are no slots for so many
        more, or no number for one more table.
        """
        check_kind(self._side, self._first_id, ids[:1] if are_alike else ids)
        if not replace:
            check_new(self._side, ids, self.slot_of)
        capacity.check("constraints of one side", len(self.ids) - len(self._free) + len(ids), capacity.CONSTRAINTS)
        capacity.check("tables loaded", self._next_batch + 1, capacity.LOADS)

    def slots_of(self, ids: Iterable[SubscriptionId]) -> list[int]:
        """The slots of ids, each once; UnknownSubscriptionError if one is not there."""
        slots: dict[int, None] = {}
        for id in ids:
            slot = self.slot_of.get(id)
            if slot is None:
                raise unknown(self._side, id)
            slots[slot] = None
        return list(slots)

    def add(self, held: Held) -> int:
        """Keep one constraint under a new id; its slot."""
        (slot,) = self._admit([held.id])
        self._journal.note(self._held.pop, slot, None)
        self._held[slot] = held
        if held.valid_from is not None or held.valid_until is not None:
            ends = ALWAYS if held.valid_until is None else microseconds(held.valid_until)
            begins = EVER if held.valid_from is None else microseconds(held.valid_from)
            self._bound(np.array([slot]), np.array([begins]), np.array([ends]))
        return slot

    def add_table(self, ids: list[SubscriptionId], table: pa.Table, schema: Schema | None) -> Slots:
        """Keep the rows of a compiled table under new ids; their slots."""
        slots = np.array(self._admit(ids), np.int64)
        self._journal.note(self._batches.pop, self._next_batch, None)
        self._batches[self._next_batch] = _Batch(table.select(["clauses"]), schema, len(ids))
        # Of slots that are not in use, these mean nothing.
        self._batch.values[slots], self._row.values[slots] = self._next_batch, np.arange(len(ids))
        self._next_batch += 1
        begins = table.column("valid_from").cast(pa.int64()).fill_null(EVER).to_numpy()
        ends = table.column("valid_until").cast(pa.int64()).fill_null(ALWAYS).to_numpy()
        self._bound(slots, begins, ends)
        return slots

    def forget(self, slots: list[int]) -> None:
        """Ids and origins of constraints. The slots are in use until they are released."""
        ids = [self.ids[slot] for slot in slots]
        self._journal.note(self._remember, slots, ids)
        for slot, id in zip(slots, ids, strict=True):
            del self.slot_of[id]
            self.ids[slot] = ""
        at = np.array(slots, np.int64)
        self._bound(at, np.full(len(at), EVER), np.full(len(at), ALWAYS))
        held = {slot: self._held[slot] for slot in slots if slot in self._held}
        self._journal.note(self._held.update, held)
        for slot in held:
            del self._held[slot]
        loaded = [slot for slot in slots if slot not in held]
        if loaded:
            self._forget_rows(np.array(loaded, np.int64))

    def holding(self, slots: Slots, now: int) -> npt.NDArray[np.bool_]:
        """Which slots hold at a microsecond."""
        held: npt.NDArray[np.bool_] = (self.begins.values[slots] <= now) & (self.ends.values[slots] > now)
        return held

    def release(self, slots: Iterable[int]) -> None:
        """Let slots be used again, of which nothing is left."""
        self._journal.note(self._free.__delitem__, slice(len(self._free), None))
        self._free.extend(slots)

    def held_at(self, slot: int) -> Held:
        """What is kept at a slot."""
        held = self._held.get(slot)
        if held is not None:
            return held
        batch, row = self._batches[int(self._batch.values[slot])], int(self._row.values[slot])
        (expression,) = expressions_of(batch.table.slice(row, 1))
        begins, ends = int(self.begins.values[slot]), int(self.ends.values[slot])
        return Held(
            self.ids[slot],
            boxes_of(expression, batch.schema),
            to_text(expression),
            None if ends == ALWAYS else moment_from(ends),
            None if begins == EVER else moment_from(begins),
        )

    def singly(self) -> list[Held]:
        """What came by itself."""
        return list(self._held.values())

    def tables(self) -> Iterator[pa.Table]:
        """What came in tables, in the compiled form again, as far as it is still there."""
        slots = np.array([slot for slot in self.slot_of.values() if slot not in self._held], np.int64)
        slots = slots[np.argsort(self._batch.values[slots], kind="stable")]
        numbers, first = np.unique(self._batch.values[slots], return_index=True)
        for number, of_one in zip(numbers.tolist(), np.split(slots, first[1:]), strict=False):
            begins, ends = self.begins.values[of_one], self.ends.values[of_one]
            yield (
                self._batches[number]
                .table.take(pa.array(self._row.values[of_one]))
                .add_column(0, "id", pa.array([self.ids[slot] for slot in of_one.tolist()]))
                .append_column("valid_from", pa.array(begins, mask=begins == EVER).cast(MOMENT))
                .append_column("valid_until", pa.array(ends, mask=ends == ALWAYS).cast(MOMENT))
            )

    def _admit(self, ids: list[SubscriptionId]) -> list[int]:
        """Slots for new ids, used ones first."""
        if self._first_id is None and ids:
            self._journal.note(setattr, self, "_first_id", None)
            self._first_id = ids[0]
        reused = self._free[max(0, len(self._free) - len(ids)) :]
        used_again = slice(len(self._free) - len(reused), None)
        slots = [*reused, *range(len(self.ids), len(self.ids) + len(ids) - len(reused))]
        self._journal.note(self._free.__setitem__, used_again, reused)
        self._journal.note(self.ids.__delitem__, slice(len(self.ids), None))
        self._journal.note(self._dismiss, ids)
        del self._free[used_again]
        self.ids += ids[len(reused) :]
        for slot, id in zip(reused, ids, strict=False):
            self.ids[slot] = id
        for array in (self.begins, self.ends, self._batch, self._row):
            array.grow_to(len(self.ids))
        self.slot_of.update(zip(ids, slots, strict=True))
        return slots

    def _bound(self, slots: Slots, begins: Slots, ends: Slots) -> None:
        """Say when slots hold."""
        before = self.begins.values[slots], self.ends.values[slots]
        self._journal.note(self._set_bounds, slots, *before, self.bounded)
        changed = [int(((first != EVER) | (last != ALWAYS)).sum()) for first, last in (before, (begins, ends))]
        self._set_bounds(slots, begins, ends, self.bounded - changed[0] + changed[1])

    def _set_bounds(self, slots: Slots, begins: Slots, ends: Slots, bounded: int) -> None:
        self.begins.values[slots], self.ends.values[slots] = begins, ends
        self.bounded = bounded

    def _forget_rows(self, slots: Slots) -> None:
        """Rows of tables; a table of which less than half is left becomes smaller."""
        numbers, counts = np.unique(self._batch.values[slots], return_counts=True)
        self._journal.note_values(self._batch, slots)
        self._batch.values[slots] = -1
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            batch = self._batches[number]
            self._journal.note(self._batches.__setitem__, number, batch)
            left = batch.left - count
            if not left:
                del self._batches[number]
            elif 2 * left < batch.table.num_rows:
                staying = np.flatnonzero(self._batch.values == number)
                self._journal.note_values(self._row, staying)
                table = batch.table.take(pa.array(self._row.values[staying]))
                self._row.values[staying] = np.arange(len(staying))
                self._batches[number] = replace(batch, table=table, left=left)
            else:
                self._batches[number] = replace(batch, left=left)

    # ------------------------------------------------------------ taking back

    def _remember(self, slots: list[int], ids: list[SubscriptionId]) -> None:
        """Undo that ids were forgotten."""
        for slot, id in zip(slots, ids, strict=True):
            self.slot_of[id] = slot
            self.ids[slot] = id

    def _dismiss(self, ids: list[SubscriptionId]) -> None:
        """Undo that ids were admitted."""
        for id in ids:
            self.slot_of.pop(id, None)
