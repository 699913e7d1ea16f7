"""What the cluster algorithms share: predicates, encoding, clusters, and how subscriptions enter and leave."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.matching.clusters.clusters import WASTE, ClusterStore
from harken.matching.clusters.kernels.blocks import find_entry
from harken.matching.clusters.kernels.choosing import nothing_asked
from harken.matching.clusters.kernels.maintaining import Room, redistribute
from harken.matching.clusters.kernels.matching import match_events
from harken.matching.clusters.kernels.pairs import is_in_pair
from harken.matching.clusters.kernels.placing import clause_predicates
from harken.matching.clusters.sharing import Collaborative, Independent
from harken.matching.clusters.single import SingleMatching
from harken.matching.contract import AccessPath, Incoming, Pairs, Slots, Stats
from harken.matching.encoding.encoder import BLOCK
from harken.matching.encoding.locality import by_row, leading_dimensions
from harken.matching.encoding.matcher import READ, EncodedMatcher
from harken.matching.encoding.reading import RowReader
from harken.matching.encoding.statistics import SAMPLE, UNSEEN, ObservedEvents
from harken.matching.encoding.workspace import Workspace, each_once
from harken.matching.events.batch import EventBatch
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
    PredicateArrays,
    Results,
    Tables,
)
from harken.matching.parallel.options import Parallel
from harken.matching.parallel.record import Record
from harken.matching.parallel.team import Team
from harken.matching.predicates.intervals import Recut
from harken.matching.predicates.rows import Row
from harken.matching.predicates.translation import Said
from harken.matching.saving import State, counted, require
from harken.model.arguments import checked_flag
from harken.model.events import Event, FlatEvent, flatten, is_changed_meanwhile
from harken.model.expressions import And, Comparator, Comparison, Presence, Range
from harken.portions import ALONE, AT_ONCE, BESIDE, DONE, Needs, Pace, Portions, done_at_once, in_parts

OBSERVED = 16
"""Of so many blocks (or single events) one is looked at for statistics."""

SAMPLED_SINGLES = 64
"""Single events that are looked at together."""

_NO_PAIRS = np.zeros(0, np.int64), np.zeros(0, np.int64)

MANY = 1_000
"""Clauses that come together from which on it pays to estimate all chances anew."""

STALE = 8
"""Chances are stale when, of so many clauses there are, one has come since they were estimated."""


class ClusterIndex(NamedTuple):
    """All that matching reads: views that are valid until the next change."""

    predicates: PredicateArrays
    tables: Tables
    blocks: Blocks


class ClusterMatcher(EncodedMatcher):
    """Clauses in clusters under access paths. Statistics are gathered from the events that come."""

    _index: ClusterIndex

    def __init__(self, *, prefetch: bool = True) -> None:
        super().__init__()
        self._prefetch = checked_flag("prefetch", prefetch)
        self._store = ClusterStore()
        self._statistics = ObservedEvents()
        self._chances: Chances | None = None
        self._entered = 0
        """Clauses that have come since all chances were estimated."""
        self._benefits: dict[tuple[int, ...], float] = {}
        """The checks per event that key tables were seen to save when last looked at."""
        self._together = Record()
        self._room: tuple[ClusterIndex | None, int] = None, 0
        self._widest = 0
        self._blocks_seen = -1
        self._sample: list[Events] = []
        self._changed()

    def match(self, event: FlatEvent) -> Slots:
        """Match one event."""
        return self._match_one(event, is_checked=True)  # type: ignore[return-value]  # which needs no check

    def match_unchecked(self, event: Event) -> Slots | None:
        """Match one event, which is checked while it is read."""
        return self._match_one(event, is_checked=False) if type(event) is dict else None

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
            **self._together.stats(),
            "clauses": self._store.clauses,
            "bytes": {**self._store.nbytes, "predicates": self._predicates.nbytes},
            "tables": self._table_stats(),
        }

    def _parts(self) -> dict[str, State]:
        facts = {"benefits": list(self._benefits.items())}
        return {"clusters": self._store.state(), "statistics": self._statistics.state(), "known": State(facts)}

    def _restore_parts(self, state: State, slots: Slots) -> None:
        found = self._store.restore(state.part("clusters"), self._predicates.arrays(), slots)
        self._predicates.check_uses(found.uses)
        self._widest = int(found.widest[0])
        dimensions = len(self._predicates.dimensions)
        self._statistics.restore(state.part("statistics"), dimensions)
        self._benefits = {tuple(schema): benefit for schema, benefit in state.part("known").fact("benefits")}
        for schema, benefit in self._benefits.items():
            require(all(counted("a dimension", each) < dimensions for each in schema), "a benefit is of no table")
            require(isinstance(benefit, float) and math.isfinite(benefit), "a benefit is no number")

    @classmethod
    @cache
    def rehearse(cls) -> None:
        """Change a matcher that nobody matches with: kernels that are used for the first time take long."""
        other, slots = cls(), np.arange(2)
        asked = And((Comparison("a", Comparator.EQ, 1), Range("b", 1, 2)))
        other._take_in(slots, Incoming.of([asked, asked]))
        done_at_once(other._move_in_portions(partial(other._places, range(len(other._store.schemas))), AT_ONCE))
        other._let_go(slots)

    def prepare(self, incoming: Incoming) -> None:
        """As all matchers; and what has to grow does so before anybody has to wait for it."""
        super().prepare(incoming)
        self._store.make_room_for(len(incoming))
        self._have_estimated()

    def _have_slots(self, count: int) -> None:
        self._store.block_of.grow_to(count)

    def _check_clauses(self, clauses: int, predicates: int) -> None:
        self._store.check_room(clauses, predicates)

    def _enter(self, clauses: Clauses) -> None:
        if len(clauses.slot) >= MANY:
            self._chances = None
        self._place(clauses)

    def _place(self, clauses: Clauses) -> None:
        """Enter clauses under what is likely as far as was estimated."""
        self._widest = max(self._widest, int((clauses.first[1:] - clauses.first[:-1]).max(initial=0)))
        self._entered += len(clauses.slot)
        self._have_predicates()
        self._store.place(self._predicates.arrays(), self._estimated(), clauses, self._widest)

    def _have_predicates(self) -> None:
        """Have access paths for predicates that have just been given numbers."""
        if self._have_places():
            recuts = self._predicates.recuts()
            if recuts:
                # All, if that is overdue: one that comes is not to pay for all that there are.
                if STALE * self._entered > 2 * self._clauses():
                    self._chances = None
                self._have_recut(recuts)

    def _have_places(self) -> bool:
        """As `_have_predicates`, but without bands; whether there were any."""
        if not self._predicates.has_new():
            return False
        for dimension in self._predicates.renamed():
            self._forget(dimension)
        self._make_room()
        return True

    def _make_room(self) -> None:
        predicates = self._predicates
        self._store.make_room(len(predicates), len(predicates.dimensions), len(predicates.bands))

    def _have_recut(self, recuts: Sequence[Recut]) -> None:
        """Have dimensions cut into bands anew, and place anew what stood in their cells."""
        rebanded = self._predicates.have_recut(recuts)
        self._make_room()
        if self._chances is not None:  # all of which others would have to wait for
            self._chances = self._statistics.rebanded(self._chances, self._predicates, rebanded)
        self._redistribute(self._under_ranges(rebanded))

    def _under_ranges(self, dimensions: Sequence[int] | None = None) -> npt.NDArray[np.int64]:
        """The directory entries in use of ranges and of pairs, of all dimensions or only of these."""
        store = self._store
        if dimensions is None:
            return np.concatenate([store.used_places(RANGE_TABLE), store.used_pairs()])
        numbers = [self._predicates.bands.number_of(each) for each in dimensions]
        cells = [store.used_places(RANGE_TABLE, slice(CELLS * each, CELLS * (each + 1))) for each in numbers]
        return np.concatenate([*cells, store.used_pairs(numbers)])

    def _forget(self, dimension: int) -> None:
        """A dimension has become another one: nothing that was known of it, or made for it, holds any more."""
        self._statistics.forget(dimension)
        if self._chances is not None and dimension < len(self._chances.presence):
            self._chances.presence[dimension] = UNSEEN
        self._benefits = {schema: each for schema, each in self._benefits.items() if dimension not in schema}
        for table, schema in enumerate(self._store.schemas):
            if dimension in schema:  # and no clause is left there: they all had an equality in this dimension
                self._store.close_key_table(table)

    def _take_out(self, slots: Slots) -> npt.NDArray[np.int64]:
        return self._store.take_out(self._predicates.arrays(), slots, self._widest + 1)

    def _read_clauses(self, slots: Slots) -> Clauses:
        return self._store.read(self._predicates.arrays(), slots, self._widest + 1)

    def _clauses_of(self, slot: int) -> list[list[int]]:
        return [self._clause_at(block, entry_id) for block, entry_id in self._store.entries_of(slot)]

    def _estimate_anew(self) -> None:
        """Estimate how likely access paths are opened, by all that has been seen. Others may match meanwhile."""
        with self._seen_lock:  # and tell what they see, for which they are not to wait until this is done
            seen = self._statistics.copy()
        self._chances, self._entered = seen.chances(self._predicates), 0

    def _have_estimated(self) -> None:
        """Estimate what too little is known of, before somebody wants to know it while others have to wait."""
        if self._chances is None or STALE * self._entered > max(MANY, self._clauses()):
            self._estimate_anew()

    def _clauses(self) -> int:
        """How many clauses have come and not left, at least: those that several share lie there once."""
        return max(self._slots, self._store.clauses)

    def _estimated(self) -> Chances:
        """How likely access paths are opened; what came since the last estimate is guessed."""
        known, predicates = self._chances, self._predicates
        if known is None:
            known, self._entered = self._statistics.chances(predicates), 0
        # A dimension may be new though its predicates have numbers that others had.
        if len(predicates) > len(known.selectivity) or len(predicates.dimensions) > len(known.presence):
            known = self._statistics.extended(known, predicates)
        self._chances = known
        return known

    def learn(self, events: EventBatch) -> None:
        """See what events look like, every one of them, and choose access paths for such events.

        Linear in the events and in the clauses. Must not run beside anything else.
        """
        done_at_once(self.learn_in_portions(events, AT_ONCE))

    def learn_in_portions(self, events: EventBatch, pace: Pace) -> Portions:
        """As `learn`."""
        yield BESIDE
        blocks = [block for _, block in self._encoder.blocks(events, SAMPLE)]
        for block in blocks:
            with self._seen_lock:  # others may match, and tell what they see
                self._statistics.observe(block, self._predicates)
        self._chances = None
        yield ALONE
        yield from self._choose_in_portions(pace)

    def add_in_portions(self, slots: Slots, incoming: Incoming, pace: Pace) -> Portions:
        """As `add`. What subscriptions ask for is read beside those who match, some thousands at a time."""
        if not pace.is_at_once(incoming.clauses):
            return self._add_part_by_part(slots, incoming, pace)
        self._take_in(slots, incoming)
        return DONE

    def _add_part_by_part(self, slots: Slots, incoming: Incoming, pace: Pace) -> Portions:
        with self._changing():
            self._have_slots(int(slots.max()) + 1)
        yield BESIDE
        if len(slots) >= MANY:
            self._estimate_anew()
        done, read = 0, self._read_of(incoming)
        for batch in incoming.compiled.to_batches(max_chunksize=READ):
            yield BESIDE
            said = read.pop(0) if read else Said.of(batch)
            unknown = self._predicates.unknown(said.distinct)
            yield from self._know_in_portions(unknown, pace)
            numbers = self._predicates.numbers(said.distinct)
            clauses = said.clauses(numbers, slots[done : done + batch.num_rows])
            yield ALONE
            yield from self._with_room(len(clauses.slot), pace, partial(self._enter_some, clauses))
            done += batch.num_rows
        self._slots += len(slots)

    def _know_in_portions(self, unknown: Sequence[tuple[Row, ...]], pace: Pace) -> Portions:
        """Give predicates numbers, before any clause asks for them. Begins and ends beside those who match."""
        predicates = self._predicates
        predicates.make_room(unknown)
        self._store.reserve_for(len(predicates) + len(unknown))
        leading = predicates.leading(unknown)
        if leading:
            yield ALONE
            yield from in_parts(len(leading), pace, partial(self._know, leading))
            yield BESIDE
        for expected in predicates.expect(unknown):
            yield ALONE
            with self._changing():
                replaced = predicates.have(expected)
            yield BESIDE
            del replaced
        yield from self._number_in_portions(unknown, pace)
        for bounded in predicates.bounds_of_new():
            yield ALONE
            with self._changing():
                predicates.have_bounds([bounded])
            yield BESIDE
        for recut in predicates.recuts():
            yield ALONE
            with self._changing():
                self._have_recut([recut])
            yield BESIDE

    def _number_in_portions(self, unknown: Sequence[tuple[Row, ...]], pace: Pace) -> Portions:
        """Give predicates numbers. Few of those that look into values are ever without structures."""
        replaced = list[object]()
        yield ALONE
        for part in pace.parts(len(unknown)):
            self._know(unknown, part)
            if not self._predicates.tests_are_settled:
                yield from self._settle_in_portions(replaced)
            elif part.stop < len(unknown):
                yield ALONE
        yield BESIDE
        replaced.clear()

    def _know(self, several: Sequence[tuple[Row, ...]], part: slice) -> None:
        with self._changing():
            self._predicates.intern_many(several[part])
            self._have_places()

    def _settle_in_portions(self, replaced: list[object]) -> Portions:
        """Have structures for predicates that look into values, made beside those who match.

        What they replace is kept until nobody has to wait while it is freed.
        """
        yield BESIDE
        replaced.clear()
        settled = self._predicates.settled_tests()
        yield ALONE
        with self._changing():
            replaced += self._predicates.have_tests(settled)

    def _enter_some(self, clauses: Clauses, part: slice) -> None:
        """Enter some clauses of predicates that have numbers; how likely these are was estimated before."""
        first = clauses.first[part.start : part.stop + 1]
        words = clauses.words[first[0] : first[-1]]
        with self._changing():
            self._predicates.use(words)
            self._place(Clauses(first - first[0], words, clauses.slot[part], clauses.alone[part]))

    def remove_in_portions(self, slots: Slots, pace: Pace) -> Portions:
        """As `remove`."""
        return in_parts(len(slots), pace, lambda part: self._let_go(slots[part]))

    def arrange_in_portions(self, coming: int, leaving: int, pace: Pace) -> Portions:
        """As `_maintain`; before that, predicates that look into values are settled."""
        if not self._predicates.tests_are_settled:
            return self._settle_and_rearrange(coming, leaving, pace)
        return self._rearrange_in_portions(coming, leaving, pace)

    def _settle_and_rearrange(self, coming: int, leaving: int, pace: Pace) -> Portions:
        replaced = list[object]()
        yield from self._settle_in_portions(replaced)
        yield BESIDE
        replaced.clear()
        yield ALONE
        yield from self._rearrange_in_portions(coming, leaving, pace)

    def _rearrange_in_portions(self, coming: int, leaving: int, pace: Pace) -> Portions:
        """All in one portion, unless a subclass knows better."""
        for change in (coming, -leaving):
            if change:
                self._maintain(change)
        return DONE

    def _redistribute(self, places: npt.NDArray[np.int64], retired: Sequence[int] = ()) -> int:
        """Move the clauses at these directory entries to the best access paths there are; how many moved.

        As if tables that are retired were closed already, but for those who look there.
        """
        store, moved, done = self._store, np.zeros(1, np.int64), 0
        clause, residual = np.zeros((2, self._widest + 1), np.int64)
        chances, asked = self._estimated(), nothing_asked(self._predicates.arrays(), store.tables())
        while True:
            arrays, tables, blocks = self._predicates.arrays(), store.tables_without(retired), store.blocks()
            room = Room(store.free, asked, np.zeros(len(tables.base), np.int64), clause, residual)
            done = redistribute(arrays, tables, blocks, chances, places, done, room, moved)
            if done == len(places):
                return int(moved[0])
            store.grow()

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

    def _choose_in_portions(self, pace: Pace) -> Portions:
        """Move every clause to the best of the access paths there are."""
        yield from self._move_in_portions(partial(self._places, range(len(self._store.schemas))), pace)
        yield from self._tidy_in_portions(pace)

    def _move_in_portions(
        self, find: Callable[[], npt.NDArray[np.int64]], pace: Pace, retired: Sequence[int] = ()
    ) -> Generator[Needs, None, int]:
        """Move the clauses at some directory entries to the best access paths there are; how many have moved.

        None stays in tables that are retired, or goes there.
        """
        yield BESIDE
        self._have_estimated()
        places, moved = find(), 0
        yield ALONE

        def move(part: slice) -> None:
            nonlocal moved
            with self._changing():
                moved += self._redistribute(places[part], retired)

        yield from self._with_room(len(places), pace, move)
        return moved

    def _with_room(self, count: int, pace: Pace, work: Callable[[slice], None]) -> Portions:
        """As `in_parts`, but room for clusters is made beside those who match, before it is wanted."""
        if pace.is_at_once(count):
            yield from in_parts(count, pace, work)
            return
        for part in pace.parts(count):
            if self._store.runs_short():
                yield BESIDE
                self._store.make_room_beside()
                yield ALONE
            work(part)
            if part.stop < count:
                yield ALONE

    def _tidy_in_portions(self, pace: Pace, waste: float = WASTE) -> Portions:
        """Have clusters side by side, filters where they pay, and clauses spread over the keys that have them."""
        yield BESIDE
        compacted = self._store.compacted(waste)
        yield ALONE
        if compacted is not None:
            with self._changing():
                self._store.have_compacted(compacted)
        yield BESIDE
        filtered = self._store.filtered(self._predicates.arrays())
        yield ALONE
        if filtered is not None:
            with self._changing():
                self._store.have_filters(filtered)
            yield from self._move_in_portions(self._store.crowded, pace)

    def _places(self, tables: Iterable[int]) -> npt.NDArray[np.int64]:
        """The directory entries in use of these tables."""
        return np.concatenate([self._store.used_places(each) for each in tables])

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
        digits = len(index.tables.digits)
        return Workspace.fit(old, index, index.predicates, self._most_places(), digits)

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
        with self._seen_lock:
            self._together.note(parallel, sharing.members, len(events.code), each)
        return rows, slots

    def _sharing(self, events: Events, parallel: Parallel, threads: int) -> Independent | Collaborative:
        if parallel.mode == "me-ip":
            return Independent(self._index, events, parallel, threads, self._prefetch)
        # One for each width at each place, at most, and none without a clause.
        blocks = min(self._most_places() * (self._widest + 1), int(self._index.tables.population.sum()))
        group = self._together.group_for(parallel, threads)
        satisfied = self._predicates.most_satisfied
        return Collaborative(self._index, events, parallel, threads, group, self._prefetch, blocks, satisfied)

    def _new_single(self, workspace: Workspace) -> SingleMatching:
        """What single events are matched with in a workspace."""
        single = workspace.single = SingleMatching(*self._index, self._encoder, workspace.scratch)
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
