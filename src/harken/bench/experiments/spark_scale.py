"""Matching on Spark at full size: Parquet in, Parquet out, beside the ceiling that Spark itself sets."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq

from harken import Engine
from harken.bench.apart import run_apart
from harken.bench.cores import on_one_core
from harken.bench.measuring import Bench, Figure, Ratio, Result
from harken.bench.on_spark import Ground, ground
from harken.bench.verifying import verify_workload
from harken.spark import Index, match, write_table
from harken.spark.runtime.session import BATCH_BYTES, BATCH_ROWS

CEILING = 0.6
"""Of the throughput of a job that only counts rows, the ceiling that Spark itself sets."""

GAIN = 1.7
"""Of two cores over one."""

PRIVATE, WARM = 0.15, 2.0
"""Asked for: private memory of a worker as a part of the index, and seconds until a worker is ready."""


def run(bench: Bench) -> Result:
    """Match events with an index, and only count the same events, in turns."""
    size, count = bench.pick(20_000, 6_000_000), bench.pick(40_000, 5_000_000)
    with ground(bench) as here:
        index = here.indexed(size)
        assert index.path is not None, "it lies on this machine"
        part = index.path / "parts" / index.state().layers[0].parts[0].folder
        _match(here, index, count)  # workers start, and Java compiles what it runs often
        seconds = bench.in_turns(
            {
                "matching": partial(_match, here, index, count),
                "matching, one core": partial(_match_on_one_core, here, index, count),
                "counting rows": partial(_count, here, count),
                "counting rows, Spark's own settings": partial(_count_as_spark_would, here, count),
                "engine": partial(_directly, here, part, count),
            },
            f"{count:,} events with {size:,} subscriptions",
        )
        private = [_private(part) for _ in range(bench.repeats)]
        warm = [cast("float", run_apart(ready_after, str(part)).result) for _ in range(bench.repeats)]
        verify_workload(here.made, {"shard": Engine.load(part)}, size, seed=bench.seed)
        bytes_of_index = index.state().bytes
    matching, alone, counting, untuned, engine = (
        Figure(name, "events/s", tuple(count / each for each in samples)) for name, samples in seconds.items()
    )
    return Result(
        "Matching on Spark, Parquet in and out (W0), local[2]",
        {
            "master": "local[2]",
            "subscriptions": f"{size:,}",
            "events": f"{count:,}",
            "index bytes": f"{bytes_of_index:,}",
        },
        [
            matching,
            alone,
            counting,
            untuned,
            engine,
            Figure(
                "private memory of a worker, of the index",
                "of 1",
                tuple(each / bytes_of_index for each in private),
                bench.target(PRIVATE),
                lower_is_better=True,
            ),
            Figure("worker ready after", "s", tuple(warm), bench.target(WARM), lower_is_better=True),
        ],
        [
            Ratio.of("matching / counting rows, Spark's own settings", matching, untuned, bench.target(CEILING)),
            Ratio.of("matching / counting rows", matching, counting),
            Ratio.of("matching on two cores / on one", matching, alone, bench.target(GAIN)),
            Ratio.of("matching on two cores / engine on one", matching, engine),
        ],
        notes=[
            "Counting rows: a mapInArrow over the same 32 columns that only counts the rows of each batch.",
            "Spark's own settings: Arrow batches of 10,000 rows and 64 MB, whose size Spark adds up row by row; "
            "all else was measured with what Harken recommends, 50,000 rows and no limit of bytes.",
            "On one core: Java and the workers share it. Left alone, they take more than one.",
            "Engine: the same Parquet files read by Arrow and matched in one process, one core.",
            "Private memory: dirty pages that a fresh process has more of after mapping the index and matching "
            "with it than after doing so with a tiny one.",
            "Ready: a fresh process has loaded Harken and its kernels, mapped the index with its checksums "
            "verified, and matched a first batch.",
            "Matches of a sample of events were compared with the reference semantics.",
        ],
    )


def ready_after(part: str) -> float:
    """Seconds until this process has matched a first batch; to be called in a fresh process."""
    begin = time.perf_counter()
    engine = Engine.load(part)
    engine.match_batch(_tiny_events())
    return time.perf_counter() - begin


def private_after(part: str) -> int:
    """Dirty private bytes after mapping an index and matching with it; to be called in a fresh process."""
    engine = Engine.load(part)
    for _ in range(20):
        engine.match_batch(_tiny_events())
    rollup = Path("/proc/self/smaps_rollup").read_text(encoding="ascii")
    found = re.search(r"^Private_Dirty:\s+(\d+) kB", rollup, re.MULTILINE)
    return 0 if found is None else int(found[1]) * 1024


def _tiny_events() -> pa.Table:
    from harken.workloads import workload

    return workload("w0").events(20_000)


def _private(part: Path) -> float:
    """Private bytes that an index brings, beyond what a tiny one does."""
    tiny = Engine("dynamic")
    tiny.subscribe_many([(1, "a00 = 1 and a01 = 2 and a02 = 3")])
    tiny.save(part.parent / "tiny")
    without = cast("int", run_apart(private_after, str(part.parent / "tiny")).result)
    return float(max(1, cast("int", run_apart(private_after, str(part)).result) - without))


def _match(here: Ground, index: Index, count: int) -> None:
    write_table(match(here.events(count), index), here.folder / f"matches-{time.monotonic_ns()}")


def _match_on_one_core(here: Ground, index: Index, count: int) -> None:
    with on_one_core():
        _match(here, index, count)


def _count(here: Ground, count: int) -> None:
    counted = here.events(count).mapInArrow(_row_counts, "rows bigint")
    write_table(counted, here.folder / f"counts-{time.monotonic_ns()}")


def _count_as_spark_would(here: Ground, count: int) -> None:
    settings = here.spark.conf
    before = {name: settings.get(name) for name in (BATCH_ROWS, BATCH_BYTES)}
    try:
        for name in before:
            settings.unset(name)
        _count(here, count)
    finally:
        for name, value in before.items():
            settings.set(name, str(value))


def _row_counts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_arrays([pa.array([batch.num_rows])], ["rows"])


def _directly(here: Ground, part: Path, count: int) -> None:
    engine = Engine.load(part, verify=False)
    for file in sorted((here.folder / f"events-{count}").glob("*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches(50_000):
            engine.match_batch(batch)
