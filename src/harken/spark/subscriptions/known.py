"""Which ids are in use: kept up to date from version to version, so that a small change is checked at once.

Finding out for the first time reads the ids of all subscriptions; after that, of those that came and went since.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TypeAlias

import pyarrow as pa

from harken.matching.identities import Identities
from harken.spark.storage import Folder
from harken.spark.subscriptions.merging import ids_in, live_tables
from harken.spark.subscriptions.segments import APPENDS, DELETES, Segment
from harken.spark.subscriptions.snapshots import Snapshot

Since: TypeAlias = Callable[[Snapshot, int], Snapshot | None]
"""Tells what changed after an earlier version, if that is known."""


class KnownIds:
    """The ids of the subscriptions of a version, which moves on. Threads may share it."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._ids = Identities()
        self._version: int | None = None
        self._origin = ""
        self._alone = Lock()

    def in_use(self, ids: pa.Array, snapshot: Snapshot, since: Since) -> pa.Array:
        """Those of some ids that are in use at a version."""
        with self._alone:
            return ids.filter(pa.array(self._at(snapshot, since).slots_of(ids) >= 0))

    def unknown(self, ids: pa.Array, snapshot: Snapshot, since: Since) -> pa.Array:
        """Those of some ids that are not in use at a version."""
        with self._alone:
            return ids.filter(pa.array(self._at(snapshot, since).slots_of(ids) < 0))

    def _at(self, snapshot: Snapshot, since: Since) -> Identities:
        """The ids of a version, told from what changed since those that were asked for before, if possible."""
        same = self._version is not None and self._origin == snapshot.origin
        changed = since(snapshot, self._version or 0) if same else None
        if changed is None or snapshot.version < (self._version or 0):
            self._ids, self._version, self._origin = Identities(), None, snapshot.origin
            for table in live_tables(self._folder, snapshot.segments, ["id"]):
                self._ids.admit(table.column("id").combine_chunks())
        else:
            self._version = None  # until all of it is in
            for segment in changed.segments:
                self._take(segment)
        self._version = snapshot.version
        return self._ids

    def _take(self, segment: Segment) -> None:
        ids = ids_in(self._folder, [segment]).combine_chunks()
        slots = self._ids.slots_of(ids)
        if segment.kind == DELETES:
            self._ids.release(slots[slots >= 0])
        elif segment.kind == APPENDS:
            self._ids.admit(ids)
        else:
            self._ids.admit(ids.filter(pa.array(slots < 0)))
