"""The order of a tree's items: a k-d tree, laid out flat."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from harken.jit import called, kernel

if TYPE_CHECKING:
    from harken.symmetric.memory.kernels.layout import Floats, Places, Words

Ranks: TypeAlias = npt.NDArray[np.uint16]

_BUCKETS = 1 << 16
"""Ranks that are told apart."""

_MOST_PENDING = 256
"""Halves that may wait to be halved; if there are more, some stay as they are."""

_SAMPLE = 128
"""Items that are looked at to say how far apart they lie."""

_ASKED_WIDTH = _BUCKETS / 1024
"""How wide an asked interval is taken to be, in ranks: of two axes that could be halved, the longer one is."""


@kernel
def arrange(boxes: Words, of_tree: Words, codes: Places, leaf: int, order: Places) -> None:
    """An order in which boxes that are near on all axes come near: a k-d tree over their middles (Bentley 1975).

    The items are halved again and again, each time on the axis where that makes bounding boxes smallest, until as
    many are left as a leaf holds. Halves begin where nodes do, unless that would part items that are alike on the
    axis.
    """
    count, axes = boxes.shape[0], boxes.shape[1] // 2
    ranks = np.empty((count, axes), np.uint16)
    widths, sums = np.empty(axes), np.empty((2, axes))
    below = np.empty(_BUCKETS + 1, np.int64)
    for axis in range(axes):
        widths[axis] = _rank(boxes, codes[of_tree[axis]], axis, ranks, below)
    begins, ends = np.empty(_MOST_PENDING, np.int64), np.empty(_MOST_PENDING, np.int64)
    begins[0], ends[0], pending = 0, count, 1
    while pending > 0:
        pending -= 1
        begin, end = begins[pending], ends[pending]
        if end - begin <= leaf or pending + 2 > _MOST_PENDING:
            continue
        axis = _longest(ranks, widths, order[begin:end], sums)
        if axis >= 0:
            middle = _split(ranks, axis, order, begin, end, leaf)
            begins[pending], ends[pending] = begin, middle
            begins[pending + 1], ends[pending + 1] = middle, end
            pending += 2


@called
def _longest(ranks: Ranks, widths: Floats, items: Places, sums: Floats) -> int:
    """The axis on which halving some items shrinks their bounding boxes the most; -1 if it does on none."""
    sums[:] = 0.0
    step = max(1, len(items) // _SAMPLE)
    for place in range(0, len(items), step):
        for axis in range(len(widths)):
            rank = float(ranks[items[place], axis])
            sums[0, axis] += rank
            sums[1, axis] += rank * rank
    count = (len(items) + step - 1) // step
    best, least = -1, 1.0
    for axis in range(len(widths)):
        # As long as an even spread with the same deviation: a few items far off make no difference.
        variance = max(0.0, sums[1, axis] / count - (sums[0, axis] / count) ** 2)
        length, fixed = np.sqrt(12 * variance), widths[axis] + _ASKED_WIDTH
        shrunk = (length / 2 + fixed) / (length + fixed)
        if shrunk < least:
            best, least = axis, shrunk
    return best


@called
def _split(ranks: Ranks, axis: int, order: Places, begin: int, end: int, leaf: int) -> int:
    """Reorder items in two halves, the first of which has the lower ranks; where the second begins."""
    unit = leaf
    while 2 * unit < end - begin:
        unit *= 2
    middle = (begin // unit + 1) * unit
    first, last = _select(ranks, axis, order, begin, end, middle)
    shortest = (end - begin) // 8
    for place in (first, last) if middle - first < last - middle else (last, first):
        if place - begin >= max(1, shortest) and end - place >= max(1, shortest):
            return place
    return middle


@called
def _select(ranks: Ranks, axis: int, order: Places, begin: int, end: int, middle: int) -> tuple[int, int]:
    """Reorder items so that none before the middle has a higher rank than one from there on (Hoare 1961).

    Returns from where to where all have the rank of that in the middle.
    """
    while end - begin > 1:
        first, last = ranks[order[begin], axis], ranks[order[end - 1], axis]
        pivot = _median_of_three(first, ranks[order[(begin + end) // 2], axis], last)
        below, place, above = begin, begin, end
        while place < above:
            item = order[place]
            if ranks[item, axis] < pivot:
                order[place], order[below] = order[below], item
                below += 1
                place += 1
            elif ranks[item, axis] > pivot:
                above -= 1
                order[place], order[above] = order[above], item
            else:
                place += 1
        if middle < below:
            end = below
        elif middle >= above:
            begin = above
        else:
            return below, above
    return begin, end


@called
def _median_of_three(one: int, two: int, three: int) -> int:
    return max(min(one, two), min(max(one, two), three))


@called
def _rank(boxes: Words, codes: int, axis: int, ranks: Ranks, below: Places) -> float:
    """The ranks of intervals' middles among all bounds of an axis; the mean width of intervals, in ranks too.

    `below` has room for a number more than there are ranks. Written out: numpy's functions for it would take seven
    seconds to compile, which is more than all other kernels of a find.
    """
    buckets = min(codes, _BUCKETS)
    below[: buckets + 1] = 0
    bounds, width = 0, 0
    for item in range(len(boxes)):
        low, high = np.int64(boxes[item, 2 * axis]), np.int64(boxes[item, 2 * axis + 1])
        if low > 0:
            below[low * buckets // codes + 1] += 1
            bounds += 1
        if high < codes - 1:
            below[high * buckets // codes + 1] += 1
            bounds += 1
    for bucket in range(buckets):
        below[bucket + 1] += below[bucket]
    for item in range(len(boxes)):
        low, high = np.int64(boxes[item, 2 * axis]), np.int64(boxes[item, 2 * axis + 1])
        begin = below[low * buckets // codes] if low > 0 else 0
        end = below[high * buckets // codes + 1] if high < codes - 1 else bounds
        ranks[item, axis] = (begin + end) * (_BUCKETS - 1) // max(1, 2 * bounds)
        width += end - begin
    return _BUCKETS * float(width) / max(1, bounds) / len(boxes)
