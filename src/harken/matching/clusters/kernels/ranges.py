"""Ranges as access paths: the cells that a value opens (layout.py)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import part
from harken.matching.kernels.layout import (
    ABOVE_CELLS,
    BANDS,
    BETWEEN_CELLS,
    CELLS,
    LEVELS,
    MISSING,
    Events,
    PredicateArrays,
)


@part
def band_of(predicates: PredicateArrays, number: int, label: int) -> int:
    """The band, of the banded dimension of this number, that a label lies in: how many bands begin at or below."""
    low, high = number * (BANDS - 1), (number + 1) * (BANDS - 1)
    first = low
    while low < high:
        middle = (low + high) // 2
        if predicates.band_first[middle] <= label:
            low = middle + 1
        else:
            high = middle
    return low - first


@part
def range_places_in(
    predicates: PredicateArrays,
    directory: npt.NDArray[np.uint32],
    base: int,
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
    cells = base + number * CELLS
    band = band_of(predicates, number, events.label[event, events.label_column[column]])
    for place in range(cells + band, cells + BANDS):
        places[into] = place
        into += directory[place] != 0
    for place in range(cells + ABOVE_CELLS, cells + ABOVE_CELLS + band + 1):
        places[into] = place
        into += directory[place] != 0
    level_cells, size = cells + BETWEEN_CELLS, BANDS
    for level in range(LEVELS):
        # A range spans two bands of its level at most, and stands where it begins.
        for place in range(level_cells + max(0, (band >> level) - 1), level_cells + (band >> level) + 1):
            places[into] = place
            into += directory[place] != 0
        level_cells += size
        size >>= 1
    return into
