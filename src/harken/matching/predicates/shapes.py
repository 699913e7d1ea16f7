"""Which of many predicates on points and boxes a value satisfies, without asking each: found by R-trees."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from harken.matching.structures.kernels.rectangle_trees import CONTAINS, OVERLAPS, SIDES, WITHIN
from harken.matching.structures.rectangles import PackedRectangles, Rectangle
from harken.matching.structures.segments import Segmented, numbers_in, pairs_in
from harken.model.evaluation import lies
from harken.model.expressions import Spatial, SpatialOperator
from harken.model.values import Box, EventValue, Point

Numbers = npt.NDArray[np.int64]

MOST = 2**30
"""Shapes in one tree."""

_RELATIONS = {
    SpatialOperator.WITHIN: WITHIN,
    SpatialOperator.CONTAINS: CONTAINS,
    SpatialOperator.OVERLAPS: OVERLAPS,
}


class ShapeTests:
    """Predicates on shapes by number. Changes must not run beside anything else; any thread may ask."""

    def __init__(self) -> None:
        self._asked: dict[int, Spatial] = {}
        self._found: Segmented[Rectangle, PackedRectangles] = Segmented(PackedRectangles, lambda _: 1, MOST)

    def __len__(self) -> int:
        return len(self._asked)

    @property
    def nbytes(self) -> int:
        """Bytes taken by the trees."""
        return self._found.nbytes

    def add(self, number: int, predicate: Spatial) -> None:
        """Ask for a predicate too; what is found by trees is to be settled."""
        self._asked[number] = predicate
        self._found.add(number, (_RELATIONS[predicate.operator], predicate.shape.bounds))

    def discard(self, number: int) -> None:
        """Ask for a predicate no more; what is found by trees is to be settled."""
        del self._asked[number]
        self._found.discard(number)

    @property
    def segmented(self) -> tuple[Segmented[Rectangle, PackedRectangles], ...]:
        """What is found by trees: these are to be settled."""
        return (self._found,)

    def passed_by(self, shape: Point | Box) -> list[int]:
        """The predicates that a value satisfies."""
        region = np.array([shape.bounds], np.float64)
        waiting = ((number, self._asked[number]) for number in self._found.waiting)
        return numbers_in(self._found, lambda tree: tree.find_for(region)) + [
            number for number, each in waiting if lies(shape, each.operator, each.shape)
        ]

    def passed(self, values: Sequence[EventValue]) -> tuple[Numbers, Numbers]:
        """Which of these values satisfy which predicates, pair by pair, in any order."""
        shapes = [(place, value) for place, value in enumerate(values) if isinstance(value, Point | Box)]
        regions = np.array([shape.bounds for _, shape in shapes], np.float64).reshape(-1, SIDES)
        which, numbers = pairs_in(self._found, lambda tree: tree.find(regions))
        asked = [(number, self._asked[number]) for number in self._found.waiting]
        pairs = [
            (place, number)
            for place, shape in shapes
            for number, each in asked
            if lies(shape, each.operator, each.shape)
        ]
        waiting = np.array(pairs, np.int64).reshape(-1, 2)
        places = np.array([place for place, _ in shapes], np.int64)[which]
        return np.concatenate([places, waiting[:, 0]]), np.concatenate([numbers, waiting[:, 1]])
