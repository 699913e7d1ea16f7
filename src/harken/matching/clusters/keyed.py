"""What the algorithms with key tables share: which schemas there can be, and how tables come and go."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable

import numpy as np

from harken.matching.clusters.cost import calibrated
from harken.matching.clusters.kernels.maintaining import expected_sectors, tally_pairs
from harken.matching.clusters.matcher import ClusterMatcher
from harken.matching.kernels.layout import FIRST_KEY_TABLE, PAIRED, RANGE_TABLE, SECTORS
from harken.portions import ALONE, BESIDE, Needs, Pace

MOST_PLACES = 1 << 22
"""Keys that one table may have."""

_SPARE = 1
"""Codes that a table is prepared for, beyond those there are: more would spread its keys over more memory."""

SECTOR, PAIR = 7.5, 0.75
"""Checks in the time of which the sectors of a value are found, and a pair is seen to be empty. Measured once."""

SAMPLED_FOR_PAIRS = 100_000
"""Clauses that are looked at to see whether pairs pay."""

Schema = tuple[int, ...]


class KeyedMatcher(ClusterMatcher):
    """Clauses in clusters, many of them under keys of several equalities."""

    def _sizes(self, schema: Schema) -> tuple[int, ...]:
        """How many codes are in use, in each dimension."""
        return tuple(len(self._predicates.dimensions[number].constants) for number in schema)

    def _radixes(self, schema: Schema) -> tuple[int, ...]:
        """The codes to prepare a table for."""
        return tuple(size + _SPARE for size in self._sizes(schema))

    def _is_possible(self, schema: Schema) -> bool:
        """Whether a table could have a place for every key."""
        return math.prod(self._radixes(schema)) <= MOST_PLACES

    def _has_room(self, table: int) -> bool:
        """Whether a table has a place for all keys of now: constants may have come since it was made."""
        radixes = self._store.radixes(table)
        return all(
            size <= radix for size, radix in zip(self._sizes(tuple(radixes)), radixes.values(), strict=True)
        )

    def _key_tables(self) -> list[int]:
        """The key tables that are open, latest first."""
        schemas = self._store.schemas
        return [table for table in range(len(schemas) - 1, FIRST_KEY_TABLE - 1, -1) if schemas[table]]

    def _add_tables(self, schemas: Iterable[Schema]) -> None:
        counts = self._predicates.equality_counts()
        for schema in schemas:
            # What most clauses ask for counts most: see locality.py.
            rarest_first = tuple(sorted(schema, key=lambda dimension: (counts[dimension], dimension)))
            self._store.add_key_table(rarest_first, self._radixes(rarest_first))

    def _pair_ranges_in_portions(self, margin: float, pace: Pace) -> Generator[Needs, None, int]:
        """Have clauses stand in pairs of ranges if that pays, and only then; how many have moved."""
        yield BESIDE
        pays = self._pairs_pay(margin)
        yield ALONE
        if pays == self._store.has_pairs:
            return 0
        with self._changing():
            if pays:
                self._store.open_pairs()
            else:
                self._store.close_pairs()
        return (yield from self._move_in_portions(self._under_ranges, pace))

    def _pairs_pay(self, margin: float) -> bool:
        """Whether checking clauses in pairs is so many times as quick, lookups included; if they are, quicker."""
        places = self._under_ranges()
        clauses = int(self._store.tables().population[[RANGE_TABLE, self._store.pairs_table or RANGE_TABLE]].sum())
        step = 1 + clauses // SAMPLED_FOR_PAIRS
        pair, (chance, alone) = np.zeros(clauses, np.int64), np.zeros((2, clauses))
        arrays, blocks, chances = self._predicates.arrays(), self._store.blocks(), self._estimated()
        tables, clause = self._store.tables(), np.zeros(self._widest + 1, np.int64)
        count = tally_pairs(arrays, tables, blocks, chances, places[::step], clause, pair, chance, alone)
        if not count:
            return False
        pair, chance, alone = pair[:count], chance[:count], alone[:count]
        used, at = np.unique(pair, return_index=True)
        sectors = expected_sectors(chances, used, np.zeros(PAIRED * SECTORS, np.bool_))
        before = step * float(alone.sum())
        after = step * float(chance.sum()) + calibrated().checks_per_lookup * float(chance[at].sum())
        after += SECTOR * len(arrays.banded) + PAIR * sectors * sectors / 2
        return before > after * (1.0 if self._store.has_pairs and margin else margin)
