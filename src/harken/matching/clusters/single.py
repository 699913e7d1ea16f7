"""Matching one event at a time: everything that can be prepared is, and lies where the kernel expects it."""

from __future__ import annotations

import numpy as np

from harken.matching.clusters.kernels.addressing import Arguments
from harken.matching.contract import Slots
from harken.matching.encoding.columns import MOST_ROOM, Full
from harken.matching.encoding.encoder import Encoder
from harken.matching.encoding.reading import RowReader
from harken.matching.encoding.workspace import first_results, more_results
from harken.matching.kernels.layout import MISSING, Blocks, Events, PredicateArrays, Scratch, Tables
from harken.model.events import FlatEvent

FIRST_ALSO = 64
"""Predicates found true by tests that there is room for at first."""

_NONE = np.zeros(0, np.int64)


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

    def match(self, event: FlatEvent, ahead: bool) -> Slots:
        """The slots that match, each perhaps several times."""
        arguments, also = self._arguments, list[int]()
        if self._is_wide and not self._reader.columns.suit(len(event)):
            arguments.events = self._read_with(self._encoder.reader())
        arguments.events.code.fill(MISSING)
        try:
            self._reader.read(event, self._code, self._label, also)
        except Full:
            also = self._read_wide(event)
        events = arguments.events
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

    def _read_wide(self, event: FlatEvent) -> list[int]:
        """Read an event with more columns, begun anew if it would suffer from those of others."""
        columns = self._reader.columns.wider(len(event))
        if not columns.suit(len(event)):
            columns = self._encoder.reader().columns
        while True:
            self._arguments.events, also = self._read_with(self._encoder.reader(columns)), list[int]()
            try:
                self._reader.read(event, self._code, self._label, also)
            except Full:
                columns = columns.wider(len(event))
            else:
                return also

    def _read_with(self, reader: RowReader) -> Events:
        """Room for an event in the columns of a reader, which reads from now on."""
        columns = reader.columns
        code = np.full((1, columns.room), MISSING, np.int32)
        label = np.zeros((1, columns.label_room), np.int64)
        self._reader, self._code, self._label = reader, memoryview(code[0]), memoryview(label[0])
        self._is_wide = columns.room > MOST_ROOM
        return self._encoder.events(code, label, [], columns)._replace(also=np.zeros(FIRST_ALSO, np.int32))
