"""Many small changes of one folder, one after the other: what each costs, and what the folder holds, over time."""

from __future__ import annotations

import random
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from harken.bench.measuring import Bench, Curve, Figure, Plot, Ratio, Result
from harken.spark.storage import Folder
from harken.spark.subscriptions import Subscriptions

HELD = 10_000
"""Subscriptions there are at a time."""

ROWS = 10
"""Subscriptions of a change."""

PIECES = 10
"""Points in time at which all is looked at."""


def run(bench: Bench) -> Result:
    """Changes that come and go; the first tenth beside the last."""
    changes, held = bench.pick(300, 100_000), bench.pick(1_000, HELD)
    grace = timedelta(seconds=bench.pick(0.5, 20.0))
    with tempfile.TemporaryDirectory(prefix="harken-") as folder:
        store = Subscriptions.create(Path(folder) / "subscriptions")
        store.grace = grace
        store.append([(id, f"n = {id % 100}") for id in range(held)])
        seconds, files, sizes = _grown(bench, store, changes, held)
    piece = changes // PIECES
    at = tuple(float(piece * (number + 1)) for number in range(PIECES))
    first, last = (
        Figure("a change, at first", "s", (seconds[0],)),
        Figure("a change, at last", "s", (seconds[-1],)),
    )
    return Result(
        "Small changes of one folder over time",
        {"changes": f"{changes:,}", "subscriptions": f"{held:,}", "of a change": ROWS, "grace": f"{grace}"},
        [
            first,
            last,
            Figure("files, at most", "files", (float(max(files)),)),
            Figure("bytes, at most", "bytes", (float(max(sizes)),)),
        ],
        [
            Ratio.of("a change, at first / at last", first, last, bench.target(0.7)),
            Ratio("files, in the middle / at last", (files[PIECES // 2] / files[-1],), bench.target(0.5)),
        ],
        Plot("changes", "milliseconds", (Curve("a change", at, tuple(1_000 * each for each in seconds)),)),
    )


def _grown(
    bench: Bench, store: Subscriptions, changes: int, held: int
) -> tuple[list[float], list[int], list[int]]:
    """Seconds per change, files and bytes, piece by piece."""
    chance = random.Random(bench.seed)
    seconds, files, sizes = list[float](), list[int](), list[int]()
    with bench.progress.step("changing", changes) as tell:
        for number in range(PIECES):
            begin = time.perf_counter()
            for _ in range(changes // PIECES):
                _change(store, chance, held)
            seconds.append((time.perf_counter() - begin) / (changes // PIECES))
            entries = _all(store.folder)
            files.append(len(entries))
            sizes.append(sum(entries))
            tell((number + 1) * (changes // PIECES))
    return seconds, files, sizes


def _change(store: Subscriptions, chance: random.Random, held: int) -> None:
    some = chance.sample(range(held), ROWS)
    if chance.random() < 0.5:
        store.upsert([(id, f"n = {chance.randrange(100)}") for id in some])
    else:
        store.delete(some, missing_ok=True)
        store.append([(id, f"n = {chance.randrange(100)}") for id in some])


def _all(folder: Folder) -> list[int]:
    return [each.bytes for each in folder.files()]
