"""What events look like: how often an attribute is there, and how often it has each constant.

Counts are kept while matching, on a sample, and decay, so that they follow events whose pattern changes. Before
any event has been seen, constants of a dimension are taken to be equally likely.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.matching.growing import GrowingArray
from harken.matching.kernels.layout import INTERVAL, MEMBER, MISSING, Events
from harken.matching.predicates import PredicateTable
from harken.normal.operators import constant_of

SAMPLE = 256
"""Events looked at per block."""

MEMORY = 50_000
"""About how many sampled events are remembered before older ones fade."""

_UNTOLD, _UNSEEN = 0.1, 0.5


class EventStatistics:
    """Decayed counts per dimension and constant. Changes must not run beside anything else."""

    def __init__(self) -> None:
        self.events = 0.0
        self._present = GrowingArray(np.float64)
        self._constants: list[GrowingArray[np.float64]] = []

    def observe(self, events: Events) -> None:
        """Count a sample of encoded events."""
        code = events.code[:: max(1, len(events.code) // SAMPLE)]
        if self.events > MEMORY:
            self._fade(0.5)
        self.events += len(code)
        self._present.grow_to(code.shape[1])
        while len(self._constants) < code.shape[1]:
            self._constants.append(GrowingArray(np.float64))
        for dimension in range(code.shape[1]):
            column = code[:, dimension]
            there = column[column != MISSING]
            self._present.values[dimension] += len(there)
            counts = np.bincount(there)
            seen = self._constants[dimension]
            seen.grow_to(len(counts))
            seen.values[: len(counts)] += counts

    def presence(self, predicates: PredicateTable) -> npt.NDArray[np.float32]:
        """For each dimension the chance that an event has a value there."""
        chances = np.full(max(1, len(predicates.dimensions)), _UNSEEN, np.float32)
        known = len(self._present)
        if self.events:
            chances[:known] = self._present.values / self.events
        return chances

    def selectivity(self, predicates: PredicateTable) -> npt.NDArray[np.float32]:
        """For each enumerated predicate the chance that an event satisfies it."""
        arrays = predicates.arrays()
        chances = np.full(len(predicates), _UNTOLD, np.float32)
        presence = self.presence(predicates)
        for dimension in predicates.dimensions:
            self._of_dimension(dimension.number, predicates, presence, chances)
        chances[arrays.operator == INTERVAL] = 0.4
        for number in np.flatnonzero(arrays.operator == MEMBER).tolist():
            chances[number] = self._of_set(number, predicates, chances)
        return chances

    def _of_dimension(
        self,
        number: int,
        predicates: PredicateTable,
        presence: npt.NDArray[np.float32],
        chances: npt.NDArray[np.float32],
    ) -> None:
        arrays = predicates.arrays()
        size = len(predicates.dimensions[number].constants)
        first = arrays.equal_first[number]
        equalities = arrays.equal[first : first + size] if size > 1 else np.zeros(0, np.int32)
        codes = np.flatnonzero(equalities >= 0)
        if not len(codes):
            return
        uniform = presence[number] / max(2, size)
        if self.events and number < len(self._constants):
            counts = np.zeros(size)
            seen = self._constants[number].values[:size]
            counts[: len(seen)] = seen
            # A constant not seen yet is rare rather than impossible.
            likely = (counts[codes] + 0.5) / (self.events + 1)
        else:
            likely = np.full(len(codes), uniform)
        chances[equalities[codes]] = likely

    def _of_set(self, number: int, predicates: PredicateTable, chances: npt.NDArray[np.float32]) -> float:
        arrays = predicates.arrays()
        dimension = predicates.dimensions[int(arrays.dimension[number])]
        total = 0.0
        for _, _, operand in predicates.rows(number):
            code = dimension.codes[constant_of(operand)]  # type: ignore[index]
            equality = arrays.equal[arrays.equal_first[dimension.number] + code]
            total += chances[equality] if equality >= 0 else 1 / max(2, len(dimension.constants))
        return min(1.0, total)

    def _fade(self, factor: float) -> None:
        self.events *= factor
        self._present.values[:] *= factor
        for counts in self._constants:
            counts.values[:] *= factor
