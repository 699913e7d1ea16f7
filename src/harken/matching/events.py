"""A batch of events, from Arrow columns or from dictionaries, as matchers see it.

Nested struct columns become dotted attributes; nulls and missing columns are missing attributes. Only
attributes that some subscription mentions are looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

import pyarrow as pa

from harken.errors import EventError
from harken.model.events import Event, FlatEvent, flatten, is_flat
from harken.model.schema import Schema
from harken.model.values import Box, EventValue, Point, Type, checked_value

EventSource: TypeAlias = pa.Table | pa.RecordBatch | Iterable[Event]


class EventBatch:
    """Events row by row or column by column; the values of mentioned attributes have been checked."""

    def __init__(self, rows: list[FlatEvent] | None, columns: dict[str, pa.ChunkedArray], count: int) -> None:
        self.flat_rows = rows
        """The events one by one, if they came so."""
        self.columns = columns
        """The columns of mentioned attributes, if they came so."""
        self._count = count

    def __len__(self) -> int:
        return self._count

    @classmethod
    def of(cls, source: EventSource, mentioned: Collection[str], schema: Schema | None = None) -> EventBatch:
        """A batch from an Arrow table or from dictionaries; EventError names the row and attribute at fault."""
        if isinstance(source, pa.RecordBatch):
            source = pa.Table.from_batches([source])
        if isinstance(source, pa.Table):
            columns = _leaf_columns(source)
            declared: Collection[str] = () if schema is None else schema
            wanted = {name: columns[name] for name in columns if name in mentioned or name in declared}
            _check_types(columns, wanted, schema)
            return cls(None, wanted, source.num_rows)
        rows = [checked_event(event, mentioned, schema, row) for row, event in enumerate(source)]
        return cls(rows, {}, len(rows))

    def rows(self) -> Iterator[FlatEvent]:
        """The events one by one."""
        if self.flat_rows is not None:
            yield from self.flat_rows
            return
        names = list(self.columns)
        if not names:
            yield from ({} for _ in range(self._count))
            return
        lists = [python_values(name, column) for name, column in self.columns.items()]
        for values in zip(*lists, strict=True):
            yield {name: value for name, value in zip(names, values, strict=True) if value is not None}


def checked_event(
    event: Event, mentioned: Collection[str], schema: Schema | None, row: int | None = None
) -> FlatEvent:
    """One event flattened and checked: values that nobody asks for may be anything."""
    if schema is None and is_flat(event):
        return event  # type: ignore[return-value]  # flat, as just seen
    try:
        flat, faults = flatten(event)
        for name, fault in faults.items():
            if name in mentioned or (schema is not None and name in schema):
                raise fault
        if schema is not None:
            for name, value in flat.items():
                schema.check_value(name, value)
    except EventError as error:
        error.row = row
        raise
    except TypeError as error:
        raise EventError(str(error), attribute=getattr(error, "attribute", None), row=row) from None
    return flat


def _leaf_columns(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    leaves: dict[str, pa.ChunkedArray] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        for leaf, values in _leaves(name, column):
            if leaf in leaves:
                raise EventError(f"attribute {leaf!r} occurs twice", attribute=leaf)
            leaves[leaf] = values
    return leaves


def _leaves(name: str, column: pa.ChunkedArray) -> Iterator[tuple[str, pa.ChunkedArray]]:
    if not pa.types.is_struct(column.type):
        yield name, column
        return
    for field, values in zip(column.type, column.flatten(), strict=True):
        yield from _leaves(f"{name}.{field.name}", values)


def _is_shape(kind: pa.DataType) -> bool:
    return pa.types.is_fixed_size_list(kind) and kind.list_size in (2, 4) and pa.types.is_floating(kind.value_type)


def arrow_type(kind: pa.DataType) -> Type | None:
    """The type of the language that an Arrow type carries; None if there is none."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if _is_shape(kind):
        return Type.POINT if kind.list_size == 2 else Type.BOX
    for test, named in _ARROW_TYPES.items():
        if test(kind):
            return named
    return None


_ARROW_TYPES = {
    pa.types.is_integer: Type.INT,
    pa.types.is_floating: Type.FLOAT,
    pa.types.is_decimal: Type.FLOAT,
    pa.types.is_string: Type.STRING,
    pa.types.is_large_string: Type.STRING,
    pa.types.is_string_view: Type.STRING,
    pa.types.is_boolean: Type.BOOL,
    pa.types.is_date: Type.DATE,
    pa.types.is_timestamp: Type.TIMESTAMP,
}


def _check_types(
    columns: Mapping[str, pa.ChunkedArray], wanted: Mapping[str, pa.ChunkedArray], schema: Schema | None
) -> None:
    for name, column in columns.items():
        if pa.types.is_null(column.type):
            continue
        found = arrow_type(column.type)
        declared = schema.get(name) if schema is not None else None
        if found is None and (name in wanted or declared is not None):
            raise EventError(f"attribute {name!r}: {column.type} is not a type of the language", attribute=name)
        if declared is None or found is declared or (declared is Type.FLOAT and found is Type.INT):
            continue
        said = f"attribute {name!r} is declared {declared.value}, found {column.type}"
        raise EventError(said, attribute=name)


def python_values(name: str, column: pa.ChunkedArray, start: int = 0) -> list[EventValue | None]:
    """The values of a column as Python has them; EventError names the row at fault, counted from `start`."""
    if pa.types.is_null(column.type):
        return [None] * len(column)
    make = {Type.POINT: Point, Type.BOX: Box}.get(arrow_type(column.type))  # type: ignore[arg-type]
    values: list[EventValue | None] = []
    for row, scalar in enumerate(column, start):
        try:
            value = scalar.as_py()
            values.append(None if value is None else make(*value) if make else checked_value(value))
        except (ValueError, TypeError, OverflowError) as error:
            said = f"attribute {name!r}: {error}"
            raise EventError(said, attribute=name, row=row) from None
    return values
