"""The books of an auction: who entered when, which bid leads, and what is still to be told.

A book and the store of its constraints change together or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import Literal, Protocol, TypeAlias, TypeVar

from harken.symmetric.contract import Store
from harken.symmetric.stores import open_store

Role: TypeAlias = Literal["offer", "bid"]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Entry:
    """An offer or a bid. Numbers tell the order in which they came, and never come again."""

    role: Role
    id: str
    product: str
    at: datetime
    number: int = 0


@dataclass(frozen=True, slots=True)
class Leader:
    """The best bid for an offer, if there is one."""

    offer: str
    bid: str | None
    product: str


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


class Book(Protocol):
    """The book in the middle of a transaction, and the store that is part of it."""

    store: Store

    def enter(self, entry: Entry) -> None:
        """Write an entry down, under the next number."""

    def has(self, role: Role, id: str) -> bool:
        """Whether there is an entry."""

    def entries(self) -> list[Entry]:
        """All entries, the earliest first, and of the same time in the order in which they came."""

    def strike(self, entries: Iterable[tuple[Role, str]]) -> None:
        """Remove entries, by role and id, and what leads for offers among them."""

    def leaders(self) -> list[Leader]:
        """What led after the last cycle."""

    def lead(self, leaders: Iterable[Leader]) -> None:
        """Keep what leads now."""

    def tell(self, changes: Iterable[BestChanged]) -> list[BestChanged]:
        """Keep what is to be told, under the next numbers."""

    def changes(self, limit: int) -> list[BestChanged]:
        """What is to be told, oldest first."""

    def settle(self, numbers: Iterable[int]) -> None:
        """Forget what was told."""


class Books(Protocol):
    """Where a book is kept."""

    def together(self, attempted: str, work: Callable[[Book], Result], *, alone: bool = False) -> Result:
        """Do some work in one transaction. With `alone`, others that are to be alone wait."""

    def look(self, attempted: str, work: Callable[[Book], Result]) -> Result:
        """Do some work that changes nothing, and keeps nobody waiting."""

    def close(self) -> None:
        """Let go of connections."""


class MemoryBook:
    """A book in dictionaries. Not for use by several threads."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._entries: dict[tuple[Role, str], Entry] = {}
        self._leaders: dict[str, Leader] = {}
        self._changes: dict[int, BestChanged] = {}
        self._numbers = count(1)

    def together(self, attempted: str, work: Callable[[Book], Result], *, alone: bool = False) -> Result:
        """Whoever works here checks everything before changing anything."""
        return work(self)

    def look(self, attempted: str, work: Callable[[Book], Result]) -> Result:
        """The same."""
        return work(self)

    def close(self) -> None:
        """Let the store go."""
        self.store.close()

    def enter(self, entry: Entry) -> None:
        """Write an entry down."""
        self._entries[entry.role, entry.id] = replace(entry, number=next(self._numbers))

    def has(self, role: Role, id: str) -> bool:
        """Whether there is an entry."""
        return (role, id) in self._entries

    def entries(self) -> list[Entry]:
        """All entries."""
        return sorted(self._entries.values(), key=lambda entry: (entry.at, entry.number))

    def strike(self, entries: Iterable[tuple[Role, str]]) -> None:
        """Remove entries."""
        for role, id in entries:
            self._entries.pop((role, id), None)
            if role == "offer":
                self._leaders.pop(id, None)

    def leaders(self) -> list[Leader]:
        """What led after the last cycle."""
        return list(self._leaders.values())

    def lead(self, leaders: Iterable[Leader]) -> None:
        """Keep what leads now."""
        self._leaders |= {each.offer: each for each in leaders}

    def tell(self, changes: Iterable[BestChanged]) -> list[BestChanged]:
        """Keep what is to be told."""
        numbered = [replace(each, number=next(self._numbers)) for each in changes]
        self._changes |= {each.number: each for each in numbered}
        return numbered

    def changes(self, limit: int) -> list[BestChanged]:
        """What is to be told."""
        return list(self._changes.values())[:limit]

    def settle(self, numbers: Iterable[int]) -> None:
        """Forget what was told."""
        for number in numbers:
            self._changes.pop(number, None)


def open_books(url: str | None, **options: object) -> Books:
    """Books in memory, or in a database, with a store each."""
    store = open_store(url, **options)
    if url is None:
        return MemoryBook(store)
    from harken.symmetric.database import DatabaseStore
    from harken.symmetric.database.books import DatabaseBooks

    assert isinstance(store, DatabaseStore)
    return DatabaseBooks(store)


def of_role(entries: Sequence[Entry], role: Role) -> list[Entry]:
    """The offers, or the bids."""
    return [each for each in entries if each.role == role]
