"""How search trees, and the clauses in them, lie in memory (Kale et al. 2005, sections 3 and 4).

**Properties.** A dimension is a property. An event has it, value 1, if it satisfies a predicate of role ONE there:
an equality, a set or a test of its value. `p = FALSE` is the one predicate of role ZERO: whoever satisfies it has
not the property p. All others are FREE: to them any event may come.

So what a clause asks ONE of are properties that a matching event has, and what it asks ZERO of are others. An
event that has no value somewhere has not the property either, though it satisfies no ZERO: trees ask predicates,
which are exact, and only the choice of a tree goes by properties.

**Entries.** A tree is one run of 32-bit words: nodes, of which the first is the root, and tails, which end them.

    node    how many branches ask what phase one finds, how many ask something else, how many clauses end here;
            then for each branch a predicate and a target, the former by number; then the clauses
    tail    predicates, and behind them ~clause: what is left of a clause that is alone, or nearly

A target is the place of a node in the tree or, if negative, ~ that of a tail. Properties that nobody asks about
take no room. Branches of a node are tested without waiting for each other, and so are tails.

**Segments.** Trees do not change. Clauses are numbered as they come; a segment has the trees of a run of them, and
those that came last wait, without a tree, until they are worth one. In a segment there are, in this order: for
every t from 0 to c the t + 1 trees of events with t properties; if `sparse`, the tree that asks ONE first; and the
tree that asks dimension by dimension.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FREE, ONE, ZERO = range(3)
"""Roles of predicates."""

SEVERAL, SLOT = 1 << 31, (1 << 31) - 1
"""The bits of an owner: whether its clauses are several, and its slot."""

NOBODY = 2**32 - 1
"""Instead of an owner: the clause has left."""

NO_PREDICATE = -1
"""Instead of the first predicate of a clause: it asks nothing."""

MOST_LIGHT = 62
"""The greatest c: which blocks of properties are empty is told by the bits of one word."""

NODE = 3
"""Words of a node before its branches."""

WORTH_A_NODE = 4
"""Clauses that begin alike have a node from so many on; fewer are as quick asked one by one."""

SPARSE = 3
"""Events with one property in so many, or fewer, are quicker if what has to be there is asked first."""


class Contents(NamedTuple):
    """By clause: what it asks, and whose it is."""

    first: npt.NDArray[np.uint32]
    """Clause j asks words[first[j] : first[j + 1]], by dimension, and by number within one."""
    words: npt.NDArray[np.int32]
    owner: npt.NDArray[np.uint32]
    """The slot whose it is, with the SEVERAL bit if that has others too; or NOBODY."""
    sibling: npt.NDArray[np.int32]
    """The next clause of the same subscription, ALONE or LAST."""
    leader: npt.NDArray[np.int32]
    """Its first predicate, dimension by dimension; NO_PREDICATE if there is none."""
    head: npt.NDArray[np.int32]
    """By slot: its first clause, or -1."""
    end: int
    """Clauses below are in use, or have been."""


class Forest(NamedTuple):
    """All trees of all segments."""

    entries: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    """By tree: where its entries begin ..."""
    stop: npt.NDArray[np.int64]
    """... and where they end."""
    base: npt.NDArray[np.int64]
    """By segment: its first tree."""
    light: npt.NDArray[np.int64]
    """c: events with more properties than that are not light. -1 if none is."""
    dimensions: npt.NDArray[np.int64]
    """How many dimensions there were when its trees were made: k."""
    sparse: npt.NDArray[np.bool_]
    """Whether there is a tree that asks ONE first for events that are not light."""
    built: int
    """Clauses from here on are in no tree."""
    nodes: int
    """No tree has more nodes."""


class Order(NamedTuple):
    """In which order a tree asks: `length` dimensions from `begin` on, around the end, and then those left."""

    dimensions: int
    begin: int
    length: int
    ones_first: bool


def tree_words(clauses: int, predicates: int) -> int:
    """No fewer words than a tree of so many clauses, of so many predicates together, can have."""
    # A branch and a node for each predicate, and for each clause a branch and its end; the root.
    return (2 + NODE) * predicates + 3 * clauses + NODE
