"""What the algorithms with key tables share: which schemas there can be, and how tables come and go."""

from __future__ import annotations

import math
from collections.abc import Iterable

from harken.matching.clusters.matcher import ClusterMatcher
from harken.matching.kernels.layout import FIRST_KEY_TABLE

MOST_PLACES = 1 << 22
"""Keys that one table may have."""

_SPARE = 1
"""Codes that a table is prepared for, beyond those there are: more would spread its keys over more memory."""

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
