"""Looking at clusters that come from a file, before any other kernel does: those do not look where they go.

What is checked is what every kernel relies on (layout.py): each number is within its bounds, each list ends, no
two blocks overlap, and what is told twice is told alike. Linear in the size of all; each word is looked at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.matching.clusters.kernels.blocks import lines_for
from harken.matching.clusters.kernels.pairs import is_of_pairs, place_of
from harken.matching.kernels.layout import (
    AFTER,
    ALL_TABLE,
    ALONE,
    BEFORE,
    CAPACITY,
    CLAUSE,
    EQUAL,
    FALSE,
    FIRST_KEY_TABLE,
    FREE_NODE,
    FREE_SHARED,
    HEADER,
    IN_PAIRS,
    KEY,
    LAST,
    LENGTH,
    LINE,
    NEXT,
    PREDICATE_TABLE,
    PRESENCE_TABLE,
    SHARED,
    SIBLING,
    SLOT,
    TABLE,
    WIDTH,
    Blocks,
    PredicateArrays,
    Tables,
)


class Found(NamedTuple):
    """What the clusters turn out to hold. All begin with 0."""

    owners: npt.NDArray[np.int64]
    """Of each shared clause; -1 if its number is free."""
    uses: npt.NDArray[np.int64]
    """Of each predicate: by how many clauses of how many subscriptions."""
    population: npt.NDArray[np.int64]
    taken: npt.NDArray[np.bool_]
    """By line: whether a block, in use or free, has it."""
    seen: npt.NDArray[np.bool_]
    """By slot: whether an entry is its clause."""
    seen_shared: npt.NDArray[np.bool_]
    """By shared clause: whether an entry is it."""
    status: npt.NDArray[np.uint8]
    """Of each node (below)."""
    widest: npt.NDArray[np.int64]
    """The most predicates of a clause."""


_UNSEEN, _FREE, _LISTED, _OWNED = range(4)
"""What has been found of a node so far."""


@tight
def owners_are_sound(blocks: Blocks, in_use: npt.NDArray[np.bool_], found: Found) -> bool:
    """Whether the lists of owners, of siblings and of what is free are such; counts the owners."""
    status = found.status
    nodes, heads, block_of = blocks.nodes, blocks.shared_head, blocks.block_of
    number = blocks.spare[FREE_SHARED]
    while number >= 0:
        if number >= len(heads) or found.owners[number] != 0:
            return False
        found.owners[number] = -1
        number = np.int64(heads[number])
    node = blocks.spare[FREE_NODE]
    while node >= 0:
        if node >= len(nodes) or status[node] != _UNSEEN:
            return False
        status[node] = _FREE
        node = np.int64(nodes[node, AFTER])
    for number in range(len(heads)):
        if found.owners[number] == 0 and not _has_owners(blocks, number, in_use, status, found.owners):
            return False
    for slot in range(len(block_of)):
        if block_of[slot] >= SHARED and not _has_clauses(blocks, slot, status):
            return False
    known = 0
    for node in range(len(nodes)):
        known += status[node] == _FREE or status[node] == _OWNED
    return known == len(nodes)


@part
def _has_owners(
    blocks: Blocks,
    number: int,
    in_use: npt.NDArray[np.bool_],
    status: npt.NDArray[np.uint8],
    owners: npt.NDArray[np.int64],
) -> bool:
    """Whether a shared clause has a list of owners, linked both ways; counts them."""
    nodes = blocks.nodes
    node, before = np.int64(blocks.shared_head[number]), np.int64(-1)
    while node >= 0:
        if node >= len(nodes) or status[node] != _UNSEEN:
            return False
        status[node] = _LISTED
        slot = nodes[node, SLOT]
        if slot < 0 or slot >= len(in_use) or not in_use[slot]:
            return False
        if nodes[node, CLAUSE] != number or nodes[node, BEFORE] != before:
            return False
        owners[number] += 1
        before = node
        node = np.int64(nodes[node, AFTER])
    return node == -1 and owners[number] > 0


@part
def _has_clauses(blocks: Blocks, slot: int, status: npt.NDArray[np.uint8]) -> bool:
    """Whether a slot has a list of shared clauses, each of which has it among its owners."""
    nodes = blocks.nodes
    node, alone = np.int64(blocks.block_of[slot]) - SHARED, True
    while True:
        if node < 0 or node >= len(nodes) or status[node] != _LISTED or nodes[node, SLOT] != slot:
            return False
        status[node] = _OWNED
        sibling = np.int64(nodes[node, SIBLING])
        if sibling == ALONE:
            return alone
        if sibling == LAST:
            return True
        node, alone = sibling, False


@tight
def clusters_are_sound(
    predicates: PredicateArrays,
    tables: Tables,
    size: npt.NDArray[np.int64],
    blocks: Blocks,
    in_use: npt.NDArray[np.bool_],
    found: Found,
) -> bool:
    """Whether every directory entry leads to blocks of its own, of entries that are clauses; counts those."""
    for table in range(len(tables.base)):
        for key in range(size[table]):
            block = np.int64(blocks.directory[tables.base[table] + key])
            while block > 0:
                if not _is_block(blocks.words, block, table, key, found.taken):
                    return False
                if not _holds_clauses(predicates, tables, blocks, block, in_use, found):
                    return False
                block = np.int64(blocks.words[block * LINE + NEXT])
    return True


@part
def _is_block(
    words: npt.NDArray[np.uint32], block: int, table: int, key: int, taken: npt.NDArray[np.bool_]
) -> bool:
    """Whether there is a block of this access path, within lines that no other has; takes them."""
    if not _is_free(taken, block, 1):
        return False
    base, room = block * LINE, (len(taken) - block) * LINE
    if words[base + TABLE] != table or words[base + KEY] != key:
        return False
    capacity, width = np.int64(words[base + CAPACITY]), np.int64(words[base + WIDTH])
    if capacity < 1 or capacity > room or width >= room // capacity or words[base + LENGTH] > capacity:
        return False
    return _take(taken, block, lines_for(capacity, width))


@part
def _holds_clauses(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    block: int,
    in_use: npt.NDArray[np.bool_],
    found: Found,
) -> bool:
    """Whether every entry of a block is a clause that its access path leads to; counts them."""
    base, owned = block * LINE, 0
    length, width = np.int64(blocks.words[base + LENGTH]), np.int64(blocks.words[base + WIDTH])
    table, key = np.int64(blocks.words[base + TABLE]), np.int64(blocks.words[base + KEY])
    for entry in range(length):
        owners = _owners_of(predicates, blocks, block, entry, in_use, found)
        if owners < 1:
            return False
        owned += owners
    if length == 0:
        return True
    count = _leading(predicates, tables, table, key, owned, found)
    found.widest[0] = max(found.widest[0], width + count)
    found.population[table] += length
    return count >= 0


@part
def _is_free(taken: npt.NDArray[np.bool_], block: int, lines: int) -> bool:
    """Whether there are such lines, and none of them is of a block that was seen before."""
    if block < 1 or block > len(taken) - lines:  # the sum might be more than a number can be
        return False
    others = 0
    for line in range(block, block + lines):
        others += taken[line]
    return others == 0


@part
def _take(taken: npt.NDArray[np.bool_], block: int, lines: int) -> bool:
    if not _is_free(taken, block, lines):
        return False
    for line in range(block, block + lines):
        taken[line] = True
    return True


@part
def _leading(predicates: PredicateArrays, tables: Tables, table: int, key: int, owned: int, found: Found) -> int:
    """How many predicates a key stands for, -1 if it is none; counts that so many clauses use them."""
    if table == PREDICATE_TABLE:
        if key >= len(predicates.operator) or predicates.operator[key] < 0 or predicates.initial[key] != FALSE:
            return -1
        found.uses[key] += owned
        return 1
    if table < FIRST_KEY_TABLE:
        dimensions = len(predicates.equal_first)
        return -1 if (table == ALL_TABLE and key > 0) or (table == PRESENCE_TABLE and key >= dimensions) else 0
    if is_of_pairs(tables, table):
        return 0 if key < place_of(len(tables.pairs) - IN_PAIRS, 0) else -1
    if key >= _keys(tables, table):
        return -1
    for at in range(tables.first[table], tables.first[table + 1]):
        word = _equality(predicates, tables, at, key)
        if word < 0:
            return -1
        found.uses[word] += owned
    return tables.first[table + 1] - tables.first[table]


@part
def _keys(tables: Tables, table: int) -> int:
    """How many keys a key table has: places beyond them are left of one that was larger, and empty."""
    keys = 1
    for at in range(tables.first[table], tables.first[table + 1]):
        keys *= tables.radix[at]
    return keys


@part
def _equality(predicates: PredicateArrays, tables: Tables, at: int, key: int) -> int:
    """The equality that a key says of a dimension of its table; -1 if it says none."""
    dimension, code = tables.dimension[at], key // tables.stride[at] % tables.radix[at]
    place = predicates.equal_first[dimension] + code
    if code < 1 or place >= len(predicates.equal):
        return -1
    word = np.int64(predicates.equal[place])
    if word < 0 or predicates.operator[word] != EQUAL or predicates.dimension[word] != dimension:
        return -1
    return word


@part
def _owners_of(
    predicates: PredicateArrays,
    blocks: Blocks,
    block: int,
    entry: int,
    in_use: npt.NDArray[np.bool_],
    found: Found,
) -> int:
    """How many subscriptions an entry is of, 0 if it is no clause; counts the uses of its predicates."""
    words, base = blocks.words, block * LINE
    capacity, width = np.int64(words[base + CAPACITY]), np.int64(words[base + WIDTH])
    entry_id, owners = np.int64(words[base + HEADER + width * capacity + entry]), 1
    if entry_id >= SHARED:
        number = entry_id - SHARED
        if number >= len(found.owners) or found.seen_shared[number] or blocks.shared_block[number] != block:
            return 0
        found.seen_shared[number] = True
        owners = found.owners[number]
    else:
        if entry_id >= len(blocks.block_of) or found.seen[entry_id] or not in_use[entry_id]:
            return 0
        if blocks.block_of[entry_id] != block:
            return 0
        found.seen[entry_id] = True
    for column in range(width):
        word = np.int64(words[base + HEADER + column * capacity + entry])
        if word >= len(predicates.operator) or predicates.operator[word] < 0:
            return 0
        found.uses[word] += owners
    return owners


@tight
def room_is_sound(
    blocks: Blocks, free: npt.NDArray[np.int64], in_use: npt.NDArray[np.bool_], found: Found
) -> bool:
    """Whether free blocks are, and whether everything that has a place was found there."""
    for lines in range(1, len(free)):
        block = free[lines]
        if block < 0:
            return False
        while block > 0:
            if not _take(found.taken, block, lines):
                return False
            block = np.int64(blocks.words[block * LINE + NEXT])
    for number in range(len(found.owners)):
        if (found.owners[number] >= 0) != found.seen_shared[number]:
            return False
    for slot in range(len(blocks.block_of)):
        located = blocks.block_of[slot]
        if (0 < located < SHARED) != found.seen[slot] or (located > 0 and not in_use[slot]):
            return False
    return True
