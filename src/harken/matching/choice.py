"""Which algorithm suits what is there: each that may is tried out on a sample, and the quickest is picked.

What a sample of subscriptions costs an event is measured at two sizes, and from how it grows between them follows
what all would cost. Nobody has to know what each algorithm is good at: only which are worth a trial. The one in
use takes part twice: as it is, and as it would be if it were made anew for the events that have come. What is
picked is then made of all subscriptions, and has to prove itself before it takes the place of what was there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from harken.errors import CapacityError
from harken.matching.contract import Learning, Slots
from harken.matching.encoding.matcher import EncodedMatcher
from harken.matching.events.batch import EventBatch

SAMPLE, PART = 10_000, 4
"""Subscriptions that are tried out; and one in so many of these, before."""

REPEATS, MOST_REPEATS, BRIEFLY = 3, 20, 1.0
"""How often a sample is matched, at least and at most, and for how many seconds about: the quickest counts."""

LEAST = 0.01
"""Microseconds that an event takes at least, whatever the clock says."""

WORTH = 1.25
"""How many times as fast something else has to be foreseen to be, to be made."""

PROVEN = 1.1
"""How many times as fast it has to be when it is made, to be moved to."""

MOSTLY = 0.5
"""The part of what clauses ask that has to be of truths for search trees to be worth a trial."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What was compared, and what came out."""

    picked: str
    """The family that is foreseen to be the quickest."""
    subscriptions: int
    """How many there were."""
    now: float
    """Microseconds that an event took."""
    predicted: Mapping[str, float]
    """By family: microseconds that an event is foreseen to take."""
    made: float | None = None
    """Microseconds that an event takes with what was picked, once it was made."""
    is_worth_a_look: bool = False
    """Whether it is to be made whatever was foreseen: what knowing events gains, a sample need not show."""

    @property
    def pays(self) -> bool:
        """Whether what was picked is worth being made, or, when it is, being moved to."""
        if self.made is not None:
            return PROVEN * self.made <= self.now
        return self.is_worth_a_look or WORTH * self.predicted.get(self.picked, math.inf) <= self.now

    def proven(self, current: EncodedMatcher, made: EncodedMatcher, events: Sequence[EventBatch]) -> Choice:
        """The same, with what was picked compared as it is with what is in use."""
        now, after = _costs([current, made], events)
        return replace(self, now=now, made=after)

    def said(self) -> dict[str, object]:
        """For people to read."""
        made = {} if self.made is None else {"microseconds_per_event_when_made": round(self.made, 1)}
        return {
            "picked": self.picked,
            "subscriptions": self.subscriptions,
            "microseconds_per_event_before": round(self.now, 1),
            "microseconds_per_event": {name: round(cost, 1) for name, cost in self.predicted.items()},
            **made,
        }


def worth_a_trial(current: EncodedMatcher) -> list[str]:
    """The families that may suit what an index holds."""
    return ["dynamic", "rapid"] if current.share_of_truths() >= MOSTLY else ["dynamic"]


def compare(
    families: Mapping[str, Callable[[], EncodedMatcher]],
    current: EncodedMatcher,
    slots: Slots,
    events: Sequence[EventBatch],
) -> Choice | None:
    """Try out families on a sample of what an index holds. Others may match meanwhile; nobody may change it.

    None if there is nothing to compare.
    """
    chance, size = np.random.default_rng(len(slots)), min(SAMPLE, len(slots))
    many = chance.choice(slots, size, replace=False)
    few = np.sort(many[: max(1, size // PART)])
    tried = dict[str, list[EncodedMatcher]]()
    for name, make in families.items():
        with suppress(CapacityError):
            tried[name] = [made_like(make, current, each, events) for each in (few, np.sort(many))]
    if not tried:
        return None
    now, *costs = _costs([current, *(each for both in tried.values() for each in both)], events)
    predicted = {
        name: cost * (len(slots) / size) ** min(max(math.log(cost / before) / math.log(PART), 0.0), 1.0)
        for name, before, cost in zip(tried, costs[::2], costs[1::2], strict=True)
    }
    return Choice(min(predicted, key=lambda name: predicted[name]), len(slots), now, predicted)


def made_like(
    make: Callable[[], EncodedMatcher], current: EncodedMatcher, slots: Slots, events: Iterable[EventBatch]
) -> EncodedMatcher:
    """A matcher of another family that holds the same, arranged for such events."""
    made = make()
    made.take_over(current, slots)
    if isinstance(made, Learning):
        for batch in events:
            made.learn(batch)
    return made


def _costs(matchers: Sequence[EncodedMatcher], events: Sequence[EventBatch]) -> list[float]:
    """Microseconds that an event takes with each, in turns: if the machine is slow for a while, it is for all.

    Of this thread: others, who match meanwhile or are no business of ours, take turns on the cores with it.
    """
    quickest, begin = [math.inf] * len(matchers), time.perf_counter()
    for repeat in range(MOST_REPEATS):
        for at, matcher in enumerate(matchers):
            start = time.thread_time()
            for batch in events:
                matcher.try_out(batch)
            quickest[at] = min(quickest[at], time.thread_time() - start)
        if repeat + 1 >= REPEATS and time.perf_counter() - begin > BRIEFLY:
            break
    count = sum(map(len, events))
    return [max(1e6 * each / count, LEAST) for each in quickest]
