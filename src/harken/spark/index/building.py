"""Building the parts of an index: what a task, or this process, does for one shard of one layer."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from harken.durable import MANIFEST
from harken.engine import Engine
from harken.errors import UnknownVersionError
from harken.spark.index.layers import Part
from harken.spark.index.sharding import Division
from harken.spark.runtime.mapping import map_batches
from harken.spark.runtime.workers import check_workers
from harken.spark.storage import Folder
from harken.spark.subscriptions.snapshots import Snapshot
from harken.spark.subscriptions.subscriptions import Subscriptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Lessons:
    """A sample of events, in a file."""

    folder: Folder
    name: str

    def read(self) -> pa.Table:
        """All of them."""
        return pa.ipc.open_stream(pa.BufferReader(self.folder.read(self.name))).read_all()


@dataclass(frozen=True, slots=True)
class Blueprint:
    """What is to be built, the same for all shards."""

    subscriptions: Folder
    until: int
    since: int | None
    """Only what changed after this version; None for all there is."""
    division: Division
    folder: Folder
    """Where parts go, each into a folder of its own."""
    algorithm: str
    options: Mapping[str, object]
    lessons: Lessons | None = None
    """Events to arrange the index for."""

    def snapshot(self, subscriptions: Subscriptions) -> Snapshot:
        """The files to build from; UnknownVersionError if what changed can no longer be told."""
        snapshot = subscriptions.snapshot(self.until)
        changed = snapshot if self.since is None else subscriptions.since(snapshot, self.since)
        if changed is None:  # told when the layer was planned, and forgotten since
            raise UnknownVersionError(str(self.subscriptions), self.since or 0, subscriptions.version)
        return changed


def build_here(blueprint: Blueprint) -> dict[int, Part]:
    """Build all parts in this process: for a few changes, quicker than asking Spark."""
    built = {shard: build_part(blueprint, shard) for shard in range(blueprint.division.shards)}
    return {shard: part for shard, part in built.items() if part is not None}


def build_by_tasks(spark: SparkSession, blueprint: Blueprint) -> dict[int, Part]:
    """Build all parts, each by a task."""
    check_workers(spark)
    shards = blueprint.division.shards
    wanted = spark.range(0, shards, 1, shards)
    built = map_batches(wanted, partial(_task, blueprint), "shard int, folder string, rows bigint, bytes bigint")
    return {row[0]: Part(row[1], row[2], row[3]) for row in built.collect()}


def _task(blueprint: Blueprint, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for shard in batch.column(0).to_pylist():
            part = build_part(blueprint, shard)
            if part is not None:
                made = {"shard": shard, "folder": part.folder, "rows": part.rows, "bytes": part.bytes}
                yield pa.RecordBatch.from_pylist([made], _BUILT)


_BUILT = pa.schema([("shard", pa.int32()), ("folder", pa.string()), ("rows", pa.int64()), ("bytes", pa.int64())])


def build_part(blueprint: Blueprint, shard: int) -> Part | None:
    """Build one part; None if nothing belongs there. Costs what loading its subscriptions costs."""
    subscriptions = Subscriptions(blueprint.subscriptions)
    snapshot = blueprint.snapshot(subscriptions)
    rules = snapshot.rules
    # Nobody asks a part what was written: the folder of subscriptions knows.
    options = cast("dict[str, Any]", blueprint.options)  # of the algorithm
    engine = Engine(blueprint.algorithm, rules.schema, limits=rules.limits, keep_text=False, **options)
    for table in subscriptions.tables(snapshot):
        here = _of_shard(table, blueprint.division, shard)
        if here.num_rows:
            engine.subscribe_many(here)
    if not len(engine):
        return None
    if blueprint.lessons is not None:
        engine.learn(blueprint.lessons.read())
    return saved(engine, blueprint.folder)


REHEARSED = 1_000
"""Subscriptions of a rehearsal: enough for a part to be reorganised as large ones are."""


def rehearse(algorithm: str, options: Mapping[str, object]) -> Thread:
    """Build a part for nothing, in a thread: kernels take a second to load, and no change has to wait then."""
    thread = Thread(target=_rehearsed, args=(algorithm, options), name="harken-rehearsal", daemon=True)
    thread.start()
    return thread


def _rehearsed(algorithm: str, options: Mapping[str, object]) -> None:
    with suppress(Exception):  # whatever is wrong, the first change will meet it and tell
        _build_for_nothing(algorithm, options)


def _build_for_nothing(algorithm: str, options: Mapping[str, object]) -> None:
    engine = Engine(algorithm, keep_text=False, **cast("dict[str, Any]", options))
    engine.subscribe_many(
        # The same two attributes in all, so that there is a table of pairs.
        (number, f"a = {number % 50} and b = {number % 21} and c{number % 7} = {number % 9} and d < {number % 9}")
        for number in range(REHEARSED)
    )
    with TemporaryDirectory(prefix="harken-") as here:
        engine.save(Path(here) / "part")


def _of_shard(table: pa.Table, division: Division, shard: int) -> pa.Table:
    if division.shards == 1:
        return table
    return table.take(pa.array(np.flatnonzero(division.assign(table) == shard)))


def saved(engine: Engine, folder: Folder) -> Part:
    """Save a part where it belongs or, if that is a store, here first."""
    name = uuid.uuid4().hex
    if folder.path is not None:
        engine.save(folder.path / name)
        return Part(name, len(engine), _size(folder.path / name))
    with TemporaryDirectory(prefix="harken-") as here:
        draft = Path(here) / name
        engine.save(draft)
        folder.upload_folder(name, draft, last=MANIFEST)
        return Part(name, len(engine), _size(draft))


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
