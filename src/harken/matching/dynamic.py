"""Dynamic clustering (Fabret et al. 2000, section 4): tables come and go with the subscriptions and events.

The paper's metrics count clauses. Here they count what is to be saved, checks per event, so that one threshold
serves all sizes: a table is made when the checks it saves are worth its lookup, and dropped when no longer.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from harken.matching.cluster_matcher import EAGER_LIMIT, ClusterMatcher
from harken.matching.contract import Incoming, Slots, Stats
from harken.matching.cost import calibrated
from harken.matching.kernels.layout import FIRST_KEY_TABLE, PREDICATE_TABLE
from harken.matching.kernels.maintaining import saved_by, tally_savings

MOST_PLACES = 1 << 22
"""Keys that one table may have."""

MOST_TABLES = 256

MOST_DIMENSIONS = 256
"""Dimensions that are considered for keys."""

SAMPLED_CLUSTERS = 2_000
"""Clusters of a table that are looked at to see what it saves."""

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
        self._benefits: npt.NDArray[np.float64] = np.zeros(0)

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
        if self.adapt and self._changes >= max(self._patience, self._slots // 10):
            self._changes = 0
            self.reorganise()

    def reorganise(self) -> None:
        """Drop tables that do not pay, then make those that do, best first, as long as there are any."""
        self._chances = None
        worth = calibrated().checks_per_lookup
        self._drop_idle(self._margin * worth / 3)
        while len(self._store.schemas) < MOST_TABLES:
            wanted = self._best_schemas(self._margin * worth)
            if not wanted:
                break
            for schema in wanted:
                self._store.add_key_table(schema, self._radixes(schema))
                self._made += 1
            self._moves += self._redistribute(self._places())
        self._store.compact()
        self._index = None

    def _places(self) -> npt.NDArray[np.int64]:
        """The directory entries in use of all tables that stand under equalities."""
        tables = [PREDICATE_TABLE, *range(FIRST_KEY_TABLE, len(self._store.schemas))]
        return np.concatenate([self._store.used_places(each) for each in tables])

    def _best_schemas(self, least: float) -> list[tuple[int, ...]]:
        """New schemas that save at least so many checks: the best, and others nearly as good beside it."""
        tables, considered = self._store.tables(), self._considered()
        column = np.full(max(1, len(self._predicates.dimensions)), -1, np.int32)
        column[considered] = np.arange(len(considered))
        savings = np.zeros((len(tables.base) + len(considered), max(1, len(considered))))
        arrays, blocks = self._predicates.arrays(), self._store.blocks()
        tally_savings(arrays, tables, blocks, self._estimated(), self._places(), column, savings)
        found: dict[tuple[int, ...], float] = {}
        for row, at in np.argwhere(savings > least).tolist():
            known = self._store.schemas[row] if row < len(tables.base) else (considered[row - len(tables.base)],)
            schema = self._extended(known, considered[at])
            if schema is not None:
                found[schema] = found.get(schema, 0.0) + savings[row, at]
        best = max(found.values(), default=0.0)
        # Clauses counted for one schema may move for another: taking only the nearly best errs little.
        ranked = sorted(found.items(), key=lambda each: -each[1])
        return [schema for schema, saved in ranked if saved > 0.7 * best][:8]

    def _considered(self) -> list[int]:
        """The dimensions with the most equalities: others would not pay, however many there are."""
        counts = self._predicates.equality_counts()
        return sorted(map(int, np.argsort(-counts, kind="stable")[:MOST_DIMENSIONS]))

    def _extended(self, known: tuple[int, ...], dimension: int) -> tuple[int, ...] | None:
        schema = tuple(sorted((*known, dimension)))
        places = math.prod(self._radixes(schema))
        return None if schema in self._store.schemas or places > MOST_PLACES else schema

    def _sizes(self, schema: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(len(self._predicates.dimensions[number].constants) for number in schema)

    def _radixes(self, schema: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(size + _SPARE for size in self._sizes(schema))

    def _drop_idle(self, least: float) -> None:
        """Drop tables that save fewer checks than that, compared with the next best access paths.

        Tables that constants have outgrown go too; if they still pay, they come back larger.
        """
        self._benefits = self._table_benefits()
        for table in range(len(self._store.schemas) - 1, FIRST_KEY_TABLE - 1, -1):
            schema = self._store.schemas[table]
            if not schema:
                continue
            sizes = zip(self._sizes(schema), self._store.radixes(table), strict=True)
            outgrown = any(size > radix for size, radix in sizes)
            if outgrown or self._benefits[table] <= least:
                places = self._store.used_places(table)
                self._store.close_key_table(table)
                self._moves += self._redistribute(places)
                self._dropped += 1

    def _table_benefits(self) -> npt.NDArray[np.float64]:
        """The checks per event that each key table saves, from a sample of its clusters."""
        store, benefits = self._store, np.zeros(len(self._store.schemas))
        clause = np.zeros(self._widest + 1, np.int64)
        for table in range(FIRST_KEY_TABLE, len(store.schemas)):
            places = store.used_places(table)
            step = 1 + len(places) // SAMPLED_CLUSTERS
            saved = saved_by(
                self._predicates.arrays(), store.tables(), store.blocks(), self._estimated(), table, places[::step],
                clause,
            )  # fmt: skip
            benefits[table] = saved * step
        return benefits
