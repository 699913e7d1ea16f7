"""The order of a dimension's constants, as integers that stay as they are when constants come and go.

A constant's **label** lies between those of its neighbours, with gaps, so that a new one usually fits in. A value
between two constants has the label just below the upper one. Then every comparison, on every type, is a comparison
of integers.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cmp_to_key
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from harken.matching.events.columns import Numbers
from harken.matching.saving import require
from harken.model.numbers import Exact, floor_of
from harken.model.values import INT_MAX, INT_MIN, EventValue, Kind, Value, compare
from harken.normal.operators import operand_of

SPACING = 1 << 20
"""Between neighbours at first."""

DENSE = 1 << 16
"""Integer constants within a range of this size are looked up by place rather than searched."""

FARTHEST = 1 << 61
"""How far from zero labels go before all are given anew: bounds lie beyond (kernels/layout.py)."""

Held: TypeAlias = tuple[Value, int, int]
"""A constant, its code or label, and how many predicates use it."""


_comparable = cmp_to_key(compare)


class ConstantOrder:
    """The constants of one kind in order. Changes must not run beside anything else."""

    def __init__(self, kind: Kind | None) -> None:
        self._kind = kind
        self.epoch = 0
        """Changes whenever all labels do."""
        self._uses: dict[Value, int] = {}
        self._labels: dict[Value, int] = {}
        self._sorted: list[Value] = []
        self._new: list[Value] = []
        self._forget_arrays()

    def _forget_arrays(self) -> None:
        self._floors: dict[bool, Floors] = {}
        self._label_array: npt.NDArray[np.int64] | None = None
        self._dense: npt.NDArray[np.int64] | None = None
        self._searched = 0

    def __len__(self) -> int:
        return len(self._sorted)

    def held(self) -> list[Held]:
        """The constants, ascending, with their labels; some that nobody uses may still be among them."""
        return [(constant, self._labels[constant], self._uses.get(constant, 0)) for constant in self._sorted]

    def restore(self, held: Sequence[Held], epoch: int) -> None:
        """Hold the constants that another order held. Only one without any can."""
        constants, labels = [each for each, _, _ in held], [label for _, label, _ in held]
        require(all(one < other for one, other in pairwise(constants)), "constants are not in order")  # type: ignore[operator]
        require(all(one < other for one, other in pairwise(labels)), "labels are not in order")
        require(all(-FARTHEST <= label <= FARTHEST for label in labels), "a label is out of bounds")
        self.epoch = epoch
        self._sorted = [constant for constant, _, _ in held]
        self._labels = {constant: label for constant, label, _ in held}
        self._uses = {constant: uses for constant, _, uses in held if uses}

    def hold(self, constant: Value) -> None:
        """One more predicate compares with a constant. It gets its label from `settle`."""
        uses = self._uses.get(constant, 0)
        self._uses[constant] = uses + 1
        if not uses and constant not in self._labels:
            self._new.append(constant)

    def drop(self, constant: Value) -> None:
        """One predicate less does."""
        self._uses[constant] -= 1
        if not self._uses[constant]:
            del self._uses[constant]

    def settle(self) -> bool:
        """Give new constants labels; True if all labels are new, for want of gaps or because many came."""
        if len(self._labels) > 64 + 2 * len(self._uses):
            self._forget_unused()
        new, self._new = self._new, []
        if not new:
            return False
        self._forget_arrays()
        if len(new) > 16 + len(self._sorted) // 64:
            self._relabel(new)
            return True
        for at, constant in enumerate(new):
            if not self._fit_in(constant):
                self._relabel(new[at:])
                return True
        return False

    def _forget_unused(self) -> None:
        """A constant nobody uses does no harm: forgetting many at once is cheaper than one by one."""
        self._sorted = [constant for constant in self._sorted if constant in self._uses]
        self._labels = {constant: self._labels[constant] for constant in self._sorted}
        self._new = [constant for constant in self._new if constant in self._uses]
        self._forget_arrays()

    def _relabel(self, new: Iterable[Value]) -> None:
        self.epoch += 1
        self._sorted = sorted([*self._sorted, *new])
        self._labels = {constant: at * SPACING for at, constant in enumerate(self._sorted)}

    def _fit_in(self, constant: Value) -> bool:
        """Give a constant a label between its neighbours, with a gap on either side, if there is room."""
        at = bisect_left(self._sorted, constant)
        if at == len(self._sorted):
            label = self._labels[self._sorted[-1]] + SPACING if at else 0
        elif at == 0:
            label = self._labels[self._sorted[0]] - SPACING
        else:
            below, above = self._labels[self._sorted[at - 1]], self._labels[self._sorted[at]]
            if above - below < 4:
                return False
            label = (below + above) // 2
        if abs(label) > FARTHEST:
            return False
        insort(self._sorted, constant)
        self._labels[constant] = label
        return True

    def cuts(self, parts: int) -> list[Value]:
        """Constants that cut the others into so many parts of about equal size; fewer if there are not enough."""
        count = len(self._sorted)
        return list(dict.fromkeys(self._sorted[part * count // parts] for part in range(1, parts)))

    def label_of_constant(self, constant: Value) -> int:
        """The label of a constant."""
        return self._labels[constant]

    @property
    def known_labels(self) -> Mapping[Value, int]:
        """The labels of constants, some that nobody uses among them; another mapping after each change."""
        return self._labels

    def label_of(self, value: EventValue) -> int:
        """The label of any value of this kind."""
        # Decimals meet floats in a way of their own; all other values compare as Python compares them.
        if isinstance(value, Decimal):
            place = bisect_left(self._sorted, _comparable(value), key=_comparable)
        else:
            known = self._labels.get(value)
            if known is not None:
                return known
            place = bisect_left(self._sorted, value)
        if place == len(self._sorted):
            return self._labels[self._sorted[-1]] + 1 if place else 0
        constant = self._sorted[place]
        label = self._labels[constant]
        return label if compare(constant, value) == 0 else label - 1

    def labels_of_numbers(self, values: Numbers) -> npt.NDArray[np.int64]:
        """The labels of many numbers at once."""
        if values.dtype.kind != "f":
            integers = values.astype(np.int64, copy=False)
            dense, lowest = self._dense_for(len(integers))
            if dense is not None:
                return np.asarray(dense[np.clip(integers, lowest, lowest + len(dense) - 1) - lowest])
        return self._labels_by_search(values)

    def _dense_for(self, count: int) -> tuple[npt.NDArray[np.int64] | None, int]:
        """The labels of all integers from one below the constants to one above, and the first of these.

        None unless they are few, and as many as that have been searched for: else it would not pay.
        """
        floors = self._floors_for(real=False).values
        first, last = (int(floors[0]), int(floors[-1])) if len(floors) else (0, DENSE)
        size = last - first + 3
        if size > DENSE or first == INT_MIN or last == INT_MAX:
            return None, first
        self._searched += count
        if self._dense is None and self._searched > size:
            self._dense = self._labels_by_search(np.arange(first - 1, last + 2))
        return self._dense, first - 1

    def _labels_by_search(self, values: Numbers) -> npt.NDArray[np.int64]:
        floors, labels = self._floors_for(values.dtype.kind == "f"), self.labels()
        if not len(floors.values):
            return np.full(len(values), labels[-1] + 1 if len(labels) else 0)
        comparable = values.astype(floors.values.dtype, copy=False)
        place = np.searchsorted(floors.values, comparable)
        at = np.minimum(place, len(floors.values) - 1)
        differs = floors.values[at] != comparable
        if floors.is_met_by_none is not None:
            differs |= floors.is_met_by_none[at]
        if floors.below:
            labels = labels[floors.below :]
        return np.asarray(np.where(place < len(labels), labels[at] - differs, labels[-1] + 1), np.int64)

    def labels(self) -> npt.NDArray[np.int64]:
        """The labels of all constants, ascending."""
        if self._label_array is None:
            self._label_array = np.array([self._labels[constant] for constant in self._sorted], np.int64)
        return self._label_array

    def _floors_for(self, real: bool) -> Floors:
        """What floats, or ints, are compared with in the place of the constants."""
        found = self._floors.get(real)
        if found is None:
            if self._kind is Kind.NUMBER:
                found = Floors.of(self._sorted, real)  # type: ignore[arg-type]  # numbers
            else:
                found = Floors.of([operand_of(value).integer for value in self._sorted], real)
            self._floors[real] = found
        return found


@dataclass(frozen=True, slots=True)
class Floors:
    """For constants, ascending, the greatest float, or int of 64 bits, that is not more than each.

    What is more than the one is more than the other, if it is such a number itself: so all of them compare with
    constants of any size exactly.
    """

    values: npt.NDArray[np.float64] | npt.NDArray[np.int64]
    is_met_by_none: npt.NDArray[np.bool_] | None
    """Whether the constant is more than its floor; None if none is."""
    below: int
    """How many constants are less than all numbers, and have no floor."""

    @classmethod
    def of(cls, constants: Sequence[int | float | Exact], real: bool) -> Floors:
        """Of floats if `real`, of ints otherwise."""
        if real:
            floors = [_float_floor(constant) for constant in constants]
            unmet = [floor != constant for floor, constant in zip(floors, constants, strict=True)]
            return cls(np.array(floors, np.float64), np.array(unmet) if any(unmet) else None, 0)
        whole = [math.floor(constant) for constant in constants]
        below = bisect_left(whole, INT_MIN)
        pairs = list(zip(whole, constants, strict=True))[below:]
        unmet = [floor != constant or constant > INT_MAX for floor, constant in pairs]
        kept = np.array([min(floor, INT_MAX) for floor, _ in pairs], np.int64)
        return cls(kept, np.array(unmet) if any(unmet) else None, below)


def _float_floor(constant: int | float | Exact) -> float:
    if isinstance(constant, Exact):
        return floor_of(constant)
    nearest = float(constant)
    return math.nextafter(nearest, -math.inf) if nearest > constant else nearest
