"""The reference: every expression evaluated for every event. Slow, obvious, and the judge of the others.

It reads the expression trees themselves, not their normal or compiled form, so that it judges those too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harken.matching.contract import AccessPath, Incoming, Pairs, Slots, Stats
from harken.matching.events.batch import EventBatch
from harken.matching.events.mentions import Mentions
from harken.model.evaluation import truth
from harken.model.events import FlatEvent
from harken.model.expressions import Expression, predicates


class ReferenceMatcher:
    """A dictionary of expressions. Any number of threads may match at once while none adds or removes."""

    def __init__(self) -> None:
        self._expressions: dict[int, Expression] = {}
        self._mentions = Mentions()
        self._events = 0
        self._matches = 0

    def prepare(self, incoming: Incoming) -> None:
        """Have the expressions parsed."""
        _ = incoming.expressions

    def foresee(self) -> None:
        """There is nothing to arrange."""

    def add(self, slots: Slots, incoming: Incoming) -> None:
        """Keep the expressions. Linear in their number."""
        for slot, expression in zip(slots.tolist(), incoming.expressions, strict=True):
            self._expressions[slot] = expression
            for attribute in _attributes(expression):
                self._mentions.add(attribute)

    def remove(self, slots: Slots) -> None:
        """Drop the expressions. Linear in their number."""
        for slot in slots.tolist():
            expression = self._expressions.pop(slot)
            for attribute in _attributes(expression):
                self._mentions.drop(attribute)

    def rescue(self, broken: ReferenceMatcher, slots: Slots) -> None:
        """Take over the expressions. Linear in their number."""
        self.add(slots, Incoming.of([broken.expression(slot) for slot in slots.tolist()]))
        self._events, self._matches = broken._events, broken._matches

    def match(self, event: FlatEvent) -> Slots:
        """Evaluate all expressions. Linear in their number and size."""
        found = [slot for slot, expression in self._expressions.items() if truth(expression, event)]
        self._events += 1
        self._matches += len(found)
        return np.array(found, np.int64)

    def match_batch(self, events: EventBatch) -> Pairs:
        """`match`, event by event."""
        found = [self.match(event) for event in events.rows()]
        rows = np.repeat(np.arange(len(found), dtype=np.int64), [len(slots) for slots in found])
        return rows, np.concatenate([*found, np.zeros(0, np.int64)])

    @property
    def attributes(self) -> Mentions:
        """The attributes that some expression mentions."""
        return self._mentions

    def expression(self, slot: int) -> Expression:
        """The expression as it was written."""
        return self._expressions[slot]

    def access(self, slot: int) -> Sequence[AccessPath]:
        """None: every expression is evaluated for every event."""
        return ()

    def stats(self) -> Stats:
        """How many expressions there are and what was asked of them."""
        return {
            "subscriptions": len(self._expressions),
            "events": self._events,
            "matches": self._matches,
            "checks_per_event": len(self._expressions),
        }


def _attributes(expression: Expression) -> set[str]:
    return {predicate.attribute for predicate in predicates(expression)}
