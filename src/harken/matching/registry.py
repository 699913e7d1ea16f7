"""The algorithms by name. An algorithm is one file and one line here; nothing is imported until it is used."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from harken.errors import UnknownAlgorithmError
from harken.matching.contract import Matcher
from harken.model.arguments import check_options


class Algorithm(NamedTuple):
    """Where an algorithm lives, and what it is in one line."""

    target: str
    summary: str


AUTO = "auto"

_ALGORITHMS: dict[str, Algorithm] = {
    AUTO: Algorithm(
        "harken.matching.auto:AutoMatcher",
        "evaluates each of a few subscriptions, clusters many dynamically; the default",
    ),
    "counting": Algorithm(
        "harken.matching.counting.matcher:CountingMatcher",
        "counts, for every clause, how many of its predicates an event satisfies; the classical algorithm",
    ),
    "dynamic": Algorithm(
        "harken.matching.clusters.dynamic:DynamicMatcher",
        "clusters under keys of several attributes that follow the subscriptions and the events",
    ),
    "propagation": Algorithm(
        "harken.matching.clusters.propagation:PropagationMatcher",
        "clusters of clauses under the one predicate that the fewest events satisfy",
    ),
    "pubsub": Algorithm(
        "harken.matching.pubsub.matcher:PubsubMatcher",
        "structures over attributes, level by level, with buckets found by hash, interval or priority search tree",
    ),
    "rapid": Algorithm(
        "harken.matching.trees.rapid:RapidMatcher",
        "search trees of their own for events with few properties, in which little is left to ask",
    ),
    "siena": Algorithm(
        "harken.matching.siena.matcher:SienaMatcher",
        "finds constraints by name and operator and counts those of each clause, in a table made anew for changes",
    ),
    "static": Algorithm(
        "harken.matching.clusters.static:StaticMatcher",
        "clusters under keys of several attributes, chosen by cost for what is there",
    ),
    "tree": Algorithm(
        "harken.matching.trees.tree:TreeMatcher",
        "a search tree that asks property by property, and what clauses have in common once",
    ),
    "be-tree": Algorithm(
        "harken.matching.betree.matcher:BeTreeMatcher",
        "the space of events cut by attribute and by value in turns, in nodes of a few clauses",
    ),
    "reference": Algorithm(
        "harken.matching.reference:ReferenceMatcher",
        "evaluates every expression for every event; slow, and the judge of all others",
    ),
}


def algorithms() -> dict[str, str]:
    """The names of all matching algorithms, with a line about each.

    >>> "reference" in algorithms()
    True
    """
    return {name: algorithm.summary for name, algorithm in _ALGORITHMS.items()}


def create(name: str, **options: object) -> Matcher:
    """A new, empty matcher."""
    if not isinstance(name, str) or name not in _ALGORITHMS:
        raise UnknownAlgorithmError(name, _ALGORITHMS)
    module, _, attribute = _ALGORITHMS[name].target.partition(":")
    kind = getattr(import_module(module), attribute)
    if options:
        check_options(kind, f"of the algorithm {name!r}", options)
    matcher: Matcher = kind(**options)
    return matcher
