"""Clauses of many subscriptions, columnwise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harken.model import capacity
from harken.normal.compiled import IN_PARTS, PredicateColumns


@dataclass(slots=True)
class ClauseColumns:
    """How many clauses each subscription has, how many predicates each clause, and all predicates."""

    clause_counts: npt.NDArray[np.int32]
    predicate_counts: npt.NDArray[np.int32]
    predicates: PredicateColumns


def offsets_of(counts: npt.NDArray[np.int32] | npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Where each of consecutive runs begins, and where the last one ends."""
    capacity.check(
        "predicates or clauses in one chunk", int(counts.sum(dtype=np.int64)), capacity.OFFSETS, IN_PARTS
    )
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def run_positions(starts: npt.NDArray[np.int32], counts: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """The positions start, start + 1, ... of several runs, one run after the other."""
    before = offsets_of(counts)[:-1]
    return np.repeat(starts.astype(np.int64) - before, counts) + np.arange(int(counts.sum()))
