"""Figure 3b of Fabret et al. 2000: what predicates other than equalities cost (workloads W1 and W2)."""

from __future__ import annotations

from dataclasses import replace

from harken.bench.loading import contenders
from harken.bench.measuring import Bench, Figure, Plot, Ratio, Result
from harken.bench.throughput import compete, curves, events_by_speed, per_100_events
from harken.workloads import workload

PAPER = (
    "With 3,000,000 subscriptions, dynamic and propagation (both with prefetching) both slow down by a constant "
    "factor from W1 (one order predicate) to W2 (six), and by the same one, since both look at order predicates "
    "only once all equalities of a subscription hold; dynamic stays ahead by its keys of several attributes. The "
    "figure gives no numbers in the text."
)


def run(bench: Bench) -> Result:
    """Match W1 and W2 with all algorithms at growing numbers of subscriptions."""
    sizes = bench.pick((10_000, 30_000), (100_000, 1_000_000, 3_000_000, 6_000_000))
    taking_part = contenders()
    events = events_by_speed(bench, bench.pick(2_000, 40_000))
    found: dict[str, dict[float, dict[str, Figure]]] = {}
    for name in ("w1", "w2"):
        made = workload(name, bench.seed)
        found[name] = {
            float(size): compete(bench, made, size, taking_part, events, f"{name}, {size:,} subscriptions")
            for size in sizes
        }
    lines = {name: curves(points, per_100_events) for name, points in found.items()}
    labelled = [replace(line, label=f"{name}: {line.label}") for name, those in lines.items() for line in those]
    return Result(
        "Matching time with order predicates (W1, W2) against the number of subscriptions, one core",
        {f"events per repeat, {each.name}": f"{events(each):,}" for each in taking_part},
        [figure for points in found.values() for measured in points.values() for figure in measured.values()],
        [ratio for size in sizes for ratio in _ratios(found, size)],
        Plot("subscriptions", "ms per 100 events", tuple(labelled), log_x=True, log_y=True),
        PAPER,
        ["Matches of a sample of events were compared with the reference semantics at every size."],
    )


def _ratios(found: dict[str, dict[float, dict[str, Figure]]], size: int) -> list[Ratio]:
    w1, w2 = found["w1"][size], found["w2"][size]
    return [
        *(Ratio.of(f"{name}: w1 / w2 at {size:,}", w1[name], w2[name]) for name in ("dynamic", "propagation")),
        Ratio.of(f"w1: dynamic / propagation at {size:,}", w1["dynamic"], w1["propagation"]),
        Ratio.of(f"w2: dynamic / propagation at {size:,}", w2["dynamic"], w2["propagation"]),
    ]
