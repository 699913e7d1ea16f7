"""Putting clauses into clusters, taking them out, and finding out again what a clause says."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import tight
from harken.matching.kernels.layout import (
    ALL_TABLE,
    CAPACITY,
    EQUAL,
    EXTRA,
    FIRST_KEY_TABLE,
    HEADER,
    IS_ABSENT,
    KEY,
    LAZY,
    LENGTH,
    LINE,
    NEXT,
    PREDICATE_TABLE,
    PRESENCE_TABLE,
    TABLE,
    WIDTH,
    Blocks,
    Predicates,
    Tables,
)

FREE_CLASSES = 64
"""Free blocks are kept by size in lines; larger ones are left to compaction."""


@tight
def lines_for(entries: int, width: int) -> int:
    """Cache lines that a block needs for this many entries."""
    return (HEADER + entries * (width + 1) + LINE - 1) // LINE


@tight
def room_in(lines: int, width: int) -> int:
    """Entries that fit into a block of this many lines."""
    return (lines * LINE - HEADER) // (width + 1)


@tight
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


@tight
def _release(words: npt.NDArray[np.uint32], free: npt.NDArray[np.int64], block: int, lines: int) -> None:
    if lines < FREE_CLASSES:
        words[block * LINE + NEXT] = free[lines]
        free[lines] = block


@tight
def _grown(lines: int) -> int:
    return lines + max(1, lines // 2)


@tight
def _set_block(blocks: Blocks, entry_id: int, block: int) -> None:
    if entry_id >= EXTRA:
        blocks.block_of_extra[entry_id - EXTRA] = block
    else:
        blocks.block_of[entry_id] = block


@tight
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
    """Append an entry to the cluster of its width at a place of the directory. False if words ran out of room."""
    words = blocks.words
    before, block = 0, np.int64(blocks.directory[place])
    while block > 0 and words[block * LINE + WIDTH] != width:
        before, block = block, np.int64(words[block * LINE + NEXT])
    if block == 0:
        lines = lines_for(1, width)
        block = _allocate(words, free, lines)
        if block == 0:
            return False
        base = block * LINE
        words[base + LENGTH] = 0
        words[base + CAPACITY] = room_in(lines, width)
        words[base + WIDTH] = width
        words[base + NEXT] = blocks.directory[place]
        words[base + TABLE] = table
        words[base + KEY] = key
        blocks.directory[place] = block
    elif words[block * LINE + LENGTH] == words[block * LINE + CAPACITY]:
        block = _moved_to_larger(blocks, free, place, before, block, width)
        if block == 0:
            return False
    base = block * LINE
    entry, capacity = np.int64(words[base + LENGTH]), np.int64(words[base + CAPACITY])
    for column in range(width):
        words[base + HEADER + column * capacity + entry] = residual[column]
    words[base + HEADER + width * capacity + entry] = entry_id
    words[base + LENGTH] = entry + 1
    _set_block(blocks, entry_id, block)
    return True


@tight
def _moved_to_larger(
    blocks: Blocks, free: npt.NDArray[np.int64], place: int, before: int, block: int, width: int
) -> int:
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
    if before == 0:
        blocks.directory[place] = larger
    else:
        words[before * LINE + NEXT] = larger
    _release(words, free, block, old_lines)
    return larger


@tight
def find_entry(words: npt.NDArray[np.uint32], block: int, entry_id: int) -> int:
    """Where in a block an entry is."""
    base = block * LINE
    ids = base + HEADER + np.int64(words[base + WIDTH]) * np.int64(words[base + CAPACITY])
    for entry in range(np.int64(words[base + LENGTH])):
        if words[ids + entry] == entry_id:
            return entry
    return -1


@tight
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
    predicates: Predicates,
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
def _key_of(
    predicates: Predicates,
    tables: Tables,
    table: int,
    clause: npt.NDArray[np.int64],
    selectivity: npt.NDArray[np.float32],
) -> tuple[int, float]:
    """The clause's key in a key table and the chance that an event has it; -1 if the clause has none there."""
    key, chance = 0, 1.0
    if tables.closed[table]:
        return -1, 1.0
    for at in range(tables.first[table], tables.first[table + 1]):
        wanted, code = tables.dimension[at], -1
        for word in clause:
            if word < LAZY and predicates.operator[word] == EQUAL and predicates.dimension[word] == wanted:
                code = predicates.low[word]
                chance *= selectivity[word]
        if code < 0 or code >= tables.radix[at]:
            return -1, 1.0
        key += code * tables.stride[at]
    return key, chance


@tight
def choose(
    predicates: Predicates,
    tables: Tables,
    clause: npt.NDArray[np.int64],
    selectivity: npt.NDArray[np.float32],
    presence: npt.NDArray[np.float32],
) -> tuple[int, int, float]:
    """The access path that the fewest events open: table, key, and the chance that an event does."""
    best_table, best_key, best_chance = ALL_TABLE, 0, 1.0
    for table in range(FIRST_KEY_TABLE, len(tables.base)):
        key, chance = _key_of(predicates, tables, table, clause, selectivity)
        if key >= 0 and chance < best_chance:
            best_table, best_key, best_chance = table, key, chance
    for word in clause:
        if word < LAZY:
            chance = np.float64(selectivity[word])
            if chance < best_chance:
                best_table, best_key, best_chance = PREDICATE_TABLE, word, chance
        elif predicates.operator[word - LAZY] != IS_ABSENT:
            dimension = predicates.dimension[word - LAZY]
            chance = np.float64(presence[dimension])
            if chance < best_chance:
                best_table, best_key, best_chance = PRESENCE_TABLE, dimension, chance
    return best_table, best_key, best_chance


@tight
def residual_of(
    predicates: Predicates,
    tables: Tables,
    table: int,
    key: int,
    clause: npt.NDArray[np.int64],
    into: npt.NDArray[np.int64],
) -> int:
    """The predicate words that the access path does not already guarantee; how many."""
    width, keyed = 0, table >= FIRST_KEY_TABLE
    for word in clause:
        guaranteed = table == PREDICATE_TABLE and word == key
        if keyed and word < LAZY and predicates.operator[word] == EQUAL:
            for at in range(tables.first[table], tables.first[table + 1]):
                guaranteed |= tables.dimension[at] == predicates.dimension[word]
        if not guaranteed:
            into[width] = word
            width += 1
    return width


@tight
def place_clauses(
    predicates: Predicates,
    tables: Tables,
    blocks: Blocks,
    free: npt.NDArray[np.int64],
    selectivity: npt.NDArray[np.float32],
    presence: npt.NDArray[np.float32],
    clause_first: npt.NDArray[np.int64],
    clause_words: npt.NDArray[np.int64],
    entry_ids: npt.NDArray[np.int64],
    start: int,
    residual: npt.NDArray[np.int64],
) -> int:
    """Put clauses, from `start` on, under their best access paths; the first without room, or their number."""
    for clause in range(start, len(entry_ids)):
        words = clause_words[clause_first[clause] : clause_first[clause + 1]]
        table, key, _ = choose(predicates, tables, words, selectivity, presence)
        width = residual_of(predicates, tables, table, key, words, residual)
        place = tables.base[table] + key
        if not insert(blocks, free, place, table, key, residual, width, entry_ids[clause]):
            return clause
        tables.population[table] += 1
    return len(entry_ids)


@tight
def take_out(
    predicates: Predicates,
    tables: Tables,
    blocks: Blocks,
    entry_ids: npt.NDArray[np.int64],
    words_first: npt.NDArray[np.int64],
    clause_words: npt.NDArray[np.int64],
    start: int,
) -> int:
    """Remove entries, from `start` on, and write down what they asked for; the first without room, or all."""
    into = words_first[start]
    for at in range(start, len(entry_ids)):
        entry_id = entry_ids[at]
        block = np.int64(
            blocks.block_of_extra[entry_id - EXTRA] if entry_id >= EXTRA else blocks.block_of[entry_id]
        )
        base = block * LINE
        needed = np.int64(blocks.words[base + WIDTH]) + len(tables.dimension) + 1
        if into + needed > len(clause_words):
            return at
        entry = find_entry(blocks.words, block, entry_id)
        into += clause_predicates(predicates, tables, blocks.words, block, entry, clause_words[into:])
        words_first[at + 1] = into
        remove(blocks.words, block, entry)
        tables.population[np.int64(blocks.words[base + TABLE])] -= 1
    return len(entry_ids)


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
