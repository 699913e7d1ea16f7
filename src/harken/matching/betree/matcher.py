"""BE-Tree (Sadoghi and Jacobsen 2011): the space of events cut by attribute, then by value, in turns.

An event goes down only where its attributes and their values lead, and looks at the clauses that it meets on the
way. So its work grows with how many clauses cannot be told apart by what they have in common with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.matching.betree.kernels.layout import NO_NODE, ROOT, Tree
from harken.matching.betree.kernels.matching import Route, match_events
from harken.matching.betree.kernels.placing import admit, learn_all, take_out
from harken.matching.betree.tree import GrowingTree
from harken.matching.contract import AccessPath, Slots, Stats
from harken.matching.encoding.clauses import ClauseMatcher, asked_by, predicates_of
from harken.matching.encoding.workspace import Workspace
from harken.matching.growing import GrowingArray
from harken.matching.kernels.layout import Clauses, Events, PredicateArrays, Results
from harken.matching.saving import State
from harken.matching.structures.kernels.attributes import WAYS
from harken.matching.structures.kernels.clauses import NOBODY, Contents, count_words
from harken.model.arguments import checked_size

NODE_SIZE = 32
"""Clauses that a node holds before its space is cut."""

MANY = 256
"""Fewer clauses or nodes than this are not worth being placed anew."""

GROWN = 2
"""With so many times the clauses or the nodes there were, or as many times fewer clauses, all are placed anew."""


class BeTreeIndex(NamedTuple):
    """All that matching reads: views that are valid until the next change."""

    tree: Tree
    contents: Contents
    predicates: PredicateArrays


@dataclass(slots=True)
class BeTreeWorkspace(Workspace):
    """A workspace, and what an event leads to."""

    route: Route = field(default_factory=lambda: _route(0, 0))


class BeTreeMatcher(ClauseMatcher):
    """A BE-Tree of nodes with `node_size` clauses.

    The paper's tree needs attributes of finite domains of numbers. Here the values that subscriptions name are
    what is cut, in their order, so that numbers without bounds and strings will do, and nothing is refused; what
    cannot be cut by value (texts that are like a pattern, sets, shapes, what is not so) is told apart by its
    attribute alone. A change of one subscription takes time in proportion to its predicates and the node size; now
    and then, when the numbers of clauses or nodes have doubled, or the order of values had to be noted anew, all
    clauses are placed anew.
    """

    _index: BeTreeIndex

    def __init__(self, *, node_size: int = NODE_SIZE) -> None:
        super().__init__()
        self._node_size = checked_size("node_size", node_size)
        self._tree = GrowingTree(self._node_size)
        self._epochs = GrowingArray(np.int64)
        """By dimension: of which epoch the labels are that the tree is cut by."""
        self._placed_anew = 0
        """How many clauses there were when all were placed anew."""
        self._nodes_then = 1
        self._changed()

    def access(self, slot: int) -> list[AccessPath]:
        """How events find the clauses of a subscription: through what is asked of the attributes on the way."""
        paths, tree = [], self._tree.arrays()
        predicates = self._predicates.arrays()
        for clause, words in zip(self._contents.numbers_of(slot), self._contents.lists_of(slot), strict=True):
            node, used = int(tree.node_of[clause]), set[int]()
            others = int(tree.nodes.length[node]) - 1
            while node not in (ROOT, NO_NODE):
                used.add(int(tree.nodes.attribute[node]) // WAYS)
                node = int(tree.nodes.above[node])
            on_the_way = [each for each in predicates_of(words) if int(predicates.dimension[each]) in used]
            paths.append(AccessPath(self._said([on_the_way]), others))
        return paths

    def stats(self) -> Stats:
        """Sizes, bytes by part, and what matching has done; "clusters" are nodes looked into."""
        nodes = self._tree.arrays().nodes
        count = len(self._tree)
        return {
            **self._common_stats(),
            "clauses": len(self._contents),
            "nodes": count,
            "directories": self._tree.directories,
            "largest_node": int(nodes.length[:count].max(initial=0)),
            "bytes": {
                **self._tree.nbytes,
                "clauses": self._contents.nbytes,
                "predicates": self._predicates.nbytes,
            },
        }

    def _parts(self) -> dict[str, State]:
        return {"contents": self._contents.state()}

    def _restore_parts(self, state: State, slots: Slots) -> None:
        """Take over the clauses, and place them: linear in their number."""
        self._restore_contents(state, slots)
        self._follow_labels()
        self._place_all_anew()

    def _enter(self, clauses: Clauses) -> None:
        self._contents.make_room(clauses)
        self._have_places(self._tree)
        contents, predicates = self._contents.arrays(), self._predicates.arrays()
        admitted = np.zeros(len(clauses.slot), np.int64)
        admit(self._tree.arrays(), contents, predicates, clauses, admitted)
        if self._follow_labels() or len(self._contents) > GROWN * max(self._placed_anew, MANY):
            self._place_all_anew()
        else:
            self._tree.insert(contents, predicates, admitted)
            self._place_anew_if_worn()

    def _take_out(self, slots: Slots) -> npt.NDArray[np.int64]:
        """Take clauses out of their nodes. Linear in their predicates."""
        contents = self._contents.arrays()
        words = np.zeros(count_words(contents, slots), np.int64)
        take_out(self._tree.arrays(), contents, self._predicates.arrays(), slots, words)
        self._contents.compact()
        if self._placed_anew > MANY and GROWN * len(self._contents) < self._placed_anew:
            self._place_all_anew()
        return asked_by(words)

    # ---------------------------------------------------------------- placing

    def _have_places(self, tree: GrowingTree) -> None:
        """Have a place for every clause and every attribute there is."""
        tree.have_clauses(len(self._contents.arrays().first))
        tree.have_dimensions(len(self._predicates.dimensions))

    def _follow_labels(self) -> bool:
        """Whether labels that the tree is cut by have been given anew since this was last asked."""
        dimensions, known = self._predicates.dimensions, len(self._epochs)
        self._epochs.grow_to(len(dimensions))
        epochs = np.array([each.order.epoch for each in dimensions], np.int64)
        renamed = [number for number in self._predicates.renamed() if number < known]
        self._epochs.values[renamed] = epochs[renamed]
        changed = bool(np.any(self._epochs.values[:known] != epochs[:known]))
        self._epochs.values[:] = epochs
        return changed

    def _place_anew_if_worn(self) -> None:
        """Place all anew if nodes have become many: those that clauses have left are not used again."""
        if len(self._tree) > GROWN * max(self._nodes_then, MANY):
            self._place_all_anew()

    def _place_all_anew(self) -> None:
        """Place all clauses anew, by what is asked now. Linear in their number, but for the depth of the tree."""
        contents, predicates = self._contents.arrays(), self._predicates.arrays()
        clauses = np.flatnonzero(contents.slot != NOBODY)[: len(self._contents)]
        tree = GrowingTree(self._node_size)
        self._have_places(tree)
        learn_all(tree.arrays(), contents, predicates, clauses)
        tree.insert(contents, predicates, clauses)
        self._tree, self._placed_anew, self._nodes_then = tree, len(clauses), len(tree)

    # ---------------------------------------------------------------- matching

    def _changed(self) -> None:
        self._encoder.refresh()
        self._index = BeTreeIndex(self._tree.arrays(), self._contents.arrays(), self._predicates.arrays())

    def _fitted(self, old: Workspace | None) -> Workspace:
        index = self._index
        made = BeTreeWorkspace.fit(old, index, index.predicates, 1)
        assert isinstance(made, BeTreeWorkspace)
        made.route = _route(0, len(index.tree.nodes.start))
        return made

    def _match_from(self, start: int, events: Events, workspace: Workspace, results: Results) -> tuple[int, int]:
        assert isinstance(workspace, BeTreeWorkspace)
        attributes = WAYS * events.code.shape[1] + self._predicates.most_satisfied
        if len(workspace.route.attribute) < attributes:
            workspace.route = _route(attributes, len(workspace.route.waiting))
        return match_events(*self._index, events, start, workspace.route, workspace.scratch, results)


def _route(attributes: int, nodes: int) -> Route:
    """Room for so many attributes of an event, and so many nodes."""
    return Route(np.zeros(attributes, np.int32), np.zeros(attributes, np.int64), np.zeros(nodes, np.int32))
