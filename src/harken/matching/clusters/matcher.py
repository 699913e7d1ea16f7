"""What the cluster algorithms share: how events are matched by clusters, one by one, in batches and by threads."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from harken.matching.clusters.changing import ChangingClusters
from harken.matching.clusters.kernels.matching import match_events
from harken.matching.clusters.kernels.pairs import is_in_pair
from harken.matching.clusters.sharing import Collaborative, Independent
from harken.matching.clusters.single import SingleMatching
from harken.matching.contract import AccessPath, Pairs, Slots, Stats
from harken.matching.encoding.encoder import BLOCK
from harken.matching.encoding.locality import by_row, leading_dimensions
from harken.matching.encoding.native import flat_until
from harken.matching.encoding.reading import RowReader
from harken.matching.encoding.workspace import Workspace, each_once
from harken.matching.kernels.layout import (
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
    Events,
    PredicateArrays,
    Results,
    Tables,
)
from harken.matching.parallel.options import Parallel
from harken.matching.parallel.team import Team
from harken.model.arguments import checked_flag
from harken.model.events import Event, FlatEvent, flatten, is_changed_meanwhile
from harken.model.expressions import Presence

OBSERVED = 16
"""Of so many blocks (or single events) one is looked at for statistics."""

MOST_TOGETHER = 1_024
"""Tables that groups of events look into together: there is room for what each event finds in each of them."""

SAMPLED_SINGLES = 64
"""Single events that are looked at together."""

_NO_PAIRS = np.zeros(0, np.int64), np.zeros(0, np.int64)


class ClusterIndex(NamedTuple):
    """All that matching reads: views that are valid until the next change."""

    predicates: PredicateArrays
    tables: Tables
    blocks: Blocks


class ClusterMatcher(ChangingClusters):
    """Matches events by clusters. Statistics are gathered from the events that come."""

    _index: ClusterIndex

    def __init__(self, *, prefetch: bool = True) -> None:
        super().__init__()
        self._prefetch = checked_flag("prefetch", prefetch)
        self._room: tuple[ClusterIndex | None, int] = None, 0
        self._blocks_seen = -1
        self._sample: list[Events] = []
        self._changed()

    def match(self, event: FlatEvent) -> Slots:
        """Match one event."""
        return self._match_one(event, is_checked=True)  # type: ignore[return-value]  # which needs no check

    def match_unchecked(self, event: Event) -> Slots | None:
        """Match one event, which is checked while it is read."""
        return self._match_one(event, is_checked=False) if type(event) is dict else None

    def flat_until(self, events: list[Event], row: int) -> int:
        """The row from a row on up to which all events are flat, as far as kernels see."""
        return flat_until(events, row)

    def _match_one(self, event: Event, *, is_checked: bool) -> Slots | None:
        workspace = self._workspace()
        try:
            workspace.busy = True
            single = workspace.single or self._new_single(workspace)
            slots = single.match(event, self._prefetch, is_checked=is_checked)
            if slots is None:
                return None
            if len(slots) and workspace.scratch.counts[REPEATS]:
                slots = each_once(slots)
            workspace.count(1, len(slots))
            if workspace.events >= OBSERVED:
                single.note(OBSERVED)
                self._note(workspace, single.events)
            return slots
        except BaseException as error:  # an interrupt, perhaps where events got other columns
            workspace.single = None
            if not (isinstance(error, RuntimeError) and is_changed_meanwhile(error, RowReader.read)):
                raise
            return self._match_one(flatten(event)[0], is_checked=True) if is_checked else None
        finally:
            workspace.busy = False

    def access(self, slot: int) -> list[AccessPath]:
        """How events find the clauses of a subscription."""
        return [self._access_to(block, entry_id) for block, entry_id in self._store.entries_of(slot)]

    def stats(self) -> Stats:
        """Sizes, bytes by part, access tables, and what matching has done."""
        return {
            **self._common_stats(),
            "clauses": self._store.clauses,
            "bytes": {**self._store.nbytes, "predicates": self._predicates.nbytes},
            "tables": self._table_stats(),
        }

    def _changed(self) -> None:
        self._encoder.refresh()
        self._index = ClusterIndex(self._predicates.arrays(), self._store.tables(), self._store.blocks())
        self._sample.clear()

    def _leading(self) -> tuple[int, ...]:
        # Told when a batch comes: many changes may come between two.
        return leading_dimensions(self._index.tables, self._store.nbytes["clusters"])

    def _match_from(self, start: int, events: Events, workspace: Workspace, results: Results) -> tuple[int, int]:
        predicates, tables, blocks = self._index
        stop, ahead = len(events.code), self._prefetch
        return match_events(predicates, tables, blocks, events, start, stop, workspace.scratch, ahead, results)

    def _observe(self, events: Events) -> None:
        if len(events.code) > 1:
            before = self._blocks_seen // OBSERVED
            self._blocks_seen += max(1, len(events.code) // BLOCK)
            if self._blocks_seen // OBSERVED > before:
                self._statistics.observe(events, self._predicates)
            return
        self._sample.append(events._replace(code=events.code.copy(), label=events.label.copy()))
        if len(self._sample) == SAMPLED_SINGLES:
            sample, self._sample = self._sample, []
            for alike in _by_columns(sample):
                code = np.concatenate([each.code for each in alike])
                label = np.concatenate([each.label for each in alike])
                self._statistics.observe(alike[0]._replace(code=code, label=label), self._predicates)

    def _most_places(self) -> int:
        """How many places of the directory an event may open; found once after a change."""
        index, places = self._room
        if index is not self._index:
            index, predicates = self._index, self._predicates
            ranges = self._store.cells_in_use + self._store.most_pairs()
            places = predicates.most_satisfied + len(index.tables.base) + len(predicates.dimensions) + ranges + 1
            self._room = index, places
        return places

    def _fitted(self, old: Workspace | None) -> Workspace:
        index = self._index
        tables, places = index.tables, self._most_places()
        together = min(len(tables.digit), MOST_TOGETHER) if (tables.filter < 0).any() else 0
        return Workspace.fit(old, index, index.predicates, places, len(tables.digits), together)

    def check_parallel(self, parallel: Parallel) -> None:
        """Threads can match in every way there is."""

    def _match_by(self, team: Team, parallel: Parallel, events: Events) -> Pairs:
        """Match encoded events by a team, whose threads claim what they do within kernels."""
        began, sharing = time.perf_counter(), self._sharing(events, parallel, team.threads)
        is_shared = isinstance(sharing, Collaborative)
        found: list[Pairs] = [_NO_PAIRS] * team.threads
        seen: list[list[int]] = [[0] * len(self._seen)] * team.threads

        def match(number: int) -> None:
            with self._used(own=not number) as workspace:
                told = workspace.told()
                fits, workspace.index = workspace.index, None  # who is stopped leaves the truth of an event behind
                if sharing.match(number, workspace.scratch, told):
                    workspace.index = fits
                workspace.had(told)
                found[number] = told.pairs() if is_shared else workspace.distinct(*told.pairs())
                workspace.count(0 if number else len(events.code), len(found[number][0]))
                seen[number] = workspace.counted()

        team.run(match, sharing.stop)
        rows, slots = (np.concatenate([each[at] for each in found]) for at in (0, 1))
        if is_shared:
            pairs = each_once(rows << 32 | slots)  # several threads may have told one, each for another clause
            rows, slots = pairs >> 32, pairs & 0xFFFF_FFFF
        elif not len(events.order) and parallel.sync != "static":
            rows, slots = by_row(rows, slots, len(events.code))
        each = (time.perf_counter() - began) * sharing.at_once / len(events.code)
        self._note_all(seen, events)
        self.record.note(parallel, team.threads, len(events.code), each, sharing.members)
        return rows, slots

    def _sharing(self, events: Events, parallel: Parallel, threads: int) -> Independent | Collaborative:
        if parallel.mode == "me-ip":
            return Independent(self._index, events, parallel, threads, self._prefetch)
        # One for each width at each place, at most, and none without a clause.
        blocks = min(self._most_places() * (self._widest + 1), int(self._index.tables.population.sum()))
        group = self.record.group_for(parallel, threads)
        satisfied = self._predicates.most_satisfied
        return Collaborative(self._index, events, parallel, threads, group, self._prefetch, blocks, satisfied)

    def _new_single(self, workspace: Workspace) -> SingleMatching:
        """What single events are matched with in a workspace."""
        single = workspace.single = SingleMatching(*self._index, self._encoder, workspace.scratch)
        return single

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
        elif 0 < header[TABLE] == self._store.pairs_table:
            arrays = self._predicates.arrays()
            leading = [word for word in clause if is_in_pair(arrays, word, header[KEY])]
        return AccessPath(self._said([leading]), neighbours)

    def _table_stats(self) -> list[dict[str, object]]:
        dimensions = self._predicates.dimensions
        names = ["(every event)", "(one predicate)", "(presence)", "(range)"]
        names += [
            ", ".join(dimensions[number].attribute for number in schema)
            for schema in self._store.schemas[FIRST_KEY_TABLE:]
        ]
        if self._store.pairs_table:
            names[self._store.pairs_table] = "(two ranges)"
        stats = [{"access": name, **self._store.table_stats(table)} for table, name in enumerate(names)]
        for table, schema in enumerate(self._store.schemas):
            if schema in self._benefits:
                stats[table]["benefit"] = self._benefits[schema]
        return [each for each in stats if each["access"]]


def _by_columns(sample: list[Events]) -> list[list[Events]]:
    """Events grouped by the columns that their codes are in: threads have columns of their own."""
    groups: dict[int, list[Events]] = {}
    for events in sample:
        groups.setdefault(id(events.column), []).append(events)
    return list(groups.values())
