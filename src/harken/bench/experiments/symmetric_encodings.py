"""Two ways to keep constraints in a database, side by side: our ranges, and the paper's operators."""

from __future__ import annotations

import time

from harken.bench.measuring import Bench, Figure, Ratio, Result
from harken.bench.on_stores import Open, asked, filled, stores, verify
from harken.symmetric.contract import Store
from harken.workloads import CONSTRAINT_WORKLOADS, ConstraintWorkload, Sizes, constraint_workload

AHEAD = 3.0
"""Asked for, of ranges on PostgreSQL, with mixed operators."""


def run(bench: Bench) -> Result:
    """Load the same subscriptions in both encodings, and match the same publications in turns."""
    size = bench.pick(500, 100_000)
    times = bench.pick(3, 15)
    figures: list[Figure] = []
    ratios: list[Ratio] = []
    with stores() as opened:
        databases = {name: make for name, make in opened.items() if name != "memory"}
        for name in ("market", *CONSTRAINT_WORKLOADS):
            verify(databases, name, bench.seed)
            made = constraint_workload(name, Sizes(size), bench.seed)
            for kind, make in databases.items():
                ranges, paper = _figures(bench, make, made, f"{name}, {kind}", times)
                figures += [ranges, paper]
                target = bench.target(AHEAD) if (name, kind) == ("market", "PostgreSQL") else None
                ratios.append(Ratio.of(f"{name}, {kind}: paper / ranges", paper, ranges, target))
    return Result(
        "Encodings of constraints in a database: the time of one publication",
        {"subscriptions": f"{size:,}", "publications timed": times},
        figures,
        ratios,
        notes=[
            "Ratios are of times: above 1, ranges are ahead. Both encodings found the same matches throughout.",
            "The market workload uses =, BETWEEN, <=, >=, >, IN, != and prefixes, in six attributes.",
        ],
    )


def _figures(bench: Bench, make: Open, made: ConstraintWorkload, label: str, times: int) -> tuple[Figure, Figure]:
    held = {encoding: make(encoding) for encoding in ("ranges", "paper")}
    for encoding, store in held.items():
        filled(bench, store, made, f"{label}, {encoding}")
    seconds: dict[str, list[float]] = {encoding: [] for encoding in held}
    with bench.progress.step(f"matching {label}", times) as done:
        for part in range(times):
            found = {encoding: _timed(store, made, part, seconds[encoding]) for encoding, store in held.items()}
            if found["ranges"] != found["paper"]:
                raise AssertionError(f"the two encodings disagree: {label}")
            done(part + 1)
    for store in held.values():
        store.close()
    ranges, paper = (
        Figure(f"{label}, {encoding}", "ms", tuple(1e3 * each for each in taken), None, True)
        for encoding, taken in seconds.items()
    )
    return ranges, paper


def _timed(store: Store, made: ConstraintWorkload, part: int, seconds: list[float]) -> list[tuple[int, int | str]]:
    boxes = asked(made, part)
    begin = time.perf_counter()
    found = store.match("subscriptions", boxes, "publication")
    seconds.append(time.perf_counter() - begin)
    return sorted(found)
