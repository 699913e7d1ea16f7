"""Figure 3d of Fabret et al. 2000: how fast subscriptions are loaded (workload W0)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from harken.bench.loading import ONE_OF_EACH, Contender, contenders
from harken.bench.measuring import Bench, Figure, Plot, Ratio, Result, timed
from harken.bench.throughput import curves
from harken.bench.verifying import verify_workload
from harken.workloads import Workload, workload

PAPER = (
    "Counting loaded fastest, since its structures are the simplest; static slowest, since it computes its "
    "clustering from scratch; dynamic, which reorganises as it goes, was far faster than static. No numbers are "
    "given."
)

ASKED = 200_000
"""Subscriptions per second into dynamic, at 6,000,000."""


def run(bench: Bench) -> Result:
    """Load the same compiled tables into each algorithm, table by table in turns."""
    sizes = bench.pick((10_000, 50_000), (100_000, 1_000_000, 3_000_000, 6_000_000))
    made, taking_part = workload("w0", bench.seed), contenders(ONE_OF_EACH)
    points = {float(size): _at_size(bench, made, taking_part, size) for size in sizes}
    largest = points[sizes[-1]]
    largest["dynamic"] = replace(largest["dynamic"], target=bench.target(ASKED))
    return Result(
        "Loading from the compiled form (W0), one core",
        {"load": "tables of up to 262,144 subscriptions, then one event, since an index may be built only then"},
        [figure for measured in points.values() for figure in measured.values()],
        [
            Ratio.of(f"dynamic / {name} at {sizes[-1]:,}", largest["dynamic"], figure)
            for name, figure in largest.items()
            if name != "dynamic"
        ],
        Plot("subscriptions", "subscriptions/s", curves(points, lambda figure: figure.median), log_x=True),
        PAPER,
        ["Matches of a sample of events were compared with the reference semantics after every load."],
    )


def _at_size(bench: Bench, made: Workload, taking_part: list[Contender], size: int) -> dict[str, Figure]:
    seconds = [_loaded(bench, made, taking_part, size) for _ in range(bench.repeats)]
    return {
        each.name: Figure(
            f"{each.name}, {size:,} subscriptions",
            "subscriptions/s",
            tuple(size / one[each.name] for one in seconds),
        )
        for each in taking_part
    }


def _loaded(bench: Bench, made: Workload, taking_part: list[Contender], size: int) -> dict[str, float]:
    """Seconds for each to load so many; making the tables is not counted."""
    engines = {each.name: each.engine() for each in taking_part}
    seconds = dict.fromkeys(engines, 0.0)
    event = made.events(1)
    with bench.progress.step(f"loading {size:,} in turns", size) as done:
        for table in made.subscriptions(size):
            for name, engine in engines.items():
                seconds[name] += timed(partial(engine.subscribe_many, table))
            done(len(engine))
    for name, engine in engines.items():
        seconds[name] += timed(partial(engine.match_batch, event))
    verify_workload(made, engines, size, seed=bench.seed)
    return seconds
