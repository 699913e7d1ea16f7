"""Which column of encoded events a dimension has: only those that events have get one, however many there are.

Subscribers may ask about any number of attributes; an event has a few. So codes are as wide as the events at hand
need. Column 0 is that of every dimension that none of them has, and is missing throughout.
"""

from __future__ import annotations

import threading

import numpy as np

from harken.matching.predicates.dimensions import Dimension
from harken.matching.predicates.table import PredicateTable

FIRST_ROOM = 64
"""Columns that there is room for at first: to look at so many takes next to no time."""

MOST_ROOM = 1_024
"""Columns that are kept for the events to come; where these differ more, they are forgotten and begun anew."""

FILLED = 4
"""Of more columns than that are kept, events fill at least one in so many."""


class Full(Exception):  # noqa: N818  # says what to do, and nobody outside sees it
    """There is no room for another column."""


class EventColumns:
    """Columns of the dimensions that events were met to have. For one state of the predicates."""

    def __init__(self, predicates: PredicateTable, room: int = FIRST_ROOM) -> None:
        self._predicates = predicates
        self.room = min(room, len(predicates.dimensions) + 1)
        """How many columns codes have, those that are not in use yet included."""
        self.label_room = max(1, min(self.room, predicates.ordered_count))
        """How many columns labels have."""
        self.column = np.zeros(max(1, len(predicates.dimensions)), np.int32)
        self.dimension, self.label_column, self.band = np.full((3, self.room), -1, np.int32)
        self._used, self._labels = 1, 0
        self._adding = threading.RLock()

    def of(self, dimension: Dimension) -> int:
        """The column of a dimension, from now on if it had none; Full if there is no room for it."""
        number = dimension.number
        column = int(self.column[number])
        if column:
            return column
        with self._adding:  # several threads may encode parts of one batch
            return int(self.column[number]) or self._new(number)

    def _new(self, number: int) -> int:
        column = self._used
        if column == self.room:
            raise Full
        self.dimension[column] = number
        if self._predicates.is_ordered(number):
            self.label_column[column] = self._labels
            self.band[column] = self._predicates.bands.number_of(number)
            self._labels += 1
        self.column[number] = column
        self._used += 1
        return column

    def wider(self, attributes: int) -> EventColumns:
        """Twice the room, and at least for so many attributes; nothing is in it."""
        return EventColumns(self._predicates, max(2 * self.room, attributes + 1))

    def suit(self, attributes: int) -> bool:
        """Whether events of so many attributes do not suffer from all the columns that they do not fill."""
        return self.room <= max(MOST_ROOM, FILLED * attributes)
