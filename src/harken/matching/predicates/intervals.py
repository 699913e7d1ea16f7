"""The order predicates: which there are of each dimension, the labels that bound them, and their cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.matching.kernels.layout import BANDS, CELLS
from harken.matching.predicates.bands import Bands
from harken.matching.predicates.columns import PredicateColumns
from harken.matching.predicates.dimensions import Dimension
from harken.matching.predicates.ordering import Moved, Ordered
from harken.matching.predicates.rows import Row, constant_in
from harken.model.values import Value


class Expected(NamedTuple):
    """How a dimension will be labelled, and its order predicates if their bounds move then."""

    dimension: Dimension
    ordered: Ordered
    numbers: npt.NDArray[np.int64]


class Bounded(NamedTuple):
    """Order predicates of one dimension, the least and the greatest label that each asks for, and their cells."""

    dimension: int
    numbers: npt.NDArray[np.int64]
    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]
    cells: npt.NDArray[np.int64]


class Recut(NamedTuple):
    """The constants at which a dimension is cut into bands, and the cells that its order predicates come to."""

    dimension: Dimension
    cuts: list[Value]
    numbers: npt.NDArray[np.int64]
    cells: npt.NDArray[np.int64]


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
        self._grown: set[int] = set()
        """Dimensions that have come to have more since it was last asked how to cut them."""

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
        self._grown.add(dimension.number)
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

    def expect(self, dimension: Dimension, constants: Iterable[Value]) -> Expected | None:
        """How a dimension will be labelled once order predicates compare with these, too; None if as it is.

        Nothing that others read changes.
        """
        ordered = dimension.order.expect(constants)
        if ordered is None:
            return None
        numbers = np.array([*self._rows.get(dimension.number, ())] if ordered.moved else [], np.int64)
        return Expected(dimension, ordered, numbers)

    def have(self, expected: Expected) -> object:
        """Have a dimension labelled as was just told; what that replaces, and takes long to free if it is much."""
        order = expected.dimension.order
        replaced = order.constants, order.known_labels
        self._relabel(expected.dimension, order.have(expected.ordered), expected.numbers)
        return replaced

    def settle(self, dimensions: Sequence[Dimension]) -> None:
        """Give new order predicates their bounds in labels, and the others too where all labels are new."""
        if not self._new:
            return
        for at, added in self._new.items():
            dimension = dimensions[at]
            moved = dimension.order.settle()
            if moved is not None:
                known = self._rows.get(at, {}).keys() - added
                self._relabel(dimension, moved, np.array(list(known), np.int64))
        self.have_bounds(self.bounds_of_new(dimensions))

    def bounds_of_new(self, dimensions: Sequence[Dimension]) -> list[Bounded]:
        """The bounds and cells of new order predicates, all of whose constants have labels.

        Nothing that others read changes.
        """
        new, self._new = self._new, {}
        found = []
        for at, added in new.items():
            dimension, known = dimensions[at], self._rows.get(at, {})
            numbers = list(known.keys() & added)
            bounds = np.array([dimension.bounds(known[number]) for number in numbers], np.int64)
            low, high = bounds.reshape(-1, 2).T
            cells = self.bands.cells(at, low, high)
            found.append(Bounded(at, np.array(numbers, np.int64), low, high, cells))
        return found

    def have_bounds(self, several: Sequence[Bounded]) -> None:
        """Have order predicates ask for these labels."""
        for each in several:
            self._columns.bound(each.numbers, each.dimension, each.low, each.high)
            self._columns.cell.values[each.numbers] = each.cells

    def _relabel(self, dimension: Dimension, moved: Moved | None, numbers: npt.NDArray[np.int64]) -> None:
        if moved is not None:
            self._columns.move_bounds(numbers, dimension.number, moved)
            self.bands.relabel(dimension)  # by the same constants: no predicate comes to another cell

    def recuts(self, dimensions: Sequence[Dimension]) -> list[Recut]:
        """How to cut dimensions into bands that have come to have many more order predicates since last asked.

        Nothing that others read changes.
        """
        found, (grown, self._grown) = list[Recut](), (self._grown, set())
        for at in sorted(grown):
            rows = self._rows.get(at, {})
            if self.bands.outgrown(at, len(rows)):
                dimension, numbers = dimensions[at], np.fromiter(rows, np.int64, len(rows))
                cuts, (low, high) = dimension.order.cuts(BANDS), self._columns.bounds(numbers)
                cells = self.bands.cells_if_cut(dimension, cuts, low, high)
                found.append(Recut(dimension, cuts, numbers, cells))
        return found

    def have_recut(self, recuts: Sequence[Recut]) -> None:
        """Have dimensions cut as was just told. Clauses in their cells have to be placed anew then."""
        for dimension, cuts, numbers, cells in recuts:
            self.bands.cut(dimension, cuts, len(numbers))
            self._columns.cell.values[numbers] = self.bands.number_of(dimension.number) * CELLS + cells
