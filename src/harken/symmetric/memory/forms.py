"""What sets of points look like to the index: a form, and on each of its axes intervals between bounds.

Held sets of one attribute stand apart by form, since what an asked set has to do with them depends on both forms.
For most pairs of forms it is a test of intervals, and that is exact. For the rest the test is necessary, and
whoever passes it is compared by `semantics`.

A **bound** is a key, a rest and a nudge, compared in that order. Dates, timestamps and bools are counted in whole
numbers. A number's key is the nearest float, and its rest what is missing: 0 for all floats and nearly all ints.
Since rounding never swaps two numbers, this orders ints and floats together, exactly. A text is its own key. A
nudge of 1 or -1 means just after, or just before: so `a > 5` begins at (5.0, 0, 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from itertools import product
from typing import Any, TypeAlias

from harken.model.values import Box as BoxValue
from harken.model.values import Kind, Point
from harken.normal.operators import EPOCH, microseconds
from harken.symmetric.memory.kernels.layout import ANY, AROUND, INSIDE, LOOSE, NEVER, OVERLAP, SAME
from harken.symmetric.pointsets import Anything, Interval, Intervals, Lying, PointSet, Shapes
from harken.symmetric.semantics import Box


class Form(IntEnum):
    """The forms of sets: of any value, of one ordered kind, or of shapes."""

    ANYTHING = 0
    NUMBER = 1
    STRING = 2
    BOOL = 3
    DATE = 4
    TIMESTAMP = 5
    POINTS = 6
    """One point."""
    BOXES = 7
    """One box."""
    OVER = 8
    """All shapes that have something in common with one."""
    WITHIN = 9
    """All shapes within one."""
    AROUND = 10
    """All shapes around one."""
    HEMMED = 11
    """Some of the shapes within bounds; which, is said elsewhere."""
    FREE = 12
    """Some of the shapes that touch bounds, with nothing to hem them in; which, is said elsewhere."""


FIRST_OF_SHAPES = Form.POINTS


def axes_of(form: Form) -> int:
    """How many axes a dimension of a form has: shapes lie on two, x and y."""
    return 2 if form >= FIRST_OF_SHAPES else 1


class Dimensions:
    """The dimensions of one side, attributes together with forms, and the numbers of their axes.

    New ones may not come while others look.
    """

    def __init__(self) -> None:
        self.of_attribute: dict[str, dict[Form, int]] = {}
        """For each attribute the forms that are held, and the first axis of each."""
        self._axes: list[tuple[Form, bool]] = []
        """Of each axis its form, and whether it is the first of its dimension."""

    def axis(self, attribute: str, form: Form) -> int:
        """The first axis of a dimension, which is made if it is new; that of y comes after that of x."""
        forms = self.of_attribute.get(attribute, {})
        axis = forms.get(form)
        if axis is None:
            axis = len(self._axes)
            # Whatever stops us in between leaves axes that nobody uses, which does no harm.
            self._axes += [(form, first) for first in [True, False][: axes_of(form)]]
            self.of_attribute[attribute] = {**forms, form: axis}
        return axis

    def is_text(self, axis: int) -> bool:
        """Whether the constants of an axis are texts."""
        return self._axes[axis][0] is Form.STRING

    def leads(self, axis: int) -> bool:
        """Whether it is the first or only axis of its dimension."""
        return self._axes[axis][1]


# ---------------------------------------------------------------- sets as intervals

Bound: TypeAlias = tuple[Any, float, int]
"""A key, which is a float or a text, a rest and a nudge."""

Ends: TypeAlias = tuple[Bound, Bound]

Seen: TypeAlias = tuple[str, Form, Sequence[Sequence[Ends]]]
"""An attribute, the form of the set on it, and on each axis the intervals it consists of."""

INFINITY = float("inf")
NO_LOW: Bound = (-INFINITY, 0, 0)
NO_HIGH: Bound = (INFINITY, 0, 0)

MOST_ALTERNATIVES = 256
"""Boxes that one may be spread into."""

_EXACT_INTEGERS = 2.0**53
_FIRST_DAY = EPOCH.date().toordinal()


def spread(box: Box) -> list[list[Seen]]:
    """A box as alternatives in which each set has one form and, if it is of shapes, one shape.

    There is nearly always one alternative. Where there would be too many, shapes are taken together.
    """
    common: list[Seen] = []
    options: list[list[Seen]] = []
    count = 1
    for name, points in box.items():
        if isinstance(points, Intervals):
            form, ends_of = _ORDERED[points.kind]
            common.append((name, form, [tuple(map(ends_of, points.intervals))]))
        elif not isinstance(points, Shapes):
            common.append((name, *_seen_whole(points)))
        elif count * len(points.values) <= MOST_ALTERNATIVES:
            count *= len(points.values)
            form = Form.POINTS if points.kind is Kind.POINT else Form.BOXES
            options.append([(name, form, _sides(value.bounds)) for value in points.values])
        else:
            options.append([(name, Form.HEMMED, _sides(_bounding_box(points.values)))])
    if not options:
        return [common]
    return [[*common, *chosen] for chosen in product(*options)]


def _position_of_number(number: float) -> tuple[float, int]:
    """The key and the rest of an int, a float or a bool."""
    key = float(number)
    if abs(key) < _EXACT_INTEGERS:
        return key, 0
    return key, int(number) - int(key)


def _ends_by(position_of: Callable[[Any], tuple[float | str, int]]) -> Callable[[Interval], Ends]:
    """What gives the bounds of an interval, by what gives the key and the rest of a value."""

    def ends_of(interval: Interval) -> Ends:
        low, high = NO_LOW, NO_HIGH
        if interval.low is not None:
            key, rest = position_of(interval.low)
            low = (key, rest, 0 if interval.low_closed else 1)
            if interval.high is interval.low:
                return low, low
        if interval.high is not None:
            key, rest = position_of(interval.high)
            high = (key, rest, 0 if interval.high_closed else -1)
        return low, high

    return ends_of


_ORDERED: dict[Kind, tuple[Form, Callable[[Interval], Ends]]] = {
    Kind.NUMBER: (Form.NUMBER, _ends_by(_position_of_number)),
    Kind.STRING: (Form.STRING, _ends_by(lambda text: (str(text), 0))),
    Kind.BOOL: (Form.BOOL, _ends_by(_position_of_number)),
    Kind.DATE: (Form.DATE, _ends_by(lambda day: (float(day.toordinal() - _FIRST_DAY), 0))),
    Kind.TIMESTAMP: (Form.TIMESTAMP, _ends_by(lambda moment: _position_of_number(microseconds(moment)))),
}
"""By kind, the form of intervals, and what gives their bounds."""


def _sides(bounds: tuple[float, float, float, float]) -> list[list[Ends]]:
    """Of min_x, min_y, max_x and max_y: the interval on each axis."""
    min_x, min_y, max_x, max_y = bounds
    return [[((min_x, 0, 0), (max_x, 0, 0))], [((min_y, 0, 0), (max_y, 0, 0))]]


def _seen_whole(points: PointSet) -> tuple[Form, Sequence[Sequence[Ends]]]:
    match points:
        case Lying(within=within) if within is not None:
            form = Form.HEMMED if points.kind or points.around or points.over else Form.WITHIN
            return form, _sides(within.bounds)
        case Lying(kind=None, around=(shape,), over=()):
            return Form.AROUND, _sides(shape.bounds)
        case Lying(kind=None, around=(), over=(shape,)):
            return Form.OVER, _sides(shape.bounds)
        case Lying(around=around, over=over):
            least = min((*around, *over), key=_area, default=None)
            return Form.FREE, [[(NO_LOW, NO_HIGH)]] * 2 if least is None else _sides(least.bounds)
    assert isinstance(points, Anything)
    return Form.ANYTHING, [[(NO_LOW, NO_HIGH)]]


def _area(shape: Point | BoxValue) -> float:
    min_x, min_y, max_x, max_y = shape.bounds
    return (max_x - min_x) * (max_y - min_y)


def _bounding_box(shapes: Iterable[Point | BoxValue]) -> tuple[float, float, float, float]:
    min_x, min_y, max_x, max_y = zip(*(shape.bounds for shape in shapes), strict=True)
    return min(min_x), min(min_y), max(max_x), max(max_y)


# ---------------------------------------------------------------- how sets have to lie


_DECIDED = (Form.BOXES, Form.OVER, Form.WITHIN, Form.AROUND)
_EXACT = {
    Form.BOXES: (SAME, OVERLAP, AROUND, INSIDE),
    Form.OVER: (OVERLAP, ANY, OVERLAP, ANY),
    Form.WITHIN: (INSIDE, OVERLAP, OVERLAP, INSIDE),
    Form.AROUND: (AROUND, ANY, AROUND, ANY),
}
"""How bounds have to lie where they decide, by asked form, and by held form in the order of the line above."""

_WITHOUT_HEM = (Form.OVER, Form.AROUND, Form.FREE)


def _mode(asked: Form, held: Form) -> int:
    """How the held set has to lie to the asked one."""
    if Form.ANYTHING in (asked, held):
        return ANY
    if min(asked, held) < FIRST_OF_SHAPES:
        return OVERLAP if asked is held else NEVER
    if {asked, held} == {Form.POINTS, Form.BOXES}:
        return NEVER
    # Points meet other forms as boxes of no extent do.
    asked, held = (Form.BOXES if form is Form.POINTS else form for form in (asked, held))
    if asked in _DECIDED and held in _DECIDED:
        return _EXACT[asked][_DECIDED.index(held)]
    # Where nothing hems the shapes in, there is one that contains and touches all that both ask for.
    return (ANY if asked in _WITHOUT_HEM and held in _WITHOUT_HEM else OVERLAP) | LOOSE


MODES = [[_mode(asked, held) for held in Form] for asked in Form]
