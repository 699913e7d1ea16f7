"""Which algorithm suits what is there: each that may is tried out on a sample, and the quickest is picked.

What a sample of subscriptions costs an event is measured at two sizes, and from how it grows between them follows
what all would cost. Nobody has to know what each algorithm is good at: only which are worth a trial. The one in
use takes part twice: as it is, and as it would be if it were made anew for the events that have come.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from harken.errors import CapacityError
from harken.matching.contract import Learning, Slots
from harken.matching.encoding.matcher import EncodedMatcher
from harken.matching.events.batch import EventBatch
from harken.matching.events.columns import rows_of

SAMPLES = (2_500, 10_000)
"""Subscriptions that are tried out: fewer first, then more."""

ENOUGH_EVENTS, MOST_EVENTS = 32, 256
"""Events that a trial takes at least, and those that are kept for it."""

REPEATS, BRIEFLY = 3, 0.05
"""How often a sample is matched, at least, and for how many seconds at most: the quickest counts."""

WORTH = 1.25
"""How many times as fast something else has to be foreseen to be, to be moved to."""

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

    @property
    def pays(self) -> bool:
        """Whether what was picked is worth being made."""
        return WORTH * self.predicted.get(self.picked, math.inf) <= self.now

    def said(self) -> dict[str, object]:
        """For people to read."""
        return {
            "picked": self.picked,
            "subscriptions": self.subscriptions,
            "microseconds_per_event_before": round(self.now, 1),
            "microseconds_per_event": {name: round(cost, 1) for name, cost in self.predicted.items()},
        }


class EventSample:
    """Some events that were seen. Any thread may add to it: a few too many do no harm."""

    def __init__(self) -> None:
        self.batches: list[EventBatch] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, events: EventBatch) -> None:
        """Keep some of these, if there are not enough."""
        count = min(len(events), MOST_EVENTS - self._count)
        if count <= 0:
            return
        # From all over the batch, and copied: a slice would hold on to all of it.
        rows = np.linspace(0, len(events) - 1, count).astype(np.int64)
        if events.flat_rows is not None:
            kept = EventBatch([events.flat_rows[row] for row in rows.tolist()], {}, count)
        else:
            kept = EventBatch(None, {name: rows_of(each, rows) for name, each in events.columns.items()}, count)
        self._count += count
        self.batches.append(kept)


def worth_a_trial(current: EncodedMatcher) -> list[str]:
    """The families that may suit what an index holds."""
    return ["dynamic", "rapid"] if current.share_of_truths() >= MOSTLY else ["dynamic"]


def compare(
    families: Mapping[str, Callable[[], EncodedMatcher]],
    current: EncodedMatcher,
    slots: Slots,
    events: EventSample,
) -> Choice:
    """Try out families on a sample of what an index holds. Others may match meanwhile; nobody may change it."""
    chance = np.random.default_rng(len(slots))
    samples = [np.sort(chance.choice(slots, min(size, len(slots)), replace=False)) for size in SAMPLES]
    predicted = dict[str, float]()
    for name, make in families.items():
        try:
            few, many = (_cost(made_like(make, current, each, events.batches), events) for each in samples)
        except CapacityError:
            continue
        growth = math.log(many / few) / math.log(SAMPLES[1] / SAMPLES[0])
        predicted[name] = many * (len(slots) / SAMPLES[1]) ** min(max(growth, 0.0), 1.0)
    picked = min(predicted, key=lambda name: predicted[name])
    return Choice(picked, len(slots), _cost(current, events), predicted)


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


def _cost(matcher: EncodedMatcher, events: EventSample) -> float:
    """Microseconds that an event takes."""
    quickest, begin = math.inf, time.perf_counter()
    for repeat in range(100):
        start = time.perf_counter()
        for batch in events.batches:
            matcher.try_out(batch)
        quickest = min(quickest, time.perf_counter() - start)
        if repeat >= REPEATS and time.perf_counter() - begin > BRIEFLY:
            break
    return 1e6 * quickest / len(events)
