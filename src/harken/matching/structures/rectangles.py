"""R-trees: which of many rectangles a region is within, contains or overlaps."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from harken.matching.structures.kernels.rectangle_trees import (
    FAN,
    HIGH_X,
    HIGH_Y,
    LOW_X,
    LOW_Y,
    SIDES,
    Met,
    RectangleTree,
    bound,
    find_items,
)

FEW = 64
"""Items that there is room for at first."""

Rectangle = tuple[int, tuple[float, float, float, float]]
"""A relation of `kernels.rectangle_trees`, and the sides."""


class PackedRectangles:
    """Rectangles by number, and how regions are asked to lie to each. Made once; any number of threads may ask."""

    def __init__(self, rectangles: Sequence[Rectangle]) -> None:
        boxes = np.array([sides for _, sides in rectangles], np.float64).reshape(-1, SIDES)
        self.order = _by_tiles(boxes)
        """The rectangles in the order that items have."""
        levels = [len(boxes)]
        while levels[-1] > 1:
            levels.append(-(-levels[-1] // FAN))
        first = np.concatenate([[0], np.cumsum(levels)])
        relation = np.array([relation for relation, _ in rectangles], np.int8)[self.order]
        self._tree = RectangleTree(np.zeros((int(first[-1]), SIDES)), first, relation)
        self._tree.box[: len(boxes)] = boxes[self.order]
        bound(self._tree)

    @property
    def nbytes(self) -> int:
        """Bytes taken."""
        return sum(each.nbytes for each in self._tree) + self.order.nbytes

    def find_for(self, region: npt.NDArray[np.float64]) -> list[int]:
        """The rectangles that a single region lies to as is asked."""
        found: list[int] = self.find(region)[1].tolist()
        return found

    def find(self, regions: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Which of these regions, one a row, lie to which rectangles as is asked, pair by pair in any order."""
        room, pending = FEW, np.zeros((2, FAN * len(self._tree.level_first)), np.int64)
        while True:
            met = Met(np.empty(room, np.int64), np.empty(room, np.int64))
            count = find_items(self._tree, regions, pending[0], pending[1], met)
            if count <= room:
                return met.region[:count], self.order[met.item[:count]]
            room = count


def _by_tiles(boxes: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """The order of boxes in slices from left to right, each from bottom to top."""
    # Halved before they are added: the sum of two large numbers may not be one. Without ends, the middle is 0.
    middle = np.nan_to_num(boxes[:, [LOW_X, LOW_Y]] / 2 + boxes[:, [HIGH_X, HIGH_Y]] / 2, nan=0.0)
    slices = max(1, math.isqrt(max(1, len(boxes) // FAN)))
    place = np.empty(len(boxes), np.int64)
    place[np.argsort(middle[:, 0], kind="stable")] = np.arange(len(boxes))
    return np.lexsort([middle[:, 1], place * slices // max(1, len(boxes))]).astype(np.int64)
