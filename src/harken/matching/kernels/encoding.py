"""Values to codes, a column at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import kernel
from harken.matching.kernels.layout import MISSING, UNLISTED


@kernel
def codes_by_place(
    values: npt.NDArray[np.int64],
    valid: npt.NDArray[np.bool_],
    lowest: int,
    table: npt.NDArray[np.int32],
    code: npt.NDArray[np.int32],
    dimension: int,
) -> None:
    """Codes of integers whose constants lie close together: table[value - lowest]. No `valid` means all are."""
    for row in range(len(values)):
        if len(valid) > 0 and not valid[row]:
            code[row, dimension] = MISSING
            continue
        place = values[row] - lowest
        # A difference that overflows is negative or far away, never by chance inside.
        code[row, dimension] = table[place] if 0 <= place < len(table) and values[row] >= lowest else UNLISTED


@kernel
def codes_by_search(
    values: npt.NDArray[np.float64],
    valid: npt.NDArray[np.bool_],
    constants: npt.NDArray[np.float64],
    codes: npt.NDArray[np.int32],
    code: npt.NDArray[np.int32],
    dimension: int,
) -> None:
    """Codes of numbers by binary search among ascending constants."""
    for row in range(len(values)):
        if len(valid) > 0 and not valid[row]:
            code[row, dimension] = MISSING
            continue
        place = np.searchsorted(constants, values[row])
        found = place < len(constants) and constants[place] == values[row]
        code[row, dimension] = codes[place] if found else UNLISTED
