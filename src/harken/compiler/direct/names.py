"""Attributes by number: a hash table of names, each of which is known by where it first stands."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.jit import called, tight

_HASH_START, _HASH_STEP = np.uint64(14695981039346656037), np.uint64(1099511628211)  # FNV-1a
UNKNOWN = -1
ANY_TYPE = -1
"""Instead of the type that a schema declares, where there is none."""


class Names(NamedTuple):
    """Names by number. Of `slot`, a hash table with -1 where nothing is, no more than half is ever taken."""

    slot: npt.NDArray[np.int32]
    begin: npt.NDArray[np.int64]
    past: npt.NDArray[np.int64]
    declared: npt.NDArray[np.int64]
    """The type that a schema declares."""
    used: npt.NDArray[np.int64]
    """One number: how many there are."""
    closed: bool
    """Whether there are no others than those known."""


def room_for(size: int, closed: bool = False) -> Names:
    """No names, and room for so many at least."""
    half = 1 << max(size - 1, 1).bit_length()
    begin, past, declared = np.zeros(half, np.int64), np.zeros(half, np.int64), np.full(half, ANY_TYPE, np.int64)
    return Names(np.full(2 * half, -1, np.int32), begin, past, declared, np.zeros(1, np.int64), closed)


def enlarged(names: Names, data: npt.NDArray[np.uint8]) -> Names:
    """The same names under the same numbers, with room for twice as many."""
    larger = room_for(2 * len(names.begin), names.closed)
    enter_all(larger, data, names.begin[: names.used[0]], names.past[: names.used[0]])
    return larger


@tight
def enter_all(
    names: Names, data: npt.NDArray[np.uint8], begin: npt.NDArray[np.int64], past: npt.NDArray[np.int64]
) -> None:
    """Number names in this order. There must be room."""
    for at in range(len(begin)):
        _enter(names, data, begin[at], past[at], True)


@called
def is_full(names: Names) -> bool:
    """Whether there is no room for one more."""
    return bool(names.used[0] >= len(names.begin))


@called
def number_of(names: Names, data: npt.NDArray[np.uint8], at: int, past: int) -> int:
    """The number of the name that stands there; UNKNOWN if it has none, and there is no other or no room."""
    return _enter(names, data, at, past, not names.closed and not is_full(names))


@called
def _enter(names: Names, data: npt.NDArray[np.uint8], at: int, past: int, may_add: bool) -> int:
    hashed = _HASH_START
    for place in range(at, past):
        hashed = (hashed ^ np.uint64(data[place])) * _HASH_STEP
    mask = len(names.slot) - 1
    where = np.int64((hashed >> np.uint64(32)) & np.uint64(mask))
    while names.slot[where] >= 0:
        if _same(data, names.begin[names.slot[where]], names.past[names.slot[where]], at, past):
            return int(names.slot[where])
        where = (where + 1) & mask
    if not may_add:
        return UNKNOWN
    number = int(names.used[0])
    names.slot[where] = number
    names.begin[number], names.past[number] = at, past
    names.used[0] = number + 1
    return number


@called
def _same(data: npt.NDArray[np.uint8], one: int, one_past: int, other: int, other_past: int) -> bool:
    if one_past - one != other_past - other:
        return False
    while one < one_past and data[one] == data[other]:
        one += 1
        other += 1
    return one == one_past
