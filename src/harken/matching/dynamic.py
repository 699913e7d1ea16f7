"""Dynamic clustering (Fabret et al. 2000, section 4): tables come and go with the subscriptions and events.

The paper's metrics count clauses. Here they count what is to be saved, checks per event, so that one threshold
serves all sizes: a table is made when the checks it saves are worth its lookup, and dropped when no longer.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.matching.cluster_matcher import EAGER_LIMIT, ClusterMatcher
from harken.matching.contract import Incoming, Slots, Stats
from harken.matching.cost import calibrated
from harken.matching.kernels.layout import FIRST_KEY_TABLE, PREDICATE_TABLE
from harken.matching.kernels.maintaining import redistribute, tally_savings

MOST_PLACES = 1 << 22
"""Keys that one table may have."""

MOST_TABLES = 256

_SPARE = 1
"""Codes that a table is prepared for, beyond those there are: more would spread its keys over more memory."""


class DynamicMatcher(ClusterMatcher):
    """Clusters under multi-attribute keys that follow the subscriptions.

    `margin` is how many times its lookup a new table has to save; `patience` how many subscriptions at least
    come or go before the tables are looked at again. With `adapt=False` the tables stay as they are, which is
    the paper's "no change".
    """

    def __init__(
        self,
        *,
        prefetch: bool = True,
        eager_limit: int = EAGER_LIMIT,
        margin: float = 1.5,
        patience: int = 1_000,
        adapt: bool = True,
    ) -> None:
        super().__init__(prefetch=prefetch, eager_limit=eager_limit)
        self.adapt = adapt
        self._margin = margin
        self._patience = patience
        self._changes = 0
        self._moves = 0
        self._made = 0
        self._dropped = 0

    def add(self, slots: Slots, incoming: Incoming) -> None:
        """Insert under the best access paths there are; now and then see whether others would pay."""
        super().add(slots, incoming)
        self._maintain(len(slots))

    def remove(self, slots: Slots) -> None:
        """Take out; now and then see which tables no longer pay."""
        super().remove(slots)
        self._maintain(len(slots))

    def stats(self) -> Stats:
        """As every cluster matcher, and what maintenance has done."""
        return {
            **super().stats(),
            "tables_made": self._made,
            "tables_dropped": self._dropped,
            "clauses_moved": self._moves,
        }

    def _maintain(self, changes: int) -> None:
        self._changes += changes
        if self.adapt and self._changes >= max(self._patience, self._clauses // 10):
            self._changes = 0
            self.reorganise()

    def reorganise(self) -> None:
        """Drop tables that do not pay, then make those that do, best first, as long as there are any."""
        selectivity = self._statistics.selectivity(self._predicates)
        presence = self._statistics.presence(self._predicates)
        worth = calibrated().checks_per_lookup
        self._drop_idle(selectivity, presence, worth)
        while len(self._store.schemas) < MOST_TABLES:
            wanted = self._best_schemas(selectivity, self._margin * worth)
            if not wanted:
                break
            for schema in wanted:
                self._store.add_key_table(schema, self._radixes(schema))
                self._made += 1
            self._redistribute(self._places(), selectivity, presence)
        self._store.compact()

    def _places(self, table: int | None = None) -> npt.NDArray[np.int64]:
        """The directory entries in use: of one table, or of all that stand under equalities."""
        all_tables = [PREDICATE_TABLE, *range(FIRST_KEY_TABLE, len(self._store.schemas))]
        regions = all_tables if table is None else [table]
        return np.concatenate([self._store.used_places(each) for each in regions])

    def _best_schemas(self, selectivity: npt.NDArray[np.float32], least: float) -> list[tuple[int, ...]]:
        """New schemas that save at least so many checks: the best, and others nearly as good beside it."""
        tables, dimensions = self._store.tables(), len(self._predicates.dimensions)
        savings = np.zeros((len(tables.base) + dimensions, max(1, dimensions)))
        arrays, blocks = self._predicates.arrays(), self._store.blocks()
        tally_savings(arrays, tables, blocks, selectivity, self._places(), savings)
        found: dict[tuple[int, ...], float] = {}
        for row, dimension in np.argwhere(savings > least).tolist():
            schema = self._extended(row, dimension)
            if schema is not None:
                found[schema] = found.get(schema, 0.0) + savings[row, dimension]
        best = max(found.values(), default=0.0)
        # Clauses counted for one schema may move for another: taking only the nearly best errs little.
        ranked = sorted(found.items(), key=lambda each: -each[1])
        return [schema for schema, saved in ranked if saved > 0.7 * best][:8]

    def _extended(self, row: int, dimension: int) -> tuple[int, ...] | None:
        tables = len(self._store.schemas)
        known = self._store.schemas[row] if row < tables else (row - tables,)
        schema = tuple(sorted((*known, dimension)))
        places = float(np.prod([float(radix) for radix in self._radixes(schema)]))
        return None if schema in self._store.schemas or places > MOST_PLACES else schema

    def _sizes(self, schema: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(len(self._predicates.dimensions[number].constants) for number in schema)

    def _radixes(self, schema: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(size + _SPARE for size in self._sizes(schema))

    def _redistribute(
        self,
        places: npt.NDArray[np.int64],
        selectivity: npt.NDArray[np.float32],
        presence: npt.NDArray[np.float32],
    ) -> None:
        store, moved, done = self._store, np.zeros(1, np.int64), 0
        clause, residual = np.zeros((2, self._widest + 1), np.int64)
        while True:
            arrays, tables, blocks = self._predicates.arrays(), store.tables(), store.blocks()
            done = redistribute(
                arrays, tables, blocks, store.free, selectivity, presence, places, done, clause, residual, moved
            )
            if done == len(places):
                break
            store.grow_words()
        self._moves += int(moved[0])

    def _drop_idle(
        self, selectivity: npt.NDArray[np.float32], presence: npt.NDArray[np.float32], worth: float
    ) -> None:
        """Drop tables whose clauses, under their next best access path, would cost less than the lookup.

        Tables that constants have outgrown go too; if they still pay, they come back larger.
        """
        population = self._store.tables().population
        likeliest = float(selectivity.max(initial=0.0))
        for table in range(len(self._store.schemas) - 1, FIRST_KEY_TABLE - 1, -1):
            schema = self._store.schemas[table]
            if not schema:
                continue
            sizes = zip(self._sizes(schema), self._store.radixes(table), strict=True)
            outgrown = any(size > radix for size, radix in sizes)
            if outgrown or population[table] * likeliest <= worth * self._margin / 3:
                places = self._places(table)
                self._store.close_key_table(table)
                self._redistribute(places, selectivity, presence)
                self._dropped += 1
