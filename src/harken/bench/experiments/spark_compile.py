"""Compiling texts of subscriptions on Spark: what a second core brings."""

from __future__ import annotations

import random
import time
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from harken.bench.cores import on_one_core
from harken.bench.experiments.compiling import five_equalities
from harken.bench.measuring import Bench, Figure, Ratio, Result
from harken.bench.on_spark import Ground, ground
from harken.spark import Subscriptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

GAIN = 1.7
"""Of two cores over one."""


def run(bench: Bench) -> Result:
    """Compile the same texts into a folder, on one core and on two."""
    count = bench.pick(20_000, 2_000_000)
    with ground(bench) as here:
        texts = _stored(here, count)
        parts = {cores: texts.repartition(cores).persist() for cores in (1, 2)}
        for each in parts.values():
            each.count()
        _compile(here, parts[2])  # workers start, and Java compiles what it runs often
        seconds = bench.in_turns(
            {
                "one core": partial(_compile_on_one_core, here, parts[1]),
                "two cores": partial(_compile, here, parts[2]),
            },
            f"compiling {count:,} texts",
        )
    one, two = (Figure(name, "texts/s", tuple(count / s for s in samples)) for name, samples in seconds.items())
    return Result(
        "Compiling texts on Spark, local[2]",
        {"master": "local[2]", "texts": f"{count:,}"},
        [one, two],
        [Ratio.of("two cores / one core", two, one, bench.target(GAIN))],
        notes=[
            "Texts of 4,060 shapes: 5 equalities on 2 fixed and 3 of 30 attributes.",
            "On one core: Java and the one Python worker share it. Left alone, they take more than one.",
            "From a DataFrame in memory to compiled files under a new version, ids checked for repeats.",
        ],
    )


def _stored(here: Ground, count: int) -> DataFrame:
    path, chance = here.folder / "texts.parquet", random.Random(here.bench.seed)
    texts = [five_equalities(chance) for _ in range(count)]
    pq.write_table(pa.table({"id": pa.array(range(count), pa.int64()), "expression": texts}), path)
    return here.spark.read.parquet(str(path))


def _compile_on_one_core(here: Ground, texts: DataFrame) -> None:
    with on_one_core():
        _compile(here, texts)


def _compile(here: Ground, texts: DataFrame) -> None:
    Subscriptions.create(here.folder / f"compiled-{time.monotonic_ns()}").append(texts)
