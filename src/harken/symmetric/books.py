"""The books of an auction: who entered when, which bid leads, and what is still to be told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import Literal, Protocol, TypeAlias

Told: TypeAlias = tuple[str, str | None, str | None, str]
"""An offer, its best bid before and now, and the product."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An offer or a bid. Numbers tell the order in which they came."""

    role: Literal["offer", "bid"]
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


class Book(Protocol):
    """Every call is a transaction."""

    def enter(self, entry: Entry) -> None:
        """Write an entry down, under the next number."""

    def has(self, role: str, id: str) -> bool:
        """Whether there is an entry."""

    def entries(self) -> list[Entry]:
        """All entries, by number."""

    def strike(self, entries: Iterable[tuple[str, str]]) -> None:
        """Remove entries, by role and id, and what leads or led for offers among them."""

    def leaders(self) -> list[Leader]:
        """What led after the last cycle."""

    def lead(self, leaders: Sequence[Leader], changes: Sequence[Told]) -> None:
        """Keep what leads now, and what is to be told of it."""

    def changes(self) -> list[tuple[int, str, str | None, str | None, str]]:
        """What is to be told, oldest first, with numbers."""

    def settle(self, numbers: Iterable[int]) -> None:
        """Forget what was told."""


class MemoryBook:
    """Books in dictionaries. Not for use by several threads."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], Entry] = {}
        self._leaders: dict[str, Leader] = {}
        self._changes: dict[int, Told] = {}
        self._numbers = count(1)

    def enter(self, entry: Entry) -> None:
        """Write an entry down."""
        self._entries[entry.role, entry.id] = replace(entry, number=next(self._numbers))

    def has(self, role: str, id: str) -> bool:
        """Whether there is an entry."""
        return (role, id) in self._entries

    def entries(self) -> list[Entry]:
        """All entries."""
        return list(self._entries.values())

    def strike(self, entries: Iterable[tuple[str, str]]) -> None:
        """Remove entries."""
        for role, id in entries:
            self._entries.pop((role, id), None)
            if role == "offer":
                self._leaders.pop(id, None)

    def leaders(self) -> list[Leader]:
        """What led after the last cycle."""
        return list(self._leaders.values())

    def lead(self, leaders: Sequence[Leader], changes: Sequence[Told]) -> None:
        """Keep what leads now."""
        self._leaders |= {each.offer: each for each in leaders}
        for each in changes:
            self._changes[next(self._numbers)] = each

    def changes(self) -> list[tuple[int, str, str | None, str | None, str]]:
        """What is to be told."""
        return [(number, *told) for number, told in sorted(self._changes.items())]

    def settle(self, numbers: Iterable[int]) -> None:
        """Forget what was told."""
        for number in numbers:
            self._changes.pop(number, None)


def open_book(url: str | None) -> Book:
    """Books in memory, or in a database."""
    if url is None:
        return MemoryBook()
    from harken.symmetric.database.books import DatabaseBook

    book: Book = DatabaseBook(url)
    return book
