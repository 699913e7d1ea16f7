"""Streams whose subscriptions, checkpoints and tables are in stores: `python streams_program.py JSON`.

Prints what became of them, as JSON, for each address. A batch is cut short between what decides that it counts and
its files, and while these are copied; then the stream is started again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from harken.errors import SinkError
from harken.spark import (
    EventValidity,
    Query,
    Subscriptions,
    TableSink,
    local_session,
    match_stream,
    stream_status,
    write_table,
)
from harken.spark.storage import Folder, folder_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(spark: SparkSession, address: str, validity: EventValidity | None, place: str) -> None:
    """Match all there is at an address."""
    events = (
        spark.readStream.schema("id bigint, x bigint").option("maxFilesPerTrigger", 1).json(f"{address}/events")
    )
    query = match_stream(
        events,
        Subscriptions(f"{address}/subscriptions"),
        f"{address}/{place}/matches",
        checkpoint=f"{address}/{place}/checkpoint",
        event_id="id",
        validity=validity,
        available_now=True,
    )
    query.awaitTermination()


def arrive(address: str, number: int) -> None:
    """A file of one event."""
    folder_at(address).child("events").create(f"{number}.json", json.dumps({"id": number, "x": 1}).encode())


def rows(spark: SparkSession, address: str, place: str) -> list[Any]:
    """What the table has, as Spark reads it without Harken."""
    found = spark.read.parquet(f"{address}/{place}/matches")
    return sorted([row.batch, row.event, row.subscription] for row in found.collect())


Placing = Callable[[Folder, str, str], None]
"""`Folder.copy`, or `Folder.rename`."""


def failing_after(original: Placing, good: int) -> Placing:
    """The same, but it fails after so many times."""
    left = [good]

    def crash(folder: Folder, name: str, target: str) -> None:
        if not left[0]:
            raise RuntimeError("crash")
        left[0] -= 1
        original(folder, name, target)

    return crash


def cut_short(spark: SparkSession, sink: TableSink, good: int) -> bool:
    """Write batch 7 with three files, ended after so many are in place; whether it counts nevertheless."""
    frame = spark.range(0, 30, 1, 3).selectExpr("id as event", "'a' as subscription")
    kind = type(sink.folder)
    name = "rename" if sink.folder.renames else "copy"
    original = getattr(kind, name)
    setattr(kind, name, failing_after(original, good))
    try:
        with suppress(RuntimeError):
            sink.write(7, frame)
    finally:
        setattr(kind, name, original)
    return sink.has(7)


def told(spark: SparkSession, address: str) -> dict[str, Any]:
    """All that is tried at one address."""
    subscriptions = Subscriptions.create(f"{address}/subscriptions")
    subscriptions.append([("a", "x = 1")])
    arrive(address, 0)
    run(spark, address, None, "plain")
    arrive(address, 1)
    run(spark, address, None, "plain")
    lasting = EventValidity(lasts=timedelta(hours=1))
    run(spark, address, lasting, "lasting")
    subscriptions.append([("b", "x = 1")])
    run(spark, address, lasting, "lasting")
    found: dict[str, Any] = {
        "plain": rows(spark, address, "plain"),
        "lasting": [each[1:] for each in rows(spark, address, "lasting")],
        "status": str(stream_status(f"{address}/plain/checkpoint")).splitlines()[1:],
    }
    sink = TableSink(f"{address}/cut", files=3)
    found["counts"] = cut_short(spark, sink, 1)
    sink.write(7, spark.range(0, 30, 1, 3).selectExpr("id as event", "'a' as subscription"), Query("q", "c"))
    found["cut"] = sorted(row.event for row in spark.read.parquet(f"{address}/cut").collect()) == list(range(30))
    found["files"] = sorted({each.name.partition("part-")[0] for each in folder_at(f"{address}/cut").files()})
    try:
        sink.write(8, spark.range(0), Query("other", "c"))
    except SinkError as error:
        found["foreign"] = "another query" in str(error)
    write_table(spark.range(3), f"{address}/once")
    found["once"] = spark.read.parquet(f"{address}/once").count()
    return found


if __name__ == "__main__":
    settings, *addresses = json.loads(sys.argv[1])
    session = local_session("local[2]", settings=settings)
    print(json.dumps([told(session, address) for address in addresses]))
    session.stop()
