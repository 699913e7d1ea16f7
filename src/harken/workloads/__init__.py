"""The papers' workloads: seeded, made column by column, millions of subscriptions in seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from harken.errors import UnknownWorkloadError
from harken.workloads import fabret, light_query, peers
from harken.workloads.boolean_expressions import BooleanExpressions, BooleanExpressionWorkload
from harken.workloads.light_query import LightQueries, LightQueryWorkload
from harken.workloads.market import MarketWorkload
from harken.workloads.peers import Conditions, ConditionWorkload
from harken.workloads.specification import Specification, Workload
from harken.workloads.tomasic import CONSTRAINT_WORKLOADS, ConstraintWorkload, Sizes


def _zipf() -> BooleanExpressions:
    return BooleanExpressions(distribution="zipf")


Said: TypeAlias = Specification | BooleanExpressions | Conditions

_WORKLOADS: dict[str, tuple[Callable[[], Said], str]] = {
    "w0": (fabret.w0, "5 equalities on 32 attributes, 2 of them fixed; values 1 to 35 (Fabret et al., 6.2.1)"),
    "w1": (fabret.w1, "3 equalities, 2 of them fixed, and one fixed >; values 1 to 35 (Fabret et al., 6.2.1)"),
    "w2": (fabret.w2, "3 equalities, 2 of them fixed, five fixed < and one fixed > (Fabret et al., 6.2.1)"),
    "churn-schema": (fabret.churn_schema, "5 equalities on 16 of 32 attributes (Fabret et al., 6.2.3)"),
    "churn-schema-after": (fabret.churn_schema_after, "the same on the other 16 attributes"),
    "churn-skew": (fabret.churn_skew, "5 equalities on 32 attributes, 2 of them fixed (Fabret et al., 6.2.3)"),
    "churn-skew-after": (fabret.churn_skew_after, "the same, one fixed attribute with 2 values only"),
    "ranges": (fabret.ranges, "w0's shape, but each predicate < or > and true of a tenth of the events"),
    "light-query": (
        light_query.zipf,
        "some of 100 properties wanted, some not; events with few of them (Kale et al., 6)",
    ),
    "light-query-exponential": (light_query.exponential, "the same; events with each property by a chance of 0.1"),
    "be-gen": (
        BooleanExpressions,
        "7 predicates on 400 attributes, events of 15, 1 % match (Mishra and Sahni, fig. 6)",
    ),
    "be-gen-zipf": (_zipf, "the same, with attributes that are frequent and rare by Zipf's law"),
    "equalities": (peers.equalities, "equalities on 3 of 20 attributes, 50 values each"),
    "equalities-and-ranges": (
        peers.ranges_too,
        "2 equalities for 3 ranges of 100 of 1,000 values, on 5 of 50 attributes; events of 20",
    ),
    "parallel": (
        peers.parallel,
        "10 equalities on 100 attributes, 15 values each; events of 50 (Farroukh et al., table 1)",
    ),
    "parallel-blocks": (peers.parallel_blocks, "the same with 6 equalities, and events of 30"),
    "output": (peers.output, "one equality each; an event matches one subscription in a hundred"),
}


def workloads() -> dict[str, str]:
    """The names of all workloads, with a line about each."""
    return {name: summary for name, (_, summary) in _WORKLOADS.items()}


def workload(name: str, seed: int = 20_001) -> Workload:
    """A workload by name.

    >>> workload("w0").events(3).num_columns
    32
    """
    if name not in _WORKLOADS:
        raise UnknownWorkloadError(name, _WORKLOADS)
    make, _ = _WORKLOADS[name]
    return workload_of(make(), seed)


def workload_of(said: Said, seed: int = 20_001) -> Workload:
    """A workload by what is said of it.

    >>> workload_of(BooleanExpressions(dimensions=100, matching=0.05)).events(3).num_columns
    100
    """
    if isinstance(said, BooleanExpressions):
        return BooleanExpressionWorkload(said, seed)
    if isinstance(said, Conditions):
        return ConditionWorkload(said, seed)
    return LightQueryWorkload(said, seed) if isinstance(said, LightQueries) else Workload(said, seed)


def constraint_workload(name: str, sizes: Sizes, seed: int = 20_001) -> ConstraintWorkload:
    """A workload in which publications are constraints too, by name: one of the paper's, or "market".

    >>> len(constraint_workload("fixed", Sizes(1_000, 3)).publications())
    3
    """
    known: dict[str, type[ConstraintWorkload]] = {**CONSTRAINT_WORKLOADS, "market": MarketWorkload}
    if name not in known:
        raise UnknownWorkloadError(name, known)
    return known[name](sizes, seed)


__all__ = [
    "CONSTRAINT_WORKLOADS",
    "BooleanExpressions",
    "ConditionWorkload",
    "Conditions",
    "ConstraintWorkload",
    "LightQueries",
    "LightQueryWorkload",
    "Sizes",
    "Specification",
    "Workload",
    "constraint_workload",
    "workload",
    "workload_of",
    "workloads",
]
