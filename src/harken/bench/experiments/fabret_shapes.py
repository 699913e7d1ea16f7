"""Section 6.2.2 of Fabret et al. 2000: the size of value domains, and the number of predicates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from harken.bench.loading import contenders
from harken.bench.measuring import Bench, Plot, Ratio, Result
from harken.bench.throughput import compete, curves, events_by_speed, per_100_events
from harken.workloads import Specification, Workload
from harken.workloads.fabret import w0

TAKING_PART = ("dynamic", "static", "propagation")

DOMAIN_PAPER = (
    "From 10 values per attribute upwards in steps of 20: the more values, the faster both dynamic and "
    "propagation, since each predicate lets fewer subscriptions through; dynamic depends less on it, "
    "as its keys have several attributes. No numbers are given."
)
PREDICATES_PAPER = (
    "From 4 to 14 predicates in steps of 2: the more predicates, the faster dynamic, since subscriptions with "
    "many predicates lead it to tables of longer keys. No numbers are given."
)


def run_domain(bench: Bench) -> Result:
    """W0 with attributes of few to many values."""
    values = bench.pick((10, 50, 100), (10, 30, 50, 70, 90, 100))
    shapes = {high: replace(w0(), high=high) for high in values}
    return _run(bench, shapes, "values per attribute", DOMAIN_PAPER)


def run_predicates(bench: Bench) -> Result:
    """W0 with few to many predicates per subscription, two of them fixed."""
    counts = bench.pick((4, 8, 14), (4, 6, 8, 10, 12, 14))
    shapes = {count: replace(w0(), free=count - len(w0().fixed)) for count in counts}
    return _run(bench, shapes, "predicates per subscription", PREDICATES_PAPER)


def _run(bench: Bench, shapes: dict[int, Specification], what: str, paper: str) -> Result:
    size, taking_part = bench.pick(15_000, 3_000_000), contenders(TAKING_PART)
    events = events_by_speed(bench, bench.pick(2_000, 40_000))
    at: Callable[[int], str] = f"{{:,}} {what}".format
    points = {
        float(x): compete(bench, Workload(shape, bench.seed), size, taking_part, events, at(x))
        for x, shape in shapes.items()
    }
    few, many = (points[x] for x in (min(shapes), max(shapes)))
    return Result(
        f"Matching time against {what} (W0 otherwise), one core",
        {
            "subscriptions": f"{size:,}",
            **{f"events per repeat, {each.name}": f"{events(each):,}" for each in taking_part},
        },
        [figure for measured in points.values() for figure in measured.values()],
        [
            *(Ratio.of(f"{name}: {at(max(shapes))} / {min(shapes)}", many[name], few[name]) for name in few),
            *(
                Ratio.of(f"dynamic / propagation, {at(int(x))}", p["dynamic"], p["propagation"])
                for x, p in points.items()
            ),
        ],
        Plot(what, "ms per 100 events", curves(points, per_100_events), log_y=True),
        paper,
        ["Matches of a sample of events were compared with the reference semantics for every shape."],
    )
