"""Which clauses go into which trees, and in which order.

Clauses of the same axes that are many share a tree of all those axes: then whatever an asked constraint says about
several attributes narrows the search at once. The scattered, of which only few have the same axes, stand in a tree
for each dimension, and what is found there is compared as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from harken.symmetric.memory.clauses import Clauses
from harken.symmetric.memory.kernels.building import bounding_boxes, is_alike, least_crowded, signatures
from harken.symmetric.memory.kernels.layout import (
    AXIS,
    BOXES_AT,
    IN_PLACE,
    ITEMS_AT,
    SCATTERED_WITH,
    TREE_AXES_AT,
    TREES_UNDER_AT,
    TREES_WITH_AT,
)
from harken.symmetric.memory.orders import Mask, Places
from harken.symmetric.memory.trees import Items, Words, absolute, laid

MOST_TREES = 4096
"""Trees of clauses in place. Each is looked at by itself: with too many of them little would be won."""

LEAF_IN_PLACE = 16
"""Clauses to a node, where they lie one after the other."""


@dataclass(slots=True)
class Packing:
    """How clauses are to be laid, and the trees over them. Addresses count from the beginning of `body`."""

    order: Places
    """Which clause comes where."""
    open_tree: int
    """That of clauses that ask nothing, or -1."""
    trees: Words
    body: Words
    """What trees and lists consist of."""
    access: Words
    """By axis: SCATTERED_WITH to TREES_UNDER of kernels/layout.py."""

    def move(self, begin: int) -> None:
        """Let all addresses count from where the body will begin."""
        self.trees[:, [TREE_AXES_AT, BOXES_AT]] += begin
        self.trees[:, ITEMS_AT] += np.where(self.trees[:, ITEMS_AT] == IN_PLACE, 0, begin).astype(np.int32)
        self.access[:, [TREES_WITH_AT - SCATTERED_WITH, TREES_UNDER_AT - SCATTERED_WITH]] += begin


def packed(clauses: Clauses, leads: Mask, smallest_tree: int) -> Packing:
    """The trees for clauses. O(n log n)."""
    together = _Together(clauses, leads, smallest_tree)
    scattered = _Scattered.of(clauses, leads, together.rest)
    under = scattered.only(scattered.is_least_crowded)
    items = [together.items, scattered.items(), under.items()]
    trees, body, order = laid(clauses.codes, items)
    at = int(together.items.counts.sum())
    whole = np.concatenate([together.members[absolute(together.items.counts, order[:at])], together.rest])
    access = np.full((len(clauses.axes), AXIS - SCATTERED_WITH), -1, np.int32)
    begin = len(together.items.counts)
    for column, each in enumerate((scattered, under)):
        local = absolute(each.counts, order[at : at + len(each.clause)])
        # Items are clauses by the place they will have.
        first = int(trees[begin, ITEMS_AT]) if len(each.axes) else 0
        body[first : first + len(local)] = each.clause[local] + len(together.members)
        access[each.axes, column] = np.arange(begin, begin + len(each.axes))
        at, begin = at + len(each.clause), begin + len(each.axes)
    lists, access[:, TREES_WITH_AT - SCATTERED_WITH :] = together.listed(len(body))
    return Packing(whole, together.open_tree, trees, np.concatenate([body, lists]), access)


class _Together:
    """The trees of clauses that have the same axes."""

    def __init__(self, clauses: Clauses, leads: Mask, smallest_tree: int) -> None:
        self._leads = leads
        groups = _groups(clauses)
        sizes = np.bincount(groups)
        chosen = _chosen(clauses, groups, sizes, smallest_tree)
        tree = np.full(len(sizes) + 1, len(chosen))
        tree[chosen] = np.arange(len(chosen))
        by_tree = np.argsort(tree[groups].astype(np.uint16), kind="stable")
        counts = sizes[chosen]
        self.members = by_tree[: counts.sum()]
        """Clauses, tree by tree."""
        self.rest = by_tree[counts.sum() :]
        """Those that no tree has."""
        models = self.members[np.cumsum(counts) - counts]
        rows, of_tree = _rows(clauses, models)
        new = np.ones(len(rows), np.bool_)
        new[1:] = (of_tree[1:] != of_tree[:-1]) | (clauses.axis[rows[1:]] != clauses.axis[rows[:-1]])
        axes = np.bincount(of_tree[new], minlength=len(chosen))
        boxes = np.empty((2 * axes * counts).sum(), np.int32)
        bounding_boxes(clauses.first, clauses.axis, clauses.low, clauses.high, self.members, boxes)
        self.items = Items(counts, LEAF_IN_PLACE, True, axes, clauses.axis[rows[new]], boxes)
        nothing = np.flatnonzero(axes == 0)
        self.open_tree = int(nothing[0]) if len(nothing) else -1

    def listed(self, begin: int) -> tuple[Words, Words]:
        """Lists of trees, to be laid at an address; by axis, where two of them are, and their lengths.

        The first has all trees that have the axis, the second those that are listed under it only.
        """
        tree = np.repeat(np.arange(len(self.items.axes)), self.items.axes)
        leading = self._leads[self.items.axis]
        tree, axis = tree[leading], self.items.axis[leading]
        access = np.zeros((len(self._leads), 4), np.int32)
        lists = []
        crowd = np.bincount(axis, minlength=len(self._leads))
        by_crowd = np.lexsort((crowd[axis], tree))
        first_of_tree = by_crowd[np.unique(tree[by_crowd], return_index=True)[1]]
        for column, kept in ((0, np.arange(len(tree))), (2, first_of_tree)):
            kept = kept[np.argsort(axis[kept], kind="stable")]
            counts = np.bincount(axis[kept], minlength=len(self._leads))
            access[:, column], access[:, column + 1] = begin + np.cumsum(counts) - counts, counts
            lists.append(tree[kept].astype(np.int32))
            begin += len(kept)
        return np.concatenate(lists), access


def _groups(clauses: Clauses) -> Places:
    """A number for each clause, the same for those of the same axes."""
    if not len(clauses):
        return np.zeros(0, np.int64)
    hashed = np.empty(len(clauses), np.uint64)
    seed = np.uint64(0)
    while True:
        signatures(clauses.first, clauses.axis, seed, hashed)
        encoded = pa.array(hashed).dictionary_encode()
        groups = np.array(encoded.indices.to_numpy(), np.int32)
        models = np.empty(len(encoded.dictionary), np.int64)
        models[groups[::-1]] = np.arange(len(groups))[::-1]
        if is_alike(clauses.first, clauses.axis, groups, models):
            return groups.astype(np.int64)
        seed += np.uint64(1)


def _chosen(clauses: Clauses, groups: Places, sizes: Places, smallest_tree: int) -> Places:
    """The groups that have trees of their own.

    Clauses that ask nothing always have one: there is no axis to find them under.
    """
    large = np.flatnonzero(sizes >= smallest_tree)
    if len(large) > MOST_TREES:
        large = large[np.argsort(-sizes[large], kind="stable")[:MOST_TREES]]
    asking_nothing = np.flatnonzero(np.diff(clauses.first) == 0)[:1]
    return np.union1d(large, groups[asking_nothing])


def _rows(clauses: Clauses, members: Places) -> tuple[Places, Places]:
    """The rows of some clauses, one clause after the other, and which of them each is of."""
    lengths = clauses.first[members + 1] - clauses.first[members]
    begin = np.cumsum(lengths) - lengths
    rows = np.arange(lengths.sum()) + np.repeat(clauses.first[members] - begin, lengths)
    return rows, np.repeat(np.arange(len(members)), lengths)


@dataclass(slots=True)
class _Scattered:
    """Scattered clauses by dimension: their boxes on each axis that leads and, for shapes, on the next."""

    clause: Places
    """Counted among the scattered; ordered by axis."""
    axis: Words
    """Which leads."""
    box: Words
    """Low and high, twice; what stands there for an axis that is not there means nothing."""
    width: Places
    """How many axes the dimension has."""
    is_least_crowded: Mask
    """Whether fewer others overlap the clause here than in its other dimensions."""

    @classmethod
    def of(cls, clauses: Clauses, leads: Mask, rest: Places) -> _Scattered:
        rows, clause = _rows(clauses, rest)
        axis, low, high = clauses.axis[rows], clauses.low[rows], clauses.high[rows]
        first = np.concatenate([[0], np.cumsum(np.bincount(clause, minlength=len(rest)))])
        new = np.ones(len(axis), np.bool_)
        new[1:] = (clause[1:] != clause[:-1]) | (axis[1:] != axis[:-1])
        starts = np.flatnonzero(new)
        if not len(starts):
            return cls(clause, axis, np.zeros((0, 4), np.int32), clause, new)
        best = np.empty(len(rest), np.int32)
        least_crowded(first, axis, low, high, leads, clauses.codes, best)
        lows, highs = np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)
        leading = leads[axis[starts]]
        place = np.flatnonzero(leading)
        # What comes after an axis that leads is the other one of its dimension, or leads again.
        after = np.minimum(place + 1, len(starts) - 1)
        box = np.stack([lows[place], highs[place], lows[after], highs[after]], axis=1)
        order = np.argsort(axis[starts[place]], kind="stable")
        clause, axis = clause[starts[place]][order], axis[starts[place]][order]
        return cls(clause, axis, box[order], np.where(leading[after], 1, 2)[order], best[clause] == axis)

    def only(self, kept: Mask) -> _Scattered:
        """Some of them."""
        return _Scattered(
            self.clause[kept], self.axis[kept], self.box[kept], self.width[kept], self.is_least_crowded[kept]
        )

    @property
    def axes(self) -> Places:
        """The axes that lead, ascending; each has a tree."""
        return np.asarray(np.unique(self.axis), np.int64)

    @property
    def counts(self) -> Places:
        """By tree, its items."""
        return np.asarray(np.unique(self.axis, return_counts=True)[1], np.int64)

    def items(self) -> Items:
        """The items of one tree for each axis that leads."""
        axes, first = np.unique(self.axis, return_index=True)
        width = self.width[first]
        axis = np.repeat(axes, width) + np.arange(width.sum()) - np.repeat(np.cumsum(width) - width, width)
        used = np.arange(4) < 2 * self.width[:, None]
        return Items(self.counts, 1, False, width, axis.astype(np.int32), self.box[used])
