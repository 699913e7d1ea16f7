"""Expressions in DuckDB's spelling: Harken's own text, translated only where DuckDB writes it otherwise.

A region (point or box) is a struct of four numbers in DuckDB, so spatial predicates are four comparisons.
"""

from __future__ import annotations

from harken.language import to_text
from harken.language.printer import name_text, value_text
from harken.model.expressions import (
    And,
    Comparator,
    Comparison,
    Expression,
    Membership,
    Not,
    Or,
    Range,
    Spatial,
    SpatialOperator,
    TextMatch,
    constants,
    predicates,
)
from harken.model.text import TextOperator
from harken.model.values import Box, Point

EDGES = ("min_x", "min_y", "max_x", "max_y")

_FUNCTIONS = {
    TextOperator.STARTS_WITH: "starts_with",
    TextOperator.ENDS_WITH: "ends_with",
    TextOperator.CONTAINS: "contains",
    TextOperator.MATCHES: "regexp_matches",
}


def to_duckdb(expression: Expression) -> str:
    """The expression as a condition of DuckDB; Harken's text as it is, if nothing in it is spelt otherwise."""
    if not any(_is_foreign(leaf) for leaf in predicates(expression)):
        return to_text(expression)
    match expression:
        case And(terms=terms):
            return " AND ".join(f"({to_duckdb(term)})" for term in terms)
        case Or(terms=terms):
            return " OR ".join(f"({to_duckdb(term)})" for term in terms)
        case Not(term=term):
            return f"NOT ({to_duckdb(term)})"
        case Range(attribute=name, low=low, high=high, low_closed=low_closed, high_closed=high_closed):
            above, below = ">=" if low_closed else ">", "<=" if high_closed else "<"
            return (
                f"({name_text(name)} {above} {value_text(low)} AND {name_text(name)} {below} {value_text(high)})"
            )
        case TextMatch(attribute=name, operator=operator, pattern=pattern):
            return f"{_FUNCTIONS[operator]}({name_text(name)}, {value_text(pattern)})"
        case Spatial(attribute=name, operator=operator, shape=shape):
            return _lies(name, operator, shape)
        case Comparison(attribute=name, operator=operator, value=Point() | Box() as shape):
            return _equals(name, shape) if operator is Comparator.EQ else f"NOT {_equals(name, shape)}"
        case Membership(attribute=name, values=shapes):
            return "(" + " OR ".join(_equals(name, shape) for shape in shapes) + ")"  # type: ignore[arg-type]
    raise AssertionError(f"no spelling for {expression}")


def _is_foreign(leaf: Expression) -> bool:
    match leaf:
        case Range():
            return not (leaf.low_closed and leaf.high_closed)
        case TextMatch(operator=operator):
            return operator is not TextOperator.LIKE
        case Spatial():
            return True
    return any(isinstance(value, Point | Box) for value in constants(leaf))  # type: ignore[arg-type]


def _equals(name: str, shape: Point | Box) -> str:
    edges = zip(EDGES, shape.bounds, strict=True)
    return "(" + " AND ".join(f"{name}.{edge} = {at}" for edge, at in edges) + ")"


def _lies(name: str, operator: SpatialOperator, shape: Point | Box) -> str:
    min_x, min_y, max_x, max_y = shape.bounds
    x1, y1, x2, y2 = (f"{name}.{edge}" for edge in EDGES)
    match operator:
        case SpatialOperator.WITHIN:
            return f"({x1} >= {min_x} AND {y1} >= {min_y} AND {x2} <= {max_x} AND {y2} <= {max_y})"
        case SpatialOperator.CONTAINS:
            return f"({x1} <= {min_x} AND {y1} <= {min_y} AND {x2} >= {max_x} AND {y2} >= {max_y})"
        case SpatialOperator.OVERLAPS:
            return f"({x1} <= {max_x} AND {x2} >= {min_x} AND {y1} <= {max_y} AND {y2} >= {min_y})"
