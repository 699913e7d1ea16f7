"""TRUE and FALSE disappear from AND and OR, or decide them."""

from __future__ import annotations

from harken.model.expressions import FALSE, TRUE, And, Constant, Expression, Not, Or


def fold_constants(expression: Expression) -> Expression:
    """The expression without constants, unless it is one."""
    match expression:
        case And(terms=terms):
            return _folded(terms, And, neutral=TRUE, deciding=FALSE)
        case Or(terms=terms):
            return _folded(terms, Or, neutral=FALSE, deciding=TRUE)
        case Not(term=term):
            inside = fold_constants(term)
            return Constant(not inside.truth) if isinstance(inside, Constant) else Not(inside)
    return expression


def _folded(
    terms: tuple[Expression, ...], combine: type[And] | type[Or], *, neutral: Constant, deciding: Constant
) -> Expression:
    kept = [folded for folded in map(fold_constants, terms) if folded is not neutral and folded != neutral]
    if deciding in kept:
        return deciding
    if len(kept) < 2:
        return kept[0] if kept else neutral
    return combine(tuple(kept))
