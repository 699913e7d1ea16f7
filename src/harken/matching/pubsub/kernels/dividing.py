"""Dividing the buckets of an attribute structure by what clauses ask of its attribute (the D of section 3.2.3)."""

from __future__ import annotations

import numpy as np

from harken.jit import part, tight
from harken.matching.kernels.layout import HIGHEST, LOWEST, PredicateArrays
from harken.matching.pubsub.kernels.buckets import append, new_bucket, sift
from harken.matching.pubsub.kernels.layout import (
    HASH,
    INTERVAL_TREE,
    PRIORITY_SEARCH_TREE,
    SAMPLE,
    UNDIVIDED,
    Database,
)
from harken.matching.structures.kernels import interval_trees, priority_search_trees
from harken.matching.structures.kernels.attributes import (
    EXACT,
    ONE_OF,
    PRESENCE,
    TEST,
    WAYS,
    asked,
    highest,
    lowest,
)
from harken.matching.structures.kernels.clauses import Contents
from harken.matching.structures.kernels.hashing import find, key_of, put
from harken.matching.structures.kernels.interval_trees import LEAF
from harken.matching.structures.kernels.priority_search_trees import NOWHERE

ALIKE = 4
"""If each range is asked for by about so many clauses of a full bucket, each gets a bucket of its own."""

TRIES = 3
"""Centres that are tried out before a bucket is taken to be one that cannot be divided."""


@tight
def bucket_for(database: Database, predicates: PredicateArrays, structure: int, predicate: int) -> int:
    """The bucket of a structure for clauses that ask this of its attribute; a new one if there is none yet."""
    structures, ranges = database.structures, database.ranges
    kind, root = structures.kind[structure], np.int64(structures.root[structure])
    if kind == UNDIVIDED:
        return root
    low, high = lowest(predicates, predicate), highest(predicates, predicate)
    if kind == INTERVAL_TREE:
        return interval_trees.keeper(database.intervals, root, low, high)
    level = np.int64(database.buckets.level[root])
    if kind == HASH:
        bucket = find(database.by_code, key_of(structure, low))
        if bucket < 0:
            bucket = new_bucket(database, structure, level)
            put(database.by_code, key_of(structure, low), bucket)
            ranges.low[bucket] = low
        return bucket
    bucket = priority_search_trees.look_up(ranges, root, low, high)
    if bucket < 0:
        bucket = new_bucket(database, structure, level)
        ranges.low[bucket], ranges.high[bucket] = low, high
        structures.root[structure] = root = priority_search_trees.plant(ranges, root, bucket)
    if ranges.stands[bucket] == NOWHERE:
        priority_search_trees.sink(ranges, root, bucket)
    return bucket


@part
def chosen(database: Database, contents: Contents, bucket: int) -> int:
    """What is to divide an undivided structure, whose bucket this is."""
    structure = database.buckets.owner[bucket]
    attribute = database.structures.attribute[structure]
    way, preferred = attribute % WAYS, database.preferred[attribute]
    if way == PRESENCE:
        return UNDIVIDED
    if way in (ONE_OF, TEST):
        return HASH
    if way == EXACT:
        return HASH if preferred == UNDIVIDED else np.int64(preferred)
    if preferred in (INTERVAL_TREE, PRIORITY_SEARCH_TREE):
        return np.int64(preferred)
    return PRIORITY_SEARCH_TREE if few_ranges(database, contents, bucket) else INTERVAL_TREE


@part
def few_ranges(database: Database, contents: Contents, bucket: int) -> bool:
    """Whether the clauses of a bucket ask for few different ranges, by a sample."""
    buckets, entries, seen = database.buckets, database.entries, database.sample
    start, length, level = buckets.start[bucket], np.int64(buckets.length[bucket]), buckets.level[bucket]
    looked_at, count = 0, 0
    for at in range(0, length, (length + SAMPLE - 1) // SAMPLE):
        predicate, is_new = asked(contents, entries.clause[start + at], level - 1), True
        looked_at += 1
        for other in range(count):
            if seen[other] == predicate:
                is_new = False
        if is_new:
            seen[count] = predicate
            count += 1
    return count * ALIKE <= looked_at


@tight
def divide(database: Database, contents: Contents, predicates: PredicateArrays, bucket: int) -> bool:
    """Divide a bucket other than the root, for which there is room; False if its clauses cannot be told apart.

    One below which there are structures stays whole: events come to those through what it says now.
    """
    if database.buckets.below[bucket] > 0:
        return False
    structure = database.buckets.owner[bucket]
    kind = np.int64(database.structures.kind[structure])
    if kind == UNDIVIDED:
        kind = chosen(database, contents, bucket)
        if kind == INTERVAL_TREE:
            interval_trees.plant(database.intervals, bucket)
    elif kind != INTERVAL_TREE or database.intervals.centre[bucket] != LEAF:
        return False
    if kind == UNDIVIDED:
        return False
    if kind == INTERVAL_TREE:
        return divide_at_centre(database, contents, predicates, bucket)
    return divide_by_predicate(database, contents, predicates, bucket, kind)


@part
def divide_by_predicate(
    database: Database, contents: Contents, predicates: PredicateArrays, bucket: int, kind: int
) -> bool:
    """Leave in the only bucket of a structure what asks the same as its first clause; each other has another."""
    buckets, entries = database.buckets, database.entries
    structure, start = np.int64(buckets.owner[bucket]), buckets.start[bucket]
    level, length = np.int64(buckets.level[bucket]) - 1, np.int64(buckets.length[bucket])
    own, are_alike = asked(contents, entries.clause[start], level), True
    for at in range(start, start + length):
        if asked(contents, entries.clause[at], level) != own:
            are_alike = False
            break
    if are_alike:
        return False
    register_first(database, predicates, structure, bucket, own, kind)
    kept, done = np.int64(0), np.int64(0)
    for at in range(length):
        clause = np.int64(entries.clause[start + at])
        predicate = asked(contents, clause, level)
        if predicate == own:
            kept, done = sift(database, bucket, at, kept, done)
        else:
            target = bucket_for(database, predicates, structure, predicate)
            move(database, predicates, start + at, target)
    buckets.length[bucket], buckets.sorted[bucket] = kept, done
    return True


@part
def register_first(
    database: Database, predicates: PredicateArrays, structure: int, bucket: int, predicate: int, kind: int
) -> None:
    """Let the only bucket of a structure be that of one predicate."""
    structures, ranges = database.structures, database.ranges
    structures.kind[structure], structures.root[structure] = kind, bucket
    ranges.low[bucket], ranges.high[bucket] = lowest(predicates, predicate), highest(predicates, predicate)
    if kind == HASH:
        put(database.by_code, key_of(structure, ranges.low[bucket]), bucket)
        return
    priority_search_trees.plant(ranges, -1, bucket)
    priority_search_trees.sink(ranges, bucket, bucket)


@part
def move(database: Database, predicates: PredicateArrays, at: int, target: int) -> None:
    """Put an entry into another bucket of the same structure."""
    entries = database.entries
    clause = np.int64(entries.clause[at])
    append(database, predicates, target, clause, entries.predicate[at], entries.attribute[at])
    database.bucket_of[clause] = target


@part
def divide_at_centre(database: Database, contents: Contents, predicates: PredicateArrays, bucket: int) -> bool:
    """Leave in a leaf of an interval tree what contains a centre; the others go left or right."""
    buckets, entries = database.buckets, database.entries
    structure, start = np.int64(buckets.owner[bucket]), buckets.start[bucket]
    level, length = np.int64(buckets.level[bucket]) - 1, np.int64(buckets.length[bucket])
    ends = sample_ends(database, contents, predicates, bucket)
    centre, is_found = np.int64(0), False
    for turn in range(TRIES):
        if ends == 0 or is_found:
            break
        # The median first, then the quartiles.
        centre = database.sample[(ends // 2, ends // 4, 3 * ends // 4)[turn]]
        for at in range(start, start + length):
            predicate = asked(contents, entries.clause[at], level)
            if highest(predicates, predicate) < centre or lowest(predicates, predicate) > centre:
                is_found = True
                break
    if not is_found:
        return False
    left, right = new_bucket(database, structure, level + 1), new_bucket(database, structure, level + 1)
    database.structures.kind[structure] = INTERVAL_TREE
    interval_trees.divide(database.intervals, bucket, centre, left, right)
    kept, done = np.int64(0), np.int64(0)
    for at in range(length):
        predicate = asked(contents, entries.clause[start + at], level)
        if highest(predicates, predicate) < centre:
            move(database, predicates, start + at, left)
        elif lowest(predicates, predicate) > centre:
            move(database, predicates, start + at, right)
        else:
            kept, done = sift(database, bucket, at, kept, done)
    buckets.length[bucket], buckets.sorted[bucket] = kept, done
    return True


@part
def sample_ends(database: Database, contents: Contents, predicates: PredicateArrays, bucket: int) -> int:
    """Write down, ascending, where intervals of a bucket begin and end; how many ends there are."""
    buckets, entries, sample = database.buckets, database.entries, database.sample
    start, length, level = buckets.start[bucket], np.int64(buckets.length[bucket]), buckets.level[bucket]
    count = 0
    for at in range(0, length, (length + SAMPLE - 1) // SAMPLE):
        predicate = asked(contents, entries.clause[start + at], level - 1)
        for end in (lowest(predicates, predicate), highest(predicates, predicate)):
            if end in (LOWEST, HIGHEST):
                continue
            to = count
            while to > 0 and sample[to - 1] > end:
                sample[to] = sample[to - 1]
                to -= 1
            sample[to] = end
            count += 1
    return count
