"""What is to be told, in memory: it waits in order, one deliverer has a claim on it, and settled it is gone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Generic, TypeAlias

from harken.model.subscriptions import moment_of
from harken.symmetric.contract import Item, Outlet
from harken.symmetric.guarding import Journal, Result

_Waiting: TypeAlias = tuple[Item, datetime | None]
"""What waits, and until when somebody has a claim on it."""


class Keeping(Generic[Item]):
    """An outlet that keeps an outbox with other things, and changes it as it changes those."""

    _attempts = ("claim notices", "release notices", "settle notices")
    """What calls are named if they fail."""

    @abstractmethod
    def _with_outbox(self, attempted: str, work: Callable[[Outlet[Item]], Result]) -> Result:
        """Do some work on the outbox in one transaction, perhaps again if another one got in its way."""

    def claim(self, limit: int, until: datetime, *, at: datetime | None = None) -> list[Item]:
        """The oldest that nobody has a claim on, and claim them."""
        moment = moment_of(at)
        return self._with_outbox(self._attempts[0], lambda outbox: outbox.claim(limit, until, at=moment))

    def release(self, numbers: Iterable[int], until: datetime) -> None:
        """Give back what is still claimed until then."""
        given = list(numbers)
        self._with_outbox(self._attempts[1], lambda outbox: outbox.release(given, until))

    def settle(self, numbers: Iterable[int]) -> None:
        """Forget what was told."""
        given = list(numbers)
        self._with_outbox(self._attempts[2], lambda outbox: outbox.settle(given))


class Outbox(Generic[Item]):
    """Holds what is to be told, oldest first. Who changes it is alone, and notes how to take that back."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._by_number: dict[int, _Waiting[Item]] = {}

    def add(self, items: Iterable[Item]) -> None:
        """Keep what is to be told, which is newer than all that is there."""
        self._change({item.number: (item, None) for item in items})

    def waiting(self, limit: int) -> list[Item]:
        """The oldest, claimed or not."""
        return [item for item, _ in islice(self._by_number.values(), limit)]

    def claim(self, limit: int, until: datetime, *, at: datetime | None = None) -> list[Item]:
        """The oldest that nobody has a claim on at a moment, which are claimed."""
        moment = moment_of(at)
        waiting = self._by_number.values()
        free = (item for item, claimed_until in waiting if claimed_until is None or claimed_until <= moment)
        found = list(islice(free, limit))
        self._change({item.number: (item, until) for item in found})
        return found

    def release(self, numbers: Iterable[int], until: datetime) -> None:
        """Give back what is still claimed until then."""
        known = [(number, self._by_number[number]) for number in numbers if number in self._by_number]
        self._change({number: (item, None) for number, (item, claimed) in known if claimed == until})

    def settle(self, numbers: Iterable[int]) -> None:
        """Forget what was told."""
        self._change(dict.fromkeys(number for number in numbers if number in self._by_number))

    def _change(self, after: Mapping[int, _Waiting[Item] | None]) -> None:
        self._journal.note(self._take_back, {number: self._by_number.get(number) for number in after})
        self._put(after)

    def _put(self, several: Mapping[int, _Waiting[Item] | None]) -> None:
        for number, waiting in several.items():
            if waiting is None:
                self._by_number.pop(number, None)
            else:
                self._by_number[number] = waiting

    def _take_back(self, before: Mapping[int, _Waiting[Item] | None]) -> None:
        """Each in its place: what is oldest comes first."""
        self._put(before)
        self._by_number = dict(sorted(self._by_number.items(), key=lambda each: each[0]))
