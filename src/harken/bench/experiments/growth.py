"""Many small changes of one folder, and many batches of one stream: what each costs, and what is kept, over time.

The batches are those of a stream without its Spark: what Harken itself reads and writes for each, and a file that
is put in its place in the table.
"""

from __future__ import annotations

import random
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from harken.bench.measuring import Bench, Curve, Figure, Plot, Ratio, Result
from harken.spark.index.index import index_beside
from harken.spark.storage import Folder, folder_at
from harken.spark.streaming.ledger import Ledger
from harken.spark.streaming.sinks.placing import is_placed, place
from harken.spark.subscriptions.readers import Reader, Readers
from harken.spark.subscriptions.subscriptions import Subscriptions

HELD = 10_000
"""Subscriptions there are at a time."""

ROWS = 10
"""Subscriptions of a change."""

BETWEEN = 100
"""Batches from one change to the next."""

PIECES = 10
"""Points in time at which all is looked at."""


@dataclass(frozen=True, slots=True)
class Course:
    """What was seen over time, piece by piece."""

    steps: int
    seconds: list[float]
    """That a step took."""
    files: list[int]
    sizes: list[int]

    @property
    def at(self) -> tuple[float, ...]:
        """How many steps were done by then."""
        return tuple(float(self.steps // PIECES * (number + 1)) for number in range(PIECES))

    def figures(self, name: str) -> list[Figure]:
        """The first piece, the last, and the most there was."""
        return [
            Figure(f"{name}, at first", "s", (self.seconds[0],)),
            Figure(f"{name}, at last", "s", (self.seconds[-1],)),
            Figure(f"files, at most, beside {name}", "files", (float(max(self.files)),)),
            Figure(f"bytes, at most, beside {name}", "bytes", (float(max(self.sizes)),)),
        ]

    def ratios(self, bench: Bench, name: str) -> list[Ratio]:
        """Whether the last piece was slower, and kept more, than those before it."""
        first, last = self.figures(name)[:2]
        kept = self.files[PIECES // 2] / self.files[-1]
        return [
            Ratio.of(f"{name}, at first / at last", first, last, bench.target(0.7)),
            Ratio(f"files beside {name}, in the middle / at last", (kept,), bench.target(0.5)),
        ]

    def curve(self, name: str) -> Curve:
        """Milliseconds over steps."""
        return Curve(name, self.at, tuple(1_000 * each for each in self.seconds))


def run(bench: Bench) -> Result:
    """Changes that come and go, and then batches; the first tenth beside the last."""
    changes, batches = bench.pick(300, 100_000), bench.pick(300, 100_000)
    held, grace = bench.pick(1_000, HELD), timedelta(seconds=bench.pick(0.5, 20.0))
    with tempfile.TemporaryDirectory(prefix="harken-") as folder:
        store = Subscriptions.create(Path(folder) / "subscriptions")
        store.grace = grace
        store.append([(id, f"n = {id % 100}") for id in range(held)])
        chance = random.Random(bench.seed)
        changed = _over_time(
            bench, "changing", changes, lambda _: _change(store, chance, held), lambda: _sizes(store.folder)
        )
        stream = Stream(folder_at(Path(folder) / "stream"), store, chance, held)
        streamed = _over_time(bench, "streaming", batches, stream.batch, stream.kept)
    return Result(
        "Small changes of one folder, and batches of one stream, over time",
        {
            "changes": f"{changes:,}",
            "batches": f"{batches:,}, a change every {BETWEEN}",
            "subscriptions": f"{held:,}",
            "of a change": ROWS,
            "grace": f"{grace}",
        },
        [*changed.figures("a change"), *streamed.figures("a batch")],
        [*changed.ratios(bench, "a change"), *streamed.ratios(bench, "a batch")],
        Plot("changes, batches", "milliseconds", (changed.curve("a change"), streamed.curve("a batch"))),
        notes=[
            "A batch is what Harken reads and writes for it, Spark's own work left out, with the index brought up "
            "to date after a change. The files beside it are those of ledger, readers, subscriptions and index; "
            "the table has one more with every batch, which is its purpose."
        ],
    )


def _over_time(
    bench: Bench, label: str, steps: int, step: Callable[[int], None], kept: Callable[[], list[int]]
) -> Course:
    """Do all steps, and look piece by piece at what one took and what is kept."""
    course = Course(steps, [], [], [])
    piece = steps // PIECES
    with bench.progress.step(label, steps) as tell:
        for number in range(PIECES):
            begin = time.perf_counter()
            for at in range(number * piece, (number + 1) * piece):
                step(at)
            course.seconds.append((time.perf_counter() - begin) / piece)
            sizes = kept()
            course.files.append(len(sizes))
            course.sizes.append(sum(sizes))
            tell((number + 1) * piece)
    return course


def _change(store: Subscriptions, chance: random.Random, held: int) -> None:
    some = chance.sample(range(held), ROWS)
    if chance.random() < 0.5:
        store.upsert([(id, f"n = {chance.randrange(100)}") for id in some])
    else:
        store.delete(some, missing_ok=True)
        store.append([(id, f"n = {chance.randrange(100)}") for id in some])


@dataclass(frozen=True, slots=True)
class Stream:
    """What a stream does with storage, batch by batch."""

    folder: Folder
    store: Subscriptions
    chance: random.Random
    held: int

    def batch(self, number: int) -> None:
        """Decide on a version, have its index, and put the file of a batch in its place."""
        if number % BETWEEN == 0:
            _change(self.store, self.chance, self.held)
        entry = Ledger(self.folder.child("ledger")).decide(number, self.store.version)
        readers = Readers(self.store.folder.child("readers"))
        readers.note(Reader.now("stream", "checkpoint", entry.version, entry.before, follows=False))
        index_beside(None, self.store, entry.version)
        table, name = self.folder.child("table"), f"batch={number}"
        if not is_placed(table, name, f".batches/{number}.json"):
            staging = f".staging/{number}/{uuid.uuid4().hex}"
            table.child(staging).create("part-0.parquet", b"rows")
            place(table, staging, name, f".batches/{number}.json")
        table.remove([f".staging/{number}"])

    def kept(self) -> list[int]:
        """The sizes of all files but those of the table."""
        return [*_sizes(self.folder.child("ledger")), *_sizes(self.store.folder)]


def _sizes(folder: Folder) -> list[int]:
    return [each.bytes for each in folder.files()]
