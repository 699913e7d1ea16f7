"""Compiling subscriptions straight into files: what a task, or this process, writes before a version names it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from harken.errors import Rejected
from harken.intake import SubscriptionSource
from harken.spark.runtime.mapping import map_batches
from harken.spark.runtime.workers import check_workers
from harken.spark.storage import Folder
from harken.spark.subscriptions.compiling import Outcome, Rules, compile_source, portions, subscription_columns
from harken.spark.subscriptions.profile import Profile
from harken.spark.subscriptions.segments import Kind, Segment, SegmentWriter
from harken.spark.subscriptions.versions import Document

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class StoreFolders:
    """Where the files of subscriptions lie."""

    folder: Folder

    @property
    def segments(self) -> Folder:
        """The folder of compiled subscriptions and of ids that went."""
        return self.folder.child("segments")

    @property
    def rejects(self) -> Folder:
        """The folder of rows that were not taken."""
        return self.folder.child("rejects")


@dataclass(frozen=True, slots=True)
class Written:
    """Files that no version names yet."""

    segments: tuple[Segment, ...]
    rejects: tuple[str, ...]
    rejected: int
    profile: Profile
    known: tuple[Rejected, ...] = ()
    """The rejected rows, if this process compiled them."""

    @classmethod
    def of(cls, reports: Iterable[Document]) -> Written:
        """What several tasks wrote, by what they reported."""
        parts = list(reports)
        profile = Profile()
        for part in parts:
            profile = profile.joined(Profile.from_json(part["profile"]))
        segments = tuple(Segment(**part["segment"]) for part in parts if part["segment"] is not None)
        rejects = tuple(part["rejects"] for part in parts if part["rejects"] is not None)
        return cls(segments, rejects, sum(part["rejected"] for part in parts), profile)

    @property
    def rows(self) -> int:
        """Subscriptions, or ids, that were written."""
        return sum(segment.rows for segment in self.segments)

    def rejected_rows(self, place: StoreFolders) -> Sequence[Rejected]:
        """All rejected rows, read from the files of tasks if this process did not compile them."""
        if self.known:
            return self.known
        tables = [read_rejects_file(place.rejects, file).select(["reason"]) for file in self.rejects]
        reasons = pa.concat_tables(tables).column("reason").to_pylist()
        return [FileReject(row, reason) for row, reason in enumerate(reasons)]

    def discard(self, place: StoreFolders) -> None:
        """Remove the files."""
        place.segments.remove(segment.file for segment in self.segments)
        place.rejects.remove(self.rejects)


@dataclass(frozen=True, slots=True)
class FileReject:
    """A row that was not taken, by its place among the rejects: rows of a DataFrame have no numbers."""

    row: int
    reason: str


def write_source(source: SubscriptionSource, kind: Kind, rules: Rules, place: StoreFolders) -> Written:
    """Compile what an engine would take, in this process."""
    outcome = compile_source(source, rules)
    return replace(Written.of([_write([outcome], kind, place)]), known=tuple(outcome.rejects))


def write_frame(subscriptions: DataFrame, kind: Kind, rules: Rules, place: StoreFolders) -> Written:
    """Compile a DataFrame by tasks, each partition into files of its own."""
    check_workers(subscriptions.sparkSession)
    task = partial(_task, kind, rules, place)
    reports = map_batches(subscription_columns(subscriptions), task, "report string").collect()
    return Written.of(json.loads(row[0]) for row in reports)


def _task(
    kind: Kind, rules: Rules, place: StoreFolders, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    report = _write((compile_source(table, rules) for table in portions(batches)), kind, place)
    yield pa.RecordBatch.from_arrays([pa.array([json.dumps(report)])], ["report"])


def _write(parts: Iterable[Outcome], kind: Kind, place: StoreFolders) -> Document:
    """Write compiled tables into one file and their rejects into another."""
    profile, rejects = Profile(), []
    with SegmentWriter(place.segments, kind) as writer:
        for outcome in parts:
            writer.write(outcome.compiled)
            profile = profile.joined(Profile.of(outcome.compiled))
            rejects.append(outcome.rejects_table())
    segment = writer.segment()
    return {
        "segment": None if segment is None else segment.to_json(),
        "profile": profile.to_json(),
        "rejects": _write_rejects(place.rejects, rejects),
        "rejected": sum(each.num_rows for each in rejects),
    }


def _write_rejects(folder: Folder, tables: list[pa.Table]) -> str | None:
    if not any(table.num_rows for table in tables):
        return None
    name = f"{uuid.uuid4().hex}.parquet"
    sink = pa.BufferOutputStream()
    pq.write_table(pa.concat_tables(tables), sink)
    folder.create(name, sink.getvalue().to_pybytes())
    return name


def read_rejects_file(folder: Folder, name: str) -> pa.Table:
    """The rejected rows of one file."""
    return pq.read_table(pa.BufferReader(folder.read(name)))
