"""Kernels that look where nothing is, in every way that kernels are made and given arrays; and a run of them."""

from __future__ import annotations

import numba
import numpy as np
from numba import types

from harken.jit import kernel, part, tight
from harken.matching.clusters.kernels.addressing import _array_at
from tests.bounds import refuse_negative_indices

if __name__ == "__main__":
    refuse_negative_indices()

_at = _array_at(types.int64, 1)
_at_2d = _array_at(types.int32, 2)


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
def by_address(address, at):
    return _at(address[0], address[1], 1)[at]


@tight
def by_address_2d(address, at):
    return _at_2d(address[0], address[1], 3)[1, at]


def cases():
    numbers, square = np.arange(3), np.arange(6, dtype=np.int32).reshape(2, 3)
    for wrong in (ordinary, uncounted, inlining, unsigned):
        yield wrong, numbers
    yield writing, np.arange(3)
    yield by_address, np.array([numbers.ctypes.data, 3])
    yield by_address_2d, np.array([square.ctypes.data, 2])


def said(function, given, at):
    try:
        return str(int(function(given, at)))
    except IndexError:
        return "IndexError"


if __name__ == "__main__":
    assert numba.config.BOUNDSCHECK
    for function, given in cases():
        print(function.__name__, *(said(function, given, at) for at in (2, 3, 1_000_000, -1)))
