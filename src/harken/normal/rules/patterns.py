"""LIKE becomes the plainest predicate that says the same: equality, a prefix, a suffix or a part.

What remains of LIKE is written with one fixed escape character, so that equal patterns look equal.
"""

from __future__ import annotations

from harken.model.expressions import And, Comparator, Comparison, Expression, Not, Or, TextMatch
from harken.model.text import TextOperator, Wildcard, like_tokens

ESCAPE = "\\"


def simplify_patterns(expression: Expression) -> Expression:
    """The expression with each string predicate in its plainest form."""
    match expression:
        case And(terms=terms):
            return And(tuple(map(simplify_patterns, terms)))
        case Or(terms=terms):
            return Or(tuple(map(simplify_patterns, terms)))
        case Not(term=TextMatch() as leaf):
            plain = _plain(leaf)
            return (
                Comparison(plain.attribute, plain.operator.negated, plain.value)
                if isinstance(plain, Comparison)
                else Not(plain)
            )
        case Not(term=term):
            return Not(simplify_patterns(term))
        case TextMatch():
            return _plain(expression)
    return expression


def _plain(leaf: TextMatch) -> TextMatch | Comparison:
    if leaf.operator is TextOperator.LIKE:
        return _plain_like(leaf)
    if leaf.operator is not TextOperator.MATCHES and leaf.pattern == "":
        # Every string starts with, ends with and contains nothing; what is left to ask is the kind.
        return Comparison(leaf.attribute, Comparator.GE, "")
    return leaf


def _plain_like(leaf: TextMatch) -> TextMatch | Comparison:
    name, run = leaf.attribute, Wildcard.ANY_RUN
    match _without_repeated_runs(like_tokens(leaf.pattern, leaf.escape)):
        case []:
            return Comparison(name, Comparator.EQ, "")
        case [Wildcard.ANY_RUN]:
            return Comparison(name, Comparator.GE, "")
        case [str(text)]:
            return Comparison(name, Comparator.EQ, text)
        case [str(text), Wildcard.ANY_RUN]:
            return TextMatch(name, TextOperator.STARTS_WITH, text)
        case [Wildcard.ANY_RUN, str(text)]:
            return TextMatch(name, TextOperator.ENDS_WITH, text)
        case [Wildcard.ANY_RUN, str(text), last] if last is run:
            return TextMatch(name, TextOperator.CONTAINS, text)
        case tokens:
            return TextMatch(name, TextOperator.LIKE, "".join(map(_escaped, tokens)), ESCAPE)


def _without_repeated_runs(tokens: list[str | Wildcard]) -> list[str | Wildcard]:
    run = Wildcard.ANY_RUN
    return [token for at, token in enumerate(tokens) if not (token is run and at and tokens[at - 1] is run)]


def _escaped(token: str | Wildcard) -> str:
    if isinstance(token, Wildcard):
        return token.value
    return "".join(ESCAPE + char if char in (ESCAPE, "%", "_") else char for char in token)
