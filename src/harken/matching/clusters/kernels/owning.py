"""Who owns shared clauses: doubly linked lists in a flat array, so that one of a million owners leaves at once.

A node (layout.py) says that a subscription asks for a shared clause. It is in two lists: with the other owners of
the clause, and with the other clauses of the owner. Here slots 31, 12 and 40 ask for clause 7, and 12 for another:

    shared_head[7] ─►  node 4   ── AFTER ─►  node 9   ── AFTER ─►  node 2   ── AFTER ─► -1     BEFORE leads back
                       SLOT 31               SLOT 12               SLOT 40
                       ALONE                 SIBLING 5             ALONE
                                               │
    block_of[12] = SHARED + 9                  └─►  node 5, of another clause: SLOT 12, LAST

Numbers of clauses that have no owner left, and nodes that are in no list, are in lists of what is free.
"""

from __future__ import annotations

import numpy as np

from harken.jit import part
from harken.matching.kernels.layout import (
    AFTER,
    ALONE,
    BEFORE,
    CLAUSE,
    END_NODE,
    END_SHARED,
    FREE_NODE,
    FREE_SHARED,
    LAST,
    SHARED,
    SIBLING,
    SLOT,
    Blocks,
)


@part
def has_room_to_share(blocks: Blocks) -> bool:
    """Whether one more clause can be shared: that takes one number and two nodes at most."""
    clauses = blocks.spare[FREE_SHARED] >= 0 or blocks.spare[END_SHARED] < len(blocks.shared_head)
    return clauses and blocks.spare[END_NODE] + 2 <= len(blocks.nodes)


@part
def new_shared(blocks: Blocks, block: int) -> int:
    """A number for a clause in this block, without owners yet."""
    spare = blocks.spare
    number = spare[FREE_SHARED]
    if number >= 0:
        spare[FREE_SHARED] = blocks.shared_head[number]
    else:
        number = spare[END_SHARED]
        spare[END_SHARED] += 1
    blocks.shared_block[number] = block
    blocks.shared_head[number] = -1
    return number


@part
def free_shared(blocks: Blocks, number: int) -> None:
    """A shared clause has no owner left."""
    blocks.shared_head[number] = blocks.spare[FREE_SHARED]
    blocks.spare[FREE_SHARED] = number


@part
def _new_node(blocks: Blocks) -> int:
    spare = blocks.spare
    node = spare[FREE_NODE]
    if node >= 0:
        spare[FREE_NODE] = blocks.nodes[node, AFTER]
    else:
        node = spare[END_NODE]
        spare[END_NODE] += 1
    return node


@part
def add_owner(blocks: Blocks, number: int, slot: int, alone: bool) -> None:
    """A subscription asks for a shared clause; `alone` if it has no other."""
    nodes, node = blocks.nodes, _new_node(blocks)
    following = blocks.shared_head[number]
    nodes[node, SLOT], nodes[node, CLAUSE] = slot, number
    nodes[node, AFTER], nodes[node, BEFORE] = following, -1
    if following >= 0:
        nodes[following, BEFORE] = node
    blocks.shared_head[number] = node
    nodes[node, SIBLING] = ALONE if alone else LAST
    if not alone and blocks.block_of[slot] >= SHARED:
        nodes[node, SIBLING] = np.int64(blocks.block_of[slot]) - SHARED
    blocks.block_of[slot] = SHARED + node


@part
def drop_owner(blocks: Blocks, node: int) -> None:
    """A subscription no longer asks for a shared clause."""
    nodes = blocks.nodes
    before, following = nodes[node, BEFORE], nodes[node, AFTER]
    if before >= 0:
        nodes[before, AFTER] = following
    else:
        blocks.shared_head[nodes[node, CLAUSE]] = following
    if following >= 0:
        nodes[following, BEFORE] = before
    nodes[node, AFTER] = blocks.spare[FREE_NODE]
    blocks.spare[FREE_NODE] = node
