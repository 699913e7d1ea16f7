"""Subscriptions without any equality, against a compiled loop that scans them all."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.bench.loading import contenders, load
from harken.bench.measuring import Bench, Figure, Ratio, Result
from harken.bench.verifying import pairs, verify_workload
from harken.jit import kernel
from harken.normal.compiled import OPERATOR_CODE
from harken.workloads import Workload, workload

ASKED = 5
"""Times the speed of the scan."""


@kernel
def _scan(
    term: npt.NDArray[np.uint8],
    bound: npt.NDArray[np.int32],
    terms: npt.NDArray[np.int32],
    left: npt.NDArray[np.int32],
) -> int:
    """Find the clauses an event satisfies; how many they are. They stand first in `left`.

    Row p of `term` and `bound` is predicate p of all clauses: that term of the event is below that bound. Clauses
    that fail on a predicate are not asked about the next. They are sifted without a branch, since a branch that
    one clause in ten takes is foreseen badly: this is twice as fast as leaving an inner loop.
    """
    count = 0
    for clause in range(term.shape[1]):
        left[count] = clause
        count += terms[term[0, clause]] < bound[0, clause]
    for predicate in range(1, term.shape[0]):
        asked, count = count, 0
        for at in range(asked):
            clause = left[at]
            left[count] = clause
            count += terms[term[predicate, clause]] < bound[predicate, clause]
    return count


class Scan:
    """All clauses of a workload of `<` and `>`, columnwise."""

    def __init__(self, made: Workload, size: int) -> None:
        width = len(made.specification.fixed) + made.specification.free
        columns = [_columns(table, made.specification.attributes) for table in made.subscriptions(size)]
        self._term = np.concatenate([term.reshape(-1, width) for term, _ in columns]).T.copy()
        self._bound = np.concatenate([bound.reshape(-1, width) for _, bound in columns]).T.copy()

    def match_batch(self, events: pa.Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Row and subscription of every match."""
        values = np.stack([column.to_numpy() for column in events.columns], axis=1)
        terms = np.concatenate([values, -values], axis=1)
        left = np.empty(self._term.shape[1] + 1, np.int32)
        found = [left[: _scan(self._term, self._bound, event, left)].copy() for event in terms]
        return np.repeat(np.arange(len(found)), [len(each) for each in found]), np.concatenate(found)


def _columns(table: pa.Table, attributes: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """Each predicate as a term and its bound; the terms are values, then their negatives: x > c is -x < -c."""
    predicates = table.column("clauses").combine_chunks().flatten().flatten()
    attribute = predicates.field("attribute").indices.to_numpy()
    above = predicates.field("operator").indices.to_numpy() == OPERATOR_CODE[">"]
    integer = predicates.field("integer").to_numpy()
    term = attribute + np.where(above, attributes, 0)
    return term.astype(np.uint8), np.where(above, -integer, integer).astype(np.int32)


def run(bench: Bench) -> Result:
    """Match the same events with dynamic and with the scan."""
    size = bench.pick(10_000, 1_000_000)
    counts = {"dynamic": bench.pick(1_000, 10_000), "scan": bench.pick(500, 1_000)}
    made = workload("ranges", bench.seed)
    scan, engine = Scan(made, size), load(bench, made, contenders(("dynamic",))[0], size)
    verify_workload(made, {"dynamic": engine}, size, seed=bench.seed)
    some = made.events(bench.pick(200, 500), part=1)
    if set(zip(*(each.tolist() for each in scan.match_batch(some)), strict=True)) != pairs(engine, some):
        raise AssertionError("dynamic and the scan disagree")
    seconds = bench.in_turns(
        {
            "dynamic": partial(engine.match_batch, made.events(counts["dynamic"])),
            "scan": partial(scan.match_batch, made.events(counts["scan"])),
        },
        "matching ranges",
    )
    figures = {
        name: Figure(f"{name}, {size:,} subscriptions", "events/s", tuple(counts[name] / each for each in samples))
        for name, samples in seconds.items()
    }
    return Result(
        "Range-only subscriptions against a compiled scan, one core",
        {
            "subscriptions": "5 order predicates each, every one true of a tenth of the events",
            "events per repeat": ", ".join(f"{count:,} ({name})" for name, count in counts.items()),
        },
        list(figures.values()),
        [Ratio.of("dynamic / scan", figures["dynamic"], figures["scan"], bench.target(ASKED))],
        notes=[
            "Scan: one core, compiled, all clauses column by column, those that fail left out of the next column.",
            "Both found the same on a sample of events, and what the reference semantics say.",
        ],
    )
