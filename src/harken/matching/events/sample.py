"""Some events that came, kept for a while: copies, which hold on to nothing else."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pyarrow as pa

from harken.matching.events.batch import EventBatch
from harken.matching.events.columns import rows_of
from harken.model.events import FlatEvent

ENOUGH, MOST = 32, 256
"""Events that say enough, and those that are kept."""

FEW = 32
"""Fewer events than this of a table are kept row by row: each batch costs something by itself."""


class EventSample:
    """Any thread may add to it: a few too many do no harm."""

    def __init__(self) -> None:
        self._rows: list[FlatEvent] = []
        self._tables: list[EventBatch] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, events: EventBatch) -> None:
        """Keep some of these, from all over the batch, if there are not enough."""
        count = min(len(events), MOST - self._count)
        if count <= 0:
            return
        self._count += count
        rows = np.linspace(0, len(events) - 1, count).astype(np.int64)
        if events.flat_rows is not None:
            self._rows += [dict(events.flat_rows[row]) for row in rows.tolist()]
            return
        kept = EventBatch(None, {name: _copied(each, rows) for name, each in events.columns.items()}, count)
        if count < FEW:
            self._rows += kept.rows()
        else:
            self._tables.append(kept)

    def batches(self) -> list[EventBatch]:
        """All of them, in few batches."""
        rows = list(self._rows)
        return [*self._tables, *([EventBatch(rows, {}, len(rows))] if rows else [])]


def _copied(column: pa.ChunkedArray, rows: np.ndarray) -> pa.ChunkedArray:
    """Some rows of a column, which hold on to no dictionary or buffer of all of it."""
    kept = rows_of(column, rows)
    with suppress(pa.ArrowNotImplementedError):  # for views of bytes, and the like: then it is held for a while
        if pa.types.is_dictionary(kept.type):
            return kept.cast(kept.type.value_type)
        if pa.types.is_string_view(kept.type):
            return kept.cast(pa.large_string())
    return kept
