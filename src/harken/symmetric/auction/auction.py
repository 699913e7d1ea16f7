"""Auctions (Tomasic et al. 2006, section 7.1): offers and bids are constraints, and the best bid wins.

Every offer and bid names a product and has a time. A **cycle** matches all offers with all bids and keeps, for
every offer, the bid that ranks best; of equals, the earlier. When the best changes, notices say so. Closing a
product removes both sides.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, cast

from harken.compiler import read_expression
from harken.errors import ArgumentError, DuplicateEntryError, UnknownEntryError
from harken.model.expressions import And, Comparator, Comparison, Expression
from harken.model.limits import DEFAULT_LIMITS
from harken.model.schema import Schema
from harken.model.subscriptions import SubscriptionId, moment_of
from harken.model.values import Type
from harken.symmetric.arguments import checked_schema, checked_text
from harken.symmetric.auction.order_book import (
    ROLES,
    BestChanged,
    Entry,
    MemoryOrderBook,
    OrderBook,
    Role,
)
from harken.symmetric.contract import Held, Side
from harken.symmetric.delivering import Delivering
from harken.symmetric.ranking import Order
from harken.symmetric.semantics import Boxes
from harken.symmetric.stores import open_store

if TYPE_CHECKING:
    from harken.symmetric.database import DatabaseStore
    from harken.symmetric.memory import MemoryStore

PRODUCT = "product"
"""The attribute that says what is sold; it is added to every offer and bid."""

SIDES: dict[Role, Side] = {"offer": "publications", "bid": "subscriptions"}


class Auction(Delivering[BestChanged]):
    """Offers, bids and the best of them, in memory or, with a `url`, in a database.

    `best` is how bids rank, like "price desc": the greatest price that offer and bid both allow; a bid without any
    bound is above all that have one. Every call is a transaction, from any thread, and on a database from any
    process: it happens entirely, or if it fails or is interrupted not at all.

    >>> auction = Auction(best="price desc")
    >>> auction.offer("seller", "pencils", "price >= 1.00 and lot between 1000 and 10000")
    >>> auction.bid("low", "pencils", "price <= 1.05 and lot between 500 and 2000")
    >>> auction.bid("high", "pencils", "price <= 1.10 and lot between 500 and 2000")
    >>> [(change.offer, change.now) for change in auction.cycle()]
    [('seller', 'high')]
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        best: str = "price desc",
        schema: Schema | Mapping[str, Type | str] | None = None,
        **options: object,
    ) -> None:
        self._order = Order.parse(best)
        declared = checked_schema(schema)
        self._schema = None if declared is None else Schema({**declared, PRODUCT: "string"})
        self._order.check_declared(self._schema)
        self._book = self._outlet = _open_book(url, **options)
        self._boxes: dict[int, Boxes] = {}

    def __enter__(self) -> Auction:
        return self

    def __exit__(self, *_: object) -> None:
        self._book.close()

    def offer(self, id: str, product: str, expression: str | Expression, *, at: datetime | None = None) -> None:
        """Offer a product for sale under conditions; DuplicateEntryError if the id is taken."""
        self._enter("offer", id, product, expression, at)

    def bid(self, id: str, product: str, expression: str | Expression, *, at: datetime | None = None) -> None:
        """Bid for a product under conditions; DuplicateEntryError if the id is taken."""
        self._enter("bid", id, product, expression, at)

    def withdraw(self, role: Role, id: str) -> None:
        """Take an offer or a bid back; UnknownEntryError if there is none of this id."""
        if role not in ROLES:
            raise ArgumentError.choice("role", role, ROLES)
        checked = checked_text("an id", id)

        def work(book: OrderBook) -> None:
            if not book.has(role, checked):
                raise UnknownEntryError(role, checked)
            book.store.remove(SIDES[role], [checked])
            book.strike(role, checked)

        self._book.together(f"withdraw a {role}", work)

    def cycle(self) -> list[BestChanged]:
        """Match all offers with all bids, keep the best bid of each, and note what changed; that is returned."""
        return self._book.together("run a cycle of the auction", self._decide, alone=True)

    def best(self, offer: str) -> str | None:
        """The bid that the last cycle found best for an offer."""
        asked = checked_text("an id", offer)
        return self._book.look("read who leads", lambda book: book.leaders()).get(asked)

    def close(self, product: str) -> dict[str, str | None]:
        """End the auction of a product: a last cycle decides, and both sides go. By offer, the bid that won."""
        sold = checked_text("a product", product)

        def work(book: OrderBook) -> dict[str, str | None]:
            self._decide(book)
            leaders = book.leaders()
            going = [each for each in book.entries() if each.product == sold]
            for role, side in SIDES.items():
                book.store.remove(side, [each.id for each in going if each.role == role])
            for each in going:
                book.strike(each.role, each.id)
            return {each.id: leaders[each.id] for each in going if each.role == "offer"}

        return self._book.together("close a product", work, alone=True)

    # ---------------------------------------------------------------- inside

    def _enter(self, role: Role, id: str, product: str, expression: str | Expression, at: datetime | None) -> None:
        id, product, moment = checked_text("an id", id), checked_text("a product", product), moment_of(at)
        stated = read_expression(expression, self._schema, DEFAULT_LIMITS)
        whole = And((Comparison(PRODUCT, Comparator.EQ, product), stated))
        held = Held.of(id, whole, self._schema)

        def work(book: OrderBook) -> None:
            if book.has(role, id):
                raise DuplicateEntryError(role, id)
            book.store.put(SIDES[role], [held], "publication")
            book.enter(Entry(role, id, product, moment))

        self._book.together(f"enter a {role}", work)

    def _decide(self, book: OrderBook) -> list[BestChanged]:
        entries = book.entries()
        offers, bids = ([each for each in entries if each.role == role] for role in ROLES)
        said = self._said(book, entries)
        found: list[set[object]] = [set() for _ in offers]
        asked = [said[each.number] for each in offers]
        for place, id in book.store.match("subscriptions", asked, "publication"):
            found[place].add(id)
        led, changes = book.leaders(), []
        for offer, ids in zip(offers, found, strict=True):
            matched: dict[SubscriptionId, Boxes] = {bid.id: said[bid.number] for bid in bids if bid.id in ids}
            ranked = self._order.ranked(said[offer.number], matched)
            before, now = led.get(offer.id), str(ranked[0]) if ranked else None
            if offer.id not in led or before != now:
                book.lead(offer, now)
            if before != now:
                changes.append(BestChanged(offer.id, before, now, offer.product))
        return book.tell(changes)

    def _said(self, book: OrderBook, entries: list[Entry]) -> Mapping[int, Boxes]:
        """What all entries say, kept at hand: an entry's number never comes again, whatever becomes of its id.

        Others may decide at the same time, and have their own: what is given is not changed any more.
        """
        known = self._boxes
        said = {each.number: known.get(each.number) or _boxes_of(book, SIDES[each.role], each) for each in entries}
        self._boxes = said
        return said


def _boxes_of(book: OrderBook, side: Side, entry: Entry) -> Boxes:
    held = book.store.get(side, entry.id)
    if held is None:
        raise UnknownEntryError(entry.role, entry.id)
    return held.boxes


def _open_book(url: str | None, **options: object) -> OrderBook:
    """A book in memory, or in a database, with a store of its own."""
    store = open_store(url, **options)
    if url is None:
        return MemoryOrderBook(cast("MemoryStore", store))
    from harken.symmetric.auction.database_order_book import DatabaseOrderBook

    return DatabaseOrderBook(cast("DatabaseStore", store))
