"""Dynamic clustering (Fabret et al. 2000, section 4): tables come and go with the subscriptions and events.

The paper's metrics count clauses. Here they count what is to be saved, checks per event, so that one threshold
serves all sizes: a table is made when the checks it saves are worth its lookup, and dropped when no longer.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Self

import numpy as np
import numpy.typing as npt

from harken.matching.clusters.cost import calibrated
from harken.matching.clusters.kernels.choosing import nothing_asked
from harken.matching.clusters.kernels.maintaining import saved_by, tally_savings
from harken.matching.clusters.keyed import KeyedMatcher, Schema
from harken.matching.contract import Slots, Stats
from harken.matching.kernels.layout import FIRST_KEY_TABLE, PREDICATE_TABLE
from harken.matching.saving import State
from harken.model.arguments import checked_count, checked_flag, checked_number
from harken.portions import ALONE, AT_ONCE, BESIDE, DONE, Pace, Portions, done_at_once

MOST_TABLES = 256
"""Key tables that are open at a time. Closed ones do not count: they are used again where keys are as long."""

MOST_DIMENSIONS = 256
"""Dimensions that are considered for keys."""

FILTERED_LOOKUP = 0.5
"""What a lookup costs where keys have filters, beside one where they have none: one read instead of two.

From that, not from a measurement."""

NEAR_LOOKUP = 0.03
"""The same where filters are narrow, and in the processor's caches: some 4 ns. What is saved then is seldom a
check among many, but a visit to a cluster of one or two, which takes as long as a dozen checks."""

TOGETHER = 8
"""Tables that are made at once, at most."""

LARGE_PART = 2
"""A change is large if it is one half, or more, of what has to change before the tables are looked at again."""

SAMPLED_FOR_SAVINGS = 100_000
"""Clusters that are looked at to see what further tables would save."""

SAMPLED_CLUSTERS = 1_000
"""Clusters of a table that are looked at to see what it saves."""


class DynamicMatcher(KeyedMatcher):
    """Clusters under multi-attribute keys that follow the subscriptions.

    `margin` is how many times its lookup a new table has to save; `patience` how many subscriptions at least
    come or go before the tables are looked at again. With `adapt=False` the tables stay as they are, which is
    the paper's "no change".
    """

    def __init__(
        self,
        *,
        prefetch: bool = True,
        margin: float = 1.5,
        patience: int = 1_000,
        adapt: bool = True,
    ) -> None:
        super().__init__(prefetch=prefetch)
        self.adapt = checked_flag("adapt", adapt)
        self._margin = checked_number("margin", margin)
        self._patience = checked_count("patience", patience)
        self._changes = 0
        self._foreseen: npt.NDArray[np.float64] | None = None
        self._moves = 0
        self._made = 0
        self._dropped = 0

    def rescue(self, broken: Self, slots: Slots) -> None:
        """As every cluster matcher; the tallies go on."""
        self.adapt = broken.adapt
        super().rescue(broken, slots)
        self._made, self._dropped, self._moves = broken._made, broken._dropped, broken._moves

    def stats(self) -> Stats:
        """As every cluster matcher, and what maintenance has done."""
        return {
            **super().stats(),
            "tables_made": self._made,
            "tables_dropped": self._dropped,
            "clauses_moved": self._moves,
        }

    def state(self) -> State:
        """As every cluster matcher, and what maintenance has done."""
        tallies = {"changes": self._changes, "moves": self._moves, "made": self._made, "dropped": self._dropped}
        return super().state().with_facts(adapt=self.adapt, **tallies)

    def restore(self, state: State, slots: Slots) -> None:
        """As every cluster matcher; the tallies go on."""
        super().restore(state, slots)
        self.adapt = bool(state.fact("adapt"))
        self._changes, self._moves = state.count("changes"), state.count("moves")
        self._made, self._dropped = state.count("made"), state.count("dropped")

    def _choose_in_portions(self, pace: Pace) -> Portions:
        self._foreseen = None  # of other events than those that have been seen since
        if self.adapt:
            yield from self.reorganise_in_portions(pace)
            yield from super()._choose_in_portions(pace)

    def _maintain(self, change: int) -> None:
        done_at_once(self._rearrange_in_portions(max(change, 0), max(-change, 0), AT_ONCE))

    def _rearrange_in_portions(self, coming: int, leaving: int, pace: Pace) -> Portions:
        """Reorganise when enough has changed: at once after a large change, else if that was foreseen to pay."""
        self._changes += coming + leaving
        is_large = max(coming, leaving) >= self._enough() // LARGE_PART
        if self.adapt and (self._foreseen is not None or (is_large and self._is_due())):
            self._changes = 0
            return self.reorganise_in_portions(pace)
        return DONE

    def _enough(self) -> int:
        """Changes after which the tables are looked at again."""
        return max(self._patience, self._slots // 10)

    def _is_due(self) -> bool:
        return self._changes >= self._enough()

    def foresee(self) -> None:
        """If enough has changed, see whether it would pay to reorganise: mostly not, and then nobody waits for it.

        Linear in a sample of the clusters, and in the directory.
        """
        if not self.adapt or not self._is_due():
            return
        self._estimate_anew()
        least, worth = self._margin * self._worth() / 3, self._margin * self._worth()
        benefits = self._table_benefits()
        pays = (
            any(self._is_idle(table, benefits, least) for table in self._key_tables())
            or bool(self._best_schemas(worth))
            or self._pairs_pay(self._margin) != self._store.has_pairs
            or self._store.is_untidy(self._predicates.arrays())
        )
        if pays:
            self._foreseen = benefits
        else:
            self._changes = 0
            for table in self._key_tables():
                self._benefits[self._store.schemas[table]] = float(benefits[table])

    def _worth(self) -> float:
        """The checks that a lookup in a table has to save."""
        if self._store.has_near_filters:
            return calibrated().checks_per_lookup * NEAR_LOOKUP
        return calibrated().checks_per_lookup * (FILTERED_LOOKUP if self._store.has_filters else 1.0)

    def _is_idle(self, table: int, benefits: npt.NDArray[np.float64], least: float) -> bool:
        """Whether a table does not pay, is empty, or has been outgrown by constants."""
        excess = benefits[table] - least * self._looked_up(self._store.schemas[table])
        return bool(excess <= 0 or not self._has_room(table) or not self._store.tables().population[table])

    def reorganise(self) -> None:
        """Drop tables that do not pay, then make those that do, best first, as long as there are any."""
        done_at_once(self.reorganise_in_portions(AT_ONCE))

    def reorganise_in_portions(self, pace: Pace) -> Portions:
        """As `reorganise`."""
        yield BESIDE  # what a lookup costs here is measured, once
        worth = self._worth()
        yield from self._have_paying_tables(pace)
        if self._worth() < worth:  # now that there are filters, more tables pay
            yield from self._have_paying_tables(pace)

    def _have_paying_tables(self, pace: Pace) -> Portions:
        """Drop tables that do not pay, make those that do, and have filters where they pay."""
        yield BESIDE
        self._estimate_anew()
        worth, foreseen = self._worth(), self._foreseen
        self._foreseen = None
        # What was foreseen holds a few changes later.
        benefits = self._table_benefits() if foreseen is None else foreseen
        yield ALONE
        yield from self._drop_idle_in_portions(self._margin * worth / 3, benefits, pace)
        while True:
            yield BESIDE
            wanted = self._best_schemas(self._margin * worth)
            self._store.reserve(sum(math.prod(self._radixes(schema)) for schema in wanted))
            yield ALONE
            if not wanted:
                break
            with self._changing():
                self._add_tables(wanted)
            self._made += len(wanted)
            # Clauses under other tables have keys as good: only those the savings come from need move.
            origins = sorted(set().union(*wanted.values()))
            self._moves += yield from self._move_in_portions(partial(self._places, origins), pace)
        self._moves += yield from self._pair_ranges_in_portions(self._margin, pace)
        yield from self._tidy_in_portions(pace)

    def _best_schemas(self, least: float) -> dict[Schema, set[int]]:
        """New schemas that save at least so many checks: the best, and others nearly as good beside it.

        Each comes with the tables whose clauses it would serve better. There are no more than there is room for.
        """
        room = min(TOGETHER, MOST_TABLES - len(self._key_tables()))
        if room <= 0:
            return {}
        tables, considered = len(self._store.schemas), self._considered()
        savings = self._savings(considered)
        found: dict[Schema, float] = {}
        origins: dict[Schema, set[int]] = {}
        for row, at in np.argwhere(savings > 0).tolist():
            known = self._store.schemas[row] if row < tables else (considered[row - tables],)
            schema = tuple(sorted((*known, considered[at])))
            if schema not in self._store.schemas and self._is_possible(schema):
                found[schema] = found.get(schema, 0.0) + savings[row, at]
                origins.setdefault(schema, set()).add(row if row < tables else PREDICATE_TABLE)
        paying = {schema: saved for schema, saved in found.items() if saved > least * self._looked_up(schema)}
        best = max(paying.values(), default=0.0)
        # Clauses counted for one schema may move for another: taking only the nearly best errs little.
        ranked = sorted(paying.items(), key=lambda each: -each[1])
        return {schema: origins[schema] for schema, saved in ranked[:room] if saved > 0.7 * best}

    def _savings(self, considered: list[int]) -> npt.NDArray[np.float64]:
        """What tables with one of these dimensions more would save, from a sample: see `tally_savings`."""
        tables = self._store.tables()
        column = np.full(max(1, len(self._predicates.dimensions)), -1, np.int32)
        column[considered] = np.arange(len(considered))
        savings = np.zeros((len(tables.base) + len(considered), max(1, len(considered))))
        places = self._places([PREDICATE_TABLE, *range(FIRST_KEY_TABLE, len(tables.base))])
        step = 1 + len(places) // SAMPLED_FOR_SAVINGS
        arrays, blocks = self._predicates.arrays(), self._store.blocks()
        tally_savings(arrays, tables, blocks, self._estimated(), places[::step], column, savings)
        return savings * step

    def _looked_up(self, schema: Schema) -> float:
        """The chance that an event has a key of a schema: only then does the table cost it a lookup."""
        return float(np.prod(self._estimated().presence[list(schema)]))

    def _considered(self) -> list[int]:
        """The dimensions with the most equalities: others would not pay, however many there are."""
        counts = self._predicates.equality_counts()
        return sorted(map(int, np.argsort(-counts, kind="stable")[:MOST_DIMENSIONS]))

    def _drop_idle_in_portions(self, least: float, benefits: npt.NDArray[np.float64], pace: Pace) -> Portions:
        """Drop the table that saves the fewest checks, compared with the next best access paths, if too few.

        One at a time: what a table saves depends on which others there are, and many may stand in for each other.
        Empty tables go too, and those that constants have outgrown; if they still pay, they come back larger.
        """
        population = self._store.tables().population
        excess = {
            table: benefits[table] - least * self._looked_up(self._store.schemas[table])
            for table in self._key_tables()
        }
        idle = min(excess, key=lambda table: excess[table], default=None)
        for table in excess:
            if not self._has_room(table) or not population[table] or (table == idle and excess[table] <= 0):
                self._moves += yield from self._move_in_portions(
                    partial(self._store.used_places, table), pace, [table]
                )
                with self._changing():
                    self._store.close_key_table(table)
                self._dropped += 1
            else:
                self._benefits[self._store.schemas[table]] = float(benefits[table])

    def _table_benefits(self) -> npt.NDArray[np.float64]:
        """The checks per event that each key table saves, from a sample of its clusters."""
        store, benefits = self._store, np.zeros(len(self._store.schemas))
        clause = np.zeros(self._widest + 1, np.int64)
        asked = nothing_asked(self._predicates.arrays(), store.tables())
        for table in self._key_tables():
            places = store.used_places(table)
            step = 1 + len(places) // SAMPLED_CLUSTERS
            arrays, chances = self._predicates.arrays(), self._estimated()
            saved = saved_by(arrays, store.tables(), store.blocks(), chances, table, places[::step], asked, clause)
            benefits[table] = saved * step
        return benefits
