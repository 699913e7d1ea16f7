"""Back from the compiled form to expressions: for explaining, for the reference, for people to read."""

from __future__ import annotations

import pyarrow as pa

from harken.errors import ExpressionError, SubscriptionError
from harken.model.expressions import Expression
from harken.normal.operators import OPERATORS, Operand, expression_of

_WITHOUT_OPERAND = ("is", "is null", "is not null")
_COLUMN = {"float": "real", "string": "text", "decimal": "text", "point": "shape", "box": "shape"}


def expressions_of(table: pa.Table) -> list[Expression]:
    """The expression of each row of a compiled table."""
    return [_expression(row, clauses) for row, clauses in enumerate(table.column("clauses").to_pylist())]


def _expression(row: int, clauses: list[list[dict[str, object]]]) -> Expression:
    try:
        return expression_of([[predicate_of(each) for each in clause] for clause in clauses])
    except (ExpressionError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise SubscriptionError(f"row {row} of a compiled table is malformed: {error}") from None


def predicate_of(fields: dict[str, object]) -> tuple[str, str, Operand]:
    """Attribute, operator and operand of a predicate; ValueError if it has not what its operator needs."""
    if fields["operator"] not in OPERATORS:
        raise ValueError(f"unknown operator {fields['operator']!r}")
    if fields["operator"] not in _WITHOUT_OPERAND and fields[_COLUMN.get(str(fields["type"]), "integer")] is None:
        raise ValueError(f"the predicate {fields['operator']!r} on {fields['attribute']!r} has no operand")
    shape = fields["shape"]
    operand = Operand(
        fields["type"],  # type: ignore[arg-type]
        fields["integer"] or 0,  # type: ignore[arg-type]
        fields["real"] or 0.0,  # type: ignore[arg-type]
        fields["text"],  # type: ignore[arg-type]
        None if shape is None else tuple(shape),  # type: ignore[arg-type]
    )
    return fields["attribute"], fields["operator"], operand  # type: ignore[return-value]
