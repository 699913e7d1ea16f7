"""Binding the literals of many texts of one shape to the shape's plan, columnwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.compiler.shapes import Bound, Plan
from harken.errors import ExpressionError
from harken.language.literals import read_literal, unquoted
from harken.model.values import INT_MAX, INT_MIN, Type
from harken.normal.compiled import (
    NO_TYPE,
    OPERATOR_CODE,
    PREDICATE,
    TYPE_CODE,
    PredicateColumns,
    PredicateRows,
)
from harken.normal.operators import operand_of

Column = list[Any]  # the values of one slot, row by row; None where a literal stands for nothing


@dataclass(slots=True)
class Part:
    """Some subscriptions of a table, columnwise: which input rows, how many clauses and predicates each."""

    rows: npt.NDArray[np.int64]
    clause_counts: npt.NDArray[np.int32]
    predicate_counts: npt.NDArray[np.int32]
    predicates: PredicateColumns


def bind(plan: Plan, rows: Sequence[int], literals: Sequence[Sequence[str]]) -> tuple[Part, list[int]]:
    """The part that the rows make, and the rows whose literals the plan does not fit."""
    columns = [_read(kind, [row[slot] for row in literals]) for slot, kind in enumerate(plan.slot_types)]
    fits = _fits(plan, columns, len(rows))
    if all(fits):
        return _part(plan, rows, columns), []
    kept = [[value for value, fit in zip(column, fits, strict=True) if fit] for column in columns]
    fitting = [row for row, fit in zip(rows, fits, strict=True) if fit]
    return _part(plan, fitting, kept), [row for row, fit in zip(rows, fits, strict=True) if not fit]


def _read(kind: Type, literals: list[str]) -> Column:
    fast = _FAST_READERS.get(kind)
    if fast is not None:
        try:
            return fast(literals)
        except (ValueError, OverflowError):
            pass
    return [_read_one(kind, literal) for literal in literals]


def _read_one(kind: Type, literal: str) -> Any:
    try:
        return read_literal(kind, literal)
    except ExpressionError:
        return None


def _read_ints(literals: list[str]) -> Column:
    values = list(map(int, literals))
    if min(values) < INT_MIN or max(values) > INT_MAX:
        raise OverflowError
    return values


def _read_strings(literals: list[str]) -> Column:
    "".join(literals).encode()  # refuses lone surrogates
    return [unquoted(literal) for literal in literals]


_FAST_READERS: dict[Type, Callable[[list[str]], Column]] = {Type.INT: _read_ints, Type.STRING: _read_strings}


def _fits(plan: Plan, columns: list[Column], count: int) -> list[bool]:
    """For each row, whether all its literals mean something and the plan's guards hold."""
    fits = [True] * count
    for column in columns:
        if None in column:
            fits = [fit and value is not None for fit, value in zip(fits, column, strict=True)]
    for low, high in plan.ascending:
        pairs = zip(fits, columns[low], columns[high], strict=True)
        fits = [fit and bottom < top for fit, bottom, top in pairs]
    for slots in plan.distinct:
        members = zip(*(columns[slot] for slot in slots), strict=True)
        fits = [fit and len(set(row)) == len(row) for fit, row in zip(fits, members, strict=True)]
    return fits


def _part(plan: Plan, rows: Sequence[int], columns: list[Column]) -> Part:
    bounds = [bound for clause in plan.clauses for bound in clause]
    count, width = len(rows), len(bounds)
    names = {bound.attribute: None for bound in bounds}
    code = {name: at for at, name in enumerate(names)}
    integer = np.zeros((count, width), np.int64)
    real = np.zeros((count, width))
    text = np.full((count, width), None, object)
    for at, bound in enumerate(bounds):
        _fill(bound, columns, integer[:, at], real[:, at], text[:, at])
    predicates = PredicateColumns(
        list(names),
        np.tile(np.array([code[bound.attribute] for bound in bounds], np.int32), count),
        np.tile(np.array([OPERATOR_CODE[bound.operator] for bound in bounds], np.int8), count),
        np.tile(np.array([_type_code(bound) for bound in bounds], np.int8), count),
        integer.ravel(),
        real.ravel(),
        pa.array(text.ravel(), pa.string()),
        pa.nulls(count * width, PREDICATE.field("shape").type),
    )
    per_clause = np.array([len(clause) for clause in plan.clauses], np.int32)
    clause_counts = np.full(count, len(per_clause), np.int32)
    return Part(np.asarray(rows, np.int64), clause_counts, np.tile(per_clause, count), predicates)


def _fill(
    bound: Bound,
    columns: list[Column],
    integer: npt.NDArray[np.int64],
    real: npt.NDArray[np.float64],
    text: npt.NDArray[np.object_],
) -> None:
    if bound.slot is None:
        integer[:] = int(bool(bound.value))
        return
    column = columns[bound.slot]
    match bound.type:
        case Type.INT:
            integer[:] = column
        case Type.FLOAT:
            real[:] = column
        case Type.STRING:
            text[:] = column
        case _:
            integer[:] = [operand_of(value).integer for value in column]


def _type_code(bound: Bound) -> int:
    return NO_TYPE if bound.type is None else TYPE_CODE[bound.type.value]


def part_of_rows(rows: list[int], clause_counts: list[int], predicates: PredicateRows) -> Part:
    """The part that subscriptions compiled one by one make."""
    return Part(
        np.asarray(rows, np.int64),
        np.asarray(clause_counts, np.int32),
        np.diff(predicates.offsets()),
        predicates.columns(),
    )


def join(parts: Sequence[Part]) -> Part:
    """Several parts one after the other, their attribute names brought together."""
    names: dict[str, int] = {}
    codes = []
    for part in parts:
        to_joined = np.array([names.setdefault(n, len(names)) for n in part.predicates.names], np.int32)
        codes.append(to_joined[part.predicates.attribute])
    columns = [part.predicates for part in parts]
    predicates = PredicateColumns(
        list(names),
        np.concatenate(codes),
        np.concatenate([each.operator for each in columns]),
        np.concatenate([each.type for each in columns]),
        np.concatenate([each.integer for each in columns]),
        np.concatenate([each.real for each in columns]),
        pa.concat_arrays([each.text for each in columns]),
        pa.concat_arrays([each.shape for each in columns]),
    )
    return Part(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.clause_counts for part in parts]),
        np.concatenate([part.predicate_counts for part in parts]),
        predicates,
    )
