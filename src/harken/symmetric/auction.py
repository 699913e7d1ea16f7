"""Auctions (Tomasic et al. 2006, section 7.1): offers and bids are constraints, and the best bid wins.

Every offer and bid names a product and gets a number, in the order in which they came. A **cycle** matches all
offers with all bids and keeps, for every offer, the bid that ranks best; of equals, the earlier. When the best
changes, notices say so. Closing a product removes both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from harken.compiler import read_expression
from harken.errors import DuplicateSubscriptionError, UnknownSubscriptionError
from harken.language import to_text
from harken.model.expressions import And, Comparator, Comparison, Expression
from harken.model.limits import DEFAULT_LIMITS
from harken.model.schema import Schema
from harken.model.subscriptions import moment_of
from harken.symmetric.books import Book, Entry, Leader, open_book
from harken.symmetric.contract import Held, Side, Store
from harken.symmetric.ranking import Order
from harken.symmetric.semantics import Boxes, boxes_of
from harken.symmetric.stores import open_store

PRODUCT = "product"
"""The attribute that says what is sold; it is added to every offer and bid."""

Role: TypeAlias = Literal["offer", "bid"]
SIDES: dict[Role, Side] = {"offer": "publications", "bid": "subscriptions"}


@dataclass(frozen=True, slots=True)
class BestChanged:
    """The best bid for an offer is another than before; None is none."""

    offer: str
    before: str | None
    now: str | None
    product: str


class Auction:
    """Offers, bids and the best of them, in memory or, with a `url`, in a database.

    `best` is how bids rank, like "price desc": the greatest price that offer and bid both allow. On a database any
    number of processes may offer and bid while one runs cycles.

    >>> auction = Auction(best="price desc")
    >>> auction.offer("seller", "pencils", "price >= 1.00 and lot between 1000 and 10000")
    >>> auction.bid("low", "pencils", "price <= 1.05 and lot between 500 and 2000")
    >>> auction.bid("high", "pencils", "price <= 1.10 and lot between 500 and 2000")
    >>> [(change.offer, change.now) for change in auction.cycle()]
    [('seller', 'high')]
    """

    def __init__(
        self, url: str | None = None, *, best: str = "price desc", schema: Schema | None = None, **options: object
    ) -> None:
        self._order = Order.parse(best)
        self._schema = None if schema is None else Schema({**schema, PRODUCT: "string"})
        self._store: Store = open_store(url, **options)
        self._book: Book = open_book(url)

    def offer(self, id: str, product: str, expression: str | Expression, *, at: datetime | None = None) -> None:
        """Offer a product for sale under conditions; DuplicateSubscriptionError if the id is taken."""
        self._enter("offer", id, product, expression, at)

    def bid(self, id: str, product: str, expression: str | Expression, *, at: datetime | None = None) -> None:
        """Bid for a product under conditions; DuplicateSubscriptionError if the id is taken."""
        self._enter("bid", id, product, expression, at)

    def withdraw(self, role: Role, id: str) -> None:
        """Take an offer or a bid back; UnknownSubscriptionError if there is none of this id."""
        self._store.remove(SIDES[role], [id])
        self._book.strike([(role, id)])

    def cycle(self) -> list[BestChanged]:
        """Match all offers with all bids, and keep the best bid of each; what changed, in one transaction."""
        entries = self._book.entries()
        leaders = {each.offer: each for each in self._book.leaders()}
        bids = {each.id: each for each in entries if each.role == "bid"}
        found = [self._leader(each, bids) for each in entries if each.role == "offer"]
        changes = [
            BestChanged(each.offer, _bid_of(leaders.get(each.offer)), each.bid, each.product)
            for each in found
            if _bid_of(leaders.get(each.offer)) != each.bid
        ]
        self._book.lead(found, [(each.offer, each.before, each.now, each.product) for each in changes])
        return changes

    def best(self, offer: str) -> str | None:
        """The bid that the last cycle found best for an offer."""
        return next((each.bid for each in self._book.leaders() if each.offer == offer), None)

    def close(self, product: str) -> dict[str, str | None]:
        """End the auction of a product: a last cycle decides, and both sides go. By offer, the bid that won."""
        self.cycle()
        entries = [each for each in self._book.entries() if each.product == product]
        won = {each.offer: each.bid for each in self._book.leaders() if each.product == product}
        for role, side in SIDES.items():
            ids = [each.id for each in entries if each.role == role]
            present = [id for id in ids if self._store.get(side, id) is not None]
            self._store.remove(side, present)
        self._book.strike([(each.role, each.id) for each in entries])
        return won

    def deliver(self, handler: Callable[[BestChanged], None]) -> int:
        """Hand over what changed, oldest first, at least once; how many."""
        done = []
        try:
            for number, offer, before, now, product in self._book.changes():
                handler(BestChanged(offer, before, now, product))
                done.append(number)
        finally:
            self._book.settle(done)
        return len(done)

    def _enter(self, role: Role, id: str, product: str, expression: str | Expression, at: datetime | None) -> None:
        stated = read_expression(expression, self._schema, DEFAULT_LIMITS)
        whole = And((Comparison(PRODUCT, Comparator.EQ, product), stated))
        held = Held(id, boxes_of(whole, self._schema), to_text(whole))
        # The constraint first: an entry without one would be ranked, a constraint without an entry is not.
        if self._book.has(role, id):
            raise DuplicateSubscriptionError(id)
        self._store.put(SIDES[role], [held], "publication", replace=True)
        self._book.enter(Entry(role, id, product, moment_of(at)))

    def _leader(self, offer: Entry, bids: dict[str, Entry]) -> Leader:
        boxes = self._boxes("publications", offer.id)
        matched = [str(id) for _, id in self._store.match("subscriptions", [boxes], "publication")]
        known = sorted((bids[id] for id in matched if id in bids), key=lambda bid: bid.number)
        ranked = self._order.ranked(boxes, {bid.id: self._boxes("subscriptions", bid.id) for bid in known})
        return Leader(offer.id, str(ranked[0]) if ranked else None, offer.product)

    def _boxes(self, side: Side, id: str) -> Boxes:
        held = self._store.get(side, id)
        if held is None:
            raise UnknownSubscriptionError(id)
        return held.boxes


def _bid_of(leader: Leader | None) -> str | None:
    return None if leader is None else leader.bid
