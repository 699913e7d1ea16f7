"""Events to codes and labels: whole Arrow columns without Python per row, or one event from a dictionary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.matching.columns import Column
from harken.matching.dimensions import Dimension
from harken.matching.events import EventBatch
from harken.matching.kernels.encoding import codes_by_place, codes_by_search, rows_in_order
from harken.matching.kernels.layout import MISSING, UNLISTED, Events
from harken.matching.locality import Order, order_of
from harken.matching.ordering import Numbers
from harken.matching.predicates import PredicateTable
from harken.matching.reading import RowReader, presence_dimensions
from harken.model.events import FlatEvent
from harken.model.numbers import INT_MAX, INT_MIN, Exact
from harken.model.values import Kind
from harken.normal.operators import operand_of

BLOCK = 4_096
"""Events encoded together: their codes stay in the processor's cache until they are matched."""

DENSE = 1 << 16
"""Integer constants within a range of this size are looked up by place rather than searched."""


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
        mentioned = self._predicates.attributes
        columns = {name: batch.columns[name] for name in batch.columns if mentioned.concern(name)}
        for start in range(0, len(batch), size):
            count = min(size, len(batch) - start)
            slices = {name: column.slice(start, count) for name, column in columns.items()}
            yield start, *self._in_order(self._from_columns(slices, count, batch.foreign), leading)

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

    def _from_columns(self, columns: dict[str, pa.ChunkedArray], count: int, foreign: Counter[str]) -> Events:
        """Events whose codes and labels lie column by column: so they are written fastest."""
        code = np.full((len(self._predicates.dimensions), count), MISSING, np.int32).T
        label = np.zeros((max(1, len(self._ordered)), count), np.int64).T
        also: list[tuple[int, int]] = []
        for name, chunks in columns.items():
            if pa.types.is_null(chunks.type):
                continue
            column = Column(chunks)
            of_attribute = self._predicates.by_attribute.get(name, {})
            if column.type is not None and column.type.kind in of_attribute:
                self._encode(of_attribute[column.type.kind], column, code, label, also)
            if None in of_attribute:
                anything = of_attribute[None]
                code[column.there_rows, anything.number] = UNLISTED
                self._see_tests(anything, column, also)
            if column.foreign is not None:
                foreign[name] += int(np.count_nonzero(column.foreign))
                for dimension in presence_dimensions(self._predicates, name, below_only=True):
                    code[column.foreign, dimension.number] = UNLISTED
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
        column: Column,
        code: npt.NDArray[np.int32],
        label: npt.NDArray[np.int64],
        also: list[tuple[int, int]],
    ) -> None:
        numbers = column.numbers
        if numbers is None:
            self._encode_distinct(dimension, column, code, label)
        else:
            lookup = self._lookups.get(dimension.number)
            if lookup is None or lookup.version != dimension.version:
                lookup = self._lookups[dimension.number] = _Lookup(dimension)
            if not lookup.encode(numbers, column.valid, code[:, dimension.number]):
                self._encode_distinct(dimension, column, code, label)
            elif self._label_column[dimension.number] >= 0:
                self._label(dimension, column, numbers, label)
        self._see_tests(dimension, column, also)

    def _label(
        self,
        dimension: Dimension,
        column: Column,
        numbers: Numbers,
        label: npt.NDArray[np.int64],
    ) -> None:
        into = label[:, self._label_column[dimension.number]]
        labels = dimension.order.labels_of_numbers(numbers)
        if labels is None:
            places, distinct = column.distinct()
            labels = np.array([*(dimension.order.label_of(value) for value in distinct), 0], np.int64)[places]
        into[:] = labels

    def _encode_distinct(
        self,
        dimension: Dimension,
        column: Column,
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

    def _see_tests(self, dimension: Dimension, column: Column, also: list[tuple[int, int]]) -> None:
        tests = self._predicates.tests_of(dimension.number)
        if not tests:
            return
        places, distinct = column.distinct()
        passed = [[number for number, test in tests.items() if test(value)] for value in distinct]
        for row, place in enumerate(places.tolist()):
            if place >= 0:
                also.extend((row, number) for number in passed[place])


class _Lookup:
    """How the numbers of one dimension find their codes."""

    def __init__(self, dimension: Dimension) -> None:
        self.version = dimension.version
        pairs = [(_number_of(dimension, constant), code) for constant, code in dimension.codes.items()]
        # Whole numbers past 64 bits meet no integer of an event.
        within = [(number, code) for number, code in pairs if INT_MIN <= number <= INT_MAX]
        integers = sorted((int(number), code) for number, code in within if number == int(number))
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


def _number_of(dimension: Dimension, constant: object) -> int | float | Exact:
    if dimension.kind is Kind.NUMBER:
        return constant  # type: ignore[return-value]
    return operand_of(constant).integer  # type: ignore[arg-type]
