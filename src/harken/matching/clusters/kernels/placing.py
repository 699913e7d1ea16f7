"""Putting clauses into clusters, taking them out, and finding out again what a clause says."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.matching.clusters.kernels.choosing import NO_TABLE, choose, residual_of
from harken.matching.clusters.kernels.owning import (
    add_owner,
    drop_owner,
    free_shared,
    has_room_to_share,
    new_shared,
)
from harken.matching.kernels.layout import (
    AFTER,
    CAPACITY,
    CLAUSE,
    FIRST_KEY_TABLE,
    HEADER,
    KEY,
    LENGTH,
    LINE,
    NEXT,
    PREDICATE_TABLE,
    SHARED,
    SIBLING,
    SLOT,
    TABLE,
    WIDTH,
    Blocks,
    Chances,
    Clauses,
    PredicateArrays,
    Tables,
)

FREE_CLASSES = 64
"""Free blocks are kept by size in lines; larger ones are left to compaction."""

SEEN = 256
"""Entries of a cluster that are looked at for one that asks the same."""


@part
def lines_for(entries: int, width: int) -> int:
    """Cache lines that a block needs for this many entries."""
    return (HEADER + entries * (width + 1) + LINE - 1) // LINE


@part
def room_in(lines: int, width: int) -> int:
    """Entries that fit into a block of this many lines."""
    return (lines * LINE - HEADER) // (width + 1)


@part
def _allocate(words: npt.NDArray[np.uint32], free: npt.NDArray[np.int64], lines: int) -> int:
    """A block of lines: a freed one of that size, or from the end. free[0] is the end; 0 if there is no room."""
    if lines < FREE_CLASSES and free[lines] > 0:
        block = free[lines]
        free[lines] = np.int64(words[block * LINE + NEXT])
        return block
    block = free[0]
    if (block + lines) * LINE > len(words):
        return 0
    free[0] = block + lines
    return block


@part
def _release(words: npt.NDArray[np.uint32], free: npt.NDArray[np.int64], block: int, lines: int) -> None:
    if lines < FREE_CLASSES:
        words[block * LINE + NEXT] = free[lines]
        free[lines] = block


@part
def _grown(lines: int) -> int:
    return lines + max(1, lines // 2)


@part
def _set_block(blocks: Blocks, entry_id: int, block: int) -> None:
    if entry_id >= SHARED:
        blocks.shared_block[entry_id - SHARED] = block
    else:
        blocks.block_of[entry_id] = block


@part
def _cluster_for(blocks: Blocks, free: npt.NDArray[np.int64], place: int, table: int, key: int, width: int) -> int:
    """The block for entries of this width at a place of the directory, made if there is none; 0 without room."""
    words = blocks.words
    block = np.int64(blocks.directory[place])
    while block > 0 and words[block * LINE + WIDTH] != width:
        block = np.int64(words[block * LINE + NEXT])
    if block == 0:
        lines = lines_for(1, width)
        block = _allocate(words, free, lines)
        if block > 0:
            base = block * LINE
            words[base + LENGTH] = 0
            words[base + CAPACITY] = room_in(lines, width)
            words[base + WIDTH] = width
            words[base + NEXT] = blocks.directory[place]
            words[base + TABLE] = table
            words[base + KEY] = key
            blocks.directory[place] = block
    return block


@part
def append(
    blocks: Blocks,
    free: npt.NDArray[np.int64],
    place: int,
    block: int,
    residual: npt.NDArray[np.int64],
    width: int,
    entry_id: int,
) -> int:
    """Append an entry to a cluster, which may move for it; its block then, or 0 if words ran out of room."""
    words = blocks.words
    if words[block * LINE + LENGTH] == words[block * LINE + CAPACITY]:
        block = _moved_to_larger(blocks, free, place, block, width)
        if block == 0:
            return 0
    base = block * LINE
    entry, capacity = np.int64(words[base + LENGTH]), np.int64(words[base + CAPACITY])
    for column in range(width):
        words[base + HEADER + column * capacity + entry] = residual[column]
    words[base + HEADER + width * capacity + entry] = entry_id
    words[base + LENGTH] = entry + 1
    return block


@part
def insert(
    blocks: Blocks,
    free: npt.NDArray[np.int64],
    place: int,
    table: int,
    key: int,
    residual: npt.NDArray[np.int64],
    width: int,
    entry_id: int,
) -> bool:
    """Append an entry that exists to the cluster of its width at another place. False without room."""
    block = _cluster_for(blocks, free, place, table, key, width)
    if block > 0:
        block = append(blocks, free, place, block, residual, width, entry_id)
    if block > 0:
        _set_block(blocks, entry_id, block)
    return block > 0


@part
def _same_clause(words: npt.NDArray[np.uint32], block: int, residual: npt.NDArray[np.int64], width: int) -> int:
    """The entry of a cluster that asks for the same, or -1. What many ask for comes early: not all are seen."""
    first = block * LINE + HEADER
    capacity = np.int64(words[block * LINE + CAPACITY])
    seen, wanted = min(int(words[block * LINE + LENGTH]), SEEN), np.uint32(residual[0])
    alike = 0
    for at in range(first, first + seen):
        alike += words[at] == wanted
    if alike == 0:
        return -1
    for entry in range(seen):
        same = words[first + entry] == wanted
        for column in range(1, width):
            if not same:
                break
            same = words[first + column * capacity + entry] == residual[column]
        if same:
            return entry
    return -1


@part
def enter(
    tables: Tables,
    blocks: Blocks,
    free: npt.NDArray[np.int64],
    table: int,
    key: int,
    residual: npt.NDArray[np.int64],
    width: int,
    slot: int,
    alone: bool,
) -> bool:
    """Put a new clause under its access path, or share the same one there. False without room."""
    words, place = blocks.words, tables.base[table] + key
    block = _cluster_for(blocks, free, place, table, key, width)
    if block == 0 or not has_room_to_share(blocks):
        return False
    same = _same_clause(words, block, residual, width) if width > 0 else -1
    if same >= 0:
        base = block * LINE
        ids = base + HEADER + width * np.int64(words[base + CAPACITY])
        entry_id = np.int64(words[ids + same])
        if entry_id < SHARED:
            number = new_shared(blocks, block)
            add_owner(blocks, number, entry_id, True)
            entry_id = SHARED + number
            words[ids + same] = entry_id
        add_owner(blocks, entry_id - SHARED, slot, alone)
        return True
    if alone:
        block = append(blocks, free, place, block, residual, width, slot)
        if block == 0:
            return False
        blocks.block_of[slot] = block
        tables.population[table] += 1
        return True
    number = new_shared(blocks, block)
    block = append(blocks, free, place, block, residual, width, SHARED + number)
    if block == 0:
        free_shared(blocks, number)
        return False
    blocks.shared_block[number] = block
    add_owner(blocks, number, slot, False)
    tables.population[table] += 1
    return True


@part
def _moved_to_larger(blocks: Blocks, free: npt.NDArray[np.int64], place: int, block: int, width: int) -> int:
    """Copy a full block into a larger one and put that in its place; 0 if words ran out of room."""
    words = blocks.words
    base = block * LINE
    length, capacity = np.int64(words[base + LENGTH]), np.int64(words[base + CAPACITY])
    old_lines = lines_for(capacity, width)
    lines = _grown(old_lines)
    larger = _allocate(words, free, lines)
    if larger == 0:
        return 0
    to, new_capacity = larger * LINE, room_in(lines, width)
    for word in range(HEADER):
        words[to + word] = words[base + word]
    words[to + CAPACITY] = new_capacity
    for column in range(width + 1):
        for entry in range(length):
            words[to + HEADER + column * new_capacity + entry] = words[base + HEADER + column * capacity + entry]
    for entry in range(length):
        _set_block(blocks, np.int64(words[to + HEADER + width * new_capacity + entry]), larger)
    _replace(blocks, place, block, larger)
    _release(words, free, block, old_lines)
    return larger


@part
def _replace(blocks: Blocks, place: int, old: int, new: int) -> None:
    """Put a block in the place of another among those of an access path."""
    words = blocks.words
    block = np.int64(blocks.directory[place])
    if block == old:
        blocks.directory[place] = new
        return
    while words[block * LINE + NEXT] != old:
        block = np.int64(words[block * LINE + NEXT])
    words[block * LINE + NEXT] = new


@tight
def find_entry(words: npt.NDArray[np.uint32], block: int, entry_id: int) -> int:
    """Where in a block an entry is."""
    base = block * LINE
    ids = base + HEADER + np.int64(words[base + WIDTH]) * np.int64(words[base + CAPACITY])
    for entry in range(np.int64(words[base + LENGTH])):
        if words[ids + entry] == entry_id:
            return entry
    return -1


@part
def remove(words: npt.NDArray[np.uint32], block: int, entry: int) -> None:
    """Take an entry out; the last one fills its place. An empty block stays for the next to come."""
    base = block * LINE
    width, capacity = np.int64(words[base + WIDTH]), np.int64(words[base + CAPACITY])
    last = np.int64(words[base + LENGTH]) - 1
    for column in range(width + 1):
        at = base + HEADER + column * capacity
        words[at + entry] = words[at + last]
    words[base + LENGTH] = last


@tight
def clause_predicates(
    predicates: PredicateArrays,
    tables: Tables,
    words: npt.NDArray[np.uint32],
    block: int,
    entry: int,
    into: npt.NDArray[np.int64],
) -> int:
    """All predicate words of an entry: those of its access path, then the others. How many."""
    base = block * LINE
    width, capacity = np.int64(words[base + WIDTH]), np.int64(words[base + CAPACITY])
    table, key = np.int64(words[base + TABLE]), np.int64(words[base + KEY])
    count = 0
    if table == PREDICATE_TABLE:
        into[0] = key
        count = 1
    elif table >= FIRST_KEY_TABLE:
        for at in range(tables.first[table], tables.first[table + 1]):
            code = key // tables.stride[at] % tables.radix[at]
            into[count] = predicates.equal[predicates.equal_first[tables.dimension[at]] + code]
            count += 1
    for column in range(width):
        into[count] = words[base + HEADER + column * capacity + entry]
        count += 1
    return count


@tight
def place_clauses(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    free: npt.NDArray[np.int64],
    chances: Chances,
    clauses: Clauses,
    start: int,
    residual: npt.NDArray[np.int64],
) -> int:
    """Put clauses, from `start` on, under their best access paths; the first without room, or their number."""
    for clause in range(start, len(clauses.slot)):
        words = clauses.words[clauses.first[clause] : clauses.first[clause + 1]]
        table, key, _ = choose(predicates, tables, chances, words, NO_TABLE)
        width = residual_of(predicates, tables, chances, table, key, words, residual)
        if not enter(
            tables, blocks, free, table, key, residual, width, clauses.slot[clause], clauses.alone[clause]
        ):
            return clause
    return len(clauses.slot)


@part
def _take_entry(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    block: int,
    entry_id: int,
    is_last: bool,
    into: npt.NDArray[np.int64],
) -> int:
    """Write down what an entry asks for, and remove it if this was its last owner; how many words."""
    entry = find_entry(blocks.words, block, entry_id)
    count = clause_predicates(predicates, tables, blocks.words, block, entry, into)
    if is_last:
        remove(blocks.words, block, entry)
        tables.population[np.int64(blocks.words[block * LINE + TABLE])] -= 1
    return count


@tight
def take_out(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    slots: npt.NDArray[np.int64],
    widest: int,
    taken: npt.NDArray[np.int64],
    start: int,
    count: int,
) -> tuple[int, int]:
    """Remove subscriptions, from `start` on, and write down what they asked for.

    Returns the first that found no room for its words, or their number; and how many words there are.
    """
    for at in range(start, len(slots)):
        slot = slots[at]
        located = np.int64(blocks.block_of[slot])
        while located > 0:
            if count + widest > len(taken):
                return at, count
            if located < SHARED:
                count += _take_entry(predicates, tables, blocks, located, slot, True, taken[count:])
                located = 0
            else:
                node = located - SHARED
                number, sibling = blocks.nodes[node, CLAUSE], np.int64(blocks.nodes[node, SIBLING])
                drop_owner(blocks, node)
                block, is_last = np.int64(blocks.shared_block[number]), blocks.shared_head[number] < 0
                entry_id = SHARED + np.int64(number)
                count += _take_entry(predicates, tables, blocks, block, entry_id, is_last, taken[count:])
                if is_last:
                    free_shared(blocks, number)
                located = SHARED + sibling if sibling >= 0 else 0
            blocks.block_of[slot] = located
    return len(slots), count


@part
def _first_owner(blocks: Blocks, entry_id: int) -> tuple[int, int]:
    """Whose an entry is, and the node that says so, if it is shared."""
    if entry_id < SHARED:
        return entry_id, -1
    node = np.int64(blocks.shared_head[entry_id - SHARED])
    return (np.int64(blocks.nodes[node, SLOT]) if node >= 0 else -1), node


@tight
def read_clauses(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    places: npt.NDArray[np.int64],
    wanted: npt.NDArray[np.bool_],
    clause: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    size: npt.NDArray[np.int64],
    slot: npt.NDArray[np.int64],
    words: npt.NDArray[np.int64],
) -> None:
    """Write down size, owner and words of the clauses of wanted slots at these directory entries, if they fit.

    `counts` says how many clauses and words there are. A clause that several ask for is written down for each.
    """
    counts[:] = 0
    for place in places:
        block = np.int64(blocks.directory[place])
        while block > 0:
            base = block * LINE
            ids = base + HEADER + np.int64(blocks.words[base + WIDTH]) * np.int64(blocks.words[base + CAPACITY])
            for entry in range(np.int64(blocks.words[base + LENGTH])):
                width = clause_predicates(predicates, tables, blocks.words, block, entry, clause)
                owner, node = _first_owner(blocks, np.int64(blocks.words[ids + entry]))
                while owner >= 0:
                    if owner < len(wanted) and wanted[owner]:
                        if counts[0] < len(size):
                            size[counts[0]], slot[counts[0]] = width, owner
                            for at in range(width):
                                words[counts[1] + at] = clause[at]
                        counts[0] += 1
                        counts[1] += width
                    node = np.int64(blocks.nodes[node, AFTER]) if node >= 0 else -1
                    owner = np.int64(blocks.nodes[node, SLOT]) if node >= 0 else -1
            block = np.int64(blocks.words[base + NEXT])


def cluster_sizes(blocks: Blocks, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How many clauses stand at each of these directory entries."""
    sizes = np.zeros(len(places), np.int64)
    _add_sizes(blocks, places, sizes)
    return sizes


@tight
def _add_sizes(blocks: Blocks, places: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> None:
    for at in range(len(places)):
        block = np.int64(blocks.directory[places[at]])
        while block > 0:
            sizes[at] += blocks.words[block * LINE + LENGTH]
            block = np.int64(blocks.words[block * LINE + NEXT])


@tight
def lines_in_use(blocks: Blocks) -> int:
    """Cache lines that all clusters would need if none had room to spare."""
    total = 0
    for block in blocks.directory:
        at = np.int64(block)
        while at > 0:
            base = at * LINE
            if blocks.words[base + LENGTH] > 0:
                total += lines_for(np.int64(blocks.words[base + LENGTH]), np.int64(blocks.words[base + WIDTH]))
            at = np.int64(blocks.words[base + NEXT])
    return total


@tight
def copy_compact(blocks: Blocks, words: npt.NDArray[np.uint32]) -> int:
    """Copy all clusters into new words, side by side in the order of the directory; where they end, in lines."""
    end = 1
    for place in range(len(blocks.directory)):
        block, before = np.int64(blocks.directory[place]), 0
        blocks.directory[place] = 0
        while block > 0:
            base, to = block * LINE, end * LINE
            length, width = np.int64(blocks.words[base + LENGTH]), np.int64(blocks.words[base + WIDTH])
            capacity = np.int64(blocks.words[base + CAPACITY])
            block = np.int64(blocks.words[base + NEXT])
            if length == 0:
                continue
            lines = lines_for(length, width)
            room = room_in(lines, width)
            for word in range(HEADER):
                words[to + word] = blocks.words[base + word]
            words[to + CAPACITY], words[to + NEXT] = room, 0
            for column in range(width + 1):
                for entry in range(length):
                    value = blocks.words[base + HEADER + column * capacity + entry]
                    words[to + HEADER + column * room + entry] = value
            for entry in range(length):
                _set_block(blocks, np.int64(words[to + HEADER + width * room + entry]), end)
            if before == 0:
                blocks.directory[place] = end
            else:
                words[before * LINE + NEXT] = end
            before = end
            end += lines
    return end
