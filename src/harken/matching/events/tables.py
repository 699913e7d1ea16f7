"""Tables, from whatever can hand them over as Arrow does: pandas, Polars, DuckDB and others.

A column of a data frame can hold what no type of Arrow does: texts beside numbers, integers past 64 bits, objects.
Such a column stays one of Python's values, and goes beside the table of all others (`MixedTable`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from harken.errors import HarkenError

Values: TypeAlias = list[Any]
"""Any: whatever somebody put into a data frame."""
Refusal: TypeAlias = type[HarkenError]

_FAULTS = (pa.ArrowException, TypeError, ValueError, ArithmeticError)
"""What comes of values that Arrow cannot take."""


@runtime_checkable
class ArrowStream(Protocol):
    """What has the Arrow stream interface: data frames of pandas and Polars, readers of record batches."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A stream of record batches."""


@runtime_checkable
class ArrowArray(Protocol):
    """What has the Arrow array interface: arrays of structs, record batches of other makers."""

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        """A schema and an array."""


@dataclass(frozen=True, slots=True)
class MixedTable:
    """A table, null throughout in columns that Arrow has no type for, and the values of these; None is missing."""

    table: pa.Table
    others: Mapping[str, Values]

    def column(self, name: str) -> Values:
        """The values of a column as Python has them."""
        found = self.others.get(name)
        return self.table.column(name).to_pylist() if found is None else found

    def to_pylist(self) -> list[dict[str, object]]:
        """The rows as dictionaries."""
        rows: list[dict[str, object]] = self.table.to_pylist()
        for name, values in self.others.items():
            for row, value in zip(rows, values, strict=True):
                row[name] = value
        return rows


def table_of(source: object, refuse: Refusal) -> pa.Table | None:
    """The table that a source is or can be read as, None if it is no table; `refuse` is raised if that fails."""
    found = frame_of(source, refuse)
    if isinstance(found, MixedTable):
        names = ", ".join(found.others)
        raise refuse(f"a {type(source).__name__} with columns that no type of Arrow holds: {names}")
    return found


def frame_of(source: object, refuse: Refusal) -> pa.Table | MixedTable | None:
    """As `table_of`, but columns of data frames that Arrow cannot take are given as Python's values."""
    if isinstance(source, pa.Table | MixedTable):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    streams = hasattr(source, "__arrow_c_stream__")
    if not streams and not hasattr(source, "__arrow_c_array__"):
        _refuse_plan(source, refuse)
        return None
    if _is_of("pandas", source):
        return _of_pandas(source, refuse)
    try:
        table = pa.table(source) if streams else _of_array(source)
    except _FAULTS as error:
        if not _is_of("polars", source):
            _refuse(source, error, refuse)
        return _of_polars(source)
    return _of_polars(source) if _is_of("polars", source) and _has_objects(source) else table


def _of_array(source: object) -> pa.Table:
    rows = pa.array(source)
    if rows.null_count:
        raise ValueError(f"row {rows.is_null().index(True)} is null")
    return pa.Table.from_struct_array(rows)  # also of a slice, which is no record batch to Arrow


def _is_of(library: str, source: object) -> bool:
    """Whether this is a data frame of a library, which nobody wants to import to find out."""
    return type(source).__module__.partition(".")[0] == library and type(source).__name__ == "DataFrame"


def _refuse(source: object, error: Exception, refuse: Refusal) -> NoReturn:
    said = " ".join(str(error).split())
    raise refuse(f"a {type(source).__name__} that cannot be read as an Arrow table: {said}") from error


def _refuse_plan(source: object, refuse: Refusal) -> None:
    """A lazy frame is not rows yet."""
    if _is_of("pyspark", source):
        raise refuse("a DataFrame of Spark is not at hand as rows", suggestion="harken.spark takes it")
    if hasattr(source, "collect") and not hasattr(source, "__iter__"):
        said = f"a {type(source).__name__} is a plan that has not been carried out yet"
        raise refuse(said, suggestion="pass what its .collect() gives")


# ---------------------------------------------------------------- column by column


def _of_pandas(frame: Any, refuse: Refusal) -> pa.Table | MixedTable:  # Any: pandas may not be installed
    if not all(isinstance(name, str) for name in frame.columns):
        frame = frame.copy(deep=False)  # Arrow would make names of them, and warn
        frame.columns = [str(name) for name in frame.columns]
    try:
        table = pa.table(frame)
    except _FAULTS as error:
        if not frame.columns.is_unique:
            _refuse(frame, error, refuse)
    else:
        if not any(_is_changed(frame[name], table.schema.field(name).type) for name in frame.columns):
            return table
    named = all(isinstance(name, str) and name not in frame.columns for name in frame.index.names)
    frame = frame.reset_index(drop=not named)  # for Arrow, too, an index with a name is a column
    return _by_column({name: frame[name] for name in frame.columns}, len(frame), _from_series, _series_values)


def _is_changed(series: Any, kind: pa.DataType) -> bool:
    """Whether Arrow took objects for what they are not: texts for bytes, or moments for dates."""
    wrong = str if pa.types.is_binary(kind) else datetime if pa.types.is_date(kind) else None
    if wrong is None or series.dtype != object:
        return False
    return any(isinstance(value, wrong) for value in series.dropna())


def _from_series(series: Any) -> pa.Array | pa.ChunkedArray:
    values = pa.array(series, from_pandas=True)
    if _is_changed(series, values.type):
        raise TypeError(f"other values than {values.type}")
    return values


def _series_values(series: Any) -> Values:
    missing = series.isna().tolist()
    return [None if none else value for value, none in zip(series.tolist(), missing, strict=True)]


def _has_objects(frame: Any) -> bool:
    return any(str(kind) == "Object" for kind in frame.dtypes)


def _of_polars(frame: Any) -> MixedTable | pa.Table:  # Any: Polars may not be installed
    return _by_column({each.name: each for each in frame.get_columns()}, len(frame), _from_polars, list)


def _from_polars(series: Any) -> pa.ChunkedArray:
    if str(series.dtype) == "Object":  # would be given as addresses
        raise TypeError("objects")
    return pa.chunked_array(series)


def _by_column(
    columns: Mapping[str, Any],
    count: int,
    convert: Callable[[Any], pa.Array | pa.ChunkedArray],
    values: Callable[[Any], Iterable[object]],
) -> pa.Table | MixedTable:
    taken: dict[str, pa.Array | pa.ChunkedArray] = {}
    others: dict[str, Values] = {}
    for name, column in columns.items():
        try:
            taken[name] = convert(column)
        except _FAULTS:
            taken[name] = pa.nulls(count)
            others[name] = list(values(column))
    table = pa.table(taken)
    return MixedTable(table, others) if others else table
