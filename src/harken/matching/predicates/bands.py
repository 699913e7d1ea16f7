"""Bands of dimensions with order predicates, and the cells that clauses stand in by them (see layout.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from harken.matching.kernels.layout import (
    ABOVE_CELLS,
    BANDS,
    BETWEEN_CELLS,
    CELLS,
    HIGHEST,
    LEVELS,
    LOWEST,
)
from harken.matching.predicates.dimensions import Dimension
from harken.matching.saving import State, require
from harken.model.values import Value

OUTGROWN = 4
"""Bands are cut anew when there are so many times the predicates there were."""

_LEVEL_CELLS = np.cumsum([0, *(BANDS >> level for level in range(LEVELS))])
"""Where in the pyramid each level begins."""


class Bands:
    """The bands of all dimensions that have any. Changes must not run beside anything else."""

    def __init__(self) -> None:
        self.dimensions: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self.first: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._number: dict[int, int] = {}
        self._cuts: list[list[Value]] = []
        self._predicates: list[int] = []

    def __len__(self) -> int:
        return len(self._cuts)

    def number_of(self, dimension: int) -> int:
        """The number of a dimension among those with bands, or -1."""
        return self._number.get(dimension, -1)

    def outgrown(self, dimension: int, predicates: int) -> bool:
        """Whether a dimension with so many order predicates wants bands, or new ones."""
        number = self._number.get(dimension)
        return bool(predicates) and (number is None or predicates > OUTGROWN * self._predicates[number])

    def cut(self, dimension: Dimension, cuts: list[Value], predicates: int) -> None:
        """Cut a dimension with so many order predicates into bands that begin at these constants."""
        number = self._number.setdefault(dimension.number, len(self._cuts))
        if number == len(self._cuts):
            self._cuts.append([])
            self._predicates.append(0)
            self.dimensions = np.append(self.dimensions, np.int32(dimension.number))
            self.first = np.append(self.first, np.zeros(BANDS - 1, np.int64))
        for constant in cuts:
            dimension.order.hold(constant)
        for constant in self._cuts[number]:
            dimension.order.drop(constant)
        self._cuts[number] = cuts
        self._predicates[number] = predicates
        self.relabel(dimension)

    def forget(self, dimension: int) -> None:
        """A dimension has become another one, which has no order yet: whatever it had bands of is gone."""
        number = self._number.get(dimension)
        if number is not None:
            self._cuts[number], self._predicates[number] = [], 0
            self.first[number * (BANDS - 1) : (number + 1) * (BANDS - 1)] = HIGHEST + 1

    def state(self) -> State:
        """The bands by dimension. Their cuts are known by their labels."""
        predicates = np.array(self._predicates, np.int64)
        return State({}, {"dimensions": self.dimensions, "first": self.first, "predicates": predicates})

    def restore(self, state: State, dimensions: Sequence[Dimension]) -> None:
        """Become what others were. The dimensions have their labels already."""
        self.dimensions = state.array("dimensions", np.int32)
        self.first = state.array("first", np.int64, size=len(self.dimensions) * (BANDS - 1))
        self._predicates = state.array("predicates", np.int64, size=len(self.dimensions)).tolist()
        known = set(self.dimensions.tolist())
        require(len(known) == len(self.dimensions), "a dimension has bands twice")
        require(known <= set(range(len(dimensions))), "bands are of no dimension")
        require(bool((np.diff(self.first.reshape(-1, BANDS - 1)) >= 0).all()), "bands are not in order")
        for number, dimension in enumerate(self.dimensions.tolist()):
            constants = {label: constant for constant, label, _ in dimensions[dimension].order.held()}
            firsts = self.first[number * (BANDS - 1) : (number + 1) * (BANDS - 1)]
            self._cuts.append([constants[label] for label in firsts.tolist() if label <= HIGHEST])
            self._number[dimension] = number

    def cuts(self) -> Iterator[tuple[int, list[Value]]]:
        """The constants at which bands of each dimension begin."""
        return zip(self.dimensions.tolist(), self._cuts, strict=True)

    def relabel(self, dimension: Dimension) -> None:
        """Find out at which labels a dimension's bands begin; nothing to do without bands."""
        number = self._number.get(dimension.number)
        if number is not None:
            self.first[number * (BANDS - 1) : (number + 1) * (BANDS - 1)] = _firsts(dimension, self._cuts[number])

    def cells(
        self, dimension: int, low: npt.NDArray[np.int64], high: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """The cell of each interval of a dimension; -1 without bands."""
        number = self._number.get(dimension)
        if number is None:
            return np.full(len(low), -1)
        first = self.first[number * (BANDS - 1) : (number + 1) * (BANDS - 1)]
        return np.asarray(number * CELLS + _cells(first, low, high), np.int64)

    def cells_if_cut(
        self,
        dimension: Dimension,
        cuts: Sequence[Value],
        low: npt.NDArray[np.int64],
        high: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.int64]:
        """The cell of each interval of a dimension, if it were cut at these constants."""
        return _cells(_firsts(dimension, cuts), low, high)

    def band_of(self, number: int, labels: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The bands that labels of a banded dimension lie in."""
        first = self.first[number * (BANDS - 1) : (number + 1) * (BANDS - 1)]
        return _band_of(first, labels)

    def chances(self, per_band: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The chance that an event opens each cell of one dimension, from the chance that it lies in each band."""
        upto = np.concatenate([[0.0], np.cumsum(per_band)])
        cells = np.ones(CELLS)
        cells[:BANDS] = upto[1:]
        cells[ABOVE_CELLS:BETWEEN_CELLS] = upto[-1] - upto[:-1]
        for level in range(LEVELS):
            begins = np.arange(BANDS >> level) << level
            ends = np.minimum(begins + (2 << level), BANDS)
            at = BETWEEN_CELLS + _LEVEL_CELLS[level]
            cells[at : at + len(begins)] = upto[ends] - upto[begins]
        return cells


def _firsts(dimension: Dimension, cuts: Sequence[Value]) -> npt.NDArray[np.int64]:
    """The labels at which the bands of a dimension begin that is cut at these constants."""
    labels = [dimension.order.label_of_constant(constant) for constant in cuts]
    return np.array(labels + (BANDS - 1 - len(labels)) * [HIGHEST + 1], np.int64)


def _band_of(first: npt.NDArray[np.int64], labels: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.searchsorted(first, labels, side="right")


def _cells(
    first: npt.NDArray[np.int64], low: npt.NDArray[np.int64], high: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The cells of intervals, among those of a dimension whose bands begin at these labels."""
    from_band, to_band = _band_of(first, low), _band_of(first, high)
    level = np.zeros(len(low), np.int64)
    for _ in range(LEVELS - 1):
        level += (to_band >> level) - (from_band >> level) > 1
    between = BETWEEN_CELLS + _LEVEL_CELLS[level] + (from_band >> level)
    return np.where(low == LOWEST, to_band, np.where(high == HIGHEST, ABOVE_CELLS + from_band, between))
