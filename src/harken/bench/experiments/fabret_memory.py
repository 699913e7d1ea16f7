"""Figure 3c of Fabret et al. 2000: memory against the number of subscriptions (workload W0)."""

from __future__ import annotations

from typing import TypedDict, cast

from harken import Engine
from harken.bench.apart import run_apart
from harken.bench.loading import ONE_OF_EACH, contenders
from harken.bench.measuring import Bench, Curve, Figure, Plot, Result
from harken.bench.memory import index_bytes, resident_bytes
from harken.bench.verifying import aimed, sample, verify
from harken.model.expressions import Expression
from harken.workloads import workload

PAPER = (
    "Propagation, with or without prefetching, took the least memory, counting a little more, and dynamic the "
    "most, for its hash tables of several attributes; all grow linearly. The figure gives no numbers in the text; "
    "the machine had 1 GB for 6,000,000 subscriptions."
)

MOST = 64
"""Bytes per subscription that were asked for, of static and dynamic."""


class Taken(TypedDict):
    """Bytes with so many subscriptions: by the index's own account, and by which the process has grown."""

    size: int
    index: int | None
    resident: int | None


def run(bench: Bench) -> Result:
    """Fill each algorithm in a process of its own, and ask the index and the system at growing numbers."""
    sizes = bench.pick((10_000, 30_000), (100_000, 1_000_000, 3_000_000, 6_000_000))
    found: dict[str, list[Taken]] = {}
    for each in contenders(ONE_OF_EACH):
        with bench.progress.step(f"filling {each.name} with {sizes[-1]:,}"):
            found[each.name] = cast("list[Taken]", run_apart(filled, each.algorithm, sizes, bench.seed).result)
    return Result(
        "Memory against the number of subscriptions (W0)",
        {"process": "one of its own for each algorithm"},
        [figure for name, those in found.items() for taken in those for figure in _figures(name, taken)],
        plot=Plot(
            "subscriptions", "MiB of the index", tuple(_curve(name, those) for name, those in found.items())
        ),
        paper=PAPER,
        notes=[
            "Index: the bytes that the engine accounts for, ids included. Resident: by how much the process has "
            "grown, which adds what is free but has not been given back to the system.",
            "Matches of a sample of events were compared with the reference semantics in every process.",
        ],
    )


def filled(algorithm: str, sizes: list[int], seed: int) -> list[Taken]:
    """What an engine takes at each of the sizes; to be called in a fresh process."""
    made = workload("w0", seed)
    warm = Engine(algorithm)  # so that kernels and modules are not counted
    for table in made.subscriptions(2_000):
        warm.subscribe_many(table)
    warm.match_batch(made.events(10))
    del warm
    before = resident_bytes()
    engine, taken, known = Engine(algorithm), list[Taken](), dict[int, Expression]()
    for start, size in zip([0, *sizes], sizes, strict=False):
        for table in made.subscriptions(size - start, first_id=start):
            engine.subscribe_many(table)
            known |= sample(table, 4, seed)
        del table
        verify({algorithm: engine}, aimed(made.events(100, part=1), known), known)
        now = resident_bytes()
        resident = None if before is None or now is None else now - before
        taken.append({"size": size, "index": index_bytes(engine), "resident": resident})
    return taken


def _figures(name: str, taken: Taken) -> list[Figure]:
    size = taken["size"]
    target = MOST if name in ("dynamic", "static") and size >= 6_000_000 else None
    figures = []
    if taken["index"] is not None:
        per_one = (taken["index"] / size,)
        figures.append(
            Figure(f"{name}, index, {size:,} subscriptions", "bytes each", per_one, target, lower_is_better=True)
        )
    if taken["resident"] is not None:
        per_one = (taken["resident"] / size,)
        figures.append(Figure(f"{name}, resident, {size:,} subscriptions", "bytes each", per_one, None, True))
    return figures


def _curve(name: str, those: list[Taken]) -> Curve:
    known = [taken for taken in those if taken["index"] is not None]
    return Curve(
        name,
        tuple(float(taken["size"]) for taken in known),
        tuple((taken["index"] or 0) / 2**20 for taken in known),
    )
