"""The façade of symmetric matching: subscribe, publish, match, whatever holds the constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias, cast

import pyarrow as pa

from harken.engine import Engine
from harken.errors import BulkLoadError, CopyError, EventError
from harken.intake import SubscriptionSource, compiled
from harken.matching.events.tables import frame_of
from harken.model.arguments import check_several, checked_limits
from harken.model.expressions import Expression
from harken.model.limits import DEFAULT_LIMITS, Limits
from harken.model.schema import Schema
from harken.model.subscriptions import SubscriptionId, Validity, checked_id, moment_of
from harken.model.values import Type
from harken.normal.compiled import id_array
from harken.symmetric.arguments import checked_covers, checked_schema, positive
from harken.symmetric.beside import EngineBeside
from harken.symmetric.contract import Held, Notice, Store
from harken.symmetric.delivering import Delivering
from harken.symmetric.guarding import Result
from harken.symmetric.ranking import Order
from harken.symmetric.semantics import Boxes, Covers, boxes_of, event_of, event_text
from harken.symmetric.stores import open_store

if TYPE_CHECKING:
    from harken.symmetric.memory import MemoryStore

Constraint: TypeAlias = str | Expression
"""What a subscription or publication asks for or offers."""

Publication: TypeAlias = Constraint | Mapping[str, object]
"""A constraint, or an event: a mapping is a publication of single values."""

Publications: TypeAlias = pa.Table | pa.RecordBatch | Sequence[Publication]
"""Constraints, or events: so is a row of a table, or of anything that has the Arrow stream interface."""


class SymmetricEngine(Delivering[Notice]):
    """Matches publications with subscriptions, both of which are constraints.

    Without a `url`, constraints are held in memory; with one (`sqlite:///market.db`, `postgresql://…`) in a
    database, where every call is a transaction. `covers` says whose attributes the other side must constrain too:
    "publication", as in Tomasic et al. 2006, or "subscription", the classical direction.

    Any thread may call anything at any time: a match sees all of a change or nothing of it. A call that fails, or
    is interrupted, has changed nothing, or everything it was to change. All ids of subscriptions are strings, or
    all are integers. Something holds from `valid_from` until `valid_until`, the latter excluded: only what holds
    when it comes meets the other side, of which again only what holds then.

    >>> market = SymmetricEngine()
    >>> market.subscribe("buyer-1", "product = 'pencils' and lot between 500 and 2000 and price <= 1.10")
    []
    >>> market.match("product = 'pencils' and lot between 1000 and 10000 and price = 1.00")
    ['buyer-1']
    """

    def __init__(
        self,
        url: str | None = None,
        schema: Schema | Mapping[str, Type | str] | None = None,
        *,
        covers: Covers = "publication",
        limits: Limits = DEFAULT_LIMITS,
        **options: object,
    ) -> None:
        self.schema = checked_schema(schema)
        self.covers = checked_covers(covers)
        self.limits = checked_limits(limits)
        self._store = self._outlet = open_store(url, **options)
        self._beside: EngineBeside | None = None
        if url is None and self.covers == "subscription":
            # An event is a publication of single values: an engine is known to find quickest what matches it.
            self._beside = EngineBeside(cast("MemoryStore", self._store), self.schema, self.limits)

    def __len__(self) -> int:
        """How many subscriptions there are."""
        return self._store.count("subscriptions")

    def __contains__(self, id: object) -> bool:
        """Whether a subscription of this id is there."""
        if isinstance(id, bool) or not isinstance(id, str | int):
            id = ""  # which none has
        return self._store.get("subscriptions", id) is not None

    def __enter__(self) -> SymmetricEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> object:
        """For `pickle` and `copy`: two engines cannot have one store, with its locks and connections."""
        raise CopyError("a SymmetricEngine", "make another, with the same url or the same subscriptions")

    def close(self) -> None:
        """Let go of everything. All calls afterwards, but for this one, raise ClosedError."""
        self._store.close()

    # ---------------------------------------------------------------- subscriptions

    def subscribe(
        self,
        id: SubscriptionId,
        expression: Constraint,
        *,
        valid_from: datetime | None = None,
        valid_until: datetime | None = None,
        replace: bool = False,
        notify: bool = False,
    ) -> list[SubscriptionId]:
        """Keep a subscription; the ids of the kept publications that it meets.

        With `notify`, notices of these are kept in the same transaction until `deliver` has handed them over.
        """
        held = Held.of(id, expression, self.schema, self.limits, Validity(valid_from, valid_until))
        found = self._keep(
            lambda store: store.put("subscriptions", [held], self.covers, replace=replace, notify=notify),
            lambda engine: engine.subscribe(
                id, expression, valid_from=valid_from, valid_until=valid_until, replace=replace
            ),
        )
        return [each for _, each in found]

    def subscribe_many(self, rows: SubscriptionSource) -> int:
        """Keep many subscriptions at once, all or none, without matching them; how many there were.

        Takes what `Engine.subscribe_many` takes, an Arrow table of texts or of the compiled form among it.
        """
        table = self._compiled(rows)
        self._keep(
            lambda store: store.load("subscriptions", table, self.schema),
            lambda engine: engine.subscribe_many(table),
        )
        return int(table.num_rows)

    def unsubscribe(self, id: SubscriptionId) -> None:
        """Forget a subscription; UnknownSubscriptionError if there is none of this id."""
        self.unsubscribe_many([id])

    def unsubscribe_many(self, ids: Iterable[SubscriptionId]) -> None:
        """Forget subscriptions: all, or none if one of the ids is not known."""
        check_several("unsubscribe_many", "ids", ids, "unsubscribe")
        going = [checked_id(each) for each in ids]
        self._keep(
            lambda store: store.remove("subscriptions", going),
            lambda engine: engine.unsubscribe_many(going),
        )

    # ---------------------------------------------------------------- publications

    def publish(
        self,
        id: SubscriptionId,
        expression: Publication,
        *,
        valid_from: datetime | None = None,
        valid_until: datetime | None = None,
        replace: bool = False,
        notify: bool = False,
    ) -> list[SubscriptionId]:
        """Keep a publication: it is matched now, and with later subscriptions until `valid_until` or `retract`.

        The ids of the subscriptions that it matches now; `notify` as with `subscribe`.
        """
        validity = Validity(valid_from, valid_until)
        if isinstance(expression, Mapping):
            boxes, text = event_of(expression, self.schema, self.covers), event_text(expression)
            held = Held(checked_id(id), boxes, text, validity.valid_until, validity.valid_from)
        else:
            held = Held.of(id, expression, self.schema, self.limits, validity)
        found = self._store.put("publications", [held], self.covers, replace=replace, notify=notify)
        return [each for _, each in found]

    def retract(self, id: SubscriptionId) -> None:
        """Forget a publication; UnknownPublicationError if there is none of this id."""
        self._store.remove("publications", [checked_id(id)])

    def match(
        self,
        publication: Publication,
        *,
        at: datetime | None = None,
        order_by: str | None = None,
        limit: int | None = None,
    ) -> list[SubscriptionId]:
        """The ids of the subscriptions that a publication matches, which is not kept.

        `order_by` ranks them, best first, by attributes and `overlap`: see `ranking.Order`. Of equals the lesser
        id comes first. `limit` keeps the best.
        """
        most = None if limit is None else positive("limit", limit)
        boxes = self._boxes(publication)
        if order_by is None:
            found = [id for _, id in self._store.match("subscriptions", [boxes], self.covers, at=at)]
        else:
            found = self._ranked(Order.parse(order_by), boxes, at)
        return found[:most]

    def match_batch(self, publications: Publications, *, at: datetime | None = None) -> pa.Table:
        """All matches of many publications: a table of `publication` (its place) and `subscription` (id)."""
        moment = None if at is None else moment_of(at)
        table = frame_of(publications, EventError)
        if table is not None:
            found = None if self._beside is None else self._beside.match_batch(table, moment)
            if found is not None:
                return found.rename_columns(["publication", "subscription"])
            publications = table.to_pylist()
        check_several("match_batch", "publications", publications, "match")
        boxes = [self._boxes(each) for each in publications]
        pairs = self._store.match("subscriptions", boxes, self.covers, at=moment)
        places = pa.array([place for place, _ in pairs], pa.int64())
        return pa.table({"publication": places, "subscription": id_array([id for _, id in pairs])})

    # ---------------------------------------------------------------- inside

    def _keep(self, change: Callable[[Store], Result], follow: Callable[[Engine], object]) -> Result:
        """Change the store, and the engine beside it, if there is one."""
        return change(self._store) if self._beside is None else self._beside.together(change, follow)

    def _ranked(self, order: Order, boxes: Boxes, at: datetime | None) -> list[SubscriptionId]:
        order.check_declared(self.schema)
        found = self._store.matched("subscriptions", boxes, self.covers, at=at)
        if found and self.schema is None:
            near = {name for each in (boxes, *found.values()) for box in each.boxes for name in box}
            if not order.names() <= near:
                order.check_known(near | self._store.attributes("subscriptions"))
        by_id = sorted(found, key=lambda id: (isinstance(id, str), id))
        return order.ranked(boxes, {id: found[id] for id in by_id})

    def _boxes(self, publication: Publication) -> Boxes:
        if isinstance(publication, Mapping):
            return event_of(publication, self.schema, self.covers)
        return boxes_of(publication, self.schema, self.limits)

    def _compiled(self, rows: SubscriptionSource) -> pa.Table:
        done = compiled(rows, self.schema, self.limits)
        if done.rejects:
            error = BulkLoadError(done.rejects)
            error.suggestion = None  # all or none is all there is
            raise error
        return done.table
