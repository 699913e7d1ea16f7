"""The default: a few subscriptions are simply evaluated, many are indexed."""

from __future__ import annotations

from collections.abc import Sequence
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
from harken.matching.parallel.options import Parallel
from harken.matching.reference import ReferenceMatcher
from harken.matching.saving import State
from harken.model.events import FlatEvent
from harken.model.expressions import Expression

if TYPE_CHECKING:
    from harken.matching.clusters.dynamic import DynamicMatcher

SMALL = 1_000
"""Up to so many subscriptions, evaluating each is quicker than loading the kernels."""


class AutoMatcher:
    """Evaluates each expression while they are few; from then on, clusters dynamically.

    Any number of threads may match at once while none adds or removes.
    """

    def __init__(self, *, small: int = SMALL) -> None:
        self._small = small
        self._few: ReferenceMatcher | None = ReferenceMatcher()
        self._matcher: Matcher = self._few
        self._slots: set[int] = set()

    @property
    def picked(self) -> str:
        """The algorithm in use."""
        return "dynamic" if self._few is None else "reference"

    def prepare(self, incoming: Incoming) -> None:
        """As the algorithm does that will be in use."""
        if self._few is None:
            self._matcher.prepare(incoming)
        elif len(self._slots) + len(incoming) - incoming.leaving > self._small:
            _new_index().prepare(incoming)
        else:
            self._few.prepare(incoming)

    def add(self, slots: Slots, incoming: Incoming) -> None:
        """As the algorithm in use does; with too many for evaluating, those there are move into an index."""
        if self._few is not None:
            if len(self._slots) + len(slots) - incoming.leaving > self._small:
                self._move_into_index(self._few, self._slots)
            else:
                self._slots.update(slots.tolist())
        self._matcher.add(slots, incoming)

    def _move_into_index(self, few: ReferenceMatcher, slots: set[int]) -> None:
        index = _new_index()
        known = sorted(slots)
        if known:
            index.add(np.array(known, np.int64), Incoming.of([few.expression(slot) for slot in known]))
        self._matcher, self._few, self._slots = index, None, set()

    def remove(self, slots: Slots) -> None:
        """As the algorithm in use does. An index that has become small stays one."""
        self._matcher.remove(slots)
        self._slots.difference_update(slots.tolist())

    def rescue(self, broken: AutoMatcher, slots: Slots) -> None:
        """As the algorithm in use there does."""
        if broken._few is None:
            self._matcher, self._few = _new_index(), None
        else:
            self._slots.update(slots.tolist())
        self._matcher.rescue(broken._matcher, slots)

    def match(self, event: FlatEvent) -> Slots:
        """As the algorithm in use does."""
        return self._matcher.match(event)

    def match_batch(self, events: EventBatch) -> Pairs:
        """As the algorithm in use does."""
        return self._matcher.match_batch(events)

    def check_parallel(self, parallel: Parallel) -> None:
        """Threads can match in every way, once there is an index."""

    def match_batch_in_parallel(self, events: EventBatch, parallel: Parallel, door: Door | None = None) -> Pairs:
        """As the algorithm in use does; a few expressions are evaluated by one thread."""
        if isinstance(self._matcher, InParallel):
            return self._matcher.match_batch_in_parallel(events, parallel, door)
        return self._matcher.match_batch(events)

    def foresee(self) -> None:
        """As the algorithm in use does."""
        self._matcher.foresee()

    def learn(self, events: EventBatch) -> None:
        """As the algorithm in use does; evaluating each expression, there is nothing to learn."""
        if isinstance(self._matcher, Learning):
            self._matcher.learn(events)

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
        """Those of the algorithm in use."""
        return self._matcher.stats()

    def state(self) -> State | None:
        """That of the index, under its name; none without one."""
        matcher = self._matcher
        state = matcher.state() if isinstance(matcher, Saveable) else None
        return None if state is None else State.of_parts({self.picked: state})

    def restore(self, state: State, slots: Slots) -> None:
        """Have an index, however few subscriptions there are now."""
        index = _new_index()
        index.restore(state.part("dynamic"), slots)
        self._matcher, self._few = index, None


def _new_index() -> DynamicMatcher:
    from harken.matching.clusters.dynamic import DynamicMatcher  # loads the kernels

    return DynamicMatcher()
