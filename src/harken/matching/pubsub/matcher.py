"""PUBSUB (Mishra and Sahni): structures over attributes, level by level, with buckets of clauses.

An event looks into the structures of the attributes that it has, one for each that comes first in some clause, and
there only into the buckets that its values lead to. So its work grows with how many clauses begin the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.errors import ArgumentError, ArgumentTypeError
from harken.matching.contract import AccessPath, Slots, Stats
from harken.matching.encoding.clauses import ClauseMatcher, asked_by, predicates_of
from harken.matching.encoding.workspace import Workspace
from harken.matching.growing import GrowingArray
from harken.matching.kernels.layout import INTERVAL, Clauses, Events, PredicateArrays, Results
from harken.matching.pubsub.database import GrowingDatabase
from harken.matching.pubsub.kernels.buckets import sort_all
from harken.matching.pubsub.kernels.layout import (
    FREE,
    HASH,
    INTERVAL_TREE,
    PRIORITY_SEARCH_TREE,
    UNDIVIDED,
    Database,
)
from harken.matching.pubsub.kernels.matching import Route, match_events
from harken.matching.pubsub.kernels.placing import admit, count_below, find_reaches, reorder, take_out, withdraw
from harken.matching.saving import State, require
from harken.matching.structures.kernels.attributes import RANGE, WAYS
from harken.matching.structures.kernels.clauses import NOBODY, Contents, count_words
from harken.matching.structures.kernels.priority_search_trees import DEEPEST
from harken.model.arguments import checked_size

BUCKET_SIZE = 5_000
"""Clauses that a bucket holds before it is divided: what the paper found best for matching."""

STRUCTURES = {
    "hash": HASH,
    "interval-tree": INTERVAL_TREE,
    "priority-search-tree": PRIORITY_SEARCH_TREE,
}
"""What the clauses on an attribute can be divided by."""

MANY = 256
"""After so many subscriptions at once all buckets are put in order, and the order of attributes is looked at."""

GROWN = 2
"""With so many times the clauses there were, or as many times fewer, all of them are placed anew."""


class PubsubIndex(NamedTuple):
    """All that matching reads: views that are valid until the next change."""

    database: Database
    contents: Contents
    predicates: PredicateArrays


@dataclass(slots=True)
class PubsubWorkspace(Workspace):
    """A workspace, and what an event leads to."""

    route: Route = field(default_factory=lambda: _route(0, 0))


class PubsubMatcher(ClauseMatcher):
    """Attribute structures in levels, of buckets with `bucket_size` clauses.

    Small buckets suit subscriptions that come and go, large ones events. `structures` says by what the clauses of
    an attribute are divided: "hash" (equalities only), "interval-tree" or "priority-search-tree"; one word is for
    all attributes, and those that are not mentioned are divided by what suits what is asked of them. A change of
    one subscription takes time in proportion to the bucket size at most; now and then, when the number of clauses
    has doubled or halved, all are placed anew.
    """

    _index: PubsubIndex

    def __init__(
        self, *, bucket_size: int = BUCKET_SIZE, structures: str | Mapping[str, str] | None = None
    ) -> None:
        super().__init__()
        self._bucket_size = checked_size("bucket_size", bucket_size)
        self._structures = _checked_structures(structures)
        self._database = GrowingDatabase(self._bucket_size)
        self._epochs = GrowingArray(np.int64)
        """By dimension: of which epoch the labels in trees are."""
        self._placed_anew = 0
        """How many clauses there were when all were placed anew."""
        self._changed()

    def access(self, slot: int) -> list[AccessPath]:
        """How events find the clauses of a subscription: through what is asked of the attributes on the way."""
        paths, database = [], self._database.arrays()
        for clause, words in zip(self._contents.numbers_of(slot), self._contents.lists_of(slot), strict=True):
            bucket = int(database.bucket_of[clause])
            depth = min(int(database.buckets.level[bucket]) + 1, int(database.reach[clause]))
            condition = self._said([predicates_of(words[:depth])])
            paths.append(AccessPath(condition, int(database.buckets.length[bucket]) - 1))
        return paths

    def stats(self) -> Stats:
        """Sizes, bytes by part, and what matching has done; "clusters" are buckets looked into."""
        return {
            **self._common_stats(),
            "clauses": len(self._contents),
            **self._structure_stats(),
            "bytes": {
                **self._database.nbytes,
                "clauses": self._contents.nbytes,
                "predicates": self._predicates.nbytes,
            },
        }

    def _structure_stats(self) -> dict[str, object]:
        database = self._database.arrays()
        buckets, structures = database.buckets, database.structures
        used = np.flatnonzero((buckets.owner != FREE) & (buckets.level > 0))
        kinds = structures.kind[np.unique(buckets.owner[used])]
        names = {UNDIVIDED: "undivided"} | {kind: name for name, kind in STRUCTURES.items()}
        return {
            "buckets": len(used),
            "largest_bucket": int(buckets.length[used].max(initial=0)),
            "levels": int(buckets.level[used].max(initial=0)),
            "structures": {name: int(np.count_nonzero(kinds == kind)) for kind, name in names.items()},
        }

    def _parts(self) -> dict[str, State]:
        return {"contents": self._contents.state()}

    def _restore_parts(self, state: State, slots: Slots) -> None:
        """Take over the clauses, with the order of their attributes, and place them: linear in their number."""
        self._restore_contents(state, slots)
        predicates, clauses = self._predicates.arrays(), self._live()
        self._have_places(len(self._contents.arrays().first))
        contents = self._contents.arrays()
        require(find_reaches(self._database.arrays(), contents, predicates, clauses), "words are in no order")
        self._follow_labels(np.arange(len(self._predicates.dimensions)))
        self._database.insert(contents, predicates, clauses)
        sort_all(self._database.arrays(), predicates)
        self._placed_anew = len(clauses)

    def _enter(self, clauses: Clauses) -> None:
        self._contents.make_room(clauses)
        self._have_places(len(self._contents.arrays().first))
        contents, predicates = self._contents.arrays(), self._predicates.arrays()
        self._place_where_labels_are_new(clauses.words)
        admitted = np.zeros(len(clauses.slot), np.int64)
        admit(self._database.arrays(), contents, predicates, clauses, admitted)
        if len(self._contents) > GROWN * max(self._placed_anew, MANY):
            self._place_all_anew()
            return
        self._database.insert(contents, predicates, admitted)
        if len(admitted) >= MANY:
            sort_all(self._database.arrays(), predicates)
        self._database.compact()

    def _take_out(self, slots: Slots) -> npt.NDArray[np.int64]:
        """Take clauses out of their buckets, each of which is gone through once. Linear in their sizes."""
        contents = self._contents.arrays()
        words = np.zeros(count_words(contents, slots), np.int64)
        take_out(self._database.arrays(), contents, self._predicates.arrays(), slots, words)
        self._contents.compact()
        if self._placed_anew > MANY and GROWN * len(self._contents) < self._placed_anew:
            self._place_all_anew()
        else:
            self._database.compact()
        return asked_by(words)

    # ---------------------------------------------------------------- placing

    def _live(self) -> npt.NDArray[np.int64]:
        """The numbers of all clauses."""
        return np.flatnonzero(self._contents.arrays().slot != NOBODY)[: len(self._contents)]

    def _have_places(self, clauses: int) -> None:
        """Have a place for every clause below this one, and for every attribute there is."""
        dimensions = self._predicates.dimensions
        known = len(self._database.preferred) // WAYS
        self._database.have_clauses(clauses)
        self._database.have_dimensions(len(dimensions))
        self._epochs.grow_to(len(dimensions))
        for number in (*self._predicates.renamed(), *range(known, len(dimensions))):
            preferred = STRUCTURES.get(self._structure_of(dimensions[number].attribute), UNDIVIDED)
            self._database.preferred.values[number * WAYS : (number + 1) * WAYS] = preferred
            self._epochs.values[number] = dimensions[number].order.epoch

    def _structure_of(self, attribute: str) -> str:
        chosen = self._structures
        return chosen if isinstance(chosen, str) else chosen.get(attribute, "")

    def _place_where_labels_are_new(self, words: npt.NDArray[np.int64]) -> None:
        """Place clauses anew that are in trees over labels which new predicates have made others."""
        predicates = self._predicates.arrays()
        asked = words[predicates.operator[words] == INTERVAL]
        changed = self._follow_labels(np.unique(predicates.dimension[asked]))
        if not changed:
            return
        renumbered = np.zeros(len(self._database.frequency), np.bool_)
        renumbered[np.array(changed) * WAYS + RANGE] = True
        database = self._database.arrays()
        count = count_below(database, renumbered, np.zeros(0, np.int64))
        clauses = np.zeros(count, np.int64)
        count_below(database, renumbered, clauses)
        withdraw(database, clauses)
        self._database.insert(self._contents.arrays(), predicates, clauses)

    def _follow_labels(self, dimensions: npt.NDArray[np.integer]) -> list[int]:
        """Those of some dimensions whose labels have been given anew since this was last asked."""
        changed = []
        for number in dimensions.tolist():
            epoch = self._predicates.dimensions[number].order.epoch
            if self._epochs.values[number] != epoch:
                self._epochs.values[number] = epoch
                changed.append(number)
        return changed

    def _place_all_anew(self) -> None:
        """Place all clauses anew, in the order of attributes that their numbers of now suggest."""
        clauses, old = self._live(), self._database
        contents, predicates = self._contents.arrays(), self._predicates.arrays()
        new = GrowingDatabase(self._bucket_size)
        new.frequency, new.preferred = old.frequency, old.preferred
        new.have_clauses(len(contents.first))
        reorder(new.arrays(), contents, predicates, clauses)
        new.insert(contents, predicates, clauses)
        sort_all(new.arrays(), predicates)
        self._database, self._placed_anew = new, len(clauses)

    # ---------------------------------------------------------------- matching

    def _changed(self) -> None:
        self._encoder.refresh()
        self._index = PubsubIndex(self._database.arrays(), self._contents.arrays(), self._predicates.arrays())

    def _fitted(self, old: Workspace | None) -> Workspace:
        index = self._index
        made = PubsubWorkspace.fit(old, index, index.predicates, 1)
        assert isinstance(made, PubsubWorkspace)
        made.route = _route(0, len(index.database.buckets.start))
        return made

    def _match_from(self, start: int, events: Events, workspace: Workspace, results: Results) -> tuple[int, int]:
        assert isinstance(workspace, PubsubWorkspace)
        attributes = WAYS * events.code.shape[1] + self._predicates.most_satisfied
        if len(workspace.route.attribute) < attributes:
            workspace.route = _route(attributes, len(workspace.route.waiting))
        return match_events(*self._index, events, start, workspace.route, workspace.scratch, results)


def _route(attributes: int, buckets: int) -> Route:
    """Room for so many attributes of an event, and so many buckets."""
    return Route(
        np.zeros(attributes, np.int32),
        np.zeros(attributes, np.int64),
        np.zeros(buckets, np.int32),
        np.zeros(DEEPEST, np.int32),
    )


def _checked_structures(structures: object) -> str | Mapping[str, str]:
    if structures is None:
        return {}
    if not isinstance(structures, str | Mapping):
        raise ArgumentTypeError.of("structures", "a name, or names by attribute", type(structures).__name__)
    for attribute in () if isinstance(structures, str) else structures:
        if not isinstance(attribute, str):
            raise ArgumentTypeError.of("structures", "names by attribute", f"the attribute {attribute!r}")
    for name in [structures] if isinstance(structures, str) else structures.values():
        if not isinstance(name, str) or name not in STRUCTURES:
            raise ArgumentError.choice("structures", name, list(STRUCTURES))
    return structures if isinstance(structures, str) else dict(structures)
