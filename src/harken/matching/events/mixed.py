"""Batches of events from data frames some of whose columns are no columns of Arrow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from harken.errors import EventError
from harken.matching.events.batch import EventBatch, EventSource, FlatUntil, checked_event
from harken.matching.events.mentions import Mentions
from harken.matching.events.tables import MixedTable, Values
from harken.model.events import FlatEvent
from harken.model.schema import Schema


def batch_from(
    source: EventSource | MixedTable,
    mentioned: Mentions,
    schema: Schema | None,
    rejects: list[EventError] | None,
    flat_until: FlatUntil | None = None,
) -> EventBatch:
    """As `EventBatch.of`. If somebody asks about a column of Python's values, events are matched one by one."""
    if not isinstance(source, MixedTable):
        return EventBatch.of(source, mentioned, schema, rejects, flat_until)
    asked = {name: values for name, values in source.others.items() if _is_asked(name, mentioned, schema)}
    if not asked:
        return EventBatch.of(source.table, mentioned, schema, rejects)
    faults: list[EventError] = []
    batch = _joined(EventBatch.of(source.table, mentioned, schema, faults), asked, mentioned, schema, faults)
    faults.sort(key=lambda fault: fault.row or 0)
    if faults and rejects is None:
        raise faults[0]
    if rejects is not None:
        rejects.extend(faults)
    return batch


def _is_asked(name: str, mentioned: Mentions, schema: Schema | None) -> bool:
    return mentioned.concern(name) or (schema is not None and (name in schema or bool(schema.below(name))))


def _joined(
    batch: EventBatch,
    others: Mapping[str, Values],
    mentioned: Mentions,
    schema: Schema | None,
    faults: list[EventError],
) -> EventBatch:
    """Events of columns, each with its values of the others; those that cannot be matched join the faults."""
    rows: list[FlatEvent] = []
    numbers: list[int] = []
    foreign: Counter[str] = Counter()
    for number, known in zip(batch.numbered(np.arange(len(batch))).tolist(), batch.rows(), strict=True):
        event = {name: values[number] for name, values in others.items()}
        try:
            more = checked_event(event, mentioned, schema, foreign, number)
        except EventError as fault:
            faults.append(fault)
            continue
        if twice := next((name for name in more if name in known), None):
            faults.append(EventError(f"attribute {twice!r} occurs twice", attribute=twice, row=number))
            continue
        rows.append({**known, **more})
        numbers.append(number)
    joined = EventBatch(rows, {}, len(rows), np.array(numbers, np.int64))
    joined.foreign = batch.foreign + foreign
    return joined
