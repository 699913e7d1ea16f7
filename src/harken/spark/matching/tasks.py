"""What a task does with its batches of events: Arrow in, Arrow out, and no Python per row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from harken.errors import EventError
from harken.matching.events.batch import column_faults, leaf_columns
from harken.model.foreign import parents
from harken.model.schema import Schema
from harken.spark.events.columns import Rows, Transport
from harken.spark.index.pacing import Found
from harken.spark.index.worker_cache import LONG_IDS, Parts, open_index, open_router, open_shard

How: TypeAlias = Literal["pairs", "grouped"]

ROWS = 32_768
"""Events matched together, at least, where batches are smaller."""

MOST_BYTES = 64 << 20
"""Bytes of rows that go out together: Arrow has texts of two gigabytes at most, and workers little memory."""

REJECT_COLUMNS = ("event", "attribute", "reason", "value")
"""What is told of events that cannot be matched."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a matching task has to know."""

    parts: Parts
    transport: Transport
    at: datetime
    """The moment at which subscriptions must be valid, the same for all tasks."""
    how: How
    numbered: bool
    """Whether events have no id of their own and are numbered; otherwise it is the first column handed through."""
    copies: tuple[int, ...] = ()
    """How many partitions share the events of each shard, where events go to shards; none if it is empty."""
    schema: Schema | None = None
    """What events are held to, before they are matched."""
    collect: bool = False
    """Whether events at fault are left out; otherwise the first fails the job."""
    named: bool = False
    """Whether the first column handed through is the id of events."""
    prefix: str | None = None
    """What comes before the numbers of events, which are strings then."""

    def to_match(self, table: pa.Table) -> Iterator[tuple[Rows | None, pa.Table]]:
        """The events to match, in parts in which every column is of one type, and which rows they are."""
        for rows, events in self.transport.parts(table):
            faults = {} if self.schema is None else column_faults(leaf_columns(events), self.schema)
            if not faults:
                yield rows, events
                continue
            if not self.collect:
                row = min(faults)
                raise self._told(faults[row], events, self._id(table, row if rows is None else int(rows[row])))
            kept = np.delete(np.arange(events.num_rows), list(faults))
            yield kept if rows is None else rows[kept], events.take(pa.array(kept))

    def faults(self, table: pa.Table) -> Iterator[tuple[int, EventError]]:
        """The rows of events that are at fault, and why."""
        if self.schema is None:
            return
        for rows, events in self.transport.parts(table):
            for row, error in column_faults(leaf_columns(events), self.schema).items():
                yield row if rows is None else int(rows[row]), self._told(error, events)

    def _id(self, table: pa.Table, row: int) -> str:
        """What an event is called in the answer."""
        said = self.transport.handed_through(table)[0] if self.named else self._names(table)
        try:
            return str(said[row].as_py())
        except (OverflowError, ValueError):  # dates and times go further than Python's
            return str(said.slice(row, 1).cast(pa.string())[0].as_py())

    def _told(self, error: EventError, events: pa.Table, event: str | None = None) -> EventError:
        """A fault of an event, in Spark's words where its value has travelled in another form."""
        named = str(error.attribute)
        at = next((name for name in (named, *parents(named)) if name in self.transport.foreign), None)
        if at is None or self.schema is None:
            error.event = event
            return error
        said = f"attribute {named!r} is declared {self.schema[named].value}, found {self.transport.foreign[at]}"
        value = events.column(at)[error.row].as_py().decode()
        return EventError(said, attribute=named, row=error.row, value=value, event=event)

    def columns(self, table: pa.Table) -> list[pa.ChunkedArray]:
        """The columns of events that go into the answer: their ids, and what is kept."""
        through = self.transport.handed_through(table)
        return [self._names(table), *through] if self.numbered else through

    def _names(self, table: pa.Table) -> pa.ChunkedArray:
        """What events are called: by their numbers, behind the prefix if there is one."""
        numbers = table.column(len(self.transport.attributes))
        if self.prefix is None:
            return numbers
        return pc.binary_join_element_wise(self.prefix, numbers.cast(pa.string()), "")


def match_events(request: Request, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Match batches with the whole index, shard by shard, where they are."""
    index = open_index(request.parts)
    for table in _joined(batches):
        columns = request.columns(table)
        for part, events in request.to_match(table):
            for rows, ids in index.matches(events, request.at):
                yield from _answer(request, (rows if part is None else part[rows], ids), columns)


def reject_events(request: Request, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The events of batches that cannot be matched: which, the attribute at fault, the reason and the value."""
    for table in _joined(batches):
        event = request.columns(table)[0]
        faults = sorted(request.faults(table), key=lambda fault: fault[0])
        if faults:
            told = [[error.attribute for _, error in faults], [error.reason for _, error in faults]]
            shown = [error.value for _, error in faults]
            columns = [event.take(pa.array([row for row, _ in faults])), *told, shown]
            arrays = [columns[0], *(pa.array(each, pa.string()) for each in columns[1:])]
            yield from pa.Table.from_arrays(arrays, REJECT_COLUMNS).to_batches()


def route_events(request: Request, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pack batches for the shards they can concern: the partition to go to, and the events as Arrow's bytes."""
    router = open_router(request.parts.division)
    base = np.concatenate([[0], np.cumsum(request.copies)])
    turn = [_partition()] * len(request.copies)
    for table in _joined(batches):
        through = request.columns(table)
        for part, events in request.to_match(table):
            packet = pa.Table.from_arrays(
                [*events.columns, *(each if part is None else each.take(pa.array(part)) for each in through)],
                [*(f"a{name}" for name in events.column_names), *(f"o{at}" for at in range(_through(request)))],
            )
            for shard, rows in router.route(events):
                if not request.copies[shard]:
                    continue
                turn[shard] += 1
                target = int(base[shard]) + turn[shard] % request.copies[shard]
                yield _packed(target, packet if rows is None else packet.take(pa.array(rows)))


def match_packets(request: Request, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Match packets that have come to their shards."""
    ends = np.cumsum(request.copies)
    for batch in batches:
        for target, packet in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
            shard = open_shard(request.parts, int(np.searchsorted(ends, target, side="right")))
            table = pa.ipc.open_stream(packet.as_buffer()).read_all()
            width = table.num_columns - _through(request)
            names = [name[1:] for name in table.column_names[:width]]
            events = table.select(range(width)).rename_columns(names)
            for found in shard.matches(events, request.at):
                yield from _answer(request, found, table.columns[width:])


def _through(request: Request) -> int:
    return request.transport.others + request.numbered


def _joined(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches joined to tables that are worth matching."""
    waiting: list[pa.RecordBatch] = []
    rows = taken = 0
    for batch in batches:
        waiting.append(batch)
        rows, taken = rows + batch.num_rows, taken + batch.nbytes
        if rows >= ROWS or (rows and taken >= MOST_BYTES):
            yield pa.Table.from_batches(waiting)
            waiting, rows, taken = [], 0, 0
    if rows:
        yield pa.Table.from_batches(waiting)


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _packed(target: int, table: pa.Table) -> pa.RecordBatch:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.RecordBatch.from_arrays(
        [pa.array([target], pa.int32()), pa.array([sink.getvalue().to_pybytes()], pa.binary())],
        ["target", "packet"],
    )


def _answer(request: Request, found: Found, columns: list[pa.ChunkedArray]) -> Iterator[pa.RecordBatch]:
    """Matches as they go out: pairs, or one row per event with all its subscriptions."""
    rows, ids = found
    if not len(rows):
        return
    if request.how == "grouped":
        rows, ids = _grouped(rows, ids)
    said = "subscription" if request.how == "pairs" else "subscriptions"
    names = ["event", said, *(f"k{at}" for at in range(len(columns) - 1))]
    together = max(1, MOST_BYTES // (_widest(ids) + sum(map(_widest, columns))))
    for first in range(0, len(rows), together):
        taken = pa.array(rows[first : first + together])
        event, *kept = (column.take(taken) for column in columns)
        told = _as_spark_has(ids.slice(first, together))
        yield from pa.Table.from_arrays([event, told, *kept], names).to_batches()


def _as_spark_has(ids: pa.Array) -> pa.Array:
    """Some ids, or lists of them: those of some events may be more text than an array of Spark's can hold."""
    if pa.types.is_list(ids.type):
        return ids if ids.type.value_type != LONG_IDS else ids.cast(pa.list_(pa.string()))
    return ids if ids.type != LONG_IDS else ids.cast(pa.string())


def _widest(column: pa.Array | pa.ChunkedArray) -> int:
    """Bytes that no value of a column exceeds."""
    kind = column.type
    if isinstance(column, pa.ChunkedArray):
        return max(map(_widest, column.chunks), default=1)
    if isinstance(column, pa.ExtensionArray):
        return _widest(column.storage)
    if pa.types.is_struct(kind):
        return 1 + sum(map(_widest, column.flatten()))
    if pa.types.is_map(kind):
        longest = np.diff(column.offsets.to_numpy()).max(initial=0)
        return 8 + int(longest) * (_widest(column.keys) + _widest(column.items))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return 8 + int(pc.max(pc.list_value_length(column)).as_py() or 0) * _widest(column.flatten())
    if any(is_kind(kind) for is_kind in _TEXTS):
        return 8 + int(pc.max(pc.binary_length(column)).as_py() or 0)
    return 1 + int(column.nbytes) // max(len(column), 1)


_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)


def _grouped(rows: npt.NDArray[np.int64], ids: pa.Array) -> tuple[npt.NDArray[np.int64], pa.ListArray]:
    distinct, first = np.unique(rows, return_index=True)
    offsets = np.append(first, len(rows)).astype(np.int32)
    return distinct, pa.ListArray.from_arrays(pa.array(offsets), ids)
