"""What is to be told, in memory: it waits in order, one deliverer has a claim on it, and settled it is gone."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from typing import Generic, Protocol, TypeVar

from harken.symmetric.guarding import Journal


class Numbered(Protocol):
    """Something to be told, that its number tells apart."""

    @property
    def number(self) -> int:
        """Older ones have lesser numbers."""


Item = TypeVar("Item", bound=Numbered)
Kept = TypeVar("Kept")


class Outbox(Generic[Item]):
    """Holds what is to be told, oldest first. Who changes it is alone, and notes how to take that back."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._waiting: dict[int, Item] = {}
        self._claimed: dict[int, datetime] = {}
        """By number, until when somebody has a claim."""

    def add(self, items: Iterable[Item]) -> None:
        """Keep what is to be told, which is newer than all that is there."""
        coming = {item.number: item for item in items}
        self._journal.note(self._take_back, coming)
        self._waiting.update(coming)

    def waiting(self, limit: int) -> list[Item]:
        """The oldest, claimed or not."""
        return list(islice(self._waiting.values(), limit))

    def claim(self, limit: int, until: datetime, moment: datetime) -> list[Item]:
        """The oldest that nobody has a claim on at a moment, which are claimed."""
        free = (item for number, item in self._waiting.items() if not self._is_claimed(number, moment))
        found = list(islice(free, limit))
        numbers = [item.number for item in found]
        self._note_claims(numbers)
        self._claimed.update(dict.fromkeys(numbers, until))
        return found

    def release(self, numbers: Iterable[int], until: datetime) -> None:
        """Give back what is still claimed until then."""
        going = [number for number in numbers if self._claimed.get(number) == until]
        self._note_claims(going)
        _forget(self._claimed, going)

    def settle(self, numbers: Iterable[int]) -> None:
        """Forget what was told."""
        going = [number for number in numbers if number in self._waiting]
        self._note_claims(going)
        self._journal.note(self._put_back, {number: self._waiting[number] for number in going})
        _forget(self._waiting, going)
        _forget(self._claimed, going)

    def _is_claimed(self, number: int, moment: datetime) -> bool:
        return number in self._claimed and moment < self._claimed[number]

    def _note_claims(self, numbers: list[int]) -> None:
        before = {number: self._claimed[number] for number in numbers if number in self._claimed}
        self._journal.note(self._claim_as_before, numbers, before)

    def _claim_as_before(self, numbers: list[int], before: dict[int, datetime]) -> None:
        _forget(self._claimed, [number for number in numbers if number not in before])
        self._claimed.update(before)

    def _take_back(self, numbers: Iterable[int]) -> None:
        _forget(self._waiting, numbers)

    def _put_back(self, items: dict[int, Item]) -> None:
        """In its place: what is oldest comes first."""
        self._waiting = dict(sorted((self._waiting | items).items()))


def _forget(known: dict[int, Kept], numbers: Iterable[int]) -> None:
    for number in numbers:
        known.pop(number, None)
