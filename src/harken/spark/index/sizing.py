"""How many shards an index needs, from its size and the memory of an executor."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from harken.spark.subscriptions.segments import DELETES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from harken.spark.subscriptions.snapshots import Snapshot

INDEX_SHARE = 0.5
"""Bytes of an index per byte of its compiled subscriptions: measured 0.2 to 0.4."""

MEMORY_SHARE = 0.5
"""The part of an executor's memory that a shard may take; the rest is for events and for Spark."""

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)b?", re.IGNORECASE)


def shards_for(spark: SparkSession, snapshot: Snapshot) -> int:
    """As many shards as it takes for an executor to hold one."""
    expected = INDEX_SHARE * sum(each.bytes for each in snapshot.segments if each.kind != DELETES)
    return max(1, -(-int(expected) // max(1, int(MEMORY_SHARE * executor_memory(spark)))))


def executor_memory(spark: SparkSession) -> int:
    """The memory an executor may use, in bytes: as configured, or else this machine's, which is a guess."""
    configured = spark.conf.get("spark.executor.memory", None)
    if configured is not None:
        return bytes_of(configured)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def bytes_of(size: str) -> int:
    """A size as Spark writes it, in bytes.

    >>> bytes_of("4g"), bytes_of("512m"), bytes_of("1024")
    (4294967296, 536870912, 1024)
    """
    found = _SIZE.fullmatch(size.strip())
    if found is None:
        raise ValueError(f"{size!r} is not a size like 4g or 512m")
    return int(found[1]) * _UNITS[found[2].lower()]
