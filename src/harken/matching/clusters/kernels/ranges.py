"""Ranges as access paths: the cells that a value opens (layout.py)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import part
from harken.matching.kernels.bits import lowest
from harken.matching.kernels.layout import (
    ABOVE_CELLS,
    BANDS,
    BETWEEN_CELLS,
    CELL_WORDS,
    CELLS,
    LEVELS,
    MISSING,
    RANGE_TABLE,
    Events,
    PredicateArrays,
    Tables,
)

ALL = np.uint64(2**64 - 1)


@part
def band_of(predicates: PredicateArrays, number: int, label: int) -> int:
    """The band, of the banded dimension of this number, that a label lies in: how many bands begin at or below."""
    first, band, step = number * (BANDS - 1), 0, BANDS // 2
    while step > 0:  # without a branch: where values lie can't be foreseen
        band += step * np.int64(predicates.band_first[np.uint64(first + band + step - 1)] <= label)
        step >>= 1
    return band


@part
def note_cell(tables: Tables, cell: int) -> None:
    """Take note that a clause stands in a cell."""
    tables.cells[cell >> 6] |= np.uint64(1) << np.uint64(cell & 63)


@part
def _list_cells(word: np.uint64, first: int, places: npt.NDArray[np.int64], into: int) -> int:
    """Collect the places of cells in use, of 64 that follow each other; where they end."""
    while word != np.uint64(0):
        places[into] = first + lowest(word)
        word &= word - np.uint64(1)
        into += 1
    return into


@part
def range_places_in(
    predicates: PredicateArrays,
    tables: Tables,
    events: Events,
    event: int,
    column: int,
    places: npt.NDArray[np.int64],
    into: int,
) -> int:
    """Collect the cells of the range table that one value opens and in which clauses stand; where they end."""
    number = np.int64(events.band[column])
    if number < 0 or events.code[event, column] == MISSING:
        return into
    cells, words = tables.base[RANGE_TABLE] + number * CELLS, number * CELL_WORDS
    band = band_of(predicates, number, events.label[event, events.label_column[column]])
    upper = tables.cells[words] >> np.uint64(band) << np.uint64(band)
    into = _list_cells(upper, cells, places, into)
    lower = tables.cells[words + 1] & (ALL >> np.uint64(BANDS - 1 - band))
    into = _list_cells(lower, cells + ABOVE_CELLS, places, into)
    return _list_between(tables, words + 2, band, cells + BETWEEN_CELLS, places, into)


@part
def _list_between(
    tables: Tables, words: int, band: int, cells: int, places: npt.NDArray[np.int64], into: int
) -> int:
    """Collect the same of the pyramid."""
    if tables.cells[words] | tables.cells[words + 1] == np.uint64(0):
        return into
    level_cells, size = 0, BANDS
    for level in range(LEVELS):
        # A range spans two bands of its level at most, and stands where it begins: in this one, or in that before.
        before = np.int64(band >> level > 0)
        first = level_cells + (band >> level) - before
        in_use = np.int64(tables.cells[words + (first >> 6)] >> np.uint64(first & 63) & np.uint64(1 + 2 * before))
        if in_use != 0:  # of most levels none is: ranges of a dimension are about as wide as each other
            places[into] = cells + first
            into += in_use & 1
            places[into] = cells + first + 1
            into += in_use >> 1
        level_cells += size
        size >>= 1
    return into
