"""Sending each row to the partition whose number it names.

Spark has a way of its own since 4.1. Before that, rows go by the hash of a key; so for each partition a key is
looked for that Spark sends there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST = 16
"""Keys that are tried per partition at first: with so many, nearly every partition has one."""


def by_number(frame: DataFrame, column: str, partitions: int) -> DataFrame:
    """The rows of a frame, each in the partition that a column of integers, from 0 on, says."""
    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(partitions, column)
    return by_key(frame, column, partitions)


def by_key(frame: DataFrame, column: str, partitions: int) -> DataFrame:
    """The same for a Spark that knows only hashes."""
    from pyspark.sql import functions

    keys = _keys(frame.sparkSession, partitions)
    key = functions.element_at(functions.array(*map(functions.lit, keys)), functions.col(column) + 1)
    return frame.repartition(partitions, key)


_KEYS: dict[int, tuple[int, ...]] = {}
"""By the count of partitions: Spark's hash is the same in every session."""


def _keys(spark: SparkSession, partitions: int) -> tuple[int, ...]:
    """For each partition a number that Spark's hash sends there. Asks Spark once for each count of partitions."""
    if partitions not in _KEYS:
        tried, found = MOST * partitions, dict[int, int]()
        while len(found) < partitions:
            found = _first_keys(spark, partitions, tried)
            tried *= 2
        _KEYS[partitions] = tuple(found[number] for number in range(partitions))
    return _KEYS[partitions]


def _first_keys(spark: SparkSession, partitions: int, tried: int) -> dict[int, int]:
    from pyspark.sql import functions

    key = functions.col("id").cast("int")
    target = functions.pmod(functions.hash(key), functions.lit(partitions)).alias("target")
    return dict(spark.range(0, tried, 1, 1).groupBy(target).agg(functions.min(key)).collect())
