"""Matching one event at a time: everything that can be prepared is, and lies where the kernel expects it."""

from __future__ import annotations

import numpy as np

from harken.matching.clusters.kernels.addressing import Arguments
from harken.matching.contract import NO_SLOTS, Slots
from harken.matching.encoding.columns import MOST_ROOM, Full
from harken.matching.encoding.encoder import Encoder
from harken.matching.encoding.reading import RowReader
from harken.matching.encoding.workspace import first_results, more_results
from harken.matching.kernels.layout import MISSING, Blocks, Events, PredicateArrays, Scratch, Tables
from harken.model.events import Event

FIRST_ALSO = 64
"""Predicates found true by tests that there is room for at first."""


class SingleMatching:
    """Matches one event after the other in one workspace, against one state of an index.

    Shares the scratch of the workspace, and has events and results of its own: batches may replace theirs.
    """

    def __init__(
        self, predicates: PredicateArrays, tables: Tables, blocks: Blocks, encoder: Encoder, scratch: Scratch
    ) -> None:
        self._encoder = encoder
        events = self._read_with(encoder.reader())
        self._arguments = Arguments(predicates, tables, blocks, events, scratch, first_results())

    @property
    def events(self) -> Events:
        """The event that was matched last."""
        return self._arguments.events

    def match(self, event: Event, ahead: bool, *, is_checked: bool = True) -> Slots | None:
        """The slots that match, each perhaps several times. None if the event has to be checked first."""
        arguments, also = self._arguments, list[int]()
        if self._is_wide and not self._reader.columns.suit(len(event)):
            arguments.events = self._read_with(self._encoder.reader())
        self._code[:] = self._missing
        try:
            is_read = self._reader.read(event, self._code, self._label, also, is_checked=is_checked)
        except Full:
            is_read = self._read_wide(event, also, is_checked)
        if not is_read:
            return None
        if also or self._has_also:
            self._tell(also)
        reached, count = arguments.match(ahead)
        while not reached:
            arguments.results = more_results(arguments.results)
            reached, count = arguments.match(ahead)
        return arguments.results.slot[:count].copy() if count else NO_SLOTS

    def _tell(self, also: list[int]) -> None:
        """Have the event satisfy these predicates, too, instead of those of the event before."""
        events, self._has_also = self._arguments.events, True  # first: an interrupt may come at any line
        if len(also) > len(events.also):
            self._arguments.events = events = events._replace(also=np.zeros(2 * len(also), np.int32))
        events.also[: len(also)] = also
        events.also_first[1] = len(also)
        self._has_also = bool(also)

    def _read_wide(self, event: Event, also: list[int], is_checked: bool) -> bool:
        """Read an event with more columns, begun anew if it would suffer from those of others."""
        columns = self._reader.columns.wider(len(event))
        if not columns.suit(len(event)):
            columns = self._encoder.reader().columns
        while True:
            self._arguments.events = self._read_with(self._encoder.reader(columns))
            also.clear()
            try:
                return self._reader.read(event, self._code, self._label, also, is_checked=is_checked)
            except Full:
                columns = columns.wider(len(event))

    def _read_with(self, reader: RowReader) -> Events:
        """Room for an event in the columns of a reader, which reads from now on."""
        columns = reader.columns
        code = np.full((1, columns.room), MISSING, np.int32)
        label = np.zeros((1, columns.label_room), np.int64)
        self._reader, self._code, self._label = reader, memoryview(code[0]), memoryview(label[0])
        self._missing = memoryview(code[0].copy())
        self._is_wide, self._has_also = columns.room > MOST_ROOM, False
        return self._encoder.events(code, label, [], columns)._replace(also=np.zeros(FIRST_ALSO, np.int32))
