"""How an index lies in memory. Everything is a flat array, so that an index can be saved, mapped and shared.

**Blocks.** A cluster is a block of 32-bit words that starts on a cache line (16 words). A header of six words
(below) is followed by `width` columns of `capacity` predicate words each, and one column of entry ids. Columns,
because most entries fail on the first predicate: then the others are never read.

**Predicate words** name a predicate. Without the LAZY bit its truth for the event at hand stands in the truth
vector; with it, the predicate is evaluated where it is met, from its dimension, operator and operands.

**Entry ids** are slots, or with the EXTRA bit set indexes into a table of clauses that share a subscription.

**The directory** maps access paths to blocks (in cache lines from the start of the words; 0 is none). Each
table owns a region of it: table t has the entries from base[t] on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

LINE = 16
"""Words in a cache line."""

HEADER = 6
LENGTH, CAPACITY, WIDTH, NEXT, TABLE, KEY = range(HEADER)
"""Header words: entries, room for them, predicates per entry, next block of this access path, whose it is."""

LAZY = 1 << 31
EXTRA = 1 << 31

# Where in a table's region an access path's entry is, by table:
ALL_TABLE, PREDICATE_TABLE, PRESENCE_TABLE, FIRST_KEY_TABLE = range(4)

INTERVAL, DIFFERENT, IS_ABSENT, IS_PRESENT, EQUAL, MEMBER, TESTED = range(7)
"""Operators of predicates, each on one dimension. The first four can be evaluated lazily."""

MISSING, UNLISTED = -1, 0
"""Codes of an event in a dimension: no value there, or one that equals no constant; constants count from 1."""


class Predicates(NamedTuple):
    """What phase one and lazy evaluation need of the predicates. Dimensions index *_first."""

    equal_first: npt.NDArray[np.int64]
    """equal[equal_first[d] + code] is the predicate `dimension d = that constant`, or -1."""
    equal: npt.NDArray[np.int32]
    member_head: npt.NDArray[np.int32]
    """The sets that hold a constant, linked: by the constant's place in `equal` to the first node, or -1."""
    member_next: npt.NDArray[np.int32]
    member: npt.NDArray[np.int32]
    eager_head: npt.NDArray[np.int32]
    """The predicates of dimension d that are evaluated for every event, linked by eager_next; -1 ends."""
    eager_next: npt.NDArray[np.int32]
    operator: npt.NDArray[np.int8]
    dimension: npt.NDArray[np.int32]
    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]


class Tables(NamedTuple):
    """The access paths. Key table t looks at the dimensions from first[t] to first[t + 1]."""

    base: npt.NDArray[np.int64]
    first: npt.NDArray[np.int32]
    dimension: npt.NDArray[np.int32]
    stride: npt.NDArray[np.int64]
    """A key's place in the region is the sum of code times stride."""
    radix: npt.NDArray[np.int64]
    """Codes below this have a place."""
    closed: npt.NDArray[np.bool_]
    """Whether no clause may enter and no event looks there."""
    population: npt.NDArray[np.int64]


class Blocks(NamedTuple):
    """Clusters and the directory that finds them."""

    words: npt.NDArray[np.uint32]
    directory: npt.NDArray[np.uint32]
    block_of: npt.NDArray[np.uint32]
    """The block that holds each slot's clause (for slots with one clause)."""
    block_of_extra: npt.NDArray[np.uint32]


class Events(NamedTuple):
    """Encoded events: code per dimension, order label per ordered dimension, other satisfied predicates."""

    code: npt.NDArray[np.int32]
    label: npt.NDArray[np.int64]
    label_column: npt.NDArray[np.int32]
    """Which column of `label` a dimension has, or -1."""
    also_first: npt.NDArray[np.int64]
    also: npt.NDArray[np.int32]


class Scratch(NamedTuple):
    """The state of one matching call; the index itself is only read."""

    truth: npt.NDArray[np.uint8]
    """1 where a predicate holds for the event at hand; all 0 between events. The last one belongs to no predicate
    and is always 1: it stands for those that are yet to be evaluated."""
    touched: npt.NDArray[np.int32]
    places: npt.NDArray[np.int64]
    opened: npt.NDArray[np.int64]
    """Per event of a group, how many places it has opened."""
    counts: npt.NDArray[np.int64]
    """Totals of the call: blocks visited, entries checked."""
