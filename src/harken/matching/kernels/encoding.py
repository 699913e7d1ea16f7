"""Values to codes, a column at a time, and columns to rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.matching.kernels.layout import MISSING, UNLISTED


@tight
def codes_by_place(
    values: npt.NDArray[np.signedinteger],
    valid: npt.NDArray[np.bool_],
    lowest: int,
    table: npt.NDArray[np.int32],
    code: npt.NDArray[np.int32],
) -> None:
    """Codes of integers whose constants lie close together: table[value - lowest]. No `valid` means all are."""
    for row in range(len(values)):
        # A difference that overflows is far above the last, as an unsigned number.
        place = np.uint64(np.int64(values[row]) - lowest)
        code[row] = table[place] if place < np.uint64(len(table)) else UNLISTED
    for row in range(len(valid)):
        if not valid[row]:
            code[row] = MISSING


@tight
def codes_by_search(
    values: npt.NDArray[np.float64] | npt.NDArray[np.int64],
    valid: npt.NDArray[np.bool_],
    constants: npt.NDArray[np.float64] | npt.NDArray[np.int64],
    codes: npt.NDArray[np.int32],
    code: npt.NDArray[np.int32],
) -> None:
    """Codes of numbers by binary search among ascending constants of the same type."""
    for row in range(len(values)):
        low, high = 0, len(constants)
        while low < high:
            middle = (low + high) // 2
            if constants[middle] < values[row]:
                low = middle + 1
            else:
                high = middle
        found = low < len(constants) and constants[low] == values[row]
        code[row] = codes[low] if found else UNLISTED
    for row in range(len(valid)):
        if not valid[row]:
            code[row] = MISSING


@tight
def labels_by_place(
    values: npt.NDArray[np.signedinteger],
    lowest: int,
    table: npt.NDArray[np.int64],
    label: npt.NDArray[np.int64],
) -> None:
    """Labels of integers whose constants lie close together; the ends of the table stand for all beyond."""
    highest = lowest + len(table) - 1
    for row in range(len(values)):
        label[row] = table[min(max(np.int64(values[row]), lowest), highest) - lowest]


@tight
def rows_of(columns: npt.NDArray[np.signedinteger], rows: npt.NDArray[np.signedinteger]) -> None:
    """Columns, each contiguous, as rows, each contiguous."""
    for row in range(len(rows)):
        for column in range(len(columns)):
            rows[row, column] = columns[column, row]


@part
def _find_places(keys: npt.NDArray[np.int64], places: npt.NDArray[np.int64]) -> None:
    """Where those of each key begin when all are in order. `places` has a zero for every key."""
    for at in range(len(keys)):
        places[keys[at]] += 1
    place = 0
    for key in range(len(places)):
        count = places[key]
        places[key] = place
        place += count


@tight
def put_in_order(
    rows: npt.NDArray[np.int64],
    slots: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    ordered_rows: npt.NDArray[np.int64],
    ordered_slots: npt.NDArray[np.int64],
) -> None:
    """Pairs by their rows, ascending, those of one row as they are. `places` has a zero for every row."""
    _find_places(rows, places)
    for at in range(len(rows)):
        place = places[rows[at]]
        places[rows[at]] = place + 1
        ordered_rows[place], ordered_slots[place] = rows[at], slots[at]


@tight
def order_by(keys: npt.NDArray[np.int64], places: npt.NDArray[np.int64], order: npt.NDArray[np.int64]) -> None:
    """Rows by their keys, ascending, those of one key as they are. `places` has a zero for every key."""
    _find_places(keys, places)
    for row in range(len(keys)):
        place = places[keys[row]]
        places[keys[row]] = place + 1
        order[place] = row
