"""Finding the held clauses that asked constraints meet, in one segment."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.symmetric.memory.kernels.encoding import Asked, SegmentArrays, encode, forget
from harken.symmetric.memory.kernels.layout import (
    ABSENT,
    ANY,
    AROUND,
    AXES,
    AXES_AT,
    AXIS,
    BOXES_AT,
    CLAUSES,
    FAN,
    FAN_BITS,
    FIRST_AT,
    FIRST_ITEM,
    FLAG_BITS,
    IN_PLACE,
    INSIDE,
    ITEMS,
    ITEMS_AT,
    LEADS,
    LEAF,
    LOOSE,
    NEVER,
    NOTE,
    NOTE_ATTRIBUTE,
    NOTE_AXIS,
    NOTE_COUNT,
    NOTE_MODE,
    OPEN_TREE,
    OVERLAP,
    OWNERS_AT,
    ROW,
    ROW_HIGH,
    ROW_LOW,
    ROWS_AT,
    SAME,
    SCATTERED_UNDER,
    SCATTERED_WITH,
    SEVERAL,
    TREE,
    TREE_AXES,
    TREE_AXES_AT,
    TREES_AT,
    TREES_UNDER_AT,
    TREES_WITH,
    TREES_WITH_AT,
    UNSURE,
)

_MANY = 1 << 60
_EACH = -1


@tight
def find(
    words: npt.NDArray[np.int32],
    keys: npt.NDArray[np.float64],
    text_at: npt.NDArray[np.int64],
    text: npt.NDArray[np.uint8],
    alive: npt.NDArray[np.uint8],
    stream: npt.NDArray[np.float64],
    asked_text: npt.NDArray[np.uint8],
    scratch: npt.NDArray[np.int32],
    out: npt.NDArray[np.int64],
) -> int:
    """The owners that asked constraints meet, in columns of `out`: place, slot, flags.

    Returns how many, shifted left by FLAG_BITS, and the flags that any of them has. If there is no room for all,
    the count still is right. `scratch` needs room for an axis and a number of the stream each. O(log n + k) for
    constraints that few clauses come near.
    """
    segment = SegmentArrays(words, keys, text_at, text, alive)
    axes = words[AXES]
    state, notes = scratch[:axes], scratch[axes:]
    for axis in range(axes):
        state[axis] = ABSENT
    found, at = 0, 2
    for _ in range(np.int64(stream[1])):
        asked = Asked(state, notes, stream[0] != 0, np.int64(stream[at]), np.int64(stream[at + 1]), out)
        at, noted = encode(segment, asked, stream, asked_text, at)
        if not asked.decides:
            found = _find_under_each(segment, asked, noted, found)
        elif asked.attributes:
            found = _find_with_one(segment, asked, noted, found)
        else:
            found = _find_all(segment, asked, found)
        forget(asked, noted)
    return found


# ---------------------------------------------------------------- comparing


@part
def _overlaps(notes: npt.NDArray[np.int32], note: int, low: int, high: int) -> bool:
    """Whether one of the asked intervals, which ascend, has a code in common with this one."""
    first, last = 0, np.int64(notes[note + NOTE_COUNT]) - 1
    note += NOTE
    while first < last:
        middle = (first + last) // 2
        if notes[note + 2 * middle + 1] < low:
            first = middle + 1
        else:
            last = middle
    return notes[note + 2 * first] <= high and low <= notes[note + 2 * first + 1]


@part
def _fits(notes: npt.NDArray[np.int32], note: int, low: int, high: int) -> bool:
    """Whether a held interval lies as is asked."""
    mode = notes[note + NOTE_MODE] & ~LOOSE
    if mode == OVERLAP:
        return _overlaps(notes, note, low, high)
    if mode in (ANY, NEVER):
        return mode == ANY
    asked_low, asked_high = notes[note + NOTE], notes[note + NOTE + 1]
    if mode == SAME:
        return low == asked_low and high == asked_high
    if mode == INSIDE:
        return asked_low <= low and high <= asked_high
    return low <= asked_low and asked_high <= high


@part
def _may_fit(notes: npt.NDArray[np.int32], note: int, low: int, high: int) -> bool:
    """Whether something in a bounding box may lie as is asked."""
    mode = notes[note + NOTE_MODE] & ~LOOSE
    if mode in (OVERLAP, INSIDE):
        return _overlaps(notes, note, low, high)
    if mode in (SAME, AROUND):
        return low <= notes[note + NOTE] and notes[note + NOTE + 1] <= high
    return mode == ANY


@part
def _closeness(segment: SegmentArrays, asked: Asked, clause: int) -> int:
    """Whether a clause and the asked constraint match: -1 if not, otherwise the flags of the find."""
    words = segment.words
    at = words[ROWS_AT] + ROW * np.int64(words[words[FIRST_AT] + clause])
    end = words[ROWS_AT] + ROW * np.int64(words[words[FIRST_AT] + clause + 1])
    flags, covered = 0, 0
    while at < end:
        axis = words[at]
        note = asked.state[axis]
        fits = note == ABSENT and asked.decides
        while at < end and words[at] == axis:
            if not fits and note != ABSENT:
                fits = _fits(asked.notes, note, words[at + ROW_LOW], words[at + ROW_HIGH])
            at += ROW
        if not fits:
            return -1
        if note != ABSENT:
            covered += words[words[AXES_AT] + AXIS * axis + LEADS]
            if asked.notes[note + NOTE_MODE] & LOOSE:
                flags = UNSURE
    if asked.decides and covered != asked.attributes:
        return -1
    return flags


@part
def _take(segment: SegmentArrays, asked: Asked, clause: int, found: int) -> int:
    """Count the clause in, if it matches and its owner is alive."""
    flags = _closeness(segment, asked, clause)
    if flags < 0:
        return found
    owner = segment.words[segment.words[OWNERS_AT] + clause]
    if segment.alive[owner >> 1] == 0:
        return found
    if owner & 1:
        flags |= SEVERAL
    count = found >> FLAG_BITS
    if count < asked.out.shape[1]:
        asked.out[0, count] = asked.place
        asked.out[1, count] = owner >> 1
        asked.out[2, count] = flags
    return ((count + 1) << FLAG_BITS) | (found & (SEVERAL | UNSURE)) | flags


# ---------------------------------------------------------------- trees


@part
def _covers(words: npt.NDArray[np.int32], asked: Asked, tree: int) -> bool:
    """Whether the attributes that count are constrained on both sides, by sets that can meet."""
    covered = 0
    for place in range(words[tree + TREE_AXES]):
        axis = words[words[tree + TREE_AXES_AT] + place]
        note = asked.state[axis]
        if note == ABSENT:
            if not asked.decides:
                return False
        elif asked.notes[note + NOTE_MODE] == NEVER:
            return False
        else:
            covered += words[words[AXES_AT] + AXIS * axis + LEADS]
    return not asked.decides or covered == asked.attributes


@tight
def _find_in_tree(segment: SegmentArrays, asked: Asked, tree: int, found: int) -> int:
    words = segment.words
    leaf, items = np.int64(words[tree + LEAF]), np.int64(words[tree + ITEMS])
    node = -1
    while True:
        node = _next_node(words, asked, tree, 0, node + 1)
        if node < 0:
            return found
        for item in range(node * leaf, min(items, (node + 1) * leaf)):
            if words[tree + ITEMS_AT] == IN_PLACE:
                clause = words[tree + FIRST_ITEM] + item
            else:
                clause = words[words[tree + ITEMS_AT] + item]
            found = _take(segment, asked, clause, found)


@part
def _next_node(words: npt.NDArray[np.int32], asked: Asked, tree: int, floor: int, node: int) -> int:
    """The first node of a level, from this one on, whose box and all boxes above may fit; -1 if there is none.

    Subtrees that do not fit are passed over whole: a node that begins one is looked at from the highest level on
    which it does. The floor must not be above the highest level.
    """
    axes, leaf = np.int64(words[tree + TREE_AXES]), np.int64(words[tree + LEAF])
    nodes = (np.int64(words[tree + ITEMS]) + leaf - 1) // leaf
    base, width = np.int64(words[tree + BOXES_AT]), 2 * axes
    for level in range(floor):
        base += _nodes_at(nodes, level) * width
    level = floor
    here = _nodes_at(nodes, level)
    while True:
        while node & (FAN - 1) == 0 and here > FAN:
            base += here * width
            level += 1
            node >>= FAN_BITS
            here = _nodes_at(nodes, level)
        if node >= here:
            return -1
        while _box_may_fit(words, asked, words[tree + TREE_AXES_AT], axes, base + node * width):
            if level == floor:
                return node
            level -= 1
            node <<= FAN_BITS
            here = _nodes_at(nodes, level)
            base -= here * width
        node += 1


@part
def _nodes_at(nodes: int, level: int) -> int:
    shift = FAN_BITS * level
    return (nodes + (1 << shift) - 1) >> shift


@part
def _box_may_fit(words: npt.NDArray[np.int32], asked: Asked, axes_at: int, axes: int, at: int) -> bool:
    for place in range(axes):
        note = asked.state[words[axes_at + place]]
        if note != ABSENT and not _may_fit(asked.notes, note, words[at + 2 * place], words[at + 2 * place + 1]):
            return False
    return True


# ---------------------------------------------------------------- access


@part
def _find_all(segment: SegmentArrays, asked: Asked, found: int) -> int:
    """Whatever there is: the asked constraint decides, and asks nothing."""
    for clause in range(segment.words[CLAUSES]):
        found = _take(segment, asked, clause, found)
    return found


@part
def _find_with_one(segment: SegmentArrays, asked: Asked, noted: int, found: int) -> int:
    """The asked constraint decides: what has the attribute that the fewest have, or come near on."""
    best, fewest = -1, _MANY
    for attribute in range(asked.attributes):
        near = _trees_with(segment.words, asked, noted, attribute)
        if near < fewest:
            best, fewest = attribute, near
    found = _find_listed(segment, asked, noted, best, TREES_WITH_AT, found)
    best, fewest = -1, _MANY
    for attribute in range(asked.attributes):
        near = _scattered_near(segment.words, asked, noted, attribute, fewest)
        if near < fewest:
            best, fewest = attribute, near
    return _find_scattered(segment, asked, noted, best, SCATTERED_WITH, found)


@part
def _find_under_each(segment: SegmentArrays, asked: Asked, noted: int, found: int) -> int:
    """The held clauses decide: what is listed under an attribute that is asked."""
    words = segment.words
    if words[OPEN_TREE] >= 0:
        found = _find_in_tree(segment, asked, words[TREES_AT] + TREE * words[OPEN_TREE], found)
    found = _find_listed(segment, asked, noted, _EACH, TREES_UNDER_AT, found)
    return _find_scattered(segment, asked, noted, _EACH, SCATTERED_UNDER, found)


@part
def _trees_with(words: npt.NDArray[np.int32], asked: Asked, noted: int, attribute: int) -> int:
    """How many trees of clauses in place have an attribute."""
    count, note = 0, 0
    while note < noted:
        if asked.notes[note + NOTE_ATTRIBUTE] == attribute:
            count += words[words[AXES_AT] + AXIS * asked.notes[note + NOTE_AXIS] + TREES_WITH]
        note += NOTE + 2 * asked.notes[note + NOTE_COUNT]
    return count


@tight
def _scattered_near(words: npt.NDArray[np.int32], asked: Asked, noted: int, attribute: int, enough: int) -> int:
    """About how many nodes of scattered clauses come near on an attribute; counting ends at `enough`."""
    near, note = 0, 0
    while note < noted and near < enough:
        number = words[words[AXES_AT] + AXIS * asked.notes[note + NOTE_AXIS] + SCATTERED_WITH]
        if asked.notes[note + NOTE_ATTRIBUTE] == attribute and number >= 0:
            tree = words[TREES_AT] + TREE * number
            floor = 1 if words[tree + ITEMS] > FAN else 0
            node = -1
            while near < enough:
                node = _next_node(words, asked, tree, floor, node + 1)
                if node < 0:
                    break
                near += 1
        note += NOTE + 2 * asked.notes[note + NOTE_COUNT]
    return near


@tight
def _find_listed(segment: SegmentArrays, asked: Asked, noted: int, attribute: int, which: int, found: int) -> int:
    """What is in the trees of clauses in place that are listed under an attribute, or under each."""
    words, note = segment.words, 0
    while note < noted:
        if attribute == _EACH or asked.notes[note + NOTE_ATTRIBUTE] == attribute:
            at = words[AXES_AT] + AXIS * asked.notes[note + NOTE_AXIS] + which
            for place in range(words[at], words[at] + words[at + 1]):
                tree = words[TREES_AT] + TREE * words[place]
                if _covers(words, asked, tree):
                    found = _find_in_tree(segment, asked, tree, found)
        note += NOTE + 2 * asked.notes[note + NOTE_COUNT]
    return found


@tight
def _find_scattered(
    segment: SegmentArrays, asked: Asked, noted: int, attribute: int, which: int, found: int
) -> int:
    """What is in the trees of scattered clauses under an attribute, or under each."""
    words, note = segment.words, 0
    while note < noted:
        number = words[words[AXES_AT] + AXIS * asked.notes[note + NOTE_AXIS] + which]
        if number >= 0 and (attribute == _EACH or asked.notes[note + NOTE_ATTRIBUTE] == attribute):
            found = _find_in_tree(segment, asked, words[TREES_AT] + TREE * number, found)
        note += NOTE + 2 * asked.notes[note + NOTE_COUNT]
    return found
