"""A stream in a process of its own, made to be killed: `python streaming_program.py FOLDER`.

It waits for a line on its input, and then matches the events in a folder, one file after the other, until there are
no more. Subscriptions change after certain batches, and only then, so what comes out is the same however often it
is killed and started again.
"""

from __future__ import annotations

import json
import os
import random
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from harken.spark import DatabaseSink, EventValidity, Subscriptions, TableSink, local_session, match_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BATCHES = 30
EVENTS = 6
LASTS = timedelta(minutes=4)
"""How long events hold, which come at a batch per minute."""
START = datetime(2026, 3, 1, tzinfo=UTC)
SETTINGS = {
    "spark.driver.memory": "512m",
    # Quick to start, since it will not live long.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto",
    "spark.sql.shuffle.partitions": "1",
}


@dataclass(frozen=True)
class Layout:
    """Where things lie in the folder of a run."""

    folder: Path

    @property
    def events(self) -> Path:
        return self.folder / "events"

    @property
    def subscriptions(self) -> Path:
        return self.folder / "subscriptions"

    @property
    def table(self) -> Path:
        return self.folder / "matches"

    @property
    def database(self) -> Path:
        return self.folder / "matches.db"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"


def prepare(layout: Layout) -> None:
    """Events, and the subscriptions there are at first: the same in every folder."""
    layout.events.mkdir(parents=True)
    chance = random.Random("events")
    for batch in range(BATCHES):
        rows = [
            {
                "id": 100 * batch + number,
                "x": chance.randrange(20),
                "t": (START + timedelta(minutes=batch, seconds=chance.randrange(90))).isoformat(),
            }
            for number in range(EVENTS)
        ]
        file = layout.events / f"{batch}.json"
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        os.utime(file, (1_700_000_000 + batch,) * 2)  # Spark takes them in this order
    Subscriptions.create(layout.subscriptions).append([(id, f"x = {id}") for id in range(20)])


def change(subscriptions: Subscriptions) -> None:
    """Make the next version, which depends on the number of the one before only."""
    version = subscriptions.version
    if version % 3 == 0:
        subscriptions.delete([version % 20], missing_ok=True)
    else:
        subscriptions.upsert([(version % 20, f"x > {version % 7 + 12}"), (100 + version, f"x < {version % 5}")])


@dataclass(frozen=True)
class Changing:
    """Two sinks, and a change of subscriptions after every other batch; none after the last ones."""

    table: TableSink
    database: DatabaseSink
    subscriptions: Subscriptions

    def write(self, batch: int, matches: DataFrame) -> None:
        self.table.write(batch, matches)
        self.database.write(batch, matches)
        while self.subscriptions.version < 1 + min(batch + 1, BATCHES - 4) // 2:
            change(self.subscriptions)


def run(layout: Layout) -> None:
    """Match all there is."""
    scratch = {"spark.local.dir": str(layout.folder / "scratch")}
    spark = local_session("local[2]", settings={**SETTINGS, **scratch})
    reader = spark.readStream.schema("id bigint, x bigint, t timestamp").option("maxFilesPerTrigger", 1)
    if not sys.stdin.readline():
        return
    subscriptions = Subscriptions(layout.subscriptions)
    query = match_stream(
        reader.json(str(layout.events)),
        subscriptions,
        Changing(TableSink(layout.table), DatabaseSink(f"sqlite:///{layout.database}"), subscriptions),
        checkpoint=layout.checkpoint,
        event_id="id",
        validity=EventValidity(lasts=LASTS, event_time="t", delay=timedelta(seconds=30)),
        available_now=True,
    )
    query.awaitTermination()


if __name__ == "__main__":
    run(Layout(Path(sys.argv[1])))
