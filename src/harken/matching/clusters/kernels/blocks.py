"""The memory of clusters: blocks of lines, made, filled, grown, emptied and laid side by side.

A block holds entries with equally many predicates under one access path (layout.py). This one has a single line of
16 words, a width of 2, room for 3 entries, and 2 of them:

    LENGTH  CAPACITY  WIDTH  NEXT  TABLE  KEY | column 0 | column 1 | entry ids |
       2        3       2      0     4     17 |  7  7  . |  3  8  . |  21  40 . | .

Events with key 17 of table 4 open it. The second entry is the clause of slot 40, and asks for predicates 7 and 8
beyond what the key says. A full block is copied into one with half as many lines again. Blocks lie in lists:

    directory[place] ──► block of width 2 ── NEXT ──► block of width 0 ── NEXT ──► 0
    free[lines]      ──► free block       ── NEXT ──► free block       ── NEXT ──► 0

and free[0] is the line from which on nothing was ever used.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.matching.kernels.layout import (
    CAPACITY,
    HEADER,
    KEY,
    LENGTH,
    LINE,
    NEXT,
    SHARED,
    TABLE,
    WIDTH,
    Blocks,
)
from harken.matching.kernels.prefetch import prefetch

AHEAD = 8
"""How many blocks before one is read its cache line is asked for."""

FREE_CLASSES = 64
"""Free blocks are kept by size in lines; larger ones are left to compaction."""


@part
def lines_for(entries: int, width: int) -> int:
    """Cache lines that a block needs for this many entries."""
    return (HEADER + entries * (width + 1) + LINE - 1) // LINE


@part
def room_in(lines: int, width: int) -> int:
    """Entries that fit into a block of this many lines."""
    return (lines * LINE - HEADER) // (width + 1)


@part
def header(words: npt.NDArray[np.uint32], block: int, field: int) -> int:
    """A word of a block's header."""
    return np.int64(words[block * LINE + field])


@part
def ids_at(words: npt.NDArray[np.uint32], block: int) -> int:
    """Where the entry ids of a block begin."""
    return block * LINE + HEADER + header(words, block, WIDTH) * header(words, block, CAPACITY)


@part
def ask_ahead(blocks: Blocks, places: npt.NDArray[np.int64], at: int) -> None:
    """Have the cache lines fetched that a walk over places needs: of one the place, of one before it the block."""
    if at + 2 * AHEAD < len(places):
        prefetch(blocks.directory, places[at + 2 * AHEAD])
        prefetch(blocks.words, np.int64(blocks.directory[places[at + AHEAD]]) * LINE)


# ---------------------------------------------------------------- making and freeing


@part
def _allocate(words: npt.NDArray[np.uint32], free: npt.NDArray[np.int64], lines: int) -> int:
    """A block of lines: a freed one of that size, or from the end; 0 if there is no room."""
    if lines < FREE_CLASSES and free[lines] > 0:
        block = free[lines]
        free[lines] = header(words, block, NEXT)
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
def cluster_for(blocks: Blocks, free: npt.NDArray[np.int64], place: int, table: int, key: int, width: int) -> int:
    """The block for entries of this width at a place of the directory, made if there is none; 0 without room."""
    words = blocks.words
    block = np.int64(blocks.directory[place])
    while block > 0 and words[block * LINE + WIDTH] != width:
        block = header(words, block, NEXT)
    if block == 0:
        lines = lines_for(1, width)
        block = _allocate(words, free, lines)
        if block > 0:
            base = block * LINE
            words[base + LENGTH], words[base + CAPACITY], words[base + WIDTH] = 0, room_in(lines, width), width
            words[base + NEXT], words[base + TABLE], words[base + KEY] = blocks.directory[place], table, key
            blocks.directory[place] = block
    return block


# ---------------------------------------------------------------- entries


@part
def append(
    blocks: Blocks,
    free: npt.NDArray[np.int64],
    place: int,
    block: int,
    residual: npt.NDArray[np.int64],
    width: int,
    entry_id: int,
) -> bool:
    """Append an entry to a cluster, which may move for it. False if words ran out of room."""
    words = blocks.words
    if words[block * LINE + LENGTH] == words[block * LINE + CAPACITY]:
        block = _moved_to_larger(blocks, free, place, block, width)
        if block == 0:
            return False
    base = block * LINE
    entry, capacity = header(words, block, LENGTH), header(words, block, CAPACITY)
    for column in range(width):
        words[base + HEADER + column * capacity + entry] = residual[column]
    words[base + HEADER + width * capacity + entry] = entry_id
    words[base + LENGTH] = entry + 1
    _set_block(blocks, entry_id, block)
    return True


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
    block = cluster_for(blocks, free, place, table, key, width)
    return block > 0 and append(blocks, free, place, block, residual, width, entry_id)


@tight
def find_entry(words: npt.NDArray[np.uint32], block: int, entry_id: int) -> int:
    """Where in a block an entry is."""
    ids = ids_at(words, block)
    for entry in range(header(words, block, LENGTH)):
        if words[ids + entry] == entry_id:
            return entry
    return -1


@part
def remove(words: npt.NDArray[np.uint32], block: int, entry: int) -> None:
    """Take an entry out; the last one fills its place. An empty block stays for the next to come."""
    first, capacity = block * LINE + HEADER, header(words, block, CAPACITY)
    last = header(words, block, LENGTH) - 1
    for column in range(header(words, block, WIDTH) + 1):
        at = first + column * capacity
        words[at + entry] = words[at + last]
    words[block * LINE + LENGTH] = last


@part
def _set_block(blocks: Blocks, entry_id: int, block: int) -> None:
    """Take note of where an entry is now."""
    if entry_id >= SHARED:
        blocks.shared_block[entry_id - SHARED] = block
    else:
        blocks.block_of[entry_id] = block


# ---------------------------------------------------------------- moving


@part
def _moved_to_larger(blocks: Blocks, free: npt.NDArray[np.int64], place: int, block: int, width: int) -> int:
    """Copy a full block into a larger one and put that in its place; 0 if words ran out of room."""
    words, base = blocks.words, block * LINE
    length, capacity = header(words, block, LENGTH), header(words, block, CAPACITY)
    lines = lines_for(capacity, width)
    # Half as many lines more may not be enough for one wide entry more.
    more = max(lines + max(1, lines // 2), lines_for(capacity + 1, width))
    larger = _allocate(words, free, more)
    if larger == 0:
        return 0
    # Written out though `_copy` is much the same: a part of a part makes placing a clause a tenth slower.
    to, room = larger * LINE, room_in(more, width)
    for word in range(HEADER):
        words[to + word] = words[base + word]
    words[to + CAPACITY] = room
    for column in range(width + 1):
        for entry in range(length):
            words[to + HEADER + column * room + entry] = words[base + HEADER + column * capacity + entry]
    for entry in range(length):
        _set_block(blocks, np.int64(words[to + HEADER + width * room + entry]), larger)
    _replace(blocks, place, block, larger)
    _release(words, free, block, lines)
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
        block = header(words, block, NEXT)
    words[block * LINE + NEXT] = new


@part
def _copy(blocks: Blocks, block: int, words: npt.NDArray[np.uint32], to: int, lines: int) -> None:
    """Copy a block to so many lines of other words, as the last of its access path; note where its entries are."""
    old = blocks.words
    # That they are not below 0 goes without checks if it can be seen.
    base, target = np.int64(np.uint32(block)) * LINE, np.int64(np.uint32(to)) * LINE
    length, width = header(old, block, LENGTH), header(old, block, WIDTH)
    capacity, room = header(old, block, CAPACITY), room_in(lines, width)
    words[target + LENGTH], words[target + CAPACITY], words[target + WIDTH] = length, room, width
    words[target + NEXT] = 0
    words[target + TABLE], words[target + KEY] = old[base + TABLE], old[base + KEY]
    for column in range(width):
        for entry in range(length):
            words[target + HEADER + column * room + entry] = old[base + HEADER + column * capacity + entry]
    ids, new_ids = base + HEADER + width * capacity, target + HEADER + width * room
    for entry in range(length):
        words[new_ids + entry] = old[ids + entry]
        _set_block(blocks, np.int64(old[ids + entry]), to)


@tight
def copy_compact(blocks: Blocks, words: npt.NDArray[np.uint32]) -> int:
    """Copy all clusters into new words, side by side in the order of the directory; where they end, in lines."""
    end = 1
    for place in range(len(blocks.directory)):
        block, before = np.int64(blocks.directory[place]), 0
        blocks.directory[place] = 0
        while block > 0:
            length, following = header(blocks.words, block, LENGTH), header(blocks.words, block, NEXT)
            if length > 0:
                lines = lines_for(length, header(blocks.words, block, WIDTH))
                _copy(blocks, block, words, end, lines)
                if before == 0:
                    blocks.directory[place] = end
                else:
                    words[before * LINE + NEXT] = end
                before = end
                end += lines
            block = following
    return end


# ---------------------------------------------------------------- measuring


@tight
def lines_in_use(blocks: Blocks) -> int:
    """Cache lines that all clusters would need if none had room to spare."""
    words, directory, total = blocks.words, blocks.directory, 0
    for place in range(len(directory)):
        if place + AHEAD < len(directory):
            prefetch(words, np.int64(directory[place + AHEAD]) * LINE)
        block = np.int64(directory[place])
        while block > 0:
            if words[block * LINE + LENGTH] > 0:
                total += lines_for(header(words, block, LENGTH), header(words, block, WIDTH))
            block = header(words, block, NEXT)
    return total


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
            sizes[at] += header(blocks.words, block, LENGTH)
            block = header(blocks.words, block, NEXT)
