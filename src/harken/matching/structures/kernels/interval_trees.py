"""Interval trees: every node has a centre, keeps intervals that contain it, and sends the others left or right.

A tree begins as one leaf, which keeps all; its user decides when to divide a leaf, and at which centre.
Intervals themselves are not held here: a node is an item, and its user has the intervals that it keeps. So
nothing has to be done here when one is removed.

A value meets the nodes on one way down: all intervals that contain it are kept by these, and perhaps others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight

LEAF = -(2**63)
"""Instead of a centre: the node is not divided."""


class IntervalTrees(NamedTuple):
    """By item: the node that it is."""

    centre: npt.NDArray[np.int64]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]


@part
def plant(trees: IntervalTrees, item: int) -> None:
    """Let an item be a leaf."""
    trees.centre[item] = LEAF
    trees.left[item] = trees.right[item] = -1


@part
def divide(trees: IntervalTrees, item: int, centre: int, left: int, right: int) -> None:
    """Let a leaf be divided, into itself and two new leaves: what they keep, its user has to move."""
    plant(trees, left)
    plant(trees, right)
    trees.centre[item], trees.left[item], trees.right[item] = centre, left, right


@part
def keeper(trees: IntervalTrees, root: int, low: int, high: int) -> int:
    """The node that keeps an interval, both ends included."""
    item = np.int64(root)
    while trees.centre[item] != LEAF:
        if high < trees.centre[item]:
            item = np.int64(trees.left[item])
        elif low > trees.centre[item]:
            item = np.int64(trees.right[item])
        else:
            return item
    return item


@part
def stab(trees: IntervalTrees, root: int, value: int, found: npt.NDArray[np.int32], count: int) -> int:
    """Write down, from place `count` on, the nodes whose intervals may contain a value; where they end."""
    item = np.int64(root)
    while True:
        found[count] = item
        count += 1
        centre = trees.centre[item]
        if centre in (LEAF, value):
            return count
        item = np.int64(trees.left[item] if value < centre else trees.right[item])


@tight
def plant_one(trees: IntervalTrees, item: int) -> None:
    """As `plant`."""
    plant(trees, item)


@tight
def divide_one(trees: IntervalTrees, item: int, centre: int, left: int, right: int) -> None:
    """As `divide`."""
    divide(trees, item, centre, left, right)


@tight
def keeper_of(trees: IntervalTrees, root: int, low: int, high: int) -> int:
    """As `keeper`."""
    return keeper(trees, root, low, high)


@tight
def stab_one(trees: IntervalTrees, root: int, value: int, found: npt.NDArray[np.int32]) -> int:
    """As `stab`, from the first place on."""
    return stab(trees, root, value, found, 0)
