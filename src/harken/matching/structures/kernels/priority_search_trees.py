"""Red-black priority search trees (McCreight 1985): the intervals that contain a value, and no others.

A search tree by upper bounds, and among equal ones by lower bounds: an item is a node and an interval. Besides,
each node has a **top**: the interval with the least lower bound of all below it that is the top of no node
further up. So where a top begins behind a value, all below it do, and a search ends there: it takes the depth of
the tree and a step or two for each interval that it finds.

An interval **stands** at the top of a node, its own or one above; or in its own node if it has come to no top;
or nowhere, if it was withdrawn: then its node only shows the way until the interval comes back. A tree in which
many are withdrawn is for its user to build anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight

NONE = -1

NOWHERE, IN_NODE, AT_TOP = range(3)
"""Where the interval of a node stands."""

DEEPEST = 128
"""More nodes than any way down has: a red-black tree of n nodes is no deeper than twice the logarithm of n + 1."""


class PrioritySearchTrees(NamedTuple):
    """By item: its interval, both ends included, and its node."""

    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    up: npt.NDArray[np.int32]
    top: npt.NDArray[np.int32]
    is_red: npt.NDArray[np.bool_]
    stands: npt.NDArray[np.uint8]


@part
def precedes(trees: PrioritySearchTrees, low: int, high: int, item: int) -> bool:
    """Whether an interval comes before that of an item."""
    return high < trees.high[item] or (high == trees.high[item] and low < trees.low[item])


@part
def look_up(trees: PrioritySearchTrees, root: int, low: int, high: int) -> int:
    """The item of an interval, or -1."""
    item = np.int64(root)
    while item != NONE:
        if trees.low[item] == low and trees.high[item] == high:
            return item
        item = np.int64(trees.left[item] if precedes(trees, low, high, item) else trees.right[item])
    return item


@part
def sink(trees: PrioritySearchTrees, start: int, item: int) -> None:
    """Let the interval of an item below `start` stand where it belongs; those that it displaces sink further."""
    node, carried = np.int64(start), np.int64(item)
    while True:
        top = np.int64(trees.top[node])
        if top == NONE:
            trees.top[node], trees.stands[carried] = carried, AT_TOP
            return
        if trees.low[carried] < trees.low[top]:
            trees.top[node], trees.stands[carried] = carried, AT_TOP
            carried = top
        if carried == node:
            trees.stands[carried] = IN_NODE
            return
        below = precedes(trees, trees.low[carried], trees.high[carried], node)
        node = np.int64(trees.left[node] if below else trees.right[node])


@part
def raise_next(trees: PrioritySearchTrees, start: int) -> None:
    """Find a node that has lost its top another one, and so on down to where nothing is lost."""
    node = np.int64(start)
    while True:
        best, source = np.int64(NONE), np.int64(NONE)
        if trees.stands[node] == IN_NODE:
            best = node
        for child in (np.int64(trees.left[node]), np.int64(trees.right[node])):
            if child == NONE or trees.top[child] == NONE:
                continue
            other = np.int64(trees.top[child])
            if best == NONE or trees.low[other] < trees.low[best]:
                best, source = other, child
        trees.top[node] = best
        if best == NONE:
            return
        if source == NONE:
            trees.stands[best] = AT_TOP
            return
        node = source


@part
def rotate(trees: PrioritySearchTrees, root: int, node: int, leftwards: bool) -> int:
    """Let a node change places with its right child, or with its left one; the root of the tree."""
    child = np.int64(trees.right[node] if leftwards else trees.left[node])
    inner = np.int64(trees.left[child] if leftwards else trees.right[child])
    above = np.int64(trees.up[node])
    if leftwards:
        trees.right[node], trees.left[child] = inner, node
    else:
        trees.left[node], trees.right[child] = inner, node
    if inner != NONE:
        trees.up[inner] = node
    trees.up[node], trees.up[child] = child, above
    if above == NONE:
        root = child
    elif trees.left[above] == node:
        trees.left[above] = child
    else:
        trees.right[above] = child
    # What is below both has not changed, and so its top; the child's old one has to find another place below.
    displaced = np.int64(trees.top[child])
    trees.top[child] = trees.top[node]
    raise_next(trees, node)
    if displaced != NONE:
        sink(trees, child, displaced)
    return root


@tight
def plant(trees: PrioritySearchTrees, root: int, item: int) -> int:
    """Let an item whose interval is not there yet be a node, its interval withdrawn; the root of the tree."""
    trees.left[item] = trees.right[item] = trees.up[item] = trees.top[item] = NONE
    trees.is_red[item], trees.stands[item] = True, NOWHERE
    if root == NONE:
        trees.is_red[item] = False
        return item
    above, node, before = np.int64(NONE), np.int64(root), False
    while node != NONE:
        above = node
        before = precedes(trees, trees.low[item], trees.high[item], node)
        node = np.int64(trees.left[node] if before else trees.right[node])
    trees.up[item] = above
    if before:
        trees.left[above] = item
    else:
        trees.right[above] = item
    return balance(trees, root, item)


@part
def balance(trees: PrioritySearchTrees, root: int, item: int) -> int:
    """Let no red node have a red parent, after a red one has come; the root of the tree."""
    node = np.int64(item)
    while trees.up[node] != NONE and trees.is_red[trees.up[node]]:
        above = np.int64(trees.up[node])
        beyond = np.int64(trees.up[above])  # there is one: the root is black
        is_left = trees.left[beyond] == above
        aside = np.int64(trees.right[beyond] if is_left else trees.left[beyond])
        if aside != NONE and trees.is_red[aside]:
            trees.is_red[above] = trees.is_red[aside] = False
            trees.is_red[beyond] = True
            node = beyond
            continue
        if node == (trees.right[above] if is_left else trees.left[above]):
            root = rotate(trees, root, above, is_left)
            node, above = above, node
        trees.is_red[above], trees.is_red[beyond] = False, True
        root = rotate(trees, root, beyond, not is_left)
    trees.is_red[root] = False
    return root


@tight
def withdraw(trees: PrioritySearchTrees, item: int) -> None:
    """Let the interval of an item be found no more."""
    if trees.stands[item] == AT_TOP:
        node = np.int64(item)
        while trees.top[node] != item:
            node = np.int64(trees.up[node])
        trees.stands[item] = NOWHERE
        raise_next(trees, node)
    trees.stands[item] = NOWHERE


@part
def stab(
    trees: PrioritySearchTrees,
    root: int,
    value: int,
    pending: npt.NDArray[np.int32],
    found: npt.NDArray[np.int32],
    count: int,
) -> int:
    """Write down, from place `count` on, the items whose intervals contain a value; where they end."""
    pending[0], waiting = root, 1
    if root == NONE:
        return count
    while waiting > 0:
        waiting -= 1
        node = np.int64(pending[waiting])
        top = np.int64(trees.top[node])
        if top == NONE or trees.low[top] > value:
            continue
        if trees.high[top] >= value:
            found[count] = top
            count += 1
        if trees.stands[node] == IN_NODE and trees.low[node] <= value <= trees.high[node]:
            found[count] = node
            count += 1
        if trees.right[node] != NONE:
            pending[waiting] = trees.right[node]
            waiting += 1
        if trees.left[node] != NONE and trees.high[node] >= value:
            pending[waiting] = trees.left[node]
            waiting += 1
    return count


@tight
def plant_one(trees: PrioritySearchTrees, root: int, item: int) -> int:
    """As `plant`, and let its interval be found."""
    root = plant(trees, root, item)
    sink(trees, root, item)
    return root


@tight
def look_up_one(trees: PrioritySearchTrees, root: int, low: int, high: int) -> int:
    """As `look_up`."""
    return look_up(trees, root, low, high)


@tight
def withdraw_one(trees: PrioritySearchTrees, item: int) -> None:
    """As `withdraw`."""
    withdraw(trees, item)


@tight
def bring_back_one(trees: PrioritySearchTrees, root: int, item: int) -> None:
    """Let an interval that was withdrawn be found again."""
    sink(trees, root, item)


@tight
def stab_one(
    trees: PrioritySearchTrees,
    root: int,
    value: int,
    pending: npt.NDArray[np.int32],
    found: npt.NDArray[np.int32],
) -> int:
    """As `stab`, from the first place on."""
    return stab(trees, root, value, pending, found, 0)
