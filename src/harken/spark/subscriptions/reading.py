"""What is on storage, as DataFrames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from harken.spark.runtime.mapping import map_batches
from harken.spark.storage import Folder
from harken.spark.subscriptions.compiling import compiled_columns, plain
from harken.spark.subscriptions.segments import DELETES
from harken.spark.subscriptions.writing import read_rejects_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from harken.spark.subscriptions.snapshots import Snapshot


class Stored(Protocol):
    """Subscriptions on storage, as workers read them; it travels to them by its address."""

    def snapshot(self, version: int) -> Snapshot:
        """The state of a version."""

    def live(self, snapshot: Snapshot, at: int) -> pa.Table:
        """Of the file at this place, the subscriptions that no later file replaces or removes."""


def read_compiled(spark: SparkSession, subscriptions: Stored, snapshot: Snapshot) -> DataFrame:
    """The subscriptions of a version, a task per file."""
    places = [at for at, segment in enumerate(snapshot.segments) if segment.kind != DELETES]
    task = partial(_live_rows, subscriptions, snapshot.version)
    columns = compiled_columns(bool(snapshot.integer_ids))
    if not places:
        return spark.createDataFrame([], columns)
    numbers = spark.createDataFrame([(at,) for at in places], "at int").repartition(len(places))
    return map_batches(numbers, task, columns)


def read_rejects(spark: SparkSession, folder: Folder, files: Sequence[str]) -> DataFrame:
    """The rejected rows of some files, a task per file. Spark itself would take some names for patterns."""
    columns = "id string, expression string, reason string, line int, column int"
    if not files:
        return spark.createDataFrame([], columns)
    names = spark.createDataFrame([(file,) for file in files], "file string").repartition(len(files))
    return map_batches(names, partial(_rejected_rows, folder), columns)


def _live_rows(subscriptions: Stored, version: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    snapshot = subscriptions.snapshot(version)
    for batch in batches:
        for at in batch.column(0).to_pylist():
            yield from plain(subscriptions.live(snapshot, at)).to_batches()


def _rejected_rows(folder: Folder, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for file in batch.column(0).to_pylist():
            yield from read_rejects_file(folder, file).to_batches()
