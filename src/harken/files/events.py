"""Event files, chunk by chunk: any attributes; one called `id`, if there is one, names the event in the output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from harken.errors import EmptyFileError, EventError, InputFileError, ValueOutOfRangeError
from harken.files.declared import Declared
from harken.files.formats import Format, OnBad, format_of, opened, raise_or_tell, shown
from harken.files.lines import parse_object, read_objects
from harken.files.tables import open_csv, open_parquet
from harken.model.schema import Schema
from harken.model.values import Type, checked_value

EventId: TypeAlias = str | int

CHUNK = 16_384
"""Events matched together: enough to keep kernels busy, few enough for their matches to fit in memory."""

_CSV_TYPES = {
    Type.INT: pa.int64(),
    Type.FLOAT: pa.float64(),
    Type.STRING: pa.string(),
    Type.BOOL: pa.bool_(),
    # Read as text and converted by the rules of the language, of which Arrow knows only some.
    Type.DATE: pa.string(),
    Type.TIMESTAMP: pa.string(),
    Type.POINT: pa.string(),
    Type.BOX: pa.string(),
}


@dataclass(frozen=True, slots=True)
class EventChunk:
    """Some events of a file: a table or dictionaries, the row (from 0) of each, and its line if it has one."""

    path: str
    events: pa.Table | list[dict[str, object]]
    rows: Sequence[int]
    lines: Sequence[int] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, start: int, stop: int) -> EventChunk:
        """The events from `start` up to `stop`."""
        events = self.events
        some = events.slice(start, stop - start) if isinstance(events, pa.Table) else events[start:stop]
        lines = None if self.lines is None else self.lines[start:stop]
        return replace(self, events=some, rows=self.rows[start:stop], lines=lines)

    def names(self) -> list[EventId]:
        """What the output calls each event: its id, or its row where it has none. EventError for a bad id."""
        return [self._name(at, id) for at, id in enumerate(self._ids())]

    def _name(self, at: int, id: object) -> EventId:
        if id is None:
            return self.rows[at]
        try:
            if isinstance(id, str | int) and not isinstance(id, bool):
                return checked_value(id)  # type: ignore[return-value]  # strings and ints come back as such
        except ValueOutOfRangeError as error:
            raise EventError(f"bad event id: {error}", attribute="id", row=at) from None
        said = f"the id of an event is a string or an integer, found {type(id).__name__}"
        raise EventError(said, attribute="id", row=at)

    def _ids(self) -> Sequence[object]:
        if isinstance(self.events, pa.Table):
            has_id = "id" in self.events.column_names
            return self.events.column("id").to_pylist() if has_id else [None] * len(self)
        return [event.get("id") for event in self.events]

    def blame(self, error: EventError) -> InputFileError:
        """The error about an event of this chunk, in terms of the file."""
        if error.row is None:
            return InputFileError(shown(self.path), str(error))
        return _complaint(self.path, self.rows, self.lines, error.row, error)


def read_events(
    path: str, schema: Schema | None = None, *, on_bad: OnBad | None = None, chunk: int = CHUNK
) -> Iterator[EventChunk]:
    """The events of a file, or of standard input for "-", in chunks.

    `on_bad` is told of rows that cannot be read as events; without it the first one is an error.
    """
    kind = format_of(path)
    declared = Declared(schema)
    if kind is Format.JSONL:
        yield from _read_lines(path, declared, on_bad, chunk)
        return
    batches = _csv_batches(path, schema) if kind is Format.CSV else _parquet_batches(path, chunk)
    first = 0
    for batch in batches:
        table = pa.Table.from_batches([batch])
        for start in range(0, len(table), chunk):
            yield _typed(path, table.slice(start, chunk), declared, first + start, on_bad)
        first += len(table)


def read_event(text: str, schema: Schema | None = None) -> dict[str, object]:
    """One event: a JSON object, or `@FILE` for a file that holds one (`@-` for standard input)."""
    if not text.startswith("@"):
        return _one_event("the event", text, schema)
    path = text[1:]
    with opened(path) as file:
        return _one_event(shown(path), file.read(), schema)


def _one_event(path: str, text: str | bytes, schema: Schema | None) -> dict[str, object]:
    try:
        event = parse_object(text)
        Declared(schema).fill(event)
    except ValueError as error:
        raise InputFileError(path, str(error)) from None
    return event


def _read_lines(path: str, declared: Declared, on_bad: OnBad | None, chunk: int) -> Iterator[EventChunk]:
    events: list[dict[str, object]] = []
    lines: list[int] = []
    for line, event in read_objects(path, on_bad):
        try:
            declared.fill(event)
        except EventError as error:
            raise_or_tell(InputFileError(shown(path), str(error), line=line), on_bad)
            continue
        events.append(event)
        lines.append(line)
        if len(events) == chunk:
            yield _chunk_of_lines(path, events, lines)
            events, lines = [], []
    if events:
        yield _chunk_of_lines(path, events, lines)


def _chunk_of_lines(path: str, events: list[dict[str, object]], lines: list[int]) -> EventChunk:
    return EventChunk(path, events, [line - 1 for line in lines], lines)


def _csv_batches(path: str, schema: Schema | None) -> Iterator[pa.RecordBatch]:
    types = {name: _CSV_TYPES[declared] for name, declared in (schema or {}).items()}
    try:
        with open_csv(path, types) as reader:
            for batch in reader:
                _check_text(path, batch.schema)
                yield batch
    except EmptyFileError:
        return  # no events


def _parquet_batches(path: str, chunk: int) -> Iterator[pa.RecordBatch]:
    with open_parquet(path) as file:
        yield from file.iter_batches(batch_size=chunk)


def _check_text(path: str, schema: pa.Schema) -> None:
    """Arrow takes a CSV column that is not UTF-8 for bytes."""
    for field in schema:
        if pa.types.is_binary(field.type):
            raise InputFileError(path, f"column {field.name!r} is not UTF-8")


def _typed(path: str, table: pa.Table, declared: Declared, first: int, on_bad: OnBad | None) -> EventChunk:
    table, faults = declared.filled(table)
    rows = range(first, first + len(table))
    for row, fault in faults.items():
        raise_or_tell(_complaint(path, rows, None, row, fault), on_bad)
    if not faults:
        return EventChunk(path, table, rows)
    kept = [row for row in range(len(table)) if row not in faults]
    return EventChunk(path, table.take(kept), [rows[row] for row in kept])


def _complaint(
    path: str, rows: Sequence[int], lines: Sequence[int] | None, at: int, error: EventError
) -> InputFileError:
    said = error.message if error.suggestion is None else f"{error.message}; {error.suggestion}"
    if lines is not None:
        return InputFileError(shown(path), said, line=lines[at])
    return InputFileError(shown(path), f"row {rows[at]}: {said}")
