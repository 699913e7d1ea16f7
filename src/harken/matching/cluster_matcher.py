"""What the cluster algorithms share: predicates, encoding, clusters, and how subscriptions enter and leave."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.matching.clusters import ClusterStore
from harken.matching.contract import Incoming, Pairs, Slots, Stats
from harken.matching.encoding import Encoder
from harken.matching.events import EventBatch
from harken.matching.kernels.layout import (
    BANDS,
    CELLS,
    CHECKS,
    FIRST_KEY_TABLE,
    RANGE_TABLE,
    VISITS,
    Blocks,
    Chances,
    Clauses,
    Events,
    Predicates,
    Tables,
)
from harken.matching.kernels.maintaining import redistribute
from harken.matching.kernels.matching import match_events
from harken.matching.kernels.placing import clause_predicates, find_entry
from harken.matching.predicates import PredicateTable
from harken.matching.statistics import EventStatistics
from harken.matching.translation import translate
from harken.matching.workspace import Workspace
from harken.model.events import FlatEvent
from harken.model.expressions import Expression
from harken.normal.operators import expression_of

EAGER_LIMIT = 64
"""Order predicates of one dimension up to this many are evaluated for every event, later ones where met."""

OBSERVED = 16
"""Of so many blocks (or single events) one is looked at for statistics."""

MANY = 1_000
"""Clauses that come together from which on it pays to estimate all chances anew."""


class Index(NamedTuple):
    """All that matching reads: views that are valid until the next change."""

    predicates: Predicates
    tables: Tables
    blocks: Blocks
    encoder: Encoder


class ClusterMatcher:
    """Clauses in clusters under access paths.

    Any number of threads may match at once while none adds or removes: the index is only read, and each thread
    has its own workspace. Statistics are gathered from events that come while no other thread matches.
    """

    def __init__(self, *, prefetch: bool = True, eager_limit: int = EAGER_LIMIT) -> None:
        self._prefetch = prefetch
        self._predicates = PredicateTable(eager_limit=eager_limit)
        self._store = ClusterStore()
        self._statistics = EventStatistics()
        self._encoder = Encoder(self._predicates)
        self._index: Index | None = None
        self._chances: Chances | None = None
        self._slots = 0
        self._widest = 0
        self._workspaces = threading.local()
        self._statistics_lock = threading.Lock()
        self._seen = np.zeros(4, np.int64)
        self._blocks_seen = -1

    def add(self, slots: Slots, incoming: Incoming) -> None:
        """Translate, choose access paths, insert. Linear in the number of predicates."""
        done = 0
        for batch in incoming.compiled.to_batches():
            self._add_clauses(translate(batch, self._predicates, slots[done : done + batch.num_rows]))
            done += batch.num_rows
        self._store.make_room(0, 0, 0, int(slots.max(initial=-1)) + 1)
        self._slots += len(slots)
        self._index = None

    def remove(self, slots: Slots) -> None:
        """Find each entry by its block and take it out. Linear in the number of predicates."""
        words = self._store.take_out(self._predicates.arrays(), np.asarray(slots, np.int64), self._widest + 1)
        self._predicates.release(words)
        self._slots -= len(slots)
        self._index = None

    def match(self, event: FlatEvent) -> Slots:
        """Match one event."""
        index = self._current()
        return self._match_block(index, index.encoder.one(event))[1]

    def match_batch(self, events: EventBatch) -> Pairs:
        """Encode and match, block by block."""
        index = self._current()
        rows, slots = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for start, block in index.encoder.blocks(events):
            found_rows, found_slots = self._match_block(index, block)
            rows.append(found_rows + start)
            slots.append(found_slots)
        return np.concatenate(rows), np.concatenate(slots)

    @property
    def attributes(self) -> Collection[str]:
        """The attributes that some predicate in use looks at."""
        return self._predicates.attributes.keys()

    def expression(self, slot: int) -> Expression:
        """What a subscription asks for, in its normal form."""
        clauses = [self._clause_at(block, entry_id) for block, entry_id in self._store.entries_of(slot)]
        return expression_of([[row for word in words for row in self._predicates.rows(word)] for words in clauses])

    def stats(self) -> Stats:
        """Sizes, bytes by part, access tables, and what matching has done."""
        events, matches, visits, checks = self._seen.tolist()
        return {
            "subscriptions": self._slots,
            "clauses": int(self._store.tables().population.sum()),
            "predicates": self._predicates.in_use,
            "bytes": {**self._store.nbytes, "predicates": self._predicates.nbytes},
            "tables": self._table_stats(),
            "events": events,
            "matches": matches,
            "matches_per_event": matches / events if events else 0.0,
            "clusters_per_event": visits / events if events else 0.0,
            "checks_per_event": checks / events if events else 0.0,
        }

    def _add_clauses(self, clauses: Clauses) -> None:
        self._predicates.use(clauses.words)
        rebanded = self._predicates.reband()
        self._make_room(clauses.slot)
        self._widest = max(self._widest, int(np.diff(clauses.first).max(initial=0)))
        if len(clauses.slot) >= MANY or rebanded:
            self._chances = None
        if rebanded:
            self._redistribute(self._store.used_places(RANGE_TABLE))
        self._store.place(self._predicates.arrays(), self._estimated(), clauses)

    def _make_room(self, slots: Slots) -> None:
        predicates = self._predicates
        cells = len(predicates.bands) * CELLS
        self._store.make_room(len(predicates), len(predicates.dimensions), cells, int(slots.max(initial=-1)) + 1)

    def _estimated(self) -> Chances:
        """How likely access paths are opened; what came since the last estimate is guessed."""
        known, predicates = self._chances, self._predicates
        if known is None:
            known = self._statistics.chances(predicates)
        missing = len(predicates) - len(known.selectivity)
        if missing > 0:
            known = self._statistics.extended(known, predicates)
        self._chances = known
        return known

    def _redistribute(self, places: npt.NDArray[np.int64]) -> int:
        """Move the clauses at these directory entries to the best access paths there are; how many moved."""
        store, moved, done = self._store, np.zeros(1, np.int64), 0
        clause, residual = np.zeros((2, self._widest + 1), np.int64)
        chances = self._estimated()
        while True:
            arrays, tables, blocks = self._predicates.arrays(), store.tables(), store.blocks()
            done = redistribute(arrays, tables, blocks, store.free, chances, places, done, clause, residual, moved)
            if done == len(places):
                return int(moved[0])
            store.grow()

    def _current(self) -> Index:
        """The index as it is now; made anew after a change."""
        index = self._index
        if index is None:
            self._encoder.refresh()
            index = self._index = Index(
                self._predicates.arrays(), self._store.tables(), self._store.blocks(), self._encoder
            )
        return index

    def _match_block(self, index: Index, events: Events) -> Pairs:
        workspace = self._workspace(index)
        start, rows, slots = 0, [], []
        while start < len(events.code):
            reached, count = match_events(
                index.predicates,
                index.tables,
                index.blocks,
                events,
                start,
                workspace.scratch,
                self._prefetch,
                workspace.results,
            )
            rows.append(workspace.results.event[:count].copy())
            slots.append(workspace.results.slot[:count].copy())
            if reached == start:
                workspace.have_more_results()
            start = reached
        pairs = workspace.distinct(np.concatenate(rows), np.concatenate(slots))
        self._note(events, len(pairs[0]), workspace)
        return pairs

    def _note(self, events: Events, matches: int, workspace: Workspace) -> None:
        """Remember what was seen, unless another thread is at it: a sample is enough."""
        if not self._statistics_lock.acquire(blocking=False):
            return
        try:
            counts = workspace.scratch.counts
            self._seen += [len(events.code), matches, counts[VISITS], counts[CHECKS]]
            counts[:] = 0
            self._blocks_seen += 1
            if self._blocks_seen % OBSERVED == 0:
                self._statistics.observe(events, self._predicates)
        finally:
            self._statistics_lock.release()

    def _workspace(self, index: Index) -> Workspace:
        """The workspace of this thread, fit for the index."""
        workspace: Workspace | None = getattr(self._workspaces, "own", None)
        if workspace is None or workspace.index is not index:
            satisfied = self._predicates.most_satisfied
            places = satisfied + len(index.tables.base) + len(self._predicates.dimensions)
            cells = len(self._predicates.bands) * 4 * BANDS
            workspace = Workspace.fit(workspace, index, index.predicates.initial, places + cells + 1)
            self._workspaces.own = workspace
        return workspace

    def _clause_at(self, block: int, entry_id: int) -> list[int]:
        """The predicates of one entry."""
        store = self._store
        entry = find_entry(store.words, block, entry_id)
        into = np.zeros(self._widest + 1, np.int64)
        count = clause_predicates(self._predicates.arrays(), store.tables(), store.words, block, entry, into)
        return [int(word) for word in into[:count]]

    def _table_stats(self) -> list[dict[str, object]]:
        tables, dimensions = self._store.tables(), self._predicates.dimensions
        names = ["(every event)", "(one predicate)", "(presence)", "(range)"]
        names += [
            ", ".join(dimensions[number].attribute for number in schema)
            for schema in self._store.schemas[FIRST_KEY_TABLE:]
        ]
        return [
            {"access": name, "population": int(population)}
            for name, population in zip(names, tables.population.tolist(), strict=True)
        ]
