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

MOST_PAIRS = 1 << 22
"""Matches that a worker holds at once: some hundred megabytes, with all that is made of them."""

UNKNOWN = 1_024
"""Events that are matched at first, to see how much they match."""


class Pace:
    """Goes by what events have matched before."""

    def __init__(self) -> None:
        self._matches: float | None = None
        """Of an event, as far as seen."""

    def over(self, events: pa.Table, match: Callable[[pa.Table], Found]) -> Iterator[Found]:
        """The matches of all events, slice by slice."""
        first = 0
        while first < events.num_rows:
            some = events.slice(first, self._next())
            rows, ids = match(some)
            self._note(len(rows) / some.num_rows)
            yield rows + first if first else rows, ids
            first += some.num_rows

    def _next(self) -> int:
        return UNKNOWN if self._matches is None else max(1, int(MOST_PAIRS / max(self._matches, 1.0)))

    def _note(self, matches: float) -> None:
        # Down slowly: many matches may come in bursts.
        self._matches = max(matches, (self._matches or 0.0) / 2)
