"""Threads that match and threads that change, on one engine: every match sees each change whole or not at all."""

from __future__ import annotations

import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

from harken import Engine, Parallel, algorithms
from harken.bench.experiments.faults import engine_of
from harken.bench.measuring import Bench, Figure, Result
from harken.matching.parallel.options import Mode, Sync
from harken.model.subscriptions import SubscriptionId
from harken.workloads.mixed import Mixed

STABLE, BULK, SWAPPED = 40, 120, 80
"""Subscriptions that stay, that come and go together, and that are replaced together: in several portions."""

FIRST_OF_BULK, FIRST_SWAPPED, FIRST_OF_OTHERS, ONE = 10_000, 20_000, 30_000, 40_000
EVENT = {"stays": 1, "other": -1, "comes": 1, "says": 1, "one": 1}
"""Satisfies all that stay, and the others as long as they are there and say so."""

BATCH = 40

WAYS = [
    Parallel(mode, 3, 2 if mode == "hybrid" else None, sync, block=2)
    for mode in get_args(Mode)
    for sync in get_args(Sync)
]
"""How threads may share their work, with blocks so small that they come in each other's way."""


class Scene:
    """An engine in the hands of several threads; the first thing that goes wrong ends it."""

    def __init__(self, algorithm: str, seed: int, parallel: Parallel | None = None) -> None:
        self.engine = engine_of(algorithm, parallel)
        self.done: Counter[str] = Counter()
        self._mixed = Mixed(seed)
        self._over, self._wrong = threading.Event(), list[BaseException]()
        self.engine.subscribe_many((id, f"stays = 1 and other != {id}") for id in range(STABLE))
        self.engine.subscribe_many((FIRST_SWAPPED + at, "says = 1") for at in range(SWAPPED))

    def run(self, seconds: float) -> Counter[str]:
        """Let all loose for some time; what they have done."""
        acts = (
            self.match,
            self.match,
            self.match_batch,
            self.look,
            self.come_and_go,
            self.swap,
            self.alone,
            self.save_and_load,
        )
        threads = [threading.Thread(target=self._repeat, args=(act,), name=act.__name__) for act in acts]
        for thread in threads:
            thread.start()
        self._over.wait(seconds)
        self._over.set()
        for thread in threads:
            thread.join()
        if self._wrong:
            raise self._wrong[0]
        return self.done

    def _repeat(self, act: Callable[[], None]) -> None:
        count = 0
        try:
            while not count or not self._over.is_set():
                act()
                count += 1
        except BaseException as error:  # told by the thread that waits
            self._wrong.append(error)
            self._over.set()
        self.done.update({act.__name__: count})

    def match(self) -> None:
        """One event."""
        _check(self.engine.match(EVENT))

    def match_batch(self) -> None:
        """Some events, all of which see the same state."""
        found: dict[int, list[SubscriptionId]] = {row: [] for row in range(BATCH)}
        for row, id in zip(*self.engine.match_batch([EVENT] * BATCH).to_pydict().values(), strict=True):
            found[row].append(id)
        _check(found[0])
        if any(sorted(each) != sorted(found[0]) for each in found.values()):
            raise AssertionError("events of one batch saw different states")

    def look(self) -> None:
        """At everything that can be looked at."""
        held = set(self.engine)
        if not held.issuperset(range(STABLE)) or not (0 in self.engine and len(self.engine) >= STABLE):
            raise AssertionError("a stable subscription is not there")
        in_bulk = sum(FIRST_OF_BULK <= id < FIRST_SWAPPED for id in held if isinstance(id, int))
        if in_bulk not in (0, BULK):
            raise AssertionError(f"{in_bulk} of {BULK} that come together are there")
        if not self.engine.explain(EVENT, 0).matches or self.engine.subscription(0).id != 0:
            raise AssertionError("a stable subscription is not explained")
        if not {self.engine.stats()["algorithm"], self.engine.algorithm} <= set(algorithms()):
            raise AssertionError("an algorithm is none")

    def come_and_go(self) -> None:
        """Many that match come and go together, among others that move the index about."""
        self.engine.subscribe_many((FIRST_OF_BULK + at, "comes = 1") for at in range(BULK))
        others = {FIRST_OF_OTHERS + at: self._mixed.text() for at in range(BULK)}
        self.engine.subscribe_many(others.items())
        self.engine.unsubscribe_many(range(FIRST_OF_BULK, FIRST_OF_BULK + BULK))
        self.engine.unsubscribe_many(others)
        if any(FIRST_OF_BULK <= id < FIRST_SWAPPED for id in self.engine.match(EVENT) if isinstance(id, int)):
            raise AssertionError("what was removed still matches")

    def swap(self) -> None:
        """Many are replaced together, by what does not match and by what does."""
        for value in (2, 1):
            rows = [(FIRST_SWAPPED + at, f"says = {value}") for at in range(SWAPPED)]
            self.engine.subscribe_many(rows, replace=True)

    def save_and_load(self) -> None:
        """What is written is what a match would see."""
        with tempfile.TemporaryDirectory(prefix="harken-") as folder:
            self.engine.save(Path(folder) / "engine")
            _check(Engine.load(Path(folder) / "engine").match(EVENT))

    def alone(self) -> None:
        """One comes, is found, goes, and is not found."""
        self.engine.subscribe(ONE, "one = 1")
        if ONE not in self.engine.match(EVENT):
            raise AssertionError("what was subscribed does not match")
        self.engine.unsubscribe(ONE)
        if ONE in self.engine.match(EVENT):
            raise AssertionError("what was unsubscribed still matches")
        self.engine.learn([EVENT] * 10)


def _check(found: Sequence[SubscriptionId]) -> None:
    if len(set(found)) < len(found):
        raise AssertionError("a subscription was found twice")
    if not set(found).issuperset(range(STABLE)):
        raise AssertionError("a stable subscription was missed")
    for first, many in ((FIRST_OF_BULK, BULK), (FIRST_SWAPPED, SWAPPED)):
        seen = sum(first <= id < first + 10_000 for id in found if isinstance(id, int))
        if seen not in (0, many):
            raise AssertionError(f"{seen} of {many} that come together were found")


def run(bench: Bench) -> Result:
    """Every algorithm in turn, and every way in which several threads share what they match."""
    minutes = bench.minutes if bench.minutes is not None else bench.pick(0.02, 30.0)
    scenes: list[tuple[str, Parallel | None]] = [(name, None) for name in algorithms()]
    scenes += [("dynamic", each) for each in WAYS]
    names, done = list(algorithms()), Counter[str]()
    with bench.progress.step(f"threads at work for {minutes:g} minutes", len(scenes)) as tell:
        for at, (name, parallel) in enumerate(scenes, 1):
            done += Scene(name, bench.seed, parallel).run(60 * minutes / len(scenes))
            tell(at)
    return Result(
        "Matching while others change",
        {
            "minutes": f"{minutes:g}",
            "algorithms": ", ".join(names),
            "shared": "each mode and way of synchronising, by three threads, with dynamic",
            "threads": "4 that match, 3 that change, 1 that saves and loads",
        },
        [Figure(name, "times", (float(count),)) for name, count in sorted(done.items())],
        notes=[
            "Each match must see all stable subscriptions, and all or none of those that come, go or are replaced "
            "together; who has removed must not find any more. Any difference would have ended the run.",
        ],
    )
