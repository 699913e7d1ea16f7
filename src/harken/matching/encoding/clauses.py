"""What algorithms share that keep clauses in one place, as lists of words, and what finds them in another."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from harken.matching.contract import Slots
from harken.matching.encoding.matcher import EncodedMatcher
from harken.matching.events.batch import EventBatch
from harken.matching.kernels.layout import Clauses, Events
from harken.matching.predicates.soundness import in_use
from harken.matching.saving import State
from harken.matching.structures.clauses import ClauseContents
from harken.matching.structures.kernels.clauses import EVERY
from harken.model.events import FlatEvent


class ClauseMatcher(EncodedMatcher):
    """Clauses by number, with their words and owners; how events find them is up to who inherits this."""

    def __init__(self) -> None:
        super().__init__()
        self._contents = ClauseContents()

    def match(self, event: FlatEvent) -> Slots:
        """Match one event."""
        return self.match_batch(EventBatch([event], {}, 1))[1]

    def _observe(self, events: Events) -> None:
        """Nothing here depends on what events look like."""

    def _have_slots(self, count: int) -> None:
        self._contents.have_slots(count)

    def _check_clauses(self, clauses: int, predicates: int) -> None:
        self._contents.check_room(clauses, predicates)

    def _read_clauses(self, slots: Slots) -> Clauses:
        return self._contents.read(slots)

    def _restore_contents(self, state: State, slots: Slots) -> None:
        """Hold the clauses that were saved, of these slots; ValueError if they are none."""
        self._contents.restore(state.part("contents"))
        used = in_use(slots, len(self._contents.arrays().head))
        self._predicates.check_uses(self._contents.checked(self._predicates.arrays().operator, used)[0])

    def _clauses_of(self, slot: int) -> list[list[int]]:
        return [predicates_of(words) for words in self._contents.lists_of(slot)]


def asked_by(words: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The predicates of many words."""
    return np.asarray(words[words != EVERY] - 1, np.int64)


def predicates_of(words: Iterable[int]) -> list[int]:
    """The predicates of words; that of a clause which asks nothing has none."""
    return [word - 1 for word in words if word != EVERY]
