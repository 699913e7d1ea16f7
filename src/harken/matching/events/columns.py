"""A slice of an Arrow column in the forms that matching asks for, and which of its values are foreign.

A column of a type that the language has not is foreign as a whole: of it only matters where it is null.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Self, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from harken.model.foreign import FlatValue, Foreign, event_value
from harken.model.values import INT_MAX, Box, EventValue, Kind, Point, Type
from harken.normal.operators import CALENDAR

Numbers: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.int32] | npt.NDArray[np.float64]
"""Values of a column as the machine has them."""

INTEGER_KINDS = (Kind.BOOL, Kind.DATE, Kind.TIMESTAMP)
"""Kinds whose values are integers underneath."""

Mask: TypeAlias = npt.NDArray[np.bool_]

_ALL_VALID = np.zeros(0, np.bool_)
_MILLISECONDS_OF_A_DAY = 86_400_000
_PER_MICROSECOND = {"s": 1_000_000, "ms": 1_000, "us": 1}


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


def _is_shape(kind: pa.DataType) -> bool:
    return pa.types.is_fixed_size_list(kind) and kind.list_size in (2, 4) and pa.types.is_floating(kind.value_type)


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


_FOREIGN_WORDS = {
    Type.INT: "an integer past 64 bits",
    Type.FLOAT: "NaN",
    Type.STRING: "a string that is no UTF-8",
    Type.DATE: "a date out of range",
    Type.TIMESTAMP: "a timestamp out of range or finer than a microsecond",
    Type.POINT: "a shape with bad coordinates",
    Type.BOX: "a shape with bad coordinates",
}


Owner = TypeVar("Owner")
Found = TypeVar("Found")


class once(Generic[Owner, Found]):  # noqa: N801  # as `cached_property`, which before Python 3.12 takes a lock
    """A property that is computed once. Threads that ask at the same moment may each compute it."""

    def __init__(self, compute: Callable[[Owner], Found]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, owner: None, kind: type[Owner]) -> Self: ...
    @overload
    def __get__(self, owner: Owner, kind: type[Owner]) -> Found: ...
    def __get__(self, owner: Owner | None, kind: type[Owner]) -> Found | Self:
        if owner is None:
            return self
        found = owner.__dict__[self._compute.__name__] = self._compute(owner)
        return found


class Column:
    """Values of one attribute, one per event."""

    def __init__(self, column: pa.Array | pa.ChunkedArray) -> None:
        self._arrow_type = column.type
        self.type = arrow_type(column.type)
        """The type that its values have; None if they are all foreign."""
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        plain = [_plain(chunk) for chunk in chunks or [column.combine_chunks()]]
        self._column = plain[0] if len(plain) == 1 else pa.chunked_array(plain).combine_chunks()
        self._distinct: tuple[npt.NDArray[np.int64], list[EventValue]] | None = None

    def __len__(self) -> int:
        return len(self._column)

    @property
    def said(self) -> str:
        """The type as Arrow calls it."""
        return str(self._arrow_type)

    @once
    def there(self) -> Mask:
        """Which rows have a value, foreign or not; empty if all have."""
        if self.type is None and pa.types.is_union(self._column.type):  # has no nulls of its own
            return np.array([value is not None for value in self._column.to_pylist()], bool)
        if not self._column.null_count:
            return _ALL_VALID
        return np.asarray(self._column.is_valid().to_numpy(zero_copy_only=False))

    @once
    def there_rows(self) -> slice | Mask:
        """An index of the rows that have a value."""
        return self.there if len(self.there) else slice(None)

    @property
    def there_mask(self) -> Mask:
        """Which rows have a value, spelled out."""
        return self.there if len(self.there) else np.ones(len(self._column), bool)

    @property
    def foreign_words(self) -> str:
        """What the foreign values of this column are, in a few words."""
        return self.said if self.type is None else _FOREIGN_WORDS[self.type]

    @once
    def foreign(self) -> Mask | None:
        """Which rows have a foreign value; None if no row has."""
        if self.type is None:
            found: Mask | None = self.there_mask
        elif self.type is Type.STRING:
            found = _undecodable(self._column)
        elif self.type in (Type.POINT, Type.BOX):
            found = np.array([isinstance(value, Foreign) for value in self.values()], bool)
        else:
            found = self._machine_numbers[1]
        return found if found is not None and found.any() else None

    @once
    def valid(self) -> Mask:
        """Which rows have a value of the language; empty if all have."""
        if self.foreign is None:
            return self.there
        return ~self.foreign & self.there if len(self.there) else ~self.foreign

    @property
    def numbers(self) -> Numbers | None:
        """The values as machine numbers that say all, any where none is valid; None for values of other kinds."""
        return self._machine_numbers[0]

    @once
    def _machine_numbers(self) -> tuple[Numbers | None, Mask | None]:
        column, kind = self._column, self._column.type
        if self.type is Type.FLOAT and not pa.types.is_decimal(kind):
            column = column if kind == pa.float64() else column.cast(pa.float64())
            column = column.fill_null(0.0) if column.null_count else column
            floats = np.asarray(column.to_numpy(zero_copy_only=False))
            return floats, np.isnan(floats)
        if self.type is Type.INT or (self.type is not None and self.type.kind in INTEGER_KINDS):
            return _integers(column, self.type)
        return None, None

    @once
    def _sound(self) -> pa.Array:
        """The column without its foreign values."""
        if self.foreign is None:
            return self._column
        if self.type is Type.STRING:
            texts = [None if bad else self._column[row].as_py() for row, bad in enumerate(self.foreign.tolist())]
            return pa.array(texts, pa.large_string())
        return pc.if_else(pa.array(self.foreign), pa.scalar(None, self._column.type), self._column)

    def values(self) -> list[FlatValue | None]:
        """The values as Python has them."""
        if self.type is None:
            there = enumerate(self.there_mask.tolist())
            return [Foreign(self._column[row], self.said) if here else None for row, here in there]
        if self.type in (Type.POINT, Type.BOX):
            make = Point if self.type is Type.POINT else Box
            return [None if value is None else _shape(make, value) for value in self._column.to_pylist()]
        values: list[FlatValue | None] = [
            None if value is None else event_value(value) for value in self._sound.to_pylist()
        ]
        if self.foreign is not None:
            for row in np.flatnonzero(self.foreign).tolist():
                values[row] = Foreign(self._column[row], self.foreign_words)
        return values

    def distinct(self) -> tuple[npt.NDArray[np.int64], list[EventValue]]:
        """For each row the place of its value among the distinct ones (-1: none), and those."""
        if self._distinct is None:
            self._distinct = self._find_distinct()
        return self._distinct

    def _find_distinct(self) -> tuple[npt.NDArray[np.int64], list[EventValue]]:
        if self.type in (None, Type.POINT, Type.BOX):
            return _places([None if isinstance(value, Foreign) else value for value in self.values()])
        encoded = self._sound.dictionary_encode()
        places = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        values = encoded.dictionary.to_pylist()
        if self.type is Type.STRING:
            return places, values
        return places, [event_value(value) for value in values]  # type: ignore[misc]  # foreign ones are out

    def rendered(self, row: int) -> object:
        """The value of a row for people to see."""
        try:
            return self._column[row].as_py()
        except (ValueError, TypeError, OverflowError):  # a moment that Python has not, bytes that are no text
            kind = self._column.type
            odd = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
            return self._column[row].as_buffer().to_pybytes() if odd else self._column[row].value


def _plain(column: pa.Array) -> pa.Array:
    """The same values, as what Arrow has functions for; a null of a dictionary is one of the column."""
    if pa.types.is_dictionary(column.type):
        return _plain(_decoded(column))
    if pa.types.is_decimal(column.type) and column.type.bit_width < 128:
        return column.cast(pa.decimal128(column.type.precision, column.type.scale))
    return column


def _decoded(column: pa.DictionaryArray) -> pa.Array:
    values = column.dictionary
    # Arrow has few functions for views, and Polars gives categories as such.
    wider = pa.types.is_string_view(values.type)
    try:
        return (values.cast(pa.large_string()) if wider else values).take(column.indices)
    except pa.ArrowNotImplementedError:  # for views of bytes, and the like
        return pa.array(column.to_pylist(), values.type)


def rows_of(column: pa.ChunkedArray, rows: npt.NDArray[np.int64]) -> pa.ChunkedArray:
    """Some rows of a column, ascending."""
    try:
        return column.take(pa.array(rows))
    except pa.ArrowNotImplementedError:  # for views, as above: run by run
        runs = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1) if len(rows) else []
        parts = [chunk for run in runs for chunk in column.slice(int(run[0]), len(run)).chunks]
        return pa.chunked_array(parts, column.type)


def _places(values: list[EventValue | None]) -> tuple[npt.NDArray[np.int64], list[EventValue]]:
    """Places among those that are there, each taken for distinct."""
    found = [value for value in values if value is not None]
    there = np.array([value is not None for value in values], bool)
    return np.where(there, np.cumsum(there) - 1, -1).astype(np.int64), found


def _shape(make: type[Point] | type[Box], coordinates: list[float]) -> FlatValue:
    try:
        return make(*coordinates)
    except (TypeError, ValueError):
        return Foreign(coordinates, _FOREIGN_WORDS[Type.POINT])


def _integers(column: pa.Array, type_: Type) -> tuple[Numbers, Mask | None]:
    """The integers underneath a column, and which are foreign, if that can be."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return _in_calendar(type_, *_microseconds(_filled(column.cast(pa.int64())), kind.unit))
    if pa.types.is_date32(kind):
        return _in_calendar(type_, _filled(column.cast(pa.int32())), None)
    if pa.types.is_date64(kind):
        milliseconds = _filled(column.cast(pa.int64()))
        days = milliseconds // _MILLISECONDS_OF_A_DAY
        return _in_calendar(type_, days, days * _MILLISECONDS_OF_A_DAY != milliseconds)
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    numbers = _as_they_lie(column) if pa.types.is_signed_integer(kind) else _filled(column)
    if pa.types.is_uint64(kind):
        return numbers.astype(np.int64), numbers > INT_MAX
    return (numbers if numbers.dtype in (np.int64, np.int32) else numbers.astype(np.int64)), None


def _filled(column: pa.Array) -> npt.NDArray[np.int64]:
    if column.null_count:
        column = pc.fill_null(column, 0)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _as_they_lie(column: pa.Array) -> npt.NDArray[np.int64]:
    """The integers of a column, whatever lies where there is none: to write zeros there takes long."""
    buffer = column.buffers()[1]
    if not column.null_count or buffer is None:
        return _filled(column)
    every = np.frombuffer(buffer, column.type.to_pandas_dtype(), column.offset + len(column))
    return every[column.offset :]


def _microseconds(numbers: npt.NDArray[np.int64], unit: str) -> tuple[npt.NDArray[np.int64], Mask | None]:
    """Moments in microseconds, and which of them do not fit."""
    if unit == "us":
        return numbers, None
    if unit == "ns":
        whole = numbers // 1_000
        return whole, whole * 1_000 != numbers
    limit = INT_MAX // _PER_MICROSECOND[unit]
    bad = (numbers > limit) | (numbers < -limit)
    return np.where(bad, 0, numbers) * _PER_MICROSECOND[unit], bad


def _in_calendar(type_: Type, numbers: npt.NDArray[np.int64], bad: Mask | None) -> tuple[Numbers, Mask | None]:
    first, last = CALENDAR[type_]
    if len(numbers) and (numbers.min() < first or numbers.max() > last):
        outside = (numbers < first) | (numbers > last)
        bad = outside if bad is None else bad | outside
    return numbers, bad


def _undecodable(column: pa.Array) -> Mask | None:
    """Strings that are no UTF-8: what is called a string elsewhere can be any bytes."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        pass
    else:
        return None
    found = np.zeros(len(column), bool)
    for row, scalar in enumerate(column):
        try:
            scalar.as_py()
        except UnicodeDecodeError:
            found[row] = True
    return found
