"""From the compiled form to what a store holds, a million rows in seconds.

What `boxes_of` makes of the expression of a row is made here of its predicates, without the expression, as long as
they are plain; what is asked of an attribute by one predicate is made once, however often it comes. Anything else,
and anything that is wrong, goes the slow way, so that errors are the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from harken.errors import HarkenError
from harken.language import to_text
from harken.language.printer import name_text, value_text
from harken.model.expressions import Spatial, SpatialOperator
from harken.model.schema import Schema
from harken.model.values import Box, Kind, Point, Value, kind_of
from harken.normal.columns import NestedClauses
from harken.normal.compiled import conform
from harken.normal.constraints import Constraint, OneOf, Present, Region, Span, Test, meet, none_of, one_of, tidy
from harken.normal.decompiled import expressions_of
from harken.normal.operators import Operand, constant_of
from harken.symmetric.contract import Held
from harken.symmetric.pointsets import PointSet, point_set
from harken.symmetric.semantics import Boxes, boxes_of

_ROWS = 20_000
"""Rows that are taken apart together."""

_REMEMBERED = 50_000
"""Predicates that are known at a time."""

_BOUNDS = {"<": (False, False), "<=": (False, True), ">": (True, False), ">=": (True, True)}
_RELATIONS = {operator.value.lower(): operator for operator in SpatialOperator}
_PLAIN = frozenset({"=", "!=", "in", "is not null", *_BOUNDS, *_RELATIONS})

_Predicate: TypeAlias = tuple[str, str, Value | None, str | None]
"""Attribute, operator, value, and its type: 1 and 1.0 are equal, but not written alike."""


class _NotPlainError(Exception):
    """A row that has to go the slow way."""


class _Term(NamedTuple):
    """What a predicate says: in words, of the values, and as points."""

    text: str
    constraint: Constraint | None
    points: PointSet | None


def held_of(table: pa.Table, schema: Schema | None) -> Iterator[Held]:
    """The constraints of a compiled table; ConstraintError if one cannot be said in points."""
    reader = _Reader(schema)
    for batch in conform(table).to_batches(max_chunksize=_ROWS):
        columns = NestedClauses.of(batch.column("clauses"))
        predicates = iter(_predicates(columns.predicates))
        sizes = iter(columns.predicate_counts.tolist())
        ids, begins, ends = (batch.column(name).to_pylist() for name in ("id", "valid_from", "valid_until"))
        for row, count in enumerate(columns.clause_counts.tolist()):
            said = [list(islice(predicates, size)) for size in islice(sizes, count)]
            try:
                boxes, text = reader.read(said)
            except (_NotPlainError, HarkenError, TypeError, ValueError, OverflowError):
                [expression] = expressions_of(pa.Table.from_batches([batch.slice(row, 1)]))
                boxes, text = boxes_of(expression, schema), to_text(expression)
            yield Held(ids[row], boxes, text, ends[row], begins[row])


# ---------------------------------------------------------------- predicates


def _predicates(flat: pa.StructArray) -> Iterable[_Predicate]:
    columns = dict(zip(flat.type.names, flat.flatten(), strict=True))
    names, operators, types = (
        columns[each].dictionary_decode().to_pylist() for each in ("attribute", "operator", "type")
    )
    return zip(names, operators, _values(columns, types), types, strict=True)


def _values(columns: dict[str, pa.Array], types: Sequence[str | None]) -> Iterator[Value | None]:
    integers, reals, texts, shapes = (columns[each].to_pylist() for each in ("integer", "real", "text", "shape"))
    for at, its_type in enumerate(types):
        if its_type == "int":
            yield integers[at]
        elif its_type == "string":
            yield texts[at]
        elif its_type == "float":
            yield reals[at] or (None if reals[at] is None else 0.0)  # there is one zero
        else:
            yield _value(its_type, integers[at], shapes[at])


def _value(its_type: str | None, integer: int | None, shape: list[float] | None) -> Value | None:
    if integer is None and shape is None:
        return None
    try:
        return constant_of(Operand(its_type, integer or 0, shape=None if shape is None else tuple(shape)))
    except (HarkenError, OverflowError):
        return None  # which goes the slow way, and is told there


# ---------------------------------------------------------------- clauses


class _Reader:
    """Reads clauses of plain predicates, and remembers what predicates say. Not thread-safe."""

    def __init__(self, schema: Schema | None) -> None:
        self._schema = schema
        self._terms: dict[_Predicate, _Term] = {}

    def read(self, clauses: Sequence[Sequence[_Predicate]]) -> tuple[Boxes, str]:
        """Boxes and text of a constraint."""
        boxes, texts = [], []
        for clause in clauses:
            terms = [self._terms.get(predicate) or self._term(predicate) for predicate in clause]
            box = self._box(clause, terms)
            if box is not None:
                boxes.append(box)
            texts.append(_text(clause, terms))
        return Boxes(tuple(boxes)), " OR ".join(texts) or "FALSE"

    def _box(self, clause: Sequence[_Predicate], terms: Sequence[_Term]) -> dict[str, PointSet] | None:
        """The box of a clause; None if it contradicts itself."""
        box: dict[str, PointSet] = {}
        for predicate, term in zip(clause, terms, strict=True):
            if predicate[0] in box or predicate[1] == "in":
                return self._merged(clause, terms)
            if term.points is None:
                return None
            box[predicate[0]] = term.points
        return box

    def _merged(self, clause: Sequence[_Predicate], terms: Sequence[_Term]) -> dict[str, PointSet] | None:
        """The same where several predicates are on one attribute."""
        met: dict[str, Constraint | None] = {}
        for attribute, constraint in _constraints(clause, terms):
            before = met.get(attribute, constraint)
            met[attribute] = before if attribute not in met else before and constraint and meet(before, constraint)
        box = {}
        for attribute, both in met.items():
            points = self._points(attribute, both)
            if points is None:
                return None
            box[attribute] = points
        return box

    def _points(self, attribute: str, constraint: Constraint | None) -> PointSet | None:
        declared = None if self._schema is None else self._schema.get(attribute)
        return None if constraint is None else point_set(attribute, constraint, declared)

    def _term(self, predicate: _Predicate) -> _Term:
        attribute, operator, value, _ = predicate
        if attribute is None or operator not in _PLAIN:
            raise _NotPlainError
        name = name_text(attribute)
        if operator == "is not null":
            term = _Term(f"{name} IS NOT NULL", Present(), self._points(attribute, Present()))
        else:
            if value is None or (isinstance(value, float) and not math.isfinite(value)):
                raise _NotPlainError
            if self._schema is not None:
                self._schema.check_constant(attribute, value)
            constraint = _constraint(attribute, operator, value)
            said = value_text(value) if operator == "in" else f"{name} {operator.upper()} {value_text(value)}"
            term = _Term(said, constraint, self._points(attribute, constraint))
        if len(self._terms) >= _REMEMBERED:
            self._terms.clear()
        self._terms[predicate] = term
        return term


def _constraints(clause: Sequence[_Predicate], terms: Sequence[_Term]) -> Iterator[tuple[str, Constraint | None]]:
    """What predicates say of attributes; those with `in` are alternatives."""
    alternatives: dict[str, list[Value]] = {}
    for (attribute, operator, value, _), term in zip(clause, terms, strict=True):
        if operator == "in":
            alternatives.setdefault(attribute, []).append(value)  # type: ignore[arg-type]  # `_term` saw that it is there
        else:
            yield attribute, term.constraint
    for attribute, values in alternatives.items():
        kinds = {kind_of(value) for value in values}
        if len(kinds) > 1:
            raise _NotPlainError  # an alternative for each kind
        yield attribute, one_of(kinds.pop(), values)


def _constraint(attribute: str, operator: str, value: Value) -> Constraint | None:
    kind = kind_of(value)
    if operator in ("=", "in"):
        return OneOf(kind, (value,))
    if operator == "!=":
        return none_of(kind, attribute, (value,))
    if operator in _RELATIONS:
        if not isinstance(value, Point | Box):
            raise _NotPlainError
        return Region(None, frozenset({Test(Spatial(attribute, _RELATIONS[operator], value))}))
    if kind in (Kind.POINT, Kind.BOX):
        raise _NotPlainError
    is_low, closed = _BOUNDS[operator]
    return tidy(Span(kind, value, closed) if is_low else Span(kind, high=value, high_closed=closed))


def _text(clause: Sequence[_Predicate], terms: Sequence[_Term]) -> str:
    """As `to_text` writes the expression of a clause."""
    said = [term.text for predicate, term in zip(clause, terms, strict=True) if predicate[1] != "in"]
    if len(said) < len(terms):
        alternatives: dict[str, list[str]] = {}
        for predicate, term in zip(clause, terms, strict=True):
            if predicate[1] == "in":
                alternatives.setdefault(predicate[0], []).append(term.text)
        said.extend(f"{name_text(name)} IN ({', '.join(each)})" for name, each in alternatives.items())
    return " AND ".join(said) or "TRUE"
