"""Numbers for the distinct pairs of two columns, from 0 in the order in which they come.

A hash table of open addressing: a place holds 0 if it is empty, and otherwise a number plus 1; `first` says for
each number where its pair came first, and so what the pair is.
"""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt

from harken.jit import tight
from harken.matching.kernels.identifying import hash_of, home_of

_SMALLEST, _LARGER = 1 << 13, 8
"""Places of the first table, and how many times as many the next has if that does not do."""


def number_pairs(
    one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The number of each row's pair, and where each number comes first. Linear in the rows."""
    numbers, size = np.zeros(len(one), np.int64), _SMALLEST
    seed = np.uint64(random.getrandbits(64))  # nobody can prepare pairs that all want the same place
    while True:
        first = np.zeros(min(size // 2, len(one)), np.int64)
        count = _number_pairs(one, other, seed, np.zeros(size, np.uint32), first, numbers)
        if count >= 0:
            return numbers, first[:count]
        size *= _LARGER


@tight
def _number_pairs(
    one: npt.NDArray[np.int64],
    other: npt.NDArray[np.int64],
    seed: np.uint64,
    places: npt.NDArray[np.uint32],
    first: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.int64],
) -> int:
    """How many numbers there are, or -1 if they are more than `first` has room for."""
    count = 0
    for row in range(len(one)):
        place = home_of(hash_of(np.uint64(one[row]), hash_of(np.uint64(other[row]), seed)), len(places))
        while True:
            number = np.int64(places[place]) - 1
            if number < 0 or (one[first[number]] == one[row] and other[first[number]] == other[row]):
                break
            place = place + 1 if place + 1 < len(places) else 0
        if number < 0:
            if count == len(first):
                return -1
            number = count
            places[place], first[number] = number + 1, row
            count += 1
        numbers[row] = number
    return count
