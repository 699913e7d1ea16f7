"""Matching one event at a time: everything that can be prepared is, and lies where the kernel expects it."""

from __future__ import annotations

import numpy as np

from harken.matching.contract import Slots
from harken.matching.encoding import Encoder
from harken.matching.kernels.addressing import Arguments
from harken.matching.kernels.layout import MISSING, Blocks, Events, Predicates, Scratch, Tables
from harken.matching.workspace import first_results, more_results
from harken.model.events import FlatEvent

FIRST_ALSO = 64
"""Predicates found true by tests that there is room for at first."""

_NONE = np.zeros(0, np.int64)


class SingleMatching:
    """Matches one event after the other in one workspace, against one state of an index.

    Shares the scratch of the workspace, and has events and results of its own: batches may replace theirs.
    """

    def __init__(
        self, predicates: Predicates, tables: Tables, blocks: Blocks, encoder: Encoder, scratch: Scratch
    ) -> None:
        self._encoder = encoder
        code, label = encoder.empty(1)
        events = encoder.events(code, label, [])._replace(also=np.zeros(FIRST_ALSO, np.int32))
        self._code, self._label = memoryview(code[0]), memoryview(label[0])
        self._arguments = Arguments(predicates, tables, blocks, events, scratch, first_results())

    @property
    def events(self) -> Events:
        """The event that was matched last."""
        return self._arguments.events

    def match(self, event: FlatEvent, ahead: bool) -> Slots:
        """The slots that match, each perhaps several times."""
        arguments, also = self._arguments, []  # type: ignore[var-annotated]
        events = arguments.events
        events.code.fill(MISSING)
        self._encoder.reader.read(event, self._code, self._label, also)
        if also:
            if len(also) > len(events.also):
                arguments.events = events = events._replace(also=np.zeros(2 * len(also), np.int32))
            events.also[: len(also)] = also
        events.also_first[1] = len(also)
        reached, count = arguments.match(ahead)
        while not reached:
            arguments.results = more_results(arguments.results)
            reached, count = arguments.match(ahead)
        return arguments.results.slot[:count].copy() if count else _NONE
