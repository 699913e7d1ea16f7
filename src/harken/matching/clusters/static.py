"""Static clustering (Fabret et al. 2000, section 3): tables chosen by cost from what is there, and then kept."""

from __future__ import annotations

import numpy as np

from harken.matching.clusters.cost import Costs, calibrated
from harken.matching.clusters.kernels.sampling import Equalities, sample_equalities
from harken.matching.clusters.keyed import MOST_PLACES, KeyedMatcher, Schema
from harken.matching.clusters.schemas import Sample, Terms, choose
from harken.matching.contract import Slots, Stats
from harken.matching.saving import State
from harken.model.arguments import checked_count, checked_number
from harken.portions import AT_ONCE, Pace, Portions, done_at_once

SAMPLED = 20_000
"""Clauses that the choice looks at."""

MOST_SAMPLED_WORDS = 1 << 22
"""Predicates of the sample, at most: fewer clauses are looked at if some are very long."""

SPACE_PER_CLAUSE, LEAST_SPACE = 16, 1 << 20
"""Bytes for tables where nothing else is asked for."""

MARGIN = 1.5
"""How many times as quick pairs of ranges have to be for clauses to stand in them."""

WASTE = 1.1
"""How many times the room that clusters need they may take after a choice."""


class StaticMatcher(KeyedMatcher):
    """Clusters under multi-attribute keys, chosen for all clauses at once.

    The choice is made when the first subscriptions come in, again when there are twice as many clauses as at the
    last choice, and on `optimise`. In between the tables stay as they are, and every clause goes to the best.

    `space` is how many bytes the tables may take (by default, some per clause); `checks_per_lookup` how many
    checks a table has to save per event to be worth its lookup (by default, measured on this machine).
    """

    def __init__(
        self,
        *,
        prefetch: bool = True,
        space: int | None = None,
        checks_per_lookup: float | None = None,
    ) -> None:
        super().__init__(prefetch=prefetch)
        self._space = None if space is None else checked_count("space", space)
        known = checks_per_lookup is not None
        self._checks_per_lookup = checked_number("checks_per_lookup", checks_per_lookup) if known else None
        self._clauses_then = 0

    def _maintain(self, change: int) -> None:
        """With twice as many clauses, choose anew. Those that go take no table with them, and are counted off."""
        if change < 0:
            self._clauses_then = min(self._clauses_then, self._in_clusters)
        elif self._in_clusters >= max(1, 2 * self._clauses_then):
            self.optimise()

    def optimise(self) -> None:
        """Choose the tables for the clauses and event statistics of now, and move every clause to the best.

        Linear in the number of clauses. Must not run beside anything else.
        """
        with self._changing():
            self._chances = None
            terms = self._terms()
            chosen = choose(self._sampled(), terms)
            self._benefits = {choice.schema: choice.benefit / terms.costs.check for choice in chosen}
            self._clauses_then = self._in_clusters
            self._have_tables(list(self._benefits))
            self._redistribute(self._places(range(len(self._store.schemas))))
            done_at_once(self._pair_ranges_in_portions(0.0 if self._checks_per_lookup == 0 else MARGIN, AT_ONCE))
            done_at_once(self._tidy_in_portions(AT_ONCE, WASTE))

    def stats(self) -> Stats:
        """As every cluster matcher, and the key tables in the order of the choice.

        Their benefits are the checks per event, less the lookup, that each was to save beside those before it.
        """
        dimensions = self._predicates.dimensions
        chosen = [", ".join(dimensions[number].attribute for number in schema) for schema in self._benefits]
        return {**super().stats(), "space": self._space_now(), "chosen": chosen}

    def state(self) -> State:
        """As every cluster matcher, and when the choice was made."""
        return super().state().with_facts(clauses_then=self._clauses_then)

    def restore(self, state: State, slots: Slots) -> None:
        """As every cluster matcher; the choice stays."""
        super().restore(state, slots)
        self._clauses_then = state.count("clauses_then")

    def _choose_in_portions(self, pace: Pace) -> Portions:
        self.optimise()
        yield from ()

    @property
    def _in_clusters(self) -> int:
        """Clauses that are stored; those that several subscriptions ask for count once."""
        return int(self._store.tables().population.sum())

    def _sampled(self) -> Sample:
        """Some of the clauses, at equal steps through the clusters."""
        tables, room = self._store.tables(), self._widest + 1
        total = self._in_clusters
        every = -(-total // min(SAMPLED, MOST_SAMPLED_WORDS // room)) or 1
        most = total // every + 1
        into = Equalities(
            np.zeros(most + 1, np.int64), np.zeros(most * room, np.int64), np.zeros(most * room), np.zeros(most)
        )
        arrays, blocks, clause = self._predicates.arrays(), self._store.blocks(), np.zeros(room, np.int64)
        count = sample_equalities(arrays, tables, blocks, self._estimated(), every, clause, into)
        first, end = into.first[: count + 1], into.first[count]
        weight = total / count if count else 1.0
        return Sample(first, into.dimension[:end], into.chance[:end], into.otherwise[:count], weight)

    def _terms(self) -> Terms:
        measured = calibrated()
        worth = self._checks_per_lookup
        lookup = measured.check * (measured.checks_per_lookup if worth is None else worth)
        radixes = np.array(self._radixes(tuple(range(len(self._predicates.dimensions)))), np.int64)
        return Terms(
            self._estimated().presence, radixes, Costs(lookup, measured.check), self._space_now(), MOST_PLACES
        )

    def _space_now(self) -> int:
        return max(LEAST_SPACE, SPACE_PER_CLAUSE * self._in_clusters) if self._space is None else self._space

    def _have_tables(self, wanted: list[Schema]) -> None:
        """Have exactly these key tables, with room for all constants; clauses stay where they are for now."""
        store, missing = self._store, dict.fromkeys(wanted)
        for table in self._key_tables():
            schema = store.schemas[table]
            if schema in missing and self._has_room(table):
                del missing[schema]
            else:
                store.close_key_table(table)
        self._add_tables(missing)
