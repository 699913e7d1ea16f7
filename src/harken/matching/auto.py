"""The default: a few subscriptions are simply evaluated, many are indexed."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import numpy as np
import pyarrow as pa

from harken.matching.contract import Incoming, Matcher, Pairs, Slots, Stats
from harken.matching.events import EventBatch
from harken.matching.reference import ReferenceMatcher
from harken.model.events import FlatEvent
from harken.model.expressions import Expression
from harken.model.limits import Limits
from harken.normal.compiled import CompiledBuilder
from harken.normal.form import normalise

SMALL = 1_000
"""Up to so many subscriptions, evaluating each is quicker than loading the kernels."""


_UNBOUNDED = Limits(max_clauses=2**31, max_work=2**62)
"""The engine has held the expressions to its own limits."""


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

    def add(self, slots: Slots, incoming: Incoming) -> None:
        """As the algorithm in use does; with too many for evaluating, those there are move into an index."""
        if self._few is not None:
            self._slots.update(slots.tolist())
            if len(self._slots) > self._small:
                self._move_into_index(self._few, self._slots.difference(slots.tolist()))
        self._matcher.add(slots, incoming)

    def _move_into_index(self, few: ReferenceMatcher, slots: set[int]) -> None:
        from harken.matching.dynamic import DynamicMatcher  # loads the kernels

        index = DynamicMatcher()
        known = sorted(slots)
        if known:
            expressions = [few.expression(slot) for slot in known]
            index.add(np.array(known, np.int64), Incoming(lambda: expressions, partial(_compiled, expressions)))
        self._matcher, self._few = index, None
        self._slots.clear()

    def remove(self, slots: Slots) -> None:
        """As the algorithm in use does. An index that has become small stays one."""
        self._matcher.remove(slots)
        self._slots.difference_update(slots.tolist())

    def match(self, event: FlatEvent) -> Slots:
        """As the algorithm in use does."""
        return self._matcher.match(event)

    def match_batch(self, events: EventBatch) -> Pairs:
        """As the algorithm in use does."""
        return self._matcher.match_batch(events)

    @property
    def attributes(self) -> Collection[str]:
        """The attributes that some subscription mentions."""
        return self._matcher.attributes

    def expression(self, slot: int) -> Expression:
        """As the algorithm in use knows it."""
        return self._matcher.expression(slot)

    def stats(self) -> Stats:
        """Those of the algorithm in use."""
        return self._matcher.stats()


def _compiled(expressions: list[Expression]) -> pa.Table:
    builder = CompiledBuilder()
    for at, expression in enumerate(expressions):
        builder.add(at, normalise(expression, _UNBOUNDED))
    return builder.finish()
