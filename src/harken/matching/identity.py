"""Subscription ids and the small integers (slots) that stand for them inside an engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from harken.errors import SubscriptionError, UnknownSubscriptionError
from harken.matching.contract import Slots
from harken.model.subscriptions import SubscriptionId


class Identities:
    """A two-way map between ids and slots. Slots of removed ids are used again."""

    def __init__(self) -> None:
        self._slots: dict[SubscriptionId, int] = {}
        self._ids: list[SubscriptionId | None] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, id: object) -> bool:
        return id in self._slots and not isinstance(id, bool | float)

    def __iter__(self) -> Iterator[SubscriptionId]:
        return iter(self._slots)

    @property
    def arrow_type(self) -> pa.DataType:
        """How Arrow holds the ids: int64 or string (also while there are none)."""
        first = next(iter(self._slots), "")
        return pa.int64() if isinstance(first, int) else pa.string()

    def check_like_others(self, id: SubscriptionId) -> None:
        """Refuse an integer among strings, or a string among integers."""
        if self._slots and isinstance(id, int) is not pa.types.is_integer(self.arrow_type):
            wanted = "integers" if isinstance(id, str) else "strings"
            raise SubscriptionError(f"the id {id!r} is not like the ids of this engine, which are {wanted}")

    def slot(self, id: SubscriptionId) -> int:
        """The slot of an id."""
        if id not in self:
            raise UnknownSubscriptionError(id)
        return self._slots[id]

    def admit(self, ids: Sequence[SubscriptionId]) -> Slots:
        """Give each new id a slot."""
        slots = [self._free.pop() if self._free else self._next() for _ in ids]
        for id, slot in zip(ids, slots, strict=True):
            self._slots[id] = slot
            self._ids[slot] = id
        return np.array(slots, np.int64)

    def dismiss(self, ids: Iterable[SubscriptionId]) -> Slots:
        """Take the slots of ids back."""
        slots = [self._slots.pop(id) for id in ids]
        for slot in slots:
            self._ids[slot] = None
        self._free.extend(slots)
        return np.array(slots, np.int64)

    def ids(self, slots: Slots) -> list[SubscriptionId]:
        """The ids of slots."""
        names = self._ids
        return [names[slot] for slot in slots.tolist()]

    def _next(self) -> int:
        self._ids.append(None)
        return len(self._ids) - 1
