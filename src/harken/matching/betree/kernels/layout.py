"""How a BE-Tree lies in memory.

**Nodes** hold entries, clauses that have not been sent further down. When a node is full, its space is cut in one
of two ways. By attribute: those entries that ask of the attribute that most of them ask of go into a directory
of their own (what the paper calls a p-node), found by (node, attribute). By value: of a node within a directory,
the entries that ask for no more than the lower half of its values, or the upper half, go into a node for each (the
paper's clustering directory); whoever asks across the middle stays.

So an event looks into the root; and for every node it looks into, into the top of each directory below it that one
of its attributes leads to, and on from there into the one half, again and again, that its key is in.

What is halved is where the clauses of a node lie, not the domain: a domain here has no ends, neither of numbers
nor of strings, and the outer halves reach as far as there are values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.jit import part
from harken.matching.structures.kernels.hashing import HashTable

ROOT = 0

NO_NODE = -1


class Nodes(NamedTuple):
    """By node: its entries are start, ..., start + length - 1."""

    start: npt.NDArray[np.int64]
    length: npt.NDArray[np.int32]
    room: npt.NDArray[np.int32]
    limit: npt.NDArray[np.int32]
    """With so many entries it is worth a try to cut its space."""
    attribute: npt.NDArray[np.int32]
    """Of the directory that it is in; NOTHING at the root."""
    middle: npt.NDArray[np.int64]
    """The last key of its lower half, if it has halves."""
    lower: npt.NDArray[np.int32]
    """The node of its lower half, the upper half being the next one, or NO_NODE."""
    above: npt.NDArray[np.int32]
    """The node that it is a half of, or whose entries its directory has taken; NO_NODE at the root."""
    below: npt.NDArray[np.int32]
    """How many directories are right below it."""


class Tree(NamedTuple):
    """All of it."""

    nodes: Nodes
    entries: npt.NDArray[np.uint32]
    """The clauses of all nodes."""
    by_attribute: HashTable
    """From (node, attribute) to the top of a directory."""
    node_of: npt.NDArray[np.int32]
    """By clause: the node that it is in, or NO_NODE."""
    place_of: npt.NDArray[np.int32]
    """By clause: which of the node's entries it is."""
    records: npt.NDArray[np.int32]
    """By clause: what verifying it takes (`structures.kernels.records`)."""
    frequency: npt.NDArray[np.int64]
    """By attribute: how many words ask so."""
    tally: npt.NDArray[np.int32]
    """By attribute: room to count in; nothing is counted between cuts."""
    spare: npt.NDArray[np.int64]
    """Totals (below)."""


END_NODE, END_ENTRY, SIZE, WANTED, TOTALS = range(5)
"""Where unused numbers begin; how many entries a node is to have; and for how many more there was no room."""


@part
def is_cut_by(nodes: Nodes, node: int, attribute: int) -> bool:
    """Whether an attribute has been used on the way to a node."""
    at = np.int64(node)
    while at != ROOT:
        if nodes.attribute[at] == attribute:
            return True
        at = np.int64(nodes.above[at])
    return False
