"""What the kernels share: the arrays that they work in while they read one text, and what numbers in these mean.

Everything is rows of integers. Places that are taken are counted in `tops`; taking one more than there are marks
the text as declined, and goes on with the last: so no kernel has to look whether another one failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from harken.jit import called
from harken.model.limits import Limits
from harken.normal.compiled import TYPE_CODE

INT, FLOAT, STRING, BOOL, DATE = (TYPE_CODE[name] for name in ("int", "float", "string", "bool", "date"))


def numbers(count: int) -> list[int]:
    """Numbers from 0, as numpy has them: a function is compiled anew for each plain one that it is called with."""
    return list(np.arange(count))


NOTHING = numbers(1)[0]
"""Where a function wants a number, and none means anything."""

# Rows of `literal`; the first two are FALSE and TRUE. Strings are where they stand in the text, without quotes.
TYPE, INTEGER, BEGIN, PAST = numbers(4)
SAYS_FALSE, SAYS_TRUE = numbers(2)

# Rows of `node`, in postfix order: what it is, the attribute of a leaf, and more that depends on what it is.
SORT, ATTRIBUTE, FIRST, SECOND, FLAGS, NEGATED, ABOVE = numbers(7)
# Sorts: COMPARED (comparator, literal), RANGED (low, high, which are closed), LISTED (first literal, how many),
# PRESENCE (whether it has to be there); inner nodes have in ATTRIBUTE how many terms they have. Whether NOTs
# negate it, and the connective that it stands under when those are gone, is filled in later.
COMPARED, RANGED, LISTED, PRESENCE, AND, OR, NOT = numbers(7)
ROOT = -1 + NOTHING
"""Instead of a connective above."""
LOW_CLOSED, HIGH_CLOSED = 2, 1

EQ, NE, LT, LE, GT, GE = numbers(6)
"""Comparators, in the order in which the model has them."""

# Rows of `constraint`: its form, kind, bounds (literals, or -1) and a run of `value`: those a span excludes.
FORM, KIND, LOW, LOW_IN, HIGH, HIGH_IN, VALUES, COUNT = numbers(8)
ABSENT, PRESENT, ONE_OF, SPAN = numbers(4)
NUMBERS, STRINGS, BOOLS, DATES = numbers(4)
EMPTY = -1 + NOTHING
"""Instead of a constraint or a clause that nothing satisfies."""

# Places in `tops`: how many rows of each array are taken; the steps spent; whether the text is declined.
LITERALS, NODES, CONSTRAINTS, VALUES_TAKEN, ENTRIES, CLAUSES, LISTS, STEPS, DECLINED = numbers(9)

MOST_SYMBOLS = 516
MOST = (516, 516, 4_100, 8_200, 16_390, 4_100, 8_200)
"""How many rows there are of each, from LITERALS to LISTS.

No powers of two: then all arrays would begin at the same place of a page, and drive each other out of the cache.
"""


class Work(Protocol):
    """Room for one text: one record of arrays, as handing on many arrays would take longer than the work does."""

    symbol: npt.NDArray[np.int64]
    """The parser's stack: rows of state and value."""
    literal: npt.NDArray[np.int64]
    as_float: npt.NDArray[np.float64]
    """Literals that are numbers, as floats; exact, or the text is declined."""
    node: npt.NDArray[np.int64]
    term: npt.NDArray[np.int64]
    """A stack of terms: rows of node (or -1), and of first and count in `listed`."""
    run: npt.NDArray[np.int64]
    """A stack of parts of the expression: how many terms each has, and more on the way down."""
    constraint: npt.NDArray[np.int64]
    value: npt.NDArray[np.int64]
    """Literals, in runs."""
    entry: npt.NDArray[np.int64]
    """Rows of attribute and constraint, in runs: what clauses ask."""
    clause: npt.NDArray[np.int64]
    """Rows of first and count in `entry`."""
    listed: npt.NDArray[np.int64]
    """Clauses, in runs."""
    tops: npt.NDArray[np.int64]
    most: npt.NDArray[np.int64]
    limits: npt.NDArray[np.int64]
    """The depth, the clauses and the steps that a text may have."""


DEPTH, MOST_MET, MOST_STEPS = numbers(3)
_UNBOUNDED = 1 << 60


_WORK = np.dtype(
    [
        ("symbol", np.int64, (MOST_SYMBOLS, 2)),
        ("literal", np.int64, (MOST[LITERALS], 4)),
        ("as_float", np.float64, (MOST[LITERALS],)),
        ("node", np.int64, (MOST[NODES], 7)),
        ("term", np.int64, (2 * MOST[NODES], 3)),
        ("run", np.int64, (2 * MOST[NODES], 3)),
        ("constraint", np.int64, (MOST[CONSTRAINTS], 8)),
        ("value", np.int64, (MOST[VALUES_TAKEN],)),
        ("entry", np.int64, (MOST[ENTRIES], 2)),
        ("clause", np.int64, (MOST[CLAUSES], 2)),
        ("listed", np.int64, (MOST[LISTS],)),
        ("tops", np.int64, (DECLINED + 1,)),
        ("most", np.int64, (len(MOST),)),
        ("limits", np.int64, (3,)),
    ],
    align=True,
)


def workspace(limits: Limits) -> Sequence[Work]:
    """Room for texts of these limits: an array of the one record, which kernels have to take out themselves."""
    work = np.zeros(1, _WORK).view(np.recarray)
    bounds = [min(int(each), _UNBOUNDED) for each in (limits.max_depth, limits.max_clauses, limits.max_work)]
    work[0].limits[:], work[0].most[:] = bounds, MOST
    work[0].literal[:2, TYPE] = BOOL
    work[0].literal[SAYS_TRUE, INTEGER] = 1
    return work


@called
def taken(work: Work, what: int) -> int:
    """Take one more row of an array; the last one, and the text is declined, if there is none."""
    at = work.tops[what]
    if at >= work.most[what]:
        work.tops[DECLINED] = 1
        return int(at - 1)
    work.tops[what] = at + 1
    return int(at)


@called
def add_node(work: Work, sort: int, attribute: int, first: int, second: int, flags: int) -> int:
    """One more node."""
    node, at = work.node, taken(work, NODES)
    node[at, SORT], node[at, ATTRIBUTE] = sort, attribute
    node[at, FIRST], node[at, SECOND], node[at, FLAGS], node[at, NEGATED] = first, second, flags, 0
    return at


@called
def spend(work: Work, steps: int) -> None:
    """Count steps, as the normal form does; past the limit it is for others to say so."""
    work.tops[STEPS] += steps
    if work.tops[STEPS] > work.limits[MOST_STEPS]:
        work.tops[DECLINED] = 1


@called
def kind_of(work: Work, literal: int) -> int:
    """The kind of a literal."""
    its_type = work.literal[literal, TYPE]
    if its_type == STRING:
        return STRINGS
    if its_type == BOOL:
        return BOOLS
    return DATES if its_type == DATE else NUMBERS


@called
def compared(work: Work, data: npt.NDArray[np.uint8], one: int, other: int) -> int:
    """-1, 0 or 1 as a literal is less than, equal to or greater than another of its kind."""
    literal = work.literal
    if literal[one, TYPE] == STRING:
        begin, past = literal[other, BEGIN], literal[other, PAST]
        return _compared_texts(data, literal[one, BEGIN], literal[one, PAST], begin, past)
    if literal[one, TYPE] == FLOAT or literal[other, TYPE] == FLOAT:
        low, high = work.as_float[one], work.as_float[other]
        return int(low > high) - int(low < high)
    a, b = literal[one, INTEGER], literal[other, INTEGER]
    return int(a > b) - int(a < b)


@called
def _compared_texts(data: npt.NDArray[np.uint8], a: int, a_past: int, b: int, b_past: int) -> int:
    """UTF-8 bytes are in the order of code points."""
    while a < a_past and b < b_past:
        if data[a] != data[b]:
            return -1 if data[a] < data[b] else 1
        a += 1
        b += 1
    return int(a < a_past) - int(b < b_past)
