"""Changes of subscriptions as a stream: a batch runs when there is a new version, though no event has come.

Subscriptions that come meet events that still hold. Without this source they would have to wait for the next
event.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

# Spark asks for the latest version in processes of their own: what is not needed for that is not imported.
from harken.spark.storage import folder_at
from harken.spark.subscriptions.versions import VersionLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from harken.spark.subscriptions.subscriptions import Subscriptions

MARK = "_harken_version"
"""The column that is set in rows which tell of a version and are no events."""


_SECRET = "storage.secret"
"""The option that has what it takes to get to the folder; Spark shows no option of such a name."""


class VersionSource(DataSource):
    """A row with the number of the latest version, whenever there is a new one."""

    @classmethod
    def name(cls) -> str:
        """What it is called in `readStream.format`."""
        return "harken-versions"

    def schema(self) -> str:
        """One number."""
        return f"{MARK} bigint"

    def streamReader(self, schema: StructType) -> VersionReader:  # noqa: N802  # Spark's name
        """The reader of a stream."""
        folder = folder_at(self.options["path"], json.loads(self.options[_SECRET]))
        return VersionReader(VersionLog(folder.child("versions")))


class VersionReader(DataSourceStreamReader):
    """Offsets are versions."""

    def __init__(self, versions: VersionLog) -> None:
        self._versions = versions
        self._last: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  # Spark's name
        """Before the first version."""
        return {"version": -1}

    def latestOffset(self, *_: object) -> dict[str, int]:  # noqa: N802  # Spark's name
        """The latest version, whatever the start and limit that newer versions of Spark tell."""
        return {"version": self._latest() if self._last is None else self._last}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # Spark's name
        """Tell of no version that comes later, so that a query for what there is comes to an end."""
        self._last = self._latest()

    def _latest(self) -> int:
        return self._versions.latest() or 0

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """One, if there is anything to tell."""
        return [InputPartition(end["version"])] if end["version"] > start["version"] else []

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        """The row."""
        yield (int(partition.value),)


with suppress(ImportError):
    # Before Spark 4.2 there is no such thing, and a query for what there is does it in one batch, whatever the
    # limits of its other sources.
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

    SupportsTriggerAvailableNow.register(VersionReader)


def with_changes(events: DataFrame, subscriptions: Subscriptions) -> DataFrame:
    """A stream of events, and of rows that tell of changes."""
    from pyspark.sql import functions

    spark = events.sparkSession
    spark.dataSource.register(VersionSource)
    folder = subscriptions.folder
    told = {"path": str(folder), _SECRET: json.dumps(dict(folder.options))}
    versions = spark.readStream.format(VersionSource.name()).options(**told).load()
    marked = events.withColumn(MARK, functions.lit(None).cast("bigint"))
    return marked.unionByName(versions, allowMissingColumns=True)


def without_changes(batch: DataFrame) -> DataFrame:
    """Only the events of a batch."""
    from pyspark.sql import functions

    return batch.where(functions.col(MARK).isNull()).drop(MARK)
