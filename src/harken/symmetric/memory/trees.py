"""Trees as they lie in a segment: their items arranged, and the bounding boxes of their nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harken.model import capacity
from harken.symmetric.memory.kernels.building import pack
from harken.symmetric.memory.kernels.layout import (
    BOXES_AT,
    FAN,
    FIRST_ITEM,
    IN_PLACE,
    ITEMS,
    ITEMS_AT,
    LEAF,
    TREE,
    TREE_AXES,
    TREE_AXES_AT,
)
from harken.symmetric.memory.orders import Places

Words = npt.NDArray[np.int32]


@dataclass(slots=True)
class Items:
    """The items of some trees, one tree after the other."""

    counts: Places
    """By tree."""
    leaf: int
    in_place: bool
    axes: Places
    """By tree, how many it has."""
    axis: Words
    """The axes of all trees."""
    boxes: Words
    """Low and high, axis by axis, item by item."""


def laid(codes: Places, several: list[Items]) -> tuple[Words, Words, Places]:
    """The rows of trees; what they consist of; and how their items are ordered.

    Trees consist of axes, items if those are not in place (to be filled in), and bounding boxes. `codes` is how
    many each axis has.
    """
    counts = np.concatenate([each.counts for each in several])
    axes = np.concatenate([each.axes for each in several])
    leaf = np.repeat([each.leaf for each in several], [len(each.counts) for each in several])
    in_place = np.repeat([each.in_place for each in several], [len(each.counts) for each in several])
    axis = np.concatenate([each.axis for each in several])
    boxes = np.concatenate([each.boxes for each in several])
    own = np.where(in_place, 0, counts)
    nodes = _nodes(counts, leaf)
    sizes = np.concatenate([[len(axis)], own, 2 * axes * nodes])
    capacity.check("words of one segment", int(sizes.sum()), capacity.SEGMENT_WORDS)
    at = np.cumsum(sizes)[:-1]
    trees = np.zeros((len(counts), TREE), np.int32)
    trees[:, ITEMS_AT] = np.where(in_place, IN_PLACE, at[: len(counts)])
    trees[:, FIRST_ITEM] = np.where(in_place, np.cumsum(counts) - counts, 0)
    trees[:, ITEMS], trees[:, LEAF], trees[:, TREE_AXES] = counts, leaf, axes
    trees[:, TREE_AXES_AT] = np.cumsum(axes) - axes
    trees[:, BOXES_AT] = at[len(counts) :]
    body = np.empty(sizes.sum(), np.int32)
    body[: len(axis)] = axis
    boxes_at = np.cumsum(2 * axes * counts) - 2 * axes * counts
    order = _along_one_axis(counts, axes, boxes_at, boxes)
    pack(trees, boxes_at, boxes, codes, order, body)
    return trees, body, order


def _along_one_axis(counts: Places, axes: Places, boxes_at: Places, boxes: Words) -> Places:
    """For each place which of its tree's items comes there, where trees have one axis; others are as they are."""
    first = np.cumsum(counts) - counts
    tree = np.repeat(np.arange(len(counts)), counts)
    order = np.arange(len(tree)) - first[tree]
    flat = axes[tree] == 1
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


def absolute(counts: Places, order: Places) -> Places:
    """Orders within trees as one order of all."""
    return order + np.repeat(np.cumsum(counts) - counts, counts)
