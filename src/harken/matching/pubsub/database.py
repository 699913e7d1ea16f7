"""The database of PUBSUB as growing arrays: who makes room for what kernels put there."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from harken.matching.growing import GrowingArray
from harken.matching.kernels.layout import PredicateArrays
from harken.matching.pubsub.kernels.buckets import AT_LEAST, PER_ENTRY, count_entries, move_entries
from harken.matching.pubsub.kernels.layout import (
    END_BUCKET,
    END_ENTRY,
    END_STRUCTURE,
    FREE_BUCKET,
    FREE_STRUCTURE,
    NONE,
    ROOT,
    SAMPLE,
    SIZE,
    TOTALS,
    WANTED,
    Buckets,
    Database,
    Entries,
    Structures,
)
from harken.matching.pubsub.kernels.placing import insert
from harken.matching.structures.clauses import WASTE
from harken.matching.structures.intervals import (
    GrowingHashTable,
    GrowingIntervalTrees,
    GrowingPrioritySearchTrees,
)
from harken.matching.structures.kernels.attributes import WAYS
from harken.matching.structures.kernels.clauses import Contents
from harken.matching.structures.kernels.records import RECORD

MORE = 4
"""One part in so many is added whenever room is made."""

_OF_ENTRIES = (np.uint32, np.int32, np.int32)

_COMPACT = 4_096
"""Entries from which on room that nobody uses is worth being found."""


class GrowingDatabase:
    """Attribute structures, buckets and what each clause is in. Changes must not run beside anything else."""

    def __init__(self, bucket_size: int) -> None:
        self._buckets = _columns(np.int64, *(len(Buckets._fields) - 1) * [np.int32])
        self._entries = _columns(*_OF_ENTRIES)
        self._structures = _columns(np.int32, np.int32, np.int8, np.int32, np.int32, np.int64)
        self._by_attribute, self._by_code = GrowingHashTable(), GrowingHashTable()
        self._intervals, self._ranges = GrowingIntervalTrees(), GrowingPrioritySearchTrees()
        self._bucket_of, self._reach = GrowingArray(np.int32, fill=-1), GrowingArray(np.int32)
        self._records = GrowingArray(np.int32)
        self.frequency, self.preferred = GrowingArray(np.int64), GrowingArray(np.int8)
        self._sample = np.zeros(2 * SAMPLE, np.int64)
        self._spare = np.zeros(TOTALS, np.int64)
        self._spare[[FREE_BUCKET, FREE_STRUCTURE]] = -1
        self._spare[SIZE], self._spare[END_BUCKET] = bucket_size, 1
        self.make_room(0)
        buckets = self.arrays().buckets
        buckets.owner[ROOT], buckets.mate[ROOT], buckets.limit[ROOT] = NONE, -1, bucket_size

    @property
    def nbytes(self) -> dict[str, int]:
        """Bytes taken by each part, room to grow included."""
        by_clause = (self._bucket_of, self._reach, self._records)
        return {
            "buckets": sum(each.nbytes for each in (*self._buckets, *self._entries)),
            "attribute structures": sum(each.nbytes for each in self._structures)
            + self._by_attribute.nbytes
            + self._by_code.nbytes
            + self._intervals.nbytes
            + self._ranges.nbytes,
            "records of clauses": sum(each.nbytes for each in by_clause),
        }

    def arrays(self) -> Database:
        """All of it as kernels see it."""
        return Database(
            Buckets(*(each.values for each in self._buckets)),
            Entries(*(each.values for each in self._entries)),
            Structures(*(each.values for each in self._structures)),
            self._by_attribute.arrays(),
            self._by_code.arrays(),
            self._intervals.arrays(),
            self._ranges.arrays(),
            self._bucket_of.values,
            self._reach.values,
            self._records.values,
            self.frequency.values,
            self.preferred.values,
            self._sample,
            self._spare,
        )

    def have_clauses(self, count: int) -> None:
        """Have a place for every clause below this one."""
        self._bucket_of.grow_to(count)
        self._reach.grow_to(count)
        self._records.grow_to(count * RECORD)

    def have_dimensions(self, count: int) -> None:
        """Have a place for every attribute of so many dimensions."""
        self.frequency.grow_to(count * WAYS)
        self.preferred.grow_to(count * WAYS)

    def make_room(self, entries: int) -> None:
        """Have room for whatever becomes of a bucket with so many entries."""
        spare = self._spare
        buckets = _with_more(int(spare[END_BUCKET])) + entries + 4
        for array in self._buckets:
            array.grow_to(buckets)
        self._intervals.have_items(buckets)
        self._ranges.have_items(buckets)
        for array in self._entries:
            array.grow_to(_with_more(int(spare[END_ENTRY])) + PER_ENTRY * entries + AT_LEAST)
        for array in self._structures:
            array.grow_to(_with_more(int(spare[END_STRUCTURE])) + 1)
        self._by_attribute.have_room(_with_more(len(self._by_attribute)) - len(self._by_attribute) + 1)
        self._by_code.have_room(entries + 1)

    def insert(self, contents: Contents, predicates: PredicateArrays, clauses: npt.NDArray[np.int64]) -> None:
        """Put clauses that are in no bucket into some."""
        done = insert(self.arrays(), contents, predicates, clauses, 0)
        while done < len(clauses):
            self.make_room(int(self._spare[WANTED]))
            done = insert(self.arrays(), contents, predicates, clauses, done)

    def compact(self) -> None:
        """Lay all buckets side by side if much room lies idle. Linear in the number of entries."""
        end, database = int(self._spare[END_ENTRY]), self.arrays()
        if end < _COMPACT:
            return
        used = count_entries(database)
        if end > 2 * WASTE * used:
            into = _columns(*_OF_ENTRIES, size=used)
            self._spare[END_ENTRY] = move_entries(database, Entries(*(each.values for each in into)))
            self._entries = into


def _columns(*dtypes: type[np.generic], size: int = 0) -> list[GrowingArray[Any]]:
    return [GrowingArray(dtype, size=size) for dtype in dtypes]


def _with_more(count: int) -> int:
    return count + count // MORE
