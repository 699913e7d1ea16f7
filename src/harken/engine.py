"""The façade: subscribe, match, explain. It checks what comes in, owns ids and validity, and asks a matcher."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, cast, get_args, overload

import numpy as np
import pyarrow as pa

from harken import persistence
from harken.arranging import start_beside
from harken.changing import Change, Held, Hidden
from harken.compiler import Reject
from harken.errors import ArgumentError, BulkLoadError, EngineBusyError, EventError
from harken.explanation import Explanation, explain
from harken.intake import Compiled, Few, SubscriptionSource, checked
from harken.locking import Door
from harken.matching import registry
from harken.matching.contract import AccessPath, Arranging, Learning, Matcher, Reading, Slots, Stats, is_gradual
from harken.matching.events.batch import EventBatch, EventSource, add_up, checked_event
from harken.matching.events.mixed import batch_from
from harken.matching.events.tables import MixedTable, frame_of
from harken.matching.identities import Identities, batch_of
from harken.matching.parallel.options import Parallel, checked_parallel
from harken.matching.sharing import check_parallel, match_batch_in_parallel, match_in_parallel
from harken.model.arguments import check_several, checked_flag, checked_limits
from harken.model.events import Event, FlatEvent
from harken.model.expressions import Expression
from harken.model.limits import DEFAULT_LIMITS, Limits
from harken.model.schema import Schema
from harken.model.subscriptions import ALWAYS, Subscription, SubscriptionId, Validity, moment_of
from harken.model.values import Type
from harken.persistence import SavedEngine
from harken.portions import AT_ONCE, Needs, Pace
from harken.written import Written, expression_of

Result = TypeVar("Result")
OnError: TypeAlias = Literal["raise", "collect"]


REJECTS = pa.schema(
    [("event", pa.int64()), ("attribute", pa.string()), ("reason", pa.string()), ("value", pa.string())]
)
"""The columns of rejected events: which, the attribute at fault if it is one, the reason, how the value begins."""


class BatchMatches(NamedTuple):
    """What became of a batch: its matches, and the events that could not be matched, with the reason."""

    matches: pa.Table
    rejects: pa.Table


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What became of a bulk load: how many were taken in, and each row that was not, with its reason."""

    loaded: int
    rejects: tuple[Reject, ...]


class Engine:
    """Holds subscriptions and says which of them an event satisfies.

    `algorithm` is one of `harken.algorithms()`; `schema` fixes attribute types; `limits` bound what
    one subscription may ask for. What was written is kept, packed, for `subscription` and `explain`, which takes
    some 20 bytes for each; without `keep_text` those give what the index knows, where `x < 1 AND x > 2` is FALSE.
    `parallel` says how threads share the work of matching; without, all cores share large batches.

    Any call may come from any thread. Matches run at the same time; changes come one after the other, and a match
    sees all of a change or nothing of it. A change waits for the matches that are running, and those that come
    wait for it, but only while it is entered, not while it is parsed and compiled; with clusters, a large one is
    entered in portions of about half a millisecond, between which others match. Should it fail at whatever
    step, by an interrupt or for want of memory, the engine is as before it or as after it; then all that it holds
    is entered anew, which takes as long as loading it did without parsing, and what was seen of events is
    forgotten.

    >>> engine = Engine()
    >>> engine.subscribe("alice", "item = 'camera' and price < 300")
    >>> engine.match({"item": "camera", "price": 199})
    ['alice']
    """

    def __init__(
        self,
        algorithm: str = registry.AUTO,
        schema: Schema | Mapping[str, Type | str] | None = None,
        *,
        limits: Limits = DEFAULT_LIMITS,
        keep_text: bool = True,
        parallel: Parallel | None = None,
        **options: object,
    ) -> None:
        self._parallel = checked_parallel(parallel)
        self._algorithm = algorithm
        # What is the caller's may change, and is needed again: to save the engine, and after a change that fails.
        self._options = {name: dict(each) if isinstance(each, Mapping) else each for name, each in options.items()}
        self.schema = schema if schema is None or isinstance(schema, Schema) else Schema(schema)
        self.limits = checked_limits(limits)
        self._matcher = registry.create(algorithm, **self._options)
        if self._parallel is not None:
            check_parallel(self._matcher, self._parallel)
        self._arranges = isinstance(self._matcher, Arranging)
        self._reads = isinstance(self._matcher, Reading) and self._parallel is None
        """Whether the matcher may check events while it reads them: so with any matcher of this algorithm."""
        self._identities = Identities()
        self._owners: dict[int, str] = {}
        self._validity: dict[int, Validity] = {}
        self._written = Written() if checked_flag("keep_text", keep_text) else None
        self._hidden = Hidden()
        self._change: Change | None = None
        """The change that is being made, or that failed and has yet to be settled."""
        self._door = Door()
        self._foreign: Counter[str] = Counter()

    @property
    def algorithm(self) -> str:
        """The matching algorithm in use: the one asked for, or the one that "auto" has picked so far."""
        return self._look(lambda: str(getattr(self._matcher, "picked", self._algorithm)))

    def __len__(self) -> int:
        """How many subscriptions there are."""
        return self._look(lambda: len(self._identities))

    def __contains__(self, id: object) -> bool:
        """Whether a subscription of this id is registered."""
        return self._look(lambda: id in self._identities)

    def __iter__(self) -> Iterator[SubscriptionId]:
        """The ids of all subscriptions there are now, whatever changes before the last has been asked for."""
        return self._look(lambda: iter(self._identities))

    def __repr__(self) -> str:
        return f"Engine(algorithm={self.algorithm!r}, subscriptions={len(self):,})"

    def subscribe(
        self,
        id: SubscriptionId,
        expression: str | Expression,
        *,
        owner: str | None = None,
        valid_from: datetime | None = None,
        valid_until: datetime | None = None,
        replace: bool = False,
    ) -> None:
        """Register one subscription. A taken id is an error unless `replace` is said.

        Costs a parse and one insertion. For many, `subscribe_many` is far faster.
        """
        checked_flag("replace", replace)
        validity = partial(Validity, valid_from, valid_until)
        with self._door.changing():
            ready = Few.one(id, expression, owner, validity, self.schema, self.limits)
            rejects, _ = self._take_in(ready, replace, all_or_none=True)
        if rejects:
            raise rejects[0].error

    def subscribe_many(
        self,
        rows: SubscriptionSource,
        *,
        on_error: OnError = "raise",
        replace: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> LoadReport:
        """Register many subscriptions: all or none, or with `on_error="collect"` all that can be.

        Rows are mappings (`id`, `expression`, and if wanted `owner`, `valid_from`, `valid_until`), pairs of id
        and expression, `Subscription`s, or a table of these columns or of the compiled form: Arrow's, or anything
        with the Arrow stream interface (a data frame of pandas or Polars). Other fields and columns are passed
        over, but for those that seem to be misspelt. A row of another shape is a reject, as one that asks for
        what cannot be.

        >>> rows = [("alice", "price < 300"), ("bob",), {"id": "carol", "expression": "price > 9", "note": "VIP"}]
        >>> report = Engine().subscribe_many(rows, on_error="collect")
        >>> report.loaded, [reject.row for reject in report.rejects]
        (2, [1])
        """
        all_or_none = not _collects(on_error)
        checked_flag("replace", replace)
        with self._door.changing():
            ready = checked(rows, self.schema, self.limits, progress)
            rejects, loaded = self._take_in(ready, replace, all_or_none=all_or_none)
        if rejects and all_or_none:
            raise BulkLoadError(rejects)
        return LoadReport(loaded, tuple(rejects))

    def unsubscribe(self, id: SubscriptionId) -> None:
        """Remove one subscription; UnknownSubscriptionError if there is none of this id."""
        with self._door.changing(), self._door.turn():
            self._settle()
            slot = self._identities.slot(id)
            self._make(Change.letting_go(np.array([slot]), self._identities))

    def unsubscribe_many(self, ids: Iterable[SubscriptionId]) -> None:
        """Remove many subscriptions: all, or none if one of the ids is not registered.

        Takes any ids that can be iterated over; integers go fastest in an Arrow or numpy array.
        """
        check_several("unsubscribe_many", "ids", ids, "unsubscribe", single=(str, bytes))
        batch = batch_of(ids)
        with self._door.changing(), self._door.turn():
            self._settle()
            slots = self._identities.slots_in_use(batch)
            if len(slots):
                self._make(Change.letting_go(slots, self._identities))

    def subscription(self, id: SubscriptionId) -> Subscription:
        """What is registered under an id: as it was written, or in its normal form if no text is kept or came."""
        return self._look(lambda: self._subscription(self._identities.slot(id)))

    def match(self, event: Event, *, at: datetime | None = None) -> list[SubscriptionId]:
        """The ids of all subscriptions the event satisfies, among those valid `at` that time (now)."""
        door = self._door
        reader = door.reading()
        if door.changers:
            reader.give_way()
        reader.inside += 1
        try:
            if door.closed:
                door.wait_outside(self._settle)
            # Once: in a child that a handler forks meanwhile, what a change has left may be settled beside this.
            matcher, hidden, validity, identities = self._matcher, self._hidden, self._validity, self._identities
            slots = None
            if self._reads and self.schema is None:
                slots = matcher.match_unchecked(event)  # type: ignore[attr-defined]  # of those that read
            if slots is None:
                slots = self._match_checked(matcher, event)
            if self._arranges and matcher.is_due:  # type: ignore[attr-defined]  # of those that arrange
                self._arrange_beside()
            if not len(slots) and at is None:
                return []
            if (mask := hidden.mask) is not None:
                slots = slots[~mask[slots]]
            if validity:
                slots = slots[_valid(slots, validity, at)]
            elif at is not None:
                moment_of(at)  # a wrong one is wrong whoever has subscribed
            return identities.ids(slots)
        finally:
            reader.inside -= 1

    def _match_checked(self, matcher: Matcher, event: Event) -> Slots:
        """The slots that match an event that may be at fault, nested, or otherwise not as matchers see it."""
        flat = checked_event(event, matcher.attributes, self.schema, self._foreign)
        if self._parallel is None:
            return matcher.match(flat)
        return match_in_parallel(matcher, flat, self._parallel, self._door)

    @overload
    def match_batch(
        self,
        events: EventSource,
        *,
        at: datetime | None = None,
        on_error: Literal["raise"] = "raise",
        parallel: Parallel | None = None,
    ) -> pa.Table: ...

    @overload
    def match_batch(
        self,
        events: EventSource,
        *,
        at: datetime | None = None,
        on_error: Literal["collect"],
        parallel: Parallel | None = None,
    ) -> BatchMatches: ...

    def match_batch(
        self,
        events: EventSource,
        *,
        at: datetime | None = None,
        on_error: OnError = "raise",
        parallel: Parallel | None = None,
    ) -> pa.Table | BatchMatches:
        """All matches of many events: a table of `event` (row number) and `subscription` (id).

        Takes an Arrow table or record batch, anything with the Arrow stream interface (a data frame of pandas or
        Polars), or dictionaries. Rows come ordered by event. An event that cannot be matched, because a value is
        not of the type that the schema declares, is an error; with `on_error="collect"` the others are matched,
        and the answer has the `rejects` beside the `matches`. `parallel` says how threads share this
        batch, if it is not as was said when the engine was made.

        >>> engine = Engine(schema={"price": "float"})
        >>> engine.subscribe("alice", "price < 300")
        >>> found = engine.match_batch([{"price": "cheap"}, {"price": 199}], on_error="collect")
        >>> found.matches.to_pylist()
        [{'event': 1, 'subscription': 'alice'}]
        >>> found.rejects.column("reason").to_pylist()
        ["attribute 'price' is declared float, found string"]
        """
        rejects: list[EventError] | None = [] if _collects(on_error) else None
        given, sharing = _at_hand("match_batch", events, "match"), checked_parallel(parallel) or self._parallel
        reader = self._door.reading()
        reader.inside += 1
        try:
            reader.stays += 1
            if self._door.is_shut:
                self._door.wait_outside(self._settle)
            matcher, hidden, validity, identities = self._matcher, self._hidden, self._validity, self._identities
            flat_until = matcher.flat_until if isinstance(matcher, Reading) else None
            batch = batch_from(given, matcher.attributes, self.schema, rejects, flat_until)
            rows, slots = match_batch_in_parallel(matcher, batch, sharing, self._door)
            if self._arranges and matcher.is_due:  # type: ignore[attr-defined]  # of those that arrange
                self._arrange_beside()
            if batch.foreign:
                add_up(self._foreign, batch.foreign)
            if (mask := hidden.mask) is not None:
                told = ~mask[slots]
                rows, slots = rows[told], slots[told]
            if validity:
                valid = _valid(slots, validity, at)
                rows, slots = rows[valid], slots[valid]
            elif at is not None:
                moment_of(at)
            ids = identities.id_array(slots)
        finally:
            reader.stays -= 1
            reader.inside -= 1
        matches = pa.table({"event": pa.array(batch.numbered(rows), pa.int64()), "subscription": ids})
        return matches if rejects is None else BatchMatches(matches, reject_table(rejects))

    def learn(self, events: EventSource) -> None:
        """Arrange the index for events like these, a few thousand of which tell enough. Matches stay the same.

        Takes what `match_batch` takes, and passes over events that cannot be matched.

        Costs up to as much as loading the subscriptions did. Algorithms that have no choice ignore it.
        """
        given = _at_hand("learn", events)
        with self._door.changing(), self._door.turn():
            self._settle()
            if isinstance(self._matcher, Learning):
                batch = batch_from(given, self._matcher.attributes, self.schema, [])
                self._make(Change.learning(batch, self._identities))

    def explain(self, event: Event, id: SubscriptionId, *, at: datetime | None = None) -> Explanation:
        """Why a subscription does or does not match: each predicate's truth and the value it saw."""

        def known() -> tuple[Subscription, FlatEvent, Sequence[AccessPath]]:
            slot = self._identities.slot(id)
            flat = checked_event(event, self._matcher.attributes, self.schema)
            return self._subscription(slot), flat, self._matcher.access(slot)

        subscription, flat, paths = self._look(known)
        return explain(subscription, flat, moment_of(at), self.limits, paths)

    def stats(self) -> Stats:
        """What the engine holds and has done; `foreign` counts, by attribute, the foreign values of its events.

        It names the first thousand attributes that have some, and has one count for all others. Events that are
        matched one by one are counted by the dozen; the last few of a thread are not, if the index changes then.
        """
        return self._look(self._stats)

    def save(self, path: str | Path) -> None:
        """Write the engine into a folder; an engine saved there before is replaced as a whole.

        It is on disk when this returns; a crash at any moment leaves the old engine or the new one. An index is
        written as it lies in memory. Others may match meanwhile; changes wait.
        """
        with self._door.turn():
            self._settle()
            saved = SavedEngine(self._algorithm, self._options, self.schema, self.limits, *self._held()[:-1])
            persistence.save(saved, Path(path))

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        algorithm: str | None = None,
        verify: bool = True,
        parallel: Parallel | None = None,
    ) -> Engine:
        """The engine saved in a folder, with the algorithm it was saved with unless another is named.

        An index is mapped, not read: processes that load one folder share its memory, and what each changes
        stays its own. The folder must not be changed in place meanwhile; saving there again does no harm.
        Another algorithm takes the subscriptions over one by one. How threads share their work is not saved.

        A folder is data: whatever is in it, this gives an engine that works, or IndexFormatError. With `verify`,
        checksums find accidental damage of any kind; without, which is quicker, only what would not work is found.
        What is trusted of a folder is what it says: ids, expressions, texts, schema, limits and options. But what
        reading one text takes is bounded by 65,536 clauses, fewer if there are many texts, and 20 million steps,
        whatever the limits are; no index is, nor a text within the default limits.
        """
        saved = persistence.load(Path(path), algorithm, verify=verify)
        options = cast("dict[str, Any]", saved.options)  # and no others: the matcher has been made with them
        engine = cls(
            saved.algorithm, saved.schema, limits=saved.limits, keep_text=False, parallel=parallel, **options
        )
        engine._matcher, engine._identities = saved.matcher, saved.identities
        if engine._parallel is not None:
            check_parallel(engine._matcher, engine._parallel)
        engine._owners, engine._validity, engine._written = saved.owners, saved.validity, saved.written
        return engine

    def __getstate__(self) -> dict[str, object]:
        """For `pickle` and `copy.deepcopy`, while subscriptions are few; an index is saved and loaded instead.

        A copy, made in turn with changes: whoever asks looks at it later, when the next change may be on its way.
        """
        return self._copied({})

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, _door=Door())

    def __copy__(self) -> Engine:
        """As `copy.deepcopy`: two engines cannot hold the same subscriptions, each with its own lock."""
        return deepcopy(self)

    def __deepcopy__(self, memo: dict[int, object]) -> Engine:
        """Without a second copy of what `__getstate__` gives."""
        copied = memo[id(self)] = type(self).__new__(type(self))
        copied.__setstate__(self._copied(memo))
        return copied

    def _copied(self, memo: dict[int, object]) -> dict[str, object]:
        """All but the door, copied while nobody changes it. Others may match, and count what is foreign."""
        with self._door.turn():
            self._settle()
            held = {name: each for name, each in self.__dict__.items() if name != "_door"}
            return deepcopy(held | {"_foreign": Counter(self._foreign)}, memo)

    def _take_in(self, ready: Compiled | Few, replace: bool, *, all_or_none: bool) -> tuple[list[Reject], int]:
        """Take in what may be; the rejects, and how many were taken in."""
        with self._door.turn():
            self._settle()
            admission = ready.admitted(self._identities, replace=replace)
            if not len(admission.ids) or (admission.rejects and all_or_none):
                return admission.rejects, 0
            change = Change.taking_in(admission, self._identities)
            self._matcher.prepare(admission.incoming)
            self._identities.make_room(change.exchange)
            self._make(change)
            return admission.rejects, len(admission.ids)

    def _make(self, change: Change) -> None:
        """Make a change, alone, and all of it or nothing. Only in turn."""
        self._matcher.foresee()
        pace = AT_ONCE
        if is_gradual(self._matcher) and not self._door.is_quiet():
            pace = Pace()
            self._matcher.rehearse()
            self._identities.rehearse(change.exchange)
        try:
            self._door.in_portions(self._portions(change, pace), pace)
            self._change = None
        finally:
            self._settle()

    def _portions(self, change: Change, pace: Pace) -> Iterator[Needs]:
        self._change = change
        yield from change.portions(self._held(), pace)

    def _arrange_beside(self) -> None:
        """Have the matcher become what suits the events, in turn with changes, while others match."""
        self._matcher.is_due = False  # type: ignore[attr-defined]  # once
        if not start_beside(weakref.WeakMethod(self._arrange)):
            self._matcher.is_due = True  # type: ignore[attr-defined]  # another time

    def _arrange(self) -> None:
        with self._door.changing(), self._door.turn():
            self._settle()
            self._matcher.arrange()  # type: ignore[attr-defined]  # of those that do
            self._make(Change.learning(EventBatch([], {}, 0), self._identities))

    def _settle(self) -> None:
        """Make good what a change that failed left behind, if one did, and let others in. Only in turn."""
        if self._change is not None:
            self._door.close()  # it may have failed where others may read
            create = partial(registry.create, self._algorithm, **self._options)
            settled = self._change.settled(self._held(), create)
            self._matcher, self._identities, self._owners, self._validity, self._written, self._hidden = settled
            self._change = None
        self._door.open()

    def _look(self, work: Callable[[], Result]) -> Result:
        """Do some work that changes nothing, while nothing changes. Matching does the same, without a call.

        But matching goes on between two portions of a change, of which it sees nothing. Some of it takes long: so
        it counts as staying, and a change that waits for it keeps nobody out who matches one event.
        """
        reader = self._door.reading()
        reader.inside += 1
        try:
            reader.stays += 1
            if self._door.is_shut or self._change is not None:
                self._door.step_aside(self._settle)
            if self._change is not None:
                raise EngineBusyError("the engine is being changed, and is asked in the middle of a match")
            return work()
        finally:
            reader.stays -= 1
            reader.inside -= 1

    def _held(self) -> Held:
        return Held(self._matcher, self._identities, self._owners, self._validity, self._written, self._hidden)

    def _subscription(self, slot: int) -> Subscription:
        (id,) = self._identities.ids(np.array([slot]))
        written = None if self._written is None else expression_of(self._written.text(slot), self.limits)
        expression = self._matcher.expression(slot) if written is None else written
        return Subscription(id, expression, self._owners.get(slot), self._validity.get(slot, ALWAYS))

    def _stats(self) -> Stats:
        stats = {"algorithm": self.algorithm, **self._matcher.stats(), "foreign": dict(self._foreign)}
        if isinstance(by_part := stats.get("bytes"), Mapping):
            texts = {} if self._written is None else {"texts": self._written.nbytes}
            stats["bytes"] = {**by_part, "identities": self._identities.nbytes, **texts}
        return stats


def _valid(slots: Slots, bounded: Mapping[int, Validity], at: datetime | None) -> np.ndarray:
    """Which of the slots are valid at this time, as a mask."""
    moment = moment_of(at)
    return np.array([s not in bounded or bounded[s].holds_at(moment) for s in slots.tolist()], bool)


def _at_hand(call: str, events: EventSource, one: str | None = None) -> EventSource | MixedTable:
    """Events that no code of the user's has to be called for, such as a generator that asks the engine itself."""
    table = frame_of(events, EventError)
    if table is not None:
        return table
    check_several(call, "events", events, one)
    return list(events)  # type: ignore[arg-type]  # rows, as just seen


def reject_table(rejects: Iterable[EventError]) -> pa.Table:
    """Events that could not be matched, as a table."""
    rows = [
        {"event": each.row, "attribute": each.attribute, "reason": each.reason, "value": each.value}
        for each in rejects
    ]
    return pa.Table.from_pylist(rows, REJECTS)


def _collects(on_error: OnError) -> bool:
    if on_error not in get_args(OnError):
        raise ArgumentError.choice("on_error", on_error, get_args(OnError))
    return on_error == "collect"
