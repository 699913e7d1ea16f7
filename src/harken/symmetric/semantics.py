"""When a publication matches a subscription: docs/symmetric.md in code, and the judge of all stores.

Both are unions of clauses. Two clauses match if the sets of points that they allow meet in every attribute that
counts. Which attributes count is what tells the two directions apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, TypeAlias, get_args

from harken.compiler import read_expression
from harken.errors import ConstraintError, EventError, ExpressionError
from harken.language.printer import name_text, value_text
from harken.model.events import FlatEvent, flatten
from harken.model.expressions import Expression
from harken.model.foreign import Foreign
from harken.model.limits import DEFAULT_LIMITS, Limits
from harken.model.numbers import Exact, decimal_constant
from harken.model.schema import Schema
from harken.model.values import Box as BoxValue
from harken.model.values import EventValue, Point, Type, kind_of
from harken.normal.form import Clause, normalise
from harken.symmetric.pointsets import Interval, Intervals, PointSet, Shapes, meet, point_set

Covers: TypeAlias = Literal["publication", "subscription"]
"""Whose attributes must be constrained by the other side too.

"publication" is the paper's (Tomasic et al. 2006, section 2): the match is decided on the attributes that the
publication constrains. "subscription" is the classical direction: a publication of single values is an event.
"""

DIRECTIONS: tuple[Covers, ...] = get_args(Covers)

Box: TypeAlias = Mapping[str, PointSet]
"""One clause: by attribute, the points it allows. No set is empty."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """A publication or a subscription: one of its boxes has to match. Without any, it contradicts itself."""

    boxes: tuple[Box, ...]


def boxes_of(given: str | Expression, schema: Schema | None = None, limits: Limits = DEFAULT_LIMITS) -> Boxes:
    """An expression as boxes; ExpressionError if it is none, ConstraintError if it cannot be said in points."""
    clauses = normalise(read_expression(given, schema, limits), limits).clauses
    boxes = [_box(clause, schema or {}) for clause in clauses]
    return Boxes(tuple(box for box in boxes if box is not None))


def _box(clause: Clause, declared: Mapping[str, Type]) -> Box | None:
    """A clause as points; None if it contradicts itself, whatever else it asks."""
    box = {}
    for name, constraint in clause.items():
        points = point_set(name, constraint, declared.get(name))
        if points is None:
            return None
        box[name] = points
    return box


def event_of(event: Mapping[str, object], schema: Schema | None = None, covers: Covers = "publication") -> Boxes:
    """An event, whose attributes have single values, as a publication; EventError if it is none.

    Nested mappings become dotted attributes, and what is None is missing. A foreign value meets nothing. Where
    subscriptions decide it is left out; where the publication does, nobody could be met, and whoever publishes it
    is told.
    """
    flat, foreign = flatten(event)
    for name, odd in foreign.items():
        if covers == "publication" or (schema is not None and name in schema):
            said = f"attribute {name!r}: {odd.what} is no value to publish"
            raise EventError(said, attribute=name, value=odd.shown)
    values = _known(flat)
    if schema is not None:
        for name, value in values.items():
            schema.check_value(name, value)
    return Boxes(({name: _single(name, value) for name, value in values.items()},))


def event_text(event: Mapping[str, object]) -> str:
    """An event as the text of a constraint: of every attribute, that it has its value."""
    flat, _ = flatten(event)
    said = [f"{name_text(name)} = {value_text(value)}" for name, value in _known(flat).items()]
    return " AND ".join(said) or "TRUE"


def _known(flat: FlatEvent) -> dict[str, EventValue]:
    return {name: value for name, value in flat.items() if not isinstance(value, Foreign)}


def matches(publication: Boxes, subscription: Boxes, covers: Covers = "publication") -> bool:
    """Whether a publication matches a subscription."""
    return any(boxes_match(one, other, covers) for one in publication.boxes for other in subscription.boxes)


def boxes_match(publication: Box, subscription: Box, covers: Covers) -> bool:
    """Whether two boxes match."""
    deciding, other = (publication, subscription) if covers == "publication" else (subscription, publication)
    return all(name in other and meet(points, other[name]) for name, points in deciding.items())


def _single(name: str, value: EventValue) -> PointSet:
    if isinstance(value, Decimal):
        value = _number(name, value)
    kind = kind_of(value)
    return (
        Shapes(kind, (value,))
        if isinstance(value, Point | BoxValue)
        else Intervals(kind, (Interval.point(value),))
    )


def _number(name: str, value: Decimal) -> float:
    """The int or float that a decimal is."""
    try:
        number = decimal_constant(value)
    except ExpressionError as error:
        said = f"attribute {name!r}: {error.message}"
        raise EventError(said, attribute=name, suggestion=error.suggestion) from None
    if isinstance(number, Exact):
        refused = ConstraintError.digits(name, number)
        raise EventError(refused.message, attribute=name, suggestion=refused.suggestion)
    return number
