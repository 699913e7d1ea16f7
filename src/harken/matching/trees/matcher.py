"""What `tree` and `rapid` share: clauses, roles of predicates, and when trees are made."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.matching.contract import AccessPath, Slots, Stats
from harken.matching.encoding.matcher import EncodedMatcher
from harken.matching.encoding.workspace import Workspace
from harken.matching.events.batch import EventBatch
from harken.matching.growing import GrowingArray
from harken.matching.kernels.layout import EQUAL, MEMBER, RING, TESTED, Clauses, Events, PredicateArrays, Results
from harken.matching.predicates.rows import constant_in
from harken.matching.saving import State
from harken.matching.trees.clauses import TreeClauses
from harken.matching.trees.forest import Partition, SearchForest, Source
from harken.matching.trees.kernels.layout import FREE, NO_PREDICATE, NOBODY, ONE, ZERO, Contents, Forest, Order
from harken.matching.trees.kernels.planting import find_leaders
from harken.matching.trees.kernels.searching import match_events
from harken.model.arguments import checked_count
from harken.model.events import FlatEvent
from harken.model.values import Kind

WAITING = 64
"""Clauses that are in no tree, at most: each is asked for every event."""

WASTE = 2
"""When so many times the clauses that there are have been numbered, they are numbered anew."""


class TreeIndex(NamedTuple):
    """All that matching reads: views that are valid until the next change."""

    predicates: PredicateArrays
    roles: npt.NDArray[np.int8]
    contents: Contents
    forest: Forest


class SearchTreeMatcher(EncodedMatcher):
    """Clauses in search trees, but for the latest ones, which wait for theirs.

    Adding costs what a tree costs, a few times over; removing marks clauses as gone, and makes all trees anew once
    there are as many of these as of others.
    """

    _index: TreeIndex

    def __init__(self, waiting: int) -> None:
        super().__init__()
        self._waiting = checked_count("waiting", waiting)
        self._clauses = TreeClauses()
        self._roles = GrowingArray(np.int8)
        self._forest = SearchForest()
        self._changed()

    def match(self, event: FlatEvent) -> Slots:
        """Match one event."""
        return self.match_batch(EventBatch([event], {}, 1))[1]

    def access(self, slot: int) -> list[AccessPath]:
        """How events find the clauses of a subscription: through the branch of the root that they are in."""
        contents, clause, paths = self._index.contents, int(self._index.contents.head[slot]), []
        while clause >= 0:
            leader = int(contents.leader[clause])
            alike = (contents.leader == leader) & (contents.owner != NOBODY)
            condition = self._said([[leader] if leader != NO_PREDICATE else []])
            paths.append(AccessPath(condition, int(np.count_nonzero(alike)) - 1))
            clause = int(contents.sibling[clause])
        return paths

    def stats(self) -> Stats:
        """Sizes, bytes by part, and what matching has done; a check is one node, a cluster one tree."""
        segments = self._forest.segments
        return {
            **self._common_stats(),
            "clauses": len(self._clauses),
            "trees": [len(each.bounds) - 1 for each in segments],
            "waiting": self._clauses.end - self._forest.built,
            "bytes": {
                "trees": self._forest.nbytes,
                "clauses": self._clauses.nbytes,
                "predicates": self._predicates.nbytes + self._roles.nbytes,
            },
        }

    def _partition(self) -> Partition:
        """How the next trees are to be made."""
        return Partition()

    def _parts(self) -> dict[str, State]:
        return {"clauses": self._clauses.state(), "forest": self._forest.state()}

    def _restore_parts(self, state: State, slots: Slots) -> None:
        uses = self._clauses.restore(state.part("clauses"), slots, self._predicates.arrays())
        self._predicates.check_uses(uses)
        self._find_roles(np.flatnonzero(uses))
        self._find_leaders(0)
        self._forest.restore(state.part("forest"), self._source(), self._restored_partition())

    def _restored_partition(self) -> Partition:
        """How trees that were saved were made, as far as is not known of each."""
        return self._partition()

    def _observe(self, events: Events) -> None:
        """Nothing here depends on what events look like."""

    def _have_slots(self, count: int) -> None:
        self._clauses.have_slots(count)

    def _check_clauses(self, clauses: int, predicates: int) -> None:
        self._clauses.check_room(clauses, predicates)

    def _enter(self, clauses: Clauses) -> None:
        self._find_roles(np.unique(clauses.words))
        begin = self._clauses.end
        self._clauses.enter(clauses, self._predicates.arrays().dimension)
        self._find_leaders(begin)

    def _take_out(self, slots: Slots) -> npt.NDArray[np.int64]:
        """Mark clauses as gone. Linear in their number."""
        return self._clauses.take_out(slots)

    def _maintain(self, change: int) -> None:
        if self._clauses.end > self._waiting + WASTE * len(self._clauses):
            with self._changing():
                self._make_anew()
        elif self._clauses.end - self._forest.built > self._waiting:
            with self._changing():
                self._forest.grow(self._source(), self._partition())

    def _make_anew(self) -> None:
        """Number clauses anew, and make all trees anew."""
        compacted = self._clauses.compacted()
        self._forest.forget()
        self._clauses = compacted
        if len(compacted) > self._waiting:
            self._forest.grow(self._source(), self._partition())

    def _find_roles(self, numbers: npt.NDArray[np.int64]) -> None:
        """What predicates that are in use say of the properties of whoever satisfies them."""
        self._roles.grow_to(len(self._predicates))
        arrays = self._predicates.arrays()
        listed = np.isin(arrays.operator[numbers], (EQUAL, MEMBER, TESTED))
        roles = np.where(listed, ONE, FREE).astype(np.int8)
        dimension = arrays.dimension[numbers]
        of_truths = [at for at in np.unique(dimension) if self._predicates.dimensions[at].kind is Kind.BOOL]
        for at in np.flatnonzero(listed & np.isin(dimension, of_truths)).tolist():
            roles[at] = self._role_of_truths(int(numbers[at]), int(arrays.operator[numbers[at]]))
        self._roles.values[numbers] = roles

    def _role_of_truths(self, number: int, operator: int) -> int:
        if all(constant_in(operand) is True for _, _, operand in self._predicates.rows(number)):
            return ONE
        return ZERO if operator == EQUAL else FREE

    def _find_leaders(self, begin: int) -> None:
        source = self._source()
        order = Order(source.dimensions, 0, source.dimensions, False)
        find_leaders(source.predicates, source.roles, source.contents, order, begin)

    def _source(self) -> Source:
        contents, dimensions = self._clauses.arrays(), len(self._predicates.dimensions)
        return Source(self._predicates.arrays(), self._roles.values, contents, dimensions)

    def _read_clauses(self, slots: Slots) -> Clauses:
        return self._clauses.read(slots)

    def _clauses_of(self, slot: int) -> list[list[int]]:
        clauses = self._clauses.read(np.array([slot], np.int64))
        bounds, words = clauses.first.tolist(), clauses.words.tolist()
        return [words[begin:end] for begin, end in pairwise(bounds)]

    def _changed(self) -> None:
        self._encoder.refresh()
        arrays = self._predicates.arrays()
        self._index = TreeIndex(arrays, self._roles.values, self._clauses.arrays(), self._forest.arrays())

    def _fitted(self, old: Workspace | None) -> Workspace:
        """A workspace with notes by dimension, and room for a list of dimensions and one of nodes."""
        dimensions = len(self._predicates.dimensions) + 1
        places = dimensions + self._index.forest.nodes + 1
        return Workspace.fit(old, self._index, self._index.predicates, places // RING + 1, dimensions)

    def _match_from(self, start: int, events: Events, workspace: Workspace, results: Results) -> tuple[int, int]:
        return match_events(*self._index, events, start, workspace.scratch, results)
