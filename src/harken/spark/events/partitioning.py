"""How rows lie in partitions: sending each to the one whose number it names, and how many there are.

For sending, Spark has a way of its own since 4.1. Before that, rows go by the hash of a key; so for each partition
a key is looked for that Spark sends there.
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


def partitions_of(frame: DataFrame) -> int | None:
    """How many partitions the rows of a frame lie in; None if Spark would have to plan it first.

    Known for what is done row by row with a batch of a stream. Takes a few milliseconds, planning takes forty.
    """
    if not hasattr(frame, "_jdf"):  # Spark Connect
        return None
    node = frame._jdf.queryExecution().analyzed()
    while node.nodeName() in _ROW_BY_ROW:
        node = node.children().head()
    return int(node.rdd().getNumPartitions()) if node.nodeName() == "LogicalRDD" else None


_ROW_BY_ROW = ("Project", "Filter", "MapInArrow", "CollectMetrics")
"""What Spark calls steps that leave every row in its partition."""


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
