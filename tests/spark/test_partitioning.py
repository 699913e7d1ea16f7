"""Rows go to the partition whose number they name, on every Spark."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession, functions

from harken.spark.events.partitioning import by_key, by_number


@pytest.mark.parametrize("way", [by_number, by_key])
@pytest.mark.parametrize("partitions", [1, 2, 3, 8, 37, 200])
def test_every_row_is_where_it_says(spark: SparkSession, way, partitions: int) -> None:  # type: ignore[no-untyped-def]
    rows = spark.range(3 * partitions).select(
        (functions.col("id") % partitions).cast("int").alias("target"), functions.col("id")
    )
    sent = way(rows, "target", partitions)
    found = sent.select("target", "id", functions.spark_partition_id()).collect()
    assert sorted(id for _, id, _ in found) == list(range(3 * partitions))
    assert all(target == partition for target, _, partition in found)
    assert sent.columns == ["target", "id"]
