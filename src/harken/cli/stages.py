"""The stages of a Spark job on a terminal: a bar for each while it runs, and how long it took."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.progress import Progress, TaskID

INTERVAL = 0.3
"""Seconds between two looks at how many tasks are done."""


class Bar:
    """One stage on the terminal. It only spins until it is told how much there is to do."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def done(self, done: int, total: int | None = None) -> None:
        """So much has been done, and there is so much to do, if that is known."""
        self._progress.update(self._task, completed=done, total=total)

    def say(self, doing: str) -> None:
        """What is being done now."""
        self._progress.update(self._task, description=doing)


class Stages:
    """Shows the stages of a run one below the other, and keeps the seconds that each took."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str, doing: str) -> Iterator[Bar]:
        """A bar for one stage."""
        bar = Bar(self._progress, self._progress.add_task(doing, total=None))
        start = time.perf_counter()
        try:
            yield bar
        finally:
            self.seconds[name] = time.perf_counter() - start
        bar.done(1, 1)

    @contextmanager
    def spark_stage(self, name: str, doing: str, spark: SparkSession) -> Iterator[Bar]:
        """A bar for a stage of Spark jobs, by the tasks that are done."""
        with self.stage(name, doing) as bar:
            if self._progress.disable:
                yield bar
                return
            with _watched(spark, bar):
                yield bar

    def __str__(self) -> str:
        return ", ".join(f"{name} {seconds:.1f} s" for name, seconds in self.seconds.items())


@contextmanager
def shown_stages() -> Iterator[Stages]:
    """Stages on standard error; nothing is shown where nobody watches."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    # On a handle of its own: while Java starts, whatever is written to standard error goes elsewhere.
    with os.fdopen(os.dup(2), "w", encoding="utf-8", errors="replace") as terminal:
        console = Console(file=terminal)
        columns = (SpinnerColumn(finished_text="✓"), TextColumn("{task.description}"), BarColumn())
        with Progress(
            *columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal
        ) as progress:
            yield Stages(progress)


@contextmanager
def _watched(spark: SparkSession, bar: Bar) -> Iterator[None]:
    """Tell of Spark's tasks as they end, from a thread of its own."""
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(spark, bar, over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _watch(spark: SparkSession, bar: Bar, over: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    seen: set[int] = set()
    # If Java is gone, the job that runs beside this says so.
    with suppress(Exception):
        while not over.wait(INTERVAL):
            seen.update(tracker.getActiveStageIds())
            known = [info for info in map(tracker.getStageInfo, sorted(seen)) if info is not None]
            if known:
                bar.done(sum(info.numCompletedTasks for info in known), sum(info.numTasks for info in known))
