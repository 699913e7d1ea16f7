"""Buckets: entries come, are sorted and leave."""

from __future__ import annotations

import numpy as np

from harken.jit import part, tight
from harken.matching.kernels.layout import PredicateArrays
from harken.matching.pubsub.kernels.layout import (
    END_BUCKET,
    END_ENTRY,
    END_STRUCTURE,
    FREE,
    FREE_BUCKET,
    SIZE,
    SMALL,
    WANTED,
    Database,
    Entries,
)
from harken.matching.structures.kernels.attributes import NOTHING, asked, attribute_of, lowest
from harken.matching.structures.kernels.clauses import Contents

PER_ENTRY, AT_LEAST = 12, 64
"""Room for entries that dividing a bucket may take, per entry that it has; and in any case."""

OUT_OF_ORDER = 16
"""Entries of a sorted bucket that may lie unsorted, besides a quarter of those that are sorted."""


@part
def has_room(database: Database, entries: int) -> bool:
    """Whether there is room for whatever becomes of a bucket with so many entries."""
    spare = database.spare
    enough = (
        spare[END_BUCKET] + entries + 4 <= len(database.buckets.start)
        and spare[END_ENTRY] + PER_ENTRY * entries + AT_LEAST <= len(database.entries.clause)
        and spare[END_STRUCTURE] < len(database.structures.root)
        and 2 * (database.by_attribute.spare[0] + 1) <= len(database.by_attribute.key)
        and 2 * (database.by_code.spare[0] + entries + 1) <= len(database.by_code.key)
    )
    if not enough:
        spare[WANTED] = entries
    return enough


@part
def new_bucket(database: Database, structure: int, level: int) -> int:
    """An empty bucket of a structure."""
    buckets, spare = database.buckets, database.spare
    bucket = spare[FREE_BUCKET]
    if bucket >= 0:
        spare[FREE_BUCKET] = buckets.mate[bucket]
    else:
        bucket = spare[END_BUCKET]
        spare[END_BUCKET] += 1
        buckets.start[bucket] = buckets.room[bucket] = 0
    buckets.length[bucket] = buckets.sorted[bucket] = buckets.below[bucket] = buckets.touched[bucket] = 0
    buckets.limit[bucket], buckets.level[bucket], buckets.owner[bucket] = spare[SIZE], level, structure
    buckets.mate[bucket] = database.structures.first[structure]
    database.structures.first[structure] = bucket
    return bucket


@part
def free_bucket(database: Database, bucket: int) -> None:
    """Let the number of a bucket, and its room, be used again."""
    buckets, spare = database.buckets, database.spare
    buckets.owner[bucket], buckets.mate[bucket] = FREE, spare[FREE_BUCKET]
    spare[FREE_BUCKET] = bucket


@part
def is_after(entries: Entries, predicates: PredicateArrays, one: int, other: int) -> bool:
    """Whether an entry comes after another one."""
    if entries.attribute[one] != entries.attribute[other]:
        return entries.attribute[one] > entries.attribute[other]
    return lowest(predicates, entries.predicate[one]) > lowest(predicates, entries.predicate[other])


@part
def append(
    database: Database, predicates: PredicateArrays, bucket: int, clause: int, predicate: int, attribute: int
) -> None:
    """Put an entry at the end of a bucket, which moves if it is full. There is room."""
    buckets, entries = database.buckets, database.entries
    start, length = buckets.start[bucket], np.int64(buckets.length[bucket])
    if length == buckets.room[bucket]:
        begin, room = database.spare[END_ENTRY], 2 * length if length >= 2 else 4
        for at in range(length):
            entries.clause[begin + at] = entries.clause[start + at]
            entries.predicate[begin + at] = entries.predicate[start + at]
            entries.attribute[begin + at] = entries.attribute[start + at]
        buckets.start[bucket], buckets.room[bucket] = begin, room
        database.spare[END_ENTRY] += room
        start = begin
    at = start + length
    entries.clause[at], entries.predicate[at], entries.attribute[at] = clause, predicate, attribute
    buckets.length[bucket] = length + 1
    in_order = buckets.sorted[bucket] == length
    if in_order and (length == 0 or not is_after(entries, predicates, at - 1, at)):
        buckets.sorted[bucket] = length + 1


@part
def enter(database: Database, contents: Contents, predicates: PredicateArrays, bucket: int, clause: int) -> None:
    """Put a clause into a bucket. There is room."""
    level = np.int64(database.buckets.level[bucket])
    predicate, attribute = np.int64(-1), np.int64(NOTHING)
    if level < database.reach[clause]:
        predicate = asked(contents, clause, level)
        attribute = attribute_of(predicates, predicate)
    append(database, predicates, bucket, clause, predicate, attribute)
    database.bucket_of[clause] = bucket


@part
def keep_in_order(database: Database, predicates: PredicateArrays, bucket: int, idle: int) -> None:
    """Sort a bucket that has more than so many unsorted entries; small ones are left as they are."""
    buckets = database.buckets
    length, done = np.int64(buckets.length[bucket]), np.int64(buckets.sorted[bucket])
    if length > SMALL and database.spare[SIZE] > SMALL and length - done > idle:
        sort(database.entries, predicates, buckets.start[bucket], length)
        buckets.sorted[bucket] = length


@tight
def sort(entries: Entries, predicates: PredicateArrays, start: int, length: int) -> None:
    """Sort entries in place, by ever smaller steps: most are in order already."""
    step = 1
    while step < length // 3:
        step = 3 * step + 1
    while step >= 1:
        for at in range(start + step, start + length):
            clause, predicate, attribute = entries.clause[at], entries.predicate[at], entries.attribute[at]
            low, to = lowest(predicates, predicate), at
            while to - step >= start:
                other = to - step
                if entries.attribute[other] < attribute:
                    break
                if entries.attribute[other] == attribute and lowest(predicates, entries.predicate[other]) <= low:
                    break
                entries.clause[to] = entries.clause[other]
                entries.predicate[to] = entries.predicate[other]
                entries.attribute[to] = entries.attribute[other]
                to = other
            entries.clause[to], entries.predicate[to], entries.attribute[to] = clause, predicate, attribute
        step //= 3


@part
def sift(database: Database, bucket: int, at: int, kept: int, done: int) -> tuple[int, int]:
    """Keep an entry of a bucket that is gone through; how many are kept, and how many of them were in order."""
    buckets, entries = database.buckets, database.entries
    begin = buckets.start[bucket]
    to, of = begin + kept, begin + at
    entries.clause[to] = entries.clause[of]
    entries.predicate[to] = entries.predicate[of]
    entries.attribute[to] = entries.attribute[of]
    return kept + 1, done + (at < buckets.sorted[bucket])


@tight
def sort_all(database: Database, predicates: PredicateArrays) -> None:
    """Sort all buckets that are to be sorted."""
    for bucket in range(database.spare[END_BUCKET]):
        if database.buckets.owner[bucket] != FREE:
            keep_in_order(database, predicates, bucket, 0)


@tight
def move_entries(database: Database, into: Entries) -> int:
    """Copy all buckets side by side, each with the room it needs; where they end."""
    buckets, entries, end = database.buckets, database.entries, 0
    for bucket in range(database.spare[END_BUCKET]):
        start = buckets.start[bucket]
        length = np.int64(0) if buckets.owner[bucket] == FREE else np.int64(buckets.length[bucket])
        for at in range(length):
            into.clause[end + at] = entries.clause[start + at]
            into.predicate[end + at] = entries.predicate[start + at]
            into.attribute[end + at] = entries.attribute[start + at]
        buckets.start[bucket], buckets.room[bucket] = end, length
        end += length
    return end


@tight
def count_entries(database: Database) -> int:
    """How many entries all buckets have."""
    total = 0
    for bucket in range(database.spare[END_BUCKET]):
        if database.buckets.owner[bucket] != FREE:
            total += np.int64(database.buckets.length[bucket])
    return total
