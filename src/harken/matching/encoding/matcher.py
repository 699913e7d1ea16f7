"""What all algorithms on codes share: predicates, encoding, and matching block by block."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken import jit
from harken.errors import ArgumentError, CapacityError, CopyError
from harken.locking import Door, owned_lock, watch_forks
from harken.matching.contract import AccessPath, Incoming, Pairs, Slots, Stats
from harken.matching.encoding.encoder import BLOCK, Encoder
from harken.matching.encoding.locality import ENCODED, in_event_order
from harken.matching.encoding.workspace import Workspace
from harken.matching.events.batch import EventBatch
from harken.matching.events.mentions import Mentions
from harken.matching.growing import places_for
from harken.matching.kernels.layout import Clauses, Events, Results
from harken.matching.parallel.options import Parallel
from harken.matching.parallel.record import Record
from harken.matching.parallel.team import ALONE, Team, team_of
from harken.matching.predicates.table import PredicateTable
from harken.matching.predicates.translation import FEW, Said, translate
from harken.matching.saving import State, counted, require
from harken.model.events import FlatEvent
from harken.model.expressions import Expression
from harken.normal.operators import expression_of

PORTIONS = 4
"""Shares that each of several threads takes one after the other, if they are not given beforehand."""

READ = 8_192
"""Subscriptions that are read together, beside those who match."""

WIDE = 64
"""Columns of events from which on fewer of them are encoded together."""


class _Own(threading.local):
    """What each thread has for itself."""

    def __init__(self) -> None:
        self.workspaces: list[Workspace] = []
        """One, and further ones for matches within a match: from signal handlers and finalisers."""


class EncodedMatcher(ABC):
    """Subscriptions as clauses of numbered predicates, events as codes.

    Any number of threads may match at once while none adds or removes: what matching reads is made anew after
    every change and then only read, and each thread has its own workspace; a match that interrupts another one in
    the same thread has one of its own too.
    """

    _index: object
    """All that matching reads; made anew by `_changed`."""

    def __init__(self) -> None:
        self._predicates = PredicateTable()
        self._encoder = Encoder(self._predicates)
        self._slots = 0
        self._own = _Own()
        self._seen = np.zeros(4, np.int64)
        self._seen_lock = owned_lock()
        self.record = Record()
        """Of what several threads have done."""
        self._read: tuple[Incoming | None, list[Said]] = None, []
        """What those ask for that come next, if it has been read beside those who match."""
        watch_forks(self)

    def prepare(self, incoming: Incoming) -> None:
        """Have the compiled form, and a short one read; CapacityError if it might not be numbered.

        That is told as if nothing of it were known yet.
        """
        if incoming.forms is not None:
            said = Said.of_forms(incoming.forms)
            self._check_room(*said.sizes())
            self._read = incoming, [said]
            return
        if FEW < incoming.compiled.num_rows <= READ:
            self._read = incoming, [Said.of(each) for each in incoming.compiled.to_batches()]
        chunks = incoming.compiled.column("clauses").chunks
        try:
            self._check_room(*_at_most(chunks))
        except CapacityError:  # which slices of a large table may seem to ask for
            self._check_room(*_counted(chunks))

    def _check_room(self, clauses: int, predicates: int, attributes: int) -> None:
        self._predicates.check_room(predicates, attributes)
        self._check_clauses(clauses, predicates)

    def foresee(self) -> None:  # noqa: B027  # most do not
        """Nothing is ever arranged anew, unless a subclass does."""

    def add(self, slots: Slots, incoming: Incoming) -> None:
        """Translate and enter. Linear in the number of predicates."""
        self._take_in(slots, incoming)
        self._predicates.settle_tests()
        self._maintain(len(slots))

    def _take_in(self, slots: Slots, incoming: Incoming) -> None:
        """Translate and enter; predicates that look into values are to be settled."""
        with self._changing():
            self._have_slots(places_for(slots))
            for clauses in self._translated(slots, incoming):
                self._predicates.use(clauses.words)
                self._enter(clauses)
            self._slots += len(slots)

    def _translated(self, slots: Slots, incoming: Incoming) -> Iterator[Clauses]:
        """The clauses of those that come, part by part; predicates are interned when a part is asked for."""
        if incoming.forms is not None:
            (known,) = self._read_of(incoming) or [Said.of_forms(incoming.forms)]
            yield known.clauses(self._predicates.intern_many(known.distinct), slots)
            return
        done = 0
        for batch, said in self._batches_of(incoming):
            these = slots[done : done + batch.num_rows]
            if said is None:
                yield translate(batch, self._predicates, these)
            else:
                yield said.clauses(self._predicates.intern_many(said.distinct), these)
            done += batch.num_rows

    def _batches_of(self, incoming: Incoming) -> list[tuple[pa.RecordBatch, Said | None]]:
        """The batches of a table, and what they say if that has been read."""
        batches, read = incoming.compiled.to_batches(), self._read_of(incoming)
        return list(zip(batches, read, strict=True)) if read else [(each, None) for each in batches]

    def _read_of(self, incoming: Incoming) -> list[Said]:
        """What those who come ask for, if it has been read; it is kept no longer."""
        (known, read), self._read = self._read, (None, [])
        return read if known is incoming else []

    def remove(self, slots: Slots) -> None:
        """Take out, and forget predicates that nobody asks for any more."""
        self._let_go(slots)
        self._predicates.settle_tests()
        self._maintain(-len(slots))

    def _let_go(self, slots: Slots) -> None:
        """Take out; predicates that look into values are to be settled."""
        with self._changing():
            self._predicates.release(self._take_out(np.asarray(slots, np.int64)))
            self._slots -= len(slots)

    def rescue(self, broken: Self, slots: Slots) -> None:
        """Read the clauses off the other's, and enter them. Linear in their number; each is twice in memory then.

        What the other had seen of events, or learned, is not taken over.
        """
        self.take_over(broken, slots)

    def take_over(self, other: EncodedMatcher, slots: Slots) -> None:
        """Hold what another one holds under these slots, of whatever algorithm. Only if empty.

        CapacityError if they are more than can be numbered. Others may match with the other one meanwhile.
        """
        self.count_on_from(other)
        if not len(slots):
            return
        clauses = other._read_clauses(slots)
        self._check_clauses(len(clauses.slot), len(clauses.words))
        distinct = np.flatnonzero(np.bincount(clauses.words))
        numbers = np.zeros(int(distinct.max(initial=0)) + 1, np.int64)
        numbers[distinct] = self._predicates.intern_many(
            [other._predicates.rows(word) for word in distinct.tolist()]
        )
        clauses = clauses._replace(words=numbers[clauses.words])
        with self._changing():
            self._have_slots(places_for(slots))
            self._predicates.use(clauses.words)
            self._enter(clauses)
            self._slots = len(slots)
        self._predicates.settle_tests()
        self._maintain(len(slots))

    def count_on_from(self, other: EncodedMatcher) -> None:
        """Count what is matched from where another one is."""
        self._seen[:] = other._seen

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """What matching reads is made anew after a change, also after one that fails.

        It may have replaced arrays by then, and what it wrote into others leads to the new ones: whoever matched
        with those of before would read where nothing is. Where half a change does not add up, whoever made it has
        to settle that before anybody matches; what failed first is what is told.
        """
        try:
            yield
        except BaseException:
            with suppress(Exception):
                self._changed()
            raise
        self._changed()

    def match_batch(self, events: EventBatch) -> Pairs:
        """Encode and match, block by block."""
        return self._match_blocks(events, ALONE, self._match_block)

    def try_out(self, events: EventBatch) -> Pairs:
        """As `match_batch`, but nobody takes note of it."""
        return self._match_blocks(events, ALONE, self._match_unnoted)

    def _match_unnoted(self, events: Events) -> Pairs:
        with self._used() as workspace:
            before = workspace.events, workspace.matches, workspace.scratch.counts.copy()
            pairs = self._match_in(workspace, events)
            workspace.events, workspace.matches, workspace.scratch.counts[:] = before
            return pairs

    def match_batch_in_parallel(self, events: EventBatch, parallel: Parallel, door: Door | None = None) -> Pairs:
        """The same by several threads, if no other call has them. Each block is encoded and matched by all.

        In a handler of signals that came while this thread compiled, nobody else could compile what he needs.
        """
        with team_of(1 if jit.is_compiling() else parallel.count, door) as team:
            return self._match_blocks(events, team, partial(self._match_by, team, parallel))

    def _match_blocks(self, events: EventBatch, team: Team, match: Callable[[Events], Pairs]) -> Pairs:
        rows, slots = list[npt.NDArray[np.int64]](), list[Slots]()
        leading = self._leading()
        size = ENCODED if leading and len(events.columns) <= WIDE else BLOCK
        for start, block in self._encoder.blocks(events, size, leading, team):
            found_rows, found_slots = in_event_order(block, match(block))
            rows.append(found_rows + start if start else found_rows)
            slots.append(found_slots)
        return _joined(rows), _joined(slots)

    def check_parallel(self, parallel: Parallel) -> None:
        """ArgumentError if several threads cannot match so."""
        if parallel.mode != "me-ip":
            said = f"threads that work on one event together, {parallel.mode!r}, need clusters"
            instead = 'mode="me-ip", or the algorithm "dynamic", "static" or "propagation"'
            raise ArgumentError(said, argument="mode", suggestion=instead)

    def _match_by(self, team: Team, parallel: Parallel, events: Events) -> Pairs:
        """Match encoded events by a team: here, each thread takes some, and nothing is shared but the index."""
        count = len(events.code)
        shares = team.threads if parallel.sync == "static" else team.threads * PORTIONS
        size = parallel.block or max(1, -(-count // shares))
        caller, seen = threading.get_ident(), list[list[int]]()

        def match(start: int) -> Pairs:
            some = _some(events, start, start + size)
            with self._used(threading.get_ident() == caller) as workspace:
                rows, slots = self._match_in(workspace, some)
                seen.append(workspace.counted())
            return rows + start, slots

        found = team.map(match, range(0, count, size))
        self._note_all(seen, events)
        self.record.note(parallel, team.threads, count)
        return _joined([rows for rows, _ in found]), _joined([slots for _, slots in found])

    @contextmanager
    def _used(self, own: bool = True) -> Iterator[Workspace]:
        """A workspace of this thread, for a while. One that works for others holds on to no index afterwards."""
        workspace = self._workspace()
        try:
            workspace.busy = True
            yield workspace
        finally:
            workspace.busy = False
            if not own:
                workspace.leave()

    @property
    def attributes(self) -> Mentions:
        """The attributes that some predicate in use looks at."""
        return self._predicates.attributes

    def share_of_truths(self) -> float:
        """The part of all that clauses ask that is whether something is true, or false."""
        return self._predicates.share_of_truths()

    def expression(self, slot: int) -> Expression:
        """What a subscription asks for, in its normal form."""
        return self._said(self._clauses_of(slot))

    def state(self) -> State:
        """The whole index. Must not run beside changes; others may match."""
        predicates = self._predicates.state()  # which takes long, and those who match wait for the lock
        with self._seen_lock:
            parts = {"predicates": predicates, **self._parts()}
            return State.of_parts(parts).with_facts(slots=self._slots, seen=self._seen.tolist())

    def restore(self, state: State, slots: Slots) -> None:
        """Hold what another matcher held. The index is mapped, and each of its words looked at once.

        Beyond that, linear in the number of distinct predicates.
        """
        self._predicates.restore(state.part("predicates"))
        self._slots = state.count("slots")
        require(self._slots == len(slots), "there are more or fewer subscriptions than is said")
        self._seen[:] = [counted("what was seen", each) for each in state.fact("seen")]
        self._restore_parts(state, slots)
        self._changed()

    def before_fork(self) -> None:
        """Wait for nobody: statistics may be cut in two, as nothing but speed depends on them."""
        return

    def after_fork(self, *, child: bool) -> None:
        """In the child, whoever was counting is gone."""
        if child:
            self._seen_lock = owned_lock()

    def __getstate__(self) -> object:
        raise CopyError("an index", "`save` the engine, and `load` it")

    def _said(self, clauses: Sequence[Sequence[int]]) -> Expression:
        """What clauses of numbered predicates ask for."""
        return expression_of(
            [[row for number in clause for row in self._predicates.rows(number)] for clause in clauses]
        )

    def _leading(self) -> tuple[int, ...]:
        """The dimensions to order events by, if that pays."""
        return ()

    def _match_block(self, events: Events) -> Pairs:
        with self._used() as workspace:
            pairs = self._match_in(workspace, events)
            self._note(workspace, events)
            return pairs

    def _match_in(self, workspace: Workspace, events: Events) -> Pairs:
        """Match events with a workspace, which counts them."""
        start, told = 0, workspace.told()
        while start < len(events.code):
            start, count = self._match_from(start, events, workspace, told.room())
            told.count += count
            if start < len(events.code):
                told.have_more(start / len(events.code))
        workspace.had(told)
        pairs = workspace.distinct(*told.pairs())
        workspace.count(len(events.code), len(pairs[0]))
        return pairs

    def _workspace(self) -> Workspace:
        """A workspace of this thread that no match further up uses, fit for what matching reads now.

        Whoever takes it says that it is busy, and no longer at the end. Nothing has to be said at once: whatever
        interrupts this thread in between is done before it goes on.
        """
        workspaces = self._own.workspaces
        if workspaces and not workspaces[0].busy and workspaces[0].index is self._index:
            return workspaces[0]
        for depth, known in enumerate(workspaces):
            if not known.busy:
                if known.index is not self._index:
                    workspaces[depth] = known = self._fitted(known)
                return known
        workspaces.append(self._fitted(None))
        return workspaces[-1]

    def _note(self, workspace: Workspace, events: Events) -> None:
        """Remember what was seen."""
        self._note_all([workspace.counted()], events)

    def _note_all(self, seen: Iterable[list[int]], events: Events) -> None:
        """Remember what several threads have seen. Who works for others leaves it to the one he works for."""
        # By `with`: no interrupt leaves the lock held. A handler of signals that matches may take it too; but what
        # this thread waits for must not, or a handler that came while it holds the lock would wait for ever.
        is_within = self._seen_lock._is_owned()
        with self._seen_lock:
            for each in seen:
                self._seen += each
            if not is_within:  # or who looks at what was seen, or saves it, would find half of this there
                self._observe(events)

    def _common_stats(self) -> dict[str, object]:
        """What matching has done so far, and the numbers of subscriptions and predicates."""
        events, matches, visits, checks = self._seen.tolist()
        per_event = {"matches": matches, "clusters": visits, "checks": checks}
        return {
            "subscriptions": self._slots,
            "predicates": self._predicates.in_use,
            "events": events,
            "matches": matches,
            **{f"{name}_per_event": count / events if events else 0.0 for name, count in per_event.items()},
            **self.record.stats(),
        }

    def _maintain(self, change: int) -> None:
        """So many subscriptions have come, or gone if negative: the index may be arranged anew."""
        return

    @abstractmethod
    def match(self, event: FlatEvent) -> Slots:
        """The slots whose subscriptions the event satisfies, in any order, each once."""

    @abstractmethod
    def access(self, slot: int) -> Sequence[AccessPath]:
        """How events find the clauses of this slot's subscription."""

    @abstractmethod
    def stats(self) -> Stats:
        """What the algorithm holds and has done, for people to read."""

    @abstractmethod
    def _parts(self) -> dict[str, State]:
        """What is to be saved beside the predicates, by name."""

    @abstractmethod
    def _restore_parts(self, state: State, slots: Slots) -> None:
        """Hold the parts that were saved."""

    @abstractmethod
    def _observe(self, events: Events) -> None:
        """See what events look like. One thread at a time comes here."""

    @abstractmethod
    def _have_slots(self, count: int) -> None:
        """Have a place for every slot below this one."""

    @abstractmethod
    def _check_clauses(self, clauses: int, predicates: int) -> None:
        """CapacityError if there is no number for so many more clauses, of so many predicates together."""

    @abstractmethod
    def _enter(self, clauses: Clauses) -> None:
        """Take clauses in; their predicates are counted already."""

    @abstractmethod
    def _take_out(self, slots: Slots) -> npt.NDArray[np.int64]:
        """Remove all clauses of these slots; the numbers of their predicates, one by one."""

    @abstractmethod
    def _read_clauses(self, slots: Slots) -> Clauses:
        """All clauses of these slots, none of which is being changed: even where a change of others has failed."""

    @abstractmethod
    def _clauses_of(self, slot: int) -> list[list[int]]:
        """The clauses of a slot, as numbers of predicates."""

    @abstractmethod
    def _changed(self) -> None:
        """Make what matching reads anew."""

    @abstractmethod
    def _fitted(self, old: Workspace | None) -> Workspace:
        """A workspace for what matching reads now, made of an old one if there is one."""

    @abstractmethod
    def _match_from(self, start: int, events: Events, workspace: Workspace, results: Results) -> tuple[int, int]:
        """Match events from `start` on: the first whose matches did not fit, and how many there are before it."""


def _some(events: Events, start: int, stop: int) -> Events:
    """Events from one row to before another, without an order."""
    first = events.also_first[start : stop + 1]
    return events._replace(code=events.code[start:stop], label=events.label[start:stop], also_first=first)


def _joined(parts: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Arrays one behind the other; a single one is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int64), *parts])


def _at_most(chunks: Sequence[pa.ListArray]) -> tuple[int, int, int]:
    """No fewer clauses, predicates and attributes than there are: they are not counted."""
    inner = [chunk.values for chunk in chunks]
    predicates = [each.values for each in inner]
    attributes = sum(len(each.field("attribute").dictionary) for each in predicates)
    return sum(map(len, inner)), sum(map(len, predicates)), attributes


def _counted(chunks: Sequence[pa.ListArray]) -> tuple[int, int, int]:
    """The clauses, predicates and attributes of some columns of the compiled form."""
    clauses, predicates, names = 0, 0, set[str]()
    for chunk in chunks:
        first, last = (chunk.offsets[at].as_py() for at in (0, -1))
        inner = chunk.values
        clauses += last - first
        predicates += inner.offsets[last].as_py() - inner.offsets[first].as_py()
        names.update(inner.values.field("attribute").dictionary.to_pylist())
    return clauses, predicates, len(names)
