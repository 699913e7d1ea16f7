"""Clusters in memory: blocks, the directory, access tables, and the room they need to grow."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.errors import CapacityError
from harken.matching.clusters.filtering import (
    Filtered,
    are_out_of_place,
    filtered_tables,
    keys_of,
    made_filters,
    open_tables,
    tables_to_filter,
)
from harken.matching.clusters.kernels.blocks import FREE_CLASSES, cluster_sizes, copy_compact, lines_in_use
from harken.matching.clusters.kernels.choosing import Asked, nothing_asked
from harken.matching.clusters.kernels.pairs import dimensions_at, pairs_for, sectors_for
from harken.matching.clusters.kernels.placing import ReadClauses, no_paths, place_clauses, read_clauses, take_out
from harken.matching.clusters.kernels.soundness import Found
from harken.matching.clusters.soundness import check_clusters, check_filters, check_tables
from harken.matching.contract import Slots
from harken.matching.growing import GrowingArray
from harken.matching.kernels.layout import (
    ALL_TABLE,
    ALWAYS,
    CELL_WORDS,
    CELLS,
    CLAUSE,
    DIGIT,
    END_NODE,
    END_SHARED,
    FILTER,
    FIRST_KEY_TABLE,
    FREE_NODE,
    FREE_SHARED,
    IN_PAIRS,
    LINE,
    NARROW,
    NODE,
    NOTHING,
    PAIRS_OPEN,
    PAIRS_TABLE,
    PREDICATE_TABLE,
    PRESENCE_TABLE,
    RANGE_TABLE,
    SECTORS,
    SHARED,
    SIBLING,
    SIDE,
    SPARE,
    Blocks,
    Chances,
    Clauses,
    PredicateArrays,
    Tables,
)
from harken.matching.runs import edges
from harken.matching.saving import State
from harken.model import capacity

SMALLEST = 1_024 * LINE

LINES_EACH = 2
"""Cache lines that a clause takes, at most, unless its cluster is long."""

SPARE_LINES, SPARE_PART, SPARE_SHARED = 1_024, 16, 512
"""With fewer lines than this and a part of all, or shared clauses, room runs short: a portion may want so many."""

NEAR = 2 << 20
"""Bytes of narrow filters that the caches hold."""

WASTE = 1.6
"""How many times the room that clusters need they may take, unless something else is asked for."""

SPRAWL = 4
"""How many times the room that tables need the directory may take: what growing by half leaves is less."""


class Regions(NamedTuple):
    """Where tables have their places, and the keys of key tables theirs; by table or by its dimensions."""

    base: GrowingArray[np.int64]
    size: GrowingArray[np.int64]
    stride: GrowingArray[np.int64]
    radix: GrowingArray[np.int64]


class Compacted(NamedTuple):
    """Clusters side by side, and where they are."""

    words: npt.NDArray[np.uint32]
    directory: npt.NDArray[np.uint32]
    free: npt.NDArray[np.int64]
    block_of: GrowingArray[np.uint32]
    shared_block: GrowingArray[np.uint32]
    regions: Regions


class Digits(NamedTuple):
    """What keys are made of, as kernels see it."""

    digit: npt.NDArray[np.int32]
    digits: npt.NDArray[np.int64]


NO_DIGITS = Digits(np.zeros((0, 0), np.int32), np.zeros((0, DIGIT), np.int64))


class ClusterStore:
    """Clusters under access paths. Changes must not run beside anything else; matching only reads."""

    def __init__(self) -> None:
        self.words: npt.NDArray[np.uint32] = np.zeros(SMALLEST, np.uint32)
        self.directory: npt.NDArray[np.uint32] = np.zeros(64, np.uint32)
        self.filters: npt.NDArray[np.uint16] = np.zeros(FILTER, np.uint16)
        self.free = np.zeros(FREE_CLASSES, np.int64)
        self.free[0] = 1  # block 0 stands for none
        self.block_of = GrowingArray(np.uint32)
        self._shared_block = GrowingArray(np.uint32)
        self._shared_head = GrowingArray(np.int32)
        self._nodes: npt.NDArray[np.int32] = np.zeros((4, NODE), np.int32)
        self._spare = np.zeros(SPARE, np.int64)
        self._spare[[FREE_SHARED, FREE_NODE]] = -1
        self._shared_block.grow_to(4)
        self._shared_head.grow_to(4)
        self.schemas: list[tuple[int, ...]] = [()] * FIRST_KEY_TABLE
        self._base = GrowingArray(np.int64)
        self._size = GrowingArray(np.int64)
        self._first = GrowingArray(np.int32)
        self._dimension = GrowingArray(np.int32)
        self._stride = GrowingArray(np.int64)
        self._radix = GrowingArray(np.int64)
        self._closed = GrowingArray(np.bool_)
        self._population = GrowingArray(np.int64)
        self._filter = GrowingArray(np.int64)
        self._cells = GrowingArray(np.uint64)
        self._pairs = GrowingArray(np.int64, size=IN_PAIRS)
        self._digits: Digits | None = None
        self._asked: Asked | None = None
        self._end = 0
        self._first.append(0)
        for _ in (ALL_TABLE, PREDICATE_TABLE, PRESENCE_TABLE, RANGE_TABLE):
            self._add_region(1)

    @property
    def nbytes(self) -> dict[str, int]:
        """Bytes by part."""
        return {
            "clusters": int(self.free[0]) * LINE * 4,
            "room to grow": self.words.nbytes - int(self.free[0]) * LINE * 4,
            "directory": self.directory.nbytes,
            "filters": self.filters.nbytes,
            "locations": self.block_of.nbytes,
            "shared clauses": self._shared_block.nbytes + self._shared_head.nbytes + self._nodes.nbytes,
        }

    @property
    def clauses(self) -> int:
        """How many clauses there are; one that several subscriptions share counts once."""
        return int(self._population.values.sum())

    def tables(self) -> Tables:
        """The access tables as kernels see them."""
        if self._digits is None:
            self._digits = self._found_digits()
        return Tables(
            self._base.values,
            self._first.values,
            self._dimension.values,
            self._stride.values,
            self._radix.values,
            *self._digits,
            self._closed.values,
            self._population.values,
            self._filter.values,
            self._cells.values,
            self._pairs.values,
        )

    def blocks(self) -> Blocks:
        """Clusters and directory as kernels see them."""
        return Blocks(
            self.words,
            self.directory,
            self.filters,
            self.block_of.values,
            self._shared_block.values,
            self._shared_head.values,
            self._nodes,
            self._spare,
        )

    def state(self) -> State:
        """All that is in use, as it lies. Room to grow is made anew where it is wanted."""
        spare = self._spare
        arrays = {
            "words": self.words[: int(self.free[0]) * LINE],
            "directory": self.directory[: self._end],
            "filters": self.filters,
            "free": self.free,
            "block_of": self.block_of.values,
            "shared_block": self._shared_block.values[: spare[END_SHARED]],
            "shared_head": self._shared_head.values[: spare[END_SHARED]],
            "nodes": self._nodes[: spare[END_NODE]],
            "spare": spare,
            "size": self._size.values,
            **self.tables()._asdict(),
        }
        for derived in ("cells", "digit", "digits"):
            del arrays[derived]
        return State({"schemas": self.schemas}, arrays)

    def restore(self, state: State, predicates: PredicateArrays, slots: Slots) -> Found:
        """Hold what another store held, of these predicates and slots; what that is. Only an empty one can."""
        self.words, self.directory = state.array("words", np.uint32), state.array("directory", np.uint32)
        self._end = len(self.directory)
        self.free, self._spare = state.array("free", np.int64), state.array("spare", np.int64)
        self.block_of = GrowingArray.of(state.array("block_of", np.uint32))
        self._shared_block = GrowingArray.of(state.array("shared_block", np.uint32))
        self._shared_head = GrowingArray.of(state.array("shared_head", np.int32))
        self._nodes = state.array("nodes", np.int32, 2)
        self.schemas = [tuple(schema) for schema in state.fact("schemas")]
        self._size = GrowingArray.of(state.array("size", np.int64))
        self._base = GrowingArray.of(state.array("base", np.int64))
        self._first = GrowingArray.of(state.array("first", np.int32))
        self._dimension = GrowingArray.of(state.array("dimension", np.int32))
        self._stride = GrowingArray.of(state.array("stride", np.int64))
        self._radix = GrowingArray.of(state.array("radix", np.int64))
        self._closed = GrowingArray.of(state.array("closed", np.bool_))
        self._population = GrowingArray.of(state.array("population", np.int64))
        self._filter = GrowingArray(np.int64, size=len(self.schemas))
        if "filters" in state.arrays:  # or it was saved when there were none
            self.filters = state.array("filters", np.uint16)
            self._filter = GrowingArray.of(state.array("filter", np.int64))
        if "pairs" in state.arrays:  # likewise
            self._pairs = GrowingArray.of(state.array("pairs", np.int64))
        else:
            self._pairs.grow_to(IN_PAIRS + sectors_for(len(predicates.banded)))
        size, self._digits = self._size.values, NO_DIGITS
        check_tables(predicates, self.tables(), size, self.directory, self.schemas)
        self._digits = None  # which are found when tables are known to be some
        tables = self.tables()
        self._cells.grow_to(len(predicates.banded) * CELL_WORDS)
        self._note_cells()
        found = check_clusters(predicates, tables, size, self.blocks(), self.free, slots)
        check_filters(predicates, tables, self.blocks())
        return found

    def add_key_table(self, dimensions: tuple[int, ...], radixes: tuple[int, ...]) -> int:
        """A table whose keys are equalities on these dimensions, for codes below the radixes; its number.

        Keys that differ in the first dimension only lie side by side, those that differ in the last far apart.
        """
        table = self._closed_table(len(dimensions))
        if table is None:
            for _ in dimensions:
                for array in (self._dimension, self._stride, self._radix):
                    array.append(0)
            self.schemas.append(())
            table = self._add_region(0)
        places = 1
        first = int(self._first.values[table])
        for at, (dimension, radix) in enumerate(zip(dimensions, radixes, strict=True), first):
            self._dimension.values[at] = dimension
            self._stride.values[at] = places
            self._radix.values[at] = radix
            places *= radix
        self.schemas[table] = tuple(sorted(dimensions))
        self._closed.values[table] = False
        self._widen(table, places)
        self._digits = None
        return table

    def _found_digits(self) -> Digits:
        """What values add to the keys of open tables, numbered: many have a digit in common."""
        known = {(0, 0, 0): NOTHING}
        wide_last = sorted(open_tables(self._closed.values), key=lambda table: self._filter.values[table] > 0)
        rows = [[table, *self._digits_of(table, known)] for table in wide_last]
        longest = max(map(len, rows), default=1) - 1
        # As many as kernels have written out.
        digit = np.full((len(rows), 1 + (2 if longest <= 2 else max(4, longest))), NOTHING, np.int32)
        for row, filled in zip(digit, rows, strict=True):
            row[: len(filled)] = filled
        return Digits(digit, np.array(list(known), np.int64))

    def _digits_of(self, table: int, known: dict[tuple[int, int, int], int]) -> list[int]:
        """The digits that make the keys of a table; those that nobody knows yet get numbers."""
        keyed = slice(self._first.values[table], self._first.values[table + 1])
        arrays = (self._dimension.values, self._radix.values, self._stride.values)
        asked = zip(*(each[keyed].tolist() for each in arrays), strict=True)
        return [known.setdefault(each, len(known)) for each in asked]

    def _closed_table(self, length: int) -> int | None:
        """A closed, empty table of keys of this length, to be used again."""
        first = self._first.values
        for table in range(FIRST_KEY_TABLE, len(self.schemas)):
            is_free = self._closed.values[table] and self._population.values[table] == 0
            if is_free and first[table + 1] - first[table] == length:
                return table
        return None

    def make_room(self, predicates: int, dimensions: int, banded: int) -> None:
        """Have a place in the directory for every predicate, dimension, cell, and pair of sectors if there are."""
        self._widen(PREDICATE_TABLE, predicates)
        self._widen(PRESENCE_TABLE, dimensions)
        self._widen(RANGE_TABLE, banded * CELLS)
        self._cells.grow_to(banded * CELL_WORDS)
        self._pairs.grow_to(IN_PAIRS + sectors_for(banded))
        if self.pairs_table:
            self._widen(self.pairs_table, pairs_for(sectors_for(banded)))

    @property
    def cells_in_use(self) -> int:
        """How many cells of the range table clauses stand in, or have stood in."""
        return int(np.bitwise_count(self._cells.values).sum())

    def _note_cells(self) -> None:
        """Have the cells in use be those from which something is led to."""
        base = int(self._base.values[RANGE_TABLE])
        used = self.directory[base : base + 64 * len(self._cells)] > 0
        self._cells.values[:] = np.packbits(used, bitorder="little").view(np.uint64)

    @property
    def pairs_table(self) -> int:
        """The table of pairs, or 0 if there has been none yet."""
        return int(self._pairs.values[PAIRS_TABLE])

    @property
    def has_pairs(self) -> bool:
        """Whether clauses may stand in pairs."""
        return bool(self._pairs.values[PAIRS_OPEN])

    def open_pairs(self) -> None:
        """Let clauses stand in pairs."""
        if not self.pairs_table:
            self.schemas.append(())
            table = self._add_region(0)
            self._closed.values[table] = True  # to keys
            self._pairs.values[PAIRS_TABLE] = table
        self._widen(self.pairs_table, pairs_for(len(self._pairs) - IN_PAIRS))
        self._pairs.values[PAIRS_OPEN] = True

    def close_pairs(self) -> None:
        """Let no clause enter a pair; those that stand in one can still be moved."""
        self._pairs.values[PAIRS_OPEN] = False

    def most_pairs(self) -> int:
        """How many pairs an event may open, also of those that nobody stands in any more."""
        if not self.pairs_table:
            return 0
        in_use = np.count_nonzero(self._pairs.values[IN_PAIRS:].reshape(-1, SECTORS), axis=1)
        # Of upper and lower bounds together, one more than of either; and two of ranges.
        return pairs_for(int(np.minimum(in_use, SIDE + 3).sum()))

    def check_room(self, clauses: int, predicates: int) -> None:
        """CapacityError if there is no number for so many more clauses, or for where they would be."""
        spare = self._spare.tolist()
        capacity.check("clauses", self.clauses + clauses, capacity.CLAUSES)
        # A clause may come to be shared with one before, which takes a number and two owners.
        owners = max(spare[END_SHARED] + clauses, spare[END_NODE] + 2 * clauses)
        capacity.check("owners of clauses", owners, capacity.CLAUSES)
        lines = int(self.free[0]) + (predicates + clauses) // LINE
        capacity.check("cache lines of clusters", lines, capacity.LINES)

    def place(self, predicates: PredicateArrays, chances: Chances, clauses: Clauses, widest: int) -> None:
        """Put clauses, of so many predicates at most, under their best access paths. Linear in their number."""
        tables, residual, done = self.tables(), np.zeros(widest + 1, np.int64), 0
        asked, paths = self._nothing_asked(predicates, tables), no_paths(tables, len(clauses.slot))
        while True:
            done = place_clauses(
                predicates, tables, self.blocks(), self.free, chances, clauses, done, asked, paths, residual
            )
            if done == len(clauses.slot):
                return
            self.grow()

    def _nothing_asked(self, predicates: PredicateArrays, tables: Tables) -> Asked:
        """Room for what a clause asks for, which is empty again once all are placed; kept while it fits."""
        asked = self._asked
        sizes = len(predicates.equal_first), len(tables.base)
        if asked is None or (len(asked.code), len(asked.key)) != sizes:
            asked = self._asked = nothing_asked(predicates, tables)
        return asked

    def take_out(
        self, predicates: PredicateArrays, slots: npt.NDArray[np.int64], widest: int
    ) -> npt.NDArray[np.int64]:
        """Remove subscriptions whose clauses have at most so many predicates; the words of all their clauses."""
        words = np.zeros(8 * len(slots) + widest, np.int64)
        done, count = 0, 0
        while True:
            done, count = take_out(predicates, self.tables(), self.blocks(), slots, widest, words, done, count)
            if done == len(slots):
                return words[:count]
            words = np.concatenate([words, np.zeros(len(words), np.int64)])

    def read(self, predicates: PredicateArrays, slots: npt.NDArray[np.int64], widest: int) -> Clauses:
        """All clauses of these slots, also where a change of others has failed. Linear in the size of clusters."""
        wanted = np.zeros(int(slots.max(initial=-1)) + 1, np.bool_)
        wanted[slots] = True
        # The number of clauses in a table is what it gets last when it is made.
        places = np.concatenate([self.used_places(table) for table in range(len(self._population))])
        clause, (count, length) = np.zeros(widest, np.int64), (0, 0)
        for _ in ("to count them", "to read them"):
            read = ReadClauses(*(np.zeros(room, np.int64) for room in (2, count, count, length)))
            read_clauses(predicates, self.tables(), self.blocks(), places, wanted, clause, read)
            count, length = read.counts.tolist()
        alone = np.bincount(read.slot, minlength=len(wanted))[read.slot] == 1
        return Clauses(edges(read.size), read.words, read.slot, alone)

    def entries_of(self, slot: int) -> list[tuple[int, int]]:
        """The clauses of a subscription: the block and the entry id of each."""
        located = int(self.block_of.values[slot])
        if located < SHARED:
            return [(located, slot)] if located else []
        entries, node = [], located - SHARED
        while node >= 0:
            number = int(self._nodes[node, CLAUSE])
            entries.append((int(self._shared_block.values[number]), SHARED + number))
            node = int(self._nodes[node, SIBLING])
        return entries

    def used_places(self, table: int, part: slice = slice(None)) -> npt.NDArray[np.int64]:
        """The directory entries of a table, or of a part of its keys, that lead somewhere."""
        base = int(self._base.values[table])
        first, last, _ = part.indices(int(self._size.values[table]))
        return base + first + np.flatnonzero(self.directory[base + first : base + last])

    def used_pairs(self, banded: Sequence[int] | None = None) -> npt.NDArray[np.int64]:
        """The directory entries of pairs that lead somewhere: all, or those of these dimensions with bands."""
        if not self.pairs_table:
            return np.zeros(0, np.int64)
        places = self.used_places(self.pairs_table)
        if banded is None:
            return places
        one, other = dimensions_at(places - self._base.values[self.pairs_table])
        return places[np.isin(one, banded) | np.isin(other, banded)]

    def entries_at(self, table: int, key: int) -> int:
        """How many clauses stand under an access path."""
        return int(cluster_sizes(self.blocks(), np.array([self._base.values[table] + key])).sum())

    def table_stats(self, table: int) -> dict[str, object]:
        """What a table holds: clauses, clusters, and the sizes of those."""
        sizes = cluster_sizes(self.blocks(), self.used_places(table))
        sizes = sizes[sizes > 0]
        return {
            "population": int(self._population.values[table]),
            "clusters": len(sizes),
            "mean_cluster": float(sizes.mean()) if len(sizes) else 0.0,
            "largest_cluster": int(sizes.max(initial=0)),
        }

    def radixes(self, table: int) -> dict[int, int]:
        """The codes a key table has places for, by dimension: those below."""
        keyed = slice(self._first.values[table], self._first.values[table + 1])
        return dict(zip(self._dimension.values[keyed].tolist(), self._radix.values[keyed].tolist(), strict=True))

    def tables_without(self, retired: Sequence[int]) -> Tables:
        """The access tables, as if some key tables were closed."""
        tables = self.tables()
        if not retired:
            return tables
        closed, filters = tables.closed.copy(), tables.filter.copy()
        closed[list(retired)], filters[list(retired)] = True, 0
        return tables._replace(closed=closed, filter=filters)

    def close_key_table(self, table: int) -> None:
        """Let no clause enter a key table and no event look there; its clauses can still be moved."""
        self._closed.values[table] = True
        self._filter.values[table] = 0
        self.schemas[table] = ()
        self._digits = None

    @property
    def has_filters(self) -> bool:
        """Whether some key tables have filters."""
        return bool(self._filter.values.any())

    @property
    def has_near_filters(self) -> bool:
        """Whether all open key tables have narrow filters, which the caches hold."""
        is_open = open_tables(self._closed.values)
        is_narrow = bool(is_open) and bool((self._filter.values[is_open] < 0).all())
        return is_narrow and self.filters.nbytes <= NEAR

    def crowded(self) -> npt.NDArray[np.int64]:
        """The directory entries of keys that have more entries than their filters have room for."""
        places = [np.zeros(0, np.int64)]
        for table in np.flatnonzero(self._filter.values).tolist():
            number = int(self._filter.values[table])
            first, size = (number * FILTER, FILTER) if number > 0 else (-number * NARROW, NARROW)
            words = self.filters[first : first + keys_of(self.tables(), table) * size : size]
            places.append(self._base.values[table] + np.flatnonzero(words == ALWAYS))
        return np.concatenate(places)

    def filtered(self, predicates: PredicateArrays) -> Filtered | None:
        """Filters for the key tables they pay for; None if there are no others.

        Linear in the keys of these tables, and in their clauses, if there are. Nothing that others read changes.
        """
        tables, blocks = self.tables(), self.blocks()
        wanted = tables_to_filter(predicates, tables, blocks, self.nbytes["clusters"])
        return None if wanted == filtered_tables(tables) else made_filters(predicates, tables, blocks, wanted)

    def have_filters(self, filtered: Filtered) -> None:
        """Have these filters; nothing has changed since they were made."""
        self.filters = filtered.filters
        self._filter.values[:] = filtered.first
        self._digits = None

    def is_untidy(self, predicates: PredicateArrays) -> bool:
        """Whether clusters take far more room than they need, or filters are not where they would pay."""
        if self._wastes(lines_in_use(self.blocks()) + 1, WASTE):
            return True
        return are_out_of_place(predicates, self.tables(), self.blocks(), self.nbytes["clusters"])

    def _wastes(self, needed: int, waste: float) -> bool:
        """Whether clusters that need so many lines take so many times that, or tables far more than they need."""
        places = int(self._size.values.sum()) - int(self._size.values[self._abandoned()].sum())
        return needed * waste <= int(self.free[0]) or SPRAWL * places <= self._end

    def _abandoned(self) -> list[int]:
        """The key tables that are closed and empty: their places are nobody's."""
        empty = self._closed.values & (self._population.values == 0)
        return [table for table in np.flatnonzero(empty).tolist() if table != self.pairs_table]

    def _side_by_side(self) -> Regions:
        """Regions without anything between them; those of abandoned tables have one place, for no key."""
        moved = Regions(self._base.twin(), self._size.twin(), self._stride.twin(), self._radix.twin())
        for table in self._abandoned():
            keyed = slice(self._first.values[table], self._first.values[table + 1])
            moved.stride.values[keyed] = moved.radix.values[keyed] = moved.size.values[table] = 1
        moved.base.values[:] = np.cumsum(moved.size.values) - moved.size.values
        return moved

    def compacted(self, waste: float) -> Compacted | None:
        """The clusters and regions side by side, if they take so many times what they need. Linear in their size.

        Nothing that others read is changed.
        """
        blocks = self.blocks()
        needed = lines_in_use(blocks) + 1
        if not self._wastes(needed, waste):
            return None
        words = np.zeros((needed + needed // 8) * LINE, np.uint32)
        free, directory = np.zeros(FREE_CLASSES, np.int64), self.directory.copy()
        block_of, shared_block = self.block_of.twin(), self._shared_block.twin()
        blocks = blocks._replace(directory=directory, block_of=block_of.values, shared_block=shared_block.values)
        free[0] = copy_compact(blocks, words)
        regions = self._side_by_side()
        old = zip(self._base.values.tolist(), regions.size.values.tolist(), strict=True)
        directory = np.concatenate([directory[base : base + size] for base, size in old])
        return Compacted(words, directory, free, block_of, shared_block, regions)

    def have_compacted(self, compacted: Compacted) -> None:
        """Have clusters lie as they were laid side by side; nothing has changed since."""
        # At once, so that whatever fails the clusters can be read.
        end = len(compacted.directory)
        self.words, self.directory, self.free, self.block_of, self._shared_block, regions = compacted
        (self._base, self._size, self._stride, self._radix), self._end = regions, end
        self._note_cells()

    def runs_short(self) -> bool:
        """Whether there is little room left for more blocks, or for more shared clauses."""
        lines = len(self.words) // LINE
        return self._lacks_shared(SPARE_SHARED) or lines - int(self.free[0]) < SPARE_LINES + lines // SPARE_PART

    def make_room_beside(self) -> None:
        """Make more room where it runs short. Nothing that others read is changed."""
        with suppress(CapacityError):  # what comes may fit all the same, where others have left
            self._grow_shared(2 * SPARE_SHARED) if self._lacks_shared(SPARE_SHARED) else self._grow_words()

    def make_room_for(self, clauses: int) -> None:
        """Have room for so many more clauses, as far as can be told. Nothing that others read is changed."""
        if int(self.free[0]) + LINES_EACH * clauses > len(self.words) // LINE:
            with suppress(CapacityError):  # they may fit all the same, where others have left
                self.grow()

    def grow(self) -> None:
        """Make room for more blocks, and for more shared clauses if it is those that lack it."""
        if self._lacks_shared(1):
            self._grow_shared(16)
        else:
            self._grow_words()

    def _lacks_shared(self, count: int) -> bool:
        """Whether there is no room for so many more shared clauses, of two owners each."""
        shared, nodes = int(self._spare[END_SHARED]), int(self._spare[END_NODE])
        return shared + count > len(self._shared_head) or nodes + 2 * count > len(self._nodes)

    def _grow_shared(self, least: int) -> None:
        shared, nodes = int(self._spare[END_SHARED]), int(self._spare[END_NODE])
        self._shared_block.grow_to(shared + max(shared // 2, least))
        self._shared_head.grow_to(shared + max(shared // 2, least))
        larger_nodes = np.zeros((nodes + max(nodes // 2, 2 * least), NODE), np.int32)
        larger_nodes[:nodes] = self._nodes[:nodes]
        self._nodes = larger_nodes

    def _grow_words(self) -> None:
        capacity.check("cache lines of clusters", len(self.words) // LINE + 1, capacity.LINES)
        room = min(len(self.words) + max(SMALLEST, len(self.words) // 2), capacity.LINES * LINE)
        larger = np.zeros(room, np.uint32)
        larger[: len(self.words)] = self.words
        self.words = larger

    def _add_region(self, places: int) -> int:
        self.reserve(places)
        self._base.append(self._end)
        self._size.append(places)
        self._first.append(len(self._dimension))
        self._closed.append(False)
        self._filter.append(0)
        self._end += places
        return self._population.append(0)

    def _widen(self, table: int, places: int) -> None:
        """Give a table more places; its region moves to the end of the directory."""
        size = int(self._size.values[table])
        if places <= size:
            return
        room = self._room_for(table, places)
        self.reserve(room)
        old, new = int(self._base.values[table]), self._end
        self.directory[new : new + size] = self.directory[old : old + size]
        self._end += room
        # Whatever fails, all clusters of the table can be read at one place or the other.
        self._base.values[table] = new
        self._size.values[table] = room
        self.directory[old : old + size] = 0

    def _room_for(self, table: int, places: int) -> int:
        """The places that a table gets which is to have more: some to spare, but for keys."""
        size, is_of_keys = int(self._size.values[table]), table >= FIRST_KEY_TABLE and table != self.pairs_table
        return places if is_of_keys else max(places, size + size // 2, 16)

    def reserve_for(self, predicates: int) -> None:
        """Have room for a larger region for so many predicates. Nothing that others read is changed."""
        if predicates > int(self._size.values[PREDICATE_TABLE]):
            self.reserve(self._room_for(PREDICATE_TABLE, predicates))

    def reserve(self, places: int) -> None:
        """Have room in the directory for regions that are to come. Nothing that others read is changed."""
        if self._end + places > len(self.directory):
            larger = np.zeros(max(self._end + places, len(self.directory) * 3 // 2), np.uint32)
            larger[: self._end] = self.directory[: self._end]
            self.directory = larger
