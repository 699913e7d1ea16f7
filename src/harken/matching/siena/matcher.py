"""Siena's forwarding (Carzaniga and Wolf 2003): a table of constraints and filters, made anew for all changes.

The other counting algorithm: unlike `counting` it finds ends of ranges in their order instead of asking each, and
pays for it with a count for each end. Its work for an event is how many filters have each constraint that holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from harken.matching.contract import AccessPath, Slots, Stats
from harken.matching.encoding.clauses import ClauseMatcher, asked_by, predicates_of
from harken.matching.encoding.workspace import Workspace
from harken.matching.kernels.layout import Clauses, Events, PredicateArrays, Results
from harken.matching.predicates.dimensions import Dimension
from harken.matching.saving import State
from harken.matching.siena.kernels.building import enter, take_out
from harken.matching.siena.kernels.matching import Opened, Table, match_events
from harken.matching.siena.table import forwarding_table
from harken.matching.structures.kernels.clauses import Contents, count_words
from harken.model.values import Kind

Asked: TypeAlias = Mapping[str, Mapping[Kind | None, Dimension]]
"""By attribute and kind, the dimensions that something is asked of."""


class SienaIndex:
    """All that matching reads, valid until the next change. The table is made when it is first asked for.

    Several threads may ask at once: then each makes one, all the same, and the last is kept.
    """

    def __init__(self, contents: Contents, predicates: PredicateArrays, dimensions: Asked) -> None:
        self.contents = contents
        self.predicates = predicates
        self._dimensions = dimensions
        self._table: Table | None = None

    def forget(self) -> None:
        """Hold no table any more: threads that have matched and wait may hold on to this."""
        self._table = None

    @property
    def table(self) -> Table:
        """The forwarding table. Linear in the clauses, the first time."""
        table = self._table
        if table is None:
            asked = [each for of_attribute in self._dimensions.values() for each in of_attribute.values()]
            table = self._table = forwarding_table(self.contents, self.predicates, asked)
        return table

    @property
    def nbytes(self) -> int:
        """Bytes that the table takes, as far as it is made."""
        if self._table is None:
            return 0
        names, constraints, lists, lacking = self._table
        return lacking.nbytes + sum(each.nbytes for part in (names, constraints, lists) for each in part)


@dataclass(slots=True)
class SienaWorkspace(Workspace):
    """A workspace, and the counters of filters."""

    opened: Opened = field(default_factory=lambda: _opened(np.zeros(0, np.uint8), 0))


class SienaMatcher(ClauseMatcher):
    """A forwarding table, which changes in batches: the first event after changes waits until it is made anew.

    Each thread that matches has its own counters, a byte or more per clause. Prefixes, suffixes and parts of texts
    are found by tries, as for all algorithms, where events are encoded.
    """

    _index: SienaIndex

    def __init__(self) -> None:
        super().__init__()
        self._index = self._new_index()

    def access(self, slot: int) -> list[AccessPath]:
        """How events find the clauses of a subscription: through every predicate of each."""
        length = self._index.table.lists.length
        words = [word for words in self._contents.lists_of(slot) for word in words]
        return [AccessPath(self._said([predicates_of([word])]), int(length[word]) - 1) for word in words]

    def stats(self) -> Stats:
        """Sizes, bytes by part, and what matching has done; a check is one step of one counter."""
        return {
            **self._common_stats(),
            "clauses": len(self._contents),
            "bytes": {
                "table": self._index.nbytes,
                "clauses": self._contents.nbytes,
                "predicates": self._predicates.nbytes,
            },
        }

    def _parts(self) -> dict[str, State]:
        return {"contents": self._contents.state()}

    def _restore_parts(self, state: State, slots: Slots) -> None:
        self._restore_contents(state, slots)

    def _enter(self, clauses: Clauses) -> None:
        self._contents.make_room(clauses)
        enter(self._contents.arrays(), clauses)

    def _take_out(self, slots: Slots) -> npt.NDArray[np.int64]:
        contents = self._contents.arrays()
        words = np.zeros(count_words(contents, slots), np.int64)
        take_out(contents, slots, words)
        self._contents.compact()
        return asked_by(words)

    def _changed(self) -> None:
        self._encoder.refresh()
        self._index.forget()
        self._index = self._new_index()

    def _new_index(self) -> SienaIndex:
        predicates = self._predicates
        return SienaIndex(self._contents.arrays(), predicates.arrays(), predicates.by_attribute)

    def _fitted(self, old: Workspace | None) -> Workspace:
        index = self._index
        made = SienaWorkspace.fit(old, index, index.predicates, 1)
        assert isinstance(made, SienaWorkspace)
        made.opened = _opened(index.table.lacking.copy(), len(index.predicates.operator))
        return made

    def _match_from(self, start: int, events: Events, workspace: Workspace, results: Results) -> tuple[int, int]:
        assert isinstance(workspace, SienaWorkspace)
        index, opened = self._index, workspace.opened
        if len(opened.dimension) < len(events.dimension):
            opened = workspace.opened = opened._replace(dimension=np.zeros(len(events.dimension), np.int32))
        return match_events(
            index.table, index.contents, index.predicates, events, start, opened, workspace.scratch, results
        )


def _opened(left: npt.NDArray[np.unsignedinteger], predicates: int) -> Opened:
    """Room for the lists of so many predicates: a range has two ends, and one list is every event's."""
    return Opened(left, np.zeros(2 * predicates + 1, np.int32), np.zeros(0, np.int32))
