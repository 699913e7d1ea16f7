"""The order predicates: which there are of each dimension, the labels that bound them, and their cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from harken.matching.predicates.bands import Bands
from harken.matching.predicates.columns import PredicateColumns
from harken.matching.predicates.dimensions import Dimension
from harken.matching.predicates.rows import Row, constant_in


class Intervals:
    """The order predicates by dimension, and the bands by which clauses stand in cells.

    A new one has no bounds yet: labels are given to the constants of many at once, when it comes into use.
    """

    def __init__(self, columns: PredicateColumns) -> None:
        self.bands = Bands()
        self._columns = columns
        self._rows: dict[int, dict[int, tuple[Row, ...]]] = {}
        """By dimension, what each of its order predicates says; only of dimensions that have any."""
        self._new: dict[int, list[int]] = {}

    def __len__(self) -> int:
        """In how many dimensions order is asked for."""
        return len(self._rows)

    def __contains__(self, dimension: int) -> bool:
        return dimension in self._rows

    def __iter__(self) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
        """The order predicates of each dimension that has any."""
        for dimension, rows in self._rows.items():
            yield dimension, np.fromiter(rows, np.int64, len(rows))

    def add(self, dimension: Dimension, number: int, rows: tuple[Row, ...]) -> None:
        """Take in a new order predicate; it has to be settled before it is used."""
        self.know(dimension, number, rows)
        self._new.setdefault(dimension.number, []).append(number)
        for _, _, operand in rows:
            dimension.order.hold(constant_in(operand))

    def know(self, dimension: Dimension, number: int, rows: tuple[Row, ...]) -> None:
        """Take in an order predicate whose bounds are known."""
        self._rows.setdefault(dimension.number, {})[number] = rows

    def drop(self, dimension: Dimension, number: int) -> None:
        """Forget an order predicate."""
        of_dimension = self._rows[dimension.number]
        rows = of_dimension.pop(number)
        self._columns.unbound(number)
        if not of_dimension:
            del self._rows[dimension.number]
        for _, _, operand in rows:
            dimension.order.drop(constant_in(operand))

    def settle(self, dimensions: Sequence[Dimension]) -> None:
        """Give new order predicates, or all of a dimension whose labels are new, their bounds in labels."""
        new, self._new = self._new, {}
        for at, added in new.items():
            dimension, known = dimensions[at], self._rows.get(at, {})
            relabelled = dimension.order.settle()
            numbers = list(known if relabelled else known.keys() & added)
            for number in numbers:
                self._columns.bound(number, *dimension.bounds(known[number]))
            if relabelled:
                self.bands.relabel(dimension)
            self._put_into_cells(at, numbers)

    def reband(self, dimensions: Sequence[Dimension]) -> list[int]:
        """Cut dimensions that have come to have many more order predicates into bands; which have new ones."""
        changed = []
        for dimension, rows in self._rows.items():
            if self.bands.outgrown(dimension, len(rows)):
                self.bands.cut(dimensions[dimension], len(rows))
                self._put_into_cells(dimension, list(rows))
                changed.append(dimension)
        return changed

    def _put_into_cells(self, dimension: int, numbers: list[int]) -> None:
        low, high = self._columns.low.values[numbers], self._columns.high.values[numbers]
        self._columns.cell.values[numbers] = self.bands.cells(dimension, low, high)
