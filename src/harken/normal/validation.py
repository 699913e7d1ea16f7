"""Checking a compiled table that somebody else made: all rows at once, so that millions cost little."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from harken.errors import ExpressionError, HarkenError, SubscriptionError
from harken.model.limits import Limits
from harken.model.numbers import read_decimal
from harken.model.subscriptions import checked_id
from harken.model.text import TextOperator, check_pattern
from harken.normal.columns import Mask, NestedClauses, codes, codes_of_dictionary, filled, is_any_of, nulls, places
from harken.normal.compiled import OPERATOR_CODE, TYPE_CODE
from harken.normal.operators import CALENDAR, OPERATORS
from harken.normal.rules.patterns import ESCAPE

_ORDERING = [OPERATOR_CODE[name] for name in ("<", "<=", ">", ">=")]
_WITHOUT_OPERAND = [OPERATOR_CODE[name] for name in ("is null", "is not null", "is")]
_LOOKING = [OPERATOR_CODE[name] for name in OPERATORS[OPERATOR_CODE["is not null"] + 1 :]]
_SPATIAL_ONLY = [code for code in _LOOKING if OPERATORS[code].removeprefix("not ") in ("overlaps", "within")]
_SPATIAL = [*_SPATIAL_ONLY, OPERATOR_CODE["contains"], OPERATOR_CODE["not contains"]]
_POINT, _BOX, _STRING, _FLOAT, _DECIMAL = (
    TYPE_CODE[name] for name in ("point", "box", "string", "float", "decimal")
)

_CLOSER_LOOK, _NO_OPERAND, _INTEGER, _REAL, _TEXT = range(5)
_OPERAND = {"int": _INTEGER, "bool": _INTEGER, "float": _REAL, "string": _TEXT}


def compiled_faults(table: pa.Table, limits: Limits) -> dict[int, HarkenError]:
    """What is wrong with which rows of a conformed table; empty if it is sound."""
    faults: dict[int, HarkenError] = {}
    start = 0
    for batch in table.to_batches():
        for row, error in _batch_faults(batch, limits).items():
            faults[start + row] = error
        start += batch.num_rows
    return faults


def _batch_faults(batch: pa.RecordBatch, limits: Limits) -> dict[int, HarkenError]:
    faults: dict[int, HarkenError] = {}
    _check_ids(batch.column("id"), faults)
    _check_validity(batch.column("valid_from"), batch.column("valid_until"), faults)
    clauses = batch.column("clauses")
    if clauses.null_count:
        for row in np.flatnonzero(clauses.is_null().to_numpy(zero_copy_only=False)).tolist():
            faults.setdefault(row, SubscriptionError("the clauses are null"))
    counts = pc.list_value_length(clauses).fill_null(0).to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(counts > limits.max_clauses).tolist():
        said = f"{counts[row]:,} clauses, but max_clauses allows {limits.max_clauses:,}"
        faults.setdefault(row, SubscriptionError(said))
    columns = NestedClauses.of(clauses)
    predicates = columns.predicates
    suspects = _suspects(predicates)
    if suspects.any():
        rows = columns.subscription_of[columns.clause_of][suspects]
        for bad, reason in _predicate_faults(predicates.filter(pa.array(suspects)), limits):
            for row in np.unique(rows[bad]).tolist():
                faults.setdefault(row, SubscriptionError(reason))
    return faults


def _check_validity(begins: pa.Array, ends: pa.Array, faults: dict[int, HarkenError]) -> None:
    never = pc.fill_null(pc.greater_equal(begins, ends), False)
    for row in np.flatnonzero(never.to_numpy(zero_copy_only=False)).tolist():
        said = f"valid_from {begins[row]} is not before valid_until {ends[row]}"
        faults.setdefault(row, SubscriptionError(said))


def _check_ids(ids: pa.Array, faults: dict[int, HarkenError]) -> None:
    if pa.types.is_integer(ids.type) and not ids.null_count:
        return
    for row, id in enumerate(ids.to_pylist()):
        try:
            checked_id(id)
        except SubscriptionError as error:
            faults.setdefault(row, error)


def _suspects(predicates: pa.StructArray) -> Mask:
    """The predicates that may be wrong. Most compare with a number or a string, which is seen at a glance."""
    operators, types = predicates.field("operator"), predicates.field("type")
    # Rows and columns of the table are the dictionaries' entries; the last ones are for what is null.
    table = _needed()[np.ix_(codes_of_dictionary(operators, OPERATOR_CODE), codes_of_dictionary(types, TYPE_CODE))]
    needed = table.ravel()[places(operators) * table.shape[1] + places(types)]
    suspects = needed == _CLOSER_LOOK
    for name, operand in {"integer": _INTEGER, "real": _REAL, "text": _TEXT}.items():
        column, asked = predicates.field(name), needed == operand
        if column.null_count and asked.any():
            suspects |= asked & nulls(column)
        if operand == _REAL and asked.any():
            suspects |= asked & ~np.isfinite(_reals(predicates))
    attributes = predicates.field("attribute")
    if attributes.null_count or "" in attributes.dictionary.to_pylist():
        suspects |= is_any_of(attributes, {""})
        suspects |= nulls(attributes)
    return np.asarray(suspects, np.bool_)


@cache
def _needed() -> npt.NDArray[np.uint8]:
    """By operator and type: the operand without which a predicate is wrong, or that there is more to look at."""
    needed = np.full((len(OPERATORS) + 1, len(TYPE_CODE) + 1), _CLOSER_LOOK, np.uint8)
    for name, operand in _OPERAND.items():
        needed[: OPERATOR_CODE["is"], TYPE_CODE[name]] = operand
        needed[OPERATOR_CODE["is"], TYPE_CODE[name]] = _NO_OPERAND
    return needed


def _reals(predicates: pa.StructArray) -> npt.NDArray[np.float64]:
    return np.asarray(predicates.field("real").fill_null(np.nan).to_numpy(zero_copy_only=False), np.float64)


def _predicate_faults(predicates: pa.StructArray, limits: Limits) -> list[tuple[Mask, str]]:
    """Masks of predicates, and what is wrong with them."""
    operators, types = predicates.field("operator"), predicates.field("type")
    operator = codes(operators, OPERATOR_CODE)
    kind = codes(types, TYPE_CODE)
    needs_operand = ~np.isin(operator, _WITHOUT_OPERAND)
    spatial = np.isin(kind, [_POINT, _BOX])
    faults = [
        (nulls(predicates.field("attribute")), "a predicate has no attribute"),
        (is_any_of(predicates.field("attribute"), {""}), "an attribute's name is empty"),
        (operator < 0, "a predicate has an unknown operator"),
        ((kind < 0) & types.is_valid().to_numpy(zero_copy_only=False), "a predicate has an unknown type"),
        (needs_operand & _lacks_operand(predicates, kind), "a predicate has no operand of its type"),
        (needs_operand & (kind == _FLOAT) & ~np.isfinite(_reals(predicates)), "a number is not finite"),
        (needs_operand & _outside_calendar(predicates, kind), "a date or timestamp is outside the calendar"),
        (np.isin(operator, _ORDERING) & spatial, "a point or box has no order"),
        ((operator == OPERATOR_CODE["is"]) & (spatial | (kind < 0)), "the operator 'is' needs an ordered type"),
        (
            np.isin(operator, _LOOKING) & (kind != _STRING) & ~(spatial & np.isin(operator, _SPATIAL)),
            "a string predicate needs a string, a spatial one a point or box",
        ),
        (np.isin(operator, _SPATIAL_ONLY) & ~spatial, "a spatial predicate needs a point or box"),
    ]
    lengths = pc.utf8_length(predicates.field("text")).fill_null(0).to_numpy(zero_copy_only=False)
    too_long = np.isin(operator, _LOOKING) & (lengths > limits.max_pattern)
    faults.append((too_long, f"a pattern is longer than the {limits.max_pattern:,} that max_pattern allows"))
    return [
        *faults,
        *_decimal_faults(predicates, needs_operand & (kind == _DECIMAL)),
        *_pattern_faults(predicates, operator),
        *_shape_faults(predicates, kind),
    ]


def _lacks_operand(predicates: pa.StructArray, kind: npt.NDArray[np.int64]) -> Mask:
    lacks = np.ones(len(kind), np.bool_)
    for name, kinds in {
        "integer": [TYPE_CODE[each] for each in ("int", "bool", "date", "timestamp")],
        "real": [_FLOAT],
        "text": [_STRING, _DECIMAL],
        "shape": [_POINT, _BOX],
    }.items():
        of_type = np.isin(kind, kinds)
        if of_type.any():
            lacks[of_type] = nulls(predicates.field(name))[of_type]
    return lacks


def _outside_calendar(predicates: pa.StructArray, kind: npt.NDArray[np.int64]) -> Mask:
    outside = np.zeros(len(kind), np.bool_)
    for named, (first, last) in CALENDAR.items():
        of_type = kind == TYPE_CODE[named.value]
        if of_type.any():
            integer = filled(predicates.field("integer"))[of_type]
            outside[of_type] = (integer < first) | (integer > last)
    return outside


def _decimal_faults(predicates: pa.StructArray, asked: Mask) -> list[tuple[Mask, str]]:
    """Decimals are written out, and few: each is read."""
    faults = []
    for at in np.flatnonzero(asked).tolist():
        text = predicates.field("text")[at].as_py()
        try:
            if text is not None:
                read_decimal(text)
        except ExpressionError as error:
            faults.append((np.arange(len(asked)) == at, str(error)))
    return faults


def _pattern_faults(predicates: pa.StructArray, operator: npt.NDArray[np.int64]) -> list[tuple[Mask, str]]:
    """Patterns that mean nothing. Few subscriptions have patterns, and those repeat: each is tried once."""
    faults = []
    for name in ("like", "not like", "matches", "not matches"):
        asked = operator == OPERATOR_CODE[name]
        if not asked.any():
            continue
        texts = predicates.field("text")
        for pattern in pc.unique(texts.filter(pa.array(asked))).drop_null().to_pylist():
            word = TextOperator(name.removeprefix("not ").upper())
            try:
                check_pattern(word, pattern, ESCAPE if word is TextOperator.LIKE else None)
            except ExpressionError as error:
                same = pc.equal(texts, pattern).fill_null(False).to_numpy(zero_copy_only=False)
                faults.append((asked & same, str(error)))
    return faults


def _shape_faults(predicates: pa.StructArray, kind: npt.NDArray[np.int64]) -> list[tuple[Mask, str]]:
    if not np.isin(kind, [_POINT, _BOX]).any():
        return []
    bad = np.zeros(len(kind), np.bool_)
    for at in np.flatnonzero(np.isin(kind, [_POINT, _BOX])).tolist():
        shape = predicates.field("shape")[at].as_py()
        if shape is not None:
            bad[at] = not _is_shape(shape, 2 if kind[at] == _POINT else 4)
    return [(bad, "a shape needs two (point) or four (box) finite numbers, min before max")]


def _is_shape(shape: list[float | None], length: int) -> bool:
    if len(shape) != length or not all(number is not None and np.isfinite(number) for number in shape):
        return False
    return length == 2 or (shape[0] <= shape[2] and shape[1] <= shape[3])  # type: ignore[operator]
