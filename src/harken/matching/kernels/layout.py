"""How an index lies in memory. Everything is a flat array, so that an index can be saved, mapped and shared.

**Blocks.** A cluster is a block of 32-bit words that starts on a cache line (16 words). A header of six words
(below) is followed by `width` columns of `capacity` predicate words each, and one column of entry ids. Columns,
because most entries fail on the first predicate: then the others are never read.

**Predicate words** are numbers of predicates. The truth of each for the event at hand stands in the truth
vector: FALSE, TRUE, or UNKNOWN until it is evaluated, which happens at most once, where it is first met.

**Entry ids** are slots; or, with the SHARED bit, numbers of shared clauses, which have a list of owners: clauses
that several subscriptions ask for, and those of subscriptions that have several.

**The directory** maps access paths to blocks (in cache lines from the start of the words; 0 is none). Each
table owns a region of it: table t has the entries from base[t] on.

**Filters** (clusters/kernels/filters.py) stand before the clusters of keys, and say of most that nothing matches.

**Bands.** The constants that order predicates of a dimension compare with are cut into bands of about equal size,
and clauses stand in **cells** by the bands that their bounds lie in: upper bounds by band, lower bounds by band,
and ranges in a pyramid of ever wider bands, each at the level where it spans no more than two. Where many ask for
several ranges, they stand in **pairs** of sectors, of several bands each (clusters/kernels/pairs.py).
"""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Scalar = TypeVar("Scalar", bound=np.generic)

Matrix: TypeAlias = Annotated[npt.NDArray[Scalar], 2]
"""An array of rows and columns. All other arrays of the structures below have one axis, which need not be said."""

LINE = 16
"""Words in a cache line."""

HEADER = 6
LENGTH, CAPACITY, WIDTH, NEXT, TABLE, KEY = range(HEADER)
"""Header words: entries, room for them, predicates per entry, next block of this access path, whose it is."""

SHARED = 1 << 31

FALSE, TRUE, UNKNOWN = range(3)
"""What the truth vector says of a predicate."""

FILTERED = 8
FILTER = 2 * FILTERED
"""Entries that a filter has room for, and its words (clusters/kernels/filters.py)."""

NARROW = 2
"""Entries that a narrow filter has room for, with a word each."""

NEVER, ALWAYS, SHORT_SHIFT = range(3)
"""Words of a filter: those of predicates are their numbers, shifted by two that are never and always true."""

SHORT_NUMBERS = (1 << 16) - SHORT_SHIFT
"""Predicates below this can be words of a filter."""

FILTER_BITS = 32
"""A place that an event opens is a place in the directory, and above so many bits the number of its filter."""

# Where in a table's region an access path's entry is, by table: at 0, by predicate, by dimension, by cell, by key.
ALL_TABLE, PREDICATE_TABLE, PRESENCE_TABLE, RANGE_TABLE, FIRST_KEY_TABLE = range(5)

INTERVAL, DIFFERENT, IS_ABSENT, IS_PRESENT, EQUAL, MEMBER, TESTED = range(7)
"""Operators of predicates, each on one dimension. The first four can be evaluated where they are met."""

MISSING, UNLISTED = -1, 0
"""Codes of an event in a dimension: no value there, or one that equals no constant; constants count from 1."""

LOWEST, HIGHEST = -(2**62), 2**62
"""Bounds of an interval that has none."""

NO_VALUE = LOWEST - 1
"""Instead of a label, where an event has no value: within the bounds of no interval."""

BANDS = 64
LEVELS = 7
"""Levels of the pyramid: 64 bands, 32 pairs of bands, and so on to all."""

ABOVE_CELLS, BETWEEN_CELLS, CELLS = BANDS, 2 * BANDS, 4 * BANDS
"""Cells of one dimension: BANDS for upper bounds, BANDS for lower bounds, then the pyramid, level by level."""

CELL_WORDS = CELLS // 64
"""Words of `Tables.cells` for one dimension."""

SIDE = 8
SECTORS = 3 * SIDE
"""Sectors of one dimension: SIDE for upper bounds, SIDE for lower bounds, SIDE for ranges."""

PAIRED = 64
"""The first so many of the dimensions that have bands have sectors."""

PAIRS_TABLE, PAIRS_OPEN, IN_PAIRS = range(3)
"""Of `Tables.pairs`: which table has places for pairs, or 0; whether clauses may enter it; then by sector."""

GREATEST = HIGHEST - 2
"""Bound of intervals that have no greatest label, where they are compared: less NO_VALUE, it is a number still."""

INTERVAL_WORDS = 4
"""Words of what an order predicate asks for, side by side: the place of its dimension's value in `Scratch.value`,
the least and the greatest label, and one to spare, so that none is on two cache lines. Of other predicates all are
0, and so is what stands at that place: they ask for no label."""


class PredicateArrays(NamedTuple):
    """What finding out the truth of predicates needs. Dimensions index *_first."""

    equal_first: npt.NDArray[np.int64]
    """equal[equal_first[d] + code] is the predicate `dimension d = that constant`, or -1."""
    equal: npt.NDArray[np.int32]
    member_head: npt.NDArray[np.int32]
    """The sets that hold a constant, linked: by the constant's place in `equal` to the first node, or -1."""
    member_next: npt.NDArray[np.int32]
    member: npt.NDArray[np.int32]
    operator: npt.NDArray[np.int8]
    dimension: npt.NDArray[np.int32]
    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]
    interval: npt.NDArray[np.int64]
    """INTERVAL_WORDS for each predicate."""
    initial: npt.NDArray[np.uint8]
    """What is known of a predicate before an event: FALSE if phase one finds those that hold, else UNKNOWN."""
    cell: npt.NDArray[np.int32]
    """Where in the range table a clause can stand for a predicate, or -1."""
    banded: npt.NDArray[np.int32]
    """The dimensions that have bands; the k-th has the cells from k * CELLS on."""
    band_first: npt.NDArray[np.int64]
    """The labels where bands begin, BANDS - 1 for each banded dimension, ascending."""


class Clauses(NamedTuple):
    """New clauses: clause j is words[first[j] : first[j + 1]], distinct predicates."""

    first: npt.NDArray[np.int64]
    words: npt.NDArray[np.int64]
    slot: npt.NDArray[np.int64]
    """Whose clause it is."""
    alone: npt.NDArray[np.bool_]
    """Whether that subscription has no other."""


class Tables(NamedTuple):
    """The access paths. Key table t looks at the dimensions from first[t] to first[t + 1]."""

    base: npt.NDArray[np.int64]
    first: npt.NDArray[np.int32]
    dimension: npt.NDArray[np.int32]
    stride: npt.NDArray[np.int64]
    """A key's place in the region is the sum of code times stride."""
    radix: npt.NDArray[np.int64]
    """Codes below this have a place."""
    digit: Matrix[np.int32]
    """A row for each open key table, those with wide filters last: its number, and which digits add up to its
    keys, two or at least four."""
    digits: Matrix[np.int64]
    """What keys are made of, each once however many tables have it: one row (below) per digit."""
    closed: npt.NDArray[np.bool_]
    """Whether no clause may enter and no event looks there."""
    population: npt.NDArray[np.int64]
    filter: npt.NDArray[np.int64]
    """The number of the first key's filter, or 0 if there is none; others follow, away from 0. Filter n begins at
    word n * FILTER, or at -n * NARROW if it is narrow, which numbers below 0 are."""
    cells: npt.NDArray[np.uint64]
    """By bits: the cells of the range table in which clauses stand, or have stood."""
    pairs: npt.NDArray[np.int64]
    """The table of pairs, which is one without keys; and of each sector, how many clauses stand under it."""


DIGIT_DIMENSION, DIGIT_RADIX, DIGIT_STRIDE, DIGIT = range(4)
"""Columns of a digit: what a code of this dimension, if it is below the radix, adds to a key."""

NOTHING, FIRST_DIGIT = range(2)
"""A digit of no dimension, which fills up the rows of shorter keys; and the first one that is of some."""

NO_KEY = -(1 << 48)
"""What a value adds to keys that there are not: whatever the others add, the sum is below 0."""


class Chances(NamedTuple):
    """How likely an event opens an access path."""

    selectivity: npt.NDArray[np.float32]
    """Of each predicate: that it holds."""
    presence: npt.NDArray[np.float32]
    """Of each dimension: that there is a value."""
    cell: npt.NDArray[np.float32]
    """Of each cell of the range table."""


class Blocks(NamedTuple):
    """Clusters, the directory that finds them, and whose their entries are."""

    words: npt.NDArray[np.uint32]
    directory: npt.NDArray[np.uint32]
    filters: npt.NDArray[np.uint16]
    """FILTER words each, or NARROW. The first is of no key."""
    block_of: npt.NDArray[np.uint32]
    """By slot: the block that holds its clause; with the SHARED bit, its first node instead; 0 if it has none."""
    shared_block: npt.NDArray[np.uint32]
    """By shared clause: the block that holds it."""
    shared_head: npt.NDArray[np.int32]
    """By shared clause: its first node."""
    nodes: Matrix[np.int32]
    """Who owns shared clauses: one row (below) per owner and clause."""
    spare: npt.NDArray[np.int64]
    """What is free (below)."""


SLOT, CLAUSE, AFTER, BEFORE, SIBLING, NODE = range(6)
"""Columns of a node: its owner, the shared clause, the clause's next and previous node, the owner's next node."""

ALONE, LAST = -1, -2
"""Instead of a sibling: its owner has this clause only; this is the last of several."""

FREE_SHARED, END_SHARED, FREE_NODE, END_NODE, SPARE = range(5)
"""Heads of the lists of free shared clauses and nodes, and where unused ones begin."""


class Events(NamedTuple):
    """Encoded events: code per column, order label per ordered column, other satisfied predicates.

    Columns stand for dimensions that some of the events have; column 0 for all others, and is missing throughout.
    """

    code: Matrix[np.int32]
    label: Matrix[np.int64]
    column: npt.NDArray[np.int32]
    """By dimension: its column, or 0."""
    dimension: npt.NDArray[np.int32]
    """By column: the dimension it stands for, or -1; then it is missing throughout."""
    label_column: npt.NDArray[np.int32]
    """By column: which column of `label` it has, or -1."""
    band: npt.NDArray[np.int32]
    """By column: which of the banded dimensions it stands for, or -1."""
    also_first: npt.NDArray[np.int64]
    also: npt.NDArray[np.int32]
    order: npt.NDArray[np.int64]
    """The events in the order in which they are matched; none if that is their own."""


RING = 16
"""Events under way, at most."""


GROUP, GROUP_COLUMNS = 1_024, 128
"""Events that are looked up together (clusters/kernels/together.py), and columns of codes that they may have."""


class Scratch(NamedTuple):
    """The state of one matching call; the index itself is only read."""

    truth: npt.NDArray[np.uint8]
    """What is known of each predicate for the event at hand; between events, what is known before."""
    short: npt.NDArray[np.uint8]
    """The same truths by the words of filters: shifted, so that they share their memory."""
    touched: npt.NDArray[np.int32]
    """The predicates whose truth has been found out for the event at hand."""
    value: npt.NDArray[np.int64]
    """By dimension, from 1 on: the order label of the event at hand, or NO_VALUE. The first is 0."""
    places: npt.NDArray[np.int64]
    """What events under way open, each in a share of its own."""
    opened: npt.NDArray[np.int64]
    """How many places each event under way has opened."""
    candidates: npt.NDArray[np.int64]
    """What events have opened that may match, as pairs: the event, and the place or later the block."""
    digits: npt.NDArray[np.int64]
    """By digit: what the value of the event at hand adds to keys, or NO_KEY."""
    waiting: npt.NDArray[np.int64]
    """Entries of short clusters whose first predicate may hold, as pairs: where it is, where its block begins."""
    survivors: npt.NDArray[np.int64]
    """Where the entries of one long cluster are of which no predicate has been found false."""
    counts: npt.NDArray[np.int64]
    """Counters (below)."""
    columns: npt.NDArray[np.int32]
    """By digit: the column of its dimension in the events at hand."""
    sectors: npt.NDArray[np.int64]
    """The sectors in use that an event opens."""
    group_code: npt.NDArray[np.uint16]
    """Of events that are looked up together, GROUP at most: codes, an event a row. None if no events are."""
    group_digits: npt.NDArray[np.int64]
    """What each adds to keys, by digit."""
    group_keys: npt.NDArray[np.int64]
    """The keys that each has in one table."""
    group_words: npt.NDArray[np.uint32]
    """By word of filters: the column of codes, and the code there, that make it true."""
    group_found: npt.NDArray[np.uint32]
    """What filters let through: events and rows of `Tables.digit`."""
    group_places: npt.NDArray[np.int64]
    """Where that is in the directory, event by event."""
    group_first: npt.NDArray[np.int64]
    """By event: where its places begin; up to where those of the next do."""


VISITS, CHECKS, TOUCHED, REPEATS, COUNTERS = range(5)
"""Totals of the call: blocks visited, entries checked; of the event at hand, predicates touched; and how many
results may be there twice, being of subscriptions with several clauses."""


class Reading(NamedTuple):
    """What it takes to read events from dictionaries (reading.py)."""

    objects: npt.NDArray[np.int64]
    """Where they are."""
    steps: Matrix[np.int64]
    """What to do with the values of a class under a name: a row for each class, for each number of a name."""


class Results(NamedTuple):
    """Where matches are written: the event and the slot of each."""

    event: npt.NDArray[np.int64]
    slot: npt.NDArray[np.int64]
