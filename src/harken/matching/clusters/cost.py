"""What matching costs, in nanoseconds: the constants of the cost model, measured on the machine at hand.

The model is that of Fabret et al. 2000, section 3.1: a lookup for every table an event has a key for, and a check
for every clause in the clusters it opens. What decides is how many checks a lookup is worth.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from harken.jit import tight
from harken.matching.kernels.prefetch import prefetch

_WORDS, _READS = 1 << 22, 1 << 16
_NEAR = 1 << 16
"""Words that the clusters of a check lie within, so that it waits for no memory."""

_FEW, _MANY = 4, 16
"""Entries of a cluster, on average, when checks are measured."""

_LEAST, _MOST = 2.0, 32.0
"""Bounds on the ratio of the two costs, for machines too busy to be measured."""


class Costs(NamedTuple):
    """Nanoseconds for one lookup in a table and for one check of a clause."""

    lookup: float
    check: float

    @property
    def checks_per_lookup(self) -> float:
        """How many checks a further table must save to pay for its lookup."""
        return min(max(self.lookup / self.check, _LEAST), _MOST)


USUAL = Costs(27.0, 2.0)
"""What a machine of 2026 has."""


@tight
def _looked_up(words: npt.NDArray[np.uint32], order: npt.NDArray[np.int64]) -> int:
    """Two dependent reads of scattered memory each, asked for ahead, as a directory entry and its block are."""
    total = 0
    for start in range(0, len(order) - 32, 32):
        for at in range(start, start + 32):
            prefetch(words, order[at])
        for at in range(start, start + 32):
            prefetch(words, np.int64(words[order[at]]))
        for at in range(start, start + 32):
            total += words[np.int64(words[order[at]])]
    return total


@tight
def _checked(
    words: npt.NDArray[np.uint32],
    order: npt.NDArray[np.int64],
    truth: npt.NDArray[np.uint8],
    survivors: npt.NDArray[np.int64],
    mean: int,
) -> int:
    """Scans of clusters of about that size, most predicates of which are false; survivors are listed."""
    count = 0
    for start in order:
        first = start & (_NEAR - 1)
        last = first + 1 + start % (2 * mean - 1)
        alive = 0
        for word in words[first:last]:
            alive += truth[word & np.uint32(1023)]
        if alive > 0:
            for at in range(first, last):
                if truth[words[at] & np.uint32(1023)] != 0:
                    survivors[count & 1023] = at
                    count += 1
    return count


@cache
def calibrated() -> Costs:
    """The costs on this machine. Takes some tens of milliseconds the first time."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # set from the environment
        return USUAL  # plain Python would take a minute to measure itself
    chance = np.random.default_rng(1)
    words = chance.integers(0, _WORDS, _WORDS, dtype=np.uint32)
    order = chance.integers(0, _WORDS, _READS)
    survivors = np.zeros(1024, np.int64)
    truth = (chance.random(1024) < 1 / 35).astype(np.uint8)
    opened = _fastest(lambda: _looked_up(words, order)) / len(order)
    few, many = (
        _fastest(lambda mean=mean: _checked(words, order, truth, survivors, mean)) / len(order)  # type: ignore[misc]
        for mean in (_FEW, _MANY)
    )
    check = max(0.1, (many - few) / (_MANY - _FEW))
    # What a cluster costs however few entries it has belongs to its lookup.
    return Costs(opened + max(0.0, few - _FEW * check), check)


def _fastest(work: Callable[[], object]) -> float:
    """Nanoseconds of processor time, the best of several tries; the first compiles."""
    tries = []
    for _ in range(32):
        begin = time.process_time_ns()
        work()
        tries.append(time.process_time_ns() - begin)
    return float(max(1, min(tries[1:])))
