"""What the cluster algorithms share: predicates, encoding, clusters, and how subscriptions enter and leave."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.matching.clusters import ClusterStore
from harken.matching.contract import AccessPath, Incoming, Pairs, Slots, Stats
from harken.matching.encoding import BLOCK, Encoder
from harken.matching.events import EventBatch
from harken.matching.kernels.layout import (
    CELLS,
    FIRST_KEY_TABLE,
    HEADER,
    KEY,
    LINE,
    PRESENCE_TABLE,
    RANGE_TABLE,
    REPEATS,
    TABLE,
    WIDTH,
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
from harken.matching.locality import SORTED_BLOCK, in_event_order, leading_dimensions, order_of, ordered
from harken.matching.predicates import PredicateTable
from harken.matching.saving import State
from harken.matching.single import SingleMatching
from harken.matching.statistics import EventStatistics
from harken.matching.translation import translate
from harken.matching.workspace import Workspace
from harken.model.events import FlatEvent
from harken.model.expressions import Expression, Presence
from harken.normal.operators import expression_of

EAGER_LIMIT = 64
"""Order predicates of one dimension up to this many are evaluated for every event, later ones where met."""

OBSERVED = 16
"""Of so many blocks (or single events) one is looked at for statistics."""

SAMPLED_SINGLES = 64
"""Single events that are looked at together."""

MANY = 1_000
"""Clauses that come together from which on it pays to estimate all chances anew."""


class Index(NamedTuple):
    """All that matching reads: views that are valid until the next change."""

    predicates: Predicates
    tables: Tables
    blocks: Blocks
    encoder: Encoder
    leading: tuple[int, ...]
    """The dimensions to order events by, if that pays."""


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
        self._chances: Chances | None = None
        self._benefits: dict[tuple[int, ...], float] = {}
        """The checks per event that key tables were seen to save when last looked at."""
        self._slots = 0
        self._widest = 0
        self._own = threading.local()
        self._statistics_lock = threading.Lock()
        self._seen = np.zeros(4, np.int64)
        self._blocks_seen = -1
        self._sample: list[Events] = []
        self._changed()

    def add(self, slots: Slots, incoming: Incoming) -> None:
        """Translate, choose access paths, insert. Linear in the number of predicates."""
        done = 0
        for batch in incoming.compiled.to_batches():
            self._add_clauses(translate(batch, self._predicates, slots[done : done + batch.num_rows]))
            done += batch.num_rows
        self._store.make_room(0, 0, 0, int(slots.max(initial=-1)) + 1)
        self._slots += len(slots)
        self._changed()

    def remove(self, slots: Slots) -> None:
        """Find each entry by its block and take it out. Linear in the number of predicates."""
        words = self._store.take_out(self._predicates.arrays(), np.asarray(slots, np.int64), self._widest + 1)
        self._predicates.release(words)
        self._slots -= len(slots)
        self._changed()

    def match(self, event: FlatEvent) -> Slots:
        """Match one event."""
        single = self._single()
        workspace = single.workspace
        slots = single.match(event, self._prefetch)
        if workspace.scratch.counts[REPEATS]:
            slots = np.unique(slots)
        workspace.count(1, len(slots))
        if workspace.events >= OBSERVED:
            self._note(workspace, single.events)
        return slots

    def match_batch(self, events: EventBatch) -> Pairs:
        """Encode and match, block by block."""
        index = self._index
        rows, slots = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        size = SORTED_BLOCK if index.leading else BLOCK
        for start, block in index.encoder.blocks(events, size):
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

    def access(self, slot: int) -> list[AccessPath]:
        """How events find the clauses of a subscription."""
        return [self._access_to(block, entry_id) for block, entry_id in self._store.entries_of(slot)]

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

    def state(self) -> State:
        """The whole index. Must not run beside changes; others may match."""
        with self._statistics_lock:
            parts = {
                "predicates": self._predicates.state(),
                "clusters": self._store.state(),
                "statistics": self._statistics.state(),
            }
            return State.of_parts(parts).with_facts(
                slots=self._slots,
                widest=self._widest,
                seen=self._seen.tolist(),
                benefits=list(self._benefits.items()),
            )

    def restore(self, state: State) -> None:
        """Hold what another matcher held. Linear in the number of distinct predicates: clusters are mapped."""
        self._predicates.restore(state.part("predicates"))
        self._store.restore(state.part("clusters"))
        self._statistics.restore(state.part("statistics"))
        self._slots, self._widest = int(state.fact("slots")), int(state.fact("widest"))
        self._seen[:] = state.fact("seen")
        self._benefits = {tuple(schema): benefit for schema, benefit in state.fact("benefits")}
        self._changed()

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

    def _changed(self) -> None:
        """Make the index anew after a change."""
        self._encoder.refresh()
        tables = self._store.tables()
        leading = leading_dimensions(tables, self._store.nbytes["clusters"])
        self._index = Index(self._predicates.arrays(), tables, self._store.blocks(), self._encoder, leading)
        self._sample.clear()

    def _match_block(self, index: Index, events: Events) -> Pairs:
        order = order_of(events, index.leading)
        if order is None:
            return self._match_in_order(index, events)
        return in_event_order(order, self._match_in_order(index, ordered(events, order)))

    def _match_in_order(self, index: Index, events: Events) -> Pairs:
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
        workspace.count(len(events.code), len(pairs[0]))
        self._note(workspace, events)
        return pairs

    def _note(self, workspace: Workspace, events: Events) -> None:
        """Remember what was seen, unless another thread is at it: a sample is enough."""
        if not self._statistics_lock.acquire(blocking=False):
            return
        try:
            self._seen += workspace.counted()
            if len(events.code) > 1:
                self._observe_block(events)
            else:
                self._sample.append(events._replace(code=events.code.copy(), label=events.label.copy()))
                if len(self._sample) == SAMPLED_SINGLES:
                    code = np.concatenate([each.code for each in self._sample])
                    label = np.concatenate([each.label for each in self._sample])
                    self._sample.clear()
                    self._statistics.observe(events._replace(code=code, label=label), self._predicates)
        finally:
            self._statistics_lock.release()

    def _observe_block(self, events: Events) -> None:
        self._blocks_seen += 1
        if self._blocks_seen % OBSERVED == 0:
            self._statistics.observe(events, self._predicates)

    def _workspace(self, index: Index) -> Workspace:
        """The workspace of this thread, fit for the index."""
        workspace: Workspace | None = getattr(self._own, "workspace", None)
        if workspace is None or workspace.index is not index:
            satisfied = self._predicates.most_satisfied
            places = satisfied + len(index.tables.base) + len(self._predicates.dimensions)
            cells = len(self._predicates.bands) * CELLS
            workspace = Workspace.fit(workspace, index, index.predicates.initial, places + cells + 1)
            self._own.workspace = workspace
            self._own.single = None
        return workspace

    def _single(self) -> SingleMatching:
        """What this thread matches single events with, fit for the index."""
        index = self._index
        workspace = self._workspace(index)
        single: SingleMatching | None = self._own.single
        if single is None:
            single = self._own.single = SingleMatching(
                index.predicates, index.tables, index.blocks, index.encoder, workspace
            )
        return single

    def _clause_at(self, block: int, entry_id: int) -> list[int]:
        """The predicates of one entry."""
        store = self._store
        entry = find_entry(store.words, block, entry_id)
        into = np.zeros(self._widest + 1, np.int64)
        count = clause_predicates(self._predicates.arrays(), store.tables(), store.words, block, entry, into)
        return [int(word) for word in into[:count]]

    def _access_to(self, block: int, entry_id: int) -> AccessPath:
        header = self._store.words[block * LINE : block * LINE + HEADER].tolist()
        neighbours = self._store.entries_at(header[TABLE], header[KEY]) - 1
        if header[TABLE] == PRESENCE_TABLE:
            attribute = self._predicates.dimensions[header[KEY]].attribute
            return AccessPath(Presence(attribute, True), neighbours)
        clause = self._clause_at(block, entry_id)
        leading = clause[: len(clause) - header[WIDTH]]
        if header[TABLE] == RANGE_TABLE:
            cells = self._predicates.arrays().cell
            leading = [word for word in clause if cells[word] == header[KEY]][:1]
        return AccessPath(
            expression_of([[row for word in leading for row in self._predicates.rows(word)]]), neighbours
        )

    def _table_stats(self) -> list[dict[str, object]]:
        dimensions = self._predicates.dimensions
        names = ["(every event)", "(one predicate)", "(presence)", "(range)"]
        names += [
            ", ".join(dimensions[number].attribute for number in schema)
            for schema in self._store.schemas[FIRST_KEY_TABLE:]
        ]
        stats = [{"access": name, **self._store.table_stats(table)} for table, name in enumerate(names)]
        for table, schema in enumerate(self._store.schemas):
            if schema in self._benefits:
                stats[table]["benefit"] = self._benefits[schema]
        return [each for each in stats if each["access"]]
