"""Figures 4 and 5 of Tomasic et al. 2006: what a match costs, step by step, and against the subscriptions."""

from __future__ import annotations

import time

import pyarrow as pa

from harken.bench.measuring import Bench, Curve, Figure, Plot, Ratio, Result
from harken.bench.on_stores import filled, median_seconds, stores, verify
from harken.language import to_text
from harken.symmetric.semantics import boxes_of
from harken.workloads import CONSTRAINT_WORKLOADS, Sizes, constraint_workload

POSTGRES_MS, MEMORY_MS, FLAT = 10.0, 0.05, 1.5
"""Asked for, with one publication and 1,000,000 subscriptions of the fixed workload; and from 100,000 on."""

MOST = {"large-intermediate-results": 300_000}
"""On databases. A million, of 18 attributes each, would take longer to load than all else together."""

FIGURE_4 = (
    "One publication, fixed workload, PostgreSQL 8, a Pentium III at 1 GHz: matching took 17 ms with 100,000 and "
    "with 1,000,000 subscriptions (intermediate answer 8 ms, aggregation 9 ms); generating, loading and indexing "
    "1,000,000 subscriptions took 1,239 s."
)
FIGURE_5 = (
    "From 100,000 to 1,000,000 subscriptions, the cost of fixed and fixed-geometric is negligible and flat; "
    "proportional and large-intermediate-results grow at least linearly, with a spike where the database pages."
)


def run_breakdown(bench: Bench) -> Result:
    """Make, load, publish and match the fixed workload on every store."""
    sizes = bench.pick((500, 2_000), (100_000, 1_000_000))
    read, times = bench.pick(20, 200), bench.pick(5, 30)
    figures: list[Figure] = []
    with stores() as opened:
        verify(opened, "fixed", bench.seed)
        for size in sizes:
            made = constraint_workload("fixed", Sizes(size), bench.seed)
            begin = time.perf_counter()
            pa.concat_tables(made.subscriptions())
            figures.append(_seconds(f"generating {size:,} subscriptions", time.perf_counter() - begin))
            texts = [to_text(made.publications(part)[0]) for part in range(read)]
            begin = time.perf_counter()
            for text in texts:
                boxes_of(text)
            parsing = (time.perf_counter() - begin) / len(texts)
            figures.append(Figure(f"reading a publication, {size:,}", "ms", (1e3 * parsing,), None, True))
            for name, make in opened.items():
                store = make()
                figures.append(_seconds(f"loading {size:,}, {name}", filled(bench, store, made, name)))
                matching = 1e3 * median_seconds(store, made, times)
                figures.append(Figure(f"matching with {size:,}, {name}", "ms", (matching,), None, True))
                store.close()
    return Result(
        "One publication, step by step (fixed workload)",
        {"subscriptions": ", ".join(f"{size:,}" for size in sizes)},
        figures,
        paper=FIGURE_4,
        notes=[
            f"Loading is from the compiled form, indexes included. Matching: the median of {times} publications."
        ],
    )


def run_scaling(bench: Bench) -> Result:
    """Match one publication against more and more subscriptions, all workloads, all stores."""
    sizes = bench.pick((500, 2_000), (100_000, 300_000, 1_000_000))
    times = bench.pick(5, 30)
    curves: dict[str, list[float]] = {}
    with stores() as opened:
        for workload in CONSTRAINT_WORKLOADS:
            verify(opened, workload, bench.seed)
            for size in sizes:
                made = constraint_workload(workload, Sizes(size), bench.seed)
                for name, make in opened.items():
                    if name != "memory" and size > MOST.get(workload, size):
                        continue
                    store = make()
                    filled(bench, store, made, f"{name}, {workload}")
                    milliseconds = 1e3 * median_seconds(store, made, times)
                    curves.setdefault(f"{workload}, {name}", []).append(milliseconds)
                    store.close()
    figures = [
        Figure(f"{label}, {size:,} subscriptions", "ms", (value,), _target(bench, label, size, sizes), True)
        for label, values in curves.items()
        for size, value in zip(sizes, values, strict=False)
    ]
    growth = [
        Ratio(
            f"{label}: {sizes[0]:,} / {sizes[len(values) - 1]:,}",
            (values[0] / values[-1],),
            _flat(bench, label),
        )
        for label, values in curves.items()
    ]
    return Result(
        "One publication against the number of subscriptions",
        {"publications timed": times, "workloads": ", ".join(CONSTRAINT_WORKLOADS)},
        figures,
        growth,
        Plot(
            "subscriptions",
            "milliseconds",
            tuple(Curve(label, sizes[: len(values)], tuple(values)) for label, values in curves.items()),
            True,
            True,
        ),
        FIGURE_5,
        [
            "Medians. With a small workload of each kind, all stores were compared with the reference.",
            "Ratios are of times, from the least to the greatest number of subscriptions: 1 is flat.",
        ],
    )


def _target(bench: Bench, label: str, size: int, sizes: tuple[int, ...]) -> float | None:
    asked_for = {"fixed, PostgreSQL": POSTGRES_MS, "fixed, memory": MEMORY_MS}
    return bench.target(asked_for[label]) if label in asked_for and size == sizes[-1] else None


def _flat(bench: Bench, label: str) -> float | None:
    return bench.target(1 / FLAT) if label.startswith("fixed") else None


def _seconds(name: str, seconds: float) -> Figure:
    return Figure(name, "s", (seconds,), None, True)
