"""Clauses of boxes, one by one: for what is put in singly, and for what columns cannot say."""

from __future__ import annotations

from math import isfinite
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from harken.model.values import Kind
from harken.symmetric.memory.clauses import Clauses
from harken.symmetric.memory.constants import Constants
from harken.symmetric.memory.dimensions import Dimensions
from harken.symmetric.memory.forms import FIRST_OF_SHAPES, Bounds, Form, Seen, spread
from harken.symmetric.memory.orders import AxisValues, Numbers, Texts
from harken.symmetric.memory.positions import POSITION_OF, Position
from harken.symmetric.pointsets import Interval
from harken.symmetric.semantics import Boxes

Constant: TypeAlias = Position | str

Bound: TypeAlias = tuple[Constant, int]
"""A constant and a nudge."""

Row: TypeAlias = tuple[int, Bound | None, Bound | None]
"""An axis, and bounds; None is unbounded."""

_KIND_OF_FORM = {Form[kind.name]: kind for kind in Kind if kind.is_ordered}


class Draft:
    """Collects boxes and makes clauses of them. Not for use by several threads."""

    def __init__(self, dimensions: Dimensions) -> None:
        self._dimensions = dimensions
        self._rows: list[Row] = []
        self._first = [0]
        self._slots: list[int] = []
        self._several: list[bool] = []

    def add(self, slot: int, boxes: Boxes) -> None:
        """The clauses of one constraint."""
        clauses = [clause for box in boxes.boxes for clause in spread(box)]
        for clause in clauses:
            rows = [row for seen in clause for row in self._rows_of(seen)]
            self._rows += sorted(rows, key=lambda row: row[0])
            self._first.append(len(self._rows))
        self._slots += [slot] * len(clauses)
        self._several += [len(clauses) > 1] * len(clauses)

    def finish(self) -> Clauses:
        """All that were added."""
        axes = sorted({axis for axis, _, _ in self._rows})
        place = {axis: at for at, axis in enumerate(axes)}
        constants: list[set[Constant]] = [set() for _ in axes]
        for axis, *bounds in self._rows:
            constants[place[axis]].update(bound[0] for bound in bounds if bound is not None)
        ascending = [sorted(each) for each in constants]
        ranks = [{constant: rank for rank, constant in enumerate(each)} for each in ascending]
        low = [0 if low is None else 2 * ranks[place[axis]][low[0]] + 1 + low[1] for axis, low, _ in self._rows]
        high = [
            2 * len(ranks[place[axis]]) if high is None else 2 * ranks[place[axis]][high[0]] + 1 + high[1]
            for axis, _, high in self._rows
        ]
        orders = [_order(each, self._dimensions.is_text(axis)) for axis, each in zip(axes, ascending, strict=True)]
        return Clauses(
            np.array(axes, np.int32),
            Constants.of(orders),
            np.array(self._first, np.int64),
            np.array([place[axis] for axis, _, _ in self._rows], np.int32),
            np.array(low, np.int32),
            np.array(high, np.int32),
            np.array(self._slots, np.int32),
            np.array(self._several, np.bool_),
        ).split()

    def _rows_of(self, seen: Seen) -> list[Row]:
        name, form, what = seen
        axis = self._dimensions.axis(name, form)
        if form is Form.ANYTHING:
            return [(axis, None, None)]
        if form >= FIRST_OF_SHAPES:
            return _rows_of_shape(axis, what)  # type: ignore[arg-type]  # shapes have bounds
        return [_row(axis, form, interval) for interval in what]  # type: ignore[arg-type]  # others have intervals


def _rows_of_shape(axis: int, bounds: Bounds) -> list[Row]:
    min_x, min_y, max_x, max_y = (((edge, 0), 0) if isfinite(edge) else None for edge in bounds)
    return [(axis, min_x, max_x), (axis + 1, min_y, max_y)]


def _row(axis: int, form: Form, interval: Interval) -> Row:
    constant_of = str if form is Form.STRING else POSITION_OF[_KIND_OF_FORM[form]]
    low = None if interval.low is None else (constant_of(interval.low), 0 if interval.low_closed else 1)
    high = None if interval.high is None else (constant_of(interval.high), 0 if interval.high_closed else -1)
    return axis, low, high


def _order(constants: list[Constant], is_text: bool) -> AxisValues:
    if is_text:
        return Texts(pa.array(constants, pa.large_string()))
    keys = np.array([constant[0] for constant in constants], np.float64)
    rests = np.array([constant[1] for constant in constants], np.float64)
    return Numbers(keys, rests if rests.any() else None)
