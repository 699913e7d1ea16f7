"""Rewrites that bring an expression towards its normal form, in the order they are applied.

Each rule maps an expression to one with the same truth value (true, false or unknown) for every event.
"""

from __future__ import annotations

from collections.abc import Callable

from harken.model.expressions import Expression
from harken.normal.rules.constants import fold_constants
from harken.normal.rules.equalities import join_equalities
from harken.normal.rules.flattening import flatten
from harken.normal.rules.negation import push_negation
from harken.normal.rules.patterns import simplify_patterns
from harken.normal.rules.presence import drop_presence_tautologies

Rule = Callable[[Expression], Expression]

RULES: tuple[Rule, ...] = (
    push_negation,
    fold_constants,
    flatten,
    drop_presence_tautologies,
    simplify_patterns,
    join_equalities,
)

__all__ = ["RULES", "Rule"]
