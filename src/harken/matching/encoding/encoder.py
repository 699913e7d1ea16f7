"""Events to codes and labels: whole Arrow columns without Python per row, or one event from a dictionary."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.matching.encoding.columns import MOST_ROOM, EventColumns, Full
from harken.matching.encoding.locality import NO_ORDER, gathered, in_order, most_together
from harken.matching.encoding.native import NativeSteps
from harken.matching.encoding.reading import RowReader, presence_dimensions
from harken.matching.events.batch import EventBatch
from harken.matching.events.columns import Column, Numbers
from harken.matching.kernels.encoding import codes_by_place, codes_by_search, rows_of
from harken.matching.kernels.layout import MISSING, UNLISTED, Events
from harken.matching.parallel.team import ALONE, Team
from harken.matching.predicates.dimensions import Dimension
from harken.matching.predicates.ordering import DENSE
from harken.matching.predicates.table import PredicateTable
from harken.matching.runs import ranges, starts
from harken.model.events import FlatEvent, flatten, is_changed_meanwhile
from harken.model.numbers import INT_MAX, INT_MIN, Exact
from harken.model.values import Kind
from harken.normal.operators import operand_of

BLOCK = 4_096
"""Events encoded together: their codes stay in the processor's cache until they are matched."""


Passed: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Rows, and for each a predicate that a test has found true there."""


class Encoder:
    """Encodes events for the predicates of one table. One may serve many threads."""

    def __init__(self, predicates: PredicateTable) -> None:
        self._predicates = predicates
        self._lookups: dict[int, _Lookup] = {}
        self.refresh()

    def refresh(self) -> None:
        """Take note that the predicates have changed. Must not run beside anything else."""
        self._own = threading.local()

    def reader(self, columns: EventColumns | None = None) -> RowReader:
        """What reads events one by one, into these columns if any are given."""
        return RowReader(self._predicates, EventColumns(self._predicates) if columns is None else columns)

    def blocks(
        self, batch: EventBatch, size: int = BLOCK, leading: tuple[int, ...] = (), team: Team = ALONE
    ) -> Iterator[tuple[int, Events]]:
        """A batch, block by block: the row it begins at, and its events, which are encoded `size` at a time.

        With `leading` dimensions blocks are larger, and events that are alike there are matched together. For a
        team they are larger too, and its threads encode parts of them.
        """
        large = bool(leading) or team.threads > 1
        if batch.flat_rows is None:
            blocks = self._blocks_of_columns(batch, size, large, team)
        else:
            blocks = self._blocks_of_rows(batch.flat_rows, size)
            blocks = gathered(blocks) if large else blocks
        for start, events in blocks:
            yield start, in_order(events, leading) if leading else events

    def _blocks_of_rows(self, rows: list[FlatEvent], size: int) -> Iterator[tuple[int, Events]]:
        for start in range(0, len(rows), size):
            yield from self._row_blocks(start, rows[start : start + size])

    def _blocks_of_columns(
        self, batch: EventBatch, size: int, large: bool, team: Team
    ) -> Iterator[tuple[int, Events]]:
        mentioned = self._predicates.attributes
        there = {name: each for name, each in batch.columns.items() if not pa.types.is_null(each.type)}
        chunks = {name: each for name, each in there.items() if mentioned.concern(name)}
        columns, start = EventColumns(self._predicates, 1 + self._dimensions_of(chunks)), 0
        while start < len(batch):
            most = max(size, most_together(columns.room, columns.label_room)) if large else size
            part = {name: each.slice(start, most) for name, each in chunks.items()}
            try:
                events, foreign = self._in_parts(part, min(most, len(batch) - start), columns, size, team)
            except Full:
                columns = columns.wider(0)
                continue
            batch.foreign.update(foreign)
            yield start, events
            start += len(events.code)

    def _in_parts(
        self, chunks: dict[str, pa.ChunkedArray], count: int, columns: EventColumns, size: int, team: Team
    ) -> tuple[Events, Counter[str]]:
        """Events of columns, so many encoded together, and their foreign values. Full without columns enough."""
        code, label = np.empty((count, columns.room), np.int32), np.empty((count, columns.label_room), np.int64)

        def encode(start: int) -> tuple[list[Passed], Counter[str]]:
            part = {name: Column(each.slice(start, size)) for name, each in chunks.items()}
            rows = min(size, count - start)
            also = self._encode_part(part, columns, code[start : start + rows], label[start : start + rows])
            foreign = {name: each.foreign for name, each in part.items() if each.foreign is not None}
            counts = Counter({name: int(np.count_nonzero(each)) for name, each in foreign.items()})
            return [(start + row, number) for row, number in also], counts

        found = team.map(encode, range(0, count, size))
        foreign = sum((counts for _, counts in found), Counter[str]())
        return self.events(code, label, [pair for also, _ in found for pair in also], columns), foreign

    def events(
        self,
        code: npt.NDArray[np.int32],
        label: npt.NDArray[np.int64],
        also: list[Passed],
        columns: EventColumns,
    ) -> Events:
        """Events of these codes and labels; `also` are rows, and a predicate that holds in each."""
        first, numbers = np.zeros(len(code) + 1, np.int64), np.zeros(0, np.int32)
        if also:
            rows, passed = (np.concatenate(each) for each in zip(*also, strict=True))
            numbers = passed[np.argsort(rows, kind="stable")].astype(np.int32)
            np.cumsum(np.bincount(rows, minlength=len(code)), out=first[1:])
        by_column = columns.column, columns.dimension, columns.label_column, columns.band
        return Events(code, label, *by_column, first, numbers, NO_ORDER)

    def _row_blocks(self, start: int, rows: list[FlatEvent]) -> Iterator[tuple[int, Events]]:
        """Events that came one by one, in several blocks if few of them have the same attributes."""
        known: NativeSteps | None = getattr(self._own, "steps", None)
        self._own.steps = None  # not for whatever interrupts this thread
        widest = max(map(len, rows))
        steps = NativeSteps(self.reader()) if known is None or not known.columns.suit(widest) else known
        events = None
        if _fits(rows, steps.columns):
            events, steps = self._widened(rows, steps, widest)
        if (events is not None or steps is known) and steps.columns.suit(widest):
            self._own.steps = steps
        if events is not None:
            yield start, events
            return
        half = len(rows) // 2
        yield from self._row_blocks(start, rows[:half])
        yield from self._row_blocks(start + half, rows[half:])

    def _widened(
        self, rows: list[FlatEvent], steps: NativeSteps, widest: int
    ) -> tuple[Events | None, NativeSteps]:
        """Events as they are read, with as many columns as it takes; None if few have the same attributes."""
        while (events := self._from_rows(rows, steps)) is None:
            wider = steps.columns.wider(widest)
            steps = NativeSteps(self.reader(wider))
            if len(rows) > 1 and not (wider.suit(widest) and _fits(rows, wider)):
                break
        return events, steps

    def _from_rows(self, rows: list[FlatEvent], steps: NativeSteps) -> Events | None:
        """Events as they are read; None if there are not columns enough."""
        columns = steps.columns
        code = np.empty((len(rows), columns.room), np.int32)
        label = np.zeros((len(rows), columns.label_room), np.int64)
        also: list[Passed] = []
        row = 0
        try:
            while (row := steps.read_rows(rows, row, code, label)) < len(rows):
                others = steps.read_row(rows[row], code[row], label[row])
                if others:
                    also.append((np.full(len(others), row), np.array(others, np.int64)))
                row += 1
        except Full:
            return None
        except RuntimeError as error:
            if not is_changed_meanwhile(error, RowReader.read):
                raise
            copies = [each.copy() for each in rows]  # all, as another thread may change more of them
            copies[row], _ = flatten(copies[row])
            return self._from_rows(copies, steps)
        steps.note(len(rows))
        return self.events(code, label, also, columns)

    def _dimensions_of(self, names: Iterable[str]) -> int:
        """How many dimensions attributes have, at most one kind and mere presence of each being met."""
        by_attribute = self._predicates.by_attribute
        return sum(min(2, len(by_attribute.get(name, ()))) for name in names)

    def _encode_part(
        self,
        part: dict[str, Column],
        columns: EventColumns,
        code: npt.NDArray[np.int32],
        label: npt.NDArray[np.int64],
    ) -> list[Passed]:
        """Write codes and labels, by row as kernels read them; the rows and predicates that tests have found true.

        They are encoded column by column first, so that they are written fastest, while they are in the cache.
        """
        into = np.full((columns.room, len(code)), MISSING, np.int32).T
        labels = np.zeros((columns.label_room, len(code)), np.int64).T
        block = _Block(columns, into, labels, [])
        for name, column in part.items():
            self._encode_column(name, column, block)
        rows_of(into.T, code)
        rows_of(labels.T, label)
        return block.also

    def _encode_column(self, name: str, column: Column, block: _Block) -> None:
        of_attribute = self._predicates.by_attribute.get(name, {})
        if column.type is not None and column.type.kind in of_attribute:
            self._encode(of_attribute[column.type.kind], column, block)
        if None in of_attribute:
            anything = of_attribute[None]
            block.code_of(anything)[column.there_rows] = UNLISTED
            self._see_tests(anything, column, block.also)
        if column.foreign is not None:
            for dimension in presence_dimensions(self._predicates, name, below_only=True):
                block.code_of(dimension)[column.foreign] = UNLISTED

    def _encode(self, dimension: Dimension, column: Column, block: _Block) -> None:
        numbers = column.numbers
        if numbers is None:
            self._encode_distinct(dimension, column, block)
        else:
            lookup = self._lookups.get(dimension.number)
            if lookup is None or lookup.dimension is not dimension or lookup.version != dimension.version:
                lookup = self._lookups[dimension.number] = _Lookup(dimension)
            lookup.encode(numbers, column.valid, block.code_of(dimension))
            if (into := block.label_of(dimension)) is not None:
                dimension.order.write_labels_of(numbers, into)
        self._see_tests(dimension, column, block.also)

    def _encode_distinct(self, dimension: Dimension, column: Column, block: _Block) -> None:
        """For values that are no machine numbers: each distinct one is looked up once."""
        places, distinct = column.distinct()
        codes = np.array([*(dimension.code_of(value) for value in distinct), MISSING], np.int32)
        block.code_of(dimension)[:] = codes[places]
        into = block.label_of(dimension)
        if into is not None:
            labels = np.array([*(dimension.order.label_of(value) for value in distinct), 0], np.int64)
            into[:] = labels[places]

    def _see_tests(self, dimension: Dimension, column: Column, also: list[Passed]) -> None:
        tests = self._predicates.tests_of(dimension.number)
        if tests is not None:
            places, distinct = column.distinct()
            also.append(_in_rows(places, *tests.passed(distinct), len(distinct)))


class _Block(NamedTuple):
    """Events that are being encoded, column by column."""

    columns: EventColumns
    code: npt.NDArray[np.int32]
    label: npt.NDArray[np.int64]
    also: list[Passed]

    def code_of(self, dimension: Dimension) -> npt.NDArray[np.int32]:
        """Where the codes of a dimension go."""
        return self.code[:, self.columns.of(dimension)]

    def label_of(self, dimension: Dimension) -> npt.NDArray[np.int64] | None:
        """Where its labels go, if anybody asks for them."""
        at = self.columns.label_column[self.columns.of(dimension)]
        return self.label[:, at] if at >= 0 else None


class _Lookup:
    """How the numbers of one dimension find their codes."""

    def __init__(self, dimension: Dimension) -> None:
        self.dimension, self.version = dimension, dimension.version
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
    ) -> None:
        """Write the codes of numbers."""
        if numbers.dtype.kind == "f":
            codes_by_search(numbers, valid, self._floats, self._float_codes, code)  # type: ignore[arg-type]
        elif self._table is not None:
            codes_by_place(numbers, valid, self._lowest, self._table, code)  # type: ignore[arg-type]
        else:
            values = numbers.astype(np.int64, copy=False)
            codes_by_search(values, valid, self._integers, self._integer_codes, code)


def _fits(rows: list[FlatEvent], columns: EventColumns) -> bool:
    """Whether events take no more memory than the most that are encoded together, with columns that are kept."""
    return len(rows) == 1 or len(rows) * columns.room <= BLOCK * MOST_ROOM


def _in_rows(
    places: npt.NDArray[np.int64], passed: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64], distinct: int
) -> Passed:
    """The rows whose values satisfy predicates, which are known by the places of these among the distinct ones."""
    numbers = numbers[np.argsort(passed, kind="stable")]
    sizes = np.bincount(passed, minlength=distinct)
    rows = np.flatnonzero(places >= 0)
    its_sizes = sizes[places[rows]]
    entries = ranges(starts(sizes)[places[rows]], its_sizes)
    return np.repeat(rows, its_sizes), numbers[entries]


def _number_of(dimension: Dimension, constant: object) -> int | float | Exact:
    if dimension.kind is Kind.NUMBER:
        return constant  # type: ignore[return-value]
    return operand_of(constant).integer  # type: ignore[arg-type]
