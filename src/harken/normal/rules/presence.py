"""An attribute is there or not: asking for either is asking nothing, as presence is never unknown."""

from __future__ import annotations

from harken.model.expressions import TRUE, And, Expression, Not, Or, Presence


def drop_presence_tautologies(expression: Expression) -> Expression:
    """`x IS NULL OR x IS NOT NULL OR ...` becomes TRUE."""
    match expression:
        case And(terms=terms):
            return And(tuple(map(drop_presence_tautologies, terms)))
        case Not(term=term):
            return Not(drop_presence_tautologies(term))
        case Or(terms=terms):
            rewritten = tuple(map(drop_presence_tautologies, terms))
            asked = {(term.attribute, term.present) for term in rewritten if isinstance(term, Presence)}
            if any((attribute, not present) in asked for attribute, present in asked):
                return TRUE
            return Or(rewritten)
    return expression
