"""Plans for shapes: where in the compiled form each literal of a text goes.

Subscriptions written by programs share a shape and differ in literals. A shape's **plan** says where in the
compiled form each literal goes, so a thousand texts of one shape cost one parse. A plan exists only where the
normal form does not depend on what the literals are; where it may, a guard sends the row the slow way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from harken.errors import ExpressionError
from harken.language import parse
from harken.language.literals import read_literal
from harken.model.expressions import (
    And,
    Comparator,
    Comparison,
    Constant,
    Expression,
    Membership,
    Not,
    Or,
    Presence,
    Range,
)
from harken.model.limits import Limits
from harken.model.schema import Schema
from harken.model.values import SPATIAL_KINDS, Kind, Type, Value, kind_of, type_of
from harken.normal.rules.negation import push_negation

SLOTS_PER_PLAN = 64


@dataclass(frozen=True, slots=True)
class Bound:
    """One predicate of the compiled form whose operand is a literal (`slot`) or fixed by the shape (`value`)."""

    attribute: str
    operator: str
    type: Type | None
    slot: int | None = None
    value: Value | None = None


@dataclass(slots=True)
class ShapePlan:
    """How the literals of one shape become clauses, and what must hold between them."""

    clauses: list[list[Bound]] = field(default_factory=list)
    ascending: list[tuple[int, int]] = field(default_factory=list)
    """Pairs of slots of which the first must be less than the second: the bounds of a range."""
    distinct: list[list[int]] = field(default_factory=list)
    """Groups of slots whose literals must all differ: the values of IN."""
    sample: list[Value] = field(default_factory=list)
    """The constants of the text the plan was made from, in the order of the slots."""

    @property
    def slot_types(self) -> list[Type]:
        """What each literal is read as."""
        return [_slot_type(value) for value in self.sample]


PlanCache: TypeAlias = dict[int, tuple[bytes, ShapePlan | None]]
"""Plans by the hash of their shape, each with the shape itself: hashes can collide."""


class _NoPlanError(Exception):
    """The normal form of this shape depends on its literals."""


def plan_for(text: str, literals: list[str], schema: Schema | None, limits: Limits) -> ShapePlan | None:
    """The plan of the shape that this text has; None where there is none, or the text is not valid."""
    try:
        expression = push_negation(parse(text, schema=schema, limits=limits))
        plan = ShapePlan()
        for clause in _disjuncts(expression):
            plan.clauses.append(_clause(clause, plan))
        _refuse_overlaps(plan, limits)
        read = [read_literal(kind, literal) for kind, literal in zip(plan.slot_types, literals, strict=True)]
    except (ExpressionError, _NoPlanError, ValueError):
        return None
    # The splitter and the grammar must have seen the same literals in the same places.
    return plan if read == plan.sample and len(read) <= SLOTS_PER_PLAN else None


def _disjuncts(expression: Expression) -> tuple[Expression, ...]:
    return expression.terms if isinstance(expression, Or) else (expression,)


def _clause(expression: Expression, plan: ShapePlan) -> list[Bound]:
    terms = expression.terms if isinstance(expression, And) else (expression,)
    bounds = [bound for term in terms for bound in _bounds(term, plan)]
    _guard_pairs(terms, bounds, plan)
    return bounds


def _bounds(term: Expression, plan: ShapePlan) -> Iterator[Bound]:
    match term:
        case Comparison(attribute=attribute, operator=operator, value=value):
            yield _bound(attribute, operator.value, value, plan)
        case Membership(attribute=attribute, values=values):
            yield from _members(attribute, "in" if len(values) > 1 else "=", values, plan)
        case Not(term=Membership(attribute=attribute, values=values)):
            yield from _members(attribute, "!=", values, plan)
        case Range(attribute=attribute, low=low, high=high, low_closed=low_closed, high_closed=high_closed):
            lower = _bound(attribute, ">=" if low_closed else ">", low, plan)
            upper = _bound(attribute, "<=" if high_closed else "<", high, plan)
            _ascend(lower, upper, plan)
            yield lower
            yield upper
        case Presence(attribute=attribute, present=present):
            yield Bound(attribute, "is not null" if present else "is null", None)
        case _:
            raise _NoPlanError


def _members(attribute: str, operator: str, values: tuple[Value, ...], plan: ShapePlan) -> Iterator[Bound]:
    if len({kind_of(value) for value in values}) > 1:
        raise _NoPlanError
    bounds = [_bound(attribute, operator, value, plan) for value in values]
    plan.distinct.append([bound.slot for bound in bounds if bound.slot is not None])
    yield from bounds


def _bound(attribute: str, operator: str, value: Value, plan: ShapePlan) -> Bound:
    kind = kind_of(value)
    if kind in SPATIAL_KINDS:
        raise _NoPlanError
    if kind is Kind.BOOL:
        # TRUE and FALSE are words of the shape, not literals; only equality needs no rewriting.
        if operator != Comparator.EQ.value:
            raise _NoPlanError
        return Bound(attribute, operator, Type.BOOL, value=value)
    plan.sample.append(value)
    return Bound(attribute, operator, _slot_type(value), slot=len(plan.sample) - 1)


def _slot_type(value: Value) -> Type:
    """What looks like a float is read as one; the few decimals that no float says go without a plan."""
    its_type = type_of(value)
    return Type.FLOAT if its_type is Type.DECIMAL else its_type


def _ascend(lower: Bound, upper: Bound, plan: ShapePlan) -> None:
    if lower.slot is None or upper.slot is None or lower.type is None or upper.type is None:
        raise _NoPlanError
    if lower.type.kind is not upper.type.kind:
        raise _NoPlanError
    plan.ascending.append((lower.slot, upper.slot))


def _guard_pairs(terms: tuple[Expression, ...], bounds: list[Bound], plan: ShapePlan) -> None:
    """An attribute may occur once in a clause, or twice as `x > a AND x < b`."""
    for attribute, count in Counter(_attribute(term) for term in terms).items():
        if count == 1:
            continue
        low, *others = sorted((b for b in bounds if b.attribute == attribute), key=lambda b: b.operator[0] == "<")
        if len(others) != 1 or low.operator not in (">", ">=") or others[0].operator not in ("<", "<="):
            raise _NoPlanError
        _ascend(low, others[0], plan)


def _attribute(term: Expression) -> str:
    leaf = term.term if isinstance(term, Not) else term
    if isinstance(leaf, And | Or | Not | Constant):
        raise _NoPlanError
    return leaf.attribute


def _refuse_overlaps(plan: ShapePlan, limits: Limits) -> None:
    """With one clause's attributes all in another's, which of the two is redundant may depend on literals."""
    if len(plan.clauses) > limits.max_clauses:
        raise _NoPlanError
    attributes = [{bound.attribute for bound in clause} for clause in plan.clauses]
    for at, one in enumerate(attributes):
        if any(one <= other for other_at, other in enumerate(attributes) if other_at != at):
            raise _NoPlanError
