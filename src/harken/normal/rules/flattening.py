"""AND inside AND, and OR inside OR, become one."""

from __future__ import annotations

from harken.model.expressions import And, Expression, Not, Or


def flatten(expression: Expression) -> Expression:
    """The expression with no AND directly under an AND, no OR directly under an OR."""
    match expression:
        case And(terms=terms):
            return And(_spliced(terms, And))
        case Or(terms=terms):
            return Or(_spliced(terms, Or))
        case Not(term=term):
            return Not(flatten(term))
    return expression


def _spliced(terms: tuple[Expression, ...], same: type[And] | type[Or]) -> tuple[Expression, ...]:
    spliced: list[Expression] = []
    for term in map(flatten, terms):
        if isinstance(term, same):
            spliced.extend(term.terms)
        else:
            spliced.append(term)
    return tuple(spliced)
