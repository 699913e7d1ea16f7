"""What sets of points look like to the index: a form, and intervals or the bounds of one shape.

Held sets of one attribute stand apart by form, since what an asked set has to do with them depends on both forms.
For most pairs of forms it is a test of intervals, or of bounds, and that is exact. For the rest the test is
necessary, and whoever passes it is compared by `semantics`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from itertools import product
from typing import TypeAlias

from harken.model.values import Box as BoxValue
from harken.model.values import Kind, Point
from harken.symmetric.memory.kernels.layout import ANY, AROUND, INSIDE, LOOSE, NEVER, OVERLAP, SAME
from harken.symmetric.memory.positions import INFINITY
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


FORM_OF_KIND = {kind: Form[kind.name] for kind in Kind if kind.is_ordered}
FIRST_OF_SHAPES = Form.POINTS

Bounds: TypeAlias = tuple[float, float, float, float]
"""min_x, min_y, max_x, max_y."""

Seen: TypeAlias = tuple[str, Form, tuple[Interval, ...] | Bounds]
"""An attribute, the form of the set on it, and the set: intervals, or for shapes bounds."""

MOST_ALTERNATIVES = 256
"""Boxes that one may be spread into."""

_BOUNDLESS: Bounds = (-INFINITY, -INFINITY, INFINITY, INFINITY)


def axes_of(form: Form) -> int:
    """How many axes a dimension of a form has."""
    return 2 if form >= FIRST_OF_SHAPES else 1


def spread(box: Box) -> list[list[Seen]]:
    """A box as alternatives in which each set has one form and, if it is of shapes, one shape.

    There is nearly always one alternative. Where there would be too many, shapes are taken together.
    """
    seen: list[Seen] = []
    shapes: list[tuple[str, Shapes]] = []
    for name, points in box.items():
        if isinstance(points, Intervals):
            seen.append((name, FORM_OF_KIND[points.kind], points.intervals))
        elif isinstance(points, Shapes):
            shapes.append((name, points))
        else:
            seen.append(_seen_whole(name, points))
    if not shapes:
        return [seen]
    options, count = [], 1
    for name, points in shapes:
        form = Form.POINTS if points.kind is Kind.POINT else Form.BOXES
        if count * len(points.values) <= MOST_ALTERNATIVES:
            count *= len(points.values)
            options.append([(name, form, value.bounds) for value in points.values])
        else:
            options.append([(name, Form.HEMMED, _bounding_box(points.values))])
    return [[*seen, *chosen] for chosen in product(*options)]


def _seen_whole(name: str, points: PointSet) -> Seen:
    match points:
        case Lying(within=within) if within is not None:
            form = Form.HEMMED if points.kind or points.around or points.over else Form.WITHIN
            return name, form, within.bounds
        case Lying(kind=None, around=(shape,), over=()):
            return name, Form.AROUND, shape.bounds
        case Lying(kind=None, around=(), over=(shape,)):
            return name, Form.OVER, shape.bounds
        case Lying(around=around, over=over):
            least = min((*around, *over), key=_area, default=None)
            return name, Form.FREE, _BOUNDLESS if least is None else least.bounds
    assert isinstance(points, Anything)
    return name, Form.ANYTHING, ()


def _area(shape: Point | BoxValue) -> float:
    min_x, min_y, max_x, max_y = shape.bounds
    return (max_x - min_x) * (max_y - min_y)


def _bounding_box(shapes: Iterable[Point | BoxValue]) -> Bounds:
    min_x, min_y, max_x, max_y = zip(*(shape.bounds for shape in shapes), strict=True)
    return min(min_x), min(min_y), max(max_x), max(max_y)


def _modes() -> Sequence[Sequence[int]]:
    """By asked and held form: how the held one has to lie."""
    table = [[NEVER] * len(Form) for _ in Form]
    for form in Form:
        table[form][Form.ANYTHING] = table[Form.ANYTHING][form] = ANY
        if Form.ANYTHING < form < FIRST_OF_SHAPES:
            table[form][form] = OVERLAP
    for asked in Form:
        for held in Form:
            if asked >= FIRST_OF_SHAPES and held >= FIRST_OF_SHAPES:
                table[asked][held] = _EXACT.get((_without_kind(asked), _without_kind(held)), _loosely(asked, held))
    table[Form.POINTS][Form.BOXES] = table[Form.BOXES][Form.POINTS] = NEVER
    return table


def _without_kind(form: Form) -> Form:
    return Form.BOXES if form is Form.POINTS else form


def _loosely(asked: Form, held: Form) -> int:
    """Where nothing hems the shapes in, there is one that contains and touches all that both ask for."""
    without_hem = (Form.OVER, Form.AROUND, Form.FREE)
    return (ANY if asked in without_hem and held in without_hem else OVERLAP) | LOOSE


_EXACT: dict[tuple[Form, Form], int] = {
    (Form.BOXES, Form.BOXES): SAME,
    (Form.BOXES, Form.OVER): OVERLAP,
    (Form.BOXES, Form.WITHIN): AROUND,
    (Form.BOXES, Form.AROUND): INSIDE,
    (Form.OVER, Form.BOXES): OVERLAP,
    (Form.OVER, Form.OVER): ANY,
    (Form.OVER, Form.WITHIN): OVERLAP,
    (Form.OVER, Form.AROUND): ANY,
    (Form.WITHIN, Form.BOXES): INSIDE,
    (Form.WITHIN, Form.OVER): OVERLAP,
    (Form.WITHIN, Form.WITHIN): OVERLAP,
    (Form.WITHIN, Form.AROUND): INSIDE,
    (Form.AROUND, Form.BOXES): AROUND,
    (Form.AROUND, Form.OVER): ANY,
    (Form.AROUND, Form.WITHIN): AROUND,
    (Form.AROUND, Form.AROUND): ANY,
}
"""Pairs that bounds decide; BOXES stands for POINTS too, which meet other forms as boxes of no extent do."""

MODES = _modes()
