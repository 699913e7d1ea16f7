"""A batch of events, from Arrow columns or from dictionaries, as matchers see it.

Nested struct columns become dotted attributes; nulls and missing columns are missing attributes. Only
attributes that some subscription mentions are looked at, and those that a schema declares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from harken.errors import EventError
from harken.locking import SharedLock
from harken.matching.events.columns import Column, Mask, rows_of
from harken.matching.events.mentions import Mentions
from harken.matching.events.tables import ArrowArray, ArrowStream, table_of
from harken.model.events import MAX_NESTING, Event, FlatEvent, flatten, is_changed_meanwhile, is_flat
from harken.model.foreign import Foreign, shown
from harken.model.schema import Schema
from harken.model.values import Type

EventSource: TypeAlias = pa.Table | pa.RecordBatch | ArrowStream | ArrowArray | Iterable[Event]
Numbers: TypeAlias = npt.NDArray[np.int64]
FlatUntil: TypeAlias = Callable[[list[Event], int], int]
"""Says quickly up to which row all events from a row on are flat; the one there may be, too."""


class EventBatch:
    """Events row by row or column by column, all of which can be matched."""

    def __init__(
        self,
        rows: list[FlatEvent] | None,
        columns: dict[str, pa.ChunkedArray],
        count: int,
        numbers: Numbers | None = None,
    ) -> None:
        self.flat_rows = rows
        """The events one by one, if they came so."""
        self.columns = columns
        """The columns of attributes that are asked about, if they came so."""
        self.numbers = numbers
        """The number of each event in what they were made from, if some were left out."""
        self.foreign: Counter[str] = Counter()
        """Foreign values that have been met so far where somebody asks, by the attribute they stand under."""
        self._count = count

    def __len__(self) -> int:
        return self._count

    @classmethod
    def of(
        cls,
        source: EventSource,
        mentioned: Mentions,
        schema: Schema | None = None,
        rejects: list[EventError] | None = None,
        flat_until: FlatUntil | None = None,
    ) -> EventBatch:
        """A batch from an Arrow table, what can be one, or dictionaries.

        An event that cannot be matched joins the rejects; without those, EventError names it and the attribute.
        """
        table = table_of(source, EventError)
        if table is None:
            quickly = flat_until if schema is None else None
            return cls._of_rows(list(source), mentioned, schema, rejects, quickly)  # type: ignore[arg-type]
        columns = leaf_columns(table)
        faults = {} if schema is None else column_faults(columns, schema)
        if faults and rejects is None:
            raise faults[min(faults)]
        wanted = {name: column for name, column in columns.items() if mentioned.concern(name)}
        if not faults:
            return cls(None, wanted, table.num_rows)
        rejects.extend(faults[row] for row in sorted(faults))  # type: ignore[union-attr]  # seen above
        kept = np.delete(np.arange(table.num_rows), list(faults))
        return cls(None, {name: rows_of(column, kept) for name, column in wanted.items()}, len(kept), kept)

    @classmethod
    def _of_rows(
        cls,
        events: list[Event],
        mentioned: Mentions,
        schema: Schema | None,
        rejects: list[EventError] | None,
        flat_until: FlatUntil | None,
    ) -> EventBatch:
        rows, numbers, foreign = list[FlatEvent](), list[int](), Counter[str]()
        row = 0
        while row < len(events):
            if flat_until is not None and (until := flat_until(events, row)) > row:
                rows += events[row:until]  # type: ignore[arg-type]  # which are flat
                numbers += range(row, until)
                row = until
                continue
            try:
                rows.append(checked_event(events[row], mentioned, schema, foreign, row))
                numbers.append(row)
            except EventError as error:
                if rejects is None:
                    raise
                rejects.append(error)
            row += 1
        whole = len(rows) == len(events)
        batch = cls(rows, {}, len(rows), None if whole else np.array(numbers, np.int64))
        batch.foreign = foreign
        return batch

    def numbered(self, rows: Numbers) -> Numbers:
        """Rows of this batch as rows of what it was made from."""
        return rows if self.numbers is None else self.numbers[rows]

    def rows(self) -> Iterator[FlatEvent]:
        """The events one by one."""
        if self.flat_rows is not None:
            yield from self.flat_rows
            return
        known = {name: column for name, column in self.columns.items() if not pa.types.is_null(column.type)}
        if not known:
            yield from ({} for _ in range(self._count))
            return
        lists = [
            [each for chunk in map(Column, column.chunks) for each in chunk.values()] for column in known.values()
        ]
        for name, values in zip(known, lists, strict=True):
            if count := sum(isinstance(value, Foreign) for value in values):
                self.foreign[name] += count
        for row in zip(*lists, strict=True):
            yield {name: value for name, value in zip(known, row, strict=True) if value is not None}


def checked_event(
    event: Event,
    mentioned: Mentions,
    schema: Schema | None,
    count: Counter[str] | None = None,
    row: int | None = None,
) -> FlatEvent:
    """One event flattened and held to the schema; foreign values that somebody asks about are counted."""
    if row is None and type(event) is dict:  # in one step, whatever another thread does to it meanwhile
        event = event.copy()
    try:
        if schema is None and is_flat(event):
            return event  # type: ignore[return-value]  # flat, as just seen
    except RuntimeError as error:
        if not is_changed_meanwhile(error, is_flat):
            raise
    try:
        flat, foreign = flatten(event)
        if schema is not None:
            _hold_to(schema, flat, foreign)
    except EventError as error:
        error.row = row
        raise
    if foreign and count is not None:
        add_up(count, {name: 1 for name in foreign if mentioned.concern(name)})
    return flat


_ADDING = SharedLock()

MOST_NAMES = 1_000
"""Attributes whose foreign values are counted each by itself: names come and go with subscriptions."""

OTHERS = "(all other attributes)"
"""What those past them are counted under."""


def add_up(counts: Counter[str], more: Mapping[str, int]) -> None:
    """Add to counts by name, which several threads may add to."""
    with _ADDING.lock:
        for name, count in more.items():
            counts[name if name in counts or len(counts) < MOST_NAMES else OTHERS] += count


def _hold_to(schema: Schema, flat: FlatEvent, foreign: Mapping[str, Foreign]) -> None:
    inside = {name: value for above, value in foreign.items() for name in schema.below(above) if name not in flat}
    for name, value in {**flat, **inside}.items():
        try:
            schema.check_value(name, value)
        except TypeError as error:
            seen = value.shown if isinstance(value, Foreign) else shown(value)
            raise EventError(str(error), attribute=name, value=seen) from None


# ---------------------------------------------------------------- columns


def leaf_columns(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """The columns of a table by attribute: the fields of structs have dotted names."""
    leaves: dict[str, pa.ChunkedArray] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        for leaf, values in _leaves("", name, column, 1):
            if leaf in leaves:
                raise EventError(f"attribute {leaf!r} occurs twice", attribute=leaf)
            leaves[leaf] = values
    return leaves


def _leaves(prefix: str, own: str, column: pa.ChunkedArray, depth: int) -> Iterator[tuple[str, pa.ChunkedArray]]:
    if depth > MAX_NESTING:
        raise EventError(f"events nest deeper than {MAX_NESTING} levels", attribute=prefix)
    if not own:
        raise EventError("attribute names are non-empty strings, found a column or field named ''")
    name = f"{prefix}.{own}" if prefix else own
    if pa.types.is_run_end_encoded(column.type):
        column = pa.chunked_array([_without_runs(chunk) for chunk in column.chunks], column.type.value_type)
    if not pa.types.is_struct(column.type):
        yield name, column
        return
    for field, values in zip(column.type, column.flatten(), strict=True):
        yield from _leaves(name, field.name, values, depth + 1)


def _without_runs(column: pa.RunEndEncodedArray) -> pa.Array:
    try:
        return pc.run_end_decode(column)
    except pa.ArrowNotImplementedError:  # for views
        return pa.array(column.to_pylist(), column.type.value_type)


def column_faults(columns: Mapping[str, pa.ChunkedArray], schema: Schema) -> dict[int, EventError]:
    """What is wrong, by row, with events that have a value of another type than is declared."""
    faults: dict[int, EventError] = {}
    for name, chunks in columns.items():
        declared, inside = schema.get(name), schema.below(name)
        if (declared is None and not inside) or pa.types.is_null(chunks.type):
            continue
        first = 0
        for column in map(Column, chunks.chunks):
            if declared is not None:
                fits = column.type is declared or (declared is Type.FLOAT and column.type is Type.INT)
                _blame(faults, first, name, declared, column, column.foreign if fits else column.there_mask)
            for below in inside if column.foreign is not None else ():
                _blame(faults, first, below, schema[below], column, _lacking(column, columns.get(below), first))
            first += len(column)
    return faults


def _lacking(above: Column, own: pa.ChunkedArray | None, first: int) -> Mask | None:
    """Where a column is foreign and an attribute below it has no value of its own."""
    if own is None or above.foreign is None:
        return above.foreign
    return above.foreign & ~Column(own.slice(first, len(above))).there_mask


def _blame(
    faults: dict[int, EventError], first: int, name: str, declared: Type, column: Column, rows: Mask | None
) -> None:
    """Note what is wrong with some rows of a column that begins at row `first`."""
    for at in [] if rows is None else np.flatnonzero(rows).tolist():
        found = column.foreign_words if column.foreign is not None and column.foreign[at] else column.said
        said = f"attribute {name!r} is declared {declared.value}, found {found}"
        error = EventError(said, attribute=name, row=first + at, value=shown(column.rendered(at)))
        faults.setdefault(first + at, error)
