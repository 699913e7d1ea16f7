"""What kernels know of each predicate, by its number: an array for each thing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from harken.matching.growing import GrowingArray
from harken.matching.kernels.layout import GREATEST, INTERVAL, INTERVAL_WORDS
from harken.matching.predicates.ordering import Moved
from harken.matching.saving import Arrays, State

Numbers: TypeAlias = npt.NDArray[np.int64]


class PredicateColumns:
    """Columns that grow together. `PredicateArrays` tells what they say; `uses` counts the clauses of each."""

    def __init__(self) -> None:
        self.operator = GrowingArray(np.int8)
        self.dimension = GrowingArray(np.int32)
        self.low = GrowingArray(np.int64)
        self.high = GrowingArray(np.int64)
        self.initial = GrowingArray(np.uint8)
        self.cell = GrowingArray(np.int32, fill=-1)
        self.uses = GrowingArray(np.int64)
        self._intervals = GrowingArray(np.int64)

    @property
    def intervals(self) -> npt.NDArray[np.int64]:
        """What order predicates ask for, INTERVAL_WORDS for each predicate (layout.py)."""
        return self._intervals.values

    def __len__(self) -> int:
        return len(self.operator)

    @property
    def nbytes(self) -> int:
        """Bytes taken."""
        return sum(column.nbytes for column in self._by_name().values()) + self._intervals.nbytes

    def _by_name(self) -> dict[str, GrowingArray[Any]]:
        return {name: column for name, column in vars(self).items() if not name.startswith("_")}

    def grow_to(self, size: int) -> None:
        """Have room for this many predicates."""
        for column in self._by_name().values():
            column.grow_to(size)
        self._intervals.grow_to(INTERVAL_WORDS * size)

    def make_room(self, size: int) -> None:
        """Have room for this many predicates. Nothing that others read is changed."""
        for column in self._by_name().values():
            column.make_room(size)
        self._intervals.make_room(INTERVAL_WORDS * size)

    def bound(self, numbers: Sequence[int] | Numbers, dimension: int, low: Numbers, high: Numbers) -> None:
        """Have order predicates of one dimension ask for labels from the ones to the others."""
        self.low.values[numbers], self.high.values[numbers] = low, high
        words = self._intervals.values.reshape(-1, INTERVAL_WORDS)
        words[numbers, 0], words[numbers, 1] = 1 + dimension, low
        words[numbers, 2] = np.minimum(high, GREATEST)

    def bounds(self, numbers: Sequence[int] | Numbers) -> tuple[Numbers, Numbers]:
        """The least and the greatest label that order predicates ask for."""
        return self.low.values[numbers], self.high.values[numbers]

    def move_bounds(self, numbers: Numbers, dimension: int, moved: Moved) -> None:
        """Have order predicates of one dimension ask for the labels that theirs have become."""
        low, high = self.bounds(numbers)
        self.bound(numbers, dimension, moved.lower(low), moved.upper(high))

    def unbound(self, number: int) -> None:
        """Have what was an order predicate ask for no labels: its number may come to be that of another."""
        self._intervals.values[INTERVAL_WORDS * number : INTERVAL_WORDS * (number + 1)] = 0

    def state(self) -> Arrays:
        """The columns by name."""
        return {name: column.values for name, column in self._by_name().items()}

    def restore(self, state: State) -> None:
        """Hold what other columns held."""
        size = None
        for name, column in self._by_name().items():
            column.hold(state.array(name, column.dtype, size=size))
            size = len(column)
        self._intervals.grow_to(INTERVAL_WORDS * len(self))
        bounded = np.flatnonzero(self.operator.values == INTERVAL)
        words = self._intervals.values.reshape(-1, INTERVAL_WORDS)
        words[bounded, 0] = 1 + self.dimension.values[bounded]
        words[bounded, 1] = self.low.values[bounded]
        words[bounded, 2] = np.minimum(self.high.values[bounded], GREATEST)
