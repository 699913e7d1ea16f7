"""Clauses of boxes, one by one: for what is put in singly, and for what columns cannot say."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from harken.symmetric.memory.clauses import Clauses
from harken.symmetric.memory.constants import Constants
from harken.symmetric.memory.forms import NO_HIGH, NO_LOW, Bound, Dimensions, spread
from harken.symmetric.memory.kernels.layout import ClauseRows, Places, Words
from harken.symmetric.semantics import Boxes


class Draft:
    """Collects boxes and makes clauses of them. Not for use by several threads."""

    def __init__(self, dimensions: Dimensions) -> None:
        self._dimensions = dimensions
        self._rows: list[tuple[int, Bound, Bound]] = []
        self._first = [0]
        self._slots: list[int] = []
        self._several: list[bool] = []

    def add(self, slot: int, boxes: Boxes) -> None:
        """The clauses of one constraint."""
        clauses = [clause for box in boxes.boxes for clause in spread(box)]
        for clause in clauses:
            rows = [
                (axis, low, high)
                for name, form, axes in clause
                for axis, intervals in enumerate(axes, self._dimensions.axis(name, form))
                for low, high in intervals
            ]
            self._rows += sorted(rows, key=lambda row: row[0])
            self._first.append(len(self._rows))
        self._slots += [slot] * len(clauses)
        self._several += [len(clauses) > 1] * len(clauses)

    def finish(self) -> Clauses:
        """All that were added."""
        axes = sorted({axis for axis, _, _ in self._rows})
        place = {axis: at for at, axis in enumerate(axes)}
        axis = np.array([place[axis] for axis, _, _ in self._rows], np.int32)
        constants, low, high = self._coded(axes, axis)
        return Clauses(
            np.array(axes, np.int32),
            constants,
            ClauseRows(np.array(self._first, np.int64), axis, low.astype(np.int32), high.astype(np.int32)),
            np.array(self._slots, np.int32),
            np.array(self._several, np.bool_),
        ).split()

    def _coded(self, axes: list[int], axis: Words) -> tuple[Constants, Places, Places]:
        """The constants of all axes, and the codes of all rows' bounds."""
        bounds = [bound for _, *ends in self._rows for bound in ends]
        limited = np.array([bound not in (NO_LOW, NO_HIGH) for bound in bounds], np.bool_)
        values = [bound for bound in bounds if bound not in (NO_LOW, NO_HIGH)]
        numbers = [bound for bound in values if not isinstance(bound[0], str)]
        constants, ranks = Constants.ranked(
            np.array([self._dimensions.is_text(axis) for axis in axes], np.bool_),
            np.repeat(axis, 2)[limited].astype(np.int64),
            np.array([key for key, _, _ in numbers], np.float64),
            np.array([rest for _, rest, _ in numbers], np.float64),
            pa.array([bound[0] for bound in values if isinstance(bound[0], str)], pa.large_string()),
        )
        codes = np.zeros(len(bounds), np.int64)
        codes[1::2] = 2 * constants.counts[axis]
        codes[limited] = 2 * ranks + 1 + np.array([nudge for _, _, nudge in values], np.int64)
        return constants, codes[::2], codes[1::2]
