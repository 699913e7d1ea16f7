"""How a segment lies in memory: nearly all of it in one array of 32-bit words.

A kernel takes each array in at a cost, and a single match asks every segment. So what a segment has is laid end to
end behind a header that says where things begin, in words.

**Axes.** A dimension is an attribute together with the form of the sets on it; its values lie on one axis, those
of shapes on two (x, y), the first of which leads. Each axis has the distinct constants of the segment, ascending.
A value has the code 2i + 1 if it equals the i-th constant, and 2i if it lies just before that and after the one
before. So open and closed ends on every type are closed intervals of codes, and two intervals meet exactly if
those do, provided that one of them is made of the segment's constants.

**Clauses** are rows (axis, low, high), ascending by axis; several rows of one axis are alternatives. A clause's
word is its owner's slot and, in the lowest bit, whether the owner has several clauses.

**Trees.** Items lie in an order that keeps near what is near on all axes. Each node has a bounding box: low and
high on each axis of the tree. A node of level 0 holds `leaf` items, one of a higher level FAN nodes of the level
below; levels follow each other, lowest first, up to one of at most FAN nodes. Clauses of the same axes that are
many have a tree of their own, whose items are those clauses in place. The others, the **scattered**, stand at the
end of the clauses and are items of trees of one dimension.

**Access.** If the asked constraint decides which attributes count, whatever matches has each of those: so trees,
and scattered clauses, are listed under all of their dimensions, and one asked attribute is enough to find them. If
the held ones decide, whatever matches has no other attributes than those asked: so each is listed under one of its
dimensions only, the least crowded, and all asked attributes are looked at.

**Asked constraints** come as one stream of 64-bit floats, which hold all that is needed exactly: whether they
decide, their number, and then each: place, attributes, asks, and that many asks: axis, attribute (counted from 0),
mode, intervals, and that many intervals of two bounds. A bound is a key, a rest and a nudge, as in `forms`; of
a text the key and the rest say where its bytes begin and end; one without a limit has an infinite key.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Words: TypeAlias = npt.NDArray[np.int32]
Places: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Mask: TypeAlias = npt.NDArray[np.bool_]


class ClauseRows(NamedTuple):
    """Clauses as columns: clause c has the rows first[c] to first[c + 1], ascending by axis."""

    first: Places
    axis: Words
    low: Words
    high: Words


AXES, AXES_AT, CLAUSES, FIRST_AT, ROWS_AT, OWNERS_AT, TREES_AT, OPEN_TREE, RESTS_AT = range(9)
"""Header words: axes and where, clauses, where their rows begin, the rows, the owners, the trees; the tree of
clauses that ask nothing, or -1; where in the keys the rests begin (0: all are zero)."""
HEADER = 16

AXIS = 11
NUMBER, IS_TEXT, LEADS, CONSTANTS_AT, CONSTANTS = range(5)
"""An axis: its number in the store, whether it is of texts, whether it leads, its constants."""
SCATTERED_WITH, SCATTERED_UNDER, TREES_WITH_AT, TREES_WITH, TREES_UNDER_AT, TREES_UNDER = range(5, AXIS)
"""And its access: the tree of scattered clauses that have it, that of those that are listed under it only (-1:
none); the trees of clauses in place that have it, and those that are listed under it only."""

TREE = 7
ITEMS_AT, FIRST_ITEM, ITEMS, LEAF, TREE_AXES_AT, TREE_AXES, BOXES_AT = range(TREE)
"""A tree: where its items' clauses are (-1: the items are clauses in place, from FIRST_ITEM on), how many there
are, how many to a node; its axes; the bounding boxes of its nodes."""
IN_PLACE = -1

ROW = 3
ROW_AXIS, ROW_LOW, ROW_HIGH = range(ROW)

FAN_BITS = 4
FAN = 1 << FAN_BITS

ASK, BOUND, INTERVAL = 4, 3, 6
"""Numbers in the stream for an ask without its intervals, a bound, an interval."""

NEVER, ANY, OVERLAP, SAME, INSIDE, AROUND = range(6)
"""How held intervals have to lie to asked ones: in no way will do, any will, with a code in common, equal, inside
the asked one, around it."""
LOOSE = 8
"""Added to a mode: this is necessary, but whether it is enough has to be seen."""

NOTE = 5
NOTE_AXIS, NOTE_ATTRIBUTE, NOTE_MODE, NOTE_COUNT, NOTE_CODES_AT = range(NOTE)
"""What is noted of an ask: its axis, attribute, mode and how many intervals it has. Their codes, a low and a high
one each, come after the notes of all asks."""
ABSENT = -1
"""In place of a note: the asked constraint says nothing of the attribute."""

SEVERAL, UNSURE = 1, 2
"""Of a find: its owner may be found more than once; it has to be looked at more closely."""
FLAG_BITS = 2
