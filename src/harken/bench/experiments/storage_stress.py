"""Processes that read, change, compact and vacuum one folder at random: no version loses a file that it needs."""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeAlias, cast

import pyarrow as pa

from harken import Engine
from harken.bench.apart import run_apart
from harken.bench.measuring import Bench, Figure, Result
from harken.errors import ConcurrentChangeError, HarkenError
from harken.spark.index.checking import damaged
from harken.spark.index.index import Index, build_index, index_beside
from harken.spark.index.worker_cache import Parts, open_index
from harken.spark.subscriptions.subscriptions import Subscriptions
from harken.spark.subscriptions.versions import VersionLog

ROLES = ("read", "read", "write", "compact", "vacuum")
IDS = 200
"""Subscriptions there may be."""

GRACE, ORPHANS = 8.0, 120.0
"""Seconds: for as long a version may be read after it was the latest, and a file may have no name."""

Act: TypeAlias = Callable[[str, str, float, int, float], dict[str, int]]
"""What a process does: a role, in a folder, for so many seconds, a seed and a grace; how often it did what."""

AT = datetime(2026, 1, 1, tzinfo=UTC)
EVENTS = pa.table({"n": [value % 10 for value in range(40)], "m": [value % 7 for value in range(40)]})


class Actor:
    """One process, with a random mind of its own."""

    def __init__(self, folder: str, seed: int, grace: float = GRACE) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.grace = grace

    def read(self) -> None:
        """Match with the latest version, and compare with a plain evaluation of what it holds."""
        store = Subscriptions(self.folder)
        index, state = index_beside(None, store)
        parts = Parts(index.folder, state.layers, state.division, state.integer_ids)
        rows, ids = open_index(parts).match(EVENTS, AT)
        if sorted(zip(rows.tolist(), ids.to_pylist(), strict=True)) != held(store, state.covers):
            raise AssertionError(f"version {state.covers} found something else than it holds")

    def write(self) -> None:
        """A small change."""
        store = Subscriptions(self.folder)
        some = self.chance.sample(range(IDS), self.chance.randint(1, 4))
        if self.chance.random() < 0.3:
            store.delete(some, missing_ok=True)
        else:
            value = self.chance.randrange(10)
            store.upsert([(id, f"n = {value} and m <= {id % 7}") for id in some])

    def compact(self) -> None:
        """All of the subscriptions into one file, or all of the index into one layer."""
        # Whoever was first has done it, or will have to be followed.
        with suppress(ConcurrentChangeError):
            if self.chance.random() < 0.5:
                Subscriptions(self.folder).compact()
            else:
                Index(Subscriptions(self.folder).folder.child("index")).compact(None)
        time.sleep(0.2 * self.chance.random())

    def vacuum(self) -> None:
        """Remove what nobody can need."""
        grace, orphans = timedelta(seconds=self.grace), timedelta(seconds=ORPHANS)
        keep = self.chance.randint(1, 3)
        store = Subscriptions(self.folder)
        store.vacuum(keep, grace=grace, orphans=orphans)
        Index(store.folder.child("index")).vacuum(keep, grace=grace, orphans=orphans)
        time.sleep(0.2 * self.chance.random())


def held(store: Subscriptions, version: int) -> list[tuple[int, int]]:
    """What events match by a version of the subscriptions, evaluated plainly: rows and ids."""
    reference = Engine("reference")
    for table in store.tables(store.snapshot(version)):
        reference.subscribe_many(table)
    return sorted(zip(*reference.match_batch(EVENTS, at=AT).to_pydict().values(), strict=True))


def act(role: str, folder: str, seconds: float, seed: int, grace: float = GRACE) -> dict[str, int]:
    """Do one thing over and over; how often it was done."""
    actor = Actor(folder, seed, grace)
    return repeated(getattr(actor, role), role, seconds, grace)


def repeated(deed: Callable[[], None], role: str, seconds: float, grace: float) -> dict[str, int]:
    """Do something again and again; how often it was done, and how often it took longer than there was."""
    done = Counter[str]()
    until = time.monotonic() + seconds
    while not done[role] or time.monotonic() < until:
        begin = time.monotonic()
        try:
            deed()
            done[role] += 1
        except HarkenError:
            # Who takes longer than the grace is told that what it needs is gone.
            if time.monotonic() - begin < grace:
                raise
            done["too slow"] += 1
    return dict(done)


def missing(folder: Path) -> list[str]:
    """Files that a version of the subscriptions, or of the index, names, and that are not there."""
    store = Subscriptions(folder)
    named = {
        segment.file
        for version in VersionLog(folder / "versions").numbers()
        for segment in store.snapshot(version).segments
    }
    there = {each.name for each in store.folder.child("segments").entries()}
    index = Index(folder / "index")
    states = [index.state(version) for version in VersionLog(folder / "index" / "versions").numbers()]
    return [*sorted(named - there), *(name for state in states for name in damaged(index.folder, state.layers))]


def at_work(
    bench: Bench, processes: Sequence[tuple[Act, str]], grace: float
) -> tuple[dict[str, object], list[Figure]]:
    """Processes on one folder, each in its role, for as long as was asked for: how it went."""
    minutes = bench.minutes if bench.minutes is not None else bench.pick(5 / 60, 30.0)
    with tempfile.TemporaryDirectory(prefix="harken-") as temporary:
        folder = Path(temporary) / "subscriptions"
        store = Subscriptions.create(folder)
        store.append([(id, f"n = {id % 10}") for id in range(0, IDS, 2)])
        build_index(None, store, shards=2)
        with (
            bench.progress.step(f"processes at work for {minutes:g} minutes"),
            ThreadPoolExecutor(len(processes)) as threads,
        ):
            acting = [
                threads.submit(run_apart, does, role, str(folder), 60 * minutes, bench.seed + at, grace)
                for at, (does, role) in enumerate(processes)
            ]
            done = Counter[str]()
            for each in acting:
                done.update(cast("dict[str, int]", each.result().result))
        lost = missing(folder)
        if lost:
            raise AssertionError(f"{len(lost)} files are missing: {lost[:5]}")
        files = sum(path.is_file() for path in folder.rglob("*"))
    conditions = {
        "minutes": f"{minutes:g}",
        "processes": ", ".join(role for _, role in processes),
        "grace": f"{grace:g} s",
        "files at the end": files,
    }
    return conditions, [Figure(name, "times", (float(count),)) for name, count in sorted(done.items())]


def run(bench: Bench) -> Result:
    """All at once, for as long as was asked for."""
    conditions, done = at_work(bench, [(act, role) for role in ROLES], GRACE)
    return Result(
        "Processes that read, change, compact and vacuum one folder",
        conditions,
        done,
        notes=[
            "Every read found what its version holds, by a plain evaluation, and at the end no version lacked a "
            "file. Any failure would have ended the run; too slow is who took longer than the grace."
        ],
    )
