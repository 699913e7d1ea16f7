"""What kernels know of each predicate, by its number: an array for each thing."""

from __future__ import annotations

import numpy as np

from harken.matching.growing import GrowingArray
from harken.matching.saving import Arrays, State


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

    def __len__(self) -> int:
        return len(self.operator)

    @property
    def nbytes(self) -> int:
        """Bytes taken."""
        return sum(column.nbytes for column in vars(self).values())

    def grow_to(self, size: int) -> None:
        """Have room for this many predicates."""
        for column in vars(self).values():
            column.grow_to(size)

    def state(self) -> Arrays:
        """The columns by name."""
        return {name: column.values for name, column in vars(self).items()}

    def restore(self, state: State) -> None:
        """Hold what other columns held."""
        size = None
        for name, column in vars(self).items():
            column.hold(state.array(name, column.dtype, size=size))
            size = len(column)
