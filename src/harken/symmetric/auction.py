"""Auctions (Tomasic et al. 2006, section 7.1): offers and bids are constraints, and the best bid wins.

Every offer and bid names a product and has a time. A **cycle** matches all offers with all bids and keeps, for
every offer, the bid that ranks best; of equals, the earlier. When the best changes, notices say so. Closing a
product removes both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from harken.compiler import read_expression
from harken.errors import DuplicateSubscriptionError, UnknownSubscriptionError
from harken.language import to_text
from harken.model.expressions import And, Comparator, Comparison, Expression
from harken.model.limits import DEFAULT_LIMITS
from harken.model.schema import Schema
from harken.model.subscriptions import SubscriptionId, moment_of
from harken.symmetric.books import BestChanged, Book, Books, Entry, Leader, Role, of_role, open_books
from harken.symmetric.contract import Held, Side
from harken.symmetric.ranking import Order
from harken.symmetric.semantics import Boxes, boxes_of

PRODUCT = "product"
"""The attribute that says what is sold; it is added to every offer and bid."""

SIDES: dict[Role, Side] = {"offer": "publications", "bid": "subscriptions"}


class Auction:
    """Offers, bids and the best of them, in memory or, with a `url`, in a database.

    `best` is how bids rank, like "price desc": the greatest price that offer and bid both allow. Every call is a
    transaction: on a database any number of processes may offer, bid and run cycles. In memory, one thread may.

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
        self._books: Books = open_books(url, **options)
        self._boxes: dict[int, Boxes] = {}

    def __enter__(self) -> Auction:
        return self

    def __exit__(self, *_: object) -> None:
        self._books.close()

    def offer(self, id: str, product: str, expression: str | Expression, *, at: datetime | None = None) -> None:
        """Offer a product for sale under conditions; DuplicateSubscriptionError if the id is taken."""
        self._enter("offer", id, product, expression, at)

    def bid(self, id: str, product: str, expression: str | Expression, *, at: datetime | None = None) -> None:
        """Bid for a product under conditions; DuplicateSubscriptionError if the id is taken."""
        self._enter("bid", id, product, expression, at)

    def withdraw(self, role: Role, id: str) -> None:
        """Take an offer or a bid back; UnknownSubscriptionError if there is none of this id."""

        def work(book: Book) -> None:
            book.store.remove(SIDES[role], [id])
            book.strike([(role, id)])

        self._books.together(f"withdraw a {role}", work)

    def cycle(self) -> list[BestChanged]:
        """Match all offers with all bids, keep the best bid of each, and note what changed; that is returned."""
        return self._books.together("run a cycle of the auction", self._decide, alone=True)

    def best(self, offer: str) -> str | None:
        """The bid that the last cycle found best for an offer."""
        leaders = self._books.look("read who leads", lambda book: book.leaders())
        return next((each.bid for each in leaders if each.offer == offer), None)

    def close(self, product: str) -> dict[str, str | None]:
        """End the auction of a product: a last cycle decides, and both sides go. By offer, the bid that won."""

        def work(book: Book) -> dict[str, str | None]:
            self._decide(book)
            going = [each for each in book.entries() if each.product == product]
            won = {each.offer: each.bid for each in book.leaders() if each.product == product}
            for role, side in SIDES.items():
                book.store.remove(side, [each.id for each in of_role(going, role)])
            book.strike([(each.role, each.id) for each in going])
            return won

        return self._books.together("close a product", work, alone=True)

    def deliver(self, handler: Callable[[BestChanged], None], *, limit: int = 1_000) -> int:
        """Hand over what changed, oldest first, at least once; how many."""
        done: list[int] = []
        try:
            for change in self._books.look("read what changed", lambda book: book.changes(limit)):
                handler(change)
                done.append(change.number)
        finally:
            if done:
                self._books.together("settle what was told", lambda book: book.settle(done))
        return len(done)

    # ---------------------------------------------------------------- inside

    def _enter(self, role: Role, id: str, product: str, expression: str | Expression, at: datetime | None) -> None:
        stated = read_expression(expression, self._schema, DEFAULT_LIMITS)
        whole = And((Comparison(PRODUCT, Comparator.EQ, product), stated))
        held = Held(id, boxes_of(whole, self._schema), to_text(whole))

        def work(book: Book) -> None:
            if book.has(role, id):
                raise DuplicateSubscriptionError(id)
            book.store.put(SIDES[role], [held], "publication")
            book.enter(Entry(role, id, product, moment_of(at)))

        self._books.together(f"enter a {role}", work)

    def _decide(self, book: Book) -> list[BestChanged]:
        entries = book.entries()
        offers, bids = of_role(entries, "offer"), of_role(entries, "bid")
        self._remember(book, entries)
        found: list[set[object]] = [set() for _ in offers]
        asked = [self._boxes[each.number] for each in offers]
        for place, id in book.store.match("subscriptions", asked, "publication"):
            found[place].add(id)
        led = {each.offer: each.bid for each in book.leaders()}
        leaders = [self._leader(offer, bids, ids) for offer, ids in zip(offers, found, strict=True)]
        news = [each for each in leaders if each.offer not in led or led[each.offer] != each.bid]
        book.lead(news)
        changes = [BestChanged(each.offer, led.get(each.offer), each.bid, each.product) for each in news]
        return book.tell(each for each in changes if each.before != each.now)

    def _leader(self, offer: Entry, bids: list[Entry], found: set[object]) -> Leader:
        matched: dict[SubscriptionId, Boxes] = {bid.id: self._boxes[bid.number] for bid in bids if bid.id in found}
        ranked = self._order.ranked(self._boxes[offer.number], matched)
        return Leader(offer.id, str(ranked[0]) if ranked else None, offer.product)

    def _remember(self, book: Book, entries: list[Entry]) -> None:
        """Keep what all entries say at hand: an entry's number never comes again, whatever becomes of its id."""
        self._boxes = {
            each.number: self._boxes.get(each.number) or _said(book, SIDES[each.role], each.id) for each in entries
        }


def _said(book: Book, side: Side, id: str) -> Boxes:
    held = book.store.get(side, id)
    if held is None:
        raise UnknownSubscriptionError(id)
    return held.boxes
