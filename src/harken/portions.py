"""Work done in portions, between which others come in: how it is told apart, and how much is done at once.

Such work is a generator. Whoever runs it (`locking.Door.in_portions`) goes on to the next `yield` either alone,
while nobody reads what the work changes, or beside readers; which of the two comes next, each `yield` says.

Most changes are small. So what can be done in one portion is done when it is called, and there are no portions
left to yield: a generator for each step would cost more than the steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import TypeAlias

PORTION = 0.4e-3
"""Seconds that a portion is to take, so that nobody waits for a millisecond, with what it costs to come and go."""

FEW = 128
"""So many items are done in one portion: portions have costs of their own, which small changes are spared."""

FIRST = 16
"""Items of the first portion, before anything is known of what one takes."""

LEAST = 4
"""Items of a portion, whatever they take."""

MOST_FASTER = 4.0
"""By how much a portion may be larger than the one before, however quick that was."""


class Needs(Enum):
    """What the next portion needs."""

    ALONE = "nobody may read"
    BESIDE = "it changes nothing that others read"


ALONE, BESIDE = Needs.ALONE, Needs.BESIDE

Portions: TypeAlias = Iterable[Needs]
"""Work in portions, to be gone through at once.

The first one is done alone; what is yielded says what the next one needs.
"""

DONE: Portions = ()
"""What was done when it was called."""


class Pace:
    """How much to do at once: what takes as long as a portion should, or all of it if nobody has to wait."""

    def __init__(self, seconds: float | None = PORTION) -> None:
        self.seconds = seconds
        """What a portion should take; None for all at once."""
        self.took = 0.0
        """What the last portion took alone. Whoever runs the portions says so."""

    @property
    def briefly(self) -> float:
        """Seconds that may have passed when another portion begins at once."""
        return math.inf if self.seconds is None else self.seconds / 2

    def is_at_once(self, count: int) -> bool:
        """Whether so many items are done in one portion, whatever they take."""
        return self.seconds is None or count <= FEW

    def parts(self, count: int) -> Iterator[slice]:
        """So many items, part by part: with one yield between two, each is a portion of its own."""
        done, size = 0, max(1, count) if self.is_at_once(count) else FIRST
        while done < count:
            part = slice(done, min(count, done + size))
            yield part
            done = part.stop
            if self.seconds is not None:
                size = max(LEAST, int(size * min(MOST_FASTER, self.seconds / max(self.took, 1e-9))))


AT_ONCE = Pace(None)
"""All in one portion."""


def done_at_once(portions: Portions) -> None:
    """Do all of it, while nobody else is there."""
    for _ in portions:
        pass


def in_parts(count: int, pace: Pace, work: Callable[[slice], None]) -> Portions:
    """Do some work for so many items, part by part, each in a portion of its own."""
    if not pace.is_at_once(count):
        return _part_by_part(count, pace, work)
    if count:
        work(slice(0, count))
    return DONE


def _part_by_part(count: int, pace: Pace, work: Callable[[slice], None]) -> Portions:
    for part in pace.parts(count):
        work(part)
        if part.stop < count:
            yield ALONE
