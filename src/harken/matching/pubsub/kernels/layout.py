"""How the database of PUBSUB lies in memory (Mishra and Sahni, sections 3.1 and 3.2).

**Attributes** here are ways of asking about a dimension (`structures.kernels.attributes`).

**Attribute structures.** Structure Z of attribute i under bucket b holds clauses that were to enter b and whose
next attribute is i. One hash table leads from (b, i) to Z. It begins with one bucket, and is divided by what its
clauses ask of attribute i once that is full: by a hash table, an interval tree or a priority search tree, of
which buckets are the items.

**Buckets** hold entries: a clause, its next attribute, and what it asks of that. In large buckets entries are in
order of attributes and then of where ranges begin, but for a short tail of those that came last. Bucket ROOT is
the header, which has all structures of level 1 under it, and the clauses that ask of no attribute to be there.

The order of attributes within a clause is its own, rarest first when it came: whatever it is, events find it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.matching.structures.kernels.hashing import HashTable
from harken.matching.structures.kernels.interval_trees import IntervalTrees
from harken.matching.structures.kernels.priority_search_trees import PrioritySearchTrees

ROOT = 0

NONE, FREE = -1, -2
"""Instead of the structure of a bucket: it is the root, or in no use."""

UNDIVIDED, HASH, INTERVAL_TREE, PRIORITY_SEARCH_TREE = range(4)
"""What keeps track of the buckets of a structure; of an undivided one, there is one bucket."""

SMALL = 64
"""Buckets of no more than so many entries are not sorted: to look at all is as quick."""

SAMPLE = 64
"""Entries that are looked at to choose how to divide a bucket."""


class Buckets(NamedTuple):
    """By bucket: its entries are start, ..., start + length - 1."""

    start: npt.NDArray[np.int64]
    length: npt.NDArray[np.int32]
    sorted: npt.NDArray[np.int32]
    """How many entries, the first ones, are in order."""
    room: npt.NDArray[np.int32]
    limit: npt.NDArray[np.int32]
    """With so many entries it is worth a try to divide it."""
    level: npt.NDArray[np.int32]
    """How many structures are above it."""
    owner: npt.NDArray[np.int32]
    """The structure that it belongs to, NONE or FREE."""
    mate: npt.NDArray[np.int32]
    """The next bucket of the structure, or the next free one."""
    below: npt.NDArray[np.int32]
    """How many structures are right below it."""
    touched: npt.NDArray[np.int32]
    """While clauses leave: the next one that they left, plus 1; 0 if none has left this one."""


class Entries(NamedTuple):
    """The entries of all buckets."""

    clause: npt.NDArray[np.uint32]
    predicate: npt.NDArray[np.int32]
    """What the clause asks of its next attribute, or -1."""
    attribute: npt.NDArray[np.int32]
    """Its next attribute, or NOTHING."""


class Structures(NamedTuple):
    """By attribute structure."""

    attribute: npt.NDArray[np.int32]
    bucket: npt.NDArray[np.int32]
    """The bucket that it is below."""
    kind: npt.NDArray[np.int8]
    root: npt.NDArray[np.int32]
    """Of an undivided one its bucket, otherwise the root of its tree, if that is one."""
    first: npt.NDArray[np.int32]
    """The first of its buckets; of a free one, the next free one."""
    count: npt.NDArray[np.int64]
    """Clauses in its buckets, and in all structures below."""


class Database(NamedTuple):
    """All of it. Buckets are the items of both kinds of trees."""

    buckets: Buckets
    entries: Entries
    structures: Structures
    by_attribute: HashTable
    """From bucket << 32 | attribute to the structure."""
    by_code: HashTable
    """From structure << 32 | code to the bucket, of structures that are divided so."""
    intervals: IntervalTrees
    ranges: PrioritySearchTrees
    bucket_of: npt.NDArray[np.int32]
    """By clause: the bucket that it is in, or -1."""
    reach: npt.NDArray[np.int32]
    """By clause: how many of its words, the first ones, ask of some attribute to be there."""
    records: npt.NDArray[np.int32]
    """By clause: what verifying it takes (`structures.kernels.records`)."""
    frequency: npt.NDArray[np.int64]
    """By attribute: how many words ask so."""
    preferred: npt.NDArray[np.int8]
    """By attribute: what is to divide its structures, or UNDIVIDED to choose by what is asked."""
    sample: npt.NDArray[np.int64]
    """Room for the ends of 2 * SAMPLE intervals."""
    spare: npt.NDArray[np.int64]
    """Totals (below)."""


END_BUCKET, FREE_BUCKET, END_STRUCTURE, FREE_STRUCTURE, END_ENTRY, SIZE, WANTED, TOTALS = range(8)
"""Where unused numbers begin, and the first of those that are free again (or -1); how many entries a bucket is to
have at most; and for how many entries there was no room."""
