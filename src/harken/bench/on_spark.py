"""What the experiments on Spark share: a session, a workload on storage, and a folder that goes afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from harken.bench.measuring import Bench
from harken.spark import Index, Subscriptions, build_index
from harken.spark.runtime.lifetime import temporary_session
from harken.workloads import Workload, workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CORES = 2
"""Tasks at once in all experiments."""

FILES = 8
"""Files that events lie in."""


@dataclass(frozen=True)
class Ground:
    """Where an experiment takes place."""

    bench: Bench
    spark: SparkSession
    folder: Path

    @cached_property
    def made(self) -> Workload:
        """The workload."""
        return workload("w0", self.bench.seed)

    def indexed(self, count: int) -> Index:
        """Subscriptions of the workload on storage, with their index."""
        folder = self.folder / f"subscriptions-{count}"
        subscriptions = Subscriptions.create(folder)
        with self.bench.progress.step(f"storing and indexing {count:,} subscriptions"):
            subscriptions.append(pa.concat_tables(self.made.subscriptions(count)))
            return build_index(self.spark, subscriptions)

    def events(self, count: int) -> DataFrame:
        """Events of the workload in Parquet."""
        folder = self.folder / f"events-{count}"
        if not folder.exists():
            folder.mkdir()
            with self.bench.progress.step(f"writing {count:,} events", FILES) as done:
                for part in range(FILES):
                    share = count * (part + 1) // FILES - count * part // FILES
                    pq.write_table(self.made.events(share, part=part), folder / f"{part}.parquet")
                    done(part + 1)
        return self.spark.read.parquet(str(folder))


@contextmanager
def ground(bench: Bench) -> Iterator[Ground]:
    """A session with two cores and an empty folder; both end with the experiment, unless the session was there."""
    with ExitStack() as held:
        with bench.progress.step("starting Spark"):
            spark = held.enter_context(temporary_session(f"local[{CORES}]"))
        folder = held.enter_context(tempfile.TemporaryDirectory(prefix="harken-bench-"))
        yield Ground(bench, spark, Path(folder))
