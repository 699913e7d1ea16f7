"""Figures 6 and 7 of Tomasic et al. 2006: publications matched in batches; and what symmetry costs."""

from __future__ import annotations

import time
from functools import partial

import pyarrow as pa

from harken import Engine
from harken.bench.measuring import Bench, Curve, Figure, Plot, Ratio, Result
from harken.bench.on_stores import asked, filled, stores, verify
from harken.symmetric.contract import Store
from harken.symmetric.engine import SymmetricEngine
from harken.workloads import CONSTRAINT_WORKLOADS, ConstraintWorkload, Sizes, constraint_workload, workload

PENALTY = 0.7
"""Of the classical engine's speed, with publications of single values."""

PAPER = (
    "Batching amortises fixed costs: throughput of fixed and proportional grows with the batch, to thousands per "
    "second. large-intermediate-results hardly gains, and fixed-geometric peaks at about 15 publications a batch, "
    "after which PostgreSQL's optimizer changes to repeated sequential scans and throughput falls."
)


def run_cost(bench: Bench) -> Result:
    """Figure 6: the time that a batch takes."""
    return _batches(bench, "milliseconds per batch", lambda size, seconds: 1e3 * seconds, "ms", PAPER)


def run_throughput(bench: Bench) -> Result:
    """Figure 7: publications per second, by the size of the batch."""
    return _batches(
        bench, "publications per second", lambda size, seconds: size / seconds, "publications/s", PAPER
    )


def _batches(bench: Bench, label: str, value: object, unit: str, paper: str) -> Result:
    subscriptions = bench.pick(1_000, 100_000)
    batches = bench.pick((1, 4), (1, 5, 15, 50, 100))
    curves: dict[str, list[float]] = {}
    with stores() as opened:
        for name in CONSTRAINT_WORKLOADS:
            verify(opened, name, bench.seed)
            for kind, make in opened.items():
                store = make()
                # As in the paper, what constraints look like depends on how many publications there are.
                made = constraint_workload(name, Sizes(subscriptions, batches[-1]), bench.seed)
                filled(bench, store, made, f"{kind}, {name}")
                for size in batches:
                    seconds = _median(bench, store, made, size)
                    curves.setdefault(f"{name}, {kind}", []).append(value(size, seconds))  # type: ignore[operator]
                store.close()
    lower = unit == "ms"
    figures = [
        Figure(f"{each}, batches of {size}", unit, (found,), None, lower)
        for each, values in curves.items()
        for size, found in zip(batches, values, strict=True)
    ]
    drawn = tuple(Curve(each, batches, tuple(values)) for each, values in curves.items())
    return Result(
        f"Publications in batches: {label}",
        {"subscriptions": f"{subscriptions:,}", "batches": ", ".join(map(str, batches))},
        figures,
        plot=Plot("publications per batch", label, drawn, True, True),
        paper=paper,
        notes=["Medians. With a small workload of each kind, all stores were compared with the reference."],
    )


def _median(bench: Bench, store: Store, made: ConstraintWorkload, size: int) -> float:
    seconds = []
    for part in range(bench.pick(3, 9)):
        boxes = asked(made, part)[:size]
        begin = time.perf_counter()
        store.match("subscriptions", boxes, "publication")
        seconds.append(time.perf_counter() - begin)
    return sorted(seconds)[len(seconds) // 2]


def run_penalty(bench: Bench) -> Result:
    """Events as publications of single values: both engines side by side, with the same subscriptions."""
    size, count = bench.pick(5_000, 1_000_000), bench.pick(2_000, 200_000)
    made = workload("w0", bench.seed)
    classical, symmetric = Engine("dynamic"), SymmetricEngine(covers="subscription")
    with bench.progress.step(f"loading {size:,} subscriptions twice"):
        table = pa.concat_tables(made.subscriptions(size))
        classical.subscribe_many(table)
        symmetric.subscribe_many(table)
    events = made.events(count)
    found = symmetric.match_batch(events).rename_columns(["event", "subscription"])
    if sorted(map(tuple, zip(*found.to_pydict().values(), strict=True))) != sorted(
        map(tuple, zip(*classical.match_batch(events).to_pydict().values(), strict=True))
    ):
        raise AssertionError("the two engines disagree")
    seconds = bench.in_turns(
        {
            "symmetric": partial(symmetric.match_batch, events),
            "classical": partial(classical.match_batch, events),
        },
        "matching",
    )
    ours, theirs = (Figure(name, "events/s", tuple(count / each for each in s)) for name, s in seconds.items())
    return Result(
        "What symmetry costs where it is not used (W0)",
        {"subscriptions": f"{size:,}", "events": f"{count:,}"},
        [ours, theirs],
        [Ratio.of("symmetric / classical", ours, theirs, bench.target(PENALTY))],
        notes=["Both found the same matches."],
    )
