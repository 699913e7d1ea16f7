"""NOT moves inward until it stands only before IN, a pattern or a spatial predicate.

`NOT (x < 2)` becomes `x >= 2`: both are unknown without x, so nothing changes under three-valued logic.
"""

from __future__ import annotations

from harken.model.expressions import (
    And,
    Comparator,
    Comparison,
    Constant,
    Expression,
    Not,
    Or,
    Presence,
    Range,
)


def push_negation(expression: Expression) -> Expression:
    """The expression with NOT only where no operator says the opposite."""
    return _pushed(expression, negate=False)


def _pushed(node: Expression, *, negate: bool) -> Expression:
    match node:
        case Not(term=term):
            return _pushed(term, negate=not negate)
        case And(terms=terms):
            pushed = tuple(_pushed(term, negate=negate) for term in terms)
            return Or(pushed) if negate else And(pushed)
        case Or(terms=terms):
            pushed = tuple(_pushed(term, negate=negate) for term in terms)
            return And(pushed) if negate else Or(pushed)
    return _opposite(node) if negate else node


def _opposite(leaf: Expression) -> Expression:
    match leaf:
        case Comparison(attribute=attribute, operator=operator, value=value):
            return Comparison(attribute, operator.negated, value)
        case Range(attribute=attribute, low=low, high=high, low_closed=low_closed, high_closed=high_closed):
            below = Comparator.LT if low_closed else Comparator.LE
            above = Comparator.GT if high_closed else Comparator.GE
            return Or((Comparison(attribute, below, low), Comparison(attribute, above, high)))
        case Presence(attribute=attribute, present=present):
            return Presence(attribute, not present)
        case Constant(truth=truth):
            return Constant(not truth)
    return Not(leaf)
