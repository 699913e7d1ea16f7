"""An index on storage: the subscriptions of one version, in shards that workers map.

    index/
      versions/00000000000000000002.json    which layers and parts make up version 2
      parts/…/                              saved engines: one per shard and layer
      hidden/….arrows                       ids that a layer hides in the layers below it

A new version of the subscriptions adds a small layer; layers of like size are merged, and when together they are
no longer small, everything is built anew. Files are never changed, so whoever matches with a version is not
disturbed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from weakref import WeakKeyDictionary

import pyarrow as pa

from harken.errors import ConcurrentChangeError, IndexFormatError, StorageError, UnknownVersionError
from harken.spark.index.building import Blueprint, Lessons, build_by_tasks, build_here
from harken.spark.index.checking import damaged
from harken.spark.index.layers import IndexState, Layer
from harken.spark.index.sharding import divide
from harken.spark.index.sizing import shards_for
from harken.spark.storage import Folder, folder_at
from harken.spark.subscriptions.retention import GRACE, ORPHANS, check_retention, first_kept
from harken.spark.subscriptions.segments import DELETES, Segment, SegmentWriter
from harken.spark.subscriptions.snapshots import Snapshot
from harken.spark.subscriptions.subscriptions import Subscriptions
from harken.spark.subscriptions.versions import VersionLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from harken.spark.statistics.event_statistics import EventStatistics

ALGORITHM = "dynamic"

SMALL = 200_000
"""Changes that are built in the driver's process; more go to Spark's tasks."""

GROWTH = 4
"""A layer is merged with the one below it unless that is so many times as large."""

MOST_CHANGED = 0.5
"""Changes, as a part of the subscriptions, from which on everything is built anew."""

KEEP = 5
"""Versions that are kept at least."""

TIDY_EVERY = 64
"""Versions after which those are forgotten that nobody can need any more."""

BESIDE = ".."
"""Instead of the address of subscriptions: the index lies in their folder, wherever that is moved or copied to."""

EPOCH = datetime.min.replace(tzinfo=UTC)

KINDS = ("parts", "hidden")
"""The folders whose files versions name."""

LESSONS = "lessons.arrows"
"""The file of events that the index is arranged for."""

SAMPLED = 50_000
"""Subscriptions that the division looks at, per file."""

Shards: TypeAlias = int | Literal["auto"]


class Index:
    """An index in a folder that all of a cluster reach by the same address: a path, or one in a store.

    Any number of processes may read it. `storage_options` are as those of `Subscriptions`.
    """

    grace: timedelta = GRACE
    """How long a version stays, at least, after a newer one has come: somebody may be reading it."""

    def __init__(
        self, path: str | os.PathLike[str] | Folder, *, storage_options: Mapping[str, Any] | None = None
    ) -> None:
        self._open(folder_at(path, storage_options), storage_options)
        if self._log.latest() is None:
            raise IndexFormatError(
                f"{self.folder} holds no index: its manifest is missing", suggestion="build_index makes one"
            )

    def _open(self, folder: Folder, storage_options: Mapping[str, Any] | None) -> None:
        self.folder = folder
        self._options = storage_options
        self._log = VersionLog(folder.child("versions"))
        self._seen: set[str] = set()
        """Parts that were there, and whole, when this object looked."""
        self._subscriptions: Subscriptions | None = None
        """What it was built from, once it was asked for."""

    def __repr__(self) -> str:
        state = self.state()
        return f"Index({str(self.folder)!r}, version={state.version}, shards={state.division.shards})"

    @property
    def path(self) -> Path | None:
        """The folder on file systems of this machine; None if it is in a store."""
        return self.folder.path

    def state(self, version: int | None = None) -> IndexState:
        """A version of the index, or the latest one. Costs one small file."""
        number = self._log.latest() if version is None else version
        return IndexState.from_json(self._log.read(number or 0), str(self.folder))

    def exists(self) -> bool:
        """Whether it is still there."""
        return self._log.latest() is not None

    @property
    def subscriptions(self) -> Subscriptions:
        """What the index was built from."""
        return self._source(self.state())

    def _source(self, state: IndexState) -> Subscriptions:
        if state.subscriptions == BESIDE:
            return self._opened(self.folder.above[0])
        options = self._options
        if options is None and _scheme(state.subscriptions) == _scheme(self.folder.address):
            options = self.folder.options  # what leads to the index leads to what lies beside it
        return self._opened(folder_at(state.subscriptions, options))

    def _opened(self, folder: Folder) -> Subscriptions:
        if self._subscriptions is None or self._subscriptions.folder != folder:
            self._subscriptions = Subscriptions(folder)
        return self._subscriptions

    def refresh(
        self, spark: SparkSession | None, *, version: int | None = None, verify: bool = False
    ) -> IndexState:
        """Answer for a version of the subscriptions, or the latest; what answers for it already is kept.

        Costs what the changes cost, and now and then a merge of layers or a new build. If another process did the
        same meanwhile, its work is taken. Without a session (None) everything is built in this process.

        If parts are missing or have other sizes than they had, everything is built anew. This object looks once at
        each part; with `verify`, it reads all of them.
        """
        latest = self.state()
        subscriptions = self._source(latest)
        snapshot = subscriptions.snapshot(version)
        wanted = snapshot.version
        current = latest.layers and latest.covers == wanted and latest.origin == snapshot.origin
        if current and self._is_sound(latest, verify):
            return latest
        while True:
            state = self._answering(snapshot)
            if not self._is_sound(state, verify):
                state = replace(state, layers=())
            elif state.layers and state.covers == wanted:
                return state
            try:
                return self._extend(spark, state, snapshot)
            except ConcurrentChangeError:
                continue

    def changes(self, spark: SparkSession | None, state: IndexState, since: int) -> IndexState | None:
        """Of a version of the index, only the subscriptions that came or changed after an earlier version.

        None if there are none. What is built for it no version names: `discard` it.
        """
        if since >= state.covers:
            return None
        subscriptions = self._source(state)
        snapshot = subscriptions.snapshot(state.covers)
        changed = subscriptions.since(snapshot, since)
        if changed is None:  # the earlier version is forgotten: all that holds may be new
            return state
        size = sum(segment.rows for segment in changed.segments if segment.kind != DELETES)
        if not size:
            return None
        top = state.layers[-1]
        layer = top if top.since == since else self._layer(spark, state, snapshot, since, size)
        return replace(state, layers=(layer,)) if layer.parts else None

    def discard(self, changes: IndexState, state: IndexState) -> None:
        """Remove what was built for changes and is not part of the version they were asked for."""
        self._remove(_names(changes.layers) - _names(state.layers))

    def compact(self, spark: SparkSession | None) -> IndexState:
        """Build everything anew, for the latest version of the subscriptions, in one layer, divided as before."""
        state, snapshot = self.state(), self.subscriptions.snapshot()
        return self._commit(state, self._whole(spark, state, snapshot), snapshot)

    def vacuum(self, keep: int = KEEP, *, grace: timedelta = GRACE, orphans: timedelta = ORPHANS) -> int:
        """Forget versions that nobody can need, and remove parts that no version names; how many parts went.

        What stays are the latest `keep` versions and those that were the latest within `grace`, since somebody may
        match with them. Parts that no version names go when they are older than `orphans`: before that, somebody
        may be building them. Runs by itself now and then.
        """
        check_retention(keep, grace, orphans)
        found = {kind: self._aged(kind) for kind in KINDS}
        entries = self._log.entries()
        kept = first_kept(entries, keep, grace)
        going = [number for number, _ in entries if number < kept]
        replaced = {name for state in self._states(going) for name in _names(state.layers)}
        self._log.forget(going)
        needed = {name for state in self._states(self._log.numbers()) for name in _names(state.layers)}
        limit = datetime.now(UTC) - orphans
        removed = 0
        for kind, ages in found.items():
            gone = [name for name, age in ages.items() if name not in needed and (name in replaced or age < limit)]
            self.folder.child(kind).remove(gone)
            removed += len(gone)
        return removed

    def _aged(self, kind: str) -> dict[str, datetime]:
        """The parts, or files, that there are, and when each was last written to."""
        ages: dict[str, datetime] = {}
        folder = self.folder.child(kind)
        for each in (*folder.entries(), *folder.files()):
            name, moment = each.name.partition("/")[0], each.modified or EPOCH
            ages[name] = max(moment, ages.get(name, EPOCH))
        return ages

    # ---------------------------------------------------------------- inside

    def _is_sound(self, state: IndexState, verify: bool) -> bool:
        names = _names(state.layers)
        if names <= self._seen and not verify:
            return True
        if damaged(self.folder, state.layers, verify=verify):
            return False
        self._seen = names
        return True

    def _answering(self, wanted: Snapshot) -> IndexState:
        """The latest version of the index that answers for no later subscriptions than wanted, if need be none."""
        entries = self._log.entries()
        safe = first_kept(entries, KEEP, GRACE / 2)
        for state in self._states(number for number, _ in reversed(entries)):
            if state.covers <= wanted.version and state.origin == wanted.origin:
                # One that is to be forgotten soon may lose its parts while somebody builds upon it.
                return state if state.version >= safe else replace(state, layers=())
        return replace(self.state(), layers=())

    def _states(self, numbers: Iterable[int]) -> Iterator[IndexState]:
        """Versions, but for those that somebody else forgets meanwhile."""
        for number in numbers:
            with suppress(UnknownVersionError):
                yield self.state(number)

    def _extend(self, spark: SparkSession | None, state: IndexState, snapshot: Snapshot) -> IndexState:
        layers = self._layers_after(spark, state, snapshot)
        return self._commit(state, layers, snapshot)

    def _layers_after(
        self, spark: SparkSession | None, state: IndexState, snapshot: Snapshot
    ) -> tuple[Layer, ...]:
        """The layers that answer for a later version, one of them new if there is anything new."""
        kept, subscriptions = list(state.layers), self._source(state)
        changed = subscriptions.since(snapshot, state.covers)
        if changed is None or not kept:
            return self._whole(spark, state, snapshot)
        size = sum(segment.rows for segment in changed.segments)
        if not size:
            return (*kept[:-1], replace(kept[-1], until=snapshot.version))
        while len(kept) > 1 and kept[-1].changes < GROWTH * size:
            size += kept.pop().changes
        if size > MOST_CHANGED * max(kept[0].rows, SMALL):
            return self._whole(spark, state, snapshot)
        since = kept[-1].until
        if subscriptions.since(snapshot, since) is None:  # merged below a point that can no longer be told
            return self._whole(spark, state, snapshot)
        try:
            return (*kept, self._layer(spark, state, snapshot, since, size))
        except Exception:  # of whatever kind, if a task failed
            if subscriptions.since(snapshot, since) is not None:
                raise
            return self._whole(spark, state, snapshot)  # it was forgotten meanwhile

    def _whole(self, spark: SparkSession | None, state: IndexState, snapshot: Snapshot) -> tuple[Layer, ...]:
        blueprint = self._blueprint(state, snapshot, None)
        parts = build_here(blueprint) if spark is None else build_by_tasks(spark, blueprint)
        return (Layer(0, snapshot.version, parts),)

    def _layer(
        self, spark: SparkSession | None, state: IndexState, snapshot: Snapshot, since: int, size: int
    ) -> Layer:
        blueprint = self._blueprint(state, snapshot, since)
        parts = build_here(blueprint) if spark is None or size <= SMALL else build_by_tasks(spark, blueprint)
        subscriptions = self._source(state)
        superseded = subscriptions.superseded(blueprint.snapshot(subscriptions))
        return Layer(since, snapshot.version, parts, self._hide(superseded))

    def _hide(self, ids: pa.Array) -> Segment | None:
        with SegmentWriter(self.folder.child("hidden"), DELETES) as writer:
            writer.write(pa.table({"id": ids}))
        return writer.segment()

    def _blueprint(self, state: IndexState, snapshot: Snapshot, since: int | None) -> Blueprint:
        taught = since is None and self.folder.exists(LESSONS)
        return Blueprint(
            self._source(state).folder,
            snapshot.version,
            since,
            state.division,
            self.folder.child("parts"),
            state.algorithm,
            state.options,
            Lessons(self.folder, LESSONS) if taught else None,
        )

    def _commit(self, state: IndexState, layers: tuple[Layer, ...], snapshot: Snapshot) -> IndexState:
        latest = self._log.latest() or 0
        after = replace(
            state,
            version=latest + 1,
            layers=layers,
            profile=snapshot.profile,
            integer_ids=bool(snapshot.integer_ids),
            origin=snapshot.origin,
        )
        try:
            self._log.append(after.version, after.to_json())
        except ConcurrentChangeError:
            self._remove(_names(layers) - _names(state.layers))
            raise
        if after.version % TIDY_EVERY == 0:
            self.vacuum(grace=self.grace)
        return after

    def _remove(self, names: set[str]) -> None:
        for kind in KINDS:
            self.folder.child(kind).remove(names)


def build_index(
    spark: SparkSession | None,
    subscriptions: Subscriptions,
    path: str | os.PathLike[str] | Folder | None = None,
    *,
    statistics: EventStatistics | None = None,
    shards: Shards = "auto",
    algorithm: str = ALGORITHM,
    options: Mapping[str, object] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Index:
    """Build an index for the latest version of the subscriptions; beside them, unless a path is given.

    With `statistics` of the events to come, access paths and shards are chosen for these. Shards are built in
    parallel; "auto" makes as many as executors need to hold one in memory.
    """
    folder = subscriptions.folder.child("index") if path is None else folder_at(path, storage_options)
    snapshot = subscriptions.snapshot()
    if shards == "auto":
        shards = 1 if spark is None else shards_for(spark, snapshot)
    if isinstance(shards, bool) or not isinstance(shards, int) or shards < 1:
        raise ValueError(f"shards is a positive number or 'auto', found {shards!r}")
    division = divide(
        _sample(subscriptions, snapshot), shards, {} if statistics is None else statistics.frequencies()
    )
    rules = snapshot.rules
    declared = None if rules.schema is None else {name: kind.value for name, kind in rules.schema.items()}
    first = IndexState(
        -1,
        BESIDE if folder == subscriptions.folder.child("index") else str(subscriptions.folder),
        bool(snapshot.integer_ids),
        declared,
        snapshot.profile,
        division,
        (),
        algorithm,
        dict(options or {}),
    )
    return _started(spark, folder, first, snapshot, statistics, subscriptions.folder.options)


_BESIDE: WeakKeyDictionary[Subscriptions, Index] = WeakKeyDictionary()
"""Indexes that are open: they know what they have looked at, and where the latest version is to be looked for."""


def index_beside(
    spark: SparkSession | None, subscriptions: Subscriptions, version: int | None = None
) -> tuple[Index, IndexState]:
    """The index beside subscriptions, built if there is none, and its state for a version or the latest.

    Processes that build it at once agree on what the first has built. The index is opened once for each object.
    """
    index = _BESIDE.get(subscriptions)
    if index is None or not index.exists():
        folder = subscriptions.folder.child("index")
        if VersionLog(folder.child("versions")).latest() is None:
            _refuse_read_only(subscriptions)
            with suppress(ConcurrentChangeError):
                build_index(spark, subscriptions)
        index = _BESIDE[subscriptions] = Index(folder, storage_options=subscriptions.folder.options)
        index.grace = subscriptions.grace
    return index, index.refresh(spark, version=version)


def _refuse_read_only(subscriptions: Subscriptions) -> None:
    """StorageError, with what can be done, where no index can lie beside subscriptions."""
    path = subscriptions.folder.path
    if path is not None and not os.access(path, os.W_OK):
        raise StorageError(
            f"an index cannot be written beside the subscriptions: {path} is read-only",
            suggestion="build_index(spark, subscriptions, path) puts it elsewhere, and match takes it",
        )


def _started(
    spark: SparkSession | None,
    folder: Folder,
    first: IndexState,
    snapshot: Snapshot,
    statistics: EventStatistics | None,
    storage_options: Mapping[str, Any],
) -> Index:
    if statistics is not None:
        folder.replace(LESSONS, statistics.sample_bytes())
    index = Index.__new__(Index)
    index._open(folder, storage_options)
    layers = index._whole(spark, first, snapshot)
    index._commit(first, layers, snapshot)
    return Index(folder, storage_options=storage_options)


def _sample(subscriptions: Subscriptions, snapshot: Snapshot) -> list[pa.RecordBatch]:
    """The first subscriptions of every file."""
    return [
        batch
        for table in subscriptions.tables(snapshot)
        for batch in table.slice(0, SAMPLED).to_batches()
        if batch.num_rows
    ]


def _scheme(address: str) -> str:
    return address.partition("://")[0]


def _names(layers: Sequence[Layer]) -> set[str]:
    """The folders and files that layers consist of."""
    parts = {part.folder for layer in layers for part in layer.parts.values()}
    return parts | {layer.hides.file for layer in layers if layer.hides is not None}
