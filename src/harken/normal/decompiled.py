"""Back from the compiled form to expressions: for explaining, for the reference, for people to read."""

from __future__ import annotations

import pyarrow as pa

from harken.errors import ExpressionError, SubscriptionError
from harken.model.expressions import Expression
from harken.normal.operators import Operand, expression_of


def expressions_of(table: pa.Table) -> list[Expression]:
    """The expression of each row of a compiled table."""
    return [_expression(row, clauses) for row, clauses in enumerate(table.column("clauses").to_pylist())]


def _expression(row: int, clauses: list[list[dict[str, object]]]) -> Expression:
    try:
        return expression_of([[_predicate(each) for each in clause] for clause in clauses])
    except (ExpressionError, ValueError, KeyError, TypeError) as error:
        raise SubscriptionError(f"row {row} of a compiled table is malformed: {error}") from None


def _predicate(fields: dict[str, object]) -> tuple[str, str, Operand]:
    shape = fields["shape"]
    operand = Operand(
        fields["type"],  # type: ignore[arg-type]
        fields["integer"] or 0,  # type: ignore[arg-type]
        fields["real"] or 0.0,  # type: ignore[arg-type]
        fields["text"],  # type: ignore[arg-type]
        None if shape is None else tuple(shape),  # type: ignore[arg-type]
    )
    return fields["attribute"], fields["operator"], operand  # type: ignore[return-value]
