"""Tries over bytes, and the automaton of Aho and Corasick (1975) that they become with failure links.

A trie is made once, of patterns in ascending order. Its nodes are numbered level by level, so that the children of
a node follow each other, in the order of their bytes, and those of the next node come behind them: a node is a few
numbers, and no pointer to each child is needed.

Of the patterns ab, abc and b, the nodes are

    0 (nothing)    1 a    2 b    3 ab    4 abc        first: 1 3 4 4 5 5

A node at which a pattern ends has the number of an **end**; patterns that are the same text are entries of one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight

ROOT = 0

NO_NODE = -1
NO_END = -1

BYTES = 256


class Texts(NamedTuple):
    """Texts one behind the other: text i is bytes bounds[i] up to bounds[i + 1]."""

    bytes: npt.NDArray[np.uint8]
    bounds: npt.NDArray[np.int64]


class Trie(NamedTuple):
    """By node, unless something else is said."""

    first: npt.NDArray[np.int32]
    """Its children are first[node] up to first[node + 1]."""
    byte: npt.NDArray[np.uint8]
    """What leads to it."""
    end: npt.NDArray[np.int32]
    """The end that it is, or NO_END."""
    failure: npt.NDArray[np.int32]
    """The node of the longest proper suffix of its text that has one."""
    output: npt.NDArray[np.int32]
    """The node of the longest suffix, itself included, that is an end and not the root; or NO_NODE."""
    from_root: npt.NDArray[np.int32]
    """By byte: the child of the root that it leads to, or NO_NODE."""
    entry_first: npt.NDArray[np.int64]
    """By end: its patterns, in ascending order of all, are entry_first[end] up to entry_first[end + 1]."""


class Found(NamedTuple):
    """What is found: which text, and which end."""

    text: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]


@part
def child(trie: Trie, node: int, byte: int) -> int:
    """The child of a node that a byte leads to, or NO_NODE."""
    if node == ROOT:
        return np.int64(trie.from_root[byte])
    begin, last = np.int64(trie.first[node]), np.int64(trie.first[node + 1])
    end = last
    while begin < end:
        middle = (begin + end) >> 1
        if trie.byte[middle] < byte:
            begin = middle + 1
        else:
            end = middle
    return begin if begin < last and trie.byte[begin] == byte else np.int64(NO_NODE)


# ---------------------------------------------------------------- making


@tight
def count_levels(patterns: Texts, shared: npt.NDArray[np.int64], level: npt.NDArray[np.int64]) -> None:
    """Find out how many bytes each pattern begins with that the one before it begins with too.

    And, by level, how many nodes there will be.
    """
    level[0] = 1
    for at in range(len(shared)):
        begin, end = patterns.bounds[at], patterns.bounds[at + 1]
        same = 0
        if at > 0:
            before = patterns.bounds[at - 1]
            most = min(end - begin, begin - before)
            while same < most and patterns.bytes[begin + same] == patterns.bytes[before + same]:
                same += 1
        shared[at] = same
        for depth in range(same + 1, end - begin + 1):
            level[depth] += 1


@tight
def lay_nodes(
    trie: Trie,
    patterns: Texts,
    shared: npt.NDArray[np.int64],
    latest: npt.NDArray[np.int64],
    parent: npt.NDArray[np.int32],
) -> int:
    """Make the nodes of patterns, and the ends; how many ends there are.

    `latest` is, by level, the number before that of its first node; then the node that was made last.
    """
    ends = 0
    for at in range(len(shared)):
        begin, end = patterns.bounds[at], patterns.bounds[at + 1]
        for depth in range(shared[at] + 1, end - begin + 1):
            latest[depth] += 1
            node = latest[depth]
            parent[node] = latest[depth - 1]
            trie.byte[node] = patterns.bytes[begin + depth - 1]
        node = latest[end - begin]
        if trie.end[node] == NO_END:
            trie.end[node] = ends
            trie.entry_first[ends] = at
            ends += 1
    trie.entry_first[ends] = len(shared)
    for node in range(1, len(parent)):
        trie.first[parent[node] + 1] += 1
        if parent[node] == ROOT:
            trie.from_root[trie.byte[node]] = node
    trie.first[0] = 1
    for node in range(len(parent)):
        trie.first[node + 1] += trie.first[node]
    return ends


@tight
def link_failures(trie: Trie, parent: npt.NDArray[np.int32]) -> None:
    """Find for every node the longest suffix that is a node. Linear in the bytes of all patterns."""
    trie.output[ROOT] = NO_NODE
    for node in range(1, len(parent)):
        # Those of higher levels are known: they have lower numbers.
        suffix, failure = np.int64(parent[node]), np.int64(ROOT)
        while suffix != ROOT:
            suffix = np.int64(trie.failure[suffix])
            below = child(trie, suffix, trie.byte[node])
            if below != NO_NODE:
                failure = below
                break
        trie.failure[node] = failure
        trie.output[node] = node if trie.end[node] != NO_END else trie.output[failure]


# ---------------------------------------------------------------- finding


@part
def tell(found: Found, count: int, text: int, end: int) -> int:
    """Write down an end, if there is room; how many there are then."""
    if count < len(found.text):
        found.text[count], found.end[count] = text, end
    return count + 1


@tight
def find_prefixes(trie: Trie, texts: Texts, from_behind: bool, found: Found) -> int:
    """Write down, as far as they fit, the ends that texts begin with; how many there are.

    From behind, patterns are those that texts end with, written backwards.
    """
    count = 0
    for text in range(len(texts.bounds) - 1):
        begin, length = texts.bounds[text], texts.bounds[text + 1] - texts.bounds[text]
        node, step = np.int64(ROOT), np.int64(0)
        while node != NO_NODE:
            if trie.end[node] != NO_END:
                count = tell(found, count, text, trie.end[node])
            if step == length:
                break
            at = begin + length - 1 - step if from_behind else begin + step
            node = child(trie, node, texts.bytes[at])
            step += 1
    return count


@tight
def find_parts(trie: Trie, texts: Texts, seen: npt.NDArray[np.int64], stamp: int, found: Found) -> int:
    """Write down, as far as they fit, the ends that texts contain, each once; how many there are.

    `seen` has room for each end, and nothing from `stamp` on. Linear in the texts and in what is found: of the
    suffixes that are ends, none is followed further whose followers have been told.
    """
    count = 0
    for text in range(len(texts.bounds) - 1):
        node, mark = np.int64(ROOT), stamp + text
        if trie.end[ROOT] != NO_END:
            count = tell(found, count, text, trie.end[ROOT])
        for at in range(texts.bounds[text], texts.bounds[text + 1]):
            below = child(trie, node, texts.bytes[at])
            while below == NO_NODE and node != ROOT:
                node = np.int64(trie.failure[node])
                below = child(trie, node, texts.bytes[at])
            node = max(below, np.int64(ROOT))
            hit = np.int64(trie.output[node])
            while hit != NO_NODE and seen[trie.end[hit]] != mark:
                seen[trie.end[hit]] = mark
                count = tell(found, count, text, trie.end[hit])
                hit = np.int64(trie.output[trie.failure[hit]])
    return count
