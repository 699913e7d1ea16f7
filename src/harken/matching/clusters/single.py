"""Matching one event at a time: everything that can be prepared is, and lies where the kernel expects it."""

from __future__ import annotations

import numpy as np

from harken.matching.clusters.kernels.addressing import Arguments
from harken.matching.contract import NO_SLOTS, Slots
from harken.matching.encoding.columns import MOST_ROOM, EventColumns, Full
from harken.matching.encoding.encoder import Encoder
from harken.matching.encoding.native import NativeSteps
from harken.matching.encoding.workspace import first_results, more_results
from harken.matching.kernels.layout import MISSING, Blocks, Events, PredicateArrays, Scratch, Tables
from harken.matching.kernels.reading import ODD, READ, REMAINS
from harken.model.events import Event, FlatEvent

FIRST_ALSO = 64
"""Predicates found true by tests that there is room for at first."""


class SingleMatching:
    """Matches one event after the other in one workspace, against one state of an index.

    Shares the scratch of the workspace, and has events and results of its own: batches may replace theirs. Whoever
    is interrupted while it matches has to make another.
    """

    def __init__(
        self, predicates: PredicateArrays, tables: Tables, blocks: Blocks, encoder: Encoder, scratch: Scratch
    ) -> None:
        self._encoder = encoder
        events = self._prepared(None)
        results, reading = first_results(), self._native.reading
        self._arguments = Arguments(predicates, tables, blocks, events, scratch, results, reading)

    @property
    def events(self) -> Events:
        """The event that was matched last."""
        return self._arguments.events

    def match(self, event: Event, ahead: bool, *, is_checked: bool = True) -> Slots | None:
        """The slots that match, each perhaps several times. None if the event has to be checked first."""
        arguments = self._arguments
        if self._has_also:
            self._tell([])
        if self._is_wide and not self._reader.columns.suit(len(event)):
            self._read_with(None)
        became, reached, count = arguments.match_object(event, is_checked, ahead)
        if became != READ:
            if not self._has_rest(event, became, is_checked):
                return None
            reached, count = arguments.match(ahead)
        while not reached:
            arguments.results = more_results(arguments.results)
            reached, count = arguments.match(ahead)
        return arguments.results.slot[:count].copy() if count else NO_SLOTS

    def note(self, events: int) -> None:
        """So many have been matched since this was last said."""
        self._native.note(events)

    def _has_rest(self, event: Event, became: int, is_checked: bool) -> bool:
        """Have what a kernel left of an event read, too, or all; False if it has to be checked first."""
        also = list[int]()
        try:
            if became == ODD:
                return False
            if became == REMAINS:
                is_read = self._read_remainder(event, also, is_checked)
            else:
                self._code[:] = self._missing
                is_read = self._reader.read(event, self._code, self._label, also, is_checked=is_checked)
        except Full:
            is_read = self._read_wide(event, also, is_checked)
        finally:
            self._native.remainder.clear()
        if also:
            self._tell(also)
        return is_read

    def _read_remainder(self, event: Event, also: list[int], is_checked: bool) -> bool:
        """Read what a kernel left, and let kernels read it from now on where they can."""
        flat: FlatEvent | None = self._native.remainder  # type: ignore[assignment]  # or so it is to be
        if not self._reader.read(flat, self._code, self._label, also, is_checked=is_checked):  # type: ignore[arg-type]
            also.clear()
            flat = self._native.flat_remainder(event)
            if flat is None or not self._reader.read(flat, self._code, self._label, also):
                return False
        if self._native.learn(flat):  # type: ignore[arg-type]
            self._arguments.reading = self._native.reading
        return True

    def _tell(self, also: list[int]) -> None:
        """Have the event satisfy these predicates, too."""
        events = self._arguments.events
        if len(also) > len(events.also):
            self._arguments.events = events = events._replace(also=np.zeros(2 * len(also), np.int32))
        events.also[: len(also)] = also
        events.also_first[1] = len(also)
        self._has_also = bool(also)

    def _read_wide(self, event: Event, also: list[int], is_checked: bool) -> bool:
        """Read an event with more columns, begun anew if it would suffer from those of others."""
        wider = self._reader.columns.wider(len(event))
        self._read_with(wider if wider.suit(len(event)) else None)
        while True:
            also.clear()
            try:
                return self._reader.read(event, self._code, self._label, also, is_checked=is_checked)
            except Full:
                self._read_with(self._reader.columns.wider(len(event)))

    def _read_with(self, columns: EventColumns | None) -> None:
        """Read events into these columns from now on, or into those there are at first."""
        arguments = self._arguments
        arguments.events, arguments.reading = self._prepared(columns), self._native.reading

    def _prepared(self, columns: EventColumns | None) -> Events:
        """Room for an event in some columns, and what reads it."""
        self._reader = reader = self._encoder.reader(columns)
        self._native = NativeSteps(reader)
        columns = reader.columns
        code = np.full((1, columns.room), MISSING, np.int32)
        label = np.zeros((1, columns.label_room), np.int64)
        self._code, self._label = memoryview(code[0]), memoryview(label[0])
        self._missing = memoryview(code[0].copy())
        self._is_wide, self._has_also = columns.room > MOST_ROOM, False
        return self._encoder.events(code, label, [], columns)._replace(also=np.zeros(FIRST_ALSO, np.int32))
