"""Finding the held clauses that asked constraints meet, in one segment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from harken.jit import called, part, tight
from harken.symmetric.memory.kernels import layout
from harken.symmetric.memory.kernels.encoding import Asked, SegmentArrays, axis_word, encode, forget
from harken.symmetric.memory.kernels.layout import FAN, FAN_BITS, NOTE

if TYPE_CHECKING:
    from harken.symmetric.memory.kernels.layout import Bytes, Floats, Places, Words

_MANY = 1 << 60
_EACH = -1
"""In place of an attribute."""


@tight
def find(
    words: Words,
    keys: Floats,
    text_at: Places,
    text: Bytes,
    alive: Bytes,
    stream: Floats,
    asked_text: Bytes,
    scratch: Words,
    out: Places,
) -> int:
    """The owners that asked constraints meet, in columns of `out`: place, slot, flags.

    Returns how many, shifted left by FLAG_BITS, and the flags that any of them has. If there is no room for all,
    the count still is right. `scratch` needs a word for each axis and two for each number of the stream.
    O(log n + k) for constraints that few clauses come near.
    """
    segment = SegmentArrays(words, keys, text_at, text, alive)
    axes = words[layout.AXES]
    state, notes = scratch[:axes], scratch[axes:]
    for axis in range(axes):
        state[axis] = layout.ABSENT
    # Of one type from the first call on: for each other, all that is called would be compiled once more.
    found, at = np.int64(0), np.int64(2)
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
def _overlaps(notes: Words, note: int, low: int, high: int) -> bool:
    """Whether one of the asked intervals, which ascend, has a code in common with this one."""
    codes_at = np.int64(notes[note + layout.NOTE_CODES_AT])
    first, last = 0, np.int64(notes[note + layout.NOTE_COUNT]) - 1
    while first < last:
        middle = (first + last) // 2
        if notes[codes_at + 2 * middle + 1] < low:
            first = middle + 1
        else:
            last = middle
    return notes[codes_at + 2 * first] <= high and low <= notes[codes_at + 2 * first + 1]


@part
def _fits(notes: Words, note: int, low: int, high: int) -> bool:
    """Whether a held interval lies as is asked."""
    mode = notes[note + layout.NOTE_MODE] & ~layout.LOOSE
    if mode == layout.OVERLAP:
        return _overlaps(notes, note, low, high)
    if mode in (layout.ANY, layout.NEVER):
        return mode == layout.ANY
    codes_at = notes[note + layout.NOTE_CODES_AT]
    asked_low, asked_high = notes[codes_at], notes[codes_at + 1]
    if mode == layout.SAME:
        return low == asked_low and high == asked_high
    if mode == layout.INSIDE:
        return asked_low <= low and high <= asked_high
    return low <= asked_low and asked_high <= high


@part
def _may_fit(notes: Words, note: int, low: int, high: int) -> bool:
    """Whether something in a bounding box may lie as is asked."""
    mode = notes[note + layout.NOTE_MODE] & ~layout.LOOSE
    if mode in (layout.OVERLAP, layout.INSIDE):
        return _overlaps(notes, note, low, high)
    if mode in (layout.SAME, layout.AROUND):
        codes_at = notes[note + layout.NOTE_CODES_AT]
        return low <= notes[codes_at] and notes[codes_at + 1] <= high
    return mode == layout.ANY


@part
def _closeness(segment: SegmentArrays, asked: Asked, clause: int) -> int:
    """Whether a clause and the asked constraint match: -1 if not, otherwise the flags of the find."""
    words = segment.words
    at = words[layout.ROWS_AT] + layout.ROW * np.int64(words[words[layout.FIRST_AT] + clause])
    end = words[layout.ROWS_AT] + layout.ROW * np.int64(words[words[layout.FIRST_AT] + clause + 1])
    flags, covered = 0, 0
    while at < end:
        axis = words[at]
        note = asked.state[axis]
        fits = note == layout.ABSENT and asked.decides
        while at < end and words[at] == axis:
            if not fits and note != layout.ABSENT:
                fits = _fits(asked.notes, note, words[at + layout.ROW_LOW], words[at + layout.ROW_HIGH])
            at += layout.ROW
        if not fits:
            return -1
        if note != layout.ABSENT:
            covered += axis_word(words, axis, layout.LEADS)
            if asked.notes[note + layout.NOTE_MODE] & layout.LOOSE:
                flags = layout.UNSURE
    if asked.decides and covered != asked.attributes:
        return -1
    return flags


@part
def _take(segment: SegmentArrays, asked: Asked, clause: int, found: int) -> int:
    """Count the clause in, if it matches and its owner is alive."""
    flags = _closeness(segment, asked, clause)
    if flags < 0:
        return found
    owner = segment.words[segment.words[layout.OWNERS_AT] + clause]
    if segment.alive[owner >> 1] == 0:
        return found
    if owner & 1:
        flags |= layout.SEVERAL
    count = found >> layout.FLAG_BITS
    if count < asked.out.shape[1]:
        asked.out[0, count] = asked.place
        asked.out[1, count] = owner >> 1
        asked.out[2, count] = flags
    return ((count + 1) << layout.FLAG_BITS) | (found & (layout.SEVERAL | layout.UNSURE)) | flags


# ---------------------------------------------------------------- trees


@part
def _covers(words: Words, asked: Asked, tree: int) -> bool:
    """Whether the attributes that count are constrained on both sides, by sets that can meet."""
    covered = 0
    for place in range(words[tree + layout.TREE_AXES]):
        axis = words[words[tree + layout.TREE_AXES_AT] + place]
        note = asked.state[axis]
        if note == layout.ABSENT:
            if not asked.decides:
                return False
        elif asked.notes[note + layout.NOTE_MODE] == layout.NEVER:
            return False
        else:
            covered += axis_word(words, axis, layout.LEADS)
    return not asked.decides or covered == asked.attributes


@called
def _find_in_tree(segment: SegmentArrays, asked: Asked, tree: int, found: int) -> int:
    words = segment.words
    leaf, items = np.int64(words[tree + layout.LEAF]), np.int64(words[tree + layout.ITEMS])
    node = -1
    while True:
        node = _next_node(words, asked, tree, np.int64(0), node + 1)
        if node < 0:
            return found
        for item in range(node * leaf, min(items, (node + 1) * leaf)):
            if words[tree + layout.ITEMS_AT] == layout.IN_PLACE:
                clause = np.int64(words[tree + layout.FIRST_ITEM] + item)
            else:
                clause = np.int64(words[words[tree + layout.ITEMS_AT] + item])
            found = _take(segment, asked, clause, found)


@part
def _next_node(words: Words, asked: Asked, tree: int, floor: int, node: int) -> int:
    """The first node of a level, from this one on, whose box and all boxes above may fit; -1 if there is none.

    Subtrees that do not fit are passed over whole. Which nodes are above and below follows from their numbers,
    here with four to each:

        level 1          0                1                2
        level 0     0  1  2  3       4  5  6  7       8  9  10  11

    From 4 on, which is the first one below 1, it is 1 that is looked at first. If that does not fit, 2 is next; if
    it does, 4. The level that is asked for, the floor, must not be above the highest one.
    """
    axes, leaf = np.int64(words[tree + layout.TREE_AXES]), np.int64(words[tree + layout.LEAF])
    leaves = (np.int64(words[tree + layout.ITEMS]) + leaf - 1) // leaf
    boxes_at, width = np.int64(words[tree + layout.BOXES_AT]), 2 * axes
    for level in range(floor):
        boxes_at += _nodes_at(leaves, level) * width
    level = floor
    nodes = _nodes_at(leaves, level)
    while True:
        while node & (FAN - 1) == 0 and nodes > FAN:  # up
            boxes_at += nodes * width
            level += 1
            node >>= FAN_BITS
            nodes = _nodes_at(leaves, level)
        if node >= nodes:
            return -1
        while _box_may_fit(words, asked, words[tree + layout.TREE_AXES_AT], axes, boxes_at + node * width):
            if level == floor:
                return node
            level -= 1  # down
            node <<= FAN_BITS
            nodes = _nodes_at(leaves, level)
            boxes_at -= nodes * width
        node += 1


@part
def _nodes_at(leaves: int, level: int) -> int:
    """How many nodes a level has."""
    shift = FAN_BITS * level
    return (leaves + (1 << shift) - 1) >> shift


@part
def _box_may_fit(words: Words, asked: Asked, axes_at: int, axes: int, at: int) -> bool:
    for place in range(axes):
        note, low_at = asked.state[words[axes_at + place]], at + 2 * place
        if note != layout.ABSENT and not _may_fit(asked.notes, note, words[low_at], words[low_at + 1]):
            return False
    return True


# ---------------------------------------------------------------- access


@part
def _find_all(segment: SegmentArrays, asked: Asked, found: int) -> int:
    """Whatever there is: the asked constraint decides, and asks nothing."""
    for clause in range(np.int64(segment.words[layout.CLAUSES])):
        found = _take(segment, asked, clause, found)
    return found


@part
def _find_with_one(segment: SegmentArrays, asked: Asked, noted: int, found: int) -> int:
    """The asked constraint decides: what has the attribute that the fewest have, or come near on."""
    listed, fewest_trees = np.int64(-1), _MANY
    scattered, fewest_near = np.int64(-1), np.int64(_MANY)
    for attribute in range(asked.attributes):
        trees = _trees_with(segment.words, asked, noted, attribute)
        if trees < fewest_trees:
            listed, fewest_trees = attribute, trees
        near = _scattered_near(segment.words, asked, noted, attribute, fewest_near)
        if near < fewest_near:
            scattered, fewest_near = attribute, near
    found = _find_listed(segment, asked, noted, listed, layout.TREES_WITH_AT, found)
    return _find_scattered(segment, asked, noted, scattered, layout.SCATTERED_WITH, found)


@part
def _find_under_each(segment: SegmentArrays, asked: Asked, noted: int, found: int) -> int:
    """The held clauses decide: what is listed under an attribute that is asked."""
    if segment.words[layout.OPEN_TREE] >= 0:
        found = _find_in_tree(segment, asked, _tree_at(segment.words, segment.words[layout.OPEN_TREE]), found)
    found = _find_listed(segment, asked, noted, np.int64(_EACH), layout.TREES_UNDER_AT, found)
    return _find_scattered(segment, asked, noted, np.int64(_EACH), layout.SCATTERED_UNDER, found)


@part
def _tree_at(words: Words, number: int) -> int:
    return words[layout.TREES_AT] + layout.TREE * number


@part
def _is_about(asked: Asked, note: int, attribute: int) -> bool:
    """Whether a note is about an attribute, or that may be any."""
    return attribute == _EACH or asked.notes[note + layout.NOTE_ATTRIBUTE] == attribute


@part
def _trees_with(words: Words, asked: Asked, noted: int, attribute: int) -> int:
    """How many trees of clauses in place have an attribute."""
    count = 0
    for note in range(0, noted, NOTE):
        if _is_about(asked, note, attribute):
            count += axis_word(words, asked.notes[note + layout.NOTE_AXIS], layout.TREES_WITH)
    return count


@called
def _scattered_near(words: Words, asked: Asked, noted: int, attribute: int, enough: int) -> int:
    """About how many nodes of scattered clauses come near on an attribute; counting ends at `enough`."""
    near = 0
    for note in range(0, noted, NOTE):
        number = axis_word(words, asked.notes[note + layout.NOTE_AXIS], layout.SCATTERED_WITH)
        if number >= 0 and _is_about(asked, note, attribute):
            tree = _tree_at(words, number)
            floor = np.int64(1 if words[tree + layout.ITEMS] > FAN else 0)
            node = -1
            while near < enough:
                node = _next_node(words, asked, tree, floor, node + 1)
                if node < 0:
                    break
                near += 1
    return near


@called
def _find_listed(segment: SegmentArrays, asked: Asked, noted: int, attribute: int, which: int, found: int) -> int:
    """What is in the trees of clauses in place that are listed under an attribute, or under each."""
    words = segment.words
    for note in range(0, noted, NOTE):
        if _is_about(asked, note, attribute):
            axis = asked.notes[note + layout.NOTE_AXIS]
            first = axis_word(words, axis, which)
            for place in range(first, first + axis_word(words, axis, which + 1)):
                tree = _tree_at(words, words[place])
                if _covers(words, asked, tree):
                    found = _find_in_tree(segment, asked, tree, found)
    return found


@called
def _find_scattered(
    segment: SegmentArrays, asked: Asked, noted: int, attribute: int, which: int, found: int
) -> int:
    """What is in the trees of scattered clauses under an attribute, or under each."""
    for note in range(0, noted, NOTE):
        number = axis_word(segment.words, asked.notes[note + layout.NOTE_AXIS], which)
        if number >= 0 and _is_about(asked, note, attribute):
            found = _find_in_tree(segment, asked, _tree_at(segment.words, number), found)
    return found
