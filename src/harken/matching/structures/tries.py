"""Tries of patterns: which of many patterns a text begins with, ends with, or contains."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from harken.matching.runs import ranges
from harken.matching.structures.kernels.tries import (
    BYTES,
    NO_END,
    NO_NODE,
    Found,
    Texts,
    Trie,
    count_levels,
    find_parts,
    find_prefixes,
    lay_nodes,
    link_failures,
)

Place = Literal["prefix", "suffix", "part"]
"""Where in a text a pattern is looked for."""

FEW = 64
"""Ends that there is room for at first."""


class PatternTrie:
    """Patterns by number, which are looked for in one place of texts. Made once; any number of threads may ask.

    Its patterns are texts in UTF-8, whose bytes are found only where the characters are.
    """

    def __init__(self, place: Place, patterns: Sequence[bytes]) -> None:
        self._place: Place = place
        whole = pa.array([each[::-1] for each in patterns] if place == "suffix" else patterns, pa.large_binary())
        self.order: npt.NDArray[np.int64] = np.asarray(pc.sort_indices(whole).to_numpy(), np.int64)
        """The patterns in the order that entries have."""
        self._trie, self._ends = _made(texts_of(whole.take(pa.array(self.order))), place == "part")
        self._own = threading.local()

    @property
    def nbytes(self) -> int:
        """Bytes taken."""
        return sum(each.nbytes for each in self._trie) + self.order.nbytes

    def find(self, texts: Texts) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Which of these texts have which patterns, pair by pair; patterns as they were numbered, in any order."""
        found = self._found(texts)
        first = self._trie.entry_first
        sizes = first[found.end + 1] - first[found.end]
        entries = ranges(first[found.end], sizes)
        return np.repeat(found.text, sizes), self.order[entries]

    def find_in(self, text: Texts) -> list[int]:
        """The patterns that a single text has."""
        ends, first = self._found(text).end, self._trie.entry_first
        return [at for end in ends.tolist() for at in self.order[first[end] : first[end + 1]].tolist()]

    def _found(self, texts: Texts) -> Found:
        if self._place != "part":
            from_behind = self._place == "suffix"
            return _all_of(lambda found: find_prefixes(self._trie, texts, from_behind, found))
        # Not for whatever interrupts this thread, and for the next one that asks.
        seen: npt.NDArray[np.int64] | None = getattr(self._own, "seen", None)
        self._own.seen = None
        if seen is None:
            seen = np.zeros(self._ends + 1, np.int64)
        try:
            return _all_of(lambda found: self._find_parts(texts, seen, found))
        finally:
            self._own.seen = seen

    def _find_parts(self, texts: Texts, seen: npt.NDArray[np.int64], found: Found) -> int:
        """As the kernel does, with marks that nobody has made before: the last number says how many have been."""
        stamp = int(seen[-1]) + 1
        seen[-1] = stamp + len(texts.bounds)
        return find_parts(self._trie, texts, seen[:-1], stamp, found)


def single(text: str) -> Texts:
    """The bytes of one text."""
    data = text.encode()
    return Texts(np.frombuffer(data, np.uint8), np.array([0, len(data)], np.int64))


def texts_of(column: pa.Array) -> Texts:
    """The bytes of an Arrow array of texts or bytes without nulls, not copied where they need not be."""
    wide = column.cast(pa.large_binary())
    _, bounds, data = wide.buffers()
    bounds = np.frombuffer(bounds, np.int64)[wide.offset : wide.offset + len(wide) + 1] if len(wide) else [0]
    return Texts(
        np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8), np.asarray(bounds, np.int64)
    )


def _made(patterns: Texts, linked: bool) -> tuple[Trie, int]:
    """The trie of patterns in ascending order, and how many ends it has."""
    count = len(patterns.bounds) - 1
    longest = int(np.diff(patterns.bounds).max(initial=0))
    shared, level = np.zeros(count, np.int64), np.zeros(longest + 1, np.int64)
    count_levels(patterns, shared, level)
    nodes = int(level.sum())
    parent = np.zeros(nodes, np.int32)
    trie = Trie(
        first=np.zeros(nodes + 1, np.int32),
        byte=np.zeros(nodes, np.uint8),
        end=np.full(nodes, NO_END, np.int32),
        failure=np.zeros(nodes if linked else 0, np.int32),
        output=np.zeros(nodes if linked else 0, np.int32),
        from_root=np.full(BYTES, NO_NODE, np.int32),
        entry_first=np.zeros(count + 1, np.int64),
    )
    latest = np.concatenate([[0], np.cumsum(level)[:-1] - 1])
    ends = lay_nodes(trie, patterns, shared, latest, parent)
    if linked:
        link_failures(trie, parent)
    return trie._replace(entry_first=trie.entry_first[: ends + 1].copy()), ends


def _all_of(find: Callable[[Found], int]) -> Found:
    """All that can be found, having made room for it."""
    room = FEW
    while True:
        found = Found(np.empty(room, np.int64), np.empty(room, np.int64))
        count = find(found)
        if count <= room:
            return Found(found.text[:count], found.end[:count])
        room = count
