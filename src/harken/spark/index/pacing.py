"""How many events a worker matches at once: as many as it can hold the matches of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Rows: TypeAlias = npt.NDArray[np.int64]

Found: TypeAlias = tuple[Rows, pa.Array]
"""Matches: the event's row and the subscription's id, pair by pair."""

HELD = 64 << 20
"""Bytes of matches that a worker is to hold at once: four million, if ids are numbers."""

FIRST, MORE, MOST = 16, 32, 16_384
"""Events that are matched at first, to see how much they match; how many times as many then, step by step; and how
many at most, which is what the engine takes at once anyway: however little has matched, the next may be others."""


class Pace:
    """Goes by what events have matched before."""

    def __init__(self) -> None:
        self._each = 0.0
        """Bytes that the matches of an event take, as far as seen."""
        self._most = FIRST

    def over(self, events: pa.Table, match: Callable[[pa.Table], Found]) -> Iterator[Found]:
        """The matches of all events, slice by slice."""
        first = 0
        while first < events.num_rows:
            # Where there is no column, Arrow would take whatever length it is told.
            some = events.slice(first, min(self._next(), events.num_rows - first))
            rows, ids = match(some)
            self._note(some.num_rows, rows.nbytes + ids.nbytes)
            yield rows + first if first else rows, ids
            first += some.num_rows

    def _next(self) -> int:
        return min(self._most, max(1, int(HELD / max(self._each, 1.0))))

    def _note(self, events: int, taken: int) -> None:
        # Down slowly: many matches may come in bursts.
        self._each = max(taken / events, self._each / 2)
        self._most = max(self._most, min(MORE * events, MOST))
