"""Event files, chunk by chunk: any attributes; one called `id`, if there is one, names the event in the output."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from harken.errors import EmptyFileError, EventError, InputFileError, ValueOutOfRangeError
from harken.files.blocks import read_all
from harken.files.cells import fault, inferred, quick
from harken.files.declared import Declared
from harken.files.formats import Format, OnBad, format_of, raise_or_tell, shown
from harken.files.json_text import parse_object
from harken.files.lines import read_batches
from harken.files.tables import CsvPart, open_csv, open_parquet
from harken.model.schema import Schema
from harken.model.values import Type, checked_value

EventId: TypeAlias = str | int

CHUNK = 16_384
"""Events matched together: enough to keep kernels busy, few enough for their matches to fit in memory."""


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
    path: str,
    schema: Schema | None = None,
    *,
    on_bad: OnBad | None = None,
    chunk: int = CHUNK,
    format: str | None = None,  # noqa: A002
) -> Generator[EventChunk, None, None]:
    """The events of a file, or of standard input for "-", in chunks.

    A chunk holds what there is: while events arrive slowly, few, and up to `chunk` if they are there already.
    `on_bad` is told of rows that cannot be read as events; without it the first one is an error. `format` says
    what the file holds where its name does not.
    """
    kind = format_of(path, format)
    if kind is Format.PARQUET:
        yield from _read_parquet(path, Declared(schema), on_bad, chunk)
    elif kind is Format.CSV:
        yield from _read_csv(path, schema, on_bad, chunk)
    else:
        yield from _read_objects(path, kind, Declared(schema), on_bad, chunk)


def read_event(text: str, schema: Schema | None = None) -> dict[str, object]:
    """One event: a JSON object, or `@FILE` for a file that holds one (`@-` for standard input)."""
    if not text.startswith("@"):
        return _one_event("the event", text, schema)
    path = text[1:]
    return _one_event(shown(path), read_all(path), schema)


def _one_event(path: str, text: str | bytes, schema: Schema | None) -> dict[str, object]:
    try:
        event = parse_object(text)
        Declared(schema).fill(event)
    except ValueError as error:
        raise InputFileError(path, str(error)) from None
    return event


def _read_objects(
    path: str, kind: Format, declared: Declared, on_bad: OnBad | None, chunk: int
) -> Iterator[EventChunk]:
    events: list[dict[str, object]] = []
    lines: list[int] = []
    for batch in read_batches(path, kind, on_bad):
        for line, event in zip(batch.lines, batch.objects, strict=True):
            try:
                declared.fill(event)
            except EventError as error:
                raise_or_tell(InputFileError(shown(path), str(error), line=line), on_bad)
                continue
            events.append(event)
            lines.append(line)
            if len(events) == chunk:
                yield _chunk_of_objects(path, events, lines)
                events, lines = [], []
        if batch.waits and events:
            yield _chunk_of_objects(path, events, lines)
            events, lines = [], []
    if events:
        yield _chunk_of_objects(path, events, lines)


def _chunk_of_objects(path: str, events: list[dict[str, object]], lines: list[int]) -> EventChunk:
    return EventChunk(path, events, [line - 1 for line in lines], lines)


def _read_csv(path: str, schema: Schema | None, on_bad: OnBad | None, chunk: int) -> Iterator[EventChunk]:
    columns = _CsvColumns(schema)
    declared = Declared(schema)
    try:
        with open_csv(path, on_bad) as file:
            for part in file.parts():
                whole = EventChunk(path, part.table, part.rows, part.lines)
                typed = _without(whole, columns.typed(part), on_bad)
                for start in range(0, len(typed), chunk):
                    yield _declared(typed.part(start, start + chunk), declared, on_bad)
    except EmptyFileError:
        return  # no events


class _CsvColumns:
    """The types of the columns of a CSV file: as declared, or as the first values of each are."""

    def __init__(self, schema: Schema | None) -> None:
        self._schema = schema or Schema({})
        self._inferred: dict[str, Type] = {}

    def typed(self, part: CsvPart) -> tuple[pa.Table, dict[int, EventError]]:
        """The part with values for text, and what is wrong with rows that have a cell of another type."""
        faults: dict[int, EventError] = {}
        table = part.table
        for at, name in enumerate(table.column_names):
            table = table.set_column(at, name, self._column(name, table.column(at), faults))
        return table, faults

    def _column(self, name: str, column: pa.ChunkedArray, faults: dict[int, EventError]) -> pa.ChunkedArray:
        kind = self._schema.get(name) or self._inferred.get(name)
        if kind is None:
            kind = inferred(column)
            if kind is None:
                return column
            self._inferred[name] = kind
        made = quick(column, kind)
        if name in self._schema:
            if kind in (Type.DATE, Type.TIMESTAMP) and made is None:
                return column  # declared ones are read by the rules of the language, which know more forms
            if made is not None and pa.types.is_decimal(made.type):
                made = None
        elif kind is Type.INT and name == "id":
            made = column if made is not None and pa.types.is_decimal(made.type) else made
        elif kind is Type.INT and made is None:
            kind = Type.FLOAT  # a fraction among whole numbers is a number too
            made = quick(column, kind)
        return made if made is not None else _sorted_out(name, column, kind, faults, name in self._schema)


def _sorted_out(
    name: str, column: pa.ChunkedArray, kind: Type, faults: dict[int, EventError], declared: bool
) -> pa.ChunkedArray:
    """The column without the cells that are of another type, which become faults."""
    hint = None if declared else "its first values are of another type; declare it in a schema"
    kept = column.to_pylist()
    for row, text in enumerate(kept):
        said = None if text is None else fault(text, kind)
        if said is not None:
            kept[row] = None
            error = EventError(f"attribute {name!r}: {said}", attribute=name, suggestion=hint)
            faults.setdefault(row, error)
    made = quick(pa.chunked_array([pa.array(kept, pa.string())]), kind)
    assert made is not None, "all that was in the way has been taken out"
    return made


def _read_parquet(path: str, declared: Declared, on_bad: OnBad | None, chunk: int) -> Iterator[EventChunk]:
    first = 0
    with open_parquet(path) as file:
        for batch in file.iter_batches(batch_size=chunk):
            table = pa.Table.from_batches([batch])
            yield _declared(EventChunk(path, table, range(first, first + len(table))), declared, on_bad)
            first += len(table)


def _declared(chunk: EventChunk, declared: Declared, on_bad: OnBad | None) -> EventChunk:
    assert isinstance(chunk.events, pa.Table), "only tables have columns"
    return _without(chunk, declared.filled(chunk.events), on_bad)


def _without(chunk: EventChunk, typed: tuple[pa.Table, dict[int, EventError]], on_bad: OnBad | None) -> EventChunk:
    """The chunk with another table, without the rows that have faults, which are told."""
    table, faults = typed
    for row in sorted(faults):
        raise_or_tell(_complaint(chunk.path, chunk.rows, chunk.lines, row, faults[row]), on_bad)
    if not faults:
        return replace(chunk, events=table)
    kept = [row for row in range(len(table)) if row not in faults]
    lines = None if chunk.lines is None else [chunk.lines[row] for row in kept]
    return replace(chunk, events=table.take(kept), rows=[chunk.rows[row] for row in kept], lines=lines)


def _complaint(
    path: str, rows: Sequence[int], lines: Sequence[int] | None, at: int, error: EventError
) -> InputFileError:
    said = error.message if error.suggestion is None else f"{error.message}; {error.suggestion}"
    if lines is not None:
        return InputFileError(shown(path), said, line=lines[at])
    return InputFileError(shown(path), f"row {rows[at]}: {said}")
