"""Posting and deleting subscriptions (figure 3 of Mishra and Sahni, and its inverse)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.matching.kernels.layout import Clauses, PredicateArrays
from harken.matching.pubsub.kernels.buckets import (
    OUT_OF_ORDER,
    enter,
    free_bucket,
    has_room,
    keep_in_order,
    new_bucket,
    sift,
)
from harken.matching.pubsub.kernels.dividing import bucket_for, divide
from harken.matching.pubsub.kernels.layout import (
    END_STRUCTURE,
    FREE_STRUCTURE,
    HASH,
    PRIORITY_SEARCH_TREE,
    ROOT,
    SIZE,
    UNDIVIDED,
    Database,
)
from harken.matching.structures.kernels import priority_search_trees
from harken.matching.structures.kernels.attributes import NOTHING, PRESENCE, WAYS, asked, attribute_of, is_needed
from harken.matching.structures.kernels.clauses import Contents, add_clause, set_free
from harken.matching.structures.kernels.hashing import find, key_of, put, take
from harken.matching.structures.kernels.priority_search_trees import NOWHERE
from harken.matching.structures.kernels.records import write_record

_LAST = 2**62


@part
def rank(database: Database, predicates: PredicateArrays, word: int) -> int:
    """Where a word stands within its clause: the rarest attribute first, mere presence behind, absence last."""
    if not is_needed(predicates, word):
        return _LAST
    attribute = attribute_of(predicates, word - 1)
    frequency = database.frequency[attribute]
    return frequency + (_LAST // 2 if attribute % WAYS == PRESENCE else 0)


@part
def precedes(database: Database, predicates: PredicateArrays, one: int, other: int) -> bool:
    """Whether a word comes before another one of its clause."""
    mine, its = rank(database, predicates, one), rank(database, predicates, other)
    if mine != its or mine == _LAST:
        return mine < its
    return attribute_of(predicates, one - 1) < attribute_of(predicates, other - 1)


@part
def order(database: Database, contents: Contents, predicates: PredicateArrays, clause: int) -> None:
    """Put the words of a clause in order. Each change of two is whole, and words are the same set at any time."""
    first, width = np.int64(contents.first[clause]), np.int64(contents.width[clause])
    words = contents.words
    for begin in range(first + 1, first + width):
        at = begin
        while at > first and precedes(database, predicates, np.int64(words[at]), np.int64(words[at - 1])):
            words[at], words[at - 1] = words[at - 1], words[at]
            at -= 1
    find_reach(database, contents, predicates, clause)


@part
def find_reach(database: Database, contents: Contents, predicates: PredicateArrays, clause: int) -> bool:
    """Find out how many words of a clause ask of something to be there; False if one that does comes later."""
    first, width = np.int64(contents.first[clause]), np.int64(contents.width[clause])
    reach = 0
    for at in range(width):
        if is_needed(predicates, np.int64(contents.words[first + at])):
            if reach < at:
                return False
            reach += 1
    database.reach[clause] = reach
    return True


@tight
def admit(
    database: Database,
    contents: Contents,
    predicates: PredicateArrays,
    clauses: Clauses,
    admitted: npt.NDArray[np.int64],
) -> None:
    """Write down new clauses, for which there is room, and their numbers; they are in no bucket yet."""
    for word in clauses.words:
        if is_needed(predicates, word + 1):
            database.frequency[attribute_of(predicates, word)] += 1
    for new in range(len(clauses.slot)):
        clause = add_clause(contents, clauses, new)
        database.bucket_of[clause] = -1
        order(database, contents, predicates, clause)
        write_record(database.records, contents, clause)
        admitted[new] = clause


@tight
def reorder(
    database: Database, contents: Contents, predicates: PredicateArrays, clauses: npt.NDArray[np.int64]
) -> None:
    """Put the words of clauses, which are in no bucket, in the order that the attributes of now suggest."""
    for clause in clauses:
        order(database, contents, predicates, clause)
        write_record(database.records, contents, clause)


@tight
def find_reaches(
    database: Database, contents: Contents, predicates: PredicateArrays, clauses: npt.NDArray[np.int64]
) -> bool:
    """Learn of clauses that come from a file; False if words of one are in an impossible order."""
    for clause in clauses:
        if not find_reach(database, contents, predicates, clause):
            return False
        for at in range(database.reach[clause]):
            database.frequency[attribute_of(predicates, asked(contents, clause, at))] += 1
        database.bucket_of[clause] = -1
        write_record(database.records, contents, clause)
    return True


@tight
def insert(
    database: Database,
    contents: Contents,
    predicates: PredicateArrays,
    clauses: npt.NDArray[np.int64],
    start: int,
) -> int:
    """Put clauses from `start` on into buckets; the first for which there is no room, WANTED says how much."""
    for at in range(start, len(clauses)):
        if not insert_one(database, contents, predicates, clauses[at]):
            return at
    return len(clauses)


@part
def insert_one(database: Database, contents: Contents, predicates: PredicateArrays, clause: int) -> bool:
    """Put a clause into a bucket; False if there is no room, and then it is in none."""
    buckets = database.buckets
    bucket, must_descend = np.int64(ROOT), True
    while True:
        length, level = np.int64(buckets.length[bucket]), np.int64(buckets.level[bucket])
        if not has_room(database, length):
            return False
        if level < database.reach[clause]:
            predicate = asked(contents, clause, level)
            attribute = attribute_of(predicates, predicate)
            structure = find(database.by_attribute, key_of(bucket, attribute))
            if structure < 0 and must_descend:
                structure = new_structure(database, contents, predicates, bucket, attribute)
            if structure >= 0:
                bucket = bucket_for(database, predicates, structure, predicate)
                bucket = find_space(database, contents, predicates, structure, predicate, bucket)
                if bucket < 0:
                    return False
                must_descend = buckets.length[bucket] >= database.spare[SIZE]
                continue
        elif must_descend and bucket != ROOT:
            make_space(database, contents, predicates, bucket)
        break
    enter(database, contents, predicates, bucket, clause)
    keep_in_order(database, predicates, bucket, OUT_OF_ORDER + buckets.sorted[bucket] // 4)
    count_clauses(database, bucket, 1)
    return True


@part
def find_space(
    database: Database,
    contents: Contents,
    predicates: PredicateArrays,
    structure: int,
    predicate: int,
    bucket: int,
) -> int:
    """The bucket of a structure for what is asked, this one being the one of now: it is divided if it is full.

    -1 if there is no room to do that.
    """
    buckets = database.buckets
    while buckets.length[bucket] >= buckets.limit[bucket]:
        if not has_room(database, np.int64(buckets.length[bucket])):
            return -1
        if divide(database, contents, predicates, bucket):
            bucket = bucket_for(database, predicates, structure, predicate)
        else:
            buckets.limit[bucket] = 2 * buckets.length[bucket]
    return bucket


@part
def make_space(database: Database, contents: Contents, predicates: PredicateArrays, bucket: int) -> None:
    """Move clauses of a full bucket that have a next attribute, if any is seen, into a structure below it.

    Those without one come first where entries are in order: only the last of these is looked at, and a few others.
    To look through a bucket that has outgrown its size would take ever longer.
    """
    buckets, entries = database.buckets, database.entries
    start, length = buckets.start[bucket], np.int64(buckets.length[bucket])
    attribute = np.int64(entries.attribute[start + max(0, np.int64(buckets.sorted[bucket]) - 1)])
    at = start + length
    for _ in range(OUT_OF_ORDER):
        at = max(at - 1, start)
        attribute = max(attribute, np.int64(entries.attribute[at]))
    if attribute != NOTHING:
        new_structure(database, contents, predicates, bucket, attribute)


@tight
def new_structure(
    database: Database, contents: Contents, predicates: PredicateArrays, bucket: int, attribute: int
) -> int:
    """A structure for an attribute under a bucket, and in it those of the bucket whose next attribute that is."""
    buckets, entries, structures, spare = database.buckets, database.entries, database.structures, database.spare
    structure = spare[FREE_STRUCTURE]
    if structure >= 0:
        spare[FREE_STRUCTURE] = structures.first[structure]
    else:
        structure = spare[END_STRUCTURE]
        spare[END_STRUCTURE] += 1
    structures.attribute[structure], structures.bucket[structure] = attribute, bucket
    structures.kind[structure], structures.first[structure], structures.count[structure] = UNDIVIDED, -1, 0
    only = new_bucket(database, structure, np.int64(buckets.level[bucket]) + 1)
    structures.root[structure] = only
    put(database.by_attribute, key_of(bucket, attribute), structure)
    buckets.below[bucket] += 1
    start, kept, done = buckets.start[bucket], np.int64(0), np.int64(0)
    for at in range(np.int64(buckets.length[bucket])):
        if entries.attribute[start + at] == attribute:
            enter(database, contents, predicates, only, np.int64(entries.clause[start + at]))
        else:
            kept, done = sift(database, bucket, at, kept, done)
    structures.count[structure] = buckets.length[only]
    buckets.length[bucket], buckets.sorted[bucket] = kept, done
    return structure


@part
def count_clauses(database: Database, bucket: int, change: int) -> None:
    """Let all structures above a bucket know that so many clauses have come."""
    structure = np.int64(database.buckets.owner[bucket])
    while structure >= 0:
        database.structures.count[structure] += change
        structure = np.int64(database.buckets.owner[database.structures.bucket[structure]])


@tight
def take_out(
    database: Database,
    contents: Contents,
    predicates: PredicateArrays,
    slots: npt.NDArray[np.int64],
    words: npt.NDArray[np.int64],
) -> None:
    """Remove the clauses of these slots from buckets and altogether, and write down all their words."""
    count, touched = 0, np.int64(0)
    for slot in slots:
        clause = np.int64(contents.head[slot])
        contents.head[slot] = -1
        while clause >= 0:
            following, first = np.int64(contents.sibling[clause]), np.int64(contents.first[clause])
            for at in range(first, first + np.int64(contents.width[clause])):
                word = np.int64(contents.words[at])
                words[count] = word
                count += 1
                if is_needed(predicates, word):
                    database.frequency[attribute_of(predicates, word - 1)] -= 1
            touched = leave(database, clause, touched)
            set_free(contents, clause)
            clause = following
    sweep(database, touched)


@tight
def withdraw(database: Database, clauses: npt.NDArray[np.int64]) -> None:
    """Remove clauses from their buckets: they are to be placed anew."""
    touched = np.int64(0)
    for clause in clauses:
        touched = leave(database, clause, touched)
    sweep(database, touched)


@part
def leave(database: Database, clause: int, touched: int) -> int:
    """Let a clause be in no bucket; the first of the buckets that have to be swept, plus 1."""
    bucket = np.int64(database.bucket_of[clause])
    database.bucket_of[clause] = -1
    count_clauses(database, bucket, -1)
    if database.buckets.touched[bucket] != 0:
        return touched
    database.buckets.touched[bucket] = touched if touched else -1
    return bucket + 1


@part
def sweep(database: Database, touched: int) -> None:
    """Remove the entries of clauses that have left, and then the structures that have no clause any more."""
    buckets, entries = database.buckets, database.entries
    following = touched
    while following > 0:
        bucket = following - 1
        start, kept, done = buckets.start[bucket], np.int64(0), np.int64(0)
        for at in range(np.int64(buckets.length[bucket])):
            if database.bucket_of[entries.clause[start + at]] == bucket:
                kept, done = sift(database, bucket, at, kept, done)
        buckets.length[bucket], buckets.sorted[bucket] = kept, done
        if kept < database.spare[SIZE]:
            buckets.limit[bucket] = database.spare[SIZE]
        following = np.int64(buckets.touched[bucket])
    while touched > 0:
        bucket = touched - 1
        touched = np.int64(buckets.touched[bucket])
        buckets.touched[bucket] = 0
        prune(database, bucket)


@part
def prune(database: Database, start: int) -> None:
    """Remove the structure of a bucket if it has no clause any more, and so on upwards."""
    buckets, structures = database.buckets, database.structures
    bucket = np.int64(start)
    structure = np.int64(buckets.owner[bucket])
    while structure >= 0:
        if structures.count[structure] > 0:
            hide(database, structure, bucket)
            return
        bucket = np.int64(structures.bucket[structure])
        free_structure(database, structure)
        structure = np.int64(buckets.owner[bucket])


@part
def hide(database: Database, structure: int, bucket: int) -> None:
    """Let nobody look for a range that no clause asks for any more."""
    if database.structures.kind[structure] != PRIORITY_SEARCH_TREE:
        return
    buckets, ranges = database.buckets, database.ranges
    if buckets.length[bucket] == 0 and buckets.below[bucket] == 0 and ranges.stands[bucket] != NOWHERE:
        priority_search_trees.withdraw(ranges, bucket)


@part
def free_structure(database: Database, structure: int) -> None:
    """Let a structure and its buckets be used again; structures below them are gone, or about to go."""
    buckets, structures, spare = database.buckets, database.structures, database.spare
    above = np.int64(structures.bucket[structure])
    take(database.by_attribute, key_of(above, structures.attribute[structure]))
    buckets.below[above] -= 1
    bucket, is_hashed = np.int64(structures.first[structure]), structures.kind[structure] == HASH
    while bucket >= 0:
        following = np.int64(buckets.mate[bucket])
        if is_hashed:
            take(database.by_code, key_of(structure, database.ranges.low[bucket]))
        free_bucket(database, bucket)
        bucket = following
    structures.first[structure] = spare[FREE_STRUCTURE]
    structures.count[structure] = -1
    spare[FREE_STRUCTURE] = structure


@tight
def count_below(
    database: Database,
    renumbered: npt.NDArray[np.bool_],
    found: npt.NDArray[np.int64],
) -> int:
    """Write down, as far as they fit, the clauses below trees of attributes whose keys are others now.

    Returns how many they are.
    """
    buckets, structures = database.buckets, database.structures
    count = 0
    for clause in range(len(database.bucket_of)):
        bucket = np.int64(database.bucket_of[clause])
        while bucket > ROOT:
            structure = buckets.owner[bucket]
            kind = structures.kind[structure]
            if kind != UNDIVIDED and kind != HASH and renumbered[structures.attribute[structure]]:
                if count < len(found):
                    found[count] = clause
                count += 1
                break
            bucket = np.int64(structures.bucket[structure])
    return count
