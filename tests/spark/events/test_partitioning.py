"""Rows go to the partition whose number they name, on every Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession, functions

from harken.spark.events.partitioning import by_key, by_number, partitions_of


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


def test_the_partitions_of_a_batch_are_known_without_planning(spark: SparkSession, tmp_path: Path) -> None:
    incoming, told = tmp_path / "in", list[tuple[int | None, int | None, int]]()
    spark.range(0, 6, 1, 3).write.parquet(str(incoming))

    def tell(batch: DataFrame, _: int) -> None:
        plain = (
            batch.where("id > 1").selectExpr("id + 1 AS next").mapInArrow(lambda batches: batches, "next bigint")
        )
        plain = plain.toDF("other").observe("seen", functions.count("*"))
        told.append((partitions_of(plain), partitions_of(plain.repartition(5)), plain.rdd.getNumPartitions()))

    for files in ("10", "1"):
        source = spark.readStream.schema("id bigint").option("maxFilesPerTrigger", files)
        checkpoint = tmp_path / f"checkpoint-{files}"
        query = (
            source.parquet(str(incoming))
            .writeStream.foreachBatch(tell)
            .option("checkpointLocation", str(checkpoint))
        )
        query.trigger(availableNow=True).start().awaitTermination(60)
    assert len(told) == 4
    assert all(known == planned and shuffled is None for known, shuffled, planned in told)
    assert [planned for _, _, planned in told[1:]] == [1, 1, 1]
    assert partitions_of(spark.read.parquet(str(incoming))) is None
