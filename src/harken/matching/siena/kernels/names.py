"""A ternary search trie (Bentley and Sedgewick 1997) of the names and types of attributes.

A node has one byte and three ways on: to nodes with a lower byte for the same place of a name, with a higher one,
and to those for the place after it. Of the names ab, ac and b, entered in this order:

    a --equal--> b (ends: ab) --higher--> c (ends: ac)
     --higher--> b (ends: b)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight

NO_NODE = -1
UNKNOWN_NAME = -1


class Names(NamedTuple):
    """The trie, and the names themselves."""

    byte: npt.NDArray[np.uint8]
    """Of each node; those below by node, too."""
    lower: npt.NDArray[np.int32]
    equal: npt.NDArray[np.int32]
    higher: npt.NDArray[np.int32]
    end: npt.NDArray[np.int32]
    """The dimension whose name ends here, or UNKNOWN_NAME."""
    text: npt.NDArray[np.uint8]
    """The bytes of all names, one behind the other."""
    bounds: npt.NDArray[np.int64]
    """Name n is text[bounds[n] : bounds[n + 1]]. None is empty."""
    dimension: npt.NDArray[np.int32]
    """By name: the dimension that is called so."""
    name_of: npt.NDArray[np.int32]
    """By dimension: its name, or UNKNOWN_NAME if nothing is asked of it."""


@tight
def enter_names(names: Names, order: npt.NDArray[np.int64]) -> None:
    """Make the nodes of all names, entered in this order. There is room for one per byte."""
    count = 0
    for name in order:
        at, last = names.bounds[name], names.bounds[name + 1] - 1
        node = 0
        if count == 0:
            count = _new_node(names, count, names.text[at])
        while True:
            byte = names.text[at]
            ways = names.equal
            if byte < names.byte[node]:
                ways = names.lower
            elif byte > names.byte[node]:
                ways = names.higher
            elif at == last:
                names.end[node] = names.dimension[name]
                break
            else:
                at += 1
            if ways[node] == NO_NODE:
                ways[node] = count
                count = _new_node(names, count, names.text[at])
            node = ways[node]


@part
def _new_node(names: Names, node: int, byte: int) -> int:
    """Have a node, from which no way leads on; how many there are then."""
    names.byte[node] = byte
    names.lower[node] = names.equal[node] = names.higher[node] = NO_NODE
    names.end[node] = UNKNOWN_NAME
    return node + 1


@part
def find_name(names: Names, begin: int, end: int) -> int:
    """The dimension whose name stands between two places of `text`, or UNKNOWN_NAME; something has to."""
    node, at = np.int64(0 if len(names.byte) else NO_NODE), begin
    while node != NO_NODE:
        byte = names.text[at]
        if byte < names.byte[node]:
            node = np.int64(names.lower[node])
        elif byte > names.byte[node]:
            node = np.int64(names.higher[node])
        elif at == end - 1:
            return np.int64(names.end[node])
        else:
            at += 1
            node = np.int64(names.equal[node])
    return np.int64(UNKNOWN_NAME)
