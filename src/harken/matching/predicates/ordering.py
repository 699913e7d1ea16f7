"""The order of a dimension's constants, as integers that stay as they are when constants come and go.

A constant's **label** lies between those of its neighbours, with gaps, so that a new one usually fits in. A value
between two constants has the label just below the upper one. Then every comparison, on every type, is a comparison
of integers.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cmp_to_key, partial
from itertools import groupby, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from harken.matching.events.columns import Numbers
from harken.matching.kernels.encoding import labels_by_place
from harken.matching.kernels.layout import HIGHEST, LOWEST
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

FEW = 64
"""Constants that are put into a list one after the other; with more of them it is sooner made anew."""

Held: TypeAlias = tuple[Value, int, int]
"""A constant, its code or label, and how many predicates use it."""


_comparable = cmp_to_key(compare)


class Moved(NamedTuple):
    """The labels that constants had, ascending, and those that they have now."""

    before: npt.NDArray[np.int64]
    after: npt.NDArray[np.int64]

    def lower(self, bounds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Where bounds from below are now: at a label, or just above it, or nowhere."""
        return self._moved(bounds, np.searchsorted(self.before, bounds, side="right") - 1)

    def upper(self, bounds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Where bounds from above are now: at a label, or just below it, or nowhere."""
        return self._moved(bounds, np.searchsorted(self.before, bounds))

    def _moved(self, bounds: npt.NDArray[np.int64], at: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        at = np.clip(at, 0, len(self.before) - 1)
        unbounded = (bounds == LOWEST) | (bounds == HIGHEST)
        return np.asarray(np.where(unbounded, bounds, bounds + self.after[at] - self.before[at]))


class Ordered(NamedTuple):
    """Constants in order, with others that come."""

    new: list[Value]
    gaps: list[tuple[int, list[Value]]]
    """These, by the place of the constant that they come before."""
    constants: list[Value] | None
    """All; None if few come."""
    labels: dict[Value, int]
    """Of those that come, or where `is_whole` of all."""
    is_whole: bool
    moved: Moved | None
    """Where labels are that there were, if all are new."""


class ConstantOrder:
    """The constants of one kind in order. Changes must not run beside anything else."""

    def __init__(self, kind: Kind | None) -> None:
        self._kind = kind
        self.epoch = 0
        """Changes whenever all labels do."""
        self.has_exact = False
        """Whether a constant is, or was, a decimal that is compared by code of our own."""
        self._uses: dict[Value, int] = {}
        self._labels: dict[Value, int] = {}
        self._sorted: list[Value] = []
        self._new: list[Value] = []
        self._expected: set[Value] = set()
        """What predicates will soon compare with: not to be forgotten before they do."""
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
        self.has_exact = _has_exact(constants)
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

    def settle(self) -> Moved | None:
        """Give new constants labels; if all labels are new, for want of gaps, where the known ones moved."""
        new, self._new = self._new, []
        ordered = self._with(constant for constant in new if constant in self._uses) if new else None
        return None if ordered is None else self.have(ordered)

    def expect(self, constants: Iterable[Value]) -> Ordered | None:
        """How constants will be ordered once predicates compare with these, too; None if as they are.

        Predicates will soon. Others may read meanwhile: a constant that has its label before it has its place
        compares as it did with all that there are.
        """
        self._expected = set()  # of a change that may have failed
        ordered = self._with(constants)
        if ordered is None:
            return None
        self._expected = set(ordered.new)
        if ordered.is_whole or _has_exact(ordered.new):  # those who read now compare with none of these
            return ordered
        self._labels.update(ordered.labels)
        return ordered._replace(labels={})

    def have(self, ordered: Ordered) -> Moved | None:
        """Have the constants ordered as was just told; if all labels are new, where the known ones moved."""
        self.has_exact |= _has_exact(ordered.new)
        if ordered.constants is None:  # each of a few moves all that come after it
            for place, several in reversed(ordered.gaps):
                self._sorted[place:place] = several
        else:
            self._sorted = ordered.constants
        if ordered.is_whole:
            self._labels = ordered.labels
        else:
            self._labels.update(ordered.labels)
        self.epoch += ordered.moved is not None
        self._forget_arrays()
        return ordered.moved

    def _with(self, more: Iterable[Value]) -> Ordered | None:
        """The constants with more, and without those that nobody uses if these are many; None if as they are."""
        known, labels = self._sorted, self._labels
        has_idle = len(labels) > 64 + 2 * (len(self._uses) + len(self._expected))
        if has_idle:  # which do no harm: forgetting many at once is cheaper than one by one
            known = [constant for constant in known if constant in self._uses or constant in self._expected]
            labels = {constant: labels[constant] for constant in known}
        new = sorted({constant for constant in more if constant not in labels})
        if not new and not has_idle:
            return None
        gaps = [(place, list(each)) for place, each in groupby(new, partial(bisect_left, known))]
        constants = _merged(known, gaps) if has_idle or len(gaps) > FEW else None
        fitting = [label for place, each in gaps for label in _labels_at(known, labels, place, len(each))]
        if len(fitting) == len(new) and max(map(abs, fitting), default=0) <= FARTHEST:
            fresh = dict(zip(new, fitting, strict=True))
            return Ordered(new, gaps, constants, labels | fresh if has_idle else fresh, has_idle, None)
        constants = constants or _merged(known, gaps)
        anew = {constant: at * SPACING for at, constant in enumerate(constants)}
        moved = Moved(*(np.array([those[each] for each in known], np.int64) for those in (labels, anew)))
        return Ordered(new, gaps, constants, anew, True, moved)

    def cuts(self, parts: int) -> list[Value]:
        """Constants that cut the others into so many parts of about equal size; fewer if there are not enough."""
        count = len(self._sorted)
        return list(dict.fromkeys(self._sorted[part * count // parts] for part in range(1, parts)))

    def label_of_constant(self, constant: Value) -> int:
        """The label of a constant."""
        return self._labels[constant]

    @property
    def constants(self) -> Sequence[Value]:
        """The constants, ascending, some that nobody uses among them; another list after many have come."""
        return self._sorted

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

    def write_labels_of(self, values: Numbers, into: npt.NDArray[np.int64]) -> None:
        """Write the labels of many numbers."""
        dense, lowest = self._dense_for(len(values)) if values.dtype.kind != "f" else (None, 0)
        if dense is not None:
            integers = values if values.dtype == np.int32 else values.astype(np.int64, copy=False)
            labels_by_place(integers, lowest, dense, into)  # type: ignore[arg-type]  # as just seen
        else:
            into[:] = self._labels_by_search(values)

    def _dense_for(self, count: int) -> tuple[npt.NDArray[np.int64] | None, int]:
        """As `labels_by_place`, but None unless so many have been searched for that it pays."""
        floors = self._floors_for(real=False).values
        self._searched += count
        if self._dense is None and len(floors) and self._searched <= int(floors[-1]) - int(floors[0]) + 3:
            return None, 0
        return self.labels_by_place()

    def labels_by_place(self) -> tuple[npt.NDArray[np.int64] | None, int]:
        """The labels of all integers from one below the constants to one above, and the first of these integers.

        None if they are many, or there are none.
        """
        floors = self._floors_for(real=False).values
        first, last = (int(floors[0]), int(floors[-1])) if len(floors) else (0, DENSE)
        if last - first + 3 > DENSE or first == INT_MIN or last == INT_MAX:
            return None, first
        if self._dense is None:
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

    def some_labels(self, most: int) -> npt.NDArray[np.int64]:
        """The labels of so many constants at most, ascending, as far from each other as can be."""
        some = self._sorted[:: 1 + len(self._sorted) // most]
        return np.array([self._labels[constant] for constant in some], np.int64)

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


def _has_exact(constants: Iterable[Value]) -> bool:
    return any(isinstance(each, Exact) for each in constants)


def _labels_at(known: Sequence[Value], labels: Mapping[Value, int], place: int, count: int) -> Sequence[int]:
    """So many labels, ascending, for what comes before the constant at a place; none without gaps."""
    if place == len(known):
        last = labels[known[-1]] if place else -SPACING
        return range(last + SPACING, last + (count + 1) * SPACING, SPACING)
    above = labels[known[place]]
    if not place:
        return range(above - count * SPACING, above, SPACING)
    below = labels[known[place - 1]]
    step = (above - below) // (count + 1)
    return [below + at * step for at in range(1, count + 1)] if step > 1 else ()


def _merged(known: Sequence[Value], gaps: Sequence[tuple[int, list[Value]]]) -> list[Value]:
    """Constants in order, with others before those at some places."""
    merged, at = list[Value](), 0
    for place, several in gaps:
        merged += known[at:place]
        merged += several
        at = place
    merged += known[at:]
    return merged


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
