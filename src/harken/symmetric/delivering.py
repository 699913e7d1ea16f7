"""Handing over what is to be told: each to one deliverer, at least once, and again if that one does not finish.

A deliverer claims a portion for a while, its **lease**, hands it over, and settles it. It hands over nothing after
its lease: what it has not come to by then others may have. What a deliverer that crashed has claimed is free again
when its lease is over.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Generic

from harken.errors import HandlerError
from harken.model.subscriptions import moment_of
from harken.symmetric.arguments import positive, seconds
from harken.symmetric.contract import Item, Outlet

PORTION = 100
"""How many are claimed at a time."""

LEASE = 60.0
"""Seconds that a deliverer has to hand a portion over, unless said otherwise."""


class _Portion(Generic[Item]):
    """What was claimed together, and how much of it was handed over."""

    def __init__(self, outlet: Outlet[Item], limit: int, lease: float) -> None:
        self._outlet = outlet
        begin = moment_of(None)
        self._until = begin + timedelta(seconds=lease)
        self._items = outlet.claim(min(limit, PORTION), self._until, at=begin)
        self.done = 0

    def __len__(self) -> int:
        return len(self._items)

    def next(self) -> Item | None:
        """The next to be handed over, while there is time."""
        if self.done == len(self._items) or moment_of(None) >= self._until:
            return None
        return self._items[self.done]

    def finish(self) -> None:
        """Settle what was handed over, and give back the rest."""
        numbers = [item.number for item in self._items]
        if done := numbers[: self.done]:
            self._outlet.settle(done)
        if left := numbers[self.done :]:
            self._outlet.release(left, self._until)


class Delivering(Generic[Item]):
    """What has an outlet, and hands over what waits there. Any thread may deliver."""

    _outlet: Outlet[Item]

    def deliver(self, handler: Callable[[Item], object], *, limit: int = 1_000, lease: float = LEASE) -> int:
        """Hand over what is waiting, oldest first, and settle what the handler took; how many.

        Each goes to one deliverer, which has `lease` seconds for a portion of them. At least once: what a handler
        failed on comes again, as does after its lease what a crashed deliverer had, with the same number.
        HandlerError if the handler has to be awaited.
        """
        limit, lease = _checked(handler, limit, lease)
        if _is_async(handler):
            raise HandlerError.is_async()
        total = 0
        while total < limit:
            portion = _Portion(self._outlet, limit - total, lease)
            try:
                while (item := portion.next()) is not None:
                    _refuse_awaitable(handler(item))
                    portion.done += 1
            finally:
                portion.finish()
            if not len(portion):
                break
            total += portion.done
        return total

    async def deliver_async(
        self, handler: Callable[[Item], Awaitable[object] | object], *, limit: int = 1_000, lease: float = LEASE
    ) -> int:
        """As `deliver`, with a handler that is awaited. What a database does is done in another thread."""
        limit, lease = _checked(handler, limit, lease)
        total = 0
        while total < limit:
            portion = await asyncio.to_thread(_Portion, self._outlet, limit - total, lease)
            try:
                while (item := portion.next()) is not None:
                    given = handler(item)
                    if inspect.isawaitable(given):
                        await given
                    portion.done += 1
            finally:
                await asyncio.to_thread(portion.finish)
            if not len(portion):
                break
            total += portion.done
        return total


def _checked(handler: object, limit: object, lease: object) -> tuple[int, float]:
    if not callable(handler):
        raise HandlerError.not_callable(handler)
    return positive("limit", limit), seconds("lease", lease)


def _is_async(handler: object) -> bool:
    while hasattr(handler, "func"):  # of functools.partial
        handler = handler.func
    called = getattr(type(handler), "__call__", None)  # noqa: B004  # what is called, not whether it can be
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(called)


def _refuse_awaitable(given: object) -> None:
    """A handler that looked like any other may still give something to await."""
    if inspect.isawaitable(given):
        if inspect.iscoroutine(given):
            given.close()
        raise HandlerError.is_async()
