"""What compiling costs the first process that uses Harken on a machine, and what it leaves to later ones."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from typing import cast

from harken import Engine, algorithms
from harken.bench.apart import Apart, run_apart
from harken.bench.measuring import Bench, Figure, Ratio, Result
from harken.bench.verifying import verify_workload
from harken.workloads import workload

SUBSCRIPTIONS = 1_200
"""Just enough that `auto` builds an index."""

FIRST, LATER = 40, 2
"""Seconds at most, in the first process and in later ones."""

TEXTS = [
    "kind = 'camera' AND price < 300",
    "kind IN ('lens', 'bag') AND price BETWEEN 5 AND 9.5 OR maker LIKE 'So%'",
    "kind IS NULL AND NOT (maker STARTS WITH 'L' AND a00 != 4)",
]


def run(bench: Bench) -> Result:
    """Use algorithms in a fresh process with an empty cache, then in one that finds it filled."""
    names = bench.pick(("counting", "reference"), tuple(algorithms()))  # counting has the fewest kernels
    with bench.progress.step("using algorithms in fresh processes"):
        runs = [_first_and_later(names, bench.seed) for _ in range(bench.pick(1, bench.repeats))]
    first, later = zip(*runs, strict=True)
    compiling = _figure("first process", map(_seconds, first), bench.target(FIRST))
    cached = _figure("later process", map(_seconds, later), bench.target(LATER))
    return Result(
        "First use: compiling, and loading what was compiled",
        {"algorithms": ", ".join(names), "subscriptions": f"{SUBSCRIPTIONS:,}, and {len(TEXTS)} texts"},
        [
            compiling,
            cached,
            *_by_algorithm(first),
            _figure("first process, from start to exit", (each.seconds for each in first)),
            _figure("later process, from start to exit", (each.seconds for each in later)),
        ],
        [Ratio.of("first / later", compiling, cached)],
        notes=[
            "Seconds from making the first engine, which loads the compiler, until each algorithm in turn has "
            "taken in subscriptions and texts and matched a batch and a single event.",
            "The first process told on standard error that it compiles; the later one had no reason to.",
            "Both compared their matches with the reference semantics.",
        ],
    )


def use(names: list[str], seed: int) -> dict[str, float]:
    """Seconds from making an engine to its first answers, by algorithm; to be called in a fresh process."""
    made = workload("w0", seed)
    (table,), events = made.subscriptions(SUBSCRIPTIONS), made.events(2)
    texts = list(enumerate(TEXTS, SUBSCRIPTIONS))
    engines: dict[str, Engine] = {}
    seconds: dict[str, float] = {}
    for name in names:
        begin = time.perf_counter()
        engine = engines[name] = Engine(name)
        engine.subscribe_many(table)
        engine.subscribe_many(texts)
        engine.match_batch(events)
        engine.match({"kind": "camera", "price": 200})
        engine.unsubscribe(SUBSCRIPTIONS)
        seconds[name] = time.perf_counter() - begin
    verify_workload(made, engines, SUBSCRIPTIONS, seed=seed)
    return seconds


def _first_and_later(names: tuple[str, ...], seed: int) -> tuple[Apart, Apart]:
    """One process with an empty cache, and one with what the first has left there."""
    with tempfile.TemporaryDirectory() as cache:
        first, later = (run_apart(use, names, seed, environment={"NUMBA_CACHE_DIR": cache}) for _ in range(2))
    if "compiling kernels" not in first.said:
        raise AssertionError("the first process compiled without telling")
    if "compiling kernels" in later.said:
        raise AssertionError("the later process compiled again")
    return first, later


def _seconds(done: Apart) -> float:
    return sum(cast("dict[str, float]", done.result).values())


def _figure(name: str, seconds: Iterable[float], target: float | None = None) -> Figure:
    return Figure(name, "s", tuple(seconds), target, lower_is_better=True)


def _by_algorithm(first: Iterable[Apart]) -> list[Figure]:
    used = [cast("dict[str, float]", each.result) for each in first]
    return [_figure(f"first process, {name} (in this order)", (each[name] for each in used)) for name in used[0]]
