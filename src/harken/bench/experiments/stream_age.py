"""A stream of many small batches: whether the last take longer than the first, and what they leave."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING

from harken.bench.measuring import Bench, Curve, Figure, Plot, Ratio, Result
from harken.bench.on_spark import Ground, ground
from harken.spark import Subscriptions, match_stream

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

EVENTS = 100
"""Of a batch."""

PIECES = 20
"""Points in time at which batches are looked at."""

BETWEEN = 50
"""Batches from one change of the subscriptions to the next."""

PATIENCE = 300.0
"""Seconds that a stream may take for one batch."""


def run(bench: Bench) -> Result:
    """As many batches as there are to be, one after the other, with subscriptions that change."""
    batches, size = bench.pick(PIECES, 10_000), bench.pick(200, 10_000)
    with ground(bench) as here:
        subscriptions = here.indexed(size).subscriptions
        seconds, files = _aged(here, subscriptions, batches)
    piece = batches // PIECES
    medians = tuple(statistics.median(seconds[at : at + piece]) for at in range(0, piece * PIECES, piece))
    # The first pieces start workers, and Java compiles what it runs often.
    young, old = Figure("a batch, young", "s", medians[1:3]), Figure("a batch, old", "s", medians[-2:])
    return Result(
        "A stream of many small batches, local[2]",
        {"batches": f"{batches:,}", "events of a batch": EVENTS, "subscriptions": f"{size:,}"},
        [young, old, Figure("files that are neither matches nor events, at the end", "files", (float(files),))],
        [Ratio.of("a batch, young / old", young, old, bench.target(0.9))],
        Plot(
            "batch",
            "seconds",
            (Curve("median", tuple(float(piece * (at + 1)) for at in range(PIECES)), medians),),
        ),
        notes=[
            f"Seconds are those that Spark says a batch took, the median of each {piece}: young are the second "
            f"and third, old the last two. Every {BETWEEN} batches ten subscriptions change."
        ],
    )


def _aged(here: Ground, subscriptions: Subscriptions, batches: int) -> tuple[list[float], int]:
    """The seconds of each batch, and how many files are left beside the matches."""
    source = here.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", EVENTS).load()
    events = source.selectExpr("value as id", *(f"(value * {at + 3}) % 35 + 1 as a{at:02d}" for at in range(32)))
    output, checkpoint = here.folder / "out", here.folder / "checkpoint"
    query = match_stream(events, subscriptions, output, checkpoint=checkpoint, event_id="id")
    seconds: dict[int, float] = {}
    try:
        with here.bench.progress.step("streaming", batches) as tell:
            while len(seconds) < batches:
                _wait_for_more(query, seconds)
                if len(seconds) // BETWEEN > subscriptions.version:
                    subscriptions.upsert([(id, f"a00 = {id % 35}") for id in range(10)])
                tell(min(len(seconds), batches))
    finally:
        query.stop()
    left = [
        path for folder in (checkpoint, here.folder / subscriptions.folder.above[1]) for path in _files(folder)
    ]
    return [seconds[batch] for batch in sorted(seconds)], len(left)


def _wait_for_more(query: StreamingQuery, seconds: dict[int, float]) -> None:
    """Take down what further batches took; Spark remembers the latest hundred."""
    known, deadline = len(seconds), time.monotonic() + PATIENCE
    while len(seconds) == known:
        if time.monotonic() > deadline or not query.isActive:
            raise AssertionError(f"the stream does not get on: {query.exception() or query.status}")
        time.sleep(2.0)
        for each in query.recentProgress:
            if each["numInputRows"]:
                seconds[each["batchId"]] = each["durationMs"]["triggerExecution"] / 1e3


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
