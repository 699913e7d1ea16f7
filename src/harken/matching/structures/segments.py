"""Structures that are made once, for items that come and go (the logarithmic method of Bentley and Saxe 1980).

Items are in **segments**, each a structure of its own that is never added to; the latest few **wait** outside.
When too many wait they become a segment, together with those that are not much larger: so each item is built in a
few times, as many as there are doublings, and there are no more segments than that. Who goes is struck out.

A large segment takes long to build. So what is to be asked is made beside those who ask, and had in one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

WAITING = 64
"""Items that may wait: to look at so many one by one takes no longer than to ask a structure."""

SIMILAR = 2
"""A segment of no more than so many times the items that are built in is built in too."""

WORN = 2
"""A segment of which no more than one item in so many is left is built anew."""

STRUCK = -1
"""Instead of a number: the item has gone."""

Item = TypeVar("Item")
Numbers: TypeAlias = npt.NDArray[np.int64]


class Built(Protocol):
    """A structure of items, which it counts from 0."""

    @property
    def nbytes(self) -> int:
        """Bytes taken."""


Structure = TypeVar("Structure", bound=Built)


class Segment(Generic[Item, Structure]):
    """A structure, and under which numbers its items are known."""

    def __init__(self, numbers: Sequence[int], items: Sequence[Item], structure: Structure) -> None:
        self.number: Numbers = np.array(numbers, np.int64)
        """By item: its number, or STRUCK."""
        self.items = items
        self.structure = structure
        self.left = len(items)
        """How many have not gone."""

    def live(self) -> dict[int, Item]:
        """The items that have not gone."""
        pairs = zip(self.number.tolist(), self.items, strict=True)
        return {number: item for number, item in pairs if number != STRUCK}

    @property
    def is_worn(self) -> bool:
        """Whether so many have gone that it is to be built anew."""
        return WORN * self.left <= len(self.items)


@dataclass(frozen=True)
class Settled(Generic[Item, Structure]):
    """What is to be asked from now on: segments, and those that wait."""

    segments: list[Segment[Item, Structure]]
    waiting: dict[int, Item]


class Segmented(Generic[Item, Structure]):
    """Items under numbers of their user. Changes must not run beside anything else."""

    def __init__(
        self, build: Callable[[Sequence[Item]], Structure], weight: Callable[[Item], int], most: int
    ) -> None:
        self._build, self._weight, self._most = build, weight, most
        self.waiting: dict[int, Item] = {}
        self.segments: list[Segment[Item, Structure]] = []
        self._stands: dict[int, tuple[Segment[Item, Structure], int]] = {}

    def __len__(self) -> int:
        return len(self.waiting) + len(self._stands)

    @property
    def nbytes(self) -> int:
        """Bytes taken by the structures."""
        return sum(each.structure.nbytes + each.number.nbytes for each in self.segments)

    def add(self, number: int, item: Item) -> None:
        """Let an item wait under a number that is not in use; `settle` is to follow."""
        self.waiting[number] = item

    def discard(self, number: int) -> None:
        """Let an item go."""
        if self.waiting.pop(number, None) is None:
            segment, at = self._stands.pop(number)
            segment.number[at] = STRUCK
            segment.left -= 1
            if not segment.left:
                self.segments.remove(segment)

    @property
    def is_settled(self) -> bool:
        """Whether few wait, and no segment is worn."""
        return len(self.waiting) <= WAITING and not any(each.is_worn for each in self.segments)

    def settled(self) -> Settled[Item, Structure]:
        """Build those that wait into a segment, if they are many, and what is left of segments that are worn.

        Others may ask meanwhile. Nothing may come or go before this is had.
        """
        if self.is_settled:
            return Settled(self.segments, self.waiting)
        worn = [each for each in self.segments if each.is_worn]
        items, kept = dict(self.waiting), [each for each in self.segments if each not in worn]
        for each in worn:
            items.update(each.live())
        if len(items) <= WAITING:
            for number in items:
                self._stands.pop(number, None)
            return Settled(kept, items)
        self._take_similar(kept, items)
        for portion in self._portions(items):
            numbers, held = list(portion), list(portion.values())
            made = Segment(numbers, held, self._build(held))
            self._stands.update({number: (made, at) for at, number in enumerate(numbers)})
            kept.append(made)
        return Settled(kept, {})

    def have(self, settled: Settled[Item, Structure]) -> Settled[Item, Structure]:
        """Have what was just settled; what was there. To free that takes long, too."""
        before = Settled(self.segments, self.waiting)
        self.segments, self.waiting = settled.segments, settled.waiting
        return before

    def _portions(self, items: dict[int, Item]) -> Iterator[dict[int, Item]]:
        """Items in as many portions as it takes for none to be too much for one structure."""
        portion, weight = dict[int, Item](), 0
        for number, item in items.items():
            weight += self._weight(item)
            if portion and weight > self._most:
                yield portion
                portion, weight = {}, self._weight(item)
            portion[number] = item
        yield portion

    def _take_similar(self, kept: list[Segment[Item, Structure]], items: dict[int, Item]) -> None:
        """Take items from segments that are not much larger, as long as they are not too much for one."""
        kept.sort(key=lambda each: -each.left)
        weight = sum(map(self._weight, items.values()))
        while kept and kept[-1].left <= SIMILAR * len(items):
            more = kept[-1].live()
            weight += sum(map(self._weight, more.values()))
            if weight > self._most:
                break
            items.update(more)
            kept.pop()


def pairs_in(
    segmented: Segmented[Item, Structure], find: Callable[[Structure], tuple[Numbers, Numbers]]
) -> tuple[Numbers, Numbers]:
    """What `find` finds in all structures, as pairs of what was asked for and the number of an item."""
    which, numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for segment in segmented.segments:
        asked, items = find(segment.structure)
        found = segment.number[items]
        which.append(asked[found != STRUCK])
        numbers.append(found[found != STRUCK])
    return np.concatenate(which), np.concatenate(numbers)


def numbers_in(segmented: Segmented[Item, Structure], find: Callable[[Structure], list[int]]) -> list[int]:
    """What `find` finds in all structures: the numbers of items."""
    found = [
        segment.number[items].tolist() for segment in segmented.segments if (items := find(segment.structure))
    ]
    return [number for numbers in found for number in numbers if number != STRUCK]
