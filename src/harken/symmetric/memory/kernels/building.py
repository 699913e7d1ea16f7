"""Making a segment of clauses: which belong together, in which order they lie, what the boxes of their nodes are.

Clauses come as their rows: clause c has the rows first[c] to first[c + 1], ascending by axis.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import kernel, tight
from harken.symmetric.memory.kernels.arranging import arrange
from harken.symmetric.memory.kernels.layout import (
    BOXES_AT,
    FAN,
    ITEMS,
    LEAF,
    ROW,
    ROW_AXIS,
    ROW_HIGH,
    ROW_LOW,
    TREE_AXES,
    TREE_AXES_AT,
)

_FIRST, _SECOND = np.uint64(30), np.uint64(27)
_MULTIPLIER, _SECOND_MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@tight
def signatures(
    first: npt.NDArray[np.int64], axis: npt.NDArray[np.int32], seed: np.uint64, into: npt.NDArray[np.uint64]
) -> None:
    """A number for the axes of each clause: the same for the same axes, and hardly ever for others."""
    for clause in range(len(first) - 1):
        mixed = seed
        for row in range(first[clause], first[clause + 1]):
            if row == first[clause] or axis[row] != axis[row - 1]:
                mixed = (mixed ^ np.uint64(axis[row] + 1)) * _MULTIPLIER
                mixed = (mixed ^ (mixed >> _FIRST)) * _SECOND_MULTIPLIER
                mixed ^= mixed >> _SECOND
        into[clause] = mixed


@tight
def is_alike(
    first: npt.NDArray[np.int64],
    axis: npt.NDArray[np.int32],
    group: npt.NDArray[np.int32],
    model: npt.NDArray[np.int64],
) -> bool:
    """Whether each clause has the axes of the model clause of its group."""
    for clause in range(len(first) - 1):
        row, other = first[clause], first[model[group[clause]]]
        end, other_end = first[clause + 1], first[model[group[clause]] + 1]
        while row < end and other < other_end:
            if axis[row] != axis[other]:
                return False
            row, other = _next_axis(axis, row, end), _next_axis(axis, other, other_end)
        if row < end or other < other_end:
            return False
    return True


@tight
def _next_axis(axis: npt.NDArray[np.int32], row: int, end: int) -> int:
    row += 1
    while row < end and axis[row] == axis[row - 1]:
        row += 1
    return row


@tight
def count_parts(
    first: npt.NDArray[np.int64],
    axis: npt.NDArray[np.int32],
    low: npt.NDArray[np.int32],
    high: npt.NDArray[np.int32],
    most_rows: int,
    split_at: npt.NDArray[np.int64],
    parts: npt.NDArray[np.int64],
) -> None:
    """Into how many clauses each is to be split: one for each point on the axis that has the most.

    Those are the rows from split_at on. The bounding box of points that lie apart says little; each in a clause of
    its own is found at once.
    """
    for clause in range(len(first) - 1):
        parts[clause], split_at[clause] = 1, first[clause]
        end = first[clause + 1]
        row = first[clause]
        while row < end:
            following = _next_axis(axis, row, end)
            points = following - row
            for each in range(row, following):
                if low[each] != high[each]:
                    points = 0
            if points > parts[clause] and points * (end - first[clause] - points + 1) <= most_rows:
                parts[clause], split_at[clause] = points, row
            row = following


@tight
def copy_parts(
    first: npt.NDArray[np.int64],
    split_at: npt.NDArray[np.int64],
    parts: npt.NDArray[np.int64],
    into_first: npt.NDArray[np.int64],
    source: npt.NDArray[np.int64],
) -> None:
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


@tight
def lay_rows(
    first: npt.NDArray[np.int64],
    axis: npt.NDArray[np.int32],
    low: npt.NDArray[np.int32],
    high: npt.NDArray[np.int32],
    order: npt.NDArray[np.int64],
    into_first: npt.NDArray[np.int32],
    rows: npt.NDArray[np.int32],
) -> None:
    """The rows of clauses in another order, three words each."""
    to = 0
    for place in range(len(order)):
        into_first[place] = to
        for row in range(first[order[place]], first[order[place] + 1]):
            rows[ROW * to + ROW_AXIS] = axis[row]
            rows[ROW * to + ROW_LOW] = low[row]
            rows[ROW * to + ROW_HIGH] = high[row]
            to += 1
    into_first[len(order)] = to


@tight
def bounding_boxes(
    first: npt.NDArray[np.int64],
    axis: npt.NDArray[np.int32],
    low: npt.NDArray[np.int32],
    high: npt.NDArray[np.int32],
    members: npt.NDArray[np.int64],
    boxes: npt.NDArray[np.int32],
) -> None:
    """The bounding box of each of some clauses, one after the other: low and high, axis by axis."""
    at = -2
    for member in members:
        for row in range(first[member], first[member + 1]):
            if row == first[member] or axis[row] != axis[row - 1]:
                at += 2
                boxes[at], boxes[at + 1] = low[row], high[row]
            else:
                boxes[at], boxes[at + 1] = min(boxes[at], low[row]), max(boxes[at + 1], high[row])


@kernel
def pack(
    trees: npt.NDArray[np.int32],
    boxes_at: npt.NDArray[np.int64],
    boxes: npt.NDArray[np.int32],
    codes: npt.NDArray[np.int64],
    order: npt.NDArray[np.int64],
    body: npt.NDArray[np.int32],
) -> None:
    """Arrange the items of trees of several axes, and fill in the bounding boxes of all trees' nodes.

    Trees have their rows already, with addresses in `body`, which has their axes. The boxes of a tree's items
    begin at boxes_at; items of all trees follow each other, and `order` says for each place which of its tree's
    items comes there.
    """
    begin = 0
    for tree in range(len(trees)):
        count, leaf = np.int64(trees[tree, ITEMS]), np.int64(trees[tree, LEAF])
        axes, boxes_first = np.int64(trees[tree, TREE_AXES]), np.int64(trees[tree, BOXES_AT])
        own = boxes[boxes_at[tree] : boxes_at[tree] + 2 * axes * count].reshape((count, 2 * axes))
        places = order[begin : begin + count]
        if axes > 1:
            axes_at = trees[tree, TREE_AXES_AT]
            arrange(own, body[axes_at : axes_at + axes], codes, leaf, places)
        nodes = _lay_leaves(own, places, leaf, body[boxes_first:])
        _raise_boxes(body, boxes_first, nodes, axes)
        begin += count


@tight
def _lay_leaves(
    boxes: npt.NDArray[np.int32], places: npt.NDArray[np.int64], leaf: int, words: npt.NDArray[np.int32]
) -> int:
    """The bounding boxes of level 0; how many there are."""
    nodes, width = (len(places) + leaf - 1) // leaf, boxes.shape[1]
    for node in range(nodes):
        for column in range(width):
            bound = boxes[places[node * leaf], column]
            for place in range(node * leaf + 1, min(len(places), (node + 1) * leaf)):
                other = boxes[places[place], column]
                bound = min(bound, other) if column % 2 == 0 else max(bound, other)
            words[node * width + column] = bound
    return nodes


@tight
def _raise_boxes(words: npt.NDArray[np.int32], at: int, nodes: int, axes: int) -> None:
    """Fill in the levels of a tree above level 0, whose bounding boxes begin at a word."""
    width = 2 * axes
    while nodes > FAN:
        above = at + nodes * width
        for parent in range((nodes + FAN - 1) // FAN):
            for column in range(width):
                bound = words[at + parent * FAN * width + column]
                for node in range(parent * FAN + 1, min(nodes, (parent + 1) * FAN)):
                    other = words[at + node * width + column]
                    bound = min(bound, other) if column % 2 == 0 else max(bound, other)
                words[above + parent * width + column] = bound
        at, nodes = above, (nodes + FAN - 1) // FAN


@kernel
def least_crowded(
    first: npt.NDArray[np.int64],
    axis: npt.NDArray[np.int32],
    low: npt.NDArray[np.int32],
    high: npt.NDArray[np.int32],
    leads: npt.NDArray[np.bool_],
    codes: npt.NDArray[np.int64],
    into: npt.NDArray[np.int32],
) -> None:
    """For each clause the leading axis of the dimension on which the fewest others overlap it.

    What overlaps on an axis is what begins no later, less what ends before.
    """
    base = np.zeros(len(codes) + 1, np.int64)
    for each in range(len(codes)):
        base[each + 1] = base[each] + codes[each] + 1
    begun, ended = np.zeros(base[len(codes)], np.int64), np.zeros(base[len(codes)], np.int64)
    for row in range(len(axis)):
        begun[base[axis[row]] + low[row]] += 1
        ended[base[axis[row]] + high[row] + 1] += 1
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
                crowd += begun[base[axis[row]] + high[each]] - ended[base[axis[row]] + low[each]]
            if leads[axis[row]]:
                leading, before = axis[row], crowd
            crowd = min(crowd, before)
            if crowd < fewest:
                best, fewest = leading, crowd
            row = following
        into[clause] = best
