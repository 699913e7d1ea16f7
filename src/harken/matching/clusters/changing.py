"""How subscriptions enter and leave clusters, at once or in portions, and what is known of the events to come."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import cache, partial

import numpy as np
import numpy.typing as npt

from harken.matching.clusters.clusters import WASTE, ClusterStore
from harken.matching.clusters.kernels.blocks import find_entry
from harken.matching.clusters.kernels.choosing import nothing_asked
from harken.matching.clusters.kernels.maintaining import Room, redistribute
from harken.matching.clusters.kernels.placing import clause_predicates
from harken.matching.contract import Incoming, Slots
from harken.matching.encoding.matcher import READ, EncodedMatcher
from harken.matching.encoding.statistics import SAMPLE, UNSEEN, ObservedEvents
from harken.matching.events.batch import EventBatch
from harken.matching.kernels.layout import CELLS, RANGE_TABLE, Chances, Clauses
from harken.matching.predicates.intervals import Recut
from harken.matching.predicates.rows import Row
from harken.matching.predicates.translation import Said
from harken.matching.saving import State, counted, require
from harken.model.expressions import And, Comparator, Comparison, Range
from harken.portions import ALONE, AT_ONCE, BESIDE, DONE, Needs, Pace, Portions, done_at_once, in_parts

MANY = 1_000
"""Clauses that come together from which on it pays to estimate all chances anew."""

STALE = 8
"""Chances are stale when, of so many clauses there are, one has come since they were estimated."""


class ChangingClusters(EncodedMatcher):
    """Clauses in clusters under access paths, where those are that are opened seldom."""

    def __init__(self) -> None:
        super().__init__()
        self._store = ClusterStore()
        self._statistics = ObservedEvents()
        self._chances: Chances | None = None
        self._entered = 0
        """Clauses that have come since all chances were estimated."""
        self._benefits: dict[tuple[int, ...], float] = {}
        """The checks per event that key tables were seen to save when last looked at."""
        self._widest = 0

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

    def _clause_at(self, block: int, entry_id: int) -> list[int]:
        """The predicates of one entry."""
        store = self._store
        entry = find_entry(store.words, block, entry_id)
        into = np.zeros(self._widest + 1, np.int64)
        count = clause_predicates(self._predicates.arrays(), store.tables(), store.words, block, entry, into)
        return [int(word) for word in into[:count]]

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
