"""Kernels that look where nothing is, in every way that kernels are made and given arrays; and a run of them."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from harken.jit import kernel, part, tight
from harken.matching.clusters.kernels.addressing import rows_of, structure_at
from harken.matching.kernels.layout import Matrix
from tests.bounds import refuse_negative_indices

if __name__ == "__main__":
    refuse_negative_indices()


class Given(NamedTuple):
    numbers: npt.NDArray[np.int64]
    square: Matrix[np.int32]


_given = structure_at(Given, 0)


@kernel
def ordinary(array, at):
    return array[at]


@tight
def uncounted(array, at):
    return array[at]


@tight
def writing(array, at):
    array[at] = 7
    return 7


@part
def _inlined(array, at):
    return array[at]


@tight
def inlining(array, at):
    return _inlined(array, at)


@tight
def unsigned(array, at):
    return array[np.uint32(at)]


@tight
def by_address(table, at):  # by where the table is
    return _given(table).numbers[at]


@tight
def by_address_2d(table, at):
    return _given(table).square[1, at]


def cases():
    numbers, square = np.arange(3), np.arange(6, dtype=np.int32).reshape(2, 3)
    for wrong in (ordinary, uncounted, inlining, unsigned):
        yield wrong, numbers
    yield writing, np.arange(3)
    table = np.array(rows_of(Given(numbers, square)))
    yield by_address, table.ctypes.data
    yield by_address_2d, table.ctypes.data


def said(function, given, at):
    try:
        return str(int(function(given, at)))
    except IndexError:
        return "IndexError"


if __name__ == "__main__":
    assert numba.config.BOUNDSCHECK
    for function, given in cases():
        print(function.__name__, *(said(function, given, at) for at in (2, 3, 1_000_000, -1)))
