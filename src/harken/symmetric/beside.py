"""A classical engine beside a store in memory: it finds quickest what matches events that come as columns.

It is made of what the store holds when such events first come, so that subscriptions are held twice only by those
who ask in both ways. From then on the two change together or not at all: if a change of both fails halfway, the
engine is given up, and made anew when it is next asked.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from harken.engine import Engine
from harken.errors import EngineBusyError
from harken.model.limits import Limits
from harken.model.schema import Schema
from harken.symmetric.contract import Held, Store
from harken.symmetric.guarding import Result
from harken.written import limits_of_kept

if TYPE_CHECKING:
    from harken.symmetric.memory import MemoryStore


class EngineBeside:
    """Follows the subscriptions of a store. As safe with threads and interrupts as the store is.

    It takes in only what the store has taken in within the limits, though perhaps read from a longer text.
    """

    def __init__(self, store: MemoryStore, schema: Schema | None, limits: Limits) -> None:
        self._store = store
        self._schema = schema
        self._limits = limits_of_kept(limits)
        self._engine: Engine | None = None

    def together(self, change: Callable[[Store], Result], follow: Callable[[Engine], object]) -> Result:
        """Change the store, and the engine likewise if there is one."""

        def work(store: MemoryStore) -> Result:
            result = change(store)
            if self._engine is not None:
                store.journal.note(self._give_up)
                follow(self._engine)
            return result

        return self._store.together(work)

    def match_batch(self, events: pa.Table, at: datetime | None) -> pa.Table | None:
        """All matches of events that come as columns; None if there is no engine, nor can one be made now."""

        def ask() -> pa.Table | None:
            self._store.check_open()
            return None if self._engine is None else self._engine.match_batch(events, at=at)

        while (found := self._store.look(ask)) is None:
            try:
                self._store.together(self._make)
            except EngineBusyError:  # a signal handler in the middle of another call may look, but change nothing
                return None
        return found

    def _give_up(self) -> None:
        self._engine = None

    def _make(self, store: MemoryStore) -> None:
        if self._engine is not None:  # another thread was quicker
            return
        engine = Engine("dynamic", self._schema, limits=self._limits, keep_text=False)
        singly, tables = store.contents("subscriptions")
        for table in tables:
            engine.subscribe_many(table)
        engine.subscribe_many(map(_row, singly))
        self._engine = engine


def _row(held: Held) -> dict[str, object]:
    times = {"valid_from": held.valid_from, "valid_until": held.valid_until}
    return {"id": held.id, "expression": held.text, **times}
