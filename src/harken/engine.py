"""The façade: subscribe, match, explain. It checks what comes in, owns ids and validity, and asks a matcher."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from harken import persistence
from harken.compiler import Reject
from harken.errors import BulkLoadError
from harken.explanation import Explanation, explain
from harken.intake import Admission, SubscriptionSource, admit
from harken.matching import registry
from harken.matching.contract import Learning, Slots, Stats
from harken.matching.events import EventBatch, EventSource, checked_event
from harken.matching.identity import Identities
from harken.model.events import Event
from harken.model.expressions import Expression
from harken.model.limits import DEFAULT_LIMITS, Limits
from harken.model.schema import Schema
from harken.model.subscriptions import ALWAYS, Subscription, SubscriptionId, Validity, moment_of
from harken.model.values import Type
from harken.persistence import SavedEngine

OnError: TypeAlias = Literal["raise", "collect"]


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What became of a bulk load: how many were taken in, and each row that was not, with its reason."""

    loaded: int
    rejects: tuple[Reject, ...]


class Engine:
    """Holds subscriptions and says which of them an event satisfies.

    `algorithm` is one of `harken.algorithms()`; `schema` fixes attribute types; `limits` bound what
    one subscription may ask for. Any number of threads may match at once; calls that change the
    subscriptions must not run at the same time as any other call.

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
        **options: object,
    ) -> None:
        self._algorithm = algorithm
        self._options = options
        self.schema = schema if schema is None or isinstance(schema, Schema) else Schema(schema)
        self.limits = limits
        self._matcher = registry.create(algorithm, **options)
        self._identities = Identities()
        self._owners: dict[int, str] = {}
        self._validity: dict[int, Validity] = {}

    @property
    def algorithm(self) -> str:
        """The matching algorithm in use: the one asked for, or the one that "auto" has picked so far."""
        return str(getattr(self._matcher, "picked", self._algorithm))

    def __len__(self) -> int:
        """How many subscriptions there are."""
        return len(self._identities)

    def __contains__(self, id: object) -> bool:
        """Whether a subscription of this id is registered."""
        return id in self._identities

    def __iter__(self) -> Iterator[SubscriptionId]:
        """The ids of all subscriptions."""
        return iter(self._identities)

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
        row = {
            "id": id,
            "expression": expression,
            "owner": owner,
            "valid_from": valid_from,
            "valid_until": valid_until,
        }
        admission = self._admit([row], replace)
        if admission.rejects:
            raise admission.rejects[0].error
        self._take_in(admission)

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
        and expression, `Subscription`s, or an Arrow table of these columns or of the compiled form.
        """
        if on_error not in get_args(OnError):
            raise ValueError(f"on_error is one of {get_args(OnError)}, found {on_error!r}")
        admission = self._admit(rows, replace, progress)
        if admission.rejects and on_error == "raise":
            raise BulkLoadError(admission.rejects)
        self._take_in(admission)
        return LoadReport(len(admission.ids), tuple(admission.rejects))

    def unsubscribe(self, id: SubscriptionId) -> None:
        """Remove one subscription; UnknownSubscriptionError if there is none of this id."""
        self._forget(self._identities.dismiss([id]))

    def unsubscribe_many(self, ids: Iterable[SubscriptionId]) -> None:
        """Remove many subscriptions: all, or none if one of the ids is not registered.

        Takes any ids that can be iterated over; integers go fastest in an Arrow or numpy array.
        """
        self._forget(self._identities.dismiss(ids))

    def subscription(self, id: SubscriptionId) -> Subscription:
        """What is registered under an id."""
        slot = self._identities.slot(id)
        validity = self._validity.get(slot, ALWAYS)
        return Subscription(id, self._matcher.expression(slot), self._owners.get(slot), validity)

    def match(self, event: Event, *, at: datetime | None = None) -> list[SubscriptionId]:
        """The ids of all subscriptions the event satisfies, among those valid `at` that time (now)."""
        flat = checked_event(event, self._matcher.attributes, self.schema)
        slots = self._matcher.match(flat)
        if self._validity:
            slots = slots[self._valid(slots, at)]
        return self._identities.ids(slots)

    def match_batch(self, events: EventSource, *, at: datetime | None = None) -> pa.Table:
        """All matches of many events: a table of `event` (row number) and `subscription` (id).

        Takes an Arrow table or record batch, or dictionaries. Rows come ordered by event.
        """
        batch = EventBatch.of(events, self._matcher.attributes, self.schema)
        rows, slots = self._matcher.match_batch(batch)
        if self._validity:
            valid = self._valid(slots, at)
            rows, slots = rows[valid], slots[valid]
        return pa.table({"event": pa.array(rows, pa.int64()), "subscription": self._identities.id_array(slots)})

    def learn(self, events: EventSource) -> None:
        """Arrange the index for events like these, a few thousand of which tell enough. Matches stay the same.

        Costs up to as much as loading the subscriptions did. Algorithms that have no choice ignore it.
        """
        if isinstance(self._matcher, Learning):
            self._matcher.learn(EventBatch.of(events, self._matcher.attributes, self.schema))

    def explain(self, event: Event, id: SubscriptionId, *, at: datetime | None = None) -> Explanation:
        """Why a subscription does or does not match: each predicate's truth and the value it saw."""
        subscription = self.subscription(id)
        flat = checked_event(event, self._matcher.attributes, self.schema)
        paths = self._matcher.access(self._identities.slot(id))
        return explain(subscription, flat, moment_of(at), self.limits, paths)

    def stats(self) -> Stats:
        """What the engine holds and has done."""
        stats = {"algorithm": self.algorithm, **self._matcher.stats()}
        if isinstance(by_part := stats.get("bytes"), Mapping):
            stats["bytes"] = {**by_part, "identities": self._identities.nbytes}
        return stats

    def save(self, path: str | Path) -> None:
        """Write the engine into a folder; an engine saved there before is replaced as a whole.

        An index is written as it lies in memory. Others may match meanwhile, but not change the subscriptions.
        """
        held = self._matcher, self._identities, self._owners, self._validity
        persistence.save(SavedEngine(self._algorithm, self._options, self.schema, self.limits, *held), Path(path))

    @classmethod
    def load(cls, path: str | Path, *, algorithm: str | None = None, verify: bool = True) -> Engine:
        """The engine saved in a folder, with the algorithm it was saved with unless another is named.

        An index is mapped, not read: processes that load one folder share its memory, and what each changes
        stays its own. The folder must not be changed in place meanwhile; saving there again does no harm.
        Without `verify`, checksums are not looked at, which is quicker. Another algorithm takes the
        subscriptions over one by one.
        """
        saved = persistence.load(Path(path), algorithm, verify=verify)
        engine = cls(saved.algorithm, saved.schema, limits=saved.limits, **saved.options)
        engine._matcher, engine._identities = saved.matcher, saved.identities
        engine._owners, engine._validity = saved.owners, saved.validity
        return engine

    def _admit(
        self, rows: SubscriptionSource, replace: bool, progress: Callable[[int], None] | None = None
    ) -> Admission:
        return admit(rows, self._identities, self.schema, self.limits, replace=replace, progress=progress)

    def _take_in(self, admission: Admission) -> None:
        if admission.replaces:
            known = self._identities.slots_of(admission.ids)
            replaced = known[known >= 0]
            self._identities.release(replaced)
            self._forget(replaced)
        slots = self._identities.admit(admission.ids)
        self._matcher.add(slots, admission.incoming)
        self._owners.update((int(slots[at]), owner) for at, owner in admission.owners.items())
        self._validity.update((int(slots[at]), validity) for at, validity in admission.validity.items())

    def _forget(self, slots: Slots) -> None:
        """Drop all that is known of subscriptions but their ids."""
        self._matcher.remove(slots)
        for known in (self._owners, self._validity):
            if known:
                for slot in slots.tolist():
                    known.pop(slot, None)

    def _valid(self, slots: Slots, at: datetime | None) -> np.ndarray:
        """Which of the slots are valid at this time, as a mask."""
        moment = moment_of(at)
        bounded = self._validity
        return np.array([s not in bounded or bounded[s].holds_at(moment) for s in slots.tolist()], bool)
