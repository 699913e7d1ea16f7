"""The distributed design (Tomasic et al. 2006, section 7.2): constraints are divided over rows of servers.

A **directory** holds the partitions, U, and their version, Z. Each partition is a constraint and belongs to a row,
which is a store of its own. Whoever subscribes or publishes asks the directory which rows a constraint can
concern, which is itself a symmetric match, and talks to those. Subscriptions lie in every row they can concern, so
that a publication finds all its matches in the rows it concerns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

from harken.errors import (
    ArgumentError,
    ArgumentTypeError,
    ConcurrentChangeError,
    IndexFormatError,
    UnknownSubscriptionError,
)
from harken.locking import SharedLock
from harken.model.expressions import Expression
from harken.model.schema import Schema
from harken.model.subscriptions import SubscriptionId, checked_id
from harken.symmetric.arguments import checked_covers
from harken.symmetric.contract import Held, Store
from harken.symmetric.pointsets import meet
from harken.symmetric.semantics import Boxes, Covers, boxes_of

PATIENCE = 30.0
"""Seconds that a change waits for a reconfiguration to end."""

TOGETHER = 1_000
"""Subscriptions that are moved together."""


@dataclass(frozen=True, slots=True)
class Partitions:
    """What the directory says: the version, and by row the constraint of its partition.

    While `next_version` is set, a reconfiguration is under way, and subscriptions may not change.
    """

    version: int
    constraints: Mapping[str, str]
    next_version: int | None = None


class Directory(Protocol):
    """Keeps the partitions. Every call is a transaction."""

    def read(self) -> Partitions | None:
        """What holds now; None before the first."""

    def write(self, expected: Partitions | None, partitions: Partitions) -> None:
        """Put others in their place; ConcurrentChangeError if something else than expected is there."""


class MemoryDirectory:
    """A directory for one process, whose threads may share it."""

    def __init__(self) -> None:
        self._partitions: Partitions | None = None
        self._writing = SharedLock()

    def read(self) -> Partitions | None:
        """What holds now."""
        return self._partitions

    def write(self, expected: Partitions | None, partitions: Partitions) -> None:
        """Put others in their place."""
        with self._writing.lock:
            if self._partitions != expected:
                raise ConcurrentChangeError("the directory", partitions.version)
            self._partitions = partitions


class PartitionedEngine:
    """Subscribe, publish and match over rows of servers that can be divided anew while they work.

    `open_row` opens the store of a row by name; the same name opens the same store, in whichever process. Threads
    may share an engine. A change reaches row after row, each by a transaction: if it fails on the way, it may have
    reached some, and is to be made again.
    """

    def __init__(
        self,
        directory: Directory,
        open_row: Callable[[str], Store],
        *,
        schema: Schema | None = None,
        covers: Covers = "publication",
    ) -> None:
        self._directory = directory
        self._open = open_row
        self._stores: dict[str, Store] = {}
        self._read: dict[str, Boxes] = {}
        self._schema = schema
        self._covers: Covers = checked_covers(covers)
        self._opening = SharedLock()
        self._known = self.join()

    @classmethod
    def start(
        cls,
        directory: Directory,
        open_row: Callable[[str], Store],
        constraints: Mapping[str, str],
        *,
        schema: Schema | None = None,
        covers: Covers = "publication",
    ) -> PartitionedEngine:
        """Set up a directory that has no partitions yet. Together, constraints should cover everything."""
        checked_covers(covers)
        directory.write(None, Partitions(1, _checked_constraints(constraints, schema)))
        return cls(directory, open_row, schema=schema, covers=covers)

    def join(self) -> Partitions:
        """Ask the directory for the partitions and their version."""
        found = self._directory.read()
        if found is None:
            raise IndexFormatError(
                "the directory has no partitions", suggestion="PartitionedEngine.start sets it up"
            )
        self._known = found
        return found

    def subscribe(self, id: SubscriptionId, expression: str | Expression) -> None:
        """Keep a subscription in every row it can concern; one of the same id gives way.

        If the partitions changed meanwhile, it is done again: it may have come too late to be moved.
        """
        held = Held.of(id, expression, self._schema)
        self._change(lambda known: self._place(known, held))

    def unsubscribe(self, id: SubscriptionId) -> None:
        """Forget a subscription, wherever it is; UnknownSubscriptionError if it is nowhere."""
        id = checked_id(id)
        known = self.join()
        if all(self._store(known, row).get("subscriptions", id) is None for row in known.constraints):
            raise UnknownSubscriptionError(id)
        self._change(lambda known: self._clear(known, [id], known.constraints))

    def match(self, publication: str | Expression) -> list[SubscriptionId]:
        """The ids of the subscriptions that a publication matches, from the rows it concerns."""
        boxes = boxes_of(publication, self._schema)
        while True:
            known = self._known
            found = [
                id
                for row in self._rows(known, boxes)
                for _, id in self._store(known, row).match("subscriptions", [boxes], self._covers)
            ]
            # Rows of a version that is over may have been cleared while they were asked.
            if self.join().version == known.version:
                return list(dict.fromkeys(found))

    def reconfigure(self, constraints: Mapping[str, str], *, take_over: bool = False) -> Partitions:
        """Divide everything anew: into other stores first, and then all at once.

        Meanwhile publications are matched as before, and changes of subscriptions wait. ConcurrentChangeError if
        another process is at it; if that one has died, `take_over` begins again.
        """
        checked = _checked_constraints(constraints, self._schema)
        before = self.join()
        if before.next_version is not None and not take_over:
            raise ConcurrentChangeError("the directory, which is being reconfigured,", before.version)
        frozen = replace(before, next_version=before.version + 1)
        self._directory.write(before, frozen)
        after = Partitions(before.version + 1, checked)
        for row in after.constraints:
            store = self._store(after, row)
            store.remove("subscriptions", store.ids("subscriptions"))  # left by one that died
        everything = self._everything(before)
        while several := list(islice(everything, TOGETHER)):
            for row in after.constraints:
                coming = [held for held in several if row in self._rows(after, held.boxes)]
                self._store(after, row).put("subscriptions", coming, self._covers, replace=True)
        self._directory.write(frozen, after)
        for row in before.constraints:
            self._clear(before, self._store(before, row).ids("subscriptions"), [row])
        return self.join()

    # ---------------------------------------------------------------- inside

    def _change(self, apply: Callable[[Partitions], None]) -> None:
        """Make a change, again and again until it was made in partitions that hold and were not being moved."""
        deadline = time.monotonic() + PATIENCE
        while True:
            known = self._settled(deadline)
            apply(known)
            if self.join() == known:
                return

    def _settled(self, deadline: float) -> Partitions:
        """The partitions, once no reconfiguration is under way."""
        while (known := self.join()).next_version is not None:
            if time.monotonic() > deadline:
                raise ConcurrentChangeError("the directory, which is being reconfigured,", known.version)
            time.sleep(0.01)
        return known

    def _place(self, known: Partitions, held: Held) -> None:
        rows = self._rows(known, held.boxes)
        for row in rows:
            self._store(known, row).put("subscriptions", [held], self._covers, replace=True)
        self._clear(known, [held.id], [row for row in known.constraints if row not in rows])

    def _clear(self, known: Partitions, ids: Iterable[SubscriptionId], rows: Iterable[str]) -> None:
        going = list(ids)
        for row in rows:
            store = self._store(known, row)
            store.remove("subscriptions", [id for id in going if store.get("subscriptions", id) is not None])

    def _everything(self, known: Partitions) -> Iterator[Held]:
        seen: set[SubscriptionId] = set()
        for row in known.constraints:
            store = self._store(known, row)
            for id in store.ids("subscriptions"):
                if id not in seen and (held := store.get("subscriptions", id)) is not None:
                    seen.add(id)
                    yield held

    def _rows(self, known: Partitions, boxes: Boxes) -> list[str]:
        """The rows that a constraint can concern."""
        return [row for row, text in known.constraints.items() if _concern(boxes, self._boxes(text))]

    def _boxes(self, text: str) -> Boxes:
        """The constraint of a partition, which is read once."""
        if text not in self._read:
            self._read[text] = boxes_of(text, self._schema)
        return self._read[text]

    def _store(self, known: Partitions, row: str) -> Store:
        """The store of a row, which is another for every version."""
        name = f"{row}_{known.version}"
        with self._opening.lock:
            if name not in self._stores:
                self._stores[name] = self._open(name)
            return self._stores[name]


def _checked_constraints(constraints: object, schema: Schema | None) -> dict[str, str]:
    """Rows by name, each with a constraint that can be read, before anything is divided by them."""
    if not isinstance(constraints, Mapping):
        message = f"constraints are a mapping of rows to texts, found {type(constraints).__name__}"
        raise ArgumentTypeError(message, argument="constraints")
    if not constraints:
        raise ArgumentError("constraints name at least one row", argument="constraints")
    for row, text in constraints.items():
        if not isinstance(row, str):
            raise ArgumentTypeError(f"rows are named by texts, found {row!r}", argument="constraints")
        boxes_of(text, schema)
    return dict(constraints)


def _concern(boxes: Boxes, partition: Boxes) -> bool:
    """Whether two constraints can have a point in common; what one of them does not constrain may be anything."""
    return any(
        all(meet(one[name], other[name]) for name in one.keys() & other.keys())
        for one in boxes.boxes
        for other in partition.boxes
    )
