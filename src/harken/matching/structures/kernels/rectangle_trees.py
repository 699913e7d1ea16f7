"""R-trees over closed rectangles, packed once by tiles (Leutenegger, Lopez and Edgington 1997).

Items lie in an order in which near ones are near each other. FAN of them, one after the other, have a node with
their bounding box, FAN of those nodes one of the next level, and so on up to a single one. All boxes of a level
lie one after the other, so that a node needs no pointers: node k has those from FAN * k on of the level below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight

if TYPE_CHECKING:
    from harken.matching.kernels.layout import Matrix

FAN = 16

LOW_X, LOW_Y, HIGH_X, HIGH_Y, SIDES = range(5)
"""Columns of boxes."""

WITHIN, CONTAINS, OVERLAPS = range(3)
"""How a region is asked to lie to an item: covered by it, covering it, or touching it."""


class RectangleTree(NamedTuple):
    """Boxes, level by level: those of the items first, the single one last."""

    box: Matrix[np.float64]
    level_first: npt.NDArray[np.int64]
    """By level, and one more: where its boxes begin."""
    relation: npt.NDArray[np.int8]
    """By item: how regions are asked to lie to it."""


class Met(NamedTuple):
    """What is found: which region, and which item."""

    region: npt.NDArray[np.int64]
    item: npt.NDArray[np.int64]


@part
def meets(box: Matrix[np.float64], at: int, region: Matrix[np.float64], which: int) -> bool:
    """Whether a box and a region have a point in common."""
    return (
        box[at, LOW_X] <= region[which, HIGH_X]
        and region[which, LOW_X] <= box[at, HIGH_X]
        and box[at, LOW_Y] <= region[which, HIGH_Y]
        and region[which, LOW_Y] <= box[at, HIGH_Y]
    )


@part
def covers(outer: Matrix[np.float64], at: int, inner: Matrix[np.float64], which: int) -> bool:
    """Whether a box has all points of another one."""
    return (
        outer[at, LOW_X] <= inner[which, LOW_X]
        and outer[at, LOW_Y] <= inner[which, LOW_Y]
        and inner[which, HIGH_X] <= outer[at, HIGH_X]
        and inner[which, HIGH_Y] <= outer[at, HIGH_Y]
    )


@part
def lies(tree: RectangleTree, item: int, region: Matrix[np.float64], which: int) -> bool:
    """Whether a region lies to an item, which it meets, as it is asked to."""
    relation = tree.relation[item]
    if relation == WITHIN:
        return covers(tree.box, item, region, which)
    return relation == OVERLAPS or covers(region, which, tree.box, item)


@tight
def bound(tree: RectangleTree) -> None:
    """Find the bounding boxes of all levels above the items."""
    box = tree.box
    for level in range(1, len(tree.level_first) - 1):
        first, below, end = tree.level_first[level], tree.level_first[level - 1], tree.level_first[level]
        for node in range(first, tree.level_first[level + 1]):
            begin = below + (node - first) * FAN
            for side in range(SIDES):
                extreme = box[begin, side]
                for at in range(begin + 1, min(begin + FAN, end)):
                    other = box[at, side]
                    extreme = min(extreme, other) if side < HIGH_X else max(extreme, other)
                box[node, side] = extreme


@tight
def find_items(
    tree: RectangleTree,
    region: Matrix[np.float64],
    pending: npt.NDArray[np.int64],
    level_of: npt.NDArray[np.int64],
    met: Met,
) -> int:
    """Write down, as far as they fit, the items that regions lie to as these ask; how many there are.

    `pending` and `level_of` have room for FAN boxes of each level.
    """
    count, top = 0, len(tree.level_first) - 2
    for which in range(len(region)):
        pending[0], level_of[0], waiting = tree.level_first[top], top, 1
        while waiting > 0:
            waiting -= 1
            at, level = pending[waiting], level_of[waiting]
            if not meets(tree.box, at, region, which):
                continue
            if level > 0:
                begin = tree.level_first[level - 1] + (at - tree.level_first[level]) * FAN
                for below in range(begin, min(begin + FAN, tree.level_first[level])):
                    pending[waiting], level_of[waiting] = below, level - 1
                    waiting += 1
            elif lies(tree, at, region, which):
                if count < len(met.region):
                    met.region[count], met.item[count] = which, at
                count += 1
    return count
