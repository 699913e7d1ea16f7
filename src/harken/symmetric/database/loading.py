"""From the compiled form to what a store holds, a million rows in seconds.

What `boxes_of` makes of the expression of a row is made here of its predicates, without the expression, as long as
they are plain. Anything else, and anything that is wrong, goes the slow way, so that errors are the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from harken.errors import HarkenError
from harken.language import to_text
from harken.language.printer import name_text, value_text
from harken.model.expressions import Spatial, SpatialOperator
from harken.model.schema import Schema
from harken.model.values import Box, Kind, Point, Value, kind_of
from harken.normal.compiled import conform
from harken.normal.constraints import Constraint, OneOf, Present, Region, Span, Test, meet, none_of, one_of, tidy
from harken.normal.decompiled import expressions_of
from harken.normal.operators import Operand, constant_of
from harken.symmetric.contract import Held
from harken.symmetric.pointsets import PointSet, point_set
from harken.symmetric.semantics import Boxes, boxes_of

_ROWS = 20_000
_BOUNDS = {"<": (False, False), "<=": (False, True), ">": (True, False), ">=": (True, True)}
_RELATIONS = {operator.value.lower(): operator for operator in SpatialOperator}
_PLAIN = frozenset({"=", "!=", "in", "is not null", *_BOUNDS, *_RELATIONS})


class _NotPlainError(Exception):
    """A row that has to go the slow way."""


class _Predicate(NamedTuple):
    attribute: str
    operator: str
    value: Value | None


def held_of(table: pa.Table, schema: Schema | None) -> Iterator[Held]:
    """The constraints of a compiled table; ConstraintError if one cannot be said in points."""
    for batch in conform(table).to_batches(max_chunksize=_ROWS):
        clauses = batch.column("clauses")
        predicates = iter(_predicates(clauses.flatten().flatten()))
        sizes = iter(pc.list_value_length(clauses.flatten()).to_pylist())
        ids, ends = batch.column("id").to_pylist(), batch.column("valid_until").to_pylist()
        for row, count in enumerate(pc.list_value_length(clauses).to_pylist()):
            said = [list(islice(predicates, size)) for size in islice(sizes, count or 0)]
            boxes, text = _read(batch, row, said, schema)
            yield Held(ids[row], boxes, text, ends[row])


def _read(
    batch: pa.RecordBatch, row: int, said: Sequence[Sequence[_Predicate]], schema: Schema | None
) -> tuple[Boxes, str]:
    try:
        boxes = [_box(clause, schema) for clause in said]
        return Boxes(tuple(box for box in boxes if box is not None)), " OR ".join(map(_text, said)) or "FALSE"
    except (_NotPlainError, HarkenError, TypeError, ValueError, OverflowError):
        [expression] = expressions_of(pa.Table.from_batches([batch.slice(row, 1)]))
        return boxes_of(expression, schema), to_text(expression)


# ---------------------------------------------------------------- predicates


def _predicates(flat: pa.StructArray) -> Iterator[_Predicate]:
    columns = dict(zip(flat.type.names, flat.flatten(), strict=True))
    names, operators = (columns[each].dictionary_decode().to_pylist() for each in ("attribute", "operator"))
    return map(_Predicate, names, operators, _values(columns))


def _values(columns: dict[str, pa.Array]) -> Iterator[Value | None]:
    kinds = columns["type"].dictionary_decode().to_pylist()
    integers, reals, texts, shapes = (columns[each].to_pylist() for each in ("integer", "real", "text", "shape"))
    for at, kind in enumerate(kinds):
        if kind == "int":
            yield integers[at]
        elif kind == "string":
            yield texts[at]
        elif kind == "float":
            yield reals[at] or (None if reals[at] is None else 0.0)  # there is one zero
        else:
            yield _value(kind, integers[at], shapes[at])


def _value(kind: str | None, integer: int | None, shape: list[float] | None) -> Value | None:
    if integer is None and shape is None:
        return None
    try:
        return constant_of(Operand(kind, integer or 0, shape=None if shape is None else tuple(shape)))
    except (HarkenError, OverflowError):
        return None  # which goes the slow way, and is told there


# ---------------------------------------------------------------- clauses


def _box(clause: Sequence[_Predicate], schema: Schema | None) -> dict[str, PointSet] | None:
    """The box of a clause; None if it contradicts itself."""
    met: dict[str, Constraint | None] = {}
    for attribute, constraint in _constraints(clause, schema):
        before = met.get(attribute)
        met[attribute] = constraint if attribute not in met else before and constraint and meet(before, constraint)
    box = {}
    for attribute, both in met.items():
        declared = None if schema is None else schema.get(attribute)
        points = None if both is None else point_set(attribute, both, declared)
        if points is None:
            return None
        box[attribute] = points
    return box


def _constraints(clause: Sequence[_Predicate], schema: Schema | None) -> Iterator[tuple[str, Constraint | None]]:
    alternatives: dict[str, list[Value]] = {}
    for attribute, operator, value in clause:
        if attribute is None or operator not in _PLAIN:
            raise _NotPlainError
        if operator == "is not null":
            yield attribute, Present()
            continue
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            raise _NotPlainError
        if schema is not None:
            schema.check_constant(attribute, value)
        if operator == "in":
            alternatives.setdefault(attribute, []).append(value)
        else:
            yield attribute, _constraint(attribute, operator, value)
    for attribute, values in alternatives.items():
        kinds = {kind_of(value) for value in values}
        if len(kinds) > 1:
            raise _NotPlainError  # an alternative for each kind
        yield attribute, one_of(kinds.pop(), values)


def _constraint(attribute: str, operator: str, value: Value) -> Constraint | None:
    kind = kind_of(value)
    if operator == "=":
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


# ---------------------------------------------------------------- texts


def _text(clause: Sequence[_Predicate]) -> str:
    """As `to_text` writes the expression of a clause."""
    terms, alternatives = [], dict[str, list[str]]()
    for attribute, operator, value in clause:
        if operator == "is not null":
            terms.append(f"{_name(attribute)} IS NOT NULL")
            continue
        constant = value_text(value)  # type: ignore[arg-type]  # not None, as `_constraints` has seen
        if operator == "in":
            alternatives.setdefault(attribute, []).append(constant)
        else:
            terms.append(f"{_name(attribute)} {operator.upper()} {constant}")
    terms.extend(f"{_name(name)} IN ({', '.join(values)})" for name, values in alternatives.items())
    return " AND ".join(terms) or "TRUE"


_name = lru_cache(maxsize=10_000)(name_text)
