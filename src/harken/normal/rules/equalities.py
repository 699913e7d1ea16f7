"""Alternatives that ask one attribute for equality become one IN, so that they never multiply clauses."""

from __future__ import annotations

from harken.model.expressions import And, Comparator, Comparison, Expression, Membership, Not, Or
from harken.model.values import Value


def join_equalities(expression: Expression) -> Expression:
    """`a = 1 OR b > 2 OR a IN (3, 4)` becomes `a IN (1, 3, 4) OR b > 2`."""
    match expression:
        case And(terms=terms):
            return And(tuple(map(join_equalities, terms)))
        case Not(term=term):
            return Not(join_equalities(term))
        case Or(terms=terms):
            return _joined(tuple(map(join_equalities, terms)))
    return expression


def _joined(terms: tuple[Expression, ...]) -> Expression:
    joined: dict[str, list[Value]] = {}
    kept: list[Expression | str] = []  # an attribute's name stands where its IN will be
    for term in terms:
        attribute, values = _asked(term)
        if attribute is None:
            kept.append(term)
            continue
        if attribute not in joined:
            kept.append(attribute)
        joined.setdefault(attribute, []).extend(values)
    rebuilt = tuple(_membership(term, joined[term]) if isinstance(term, str) else term for term in kept)
    return rebuilt[0] if len(rebuilt) == 1 else Or(rebuilt)


def _asked(term: Expression) -> tuple[str | None, tuple[Value, ...]]:
    match term:
        case Comparison(attribute=attribute, operator=Comparator.EQ, value=value):
            return attribute, (value,)
        case Membership(attribute=attribute, values=values):
            return attribute, values
    return None, ()


def _membership(attribute: str, values: list[Value]) -> Expression:
    if len(values) == 1:
        return Comparison(attribute, Comparator.EQ, values[0])
    return Membership(attribute, tuple(values))
