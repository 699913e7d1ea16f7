"""The default: a few subscriptions are simply evaluated, many are indexed as suits them and the events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from harken.locking import Door
from harken.matching.contract import (
    AccessPath,
    Incoming,
    InParallel,
    Learning,
    Matcher,
    Pairs,
    Saveable,
    Slots,
    Stats,
)
from harken.matching.events.batch import EventBatch
from harken.matching.events.mentions import Mentions
from harken.matching.growing import GrowingArray
from harken.matching.parallel.options import Parallel
from harken.matching.reference import ReferenceMatcher
from harken.matching.saving import State
from harken.model.arguments import checked_count
from harken.model.events import FlatEvent
from harken.model.expressions import Expression

if TYPE_CHECKING:
    from harken.matching.choice import Choice, EventSample
    from harken.matching.encoding.matcher import EncodedMatcher

SMALL = 1_000
"""Up to so many subscriptions, evaluating each is quicker than loading the kernels."""

MANY = 20_000
"""From so many subscriptions on, and again whenever they have doubled, families are compared."""

_FAMILIES = {
    "dynamic": "harken.matching.clusters.dynamic:DynamicMatcher",
    "rapid": "harken.matching.trees.rapid:RapidMatcher",
}
"""What an index can be; the first one is what it is at first."""

FIRST = next(iter(_FAMILIES))


class AutoMatcher:
    """Evaluates each expression while they are few; from then on, clusters dynamically, or as suits them better.

    With `many` subscriptions, and whenever they have doubled since, those algorithms are compared that may suit
    what is asked, on a sample of the subscriptions and of the events that came. Should another one, or the same
    made anew for such events, be foreseen to be much quicker, all move there: in turn with changes, while others
    match. `stats` shows what was compared.

    Any number of threads may match at once while none adds or removes.
    """

    def __init__(self, *, small: int = SMALL, many: int = MANY) -> None:
        self._small, self._many = checked_count("small", small), checked_count("many", many)
        self._few: ReferenceMatcher | None = ReferenceMatcher()
        self._matcher: Matcher = self._few
        self._in_use = GrowingArray(np.bool_)
        """By slot: whether it is in use."""
        self._count = 0
        self.picked = "reference"
        """The algorithm in use."""
        self.is_due = False
        """Whether it is time for a turn with changes, though nobody changes anything."""
        self._events: EventSample | None = None
        self._compared = 0
        """How many subscriptions there were when families were compared, or were to be."""
        self._choice: Choice | None = None
        self._next: EncodedMatcher | None = None
        """What holds the same as the matcher in use, and is to take its place with the next change."""
        self._needs_clusters = False

    # ---------------------------------------------------------------- changes

    def prepare(self, incoming: Incoming) -> None:
        """As the algorithm does that will be in use."""
        if self._few is not None and self._outgrows(len(incoming), incoming):
            _family(FIRST)().prepare(incoming)
        else:
            self._matcher.prepare(incoming)

    def _outgrows(self, coming: int, incoming: Incoming) -> bool:
        """Whether there will be too many for evaluating each."""
        return self._count + coming - incoming.leaving > self._small

    def foresee(self) -> None:
        """As the algorithm in use does; if it is time, compare families too, and make what is better."""
        self._next = None
        self._matcher.foresee()
        if self._is_time():
            self._compare()

    def add(self, slots: Slots, incoming: Incoming) -> None:
        """As the algorithm in use does; with too many for evaluating, those there are move into an index."""
        self._move()
        if self._few is not None and self._outgrows(len(slots), incoming):
            self._move_into_index(self._few)
        self._matcher.add(slots, incoming)
        self._in_use.grow_to(int(slots.max(initial=-1)) + 1)
        self._in_use.values[slots] = True
        self._count += len(slots)

    def _move_into_index(self, few: ReferenceMatcher) -> None:
        index, known = _family(FIRST)(), self._slots()
        if len(known):
            index.add(known, Incoming.of([few.expression(slot) for slot in known.tolist()]))
        self._become(FIRST, index)

    def remove(self, slots: Slots) -> None:
        """As the algorithm in use does. An index that has become small stays one."""
        self._move()
        self._matcher.remove(slots)
        self._in_use.values[slots] = False
        self._count -= len(slots)

    def learn(self, events: EventBatch) -> None:
        """As the algorithm in use does, and with enough events compare families.

        Evaluating each expression, there is nothing to learn. Of no events, all that happens is what was foreseen.
        """
        self._move()
        if self._few is not None or not len(events):
            return
        self._keep(events)
        if self._is_time():
            self._compare()
            self._move()
        if isinstance(self._matcher, Learning):
            self._matcher.learn(events)

    def rescue(self, broken: AutoMatcher, slots: Slots) -> None:
        """As the algorithm in use there does."""
        if broken._few is None:
            self._become(broken.picked, _family(broken.picked)())
        self._matcher.rescue(broken._matcher, slots)
        self._hold(slots)
        self._events, self._compared, self._choice = broken._events, broken._compared, broken._choice
        self._needs_clusters = broken._needs_clusters

    def _become(self, name: str, matcher: EncodedMatcher) -> None:
        self._matcher, self._few, self.picked = matcher, None, name

    def _hold(self, slots: Slots) -> None:
        self._in_use.grow_to(int(slots.max(initial=-1)) + 1)
        self._in_use.values[slots] = True
        self._count = len(slots)

    def _slots(self) -> Slots:
        return np.flatnonzero(self._in_use.values)

    # ---------------------------------------------------------------- choosing

    def _is_time(self) -> bool:
        """Whether there are so many more subscriptions, and events enough, that families should be compared."""
        from harken.matching.choice import ENOUGH_EVENTS  # which loads the kernels

        has_grown = self._few is None and self._count >= max(self._many, 2 * self._compared)
        return has_grown and self._events is not None and len(self._events) >= ENOUGH_EVENTS

    def _compare(self) -> None:
        """Compare the families that may suit, and make the one that is much better, if one is."""
        from harken.matching.choice import compare, made_like, worth_a_trial

        slots, events = self._slots(), self._events
        current: EncodedMatcher = self._matcher  # type: ignore[assignment]  # all families are
        assert events is not None
        self._compared, self.is_due = len(slots), False
        if self._needs_clusters and self.picked != FIRST:
            return
        families = {
            name: _family(name) for name in worth_a_trial(current) if name == FIRST or not self._needs_clusters
        }
        choice = compare(families, current, slots, events)
        if choice.pays:
            self._next = made_like(families[choice.picked], current, slots, events.batches)
        self._choice = choice

    def _move(self) -> None:
        """Let what was made take the place of the matcher in use."""
        if self._next is not None and self._choice is not None:
            self._next.count_on_from(self._matcher)  # type: ignore[arg-type]  # others have matched meanwhile
            self._become(self._choice.picked, self._next)
            self._next = None

    def _keep(self, events: EventBatch) -> None:
        """Keep some events, if families are to be compared for them and there are not enough yet."""
        from harken.matching.choice import MOST_EVENTS, EventSample

        sample = self._events
        if sample is None:
            sample = self._events = EventSample()
        if len(sample) < MOST_EVENTS:
            sample.add(events)

    def _see(self, events: EventBatch) -> None:
        """Take note of events that came, if there is anything to choose."""
        if self._few is None and self._count >= max(self._many, 2 * self._compared):
            self._keep(events)
            if self._is_time() and not self.is_due:
                self.is_due = True

    # ---------------------------------------------------------------- matching

    def match(self, event: FlatEvent) -> Slots:
        """As the algorithm in use does."""
        if self._count >= self._many and self._count >= 2 * self._compared:
            self._see(EventBatch([event], {}, 1))
        return self._matcher.match(event)

    def match_batch(self, events: EventBatch) -> Pairs:
        """As the algorithm in use does."""
        self._see(events)
        return self._matcher.match_batch(events)

    def check_parallel(self, parallel: Parallel) -> None:
        """Threads can match in every way, once there is an index; if together on one event, it has clusters."""
        self._needs_clusters |= parallel.mode != "me-ip"

    def match_batch_in_parallel(self, events: EventBatch, parallel: Parallel, door: Door | None = None) -> Pairs:
        """As the algorithm in use does; a few expressions are evaluated by one thread.

        One without clusters has each thread take events of its own, whatever was asked for.
        """
        self._see(events)
        if not isinstance(self._matcher, InParallel):
            return self._matcher.match_batch(events)
        if self.picked != FIRST and parallel.mode != "me-ip":
            parallel = replace(parallel, mode="me-ip", group=None, target_latency_ms=None)
        return self._matcher.match_batch_in_parallel(events, parallel, door)

    # ---------------------------------------------------------------- what is known

    @property
    def attributes(self) -> Mentions:
        """The attributes that some subscription mentions."""
        return self._matcher.attributes

    def expression(self, slot: int) -> Expression:
        """As the algorithm in use knows it."""
        return self._matcher.expression(slot)

    def access(self, slot: int) -> Sequence[AccessPath]:
        """As the algorithm in use says."""
        return self._matcher.access(slot)

    def stats(self) -> Stats:
        """Those of the algorithm in use, and what was compared to pick it."""
        compared = {} if self._choice is None else {"compared": self._choice.said()}
        return {**self._matcher.stats(), **compared}

    def state(self) -> State | None:
        """That of the index, under its name; none without one."""
        matcher = self._matcher
        state = matcher.state() if isinstance(matcher, Saveable) else None
        return None if state is None else State.of_parts({self.picked: state})

    def restore(self, state: State, slots: Slots) -> None:
        """Have an index, however few subscriptions there are now, of the family that it was."""
        name = next((each for each in _FAMILIES if state.has_part(each)), FIRST)
        index = _family(name)()
        index.restore(state.part(name), slots)
        self._become(name, index)
        self._hold(slots)


def _family(name: str) -> Callable[[], EncodedMatcher]:
    """What makes an empty matcher of a family. Loads its kernels."""
    module, _, attribute = _FAMILIES[name].partition(":")
    made: Callable[[], EncodedMatcher] = getattr(import_module(module), attribute)
    return made
