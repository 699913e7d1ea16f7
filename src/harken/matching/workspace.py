"""What one thread needs to match: scratch for the kernels, and room for results."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harken.matching.contract import Pairs
from harken.matching.kernels.layout import CHECKS, COUNTERS, REPEATS, VISITS, Results, Scratch
from harken.matching.kernels.matching import RING

SURVIVORS = 4_096
"""Entries that are looked at together once their first predicate has held."""

FIRST_RESULTS = 4_096
"""Results that there is room for at first."""


@dataclass(slots=True)
class Workspace:
    """Belongs to one thread, and fits one state of one index."""

    index: object
    scratch: Scratch
    results: Results
    events: int = 0
    """Matched since they were last counted."""
    matches: int = 0

    @classmethod
    def fit(cls, old: Workspace | None, index: object, initial: npt.NDArray[np.uint8], places: int) -> Workspace:
        """A workspace for an index whose predicates are known as `initial` says: the old one if large enough."""
        known = len(initial)
        if old is None or len(old.scratch.truth) < known or len(old.scratch.places) < RING * places:
            room = known + known // 2 + 64
            scratch = Scratch(
                np.zeros(room, np.uint8),
                np.zeros(room, np.int32),
                np.zeros(RING * (places + places // 2), np.int64),
                np.zeros(RING, np.int64),
                np.zeros(2 * SURVIVORS, np.int64),
                np.zeros(SURVIVORS + 1, np.int64),
                np.zeros(COUNTERS, np.int64),
            )
            results = _results(FIRST_RESULTS) if old is None else old.results
            old = cls(index, scratch, results)
        old.scratch.truth[:known] = initial
        old.index = index
        return old

    def count(self, events: int, matches: int) -> None:
        """Take note of what was matched."""
        self.scratch.counts[REPEATS] = 0
        self.events += events
        self.matches += matches

    def counted(self) -> list[int]:
        """Events, matches, visits and checks since this was last asked."""
        counts = self.scratch.counts
        found = [self.events, self.matches, int(counts[VISITS]), int(counts[CHECKS])]
        counts[:] = 0
        self.events = self.matches = 0
        return found

    def have_more_results(self) -> None:
        """Make room for more: the matches of one event did not fit."""
        self.results = _results(4 * len(self.results.slot))

    def distinct(self, rows: npt.NDArray[np.int64], slots: npt.NDArray[np.int64]) -> Pairs:
        """Matches without those that several clauses of one subscription have told."""
        if not self.scratch.counts[REPEATS]:
            return rows, slots
        pairs = np.unique(rows << 32 | slots)
        return pairs >> 32, pairs & 0xFFFF_FFFF


def _results(room: int) -> Results:
    return Results(np.empty(room, np.int64), np.empty(room, np.int64))
