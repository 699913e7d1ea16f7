"""Workloads that other systems have been measured on: events by the batch, and one by one from dictionaries."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from harken import Engine
from harken.bench.loading import contenders, load
from harken.bench.measuring import Bench, Figure, Result
from harken.bench.verifying import verify_workload
from harken.workloads import workload

ASKED = {"equalities": (700_000, 150_000), "equalities-and-ranges": (150_000, 40_000)}
"""Events per second by the batch and one by one, by workload."""


def run(bench: Bench) -> Result:
    """Match the events of each workload both ways, in turns."""
    size, (many, few) = bench.pick(5_000, 100_000), bench.pick((2_000, 500), (100_000, 5_000))
    figures = []
    for name, asked in ASKED.items():
        made = workload(name, bench.seed)
        engine = load(bench, made, contenders(("dynamic",))[0], size)
        verify_workload(made, {"dynamic": engine}, size, seed=bench.seed)
        singles = [
            {key: each for key, each in event.items() if each is not None}
            for event in made.events(few, part=1).to_pylist()
        ]
        work: dict[str, Callable[[], object]] = {
            "batch": partial(engine.match_batch, made.events(many)),
            "one by one": partial(_one_by_one, engine, singles),
        }
        seconds = bench.in_turns(work, f"matching {name}")
        for way, count, target in zip(work, (many, few), asked, strict=True):
            speeds = tuple(count / each for each in seconds[way])
            figures.append(Figure(f"{name}, {way}", "events/s", speeds, bench.target(target)))
    return Result(
        "Workloads of other systems, one core, encoding included",
        {
            "subscriptions": f"{size:,}",
            "events per repeat": f"{many:,} by the batch from Arrow, {few:,} one by one from dictionaries",
        },
        figures,
        notes=["Matches of a sample of events were compared with the reference semantics."],
    )


def _one_by_one(engine: Engine, events: list[dict[str, object]]) -> None:
    for event in events:
        engine.match(event)
