"""Which clauses go into which trees, in which order, and how the trees lie in a segment.

Clauses of the same axes that are many share a tree of all those axes: then whatever an asked constraint says about
several attributes narrows the search at once. The scattered, of which only few have the same axes, stand in a tree
for each dimension, and what is found there is compared as a whole. Of 1,000 clauses on (price, size), 1,000 on
(price) and one on (price, colour), the trees are

    in place     (price, size)   (price)
    scattered    price: 1 item   colour: 1 item

An item of a tree in place is the bounding box of a whole clause; one of a tree of scattered clauses is that of a
clause on one dimension. In both cases it is some rows, one after the other, of `Clauses.boxes`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from harken.matching.runs import changes, edges, ranges, starts
from harken.model import capacity
from harken.symmetric.memory.clauses import Clauses, runs_of, taken
from harken.symmetric.memory.kernels import layout
from harken.symmetric.memory.kernels.building import pack
from harken.symmetric.memory.kernels.layout import FAN, HEADER, IN_PLACE, ClauseRows, Mask, Places, Words

MOST_TREES = 4096
"""Trees of clauses in place. Each is looked at by itself: with too many of them little would be won."""

LEAF_IN_PLACE = 16
"""Clauses to a node, where they lie one after the other."""


@dataclass(slots=True)
class Packing:
    """How clauses are to be laid, and the trees over them."""

    order: Places
    """Which clause comes where."""
    open_tree: int
    """That of clauses that ask nothing, or -1."""
    trees: Words
    access: Words
    """By axis: SCATTERED_WITH to TREES_UNDER of kernels/layout.py."""
    words: Words
    """The segment up to the end of what trees and lists consist of; the header is to be filled in."""


@dataclass(slots=True)
class _Items:
    """What some trees are over, tree by tree. All items of a tree have the same axes."""

    counts: Places
    """By tree: how many items it has."""
    width: Places
    """By tree: how many axes it has."""
    clause: Places
    row: Places
    """By item: its first row among the boxes. It has as many as its tree has axes."""

    @property
    def first_rows(self) -> Places:
        """By tree: the first row of its first item."""
        return self.row[starts(self.counts)]


def packed(clauses: Clauses, leads: Mask, smallest_tree: int) -> Packing:
    """The trees for clauses. O(n log n)."""
    boxes = clauses.boxes()
    together, rest = _together(boxes, smallest_tree)
    scattered, under = _scattered(clauses, boxes, leads, rest)
    trees, words, clause = _laid(boxes, clauses.codes, [together, scattered, under])
    in_place = len(together.clause)
    order = np.concatenate([clause[:in_place], rest])
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order))
    # The items of all trees that are not in place lie one after the other, as clauses by the place they will have.
    items_at = HEADER + int(trees[:, layout.TREE_AXES].sum())
    words[items_at : items_at + len(clause) - in_place] = place[clause[in_place:]]
    lists, access = _listed(together, boxes, leads, len(words))
    number = len(together.counts)
    for column, each in ((layout.SCATTERED_WITH, scattered), (layout.SCATTERED_UNDER, under)):
        access[boxes.axis[each.first_rows], column] = np.arange(number, number + len(each.counts))
        number += len(each.counts)
    nothing = np.flatnonzero(together.width == 0)
    open_tree = int(nothing[0]) if len(nothing) else -1
    return Packing(order, open_tree, trees, access[:, layout.SCATTERED_WITH :], np.concatenate([words, lists]))


# ---------------------------------------------------------------- items


def _together(boxes: ClauseRows, smallest_tree: int) -> tuple[_Items, Places]:
    """The trees of clauses that have the same axes, and the clauses that no such tree has."""
    groups = _groups(boxes)
    sizes = np.bincount(groups)
    chosen = _chosen(boxes, groups, sizes, smallest_tree)
    tree = np.full(len(sizes), len(chosen))
    tree[chosen] = np.arange(len(chosen))
    by_tree = np.argsort(tree[groups].astype(np.uint16), kind="stable")
    counts = sizes[chosen]
    members, rest = np.split(by_tree, [counts.sum()])
    width = np.diff(boxes.first)[members[starts(counts)]]
    return _Items(counts, width, members, boxes.first[members]), rest


def _groups(boxes: ClauseRows) -> Places:
    """A number for each clause, the same for those of the same axes."""
    bytes_at = boxes.first * boxes.axis.itemsize
    buffers = [None, pa.py_buffer(bytes_at), pa.py_buffer(np.ascontiguousarray(boxes.axis))]
    axes = pa.Array.from_buffers(pa.large_binary(), len(bytes_at) - 1, buffers)
    return np.asarray(axes.dictionary_encode().indices.to_numpy(), np.int64)


def _chosen(boxes: ClauseRows, groups: Places, sizes: Places, smallest_tree: int) -> Places:
    """The groups that have trees of their own.

    Clauses that ask nothing always have one: there is no axis to find them under.
    """
    large = np.flatnonzero(sizes >= smallest_tree)
    if len(large) > MOST_TREES:
        large = large[np.argsort(-sizes[large], kind="stable")[:MOST_TREES]]
    asking_nothing = np.flatnonzero(np.diff(boxes.first) == 0)[:1]
    return np.union1d(large, groups[asking_nothing])


def _scattered(clauses: Clauses, boxes: ClauseRows, leads: Mask, rest: Places) -> tuple[_Items, _Items]:
    """The trees of all dimensions of scattered clauses, and of only that where the fewest others overlap each."""
    best = _least_crowded(taken(clauses.rows, rest), leads, clauses.codes)
    lengths = boxes.first[rest + 1] - boxes.first[rest]
    row = ranges(boxes.first[rest], lengths)
    clause, axis, best = np.repeat(rest, lengths), boxes.axis[row], np.repeat(best, lengths)
    leading, is_best = leads[axis], best == axis
    return (
        _by_dimension(boxes, leads, clause[leading], row[leading]),
        _by_dimension(boxes, leads, clause[is_best], row[is_best]),
    )


def _least_crowded(rows: ClauseRows, leads: Mask, codes: Places) -> Words:
    """For each clause the leading axis of the dimension on which the fewest others overlap it.

    What overlaps on an axis is what begins no later, less what ends before. Both are counted through all axes: on
    those before, as many end as begin.
    """
    if not len(rows.axis):
        return rows.axis
    base = starts(codes + 1)[rows.axis]
    size = int((codes + 1).sum())
    begun, ended = (np.cumsum(np.bincount(base + at, minlength=size)) for at in (rows.low, rows.high + 1))
    clause, at = runs_of(rows)
    crowd = np.add.reduceat(begun[base + rows.high] - ended[base + rows.low], at)
    clause, axis = clause[at], rows.axis[at]
    leading = np.flatnonzero(leads[axis])
    # The lesser of its two axes, where a dimension has two; of dimensions alike, the first.
    crowd = np.minimum.reduceat(crowd, leading) * len(at) + leading
    fewest: Places = np.minimum.reduceat(crowd, np.flatnonzero(changes(clause[leading]))) % len(at)
    return axis[fewest]


def _by_dimension(boxes: ClauseRows, leads: Mask, clause: Places, row: Places) -> _Items:
    """One tree for each dimension that clauses have."""
    order = np.argsort(boxes.axis[row], kind="stable")
    axes, counts = np.unique(boxes.axis[row], return_counts=True)
    # After an axis that leads comes the other one of its dimension, or one that leads again.
    width = np.where(np.append(leads, True)[axes + 1], 1, 2)
    return _Items(counts, width, clause[order], row[order])


# ---------------------------------------------------------------- trees


def _laid(boxes: ClauseRows, codes: Places, several: list[_Items]) -> tuple[Words, Words, Places]:
    """The rows of trees, the first of which are in place; words with what they consist of; the items' clauses.

    Trees consist of axes, items if those are not in place (to be filled in), and bounding boxes.
    """
    counts = np.concatenate([each.counts for each in several])
    width = np.concatenate([each.width for each in several])
    row = np.concatenate([each.row for each in several])
    in_place = np.arange(len(counts)) < len(several[0].counts)
    leaf = np.where(in_place, LEAF_IN_PLACE, 1)
    axis = boxes.axis[ranges(row[starts(counts)], width)]
    own = np.where(in_place, 0, counts)
    at = HEADER + edges(np.concatenate([[len(axis)], own, 2 * width * _nodes(counts, leaf)]))
    capacity.check("words of one segment", int(at[-1]), capacity.SEGMENT_WORDS)
    items_at, boxes_at = at[1 : len(counts) + 1], at[len(counts) + 1 : -1]
    trees = np.zeros((len(counts), layout.TREE), np.int32)
    trees[:, layout.ITEMS_AT] = np.where(in_place, IN_PLACE, items_at)
    trees[:, layout.FIRST_ITEM] = np.where(in_place, starts(counts), 0)
    trees[:, layout.ITEMS], trees[:, layout.LEAF], trees[:, layout.TREE_AXES] = counts, leaf, width
    trees[:, layout.TREE_AXES_AT], trees[:, layout.BOXES_AT] = HEADER + starts(width), boxes_at
    words = np.empty(at[-1], np.int32)
    words[HEADER : HEADER + len(axis)] = axis
    rows = ranges(row, np.repeat(width, counts))
    item_boxes = np.column_stack([boxes.low[rows], boxes.high[rows]]).ravel()
    item_boxes_at = starts(2 * width * counts)
    order = _along_one_axis(counts, width, item_boxes_at, item_boxes)
    pack(trees, item_boxes_at, item_boxes, codes, order, words)
    clause = np.concatenate([each.clause for each in several])
    return trees, words, clause[order + np.repeat(starts(counts), counts)]


def _along_one_axis(counts: Places, width: Places, boxes_at: Places, boxes: Words) -> Places:
    """For each place which of its tree's items comes there, where trees have one axis; others are as they are."""
    tree = np.repeat(np.arange(len(counts)), counts)
    order = np.arange(len(tree)) - starts(counts)[tree]
    flat = width[tree] == 1
    at = boxes_at[tree[flat]] + 2 * order[flat]
    by_box = np.argsort((boxes[at].astype(np.int64) << 32) | boxes[at + 1])
    if len(counts) > 1:
        by_box = by_box[np.argsort(tree[flat][by_box], kind="stable")]
    order[flat] = order[flat][by_box]
    return order


def _nodes(counts: Places, leaf: Places) -> Places:
    """How many nodes trees have, on all levels together."""
    level = -(-counts // leaf)
    total = level.copy()
    while (level > FAN).any():
        level = np.where(level > FAN, -(-level // FAN), 0)
        total += level
    return total


def _listed(together: _Items, boxes: ClauseRows, leads: Mask, begin: int) -> tuple[Words, Words]:
    """Lists of trees in place, to be laid at an address; and by axis, where two of them are, and their lengths.

    The first has all trees that have the axis, the second those that are listed under it only: each tree under
    that of its axes which the fewest trees have.
    """
    tree = np.repeat(np.arange(len(together.width)), together.width)
    axis = boxes.axis[ranges(together.first_rows, together.width)]
    tree, axis = tree[leads[axis]], axis[leads[axis]]
    access = np.full((len(leads), layout.AXIS), -1, np.int32)
    lists = []
    crowd = np.bincount(axis, minlength=len(leads))
    by_crowd = np.lexsort((crowd[axis], tree))
    first_of_tree = by_crowd[np.unique(tree[by_crowd], return_index=True)[1]]
    for column, kept in ((layout.TREES_WITH_AT, np.arange(len(tree))), (layout.TREES_UNDER_AT, first_of_tree)):
        kept = kept[np.argsort(axis[kept], kind="stable")]
        counts = np.bincount(axis[kept], minlength=len(leads))
        access[:, column], access[:, column + 1] = begin + starts(counts), counts
        lists.append(tree[kept].astype(np.int32))
        begin += len(kept)
    return np.concatenate(lists), access
