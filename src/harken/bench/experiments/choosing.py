"""Every algorithm on the workloads of every paper, and what `auto` makes of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial

from harken import Engine, Parallel
from harken.bench.loading import Contender, load
from harken.bench.measuring import Bench, Curve, Figure, Plot, Ratio, Result, timed
from harken.bench.verifying import pairs
from harken.matching.auto import SMALL
from harken.workloads import Workload, workload

WORKLOADS = (
    *("w0", "w1", "w2", "ranges"),
    *("light-query", "light-query-exponential"),
    *("be-gen", "be-gen-zipf"),
    *("parallel", "equalities", "equalities-and-ranges", "output"),
)
"""Fabret's, Kale's, Mishra's and Farroukh's, and those of peers."""

ALGORITHMS = ("dynamic", "static", "propagation", "counting", "pubsub", "be-tree", "tree", "rapid")

AUTO = "auto"

ASKED = 0.85
"""How fast `auto` is to be, in times of the best."""

ONE = Parallel(threads=1)

PATIENCE = 0.5
"""Seconds that a repeat may take: slow algorithms are given fewer events."""


def run(bench: Bench) -> Result:
    """Match events of each workload with each algorithm."""
    size, most = bench.pick((SMALL + 100, 100), (100_000, 20_000))
    figures, ratios, by_workload = list[Figure](), list[Ratio](), dict[str, dict[str, Figure]]()
    for name in WORKLOADS:
        found = by_workload[name] = _measured(bench, workload(name, bench.seed), size, most, name)
        figures += found.values()
        others = [each for each in found if each != AUTO]
        best = max(others, key=lambda each: found[each].median)
        ratios.append(Ratio.of(f"{AUTO} / {best}, {name}", found[AUTO], found[best], bench.target(ASKED)))
    return Result(
        f"{size:,} subscriptions of each workload, all algorithms, one core, encoding included",
        {
            "events per repeat": f"as many as take half a second, {most:,} at most",
            "before": f"{AUTO} had matched 1,000 events, and all others were told to learn from them",
        },
        figures,
        ratios,
        Plot("workload", "events/s", _points(by_workload), log_y=True),
        notes=[
            f"The ratios compare {AUTO} with the best of the others.",
            "All found the same on a sample of events.",
        ],
    )


def _measured(bench: Bench, made: Workload, size: int, most: int, where: str) -> dict[str, Figure]:
    engines = {name: load(bench, made, Contender(name, name), size) for name in (AUTO, *ALGORITHMS)}
    seen, sample = made.events(1_000, part=2), made.events(200, part=1)
    for name, engine in engines.items():
        if name != AUTO:
            engine.learn(seen)
    engines[AUTO].match_batch(seen, parallel=ONE)
    _wait()
    expected = pairs(engines[AUTO], sample)
    for name, engine in engines.items():
        if pairs(engine, sample) != expected:
            raise AssertionError(f"{name} and {AUTO} disagree on {where}")
    counts = {name: _count(engine, made, most) for name, engine in engines.items()}
    work: dict[str, Callable[[], object]] = {
        name: partial(engine.match_batch, made.events(counts[name]), parallel=ONE)
        for name, engine in engines.items()
    }
    seconds = bench.in_turns(work, f"matching: {where}")
    return {
        name: Figure(f"{name}, {where}", "events/s", tuple(counts[name] / each for each in samples))
        for name, samples in seconds.items()
    }


def _points(found: Mapping[str, Mapping[str, Figure]]) -> tuple[Curve, ...]:
    """Of each algorithm, its speed on every workload."""
    return tuple(
        Curve(name, tuple(found), tuple(each[name].median for each in found.values()))
        for name in (AUTO, *ALGORITHMS)
    )


def _wait() -> None:
    """Wait for what `auto` does beside those who match."""
    for each in threading.enumerate():
        if each.name == "harken-arranging":
            each.join()


def _count(engine: Engine, made: Workload, most: int) -> int:
    few = made.events(20, part=3)
    seconds = timed(partial(engine.match_batch, few, parallel=ONE))
    return max(20, min(most, int(PATIENCE / (seconds / 20))))
