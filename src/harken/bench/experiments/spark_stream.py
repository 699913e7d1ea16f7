"""A stream that is triggered every second: whether it keeps up, and how soon changes take effect."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from harken.bench.measuring import Bench, Curve, Figure, Plot, Result
from harken.bench.on_spark import Ground, ground
from harken.spark import Subscriptions, match_stream
from harken.spark.streaming.ledger import Ledger, LedgerEntry

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

TRIGGER = 1.0
"""Seconds from one batch to the next."""

PATIENCE = 180.0
"""Seconds that a stream may take to get on."""

SLOWEST = 0.8
"""Seconds that nearly every batch is to stay below."""

CATCHING_UP = 2.0
"""Seconds that a batch which meets many changes is to stay below."""

WARM_UP = 5
"""Batches that are not counted: the first compile Spark's code and start workers."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """What Spark says of a batch."""

    number: int
    rows: int
    seconds: float


def run(bench: Bench) -> Result:
    """Feed events at a steady rate, and change many subscriptions half-way."""
    size, rate = bench.pick(5_000, 1_000_000), bench.pick(1_000, 50_000)
    changes, seconds = bench.pick(200, 100_000), bench.pick(4, 60)
    with ground(bench) as here:
        index = here.indexed(size)
        subscriptions = index.subscriptions
        with bench.progress.step(f"streaming {rate:,} events per second", seconds):
            batches, took, late = _stream(here, subscriptions, rate, seconds, changes)
    counted = batches[WARM_UP:] or batches[-1:]
    durations = sorted(each.seconds for each in counted)
    slowest = durations[int(0.95 * (len(durations) - 1))]
    return Result(
        "A stream triggered every second (W0), local[2]",
        {
            "master": "local[2]",
            "subscriptions": f"{size:,}",
            "events per second": f"{rate:,}",
            "changes at once": f"{changes:,}, half of them replaced and half removed",
            "seconds": seconds,
        },
        [
            Figure("batch, median", "s", (durations[len(durations) // 2],), bench.target(TRIGGER), True),
            Figure("batch, 95th percentile", "s", (slowest,), bench.target(SLOWEST), True),
            Figure(
                "events per batch", "events", tuple(float(each.rows) for each in counted if each.rows) or (1.0,)
            ),
            Figure(
                "batches begun after the change that did not see it, plus 1", "batches", (late + 1.0,), None, True
            ),
            Figure("slowest batch that met changes", "s", (took,), bench.target(CATCHING_UP), True),
        ],
        plot=Plot(
            "batch",
            "seconds",
            (Curve("batch", tuple(float(e.number) for e in batches), tuple(e.seconds for e in batches)),),
        ),
        notes=[
            "A file of events is added every second; a batch takes what is there, and writes Parquet once.",
            f"The first {WARM_UP} batches are not counted.",
            "A batch that met changes includes indexing them; replacing and removing are two changes, which one or"
            " two batches meet, the first of them while the same process still makes the second.",
        ],
    )


def _stream(
    here: Ground, subscriptions: Subscriptions, rate: int, seconds: int, changes: int
) -> tuple[list[_Batch], float, int]:
    """Run the stream: its batches, the seconds of the slowest that met changes, and how many missed them."""
    incoming, checkpoint = here.folder / "incoming", here.folder / "checkpoint"
    incoming.mkdir()
    _add_file(incoming, here.made.events(rate, part=0), 0)
    schema = here.spark.read.parquet(str(incoming)).schema
    events = here.spark.readStream.schema(schema).parquet(str(incoming))
    query = match_stream(
        events, subscriptions, here.folder / "out", checkpoint=checkpoint, trigger=f"{TRIGGER:g} seconds"
    )
    ledger, feeding = Ledger(checkpoint / "harken" / "ledger"), _Feeding(here, incoming, rate)
    try:
        _wait(query, lambda: len(query.recentProgress) >= 3)
        feeding.start()
        time.sleep(seconds / 2)
        before = subscriptions.version
        version, committed = _change(here, subscriptions, changes)
        time.sleep(seconds / 2)
        _wait(query, lambda: _met(ledger.entries(), version, committed)[0] + 1 < len(ledger.entries()))
    finally:
        feeding.stop()
        query.stop()
    if (failure := query.exception()) is not None:
        raise AssertionError(f"the stream failed: {failure}")
    batches = _batches(query)
    met, late = _met(ledger.entries(), version, committed)
    began, _ = _met(ledger.entries(), before + 1, committed)
    return batches, max(each.seconds for each in batches if began <= each.number <= met), late


def _change(here: Ground, subscriptions: Subscriptions, changes: int) -> tuple[int, datetime]:
    """Replace some subscriptions and remove others; the version, and when it was there."""
    fresh = pa.concat_tables(here.made.subscriptions(changes // 2, first_id=0))
    subscriptions.upsert(fresh)
    version = subscriptions.delete(range(changes // 2, changes)).version
    return version, datetime.now(UTC)


def _met(entries: list[LedgerEntry], version: int, committed: datetime) -> tuple[int, int]:
    """The first batch that matched with a version, and how many begun after it was there did not."""
    late = sum(entry.at > committed and entry.version < version for entry in entries)
    return next((entry.batch for entry in entries if entry.version >= version), len(entries)), late


def _batches(query: StreamingQuery) -> list[_Batch]:
    done = [each for each in query.recentProgress if each["numInputRows"]]
    return [
        _Batch(each["batchId"], each["numInputRows"], each["durationMs"]["triggerExecution"] / 1e3)
        for each in done
    ]


def _wait(query: StreamingQuery, enough: Callable[[], bool]) -> None:
    """Wait until there is enough, but not for ever, nor for a query that has failed."""
    deadline = time.monotonic() + PATIENCE
    while not enough():
        if time.monotonic() > deadline or not query.isActive:
            raise AssertionError(f"the stream does not get on: {query.exception() or query.status}")
        time.sleep(0.2)


class _Feeding:
    """Adds a file of events every second, from a thread."""

    def __init__(self, here: Ground, folder: Path, rate: int) -> None:
        self._tables = [here.made.events(rate, part=part) for part in range(1, 6)]
        self._folder = folder
        self._over = Event()
        self._thread = Thread(target=self._feed, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for it."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _feed(self) -> None:
        number, due = 1, time.monotonic()
        while not self._over.wait(max(0.0, due - time.monotonic())):
            _add_file(self._folder, self._tables[number % len(self._tables)], number)
            number, due = number + 1, due + 1.0


def _add_file(folder: Path, events: pa.Table, number: int) -> None:
    """Add a file of events, which is there as a whole or not at all."""
    hidden = folder / f".{number}"
    pq.write_table(events, hidden)
    os.rename(hidden, folder / f"{number:06d}.parquet")
