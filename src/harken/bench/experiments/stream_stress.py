"""Two streams and a batch job on Spark, beside processes that change, compact and vacuum the folder they read."""

from __future__ import annotations

import random
import shutil
import time
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from harken.bench.experiments.storage_stress import EVENTS, act, at_work, held, repeated
from harken.bench.measuring import Bench, Result
from harken.spark import Subscriptions, TableSink, match, match_stream
from harken.spark.runtime.lifetime import temporary_session
from harken.spark.streaming.ledger import Ledger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

GRACE = 60.0
"""Seconds that a version may be read after it was the latest: beside six processes, jobs take their time."""

ROWS = EVENTS.append_column("id", pa.array(range(EVENTS.num_rows), pa.int64()))


class Stream:
    """A stream that gets one file at a time; each batch is held to the version that its ledger names."""

    def __init__(self, spark: SparkSession, store: Subscriptions, folder: Path, seed: int) -> None:
        self.store, self.folder = store, folder
        self.chance = random.Random(seed)
        self.batch = 0
        self.ledger = Ledger(folder / "checkpoint" / "harken" / "ledger")
        self.incoming = folder / "incoming"
        self.incoming.mkdir()
        self.sink = TableSink(folder / "out")
        self.events = spark.readStream.schema("n bigint, m bigint, id bigint").parquet(str(self.incoming))
        self.query: StreamingQuery | None = None

    def deed(self) -> None:
        """Feed a file, wait, compare; now and then begin again where it was."""
        if self.query is None:
            self.query = match_stream(
                self.events, self.store, self.sink, checkpoint=self.folder / "checkpoint", event_id="id"
            )
        hidden = self.incoming / f".{self.batch}"
        pq.write_table(ROWS, hidden)
        hidden.rename(self.incoming / f"{self.batch:06d}.parquet")
        self.query.processAllAvailable()
        version = next(entry.version for entry in self.ledger.entries() if entry.batch == self.batch)
        found = _pairs(pq.read_table(self.folder / "out" / f"batch={self.batch}"))
        if found != held(self.store, version):
            raise AssertionError(f"batch {self.batch} found something else than version {version} holds")
        shutil.rmtree(self.folder / "out" / f"batch={self.batch - 20}", ignore_errors=True)
        self.batch += 1
        if self.chance.random() < 0.03:
            self.close()

    def close(self) -> None:
        """Stop, if it runs."""
        if self.query is not None:
            self.query.stop()
            self.query = None


def _pairs(found: pa.Table) -> list[tuple[int, int]]:
    return sorted(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))


def _batch_job(events: DataFrame, store: Subscriptions) -> None:
    """Match with whatever is the latest version: what comes out is what one of those meanwhile holds."""
    first = store.version
    frame = match(events, store, event_id="id")
    time.sleep(random.random())  # as jobs that are planned and run later
    last = store.version
    found = _pairs(frame.toArrow())
    if not any(found == held(store, version) for version in range(last, first - 1, -1)):
        raise AssertionError(f"a job found what no version from {first} to {last} holds")


def act_on_spark(role: str, folder: str, seconds: float, seed: int, grace: float) -> dict[str, int]:
    """Stream, or run jobs, for a while; how many batches or jobs."""
    store = Subscriptions(folder)
    store.grace = timedelta(seconds=grace)
    with TemporaryDirectory(prefix="harken-") as temporary, temporary_session("local[1]") as spark:
        if role == "stream":
            stream = Stream(spark, store, Path(temporary), seed)
            try:
                return repeated(stream.deed, role, seconds, grace)
            finally:
                stream.close()
        pq.write_table(ROWS, Path(temporary) / "events.parquet")
        events = spark.read.parquet(f"{temporary}/events.parquet")
        return repeated(lambda: _batch_job(events, store), role, seconds, grace)


def run(bench: Bench) -> Result:
    """All at once, for as long as was asked for."""
    on_spark, beside = ("stream", "stream", "batch job"), ("write", "compact", "vacuum")
    processes = [*((act_on_spark, role) for role in on_spark), *((act, role) for role in beside)]
    conditions, done = at_work(bench, processes, GRACE)
    return Result(
        "Two streams and a batch job beside processes that change, compact and vacuum their folder",
        conditions,
        done,
        notes=[
            "Every batch found what the version that its ledger names holds, by a plain evaluation, and every job "
            "what one of the versions from its planning to its run holds; at the end no version lacked a file. "
            "After about every thirtieth batch its stream was stopped and started again. Any failure would have "
            "ended the run."
        ],
    )
