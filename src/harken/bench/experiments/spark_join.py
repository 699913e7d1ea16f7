"""Matching on Spark against the join of events and subscriptions that one would write instead."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from harken.bench.measuring import Bench, Figure, Ratio, Result
from harken.bench.on_spark import Ground, ground
from harken.spark import Index, match
from harken.spark.runtime.mapping import compute

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RATIO = 200
"""How many times the plain join, at 100,000 subscriptions."""

KEYS = ("a00", "a01")
"""Attributes that every subscription of the workload asks for."""

NUMBER = "number"


def run(bench: Bench) -> Result:
    """Match, and join, the events of one workload with the same subscriptions."""
    sizes = bench.pick((2_000,), (100_000, 1_000_000))
    figures: list[Figure] = []
    ratios: list[Ratio] = []
    with ground(bench) as here:
        for size in sizes:
            measured = _measure(bench, here, size)
            figures += measured
            harken, keyed, plain = measured
            target = bench.target(RATIO) if size == sizes[0] else None
            ratios.append(Ratio.of(f"Harken / plain join at {size:,}", harken, plain, target))
            ratios.append(Ratio.of(f"Harken / join with keys at {size:,}", harken, keyed))
    return Result(
        "Matching on Spark against a join in Spark SQL (W0), local[2]",
        {"master": "local[2]", "subscriptions": ", ".join(f"{size:,}" for size in sizes)},
        figures,
        ratios,
        notes=[
            "Plain join: a table with a nullable column per attribute, and for every attribute the condition that "
            "it is null or equal to the event's.",
            "Join with keys: the two attributes that all subscriptions ask for are plain equalities, which Spark "
            "makes a hash join of. It takes knowing that there are such attributes.",
            "Each contender has as many events as it does in reasonable time. All read Parquet, and keep no rows.",
            "On a sample of events, the joins and Harken found the same pairs.",
        ],
    )


def _measure(bench: Bench, here: Ground, size: int) -> list[Figure]:
    index = here.indexed(size)
    wide = _wide(here, size)
    many, some, few = bench.pick((2_000, 500, 100), (1_000_000, 10_000_000_000 // size, 200_000_000 // size))
    events = here.events(many)
    _verify(events.limit(min(few, 200)), wide, index)
    contenders = {
        "Harken": (partial(_matched, events, index), many),
        "join with keys": (partial(_joined, here.events(some), wide, KEYS), some),
        "plain join": (partial(_joined, here.events(few), wide, ()), few),
    }
    seconds = bench.in_turns({name: work for name, (work, _) in contenders.items()}, f"matching, {size:,}")
    return [
        Figure(f"{name}, {size:,} subscriptions", "events/s", tuple(count / each for each in seconds[name]))
        for name, (_, count) in contenders.items()
    ]


def _matched(events: DataFrame, index: Index) -> None:
    compute(match(events, index))


def _joined(events: DataFrame, wide: DataFrame, keys: tuple[str, ...]) -> None:
    compute(_join(events, wide, keys))


def _join(events: DataFrame, wide: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    from pyspark.sql import functions

    event, subscription = events.alias("e"), wide.alias("s")
    conditions = [
        f"s.{name} = e.{name}" if name in keys else f"(s.{name} is null or s.{name} = e.{name})"
        for name in wide.columns
        if name != "id"
    ]
    joined = event.join(subscription, functions.expr(" and ".join(conditions)))
    return joined.select(*(f"e.{name}" for name in events.columns), functions.col("s.id").alias("subscription"))


def _wide(here: Ground, size: int) -> DataFrame:
    """The subscriptions as a table with a column per attribute, null where nothing is asked."""
    path = here.folder / f"wide-{size}.parquet"
    with pq.ParquetWriter(path, _wide_schema(here)) as writer:
        for table in here.made.subscriptions(size):
            writer.write_table(_widened(here, table))
    return here.spark.read.parquet(str(path))


def _wide_schema(here: Ground) -> pa.Schema:
    return pa.schema([("id", pa.int64()), *((name, pa.int32()) for name in here.made.specification.names)])


def _widened(here: Ground, table: pa.Table) -> pa.Table:
    predicates = table.column("clauses").combine_chunks().flatten().flatten()
    width = len(predicates) // table.num_rows
    attribute = predicates.field("attribute").indices.to_numpy().reshape(-1, width)
    value = predicates.field("integer").to_numpy(zero_copy_only=False).reshape(-1, width)
    names = here.made.specification.names
    values = np.zeros((len(names), table.num_rows), np.int32)
    asked = np.zeros(values.shape, bool)
    rows = np.arange(table.num_rows)
    for column in range(width):
        values[attribute[:, column], rows] = value[:, column]
        asked[attribute[:, column], rows] = True
    columns = [pa.array(each, mask=~known) for each, known in zip(values, asked, strict=True)]
    return pa.Table.from_arrays([table.column("id"), *columns], schema=_wide_schema(here))


def _verify(events: DataFrame, wide: DataFrame, index: Index) -> None:
    """Raise unless both joins and Harken find the same pairs."""
    from pyspark.sql import functions

    numbered = events.withColumn(NUMBER, functions.monotonically_increasing_id()).persist()
    try:
        found = match(numbered, index, event_id=NUMBER)
        expected = {tuple(row) for row in found.collect()}
        for keys in ((), KEYS):
            joined = _join(numbered, wide, keys).select(NUMBER, "subscription")
            if {tuple(row) for row in joined.collect()} != expected:
                raise AssertionError("the join and Harken find different pairs")
    finally:
        numbered.unpersist()
