"""The workloads of Fabret et al. 2000, section 6."""

from __future__ import annotations

from harken.workloads.specification import Fixed, Specification


def w0() -> Specification:
    """Five equalities, two of them on fixed attributes (figures 3a, 3c and 3d)."""
    return Specification(fixed=(Fixed(0), Fixed(1)), free_from=tuple(range(2, 32)))


def w1() -> Specification:
    """Four predicates: two fixed equalities, one fixed >, one free equality (figure 3b)."""
    return Specification(fixed=(Fixed(0), Fixed(1), Fixed(2, ">")), free=1, free_from=tuple(range(3, 32)))


def w2() -> Specification:
    """Nine predicates: two fixed equalities, five fixed <, one fixed >, one free equality (figure 3b)."""
    below = tuple(Fixed(attribute, "<") for attribute in range(2, 7))
    fixed = (Fixed(0), Fixed(1), *below, Fixed(7, ">"))
    return Specification(fixed=fixed, free=1, free_from=tuple(range(8, 32)))


def churn_schema() -> Specification:
    """Five equalities, one of them fixed, on the first 16 of 32 attributes (figure 4a, before)."""
    return Specification(fixed=(Fixed(0),), free=4, free_from=tuple(range(1, 16)))


def churn_schema_after() -> Specification:
    """The same on the other 16 attributes (figure 4a, after)."""
    return Specification(fixed=(Fixed(16),), free=4, free_from=tuple(range(17, 32)))


def churn_skew() -> Specification:
    """Five equalities, two of them fixed, all values uniform (figure 4b, before)."""
    return w0()


def churn_skew_after() -> Specification:
    """The same, but one fixed attribute has two values, in subscriptions and events alike (figure 4b, after)."""
    before = w0()
    return Specification(fixed=before.fixed, free_from=before.free_from, domains={0: (1, 2)})


def ranges() -> Specification:
    """Five order predicates per subscription, each true of about a tenth of the events; no equality at all."""
    return Specification(
        free=5, free_from=tuple(range(32)), free_operators=("<", ">"), low=1, high=1_000, selectivity=0.1
    )
