"""CSV and Parquet: tables, one at a time, with Arrow's errors told in terms of the file.

CSV follows RFC 4180 in UTF-8; an empty cell is missing, `""` is the empty string. Arrow takes records apart, of
which `records` has found the ends; it is never left to read by itself (see `blocks`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from harken.errors import EmptyFileError, InputFileError
from harken.files.blocks import read_all, read_blocks
from harken.files.formats import STANDARD_STREAM, OnBad, compression_of, raise_or_tell, shown, told
from harken.files.records import RecordLines, Records, read_records

_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True, slots=True)
class CsvPart:
    """Some rows of a CSV file: columns of text, and the place of each row in the file, from 0, with its line."""

    table: pa.Table
    rows: Sequence[int]
    lines: RecordLines
    waits: bool
    """Whether one has to wait for more."""


class CsvFile:
    """A CSV file that is being read: its columns, and its rows part by part."""

    def __init__(self, path: str, header: Records, more: Iterator[Records], on_bad: OnBad | None) -> None:
        self.path = shown(path)
        self._on_bad = on_bad
        self._more = more
        self.names = self._names(header)

    def parts(self) -> Iterator[CsvPart]:
        """The rows. Those that cannot be read are told to `on_bad`, or the first is an error."""
        first = 0
        for records in self._more:
            part, count = self._part(records, first)
            first += count
            yield part

    def _names(self, header: Records) -> list[str]:
        try:
            header.text.decode("utf-8")
        except UnicodeDecodeError:
            said = "the names of the columns are not UTF-8"
            raise InputFileError(self.path, said, line=header.first_line) from None
        width = _take_apart(header.text, None, []).num_columns
        row = _take_apart(header.text, [str(at) for at in range(width)], []).to_pylist()[0]
        names = [cell or "" for cell in row.values()]
        _check_distinct(self.path, names, header.first_line)
        self._check_separator(names, header.first_line)
        return names

    def _check_separator(self, names: list[str], line: int) -> None:
        for separator, spoken in _OTHER_SEPARATORS.items():
            if len(names) == 1 and separator in names[0]:
                said = f"the only column is {names[0]!r}, as if it were separated by {spoken}"
                raise InputFileError(self.path, said, line=line, suggestion="columns are separated by commas")

    def _part(self, records: Records, first: int) -> tuple[CsvPart, int]:
        ragged: list[tuple[int, int]] = []
        text, alien = self._without_alien(records)
        table = _take_apart(text, self.names, ragged)
        count = len(table) + len(ragged) + len(alien)
        places: Sequence[int] = [at for at in range(count) if at not in alien] if alien else range(count)
        if ragged:
            for at, found in ragged:
                said = f"expected {len(self.names)} cells, as there are columns, found {found}"
                self._refuse(records, places[at], said)
            bad = {at for at, _ in ragged}
            places = [place for at, place in enumerate(places) if at not in bad]
        rows = range(first, first + count) if len(places) == count else [first + at for at in places]
        return CsvPart(table, rows, RecordLines(records, places), records.waits), count

    def _without_alien(self, records: Records) -> tuple[bytes, set[int]]:
        """The text without records that are not UTF-8, and which those are; Arrow would stumble over them."""
        try:
            records.text.decode("utf-8")
        except UnicodeDecodeError:
            pass
        else:
            return records.text, set()
        kept, alien = [], set()
        for at, record in enumerate(records.split()):
            try:
                record.decode("utf-8")
            except UnicodeDecodeError as error:
                said = f"not UTF-8: byte 0x{record[error.start]:02x} at position {error.start + 1}"
                self._refuse(records, at, said)
                alien.add(at)
            else:
                kept.append(record)
        return b"".join(kept), alien

    def _refuse(self, records: Records, at: int, said: str) -> None:
        raise_or_tell(InputFileError(self.path, said, line=records.lines[at]), self._on_bad)


@contextmanager
def open_csv(path: str, on_bad: OnBad | None = None) -> Iterator[CsvFile]:
    """A CSV file whose columns have been looked at."""
    with read_blocks(path) as blocks:
        records = read_records(path, blocks)
        header = next(records, None)
        if header is None:
            raise EmptyFileError(shown(path), "the file is empty; its first line should name the columns")
        yield CsvFile(path, header, records, on_bad)


@contextmanager
def open_parquet(path: str) -> Iterator[pa.parquet.ParquetFile]:
    """A Parquet file whose columns have been looked at."""
    from pyarrow import parquet

    with told(path):
        in_memory = path == STANDARD_STREAM or compression_of(path) is not None
        source = pa.BufferReader(_native(read_all(path))) if in_memory else pa.OSFile(os.fsencode(path))
        with source:
            try:
                parsed = parquet.ParquetFile(source)
                _check_distinct(path, parsed.schema_arrow.names)
                yield parsed
            except pa.ArrowException as error:
                raise InputFileError(shown(path), " ".join(str(error).split())) from error


def _take_apart(text: bytes, names: list[str] | None, ragged: list[tuple[int, int]]) -> pa.Table:
    """Records as columns of text; those of another length than `names` are noted, and left out."""
    from pyarrow import csv

    if names is not None and not text.strip(b"\r\n"):
        return pa.table({name: pa.array([], pa.string()) for name in names})

    def note(row: csv.InvalidRow) -> str:
        ragged.append((row.number - 1, row.actual_columns))
        return "skip"

    numbered = [str(at) for at in range(len(names))] if names is not None else None
    read = csv.ReadOptions(
        use_threads=False,  # else rows are not counted
        block_size=len(text) + 1,
        column_names=numbered,
        autogenerate_column_names=names is None,
    )
    convert = csv.ConvertOptions(
        column_types=None if numbered is None else dict.fromkeys(numbered, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    parse = csv.ParseOptions(newlines_in_values=True, invalid_row_handler=note)
    table = csv.read_csv(pa.BufferReader(_native(text)), read, parse, convert)
    return table if names is None else table.rename_columns(names)


def _native(content: bytes) -> pa.Buffer:
    """A copy that Arrow's threads can let go of without asking Python, which may have ended by then."""
    sink = pa.BufferOutputStream()
    sink.write(content)
    return sink.getvalue()


def _check_distinct(path: str, names: Sequence[str], line: int | None = None) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            said = f"the column {name!r} occurs twice" if name else "two columns have no name"
            raise InputFileError(shown(path), said, line=line)
        seen.add(name)
