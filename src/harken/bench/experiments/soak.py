"""Random updates and matches for as long as one likes: every answer is checked, and memory must stay steady."""

from __future__ import annotations

import itertools
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from harken import Engine, algorithms, parse
from harken.bench.measuring import Bench, Curve, Figure, Plot, Result
from harken.bench.memory import resident_bytes
from harken.matching.auto import SMALL as AUTO_LIMIT
from harken.matching.events.batch import EventSource
from harken.model.evaluation import truth
from harken.model.subscriptions import SubscriptionId
from harken.workloads.mixed import FlatEvent, Mixed, event_table

MOST_GROWTH = 1.05
"""Memory in the last quarter, in times of that in the second."""

BRIEFLY = 0.15
"""The part of every other slice of time in which another algorithm takes the place of dynamic."""

AT_LEAST = 10
"""Operations of each trial, however late it is."""

_OPERATIONS = {
    "subscribe": 8,
    "unsubscribe": 8,
    "replace": 6,
    "subscribe_many": 10,
    "unsubscribe_many": 10,
    "replace_many": 4,
    "match": 20,
    "match_rows": 6,
    "match_columns": 8,
}


class Trial:
    """An engine beside a dictionary of the texts it should hold; the two are compared at every match."""

    def __init__(self, algorithm: str, seed: int, least: int, most: int, events: int) -> None:
        self.engine = Engine(algorithm)
        self.done: Counter[str] = Counter()
        self._texts: dict[SubscriptionId, str] = {}
        self._mixed, self._chance = Mixed(seed), random.Random(seed)
        self._least, self._most, self._is_growing = least, most, True
        self._most_events = events
        self._next = 0
        self._take_in(self._fresh(most))

    def __len__(self) -> int:
        return len(self._texts)

    def work(self, end: float) -> None:
        """Do random things until that time, and some in any case."""
        for turn in itertools.count():
            if turn >= AT_LEAST and time.perf_counter() > end:
                break
            self.act()

    def act(self) -> None:
        """Do one random thing. The number of subscriptions swings between its bounds."""
        if not self._least <= len(self) <= self._most:
            self._is_growing = len(self) < self._least
            self._mixed.drift()
        idle = "unsubscribe_many" if self._is_growing else "subscribe_many"
        names = [name for name in _OPERATIONS if name != idle]
        name = self._chance.choices(names, [_OPERATIONS[name] for name in names])[0]
        getattr(self, name)()
        self.done[name] += 1

    def subscribe(self) -> None:
        """One that is new."""
        ((id, text),) = self._fresh(1).items()
        self.engine.subscribe(id, text)
        self._texts[id] = text

    def unsubscribe(self) -> None:
        """One of those there are."""
        (id,) = self._some(1)
        self.engine.unsubscribe(id)
        del self._texts[id]

    def replace(self) -> None:
        """Another text under an id there is."""
        (id,) = self._some(1)
        self._texts[id] = self._mixed.text()
        self.engine.subscribe(id, self._texts[id], replace=True)

    def subscribe_many(self) -> None:
        """Many that are new."""
        self._take_in(self._fresh(self._batch()))

    def unsubscribe_many(self) -> None:
        """Many of those there are."""
        going = self._some(self._batch())
        self.engine.unsubscribe_many(going)
        for id in going:
            del self._texts[id]

    def replace_many(self) -> None:
        """Other texts under ids there are, and some that are new."""
        known = {id: self._mixed.text() for id in self._some(self._batch() // 4 + 1)}
        self._take_in(known | self._fresh(2), replace=True)

    def match(self) -> None:
        """One event."""
        event = self._mixed.event()
        self._check(event, self.engine.match(event))

    def match_rows(self) -> None:
        """Some events as dictionaries."""
        events = [self._mixed.event() for _ in range(self._chance.randint(0, self._most_events // 4))]
        self._check_batch(events, events)

    def match_columns(self) -> None:
        """Some events as columns."""
        events = [self._mixed.event() for _ in range(self._chance.randint(1, self._most_events))]
        self._check_batch(events, event_table(events))

    def save_and_load(self) -> None:
        """Go on with a copy that has been on disk."""
        with tempfile.TemporaryDirectory() as folder:
            self.engine.save(Path(folder) / "engine")
            self.engine = Engine.load(Path(folder) / "engine")
        if set(self.engine) != self._texts.keys():
            raise AssertionError("an engine does not hold the same subscriptions after it was saved and loaded")
        self.done["save_and_load"] += 1

    def tables(self) -> str:
        """How many key tables have come and gone so far."""
        stats = self.engine.stats()
        return f"{stats.get('tables_made')} made, {stats.get('tables_dropped')} dropped"

    def _take_in(self, texts: dict[SubscriptionId, str], *, replace: bool = False) -> None:
        self.engine.subscribe_many(texts.items(), replace=replace)
        self._texts |= texts

    def _batch(self) -> int:
        return self._chance.randint(1, (self._most - self._least) // 8)

    def _fresh(self, count: int) -> dict[SubscriptionId, str]:
        self._next += count
        return {self._next - at: self._mixed.text() for at in range(count)}

    def _some(self, count: int) -> list[SubscriptionId]:
        return self._chance.sample(list(self._texts), min(count, len(self._texts)))

    def _check_batch(self, events: list[FlatEvent], given: EventSource) -> None:
        """Check a few events of a batch; which, the engine cannot know."""
        table = self.engine.match_batch(given)
        found: dict[int, list[SubscriptionId]] = {}
        for row, id in zip(*table.to_pydict().values(), strict=True):
            found.setdefault(row, []).append(id)
        for row in self._chance.sample(range(len(events)), min(3, len(events))):
            self._check(events[row], found.get(row, []))

    def _check(self, event: FlatEvent, found: Sequence[SubscriptionId]) -> None:
        """Compare what was found with the semantics: some of what was found, and some of all."""
        ids = set(found)
        if len(ids) < len(found) or not ids <= self._texts.keys():
            raise AssertionError(f"found twice, or never subscribed: {sorted(map(str, found))[:20]}")
        some = self._chance.sample(found, min(10, len(found)))
        for id in (*some, *self._some(30)):
            if (truth(parse(self._texts[id]), event) is True) != (id in ids):
                raise AssertionError(f"{self.engine}: {self._texts[id]!r} and {event}")


def run(bench: Bench) -> Result:
    """Let dynamic be used at random, and all others briefly in its place; sample memory on the way."""
    minutes = bench.minutes if bench.minutes is not None else bench.pick(0.2, 60.0)
    slices, least, most = bench.pick(8, 240), bench.pick(2_000, 100_000), bench.pick(2_200, 130_000)
    main, done = Trial("dynamic", bench.seed, least, most, events=200), Counter[str]()
    others = itertools.cycle([name for name in algorithms() if name not in ("dynamic", "reference")])
    memory: list[tuple[float, int | None]] = []
    begin, seconds = time.perf_counter(), 60 * minutes / slices
    with bench.progress.step(f"soaking for {minutes:g} minutes", slices) as tell:
        for at in range(slices):
            main.work(begin + seconds * (at + 1 - BRIEFLY * (at % 2)))
            if at % 4 == 3:
                main.save_and_load()
            memory.append((time.perf_counter() - begin, resident_bytes()))
            if at % 2 == 1:
                done += _briefly(next(others), bench.seed + at, begin + seconds * (at + 1))
            tell(at + 1)
    done += main.done
    return _result(bench, main, minutes, done, [(at, held / 2**20) for at, held in memory if held is not None])


def _briefly(algorithm: str, seed: int, end: float) -> Counter[str]:
    """A short trial of another algorithm, around the number of subscriptions from which `auto` has an index."""
    trial = Trial(algorithm, seed, AUTO_LIMIT - 40, AUTO_LIMIT + 40, events=8)
    trial.work(end)
    trial.save_and_load()
    trial.work(end)
    return trial.done


def _result(
    bench: Bench, main: Trial, minutes: float, done: Counter[str], memory: list[tuple[float, float]]
) -> Result:
    figures = [Figure("operations", "in all", (float(done.total()),))]
    figures += [Figure(name, "times", (float(count),)) for name, count in sorted(done.items())]
    return Result(
        "Random updates and matches, each checked",
        {"minutes": f"{minutes:g}", "subscriptions in the end": f"{len(main):,}"},
        figures + _memory_figures(bench, [held for _, held in memory]),
        plot=Plot(
            "minutes",
            "MiB resident",
            (Curve("all of the process", tuple(at / 60 for at, _ in memory), tuple(held for _, held in memory)),),
        ),
        notes=[
            "Dynamic, with every other algorithm but the reference briefly in its place in turn. Every match was "
            "compared with the reference semantics on a sample of subscriptions; any difference would have ended "
            "the run.",
            f"Key tables of dynamic: {main.tables()}.",
        ],
    )


def _memory_figures(bench: Bench, held: list[float]) -> list[Figure]:
    """Memory at the end, and whether it still grew after warming up; nothing where the system does not tell."""
    if not held:
        return []
    quarter = len(held) // 4
    second, last = statistics.median(held[quarter : 2 * quarter]), statistics.median(held[-quarter:])
    target = bench.target(MOST_GROWTH)
    return [
        Figure("memory, last quarter / second", "x", (last / second,), target, lower_is_better=True),
        Figure("memory, last quarter", "MiB", (last,), lower_is_better=True),
    ]
