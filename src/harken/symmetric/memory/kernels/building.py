"""Making a segment of clauses: reading them from columns, splitting them, and the boxes of the nodes over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from harken.jit import kernel, tight
from harken.symmetric.memory.kernels import layout
from harken.symmetric.memory.kernels.arranging import arrange
from harken.symmetric.memory.kernels.layout import FAN, ClauseRows

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


@tight
def _next_axis(axis: Words, row: int, end: int) -> int:
    """The row after all that have the axis of this one."""
    row += 1
    while row < end and axis[row] == axis[row - 1]:
        row += 1
    return row


@tight
def count_parts(rows: ClauseRows, most_rows: int, split_at: Places, parts: Places) -> None:
    """Into how many clauses each is to be split: one for each point on the axis that has the most.

    Those are the rows from split_at on. The bounding box of points that lie apart says little; each in a clause of
    its own is found at once.
    """
    for clause in range(len(rows.first) - 1):
        begin, end = rows.first[clause], rows.first[clause + 1]
        parts[clause], split_at[clause] = 1, begin
        row = begin
        while row < end:
            following = _next_axis(rows.axis, row, end)
            points = following - row
            for each in range(row, following):
                if rows.low[each] != rows.high[each]:
                    points = 0
            if points > parts[clause] and points * (end - begin - points + 1) <= most_rows:
                parts[clause], split_at[clause] = points, row
            row = following


@tight
def copy_parts(first: Places, split_at: Places, parts: Places, into_first: Places, source: Places) -> None:
    """Where the rows of each part come from, and where each part's begin."""
    part, to = 0, 0
    for clause in range(len(first) - 1):
        for chosen in range(parts[clause]):
            into_first[part] = to
            part += 1
            for row in range(first[clause], first[clause + 1]):
                apart = row - split_at[clause]
                if parts[clause] == 1 or apart < 0 or apart >= parts[clause] or apart == chosen:
                    source[to] = row
                    to += 1
    into_first[part] = to


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


@kernel
def least_crowded(rows: ClauseRows, leads: Mask, codes: Places, into: Words) -> None:
    """For each clause the leading axis of the dimension on which the fewest others overlap it.

    What overlaps on an axis is what begins no later, less what ends before.
    """
    first, axis = rows.first, rows.axis
    base = np.zeros(len(codes) + 1, np.int64)
    for each in range(len(codes)):
        base[each + 1] = base[each] + codes[each] + 1
    begun, ended = np.zeros(base[len(codes)], np.int64), np.zeros(base[len(codes)], np.int64)
    for row in range(len(axis)):
        begun[base[axis[row]] + rows.low[row]] += 1
        ended[base[axis[row]] + rows.high[row] + 1] += 1
    for each in range(len(codes)):
        for code in range(base[each] + 1, base[each + 1]):
            begun[code] += begun[code - 1]
            ended[code] += ended[code - 1]
    for clause in range(len(first) - 1):
        best, fewest = -1, np.int64(1) << 60
        leading, before, row = -1, np.int64(0), first[clause]
        while row < first[clause + 1]:
            following = _next_axis(axis, row, first[clause + 1])
            crowd = np.int64(0)
            for each in range(row, following):
                crowd += begun[base[axis[row]] + rows.high[each]] - ended[base[axis[row]] + rows.low[each]]
            if leads[axis[row]]:
                leading, before = axis[row], crowd
            crowd = min(crowd, before)
            if crowd < fewest:
                best, fewest = leading, crowd
            row = following
        into[clause] = best
