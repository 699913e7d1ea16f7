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
    OneOf,
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

_Box: TypeAlias = dict[str, Constraint]
"""A clause while it is made."""


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
_PLAIN_CLASSES = frozenset(_PLAIN)
_OF_ONE_BOX = frozenset((Comparison, Range, Presence, TextMatch, Spatial))


def _is_plain(expression: Expression) -> bool:
    """Whether no rule would change anything: so it is with most of what is written, and it saves half the time."""
    if isinstance(expression, And):
        return _PLAIN_CLASSES.issuperset(map(type, expression.terms))
    return isinstance(expression, _PLAIN)


def _clauses(node: Expression, work: _Work) -> list[_Box]:
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


def _conjunction(terms: tuple[Expression, ...], work: _Work) -> list[_Box]:
    limits = work.limits
    met: list[_Box] = [{}]
    for term in terms:
        if len(met) == 1 and type(term) in _OF_ONE_BOX:  # as mostly, and it takes a fourth of the time
            if not _narrow(met[0], term.attribute, _constraint(term), work):  # type: ignore[union-attr,arg-type]
                return []
            continue
        options = _clauses(term, work)
        if not options:
            return []
        if len(met) == len(options) == 1:
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


def _bounded(clauses: list[_Box], limits: Limits) -> list[_Box]:
    if len(clauses) > limits.max_clauses:
        raise BoundError(
            "max_clauses",
            limits.max_clauses,
            f"in disjunctive normal form the expression has more than {limits.max_clauses:,} alternatives",
            suggestion="use IN for alternatives on one attribute, or several subscriptions",
        )
    return clauses


def _boxed(attribute: str, constraint: Constraint | None) -> list[_Box]:
    return [] if constraint is None else [{attribute: constraint}]


def _met(one: Clause, other: Clause, work: _Work) -> _Box | None:
    work.spend(_STEPS_TO_MEET + len(one) // _COPIED_IN_ONE_STEP)
    met = dict(one)
    for attribute, constraint in other.items():
        if not _meet(met, attribute, constraint, work):
            return None
    return met


def _narrow(clause: _Box, attribute: str, constraint: Constraint | None, work: _Work) -> bool:
    """Have a clause ask for one constraint more, as `_met` does for another clause; whether it can match then."""
    if constraint is None:
        return False
    work.spend(_STEPS_TO_MEET + len(clause) // _COPIED_IN_ONE_STEP)
    return _meet(clause, attribute, constraint, work)


def _meet(clause: _Box, attribute: str, constraint: Constraint, work: _Work) -> bool:
    before = clause.get(attribute)
    both: Constraint | None = constraint
    if before is not None:
        work.spend(cost(before, constraint))
        both = meet(before, constraint)
    if both is None:
        return False
    clause[attribute] = both
    return True


def _constraint(leaf: Predicate) -> Constraint | None:
    match leaf:
        case Comparison():
            return _comparison(leaf.attribute, leaf.operator, leaf.value)
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
    if operator is Comparator.EQ:  # by far the most
        return OneOf(kind, (value,))
    match operator:
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


def _without_redundant(clauses: list[_Box], work: _Work) -> list[_Box]:
    """The clauses that no other clause makes superfluous; of two equal ones the first stays."""
    if len(clauses) < 2:
        return clauses
    kept: list[_Box] = []
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
