"""The normal form: a subscription as a union of clauses, each a box (one constraint per attribute).

Clauses are built bottom-up: OR lines them up, AND meets each with each, and what contradicts itself is
dropped on the way, so that only clauses that can match count against the bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from harken.errors import BoundError
from harken.model.expressions import (
    And,
    Comparator,
    Comparison,
    Constant,
    Expression,
    Membership,
    Not,
    Or,
    Predicate,
    Presence,
    Range,
    Spatial,
    TextMatch,
)
from harken.model.limits import DEFAULT_LIMITS, Limits
from harken.model.text import TextOperator
from harken.model.values import Kind, Value, kind_of
from harken.normal.constraints import (
    Absent,
    Constraint,
    Present,
    Region,
    Span,
    Test,
    cost,
    implies,
    meet,
    none_of,
    one_of,
    tidy,
)
from harken.normal.rules import RULES

# As measured: a step is about what comparing two values takes.
_STEPS_TO_MEET = 4
_COPIED_IN_ONE_STEP = 16

Clause: TypeAlias = Mapping[str, Constraint]
"""One box: what it asks of each attribute. The empty clause asks nothing and always matches."""


@dataclass(frozen=True, slots=True)
class NormalForm:
    """A subscription matches an event when one of its clauses does."""

    clauses: tuple[Clause, ...]

    @property
    def never_matches(self) -> bool:
        """Whether the expression contradicts itself."""
        return not self.clauses

    @property
    def always_matches(self) -> bool:
        """Whether the expression is true for every event."""
        return any(not clause for clause in self.clauses)


def normalise(expression: Expression, limits: Limits = DEFAULT_LIMITS) -> NormalForm:
    """The normal form of an expression; BoundError if it has more clauses than the limits allow.

    >>> from harken.language import parse
    >>> normalise(parse("x < 1 AND x > 3")).never_matches
    True
    """
    if not _is_plain(expression):
        for rule in RULES:
            expression = rule(expression)
    work = _Work(limits)
    return NormalForm(tuple(_without_redundant(_clauses(expression, work), work)))


class _Work:
    """Counts the steps of one rewriting: few alternatives of many values each can take as long as many."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._left = limits.max_work

    def spend(self, steps: int) -> None:
        """Take steps; BoundError if there are none left."""
        self._left -= steps
        if self._left < 0:
            raise BoundError(
                "max_work",
                self.limits.max_work,
                "bringing the expression into disjunctive normal form takes more steps",
                suggestion="use fewer alternatives and shorter lists, or several subscriptions",
            )


_PLAIN = (Comparison, Membership, Range, Presence)


def _is_plain(expression: Expression) -> bool:
    """Whether no rule would change anything: so it is with most of what is written, and it saves half the time."""
    if isinstance(expression, And):
        return all(isinstance(term, _PLAIN) for term in expression.terms)
    return isinstance(expression, _PLAIN)


def _clauses(node: Expression, work: _Work) -> list[Clause]:
    match node:
        case Or(terms=terms):
            clauses = [clause for term in terms for clause in _clauses(term, work)]
            return _bounded(clauses, work.limits)
        case And(terms=terms):
            return _conjunction(terms, work)
        case Constant(truth=truth):
            return [{}] if truth else []
        case Not(term=term):
            return _boxed(term.attribute, _negated(term))  # type: ignore[union-attr,arg-type]  # rules leave leaves
        case Membership(attribute=attribute, values=values):
            return [{attribute: one_of(kind, of_kind)} for kind, of_kind in _by_kind(values).items()]
    return _boxed(node.attribute, _constraint(node))


def _conjunction(terms: tuple[Expression, ...], work: _Work) -> list[Clause]:
    limits = work.limits
    met: list[Clause] = [{}]
    for term in terms:
        options = _clauses(term, work)
        if not options:
            return []
        if len(met) == len(options) == 1:  # as mostly, and it takes a third of the time
            both = _met(met[0], options[0], work)
            if both is None:
                return []
            met = [both]
            continue
        pairs = (_met(clause, option, work) for clause in met for option in options)
        possible = (clause for clause in pairs if clause is not None)
        # One too many at most: a product of thousands is refused before it is made.
        met = _bounded(list(islice(possible, limits.max_clauses + 1)), limits)
    return met


def _bounded(clauses: list[Clause], limits: Limits) -> list[Clause]:
    if len(clauses) > limits.max_clauses:
        raise BoundError(
            "max_clauses",
            limits.max_clauses,
            f"in disjunctive normal form the expression has more than {limits.max_clauses:,} alternatives",
            suggestion="use IN for alternatives on one attribute, or several subscriptions",
        )
    return clauses


def _boxed(attribute: str, constraint: Constraint | None) -> list[Clause]:
    return [] if constraint is None else [{attribute: constraint}]


def _met(one: Clause, other: Clause, work: _Work) -> Clause | None:
    work.spend(_STEPS_TO_MEET + len(one) // _COPIED_IN_ONE_STEP)
    met = dict(one)
    for attribute, constraint in other.items():
        before = met.get(attribute)
        if before is None:
            met[attribute] = constraint
            continue
        work.spend(cost(before, constraint))
        both = meet(before, constraint)
        if both is None:
            return None
        met[attribute] = both
    return met


def _constraint(leaf: Predicate) -> Constraint | None:
    match leaf:
        case Comparison(attribute=attribute, operator=operator, value=value):
            return _comparison(attribute, operator, value)
        case Range(low=low, high=high, low_closed=low_closed, high_closed=high_closed):
            return tidy(Span(kind_of(low), low, low_closed, high, high_closed))
        case TextMatch(operator=TextOperator.STARTS_WITH, pattern=prefix):
            return Span(Kind.STRING, prefix, True, after_prefix(prefix), False)
        case TextMatch():
            return Span(Kind.STRING, tests=frozenset({Test(leaf)}))
        case Spatial():
            return Region(None, frozenset({Test(leaf)}))
        case Presence(present=present):
            return Present() if present else Absent()
        case Membership():
            raise AssertionError("a membership may need several clauses")


def _comparison(attribute: str, operator: Comparator, value: Value) -> Constraint | None:
    kind = kind_of(value)
    match operator:
        case Comparator.EQ:
            return one_of(kind, (value,))
        case Comparator.NE:
            return none_of(kind, attribute, (value,))
        case Comparator.LT | Comparator.LE:
            return tidy(Span(kind, high=value, high_closed=operator is Comparator.LE))
        case Comparator.GT | Comparator.GE:
            return tidy(Span(kind, low=value, low_closed=operator is Comparator.GE))


def _negated(leaf: Membership | TextMatch | Spatial) -> Constraint | None:
    match leaf:
        case Membership(attribute=attribute, values=values):
            # NOT IN over several kinds is never true: each value is of another kind than some constant.
            by_kind = _by_kind(values)
            return none_of(next(iter(by_kind)), attribute, values) if len(by_kind) == 1 else None
        case TextMatch():
            return Span(Kind.STRING, tests=frozenset({Test(leaf, negated=True)}))
        case Spatial():
            return Region(None, frozenset({Test(leaf, negated=True)}))


def _by_kind(values: tuple[Value, ...]) -> dict[Kind, list[Value]]:
    groups: dict[Kind, list[Value]] = {}
    for value in values:
        groups.setdefault(kind_of(value), []).append(value)
    return groups


def after_prefix(prefix: str) -> str | None:
    """The least string greater than every string with this prefix; None if there is none.

    Strings are ordered by code point; surrogates are not characters and are stepped over.
    """
    for end in range(len(prefix), 0, -1):
        code = ord(prefix[end - 1])
        if code < 0x10FFFF:
            return prefix[: end - 1] + chr(0xE000 if code == 0xD7FF else code + 1)
    return None


def _without_redundant(clauses: list[Clause], work: _Work) -> list[Clause]:
    """The clauses that no other clause makes superfluous; of two equal ones the first stays."""
    if len(clauses) < 2:
        return clauses
    kept: list[Clause] = []
    for clause in sorted(clauses, key=len):
        if not any(_inside(clause, larger, work) for larger in kept):
            kept = [other for other in kept if len(other) < len(clause) or not _inside(other, clause, work)]
            kept.append(clause)
    return kept


def _inside(inner: Clause, outer: Clause, work: _Work) -> bool:
    work.spend(1)
    if len(outer) > len(inner) or any(attribute not in inner for attribute in outer):
        return False
    work.spend(sum(cost(inner[attribute], constraint) for attribute, constraint in outer.items()))
    return all(implies(inner[attribute], constraint) for attribute, constraint in outer.items())
