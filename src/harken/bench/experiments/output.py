"""Matches told per second where events have thousands: then telling is the work."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from harken.bench.loading import contenders, load
from harken.bench.measuring import Bench, Figure, Result
from harken.bench.verifying import verify_workload
from harken.workloads import workload

WORKLOADS = ("output", "be-gen")
ASKED = 100_000_000
"""Matches per second."""


def run(bench: Bench) -> Result:
    """Match a few events against very many subscriptions of which one in a hundred matches, and count."""
    size, count = bench.pick(20_000, 1_000_000), bench.pick(200, 1_000)
    figures = []
    for name in WORKLOADS:
        made = workload(name, bench.seed)
        engine = load(bench, made, contenders(("dynamic",))[0], size)
        verify_workload(made, {"dynamic": engine}, size, seed=bench.seed)
        events = made.events(count)
        matches = engine.match_batch(events).num_rows
        work: dict[str, Callable[[], object]] = {name: partial(engine.match_batch, events)}
        speeds = tuple(matches / each for each in bench.in_turns(work, f"telling, {name}")[name])
        figures += [
            Figure(name, "matches/s", speeds, bench.target(ASKED)),
            Figure(f"{name}, matches", "per event", (matches / count,)),
        ]
    return Result(
        "Matches told per second, one core, as an Arrow table of ids",
        {"subscriptions": f"{size:,}", "events per repeat": f"{count:,}"},
        figures,
        notes=["Matches of a sample of events were compared with the reference semantics."],
    )
