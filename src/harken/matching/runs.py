"""Runs of rows that lie one after the other: where they begin, and which places they take."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def starts(counts: Places) -> Places:
    """Where each run begins, given how long each is."""
    return np.asarray(np.cumsum(counts) - counts, np.int64)


def edges(counts: Places) -> Places:
    """The same, and where the last one ends: of runs of 2, 0 and 3 rows, 0, 2, 2, 5."""
    return np.concatenate([[0], np.cumsum(counts)])


def ranges(first: Places, counts: Places) -> Places:
    """All places of runs: of two from 5 on and three from 9 on, 5, 6, 9, 10, 11."""
    return np.asarray(np.arange(counts.sum()) + np.repeat(first - starts(counts), counts), np.int64)


def changes(*columns: npt.NDArray[np.generic]) -> Mask:
    """Which rows begin a run: all those that are not, in some column, what the row before is."""
    new = np.zeros(len(columns[0]), np.bool_)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new
