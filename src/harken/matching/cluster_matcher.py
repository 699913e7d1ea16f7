"""What the cluster algorithms share: predicates, encoding, clusters, and how subscriptions enter and leave."""

from __future__ import annotations

import threading
from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from harken.matching.clusters import ClusterStore
from harken.matching.contract import Incoming, Pairs, Slots, Stats
from harken.matching.encoding import Encoder
from harken.matching.events import EventBatch
from harken.matching.kernels.layout import EXTRA, FIRST_KEY_TABLE, Events, Scratch
from harken.matching.kernels.matching import GROUP, match_events
from harken.matching.kernels.placing import clause_predicates, find_entry
from harken.matching.predicates import PredicateTable
from harken.matching.statistics import EventStatistics
from harken.matching.translation import Clauses, translate
from harken.model.events import FlatEvent
from harken.model.expressions import Expression
from harken.normal.operators import expression_of

EAGER_LIMIT = 64
"""Order predicates of one dimension up to this many are evaluated once per event, later ones where met."""

OBSERVED = 16
"""Of so many blocks (or single events) one is looked at for statistics."""

FIRST_ROOM = 4_096
"""Results that a matching call has room for at first."""


class ClusterMatcher:
    """Clauses in clusters under access paths.

    Any number of threads may match at once while none adds or removes: the index is only read, and each thread
    has its own scratch. Statistics are gathered from events that come while no other thread matches.
    """

    def __init__(self, *, prefetch: bool = True, eager_limit: int = EAGER_LIMIT) -> None:
        self._prefetch = prefetch
        self._predicates = PredicateTable(eager_limit=eager_limit)
        self._store = ClusterStore()
        self._statistics = EventStatistics()
        self._encoder: Encoder | None = None
        self._extras = _Extras()
        self._slots = 0
        self._clauses = 0
        self._widest = 0
        self._scratch = threading.local()
        self._statistics_lock = threading.Lock()
        self._seen = np.zeros(4, np.int64)
        self._blocks_seen = -1

    def add(self, slots: Slots, incoming: Incoming) -> None:
        """Translate, choose access paths, insert. Linear in the number of predicates."""
        done = 0
        for batch in incoming.compiled.to_batches():
            clauses = translate(batch, self._predicates)
            self._add_clauses(clauses, slots[done : done + batch.num_rows])
            done += batch.num_rows
        self._slots += len(slots)
        self._changed()

    def remove(self, slots: Slots) -> None:
        """Find each entry by its block and take it out. Linear in the number of predicates."""
        entry_ids = self._extras.entries_of(slots)
        _, words = self._store.take_out(self._predicates.arrays(), entry_ids)
        self._predicates.release(words)
        self._extras.drop(slots)
        self._slots -= len(slots)
        self._clauses -= len(entry_ids)
        self._changed()

    def match(self, event: FlatEvent) -> Slots:
        """Match one event."""
        return self._match_block(self._encoding().one(event))[1]

    def match_batch(self, events: EventBatch) -> Pairs:
        """Encode and match, block by block."""
        rows, slots = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for start, block in self._encoding().blocks(events):
            found_rows, found_slots = self._match_block(block)
            rows.append(found_rows + start)
            slots.append(found_slots)
        return np.concatenate(rows), np.concatenate(slots)

    @property
    def attributes(self) -> Collection[str]:
        """The attributes that some predicate in use looks at."""
        return self._predicates.attributes.keys()

    def expression(self, slot: int) -> Expression:
        """What a subscription asks for, in its normal form."""
        clauses = [self._clause_of(entry_id) for entry_id in self._extras.entries_of(np.array([slot])).tolist()]
        return expression_of([[row for word in words for row in self._predicates.rows(word)] for words in clauses])

    def stats(self) -> Stats:
        """Sizes, bytes by part, access tables, and what matching has done."""
        events, matches, visits, checks = self._seen.tolist()
        return {
            "subscriptions": self._slots,
            "clauses": self._clauses,
            "predicates": len(self._predicates),
            "bytes": {**self._store.nbytes, "predicates": self._predicates.nbytes},
            "tables": self._table_stats(),
            "events": events,
            "matches": matches,
            "matches_per_event": matches / events if events else 0.0,
            "clusters_per_event": visits / events if events else 0.0,
            "checks_per_event": checks / events if events else 0.0,
        }

    def _add_clauses(self, clauses: Clauses, slots: Slots) -> None:
        entry_ids = self._extras.admit(clauses.owner, slots)
        self._predicates.use(clauses.words)
        self._store.block_of.grow_to(int(slots.max(initial=-1)) + 1)
        self._store.block_of_extra.grow_to(self._extras.count)
        self._store.make_room(len(self._predicates), len(self._predicates.dimensions))
        self._clauses += len(entry_ids)
        self._widest = max(self._widest, int(np.diff(clauses.first).max(initial=0)))
        self._place(clauses, entry_ids)

    def _place(self, clauses: Clauses, entry_ids: npt.NDArray[np.int64]) -> None:
        """Put clauses into clusters, by the access paths there are."""
        selectivity = self._statistics.selectivity(self._predicates)
        presence = self._statistics.presence(self._predicates)
        self._store.place(
            self._predicates.arrays(), selectivity, presence, clauses.first, clauses.words, entry_ids
        )

    def _changed(self) -> None:
        self._encoder = None

    def _encoding(self) -> Encoder:
        encoder = self._encoder
        if encoder is None:
            encoder = self._encoder = Encoder(self._predicates)
        return encoder

    def _match_block(self, events: Events) -> Pairs:
        predicates, tables, blocks = self._predicates.arrays(), self._store.tables(), self._store.blocks()
        scratch = self._own_scratch(len(self._predicates), len(tables.base), events.code.shape[1])
        room, start = FIRST_ROOM, 0
        rows, ids = [], []
        while start < len(events.code):
            found_event, found_id = np.empty(room, np.int64), np.empty(room, np.uint32)
            reached, count = match_events(
                predicates, tables, blocks, events, start, scratch, self._prefetch, found_event, found_id
            )
            rows.append(found_event[:count])
            ids.append(found_id[:count])
            if reached == start:
                room *= 4
            start = reached
        pairs = self._extras.owners(np.concatenate(rows), np.concatenate(ids).astype(np.int64))
        self._note(events, len(pairs[0]), scratch)
        return pairs

    def _note(self, events: Events, matches: int, scratch: Scratch) -> None:
        """Remember what was seen, unless another thread is at it: a sample is enough."""
        if not self._statistics_lock.acquire(blocking=False):
            return
        try:
            self._blocks_seen += 1
            self._seen += [len(events.code), matches, *scratch.counts.tolist()]
            if self._blocks_seen % OBSERVED == 0:
                self._statistics.observe(events)
        finally:
            scratch.counts[:] = 0
            self._statistics_lock.release()

    def _own_scratch(self, predicates: int, tables: int, dimensions: int) -> Scratch:
        """The scratch of this thread, made larger if the index has grown."""
        scratch: Scratch | None = getattr(self._scratch, "value", None)
        places = GROUP * (predicates + tables + dimensions + 1)
        if scratch is None or len(scratch.truth) < predicates or len(scratch.places) < places:
            room = predicates + predicates // 2 + 64
            scratch = Scratch(
                np.zeros(room, np.uint8),
                np.zeros(room, np.int32),
                np.zeros(places + places // 2, np.int64),
                np.zeros(GROUP, np.int64),
                np.zeros(2, np.int64),
            )
            scratch.truth[-1] = 1
            self._scratch.value = scratch
        return scratch

    def _clause_of(self, entry_id: int) -> list[int]:
        """The predicate words of one entry."""
        store = self._store
        located = store.block_of_extra if entry_id >= EXTRA else store.block_of
        block = int(located.values[entry_id & (EXTRA - 1)])
        entry = find_entry(store.words, block, entry_id)
        into = np.zeros(self._widest + 1, np.int64)
        count = clause_predicates(self._predicates.arrays(), store.tables(), store.words, block, entry, into)
        return [int(word) for word in into[:count]]

    def _table_stats(self) -> list[dict[str, object]]:
        tables, dimensions = self._store.tables(), self._predicates.dimensions
        names = ["(every event)", "(one predicate)", "(presence)"]
        names += [
            ", ".join(dimensions[number].attribute for number in schema)
            for schema in self._store.schemas[FIRST_KEY_TABLE:]
        ]
        return [
            {"access": name, "population": int(population)}
            for name, population in zip(names, tables.population.tolist(), strict=True)
        ]


class _Extras:
    """Subscriptions with several clauses: each clause is an entry of its own, numbered apart from slots."""

    def __init__(self) -> None:
        self.count = 0
        self._clauses_of: dict[int, list[int]] = {}
        self._slot_of: list[int] = []
        self._free: list[int] = []

    def admit(self, owner: npt.NDArray[np.int64], slots: Slots) -> npt.NDArray[np.int64]:
        """Entry ids for clauses of new subscriptions: the slot itself where there is one clause."""
        counts = np.bincount(owner, minlength=len(slots))
        entry_ids = slots[owner]
        for row in np.flatnonzero(counts != 1).tolist():
            slot = int(slots[row])
            extras = [self._new(slot) for _ in range(int(counts[row]))]
            self._clauses_of[slot] = extras
            entry_ids[owner == row] = [EXTRA + extra for extra in extras]
        return entry_ids

    def _new(self, slot: int) -> int:
        if self._free:
            extra = self._free.pop()
            self._slot_of[extra] = slot
            return extra
        self._slot_of.append(slot)
        self.count += 1
        return self.count - 1

    def entries_of(self, slots: Slots) -> npt.NDArray[np.int64]:
        """All entries of subscriptions."""
        if not self._clauses_of:
            return np.asarray(slots, np.int64)
        entries: list[int] = []
        for slot in slots.tolist():
            extras = self._clauses_of.get(slot)
            entries.extend([slot] if extras is None else [EXTRA + extra for extra in extras])
        return np.array(entries, np.int64)

    def drop(self, slots: Slots) -> None:
        """Forget the clauses of subscriptions that have left."""
        if self._clauses_of:
            for slot in slots.tolist():
                self._free.extend(self._clauses_of.pop(slot, ()))

    def owners(self, rows: npt.NDArray[np.int64], ids: npt.NDArray[np.int64]) -> Pairs:
        """Matches of entries as matches of subscriptions, each pair once."""
        extra = ids >= EXTRA
        if not extra.any():
            return rows, ids
        slot_of = np.array(self._slot_of, np.int64)
        ids[extra] = slot_of[ids[extra] - EXTRA]
        pairs = np.unique(np.stack([rows, ids], axis=1), axis=0)
        return pairs[:, 0], pairs[:, 1]
