"""Making a segment of clauses: reading them from columns, and the boxes of the nodes over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from harken.jit import kernel, tight
from harken.symmetric.memory.kernels import layout
from harken.symmetric.memory.kernels.arranging import arrange
from harken.symmetric.memory.kernels.layout import FAN

if TYPE_CHECKING:
    from harken.symmetric.memory.kernels.layout import Mask, Places, Words


@tight
def mark_repeated(clause: Places, attribute: Words, seen_in: Places, repeated: Mask) -> None:
    """Which runs of predicates come back to an attribute, after another one in the same clause.

    `seen_in` has room for a clause for each attribute.
    """
    seen_in[:] = -1
    for run in range(len(clause)):
        repeated[run] = seen_in[attribute[run]] == clause[run]
        seen_in[attribute[run]] = clause[run]


@tight
def sort_rows(first: Places, axis: Words, order: Places) -> None:
    """The order that brings the rows of each clause to ascending axes; clauses are short, so by insertion."""
    for clause in range(len(first) - 1):
        for row in range(first[clause], first[clause + 1]):
            place = row
            while place > first[clause] and axis[order[place - 1]] > axis[row]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = row


@kernel
def pack(trees: Words, boxes_at: Places, boxes: Words, codes: Places, order: Places, words: Words) -> None:
    """Arrange the items of trees of several axes, and fill in the bounding boxes of all trees' nodes.

    Trees have their rows already, with addresses in `words`, which has their axes. The boxes of a tree's items
    begin at boxes_at; items of all trees follow each other, and `order` says for each place which of its tree's
    items comes there.
    """
    begin = 0
    for tree in range(len(trees)):
        count, leaf = np.int64(trees[tree, layout.ITEMS]), np.int64(trees[tree, layout.LEAF])
        axes, boxes_first = np.int64(trees[tree, layout.TREE_AXES]), np.int64(trees[tree, layout.BOXES_AT])
        own = boxes[boxes_at[tree] : boxes_at[tree] + 2 * axes * count].reshape((count, 2 * axes))
        places = order[begin : begin + count]
        if axes > 1:
            axes_at = trees[tree, layout.TREE_AXES_AT]
            arrange(own, words[axes_at : axes_at + axes], codes, leaf, places)
        _lay_boxes(own[places], leaf, words[boxes_first:])
        begin += count


@kernel
def _lay_boxes(level: Words, size: int, words: Words) -> None:
    """The bounding boxes of nodes, lowest level first: of so many items each, and above that of FAN nodes each."""
    at, width = 0, level.shape[1]
    while True:
        nodes = (len(level) + size - 1) // size
        above = words[at : at + nodes * width].reshape((nodes, width))
        for node in range(nodes):
            for column in range(width):
                bound = level[node * size, column]
                for each in range(node * size + 1, min(len(level), (node + 1) * size)):
                    other = level[each, column]
                    bound = min(bound, other) if column % 2 == 0 else max(bound, other)
                above[node, column] = bound
        if nodes <= FAN:
            break
        level, size, at = above, FAN, at + nodes * width
