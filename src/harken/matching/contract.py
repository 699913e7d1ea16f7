"""The contract between the engine and a matching algorithm.

The engine checks input, owns ids, owners and validity, and gives each subscription a **slot**: a small
integer that is free to be reused after removal. A matcher knows only slots and what they stand for.

Laws that every matcher obeys (tests/contract checks them for all that are registered): it agrees with the
reference; a batch gives what a loop gives; the order of additions is irrelevant; adding and removing leaves
no trace; saving and loading neither; removing one subscription never disturbs another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.matching.events import EventBatch
from harken.model.events import FlatEvent
from harken.model.expressions import Expression

Slots: TypeAlias = npt.NDArray[np.int64]
Pairs: TypeAlias = tuple[npt.NDArray[np.int64], Slots]
"""Matches of a batch: the event's row and the subscription's slot, pair by pair, events ascending."""

Stats: TypeAlias = Mapping[str, object]


class Incoming:
    """Subscriptions about to be added, as expressions or in compiled form: whichever a matcher reads.

    Both are made only when asked for. Subscription i of either goes to the i-th slot.
    """

    def __init__(self, expressions: Callable[[], Sequence[Expression]], compiled: Callable[[], pa.Table]) -> None:
        self._make_expressions = expressions
        self._make_compiled = compiled

    @cached_property
    def expressions(self) -> Sequence[Expression]:
        """The expression trees, as written where they were written."""
        return self._make_expressions()

    @cached_property
    def compiled(self) -> pa.Table:
        """The table described in docs/compiled-form.md."""
        return self._make_compiled()


class Matcher(Protocol):
    """A matching algorithm. Unless its own documentation says more, calls must not run at the same time."""

    def add(self, slots: Slots, incoming: Incoming) -> None:
        """Take in subscriptions under slots that are not in use."""

    def remove(self, slots: Slots) -> None:
        """Forget the subscriptions of these slots, all of which are in use."""

    def match(self, event: FlatEvent) -> Slots:
        """The slots whose subscriptions the event satisfies, in any order, each once."""

    def match_batch(self, events: EventBatch) -> Pairs:
        """All matches of all events of a batch."""

    @property
    def attributes(self) -> Collection[str]:
        """The attributes that some subscription mentions."""

    def expression(self, slot: int) -> Expression:
        """What the subscription of this slot asks for, as it is known here."""

    def stats(self) -> Stats:
        """What the algorithm holds and has done, for people to read."""
