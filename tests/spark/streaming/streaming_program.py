"""A stream in a process of its own, made to be killed: `python streaming_program.py FOLDER [JAVA OPTION ...]`.

It waits for a line on its input, and then matches events, a file per batch, until there are no more; on its output
it says what it is about to do, and what it has done. All that can make a difference depends on the batch alone.
Subscriptions change after certain batches. And the file for a batch is there only after the batch before it: of
several files Spark may take two for one batch, if it is killed between what its source and what it itself writes
down.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from harken.spark import DatabaseSink, EventValidity, Query, Subscriptions, TableSink, local_session, match_stream
from harken.spark.storage import Folder, folder_at
from harken.spark.streaming.ledger import Ledger
from harken.spark.streaming.retained_events import RetainedEvents

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Given = ParamSpec("Given")
Result = TypeVar("Result")

EVENTS = 6
START = datetime(2026, 3, 1, tzinfo=UTC)
PACE = timedelta(minutes=1)
"""From one batch to the next, by the times of their events."""
VALIDITY = EventValidity(lasts=4 * PACE, event_time="t", delay=PACE / 2)
STEPS = (
    (Ledger, "enter"),
    (TableSink, "write"),
    (DatabaseSink, "write"),
    (RetainedEvents, "keep"),
    (RetainedEvents, "expire"),
)
"""Of a batch, in order. Spark has planned it before, and notes after the last of them that it is done."""

QUICK_TO_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xlog:disable", "-Xlog:all=error:stderr")


@dataclass(frozen=True)
class Layout:
    """Where things lie: in the folder of a run, and in a store, if a file there names one."""

    folder: Path

    @property
    def store(self) -> dict[str, Any]:
        """The `address` of a folder in a store, the `options` that lead to it, and the `settings` of Spark."""
        try:
            store: dict[str, Any] = json.loads((self.folder / "store.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {"address": str(self.folder), "options": {}, "settings": {}}
        return store

    def _at(self, name: str) -> Folder:
        store = self.store
        return folder_at(f"{store['address']}/{name}", store["options"])

    @property
    def events(self) -> Path:
        """The folder that the stream reads."""
        return self.folder / "events"

    @property
    def to_come(self) -> Path:
        """Where events are that have not come yet."""
        return self.folder / "to come"

    @property
    def batches(self) -> int:
        """How many there are to be."""
        return len(list(self.to_come.iterdir()))

    @property
    def subscriptions(self) -> Folder:
        return self._at("subscriptions")

    @property
    def table(self) -> Folder:
        return self._at("matches")

    @property
    def database(self) -> Path:
        return self.folder / "matches.db"

    @property
    def checkpoint(self) -> Folder:
        return self._at("checkpoint")


def prepare(layout: Layout, batches: int) -> None:
    """Events of so many batches, and the subscriptions there are at first: the same in every folder."""
    layout.events.mkdir(parents=True, exist_ok=True)
    layout.to_come.mkdir()
    chance = random.Random("events")
    for batch in range(batches):
        rows = [
            {
                "id": 100 * batch + number,
                "x": chance.randrange(20),
                "t": (START + batch * PACE + chance.random() * PACE).isoformat(),
            }
            for number in range(EVENTS)
        ]
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        (layout.to_come / f"{batch}.json").write_text(text, encoding="utf-8")
    release(layout, 0)
    Subscriptions.create(layout.subscriptions).append([(id, f"x = {id}") for id in range(20)])


def release(layout: Layout, batch: int) -> None:
    """Let the events of a batch come, if they have not."""
    with suppress(FileExistsError, FileNotFoundError):
        os.link(layout.to_come / f"{batch}.json", layout.events / f"{batch}.json")


class Changing:
    """Two sinks; and after each batch the next one comes, after every other one with new subscriptions."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._table = TableSink(layout.table)
        self._database = DatabaseSink(f"sqlite:///{layout.database}")
        self._subscriptions = Subscriptions(layout.subscriptions)

    def write(self, batch: int, matches: DataFrame, query: Query) -> None:
        self._table.write(batch, matches, query)
        self._database.write(batch, matches, query)
        while self._subscriptions.version < 1 + min(batch + 1, self._layout.batches - 1) // 2:
            self._change(self._subscriptions.version)
        release(self._layout, batch + 1)

    def _change(self, version: int) -> None:
        """Make the version after this one. Nobody else does, so there will be one of its number once."""
        if version % 3 == 0:
            self._subscriptions.delete([version, version + 1])
        else:
            self._subscriptions.upsert([(version, f"x > {version + 5}"), (100 + version, f"x < {version}")])


def telling(step: str, function: Callable[Given, Result]) -> Callable[Given, Result]:
    """A function that says when it begins and when it has ended."""

    @wraps(function)
    def told(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        print(f"{step} begins", flush=True)
        result = function(*args, **kwargs)
        print(f"{step} ends", flush=True)
        return result

    return told


def run(layout: Layout, java_options: Sequence[str] = ()) -> None:
    """Match all there is."""
    settings = {
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": " ".join([*QUICK_TO_START, *java_options]),
        "spark.local.dir": str(layout.folder / "scratch"),
        "spark.sql.shuffle.partitions": "1",
        **layout.store["settings"],
    }
    spark = local_session("local[2]", settings=settings)
    # With its scheme: the default file system may be another.
    events = spark.readStream.schema("id bigint, x bigint, t timestamp").json(layout.events.absolute().as_uri())
    if not sys.stdin.readline():
        return
    for owner, name in STEPS:
        setattr(owner, name, telling(f"{owner.__name__}.{name}", getattr(owner, name)))
    subscriptions = Subscriptions(layout.subscriptions)
    query = match_stream(
        events, subscriptions, Changing(layout), checkpoint=layout.checkpoint, event_id="id", validity=VALIDITY
    )
    query.processAllAvailable()
    query.stop()


if __name__ == "__main__":
    run(Layout(Path(sys.argv[1])), sys.argv[2:])
