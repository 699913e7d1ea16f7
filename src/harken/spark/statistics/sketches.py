"""Small summaries of many events, which add up: counts of the most frequent values, and a uniform sample.

Every task makes one of its own events, and what is made of several is a summary of all their events, with the same
bounds on its size and error, whatever the order (Agarwal et al., "Mergeable Summaries", PODS 2012). Nothing here
knows Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

SLACK = 4
"""Counters kept while counting, per counter that is handed on: they make the error smaller, for little memory."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What is asked about events, the same for all tasks."""

    counted: pa.Schema
    """Attributes whose values are counted and sampled, in this form."""
    noted: tuple[str, ...]
    """Attributes of which only the presence is counted. They come last, as booleans."""
    values: int
    """Counters per attribute."""
    sample: int
    """Events in the sample."""
    seed: int

    @property
    def sampled(self) -> int:
        """Events to sample; without any columns there is nothing to be sampled."""
        return self.sample if len(self.counted) else 0


# ---------------------------------------------------------------- counts


@dataclass(frozen=True, slots=True)
class Sketch:
    """Counts of the most frequent values: none is above the truth, nor further below it than `undercount`.

    A value without a counter has a count of 0. This is the summary of Misra and Gries in its mergeable form
    (Agarwal et al., section 3.1). With at most k counters kept, `undercount` is at most 1/(k + 1) of all that the
    counters have lost: what was counted in all, less what they hold.
    """

    values: pa.Array
    """Distinct, without nulls."""
    counts: npt.NDArray[np.int64]
    undercount: int = 0

    @classmethod
    def of(cls, column: pa.Array) -> Sketch:
        """The counts of all values of a column, exactly."""
        counted = column.drop_null().value_counts()
        return cls(counted.field("values"), counted.field("counts").to_numpy())

    def joined(self, other: Sketch) -> Sketch:
        """The counts of both together, with as many counters as they need. Linear in these."""
        coded = pa.concat_arrays([self.values, other.values]).dictionary_encode()
        counts = np.zeros(len(coded.dictionary), np.int64)
        np.add.at(counts, coded.indices.to_numpy(), np.concatenate([self.counts, other.counts]))
        return Sketch(coded.dictionary, counts, self.undercount + other.undercount)

    def pruned(self, limit: int) -> Sketch:
        """With at most so many counters: what the first superfluous one holds is taken from all."""
        if len(self.counts) <= limit:
            return self
        taken = int(np.partition(self.counts, -limit - 1)[-limit - 1])
        kept = np.flatnonzero(self.counts > taken)
        return Sketch(self.values.take(pa.array(kept)), self.counts[kept] - taken, self.undercount + taken)


# ---------------------------------------------------------------- the sample


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows with the random keys by which they were drawn, ascending."""

    keys: npt.NDArray[np.float64]
    rows: pa.Table

    @classmethod
    def joined(cls, samples: Sequence[Sample], size: int) -> Sample:
        """Of all rows, those with the smallest keys: drawn uniformly, if each of the samples is of that size."""
        keys = np.concatenate([sample.keys for sample in samples])
        order = np.argsort(keys, kind="stable")[:size]
        rows = pa.concat_tables([sample.rows for sample in samples])
        return cls(keys[order], rows.take(pa.array(order)).combine_chunks())


class Sampler:
    """Draws a uniform sample from rows of which nobody knows how many will come.

    Each row gets a random key, and the rows with the smallest keys stay; so samples of parts make a sample of the
    whole, however large each part was.
    """

    def __init__(self, schema: pa.Schema, size: int, seed: Sequence[int]) -> None:
        self._size = size
        self._chance = np.random.default_rng(seed)
        self._kept = [Sample(np.zeros(0), schema.empty_table())]
        self._cut = 1.0 if size else 0.0

    def add(self, batch: pa.RecordBatch) -> None:
        """Offer rows. Once the sample is full, few are copied."""
        keys = self._chance.random(batch.num_rows)
        below = np.flatnonzero(keys < self._cut)
        below = below[np.argsort(keys[below])[: self._size]]
        if len(below):
            self._kept.append(Sample(keys[below], pa.Table.from_batches([batch.take(pa.array(below))])))
        if sum(len(sample.keys) for sample in self._kept) > 2 * self._size:
            self.sample()

    def sample(self) -> Sample:
        """The sample of all rows that have come so far."""
        joined = Sample.joined(self._kept, self._size)
        self._kept = [joined]
        if self._size and len(joined.keys) == self._size:
            self._cut = float(joined.keys[-1])
        return joined


# ---------------------------------------------------------------- both, for all attributes


@dataclass(frozen=True, slots=True)
class Summary:
    """What is known of some of the events."""

    events: int
    present: Mapping[str, int]
    """By attribute, the events that have it."""
    sketches: Mapping[str, Sketch]
    sample: Sample

    @classmethod
    def empty(cls, survey: Survey) -> Summary:
        """What is known of no events."""
        return summarise((), survey, 0)

    def joined(self, other: Summary, survey: Survey) -> Summary:
        """What is known of the events of both."""
        return Summary(
            self.events + other.events,
            {name: count + other.present[name] for name, count in self.present.items()},
            {
                name: sketch.joined(other.sketches[name]).pruned(survey.values)
                for name, sketch in self.sketches.items()
            },
            Sample.joined([self.sample, other.sample], survey.sampled),
        )

    def to_bytes(self) -> bytes:
        """As it travels and is saved: two Arrow streams, of the counts and of the sample."""
        lost = {name: sketch.undercount for name, sketch in self.sketches.items()}
        facts = {"events": self.events, "present": dict(self.present), "undercount": lost}
        counts = pa.table({name: _as_list(sketch) for name, sketch in self.sketches.items()})
        sink = pa.BufferOutputStream()
        for table in (
            counts.replace_schema_metadata({_FACTS: json.dumps(facts)}),
            self.sample.rows.append_column(_KEY, pa.array(self.sample.keys, pa.float64())),
        ):
            with pa.ipc.new_stream(sink, table.schema, options=_PACKED) as stream:
                stream.write_table(table)
        return bytes(sink.getvalue())

    @classmethod
    def from_bytes(cls, written: bytes) -> Summary:
        """What `to_bytes` wrote."""
        source = pa.BufferReader(written)
        counts, sample = (pa.ipc.open_stream(source).read_all() for _ in range(2))
        facts = json.loads(counts.schema.metadata[_FACTS.encode()])
        lost = facts["undercount"]
        sketches = {name: _from_list(counts.column(name), lost[name]) for name in counts.column_names}
        at = sample.num_columns - 1
        drawn = Sample(sample.column(at).to_numpy(), sample.remove_column(at))
        return cls(facts["events"], facts["present"], sketches, drawn)


_FACTS, _KEY = "facts", "(key)"
_PACKED = pa.ipc.IpcWriteOptions(compression="zstd")


def _as_list(sketch: Sketch) -> pa.Array:
    """A sketch as one row, so that those of all attributes make one table."""
    counters = pa.StructArray.from_arrays([sketch.values, pa.array(sketch.counts)], ["value", "count"])
    return pa.ListArray.from_arrays(pa.array([0, len(counters)], pa.int32()), counters)


def _from_list(column: pa.ChunkedArray, undercount: int) -> Sketch:
    counters = column.combine_chunks().flatten()
    return Sketch(counters.field("value"), counters.field("count").to_numpy(), undercount)


def summarise(batches: Iterable[pa.RecordBatch], survey: Survey, part: int) -> Summary:
    """What is known of the events in some batches; each `part` of all events draws its sample differently.

    Costs a hash of every value. Memory is that of the sample, of the counters and of one batch.
    """
    events, limit = 0, SLACK * survey.values
    present = dict.fromkeys([*survey.counted.names, *survey.noted], 0)
    sketches = {field.name: Sketch.of(pa.nulls(0, field.type)) for field in survey.counted}
    sampler = Sampler(survey.counted, survey.sampled, [survey.seed, part])
    for batch in batches:
        events += batch.num_rows
        columns = []
        for field, column in zip(survey.counted, batch.columns, strict=False):
            columns.append(comparable(column, field.type))
            present[field.name] += len(column) - column.null_count
            # Pruned at once, so that a column of keys costs little more than one of few values.
            fresh = Sketch.of(columns[-1]).pruned(limit)
            sketches[field.name] = sketches[field.name].joined(fresh).pruned(limit)
        for name, column in zip(survey.noted, batch.columns[len(columns) :], strict=False):
            present[name] += column.true_count
        if columns:
            sampler.add(pa.RecordBatch.from_arrays(columns, schema=survey.counted))
    handed_on = {name: sketch.pruned(survey.values) for name, sketch in sketches.items()}
    return Summary(events, present, handed_on, sampler.sample())


# ---------------------------------------------------------------- values


def comparable(column: pa.Array, form: pa.DataType) -> pa.Array:
    """A column in a form, with null for what no event may have: NaN, broken text, years that Python has not.

    Timestamps without a zone are read as UTC, and both zeros are one.
    """
    if column.type != form:
        column = column.cast(form)
    if pa.types.is_floating(form):
        column = pc.add(column, pa.scalar(0.0, form))
        return pc.if_else(pc.is_nan(column), pa.scalar(None, form), column)
    if pa.types.is_temporal(form):
        low, high = (pa.scalar(bound, form) for bound in _bounds(form))
        inside = pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high))
        return pc.if_else(inside, column, pa.scalar(None, form))
    return _readable(column) if pa.types.is_string(form) else column


def _bounds(form: pa.DataType) -> tuple[date, date]:
    if pa.types.is_date(form):
        return date.min, date.max
    return datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def _readable(column: pa.Array) -> pa.Array:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array([_text(each) for each in column.cast(pa.binary()).to_pylist()], column.type)
    return column


def _text(written: bytes | None) -> str | None:
    try:
        return None if written is None else written.decode()
    except UnicodeDecodeError:
        return None
