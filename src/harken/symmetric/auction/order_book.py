"""The book of an auction: who entered when, which bid leads, and what is still to be told.

A book and the store of its constraints change together or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, get_args

from harken.symmetric.contract import Outlet, Store
from harken.symmetric.guarding import Result
from harken.symmetric.outbox import Keeping, Outbox

if TYPE_CHECKING:
    from harken.symmetric.memory import MemoryStore

Role: TypeAlias = Literal["offer", "bid"]
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True, slots=True)
class Entry:
    """An offer or a bid. Numbers tell the order in which they came, and never come again."""

    role: Role
    id: str
    product: str
    at: datetime
    number: int = 0


@dataclass(frozen=True, slots=True)
class BestChanged:
    """The best bid for an offer is another than before; None is none.

    Its number tells it apart: it may be delivered more than once.
    """

    offer: str
    before: str | None
    now: str | None
    product: str
    number: int = 0


class OrderBook(Outlet[BestChanged], Protocol):
    """A book, and the store that belongs to it. What changed is handed over like notices of a store."""

    store: Store

    def together(self, attempted: str, work: Callable[[OrderBook], Result], *, alone: bool = False) -> Result:
        """Do some work in one transaction, on a book that is part of it. With `alone`, others like that wait."""

    def look(self, attempted: str, work: Callable[[OrderBook], Result]) -> Result:
        """Do some work that changes nothing, and keeps nobody waiting."""

    def close(self) -> None:
        """Let go of connections."""

    # What follows is for work in the middle of a transaction.

    def enter(self, entry: Entry) -> None:
        """Write an entry down, under the next number."""

    def has(self, role: Role, id: str) -> bool:
        """Whether there is an entry."""

    def entries(self) -> list[Entry]:
        """All entries, the earliest first, and of the same time in the order in which they came."""

    def strike(self, role: Role, id: str) -> None:
        """Remove an entry, and if it is an offer, what leads for it."""

    def leaders(self) -> dict[str, str | None]:
        """By offer, the bid that led after the last cycle."""

    def lead(self, offer: Entry, bid: str | None) -> None:
        """Keep which bid leads now."""

    def tell(self, changes: Iterable[BestChanged]) -> list[BestChanged]:
        """Keep what is to be told, under the next numbers."""


class MemoryOrderBook(Keeping[BestChanged]):
    """A book in dictionaries, changed together with a store in memory, and as safely."""

    def __init__(self, store: MemoryStore) -> None:
        self.store: Store = store
        self._kept = store
        self._journal = store.journal
        self._entries: dict[tuple[Role, str], Entry] = {}
        self._leaders: dict[str, str | None] = {}
        self._changes = Outbox[BestChanged](store.journal)
        self._numbers = count(1)

    def together(
        self, attempted: str, work: Callable[[MemoryOrderBook], Result], *, alone: bool = False
    ) -> Result:
        """Do some work entirely, or not at all."""
        return self._kept.together(lambda store: work(self._within(store)))

    def look(self, attempted: str, work: Callable[[MemoryOrderBook], Result]) -> Result:
        """Do some work while nothing changes."""
        return self._kept.look(lambda: work(self._within(self._kept.joined())))

    def _within(self, store: MemoryStore) -> MemoryOrderBook:
        """The book, with a store whose calls are part of a change."""
        store.check_open()
        book = copy(self)
        book.store = store
        return book

    def close(self) -> None:
        """Let the store go."""
        self._kept.close()

    def enter(self, entry: Entry) -> None:
        """Write an entry down."""
        key = entry.role, entry.id
        self._journal.note(self._entries.pop, key, None)
        self._entries[key] = replace(entry, number=next(self._numbers))

    def has(self, role: Role, id: str) -> bool:
        """Whether there is an entry."""
        return (role, id) in self._entries

    def entries(self) -> list[Entry]:
        """All entries."""
        return sorted(self._entries.values(), key=lambda entry: (entry.at, entry.number))

    def strike(self, role: Role, id: str) -> None:
        """Remove an entry."""
        if (role, id) in self._entries:
            self._journal.note(self._entries.__setitem__, (role, id), self._entries[role, id])
            del self._entries[role, id]
        if role == "offer" and id in self._leaders:
            self._journal.note(self._leaders.__setitem__, id, self._leaders[id])
            del self._leaders[id]

    def leaders(self) -> dict[str, str | None]:
        """What led after the last cycle."""
        return dict(self._leaders)

    def lead(self, offer: Entry, bid: str | None) -> None:
        """Keep which bid leads now."""
        if offer.id in self._leaders:
            self._journal.note(self._leaders.__setitem__, offer.id, self._leaders[offer.id])
        else:
            self._journal.note(self._leaders.pop, offer.id, None)
        self._leaders[offer.id] = bid

    def tell(self, changes: Iterable[BestChanged]) -> list[BestChanged]:
        """Keep what is to be told."""
        numbered = [replace(each, number=next(self._numbers)) for each in changes]
        self._changes.add(numbered)
        return numbered

    def _with_outbox(self, attempted: str, work: Callable[[Outlet[BestChanged]], Result]) -> Result:
        return self.together(attempted, lambda book: work(book._changes))
