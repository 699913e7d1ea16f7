"""What events look like, found by a Spark job: which attributes and values they have how often, and a sample.

An index arranged for the events to come does less work per event. The sample teaches its matcher
(`Engine.learn`), from which come Fabret et al.'s clusters and the choice of access paths; the value counts divide
the subscriptions over shards.
"""

from __future__ import annotations

import json
import os
import re
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from harken.errors import EventError, IndexFormatError, closest
from harken.model.values import checked_value
from harken.spark.events.columns import Leaf, leaves, type_of
from harken.spark.runtime.mapping import map_batches
from harken.spark.statistics.dependence import dependence
from harken.spark.statistics.sketches import Sample, Sketch, Summary, Survey, summarise

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MERGERS = 4
"""Tasks that join what all others found, so that the driver receives little however many there were."""

SHOWN = 40
"""Attributes in the printed form."""

Scalar: TypeAlias = int | float | str | bool | date | Decimal
"""A value as Arrow gives it to Python; a timestamp is a `datetime` in UTC, which is a `date` to Python."""


@dataclass(frozen=True, slots=True)
class AttributeStatistics:
    """What is known of one attribute."""

    present: int
    """Events that have it."""
    counts: Mapping[Scalar, int]
    """Events by value, the most frequent first: never above the truth, and below it by at most `undercount`."""
    undercount: int
    """How many events any value, counted or not, may have beyond its count: 0 if the counts are exact."""

    def estimate(self, value: Scalar) -> float:
        """About how many events have a value. Its cost does not depend on how many values there are.

        What a frequent value lacks is nearly all of `undercount`, since that was taken from every value at once;
        together the estimates of counted values never exceed the events. Any other value is taken to have half.
        """
        count = self.counts.get(value)
        return self.undercount / 2 if count is None else count + self.undercount


@dataclass(frozen=True, slots=True)
class EventStatistics:
    """What some events look like, for events like these.

    Floats that are NaN, texts that are not Unicode and dates outside the years 1 to 9999 count as present but have
    no counts, and are missing from the sample: matching refuses them. Safe to share between threads.
    """

    events: int
    attributes: Mapping[str, AttributeStatistics]
    sample: pa.Table
    """Events drawn uniformly, in random order: one column per attribute, none for points and boxes."""

    def presence(self, attribute: str) -> float:
        """What part of the events has an attribute."""
        return self._of(attribute).present / max(1, self.events)

    def frequency(self, attribute: str, value: Scalar) -> float:
        """About what part of the events has a value; exactly, if all values of the attribute have been counted."""
        known = self._of(attribute)
        found: Scalar = checked_value(value)  # type: ignore[assignment]  # points and boxes have no counts anyway
        return known.estimate(found) / max(1, self.events)

    def frequencies(self) -> dict[str, dict[int | str, float]]:
        """By attribute, the counted integers and texts, and about what part of the events has each."""
        return {
            name: {
                value: known.estimate(value) / max(1, self.events)
                for value in known.counts
                if isinstance(value, int | str) and not isinstance(value, bool)
            }
            for name, known in self.attributes.items()
        }

    def dependence(self, first: str, second: str) -> float:
        """How much one attribute tells of the other, from 0, nothing, to 1, everything: Cramér's V of the sample.

        A missing attribute counts as a value. Costs a sort of the sample. EventError for points and boxes, which
        are not in it.
        """
        return dependence(self._sampled(first), self._sampled(second))

    def sample_bytes(self) -> bytes:
        """The sample as an Arrow stream."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.sample.schema) as stream:
            stream.write_table(self.sample)
        return bytes(sink.getvalue().to_pybytes())

    def save(self, path: str | Path) -> None:
        """Write all of it into one file, in place of what was there."""
        body = self._summary().to_bytes()
        header = {"format": _FORMAT, "version": _VERSION, "crc32": zlib.crc32(body)}
        with _replacing(Path(path)) as draft:
            draft.write_bytes(json.dumps(header).encode() + b"\n" + body)

    @classmethod
    def load(cls, path: str | Path) -> EventStatistics:
        """What `save` wrote; IndexFormatError if it is damaged or something else."""
        try:
            first, _, body = Path(path).read_bytes().partition(b"\n")
            header = json.loads(first)
            if header["format"] != _FORMAT or header["version"] != _VERSION:
                raise IndexFormatError(f"{path} was saved in another format or by another version of Harken")
            if header["crc32"] != zlib.crc32(body):
                raise IndexFormatError(f"{path} is damaged: its checksum is not what was written")
            return cls.of(Summary.from_bytes(body))
        except (ValueError, TypeError, LookupError, RecursionError, pa.ArrowException, OSError) as error:
            if isinstance(error, IndexFormatError):
                raise
            raise IndexFormatError(f"{path} does not hold event statistics: {error}") from error

    @classmethod
    def of(cls, summary: Summary) -> EventStatistics:
        """The statistics that a summary of all events makes."""
        known = {name: _known(count, summary.sketches.get(name)) for name, count in summary.present.items()}
        return cls(summary.events, known, summary.sample.rows)

    def __str__(self) -> str:
        size, width = len(self.attributes), max([9, *map(len, self.attributes)])
        lines = [f"{self.events:,} events, {size:,} attributes, a sample of {self.sample.num_rows:,}"]
        lines.append(f"{'attribute':<{width}}  present  values  most frequent")
        for name, known in list(self.attributes.items())[:SHOWN]:
            some = [f"{str(each)[:24]} {self.frequency(name, each):.1%}" for each in list(known.counts)[:3]]
            number = f"{len(known.counts):,}" if not known.undercount else "many"
            line = f"{name:<{width}}  {self.presence(name):7.1%}  {number:>6}  {', '.join(some)}"
            lines.append(line.rstrip())
        return "\n".join(lines if size <= SHOWN else [*lines, f"and {size - SHOWN:,} more"])

    def _of(self, attribute: str) -> AttributeStatistics:
        if attribute not in self.attributes:
            raise _unknown(attribute, self.attributes)
        return self.attributes[attribute]

    def _sampled(self, attribute: str) -> pa.ChunkedArray:
        self._of(attribute)
        if attribute not in self.sample.column_names:
            raise EventError(f"of attribute {attribute!r} only the presence is known", attribute=attribute)
        return self.sample.column(attribute)

    def _summary(self) -> Summary:
        """What `of` makes the same statistics of."""
        sketches = {}
        for field in self.sample.schema:
            known = self.attributes[field.name]
            counts = np.fromiter(known.counts.values(), np.int64, len(known.counts))
            sketches[field.name] = Sketch(pa.array(list(known.counts), field.type), counts, known.undercount)
        present = {name: known.present for name, known in self.attributes.items()}
        drawn = Sample(np.arange(self.sample.num_rows, dtype=np.float64), self.sample)
        return Summary(self.events, present, sketches, drawn)


_FORMAT, _VERSION = "harken-statistics", 1


def event_statistics(
    events: DataFrame,
    attributes: Iterable[str] | None = None,
    *,
    values: int = 1_000,
    sample: int = 20_000,
    seed: int = 0,
) -> EventStatistics:
    """What the events of a DataFrame look like: all attributes, or those named, dotted in nested structs.

    Runs at once, as one job that reads the events once. `values` bounds the counters kept per attribute: where
    there are more values, counts fall short by less than 1/values of the events. `sample` is the number of events
    drawn, by `seed`: the same ones if partitions are the same. Name the attributes if events carry large texts
    that no subscription asks about. EventError if one is not there or of a type the language has not.
    """
    if values < 1 or sample < 0 or seed < 0:
        raise ValueError(f"values is positive, sample and seed not negative; found {values}, {sample}, {seed}")
    from pyspark.sql import functions

    chosen = _chosen(leaves(events.schema), attributes)
    counted = {name: leaf for name, leaf in chosen.items() if type_of(leaf.kind) is not None}
    noted = {name: leaf for name, leaf in chosen.items() if name not in counted}
    forms = pa.schema([(name, _form(leaf.kind)) for name, leaf in counted.items()])
    survey = Survey(forms, tuple(noted), values, sample, seed)
    columns = [leaf.column for leaf in counted.values()] + [leaf.column.isNotNull() for leaf in noted.values()]
    # Rows without columns would arrive without their number.
    columns = columns or [functions.lit(True)]
    selected = events.select(*(column.alias(f"_{at}") for at, column in enumerate(columns)))
    found = map_batches(selected, partial(_find, survey), _REPORT).repartition(MERGERS)
    reports = map_batches(found, partial(_merge, survey), _REPORT).collect()
    return EventStatistics.of(_merged((bytes(row[0]) for row in reports), survey))


_REPORT = "summary binary"


def _find(survey: Survey, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task: one row, with what is known of its events."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "Spark runs it"
    yield _report(summarise(batches, survey, context.partitionId()))


def _merge(survey: Survey, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield _report(_merged((each.as_py() for batch in batches for each in batch.column(0)), survey))


def _merged(summaries: Iterable[bytes], survey: Survey) -> Summary:
    """One after the other, so that never more than two are in memory."""
    merged = Summary.empty(survey)
    for each in summaries:
        merged = merged.joined(Summary.from_bytes(each), survey)
    return merged


def _report(summary: Summary) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([summary.to_bytes()], pa.binary())], ["summary"])


# ---------------------------------------------------------------- attributes

_NOTED = ("array<double>", "array<float>", "void")
"""Points and boxes, and columns of nothing: only their presence is counted."""

_FORMS = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us", "UTC"),
}


def _form(kind: str) -> pa.DataType:
    """How Arrow has the values of a Spark type."""
    if decimal := re.fullmatch(r"decimal\((\d+),(-?\d+)\)", kind):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return _FORMS[kind]


def _chosen(found: Mapping[str, Leaf], attributes: Iterable[str] | None) -> dict[str, Leaf]:
    usable = {name: leaf for name, leaf in found.items() if type_of(leaf.kind) is not None or leaf.kind in _NOTED}
    if attributes is None:
        return usable
    names = list(dict.fromkeys(attributes))
    for name in names:
        if name not in found:
            raise _unknown(name, found)
        if name not in usable:
            raise EventError(
                f"attribute {name!r}: {found[name].kind} is not a type of the language", attribute=name
            )
    return {name: usable[name] for name in names}


def _unknown(attribute: str, known: Iterable[str]) -> EventError:
    near = closest(attribute, known)
    suggestion = None if near is None else f"did you mean {near!r}?"
    return EventError(f"events have no attribute {attribute!r}", attribute=attribute, suggestion=suggestion)


def _known(present: int, sketch: Sketch | None) -> AttributeStatistics:
    if sketch is None:
        return AttributeStatistics(present, {}, present)
    order = np.argsort(-sketch.counts, kind="stable")
    values = sketch.values.take(pa.array(order)).to_pylist()
    counts = dict(zip(values, sketch.counts[order].tolist(), strict=True))
    return AttributeStatistics(present, counts, sketch.undercount)


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A file beside a path that takes its place once it is written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.parent / f".{path.name}-{uuid.uuid4().hex}"
    try:
        yield draft
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
