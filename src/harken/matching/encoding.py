"""Events to codes and labels: whole Arrow columns without Python per row, or one event from a dictionary."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from harken.errors import EventError
from harken.matching.dimensions import Dimension
from harken.matching.events import EventBatch, arrow_type, python_values
from harken.matching.kernels.encoding import codes_by_place, codes_by_search, rows_in_order
from harken.matching.kernels.layout import MISSING, UNLISTED, Events
from harken.matching.locality import Order, order_of
from harken.matching.ordering import INTEGER_KINDS, Numbers
from harken.matching.predicates import PredicateTable
from harken.matching.reading import RowReader
from harken.model.events import FlatEvent
from harken.model.values import EventValue, Kind, Type
from harken.normal.operators import CALENDAR, operand_of

BLOCK = 4_096
"""Events encoded together: their codes stay in the processor's cache until they are matched."""

DENSE = 1 << 16
"""Integer constants within a range of this size are looked up by place rather than searched."""

_ALL_VALID = np.zeros(0, np.bool_)


class Encoder:
    """Encodes events for the predicates of one table. Reads only; one may serve many threads."""

    def __init__(self, predicates: PredicateTable) -> None:
        self._predicates = predicates
        self._lookups: dict[int, _Lookup] = {}
        self.refresh()

    def refresh(self) -> None:
        """Take note that the predicates have changed. Must not run beside anything else."""
        predicates = self._predicates
        self._ordered = predicates.ordered
        self._label_column = np.full(max(1, len(predicates.dimensions)), -1, np.int32)
        self._label_column[self._ordered] = np.arange(len(self._ordered))
        self.reader = RowReader(predicates, self._label_column)

    def blocks(
        self, batch: EventBatch, size: int = BLOCK, leading: tuple[int, ...] = ()
    ) -> Iterator[tuple[int, Events, Order | None]]:
        """A batch, block by block: the row it begins at, its events, and the order they were brought into, if any.

        With `leading` dimensions, events that are alike there come one after the other.
        """
        if batch.flat_rows is not None:
            for start in range(0, len(batch), size):
                yield start, self._from_rows(batch.flat_rows[start : start + size]), None
            return
        columns = {name: batch.columns[name] for name in batch.columns if name in self._predicates.by_attribute}
        for start in range(0, len(batch), size):
            count = min(size, len(batch) - start)
            slices = {name: column.slice(start, count) for name, column in columns.items()}
            yield start, *self._in_order(self._from_columns(slices, start, count), leading)

    def empty(self, count: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Codes and labels of so many events without any value."""
        codes = np.full((count, len(self._predicates.dimensions)), MISSING, np.int32)
        return codes, np.zeros((count, max(1, len(self._ordered))), np.int64)

    def events(
        self, code: npt.NDArray[np.int32], label: npt.NDArray[np.int64], also: list[tuple[int, int]]
    ) -> Events:
        """Events of these codes and labels; `also` are pairs of a row and a predicate that holds there."""
        also.sort()
        counts = np.bincount([row for row, _ in also], minlength=len(code)) if also else np.zeros(len(code))
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        numbers = np.array([number for _, number in also], np.int32)
        return Events(code, label, self._label_column, first, numbers)

    def _from_rows(self, rows: list[FlatEvent]) -> Events:
        code, label = self.empty(len(rows))
        also: list[tuple[int, int]] = []
        for row, event in enumerate(rows):
            others: list[int] = []
            self.reader.read(event, memoryview(code[row]), memoryview(label[row]), others)
            also.extend((row, number) for number in others)
        return self.events(code, label, also)

    def _from_columns(self, columns: dict[str, pa.ChunkedArray], start: int, count: int) -> Events:
        """Events whose codes and labels lie column by column: so they are written fastest."""
        code = np.full((len(self._predicates.dimensions), count), MISSING, np.int32).T
        label = np.zeros((max(1, len(self._ordered)), count), np.int64).T
        also: list[tuple[int, int]] = []
        for name, chunks in columns.items():
            if pa.types.is_null(chunks.type):
                continue
            found = arrow_type(chunks.type)
            assert found is not None, "the batch has been checked"
            column = chunks.combine_chunks() if chunks.num_chunks != 1 else chunks.chunk(0)
            of_attribute = self._predicates.by_attribute[name]
            values = _Column(name, column, found, start)
            if found.kind in of_attribute:
                self._encode(of_attribute[found.kind], values, code, label, also)
            else:
                values.check()
            if None in of_attribute:
                anything = of_attribute[None]
                code[values.valid_rows(), anything.number] = UNLISTED
                self._see_tests(anything, values, also)
        return self.events(code, label, also)

    def _in_order(self, events: Events, leading: tuple[int, ...]) -> tuple[Events, Order | None]:
        """Events that were encoded column by column as kernels read them: row by row, in the order of memory."""
        order = order_of(events, leading)
        if order is None:
            code, label = np.ascontiguousarray(events.code), np.ascontiguousarray(events.label)
            return events._replace(code=code, label=label), None
        rows = np.empty(events.code.shape, np.int32)
        rows_in_order(events.code.T, order, rows)
        return events._replace(code=rows, label=np.ascontiguousarray(events.label[order])), order

    def _encode(
        self,
        dimension: Dimension,
        column: _Column,
        code: npt.NDArray[np.int32],
        label: npt.NDArray[np.int64],
        also: list[tuple[int, int]],
    ) -> None:
        numbers = column.numbers()
        if numbers is None:
            self._encode_distinct(dimension, column, code, label)
        else:
            lookup = self._lookups.get(dimension.number)
            if lookup is None or lookup.version != dimension.version:
                lookup = self._lookups[dimension.number] = _Lookup(dimension)
            if not lookup.encode(numbers, column.valid(), code[:, dimension.number]):
                self._encode_distinct(dimension, column, code, label)
            elif self._label_column[dimension.number] >= 0:
                self._label(dimension, column, numbers, label)
        self._see_tests(dimension, column, also)

    def _label(
        self,
        dimension: Dimension,
        column: _Column,
        numbers: Numbers,
        label: npt.NDArray[np.int64],
    ) -> None:
        into = label[:, self._label_column[dimension.number]]
        labels = dimension.order.labels_of_numbers(numbers)
        if labels is None:
            labels = np.array(
                [0 if value is None else dimension.order.label_of(value) for value in column.values()]
            )
        into[:] = labels

    def _encode_distinct(
        self,
        dimension: Dimension,
        column: _Column,
        code: npt.NDArray[np.int32],
        label: npt.NDArray[np.int64],
    ) -> None:
        """For values that are no machine numbers: each distinct one is looked up once."""
        places, distinct = column.distinct()
        codes = np.array([*(dimension.code_of(value) for value in distinct), MISSING], np.int32)
        code[:, dimension.number] = codes[places]
        at = self._label_column[dimension.number]
        if at >= 0:
            labels = np.array([*(dimension.order.label_of(value) for value in distinct), 0], np.int64)
            label[:, at] = labels[places]

    def _see_tests(self, dimension: Dimension, column: _Column, also: list[tuple[int, int]]) -> None:
        tests = self._predicates.tests_of(dimension.number)
        if not tests:
            return
        places, distinct = column.distinct()
        passed = [[number for number, test in tests.items() if test(value)] for value in distinct]
        for row, place in enumerate(places.tolist()):
            if place >= 0:
                also.extend((row, number) for number in passed[place])


class _Column:
    """A slice of an Arrow column, in the forms that encoding may ask for."""

    def __init__(self, name: str, column: pa.Array, type_: Type, start: int) -> None:
        self._name = name
        self._column = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        self._type = type_
        self._start = start
        self._distinct: tuple[npt.NDArray[np.int64], list[EventValue]] | None = None

    def valid(self) -> npt.NDArray[np.bool_]:
        """Which rows have a value; empty if all have."""
        if not self._column.null_count:
            return _ALL_VALID
        return np.asarray(self._column.is_valid().to_numpy(zero_copy_only=False))

    def valid_rows(self) -> slice | npt.NDArray[np.bool_]:
        """An index of the rows that have a value."""
        return self.valid() if self._column.null_count else slice(None)

    def numbers(self) -> Numbers | None:
        """The values as machine numbers that say all; None if they are of another kind."""
        column = self._column
        if self._type is Type.FLOAT and not pa.types.is_decimal(column.type):
            return self._floats(column)
        if self._type is Type.INT or self._type.kind in INTEGER_KINDS:
            return self._integers(column)
        return None

    def _floats(self, column: pa.Array) -> npt.NDArray[np.float64]:
        numbers = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        bad = np.isnan(numbers)
        if bad.any():
            row = self._start + int(np.flatnonzero(bad)[0])
            said = f"attribute {self._name!r}: nan is not a number that can be compared; leave it out"
            raise EventError(said, attribute=self._name, row=row)
        return np.asarray(numbers, np.float64)

    def _integers(self, column: pa.Array) -> Numbers:
        try:
            if pa.types.is_timestamp(column.type):
                column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
            elif pa.types.is_date(column.type):
                column = column.cast(pa.date32()).cast(pa.int32())
            elif pa.types.is_boolean(column.type):
                column = column.cast(pa.uint8())
            if column.null_count:
                column = pc.fill_null(column, 0)
            if column.type not in (pa.int64(), pa.int32()):
                column = column.cast(pa.int64())
        except pa.ArrowInvalid:
            self.values()  # finds the row at fault and says so
            raise
        numbers: Numbers = np.asarray(column.to_numpy(zero_copy_only=False))
        if self._type in CALENDAR and len(numbers):
            first, last = CALENDAR[self._type]
            if numbers.min() < first or numbers.max() > last:
                self.values()
        return numbers

    def check(self) -> None:
        """Refuse values that are none, though nobody asks what they are; strings and decimals always are some."""
        if self.numbers() is None and self._type in (Type.POINT, Type.BOX):
            self.values()

    def values(self) -> list[EventValue | None]:
        """The values as Python has them, each checked."""
        return python_values(self._name, pa.chunked_array([self._column]), self._start)

    def distinct(self) -> tuple[npt.NDArray[np.int64], list[EventValue]]:
        """For each row the place of its value among the distinct ones (-1: none), and those."""
        if self._distinct is None:
            self._distinct = self._find_distinct()
        return self._distinct

    def _find_distinct(self) -> tuple[npt.NDArray[np.int64], list[EventValue]]:
        if pa.types.is_nested(self._column.type):
            values = self.values()
            places = np.array([-1 if value is None else row for row, value in enumerate(values)], np.int64)
            return places, [values[0] if value is None else value for value in values]  # type: ignore[misc]
        encoded = self._column.dictionary_encode()
        places = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        if self._type is Type.STRING:
            return places, encoded.dictionary.to_pylist()
        return places, python_values(self._name, pa.chunked_array([encoded.dictionary]), self._start)  # type: ignore[return-value]


class _Lookup:
    """How the numbers of one dimension find their codes."""

    def __init__(self, dimension: Dimension) -> None:
        self.version = dimension.version
        pairs = [(_number_of(dimension, constant), code) for constant, code in dimension.codes.items()]
        integers = sorted((int(number), code) for number, code in pairs if number == int(number))
        floats = sorted((float(number), code) for number, code in pairs if float(number) == number)
        self._integers = np.array([number for number, _ in integers], np.int64)
        self._integer_codes = np.array([code for _, code in integers], np.int32)
        self._floats = np.array([number for number, _ in floats], np.float64)
        self._float_codes = np.array([code for _, code in floats], np.int32)
        self._lowest = integers[0][0] if integers else 0
        self._table = self._dense_table()
        # Rounded to a float, an int of an event cannot meet a constant strictly below 2^53 by mistake.
        self._searchable = all(abs(number) < 2**53 for number, _ in integers)

    def _dense_table(self) -> npt.NDArray[np.int32] | None:
        if not len(self._integers):
            return np.zeros(1, np.int32)
        span = int(self._integers[-1]) - int(self._integers[0]) + 1
        if span > DENSE:
            return None
        table = np.full(span, UNLISTED, np.int32)
        table[self._integers - self._lowest] = self._integer_codes
        return table

    def encode(
        self,
        numbers: Numbers,
        valid: npt.NDArray[np.bool_],
        code: npt.NDArray[np.int32],
    ) -> bool:
        """Write the codes of numbers; False if these numbers and constants need more care."""
        if numbers.dtype.kind == "i" and self._table is not None:
            codes_by_place(numbers, valid, self._lowest, self._table, code)  # type: ignore[arg-type]
            return True
        if numbers.dtype.kind == "i" and not self._searchable:
            return False
        values = numbers.astype(np.float64, copy=False)
        codes_by_search(values, valid, self._floats, self._float_codes, code)
        return True


def _number_of(dimension: Dimension, constant: object) -> int | float:
    if dimension.kind is Kind.NUMBER:
        return constant  # type: ignore[return-value]
    return operand_of(constant).integer  # type: ignore[arg-type]
