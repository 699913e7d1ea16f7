"""CSV and Parquet: record batches, one at a time, with Arrow's errors told in terms of the file.

CSV follows RFC 4180 in UTF-8; an empty cell is missing, `""` is the empty string. Types are inferred from the
beginning of the file unless they are given.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import TypeVar

import pyarrow as pa

from harken.errors import EmptyFileError, InputFileError
from harken.files.formats import opened

Item = TypeVar("Item")

_BLOCK = 8 * 2**20
_EMPTY = "Empty CSV file"
_ROW = re.compile(r"Row #(\d+): ")
_COLUMN = re.compile(r"^In CSV column #(\d+): ")


@contextmanager
def open_csv(path: str, types: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatchReader]:
    """The batches of a CSV file; columns not in `types` are of the type their first values have."""
    from pyarrow import csv as arrow_csv

    with opened(path) as file, _retold(path, types):
        if file.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise InputFileError(path, "the file is not UTF-8 but UTF-16")
        reader = arrow_csv.open_csv(
            file,
            # Only a single thread counts rows, and without the count an error cannot say where.
            read_options=arrow_csv.ReadOptions(block_size=_BLOCK, use_threads=False),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict(types),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        _check_columns(path, reader.schema)
        yield reader


@contextmanager
def open_parquet(path: str) -> Iterator[pa.parquet.ParquetFile]:
    """A Parquet file whose columns have been looked at."""
    from pyarrow import parquet

    with opened(path) as file, _retold(path):
        parsed = parquet.ParquetFile(file)
        _check_columns(path, parsed.schema_arrow)
        yield parsed


def csv_lines(path: str) -> list[int]:
    """The line on which each row begins, as far as it can be found out.

    Rows may span lines, so Arrow's row numbers are no line numbers. Reads the file again: for errors only.
    """
    return _scan(path)[1][1:]


def _scan(path: str) -> tuple[list[str], list[int]]:
    """The names in the header, and the line on which each record begins, the header's included."""
    header: list[str] = []
    lines: list[int] = []
    with suppress(csv.Error, InputFileError), opened(path) as file:
        reader = csv.reader(TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline=""))
        end = 0
        for record in reader:
            if record:
                header = header or record
                lines.append(end + 1)
            end = reader.line_num
    return header, lines


def _check_columns(path: str, schema: pa.Schema) -> None:
    seen: set[str] = set()
    for name in schema.names:
        if name in seen:
            raise InputFileError(path, f"the column {name!r} occurs twice")
        seen.add(name)


@contextmanager
def _retold(path: str, types: Container[str] = ()) -> Iterator[None]:
    """Arrow's complaints as errors that name file, line and column."""
    try:
        yield
    except UnicodeDecodeError:
        raise InputFileError(path, "the names of the columns are not UTF-8") from None
    except pa.ArrowException as error:
        raise _complaint(path, " ".join(str(error).split()), types) from error


def _complaint(path: str, said: str, types: Container[str]) -> InputFileError:
    if _EMPTY in said:
        return EmptyFileError(path, "the file is empty; its first line should name the columns")
    record, column = _ROW.search(said), _COLUMN.match(said)
    if record is None and column is None:
        return InputFileError(path, said)
    names, lines = _scan(path)
    line = _item(lines, record, first=1)
    said = _COLUMN.sub("", _ROW.sub("", said))
    name = _item(names, column, first=0)
    if name is None:
        return InputFileError(path, said, line=line)
    hint = None if name in types else "its first values are of another type; declare it in a schema"
    return InputFileError(path, f"column {name!r}: {said}", line=line, suggestion=hint)


def _item(items: Sequence[Item], counted: re.Match[str] | None, first: int) -> Item | None:
    """The item of the number that Arrow gives, which counts from `first`."""
    at = -1 if counted is None else int(counted.group(1)) - first
    return items[at] if 0 <= at < len(items) else None
