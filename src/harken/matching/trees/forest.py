"""The search trees of an index: segments of clauses, each with all its trees, and how they are made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.matching.kernels.layout import PredicateArrays
from harken.matching.saving import State, require
from harken.matching.trees.kernels.layout import MOST_LIGHT, Contents, Forest, Order, tree_words
from harken.matching.trees.kernels.planting import (
    STACK,
    count_zeros,
    lay_keys,
    list_blocks,
    list_members,
    plant,
    sort_members,
)

Integers = npt.NDArray[np.int64]

SPARE = 8
"""One part in so many is added to the room that trees need."""

NOT_LIGHT = -1
"""Instead of c: no event is light."""


class Partition(NamedTuple):
    """How clauses are laid into trees."""

    light: int = NOT_LIGHT
    """c at most: events of up to so many properties have trees of their own."""
    copies: float | None = None
    """In how many of those trees a clause may be, on average; c is no greater than that allows. None: in any."""
    ones_first: bool = False
    """Whether trees ask first what an event must have, but for the one that asks dimension by dimension."""


class Segment(NamedTuple):
    """A run of clauses, from `begin` on up to `end`, and its trees."""

    begin: int
    end: int
    light: int
    dimensions: int
    sparse: bool
    bounds: list[int]
    """Where the trees begin, and where the last one ends."""
    nodes: int
    """No tree of it has more."""


class Source(NamedTuple):
    """What trees are made of."""

    predicates: PredicateArrays
    roles: npt.NDArray[np.int8]
    contents: Contents
    dimensions: int
    """How many there are: k."""


class SearchForest:
    """Segments one behind the other. Changes must not run beside anything else; matching only reads."""

    def __init__(self) -> None:
        self._entries: npt.NDArray[np.int32] = np.zeros(16, np.int32)
        self._segments: list[Segment] = []

    @property
    def built(self) -> int:
        """Clauses from here on are in no tree."""
        return self._segments[-1].end if self._segments else 0

    @property
    def nbytes(self) -> int:
        """Bytes taken by trees, room to grow included."""
        return self._entries.nbytes

    @property
    def segments(self) -> list[Segment]:
        """The segments in the order of their clauses."""
        return list(self._segments)

    def arrays(self) -> Forest:
        """The trees as kernels see them."""
        segments = self._segments
        trees = [len(each.bounds) - 1 for each in segments]
        return Forest(
            self._entries,
            _integers(bound for each in segments for bound in each.bounds[:-1]),
            _integers(bound for each in segments for bound in each.bounds[1:]),
            np.concatenate([[0], np.cumsum(trees)])[: len(segments)].astype(np.int64),
            _integers(each.light for each in segments),
            _integers(each.dimensions for each in segments),
            np.array([each.sparse for each in segments], np.bool_),
            self.built,
            max((each.nodes for each in segments), default=0),
        )

    def state(self) -> State:
        """Where segments end, and what is light in each: trees are made anew of that."""
        ends = _integers(each.end for each in self._segments)
        return State({}, {"ends": ends, "light": _integers(each.light for each in self._segments)})

    def restore(self, state: State, source: Source, partition: Partition) -> None:
        """Have the trees that were there when a state was given. Linear in the clauses, as at first."""
        ends = state.array("ends", np.int64).tolist()
        light = state.array("light", np.int64, size=len(ends)).tolist()
        rising = all(begin < end for begin, end in zip([0, *ends], ends, strict=False))
        require(rising and (not ends or ends[-1] <= source.contents.end), "segments are of no clauses")
        require(all(NOT_LIGHT <= each <= MOST_LIGHT for each in light), "there are more blocks than there can be")
        for begin, end, each in zip([0, *ends], ends, light, strict=False):
            self._append(source, begin, end, partition._replace(light=min(each, partition.light)))

    def forget(self) -> None:
        """Have no trees: clauses are numbered anew."""
        self._segments = []

    def grow(self, source: Source, partition: Partition) -> None:
        """Make trees of the clauses that wait, together with those of segments that are not much larger.

        So there are few segments, and a clause is laid anew about as often as their number doubles.
        """
        begin, end = self.built, source.contents.end
        while self._segments and end - begin >= (self._segments[-1].end - self._segments[-1].begin) // 2:
            begin = self._segments.pop().begin
        self._append(source, begin, end, partition)

    def _append(self, source: Source, begin: int, end: int, partition: Partition) -> None:
        planting = _Planting(self._entries, self._segments[-1].bounds[-1] if self._segments else 0, source)
        segment = planting.segment(begin, end, partition)
        self._entries = planting.entries
        self._segments.append(segment)


class _Planting:
    """Trees in the making: entries, in an array that may be replaced by a larger one, and where trees begin."""

    def __init__(self, entries: npt.NDArray[np.int32], end: int, source: Source) -> None:
        self.entries = entries
        self._bounds = [end]
        self._nodes = 0
        self._source = source
        self._dimensions = max(1, source.dimensions)

    def segment(self, begin: int, end: int, partition: Partition) -> Segment:
        """All trees of a run of clauses."""
        members = np.zeros(end - begin, np.int64)
        members = members[: list_members(self._source.contents, begin, end, members)]
        light = self._plant_light(members, partition)
        sparse = partition.ones_first and count_zeros(self._source.contents, self._source.roles, members) > 0
        if sparse:
            self._plant(members, Order(self._dimensions, 0, self._dimensions, True))
        self._plant(members, Order(self._dimensions, 0, self._dimensions, False))
        return Segment(begin, end, light, self._dimensions, bool(sparse), self._bounds, self._nodes)

    def _plant_light(self, members: Integers, partition: Partition) -> int:
        """The trees of light events; the most properties that these may have."""
        source, dimensions, planted = self._source, self._dimensions, 0
        most = min(partition.light, MOST_LIGHT, dimensions - 1)
        blocks = np.zeros(len(members), np.int64)
        for light in range(most + 1):
            planted += list_blocks(
                source.predicates, source.roles, source.contents, dimensions, light, members, blocks
            )
            if partition.copies is not None and planted > partition.copies * len(members):
                return light - 1
            for block in range(light + 1):
                without = members[(blocks >> block) & 1 == 0]
                self._plant(without, block_order(dimensions, light, block, partition.ones_first))
        return most

    def _plant(self, members: Integers, order: Order) -> None:
        """One more tree, of these clauses."""
        source, first = self._source, self._source.contents.first
        widths = first[members + 1].astype(np.int64) - first[members]
        offset = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
        keys, index = np.zeros(int(offset[-1]), np.int64), np.arange(len(members))
        lay_keys(source.predicates, source.roles, source.contents, order, members, offset, keys)
        sort_members(keys, offset, index, np.zeros(STACK, np.int64))
        made = np.empty(tree_words(len(members), len(keys)), np.int32)
        groups, left = np.empty(len(members), np.int64), np.empty(2 * len(members) + 4, np.int64)
        size, nodes = plant(source.predicates, keys, offset, index, members, groups, left, made)
        self._nodes = max(self._nodes, nodes)
        self._append(made[:size])

    def _append(self, made: npt.NDArray[np.int32]) -> None:
        begin = self._bounds[-1]
        end = begin + len(made)
        if end > len(self.entries):
            larger = np.empty(end + end // SPARE, np.int32)
            larger[:begin] = self.entries[:begin]
            self.entries = larger
        self.entries[begin:end] = made
        self._bounds.append(end)


def block_order(dimensions: int, light: int, block: int, ones_first: bool) -> Order:
    """The order of a tree of events that have `light` properties, and none in this of light + 1 blocks."""
    begin, end = (-(-each * dimensions // (light + 1)) for each in (block, block + 1))
    return Order(dimensions, end % dimensions, dimensions - (end - begin), ones_first)


def _integers(values: Iterable[int]) -> Integers:
    return np.fromiter(values, np.int64)
