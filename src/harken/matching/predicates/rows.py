"""Predicates of the compiled form one by one, and many of them, or of constants, as Arrow columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from harken.matching.kernels.layout import DIFFERENT, EQUAL, INTERVAL, IS_ABSENT, IS_PRESENT, MEMBER, TESTED
from harken.model.values import SPATIAL_KINDS, Kind, Type, Value, checked_constant
from harken.normal.compiled import PREDICATE
from harken.normal.operators import Operand, constant_of, operand_of

Row: TypeAlias = tuple[str, str, Operand]
"""A predicate of the compiled form: attribute, operator, operand."""

BOUNDS = {">": (True, 1), ">=": (True, 0), "<": (False, -1), "<=": (False, 0)}
"""Bounding operators: whether they bound from below, and how far from the constant's label the bound is."""

_CODES = {"=": EQUAL, "!=": DIFFERENT, "in": MEMBER, "is": IS_PRESENT}

OPERAND_TYPES = {field.name: field.type for field in PREDICATE if field.name in Operand._fields}
"""The columns of an operand."""

PREDICATE_ROWS = pa.schema(
    [
        ("number", pa.int64()),
        ("attribute", PREDICATE.field("attribute").type),
        ("operator", PREDICATE.field("operator").type),
        *OPERAND_TYPES.items(),
    ]
)
"""The columns of numbered predicates."""


@lru_cache(256)  # of what files say, anything may be an operator
def meaning(operator: str, its_type: str | None) -> tuple[int, Kind | None]:
    """An operator for kernels, and of which kind of values it is with operands of a type; None if of any."""
    if operator in ("is null", "is not null"):
        return IS_ABSENT if operator == "is null" else IS_PRESENT, None
    kind = Type(its_type).kind
    if operator in _CODES:
        return _CODES[operator], kind
    if operator in BOUNDS:
        return INTERVAL, kind
    # Spatial predicates ask points and boxes alike: theirs is the dimension of all values.
    return TESTED, None if kind in SPATIAL_KINDS else Kind.STRING


def canonical(operator: str, operand: Operand) -> Operand:
    """An operand as translation gives it: whole numbers as ints, and nothing where nothing belongs."""
    if operator in ("is null", "is not null"):
        return Operand()
    if operator == "is":
        return Operand("float" if operand.type in ("int", "decimal") else operand.type)
    constant = checked_constant(constant_of(operand))
    is_whole = isinstance(constant, float) and constant.is_integer() and abs(constant) < 2.0**63
    return operand_of(int(constant) if is_whole else constant)  # type: ignore[arg-type]  # whole floats are numbers


def constant_in(operand: Operand) -> Value:
    """The constant that an operand stands for, which must be one."""
    if operand.type == "int":  # as most are, of those that come by the hundred thousand
        return operand.integer
    value = constant_of(operand)
    if value is None:  # compiled tables are checked before they come here, files are not
        raise ValueError("a predicate has no operand")
    return value


def operand_columns(operands: Sequence[Operand]) -> dict[str, pa.Array]:
    """Operands columnwise, every one exactly as it is."""
    values = list(zip(*operands, strict=True)) or [()] * len(Operand._fields)
    return {name: pa.array(each, OPERAND_TYPES[name]) for name, each in zip(Operand._fields, values, strict=True)}


def operands_of(table: pa.Table) -> Iterator[Operand]:
    """The operands that these columns of a table hold."""
    types, integers, reals, texts, shapes = (listed(table.column(name)) for name in Operand._fields)
    shapes = [None if shape is None else tuple(shape) for shape in shapes]
    return map(Operand, types, integers, reals, texts, shapes)


def predicate_table(numbered: Sequence[tuple[int, tuple[Row, ...]]]) -> pa.Table:
    """Numbered predicates of one or several rows each as a table of these rows."""
    rows = [row for _, rows in numbered for row in rows]
    return pa.table(
        {
            "number": pa.array([number for number, rows in numbered for _ in rows], pa.int64()),
            "attribute": pa.array([row[0] for row in rows], PREDICATE.field("attribute").type),
            "operator": pa.array([row[1] for row in rows], PREDICATE.field("operator").type),
            **operand_columns([row[2] for row in rows]),
        }
    )


def predicates_of(table: pa.Table) -> Iterator[tuple[int, tuple[Row, ...]]]:
    """The numbered predicates that a table holds."""
    names, operators = listed(table.column("attribute")), listed(table.column("operator"))
    rows = list(zip(names, operators, operands_of(table), strict=True))
    numbers = table.column("number").to_numpy()
    first = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1])[: len(rows)])
    ends = np.append(first[1:], len(rows))[: len(first)]
    for number, begin, end in zip(numbers[first].tolist(), first.tolist(), ends.tolist(), strict=True):
        yield number, tuple(rows[begin:end])


def listed(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column as Python has them. Arrow's own way takes many times as long, value by value."""
    joined = column.combine_chunks()
    if joined.null_count == len(joined):
        return [None] * len(joined)
    if pa.types.is_dictionary(joined.type):
        known = [*joined.dictionary.to_pylist(), None]
        return [known[place] for place in joined.indices.fill_null(len(known) - 1).to_numpy().tolist()]
    if pa.types.is_primitive(joined.type) and not joined.null_count:
        joined = joined.to_numpy(zero_copy_only=False)
    values: list[Any] = joined.tolist()
    return values
