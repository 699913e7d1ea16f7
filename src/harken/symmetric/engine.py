"""The façade of symmetric matching: subscribe, publish, match, whatever holds the constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

import pyarrow as pa

from harken.compiler import compile_texts
from harken.engine import Engine
from harken.errors import BulkLoadError, UnknownSubscriptionError
from harken.intake import SubscriptionSource, texts_of
from harken.language import to_text
from harken.model.expressions import Expression
from harken.model.limits import DEFAULT_LIMITS, Limits
from harken.model.schema import Schema
from harken.model.subscriptions import SubscriptionId, Validity, checked_id
from harken.model.values import Type
from harken.normal.compiled import conform, id_array, is_compiled
from harken.symmetric.contract import Held, Notice, Side, Store
from harken.symmetric.ranking import Order
from harken.symmetric.semantics import DIRECTIONS, Boxes, Covers, boxes_of, event_of
from harken.symmetric.stores import open_store

Constraint: TypeAlias = str | Expression
"""What a subscription or publication asks for or offers."""

Publications: TypeAlias = pa.Table | pa.RecordBatch | Sequence[Constraint | Mapping[str, object]]
"""Constraints, or events: a mapping or a row of a table is a publication of single values."""


class SymmetricEngine:
    """Matches publications with subscriptions, both of which are constraints.

    Without a `url`, constraints are held in memory; with one (`sqlite:///market.db`, `postgresql://…`) in a
    database, where every call is a transaction. `covers` says whose attributes the other side must constrain too:
    "publication", as in Tomasic et al. 2006, or "subscription", the classical direction. In memory, any number of
    threads may match at once, and changes want the engine for themselves; on a database, every thread may do
    everything.

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
        if covers not in DIRECTIONS:
            raise ValueError(f"covers is one of {DIRECTIONS}, found {covers!r}")
        self.schema = schema if schema is None or isinstance(schema, Schema) else Schema(schema)
        self.covers = covers
        self.limits = limits
        self._store: Store = open_store(url, **options)
        # An event is a publication of single values: what matches it is known to be found quickest by an engine.
        classical = url is None and covers == "subscription"
        self._classical = Engine("dynamic", self.schema, limits=limits) if classical else None

    def __len__(self) -> int:
        """How many subscriptions there are."""
        return self._store.count("subscriptions")

    def __contains__(self, id: object) -> bool:
        """Whether a subscription of this id is there."""
        return isinstance(id, str | int) and self._store.get("subscriptions", id) is not None

    def __enter__(self) -> SymmetricEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of connections. Calls afterwards fail."""
        self._store.close()

    # ---------------------------------------------------------------- subscriptions

    def subscribe(
        self,
        id: SubscriptionId,
        expression: Constraint,
        *,
        valid_until: datetime | None = None,
        replace: bool = False,
        notify: bool = False,
    ) -> list[SubscriptionId]:
        """Keep a subscription; the ids of the kept publications that it meets.

        With `notify`, notices of these are kept in the same transaction until `deliver` has handed them over.
        """
        held = self._held(id, expression, valid_until)
        found = self._store.put("subscriptions", [held], self.covers, replace=replace, notify=notify)
        if self._classical is not None:
            self._classical.subscribe(id, expression, valid_until=valid_until, replace=replace)
        return [each for _, each in found]

    def subscribe_many(self, rows: SubscriptionSource) -> int:
        """Keep many subscriptions at once, all or none, without matching them; how many there were.

        Takes what `Engine.subscribe_many` takes, an Arrow table of texts or of the compiled form among it.
        """
        table = self._compiled(rows)
        self._store.load("subscriptions", table, self.schema)
        if self._classical is not None:
            self._classical.subscribe_many(table)
        return int(table.num_rows)

    def unsubscribe(self, id: SubscriptionId) -> None:
        """Forget a subscription; UnknownSubscriptionError if there is none of this id."""
        self.unsubscribe_many([id])

    def unsubscribe_many(self, ids: Iterable[SubscriptionId]) -> None:
        """Forget subscriptions: all, or none if one of the ids is not known."""
        going = list(ids)
        self._store.remove("subscriptions", going)
        if self._classical is not None:
            self._classical.unsubscribe_many(going)

    # ---------------------------------------------------------------- publications

    def publish(
        self,
        id: SubscriptionId,
        expression: Constraint,
        *,
        valid_until: datetime | None = None,
        replace: bool = False,
        notify: bool = False,
    ) -> list[SubscriptionId]:
        """Keep a publication: it is matched now, and with later subscriptions until `valid_until` or `retract`.

        The ids of the subscriptions that it matches now; `notify` as with `subscribe`.
        """
        held = self._held(id, expression, valid_until)
        found = self._store.put("publications", [held], self.covers, replace=replace, notify=notify)
        return [each for _, each in found]

    def retract(self, id: SubscriptionId) -> None:
        """Forget a publication; UnknownSubscriptionError if there is none of this id."""
        self._store.remove("publications", [id])

    def match(
        self,
        publication: Constraint | Mapping[str, object],
        *,
        at: datetime | None = None,
        order_by: str | None = None,
        limit: int | None = None,
    ) -> list[SubscriptionId]:
        """The ids of the subscriptions that a publication matches, which is not kept.

        `order_by` ranks them, best first, by attributes and `overlap`: see `ranking.Order`. Of equals the lesser
        id comes first. `limit` keeps the best.
        """
        boxes = self._boxes(publication)
        found = [id for _, id in self._store.match("subscriptions", [boxes], self.covers, at=at)]
        if order_by is not None:
            order = Order.parse(order_by)
            by_id = sorted(found, key=lambda id: (isinstance(id, str), id))
            found = order.ranked(boxes, {id: self._boxes_held("subscriptions", id) for id in by_id})
        return found[:limit]

    def match_batch(self, publications: Publications, *, at: datetime | None = None) -> pa.Table:
        """All matches of many publications: a table of `publication` (its place) and `subscription` (id)."""
        if isinstance(publications, pa.Table | pa.RecordBatch):
            if self._classical is not None:
                return self._classical.match_batch(publications, at=at).rename_columns(
                    ["publication", "subscription"]
                )
            publications = publications.to_pylist()
        boxes = [self._boxes(each) for each in publications]
        pairs = self._store.match("subscriptions", boxes, self.covers, at=at)
        places = pa.array([place for place, _ in pairs], pa.int64())
        return pa.table({"publication": places, "subscription": id_array([id for _, id in pairs])})

    # ---------------------------------------------------------------- notices

    def deliver(self, handler: Callable[[Notice], None], *, limit: int = 1_000) -> int:
        """Hand over notices that are waiting, oldest first, and settle each that the handler took; how many.

        At least once: a notice whose handler failed, or whose settling was lost in a crash, comes again, with the
        same number.
        """
        done: list[int] = []
        try:
            for notice in self._store.notices(limit):
                handler(notice)
                done.append(notice.number)
        finally:
            self._store.settle(done)
        return len(done)

    # ---------------------------------------------------------------- inside

    def _held(self, id: SubscriptionId, expression: Constraint, valid_until: datetime | None) -> Held:
        boxes = boxes_of(expression, self.schema, self.limits)
        text = expression if isinstance(expression, str) else to_text(expression)
        return Held(checked_id(id), boxes, text, Validity(None, valid_until).valid_until)

    def _boxes(self, publication: Constraint | Mapping[str, object]) -> Boxes:
        if isinstance(publication, Mapping):
            return event_of(publication, self.schema)
        return boxes_of(publication, self.schema, self.limits)

    def _boxes_held(self, side: Side, id: SubscriptionId) -> Boxes:
        held = self._store.get(side, id)
        if held is None:
            raise UnknownSubscriptionError(id)
        return held.boxes

    def _compiled(self, rows: SubscriptionSource) -> pa.Table:
        if isinstance(rows, pa.Table) and is_compiled(rows):
            return conform(rows)
        done = compile_texts(texts_of(rows), schema=self.schema, limits=self.limits)
        if done.rejects:
            raise BulkLoadError(done.rejects)
        return done.table
