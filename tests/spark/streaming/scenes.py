"""A stream with all that belongs to it, sinks that fail, and a clock that can be set."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from harken.spark import (
    Query,
    Sink,
    Subscriptions,
    TableSink,
    match_stream,
)
from harken.spark.streaming.ledger import Ledger
from harken.spark.streaming.sinks.contract import Placed, place_of

PATIENCE = 300
"""Seconds after which a query, or what it should have done, is given up."""

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
COLUMNS = "id bigint, x bigint, t timestamp, until timestamp"

Row = dict[str, object]
Pair = tuple[object, object]


class Scene:
    """A folder of events, subscriptions, and a stream that matches the one with the other."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        awkward = folder / "a [b] {c,d}"  # Spark takes such names for patterns, if it is let
        self.spark = spark
        self.arrivals = folder / "events"
        self.arrivals.mkdir()
        self.table = TableSink(awkward / "matches")
        self.checkpoint = awkward / "checkpoint"
        self.ledger = Ledger(self.checkpoint / "harken" / "ledger")
        self.kept = self.checkpoint / "harken" / "events"
        self.subscriptions = Subscriptions.create(awkward / "subscriptions")
        self._files = 0

    def arrive(self, *rows: Row | tuple[int, int]) -> None:
        """A file of events, which is a batch. Pairs are the id and x."""
        lines = [dict(zip(("id", "x"), row, strict=True)) if isinstance(row, tuple) else row for row in rows]
        text = "".join(json.dumps(line, default=datetime.isoformat) + "\n" for line in lines)
        self._put("json", lambda path: path.write_text(text, encoding="utf-8"))

    def arrive_as_columns(self, table: pa.Table) -> None:
        """The same, as Parquet."""
        self._put("parquet", lambda path: pq.write_table(table, path))

    def _put(self, form: str, write: Callable[[Path], object]) -> None:
        path = self.arrivals / f"{self._files}.{form}"
        write(path)
        os.utime(path, (1_700_000_000 + self._files,) * 2)  # Spark takes them in this order
        self._files += 1

    def events(self, columns: str = COLUMNS) -> DataFrame:
        reader = self.spark.readStream.option("maxFilesPerTrigger", 1)
        return reader.schema(columns).json(f"file://{self.arrivals}")

    def start(
        self,
        events: DataFrame | None = None,
        sink: Sink | None = None,
        trigger: str | None = None,
        **options: object,
    ) -> StreamingQuery:
        return match_stream(
            self.events() if events is None else events,
            self.subscriptions,
            sink or self.table,
            checkpoint=self.checkpoint,
            available_now=trigger is None,
            trigger=trigger,
            **{"event_id": "id", **options},  # type: ignore[arg-type]
        )

    def run(self, events: DataFrame | None = None, sink: Sink | None = None, **options: object) -> None:
        """Do all there is to do."""
        # Where changes are part of the stream, Spark 4.0 would do all of it as one batch.
        one_by_one = "validity" in options and not hasattr(DataFrame, "repartitionById")
        query = self.start(events, sink, "0 seconds" if one_by_one else None, **options)  # type: ignore[arg-type]
        try:
            if one_by_one:
                query.processAllAvailable()
            else:
                assert query.awaitTermination(PATIENCE), "the query has come to no end"
        finally:
            query.stop()

    def matches(self) -> dict[int, list[Pair]]:
        """What came out, by batch. Pairs that are there twice are there twice."""
        found: dict[int, list[Pair]] = {int(path.name[6:]): [] for path in self.table.path.glob("batch=*")}
        for row in self.rows():
            found[row["batch"]].append((row["event"], row["subscription"]))  # type: ignore[index]
        return {batch: sorted(pairs, key=repr) for batch, pairs in sorted(found.items())}

    def rows(self) -> list[Row]:
        return pq.read_table(self.table.path).to_pylist() if self.table.path.exists() else []

    def versions(self) -> list[int]:
        """Which version matched which batch."""
        return [entry.version for entry in self.ledger.entries()]


@dataclass
class Around:
    """A sink around another, which is where its matches are."""

    sink: Sink

    @property
    def place(self) -> str:
        return place_of(self.sink)

    def check(self, columns: Sequence[str]) -> None:
        if isinstance(self.sink, Placed):
            self.sink.check(columns)


@dataclass
class After(Around):
    """A sink that does something after certain batches."""

    deeds: Mapping[int, Callable[[], object]]

    def write(self, batch: int, matches: DataFrame, query: Query) -> None:
        self.sink.write(batch, matches, query)
        if batch in self.deeds:
            self.deeds[batch]()


@dataclass
class FailsOnce(Around):
    """A sink that fails in one batch, before or after all is written."""

    batch: int
    late: bool
    failed: bool = field(default=False)

    def write(self, batch: int, matches: DataFrame, query: Query) -> None:
        failing = batch == self.batch and not self.failed
        if failing and not self.late:
            self._fail()
        self.sink.write(batch, matches, query)
        if failing:
            self._fail()

    def _fail(self) -> None:
        self.failed = True
        raise RuntimeError("the sink is full")


class Watch(datetime):
    """Stands in for `datetime` where the ledger asks for the time."""

    moment = NOON

    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        return cls.moment


def crash(*_: object, **__: object) -> None:
    raise RuntimeError("crash")


def fail_to(run: Callable[[], None], said: str = "crash") -> None:
    with pytest.raises(StreamingQueryException, match=said):
        run()
