"""Subscription files: `id`, `expression` and, if wanted, `owner`, `valid_from` and `valid_until`.

A Parquet file may also be of the compiled form. What is wrong with single subscriptions is left to the engine,
which rejects them one by one; a file that cannot be understood is an error here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, overload

import pyarrow as pa
import pyarrow.compute as pc

from harken.errors import ExpressionError, InputFileError, closest
from harken.files.declared import moment
from harken.files.formats import Format, OnBad, format_of, raise_or_tell, shown
from harken.files.lines import read_batches
from harken.files.records import RecordLines
from harken.files.tables import open_csv, open_parquet
from harken.intake import COLUMNS
from harken.model.subscriptions import SubscriptionId
from harken.normal.compiled import MOMENT, is_compiled

Rows: TypeAlias = pa.Table | list[Mapping[str, object]]

_REQUIRED = ("id", "expression")
_MOMENTS = ("valid_from", "valid_until")
_CANONICAL_INTEGER = "^(0|-?[1-9][0-9]{0,18})$"


@dataclass(frozen=True)
class SubscriptionFile:
    """The subscriptions of a file, ready for `Engine.subscribe_many`, and where each stands."""

    path: str
    rows: Rows
    lines: Sequence[int] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def ids(self) -> list[object]:
        """The ids as the file has them."""
        if isinstance(self.rows, pa.Table):
            return self.rows.column("id").to_pylist()  # type: ignore[no-any-return]
        return [row.get("id") for row in self.rows]

    def line(self, row: int) -> int | None:
        """The line on which a row begins; None where there are no lines."""
        return None if self.lines is None else self.lines[row]

    def where(self, row: int) -> str:
        """The file and the line; where there are no lines, the row (from 0)."""
        line = self.line(row)
        return f"{shown(self.path)}:{row if line is None else line}"

    def only(self, id: str) -> SubscriptionFile:
        """The subscriptions of one id, given as text whether ids are strings or integers."""
        wanted: tuple[SubscriptionId, ...] = (id, int(id)) if _is_integer(id) else (id,)
        at = [row for row, found in enumerate(self.ids) if found in wanted and not isinstance(found, bool | float)]
        if not at:
            near = closest(id, map(str, self.ids))
            hint = f"did you mean {near!r}?" if near else None
            raise InputFileError(shown(self.path), f"there is no subscription {id!r}", suggestion=hint)
        rows = self.rows.take(at) if isinstance(self.rows, pa.Table) else [self.rows[row] for row in at]
        return SubscriptionFile(self.path, rows, [row if self.lines is None else self.lines[row] for row in at])


def read_subscriptions(
    path: str,
    on_bad: OnBad | None = None,
    *,
    format: str | None = None,  # noqa: A002
) -> SubscriptionFile:
    """All subscriptions of a file, or of standard input for "-".

    `on_bad` is told of lines that are no subscription; without it the first one is an error. `format` says what
    the file holds where its name does not.
    """
    kind = format_of(path, format)
    if kind is Format.CSV:
        return _read_csv(path, on_bad)
    if kind is not Format.PARQUET:
        return _read_objects(path, kind, on_bad)
    with open_parquet(path) as file:
        _check_fields(path, file.schema_arrow.names)
        table = file.read()
    return SubscriptionFile(path, _with_moments(path, table))


def _read_csv(path: str, on_bad: OnBad | None) -> SubscriptionFile:
    with open_csv(path, on_bad) as file:
        _check_fields(path, file.names)
        parts = list(file.parts())
    empty = pa.table({name: pa.array([], pa.string()) for name in file.names})
    table = pa.concat_tables([empty, *(part.table for part in parts)])
    table = table.set_column(table.column_names.index("id"), "id", _numbered(table.column("id")))
    return SubscriptionFile(path, _with_moments(path, table), _Lines([part.lines for part in parts]))


class _Lines(Sequence[int]):
    """The lines of all parts of a file, counted when somebody asks."""

    def __init__(self, parts: list[RecordLines]) -> None:
        self._parts = parts

    @cached_property
    def _all(self) -> list[int]:
        return [line for part in self._parts for line in part]

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    @overload
    def __getitem__(self, at: int) -> int: ...

    @overload
    def __getitem__(self, at: slice) -> list[int]: ...

    def __getitem__(self, at: int | slice) -> int | list[int]:
        return self._all[at]


def _read_objects(path: str, kind: Format, on_bad: OnBad | None) -> SubscriptionFile:
    rows: list[Mapping[str, object]] = []
    lines = []
    for batch in read_batches(path, kind, on_bad):
        for line, row in zip(batch.lines, batch.objects, strict=True):
            try:
                _check_fields(path, row, line)
            except InputFileError as error:
                raise_or_tell(error, on_bad)
                continue
            rows.append({name: _moment(value) if name in _MOMENTS else value for name, value in row.items()})
            lines.append(line)
    return SubscriptionFile(path, rows, lines)


def _check_fields(path: str, names: Sequence[str] | Mapping[str, object], line: int | None = None) -> None:
    """Refuse what lacks a field, and what has one we do not know: it may be a misspelt one that matters."""
    required = ("id",) if "clauses" in names else _REQUIRED
    for name in required:
        if name not in names:
            found = ", ".join(names) or "none"
            raise InputFileError(shown(path), f"subscriptions need the field {name!r}, found {found}", line=line)
    for name in names:
        if name not in COLUMNS and name != "clauses":
            near = closest(name, COLUMNS)
            said = f"subscriptions have no field {name!r}; there are {', '.join(COLUMNS)}"
            hint = f"did you mean {near!r}?" if near else None
            raise InputFileError(shown(path), said, line=line, suggestion=hint)


def _numbered(ids: pa.ChunkedArray) -> pa.ChunkedArray:
    """Integers if all ids are written as such; `007` is not, as it would come back as 7."""
    if len(ids) == ids.null_count or not pc.all(pc.match_substring_regex(ids, _CANONICAL_INTEGER)).as_py():
        return ids
    try:
        return ids.cast(pa.int64())
    except pa.ArrowInvalid:
        return ids


def _with_moments(path: str, table: pa.Table) -> Rows:
    """Textual moments read, all others brought to UTC; rows, where some text says no moment."""
    for name in _MOMENTS:
        if name not in table.column_names or is_compiled(table):
            continue
        column = table.column(name)
        if pa.types.is_timestamp(column.type):
            column = _in_microseconds(path, name, column)
        elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            moments = [_moment(value) for value in column.to_pylist()]
            if any(isinstance(each, str) for each in moments):
                return _rows(table)
            column = pa.array(moments, MOMENT)
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def _rows(table: pa.Table) -> list[Mapping[str, object]]:
    return [
        {name: _moment(value) if name in _MOMENTS else value for name, value in row.items()}
        for row in table.to_pylist()
    ]


def _in_microseconds(path: str, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return column.cast(MOMENT)
    except pa.ArrowInvalid as error:
        raise InputFileError(path, f"column {name!r}: {error}") from error


def _moment(value: object) -> object:
    """A text as the moment it says; what says none stays, for the engine to reject with its row."""
    if not isinstance(value, str):
        return value
    try:
        return moment(value)
    except ExpressionError:
        return value


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isascii() and text.removeprefix("-").isdigit() and len(text) <= 20
