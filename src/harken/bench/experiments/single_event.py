"""How long one event takes that comes as a dictionary, among six million subscriptions."""

from __future__ import annotations

import time
from itertools import islice

import numpy as np
import numpy.typing as npt

from harken import Engine
from harken.bench.loading import contenders, load
from harken.bench.measuring import Bench, Curve, Figure, Plot, Result
from harken.bench.verifying import verify_workload
from harken.workloads import workload

ASKED, ASKED_OF_FEW = 10, 4
"""Microseconds at most, in the median: of 32 attributes, and of few."""

FEW = 5
"""Attributes of small events: those that most subscriptions ask for are among them."""


def run(bench: Bench) -> Result:
    """Match different events one by one and look at the distribution of their times."""
    size, count = bench.pick(20_000, 6_000_000), bench.pick(2_000, 20_000)
    made = workload("w0", bench.seed)
    engine = load(bench, made, contenders(("dynamic",))[0], size)
    verify_workload(made, {"dynamic": engine}, size, seed=bench.seed)
    _microseconds(engine, made.events(100, part=2).to_pylist())  # the first call loads what the others find there
    with bench.progress.step("matching one by one"):
        events = [made.events(count, part=3 + turn).to_pylist() for turn in range(bench.repeats)]
        found = [_microseconds(engine, each) for each in events]
        few = [_microseconds(engine, [dict(islice(event.items(), FEW)) for event in each]) for each in events]
    return Result(
        "One event from a dictionary of 32 attributes (W0), one core",
        {"subscriptions": f"{size:,}", "events per repeat": f"{count:,}, all different"},
        [
            Figure("median", "microseconds", _percentile(found, 50), bench.target(ASKED), lower_is_better=True),
            Figure("99th percentile", "microseconds", _percentile(found, 99), lower_is_better=True),
            Figure("mean", "microseconds", tuple(float(each.mean()) for each in found), lower_is_better=True),
            Figure(
                f"median of {FEW} attributes",
                "microseconds",
                _percentile(few, 50),
                bench.target(ASKED_OF_FEW),
                lower_is_better=True,
            ),
        ],
        plot=Plot("percentile", "microseconds", (_curve(np.concatenate(found)),)),
        notes=[
            "Checked against the reference semantics on a sample, and every event against the same one in a batch."
        ],
    )


def _microseconds(engine: Engine, events: list[dict[str, object]]) -> npt.NDArray[np.float64]:
    """The time of each event; what was found is compared with what the batch finds."""
    seconds, found = np.empty(len(events)), set[tuple[int, object]]()
    for row, event in enumerate(events):
        begin = time.perf_counter()
        ids = engine.match(event)
        seconds[row] = time.perf_counter() - begin
        found.update((row, id) for id in ids)
    if found != set(zip(*engine.match_batch(events).to_pydict().values(), strict=True)):
        raise AssertionError("events one by one and in a batch are not matched alike")
    return 1e6 * seconds


def _percentile(found: list[npt.NDArray[np.float64]], percent: float) -> tuple[float, ...]:
    return tuple(float(np.percentile(each, percent)) for each in found)


def _curve(found: npt.NDArray[np.float64]) -> Curve:
    percents = (1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9)
    return Curve("dynamic", percents, tuple(np.percentile(found, percents).tolist()))
