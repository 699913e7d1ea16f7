"""A hash table of numbers by numbers: open addressing, the next free place, no more than half of it in use.

What is taken out leaves no mark: those behind it that have been displaced move up, so that a table in which
entries come and go stays as quick as a new one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight

EMPTY = -1
"""Instead of a key: nothing is here. Keys are never negative."""

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_HIGH = np.uint64(32)


class HashTable(NamedTuple):
    """Keys and what they lead to; as many places as a power of two."""

    key: npt.NDArray[np.int64]
    value: npt.NDArray[np.int32]
    spare: npt.NDArray[np.int64]
    """How many keys there are."""


@part
def home(table: HashTable, key: int) -> int:
    """Where a key would like to be."""
    return np.int64((np.uint64(key) * _SPREAD) >> _HIGH) & (len(table.key) - 1)


@part
def find(table: HashTable, key: int) -> int:
    """What a key leads to, or -1."""
    last = len(table.key) - 1
    at = home(table, key)
    while table.key[at] != EMPTY:
        if table.key[at] == key:
            return np.int64(table.value[at])
        at = (at + 1) & last
    return np.int64(-1)


@part
def put(table: HashTable, key: int, value: int) -> None:
    """Let a key that is not there yet lead to a value; there is room."""
    last = len(table.key) - 1
    at = home(table, key)
    while table.key[at] != EMPTY:
        at = (at + 1) & last
    table.key[at], table.value[at] = key, value
    table.spare[0] += 1


@part
def take(table: HashTable, key: int) -> None:
    """Forget a key that is there."""
    last = len(table.key) - 1
    hole = home(table, key)
    while table.key[hole] != key:
        hole = (hole + 1) & last
    at = (hole + 1) & last
    while table.key[at] != EMPTY:
        # One whose home is not between the hole and where it stands would no longer be found.
        if ((at - home(table, table.key[at])) & last) >= ((at - hole) & last):
            table.key[hole], table.value[hole] = table.key[at], table.value[at]
            hole = at
        at = (at + 1) & last
    table.key[hole] = EMPTY
    table.spare[0] -= 1


@part
def key_of(owner: int, number: int) -> int:
    """The key of a number that belongs to an owner, as in (node, attribute)."""
    return np.int64(owner) << 32 | np.int64(number)


@tight
def copy_into(table: HashTable, into: HashTable) -> None:
    """Put all that is in one table into another, which is empty and large enough."""
    for at in range(len(table.key)):
        if table.key[at] != EMPTY:
            put(into, table.key[at], table.value[at])


@tight
def put_one(table: HashTable, key: int, value: int) -> None:
    """As `put`."""
    put(table, key, value)


@tight
def find_one(table: HashTable, key: int) -> int:
    """As `find`."""
    return find(table, key)


@tight
def take_one(table: HashTable, key: int) -> None:
    """As `take`."""
    take(table, key)
