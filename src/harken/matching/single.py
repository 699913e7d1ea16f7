"""Matching one event at a time: everything that can be prepared is, and lies where the kernel expects it."""

from __future__ import annotations

import numba
import numpy as np

from harken.matching.contract import Slots
from harken.matching.encoding import Encoder
from harken.matching.kernels import addressing
from harken.matching.kernels.layout import MISSING, Blocks, Events, Predicates, Tables
from harken.matching.kernels.matching import match_events
from harken.matching.workspace import Workspace
from harken.model.events import FlatEvent

FIRST_ALSO = 64
"""Predicates found true by tests that there is room for at first."""

_NONE = np.zeros(0, np.int64)


class SingleMatching:
    """Matches one event after the other in one thread, against one state of an index."""

    def __init__(
        self, predicates: Predicates, tables: Tables, blocks: Blocks, encoder: Encoder, workspace: Workspace
    ) -> None:
        self._index = predicates, tables, blocks
        self._encoder = encoder
        self.workspace = workspace
        code, label = encoder.empty(1)
        self.events: Events = encoder.events(code, label, [])
        """The event that was matched last."""
        self._code, self._label = memoryview(code[0]), memoryview(label[0])
        self._prepare(FIRST_ALSO)

    def _prepare(self, also: int) -> None:
        """Tell the kernel where everything is."""
        self.events = self.events._replace(also=np.zeros(also, np.int32))
        structures = (*self._index, self.events, self.workspace.scratch, self.workspace.results)
        self._addresses = addressing.addresses_of([array for structure in structures for array in structure])

    def match(self, event: FlatEvent, ahead: bool) -> Slots:
        """The slots that match, each perhaps several times."""
        events, also = self.events, []  # type: ignore[var-annotated]
        events.code.fill(MISSING)
        self._encoder.reader.read(event, self._code, self._label, also)
        if also:
            if len(also) > len(events.also):
                self._prepare(2 * len(also))
                events = self.events
            events.also[: len(also)] = also
        events.also_first[1] = len(also)
        reached, count = self._match_events(ahead)
        while not reached:
            self.workspace.have_more_results()
            self._prepare(len(events.also))
            self.events.also[: len(also)] = also
            reached, count = self._match_events(ahead)
        return self.workspace.results.slot[:count].copy() if count else _NONE

    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # set from the environment

        def _match_events(self, ahead: bool) -> tuple[int, int]:
            scratch, results = self.workspace.scratch, self.workspace.results
            return match_events(*self._index, self.events, 0, scratch, ahead, results)

    else:

        def _match_events(self, ahead: bool) -> tuple[int, int]:
            return addressing.match_at(self._addresses, ahead)
