"""Matching a file of events chunk by chunk, and writing the matches.

Matches are written beside their destination and moved there when all is done, so that a run that fails leaves
no half-written file, and what was there before stays.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Protocol

import pyarrow as pa

from harken.engine import Engine
from harken.errors import EventError, InputFileError
from harken.files.events import EventChunk, EventId
from harken.files.formats import STANDARD_STREAM, Format, OnBad, told, written_format


class MatchWriter(Protocol):
    """Takes matches: what the events of a chunk are called, and the engine's table of matches among them."""

    def write(self, names: Sequence[EventId], matches: pa.Table) -> None:
        """Write the matches of one chunk."""

    def close(self) -> None:
        """Finish the file."""


def match_chunk(
    engine: Engine, chunk: EventChunk, *, at: datetime | None = None, on_bad: OnBad | None = None
) -> Iterator[tuple[list[EventId], pa.Table]]:
    """The matches of a chunk; events that cannot be matched are told to `on_bad`, or the first is raised.

    One bad id costs a few more calls, as the chunk is halved until it stands alone.
    """
    try:
        names, matches = chunk.names(), _matched(engine, chunk, at, on_bad)
    except EventError as error:
        # Without a row it is about all events, and none would be left.
        if on_bad is None or error.row is None:
            raise chunk.blame(error) from error
        if len(chunk) == 1:
            on_bad(chunk.blame(error))
            return
        middle = len(chunk) // 2
        for part in (chunk.part(0, middle), chunk.part(middle, len(chunk))):
            yield from match_chunk(engine, part, at=at, on_bad=on_bad)
    else:
        yield names, matches


def _matched(engine: Engine, chunk: EventChunk, at: datetime | None, on_bad: OnBad | None) -> pa.Table:
    if on_bad is None:
        return engine.match_batch(chunk.events, at=at)
    found = engine.match_batch(chunk.events, at=at, on_error="collect")
    for reject in found.rejects.to_pylist():
        on_bad(chunk.blame(EventError(reject["reason"], attribute=reject["attribute"], row=reject["event"])))
    return found.matches


@contextmanager
def write_matches(path: str) -> Iterator[MatchWriter]:
    """A writer to a file of the kind its ending names, or of JSON Lines to standard output for "-"."""
    kind = written_format(path)
    if path == STANDARD_STREAM and sys.stdout is None:
        raise InputFileError("<stdout>", "standard output is closed")
    place = nullcontext(sys.stdout.buffer) if path == STANDARD_STREAM else _replacing(path)
    with told(path, "written"), place as sink:
        writer = _JsonLinesWriter(sink) if kind is Format.JSONL else _TableWriter(path, kind, sink)
        try:
            yield writer
        finally:
            writer.close()


@contextmanager
def _replacing(path: str) -> Iterator[BinaryIO]:
    """A new file beside the old one, which takes its place only if all goes well."""
    place = Path(os.path.realpath(path))
    if place.is_dir():
        raise IsADirectoryError
    beside = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            yield file
        beside.replace(place)
    finally:
        beside.unlink(missing_ok=True)


def _json(id: EventId) -> str:
    return str(id) if isinstance(id, int) else json.dumps(id, ensure_ascii=False)


class _JsonLinesWriter:
    """`{"event": ..., "subscription": ...}`, one line per match."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink

    def write(self, names: Sequence[EventId], matches: pa.Table) -> None:
        events = [_json(name) for name in names]
        pairs = zip(matches.column("event").to_pylist(), matches.column("subscription").to_pylist(), strict=True)
        lines = [f'{{"event": {events[at]}, "subscription": {_json(id)}}}\n' for at, id in pairs]
        self._sink.write("".join(lines).encode())
        self._sink.flush()  # somebody may be waiting for them

    def close(self) -> None:
        self._sink.flush()


class _TableWriter:
    """CSV or Parquet with the columns `event` and `subscription`, of the types that the first chunk has."""

    def __init__(self, path: str, kind: Format, sink: BinaryIO) -> None:
        self._path = path
        self._kind = kind
        self._sink = sink
        self._writer: pa.csv.CSVWriter | pa.parquet.ParquetWriter | None = None
        self._schema: pa.Schema | None = None

    def write(self, names: Sequence[EventId], matches: pa.Table) -> None:
        events = self._named(names).take(matches.column("event"))
        table = pa.table({"event": events, "subscription": matches.column("subscription")})
        if self._schema is None:
            self._open(table.schema)
        elif table.schema != self._schema:
            raise self._mixed()
        self._writer.write_table(table)  # type: ignore[union-attr]  # opened above

    def close(self) -> None:
        if self._writer is None:
            self._open(pa.schema({"event": pa.int64(), "subscription": pa.string()}))
        self._writer.close()  # type: ignore[union-attr]  # opened above

    def _named(self, names: Sequence[EventId]) -> pa.Array:
        try:
            return pa.array(names, pa.string() if names and isinstance(names[0], str) else pa.int64())
        except pa.ArrowException:
            raise self._mixed() from None

    def _mixed(self) -> InputFileError:
        said = "some events are called by strings and some by integers (an event without id by its row)"
        return InputFileError(self._path, said, suggestion="write .jsonl, which holds both")

    def _open(self, schema: pa.Schema) -> None:
        self._schema = schema
        if self._kind is Format.CSV:
            from pyarrow import csv

            self._writer = csv.CSVWriter(self._sink, schema)
        else:
            from pyarrow import parquet

            self._writer = parquet.ParquetWriter(self._sink, schema)
