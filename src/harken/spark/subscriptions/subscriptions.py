"""Subscriptions on storage that many processes share: a folder in which every change set is a version.

    subscriptions/
      versions/00000000000000000003.json    which files version 3 added, and what their subscriptions ask for
      segments/….arrows                     compiled subscriptions that came or changed, or ids that went
      rejects/….parquet                     rows that were not taken, and why
      readers/….json                        the version that a stream is at

Files are written before the version that names them, and never changed. So a change is there entirely or not at
all, readers of a version are not disturbed by later ones, and two writers at once cannot mix. Whoever changes
something merges files when they have become many, and removes old versions when nobody can be reading them.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harken.errors import (
    ArgumentTypeError,
    BulkLoadError,
    ConcurrentChangeError,
    DuplicateSubscriptionError,
    HarkenError,
    IndexFormatError,
    OutputExistsError,
    StorageError,
    SubscriptionError,
    UnknownSubscriptionError,
    UnknownVersionError,
)
from harken.intake import SubscriptionSource
from harken.model.limits import DEFAULT_LIMITS, Limits
from harken.model.schema import Schema
from harken.model.subscriptions import SubscriptionId, checked_id
from harken.model.values import Type
from harken.normal.compiled import conform, id_array
from harken.spark.runtime.texts import as_plain_text, is_other_text
from harken.spark.storage import Folder, folder_at
from harken.spark.subscriptions.compiling import Rules
from harken.spark.subscriptions.known import KnownIds
from harken.spark.subscriptions.merging import ids_in, live_tables, merge, overdue, without
from harken.spark.subscriptions.profile import Profile
from harken.spark.subscriptions.readers import Reader, Readers
from harken.spark.subscriptions.reading import read_compiled, read_rejects
from harken.spark.subscriptions.retention import GRACE, ORPHANS, Retention
from harken.spark.subscriptions.segments import (
    APPENDS,
    DELETES,
    UPSERTS,
    Kind,
    Segment,
    SegmentWriter,
    read_segment,
)
from harken.spark.subscriptions.snapshots import WHOLE_EVERY, Delta, Snapshot, modern
from harken.spark.subscriptions.versions import Document, VersionLog
from harken.spark.subscriptions.writing import StoreFolders, Written, write_frame, write_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOG = logging.getLogger("harken")

ATTEMPTS = 50
"""How often a change is tried again when another writer was first."""

FORGET_EVERY = 256
"""Versions after which those are forgotten that nobody can need any more."""

OnError: TypeAlias = Literal["raise", "collect"]


class Change(NamedTuple):
    """What a change did: the version it made, the rows it took, and how many it rejected."""

    version: int
    rows: int
    rejected: int


class Subscriptions:
    """Subscriptions in a folder that all of a cluster reach by the same address: a path, or one in a store.

    Any number of processes may read and change it at once. A change costs what it writes, and now and then what it
    takes to merge files of changes before it: some ten times as much as all changes together, however many.

    `storage_options` are those of the store (`access_key_id`, `endpoint` and the like, as obstore calls them);
    without them, the settings of the Spark session and the environment tell.
    """

    grace: timedelta = GRACE
    """How long versions are kept, after they were the latest, by changes that forget old ones by themselves."""

    def __init__(
        self, path: str | os.PathLike[str] | Folder, *, storage_options: Mapping[str, Any] | None = None
    ) -> None:
        self.folder = folder_at(path, storage_options)
        self._place = StoreFolders(self.folder)
        self._log = VersionLog(self.folder.child("versions"))
        self._known = KnownIds(self._place.segments)
        self._told: tuple[Document, Snapshot] = {}, Snapshot(0, Rules(), None, (), Profile())
        """What a version said, and holds: those that follow it are told from it."""
        if self._log.latest() is None:
            raise IndexFormatError(
                f"{self.folder} holds no subscriptions",
                suggestion="Subscriptions.create(path) starts a new folder",
            )

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str] | Folder,
        *,
        schema: Schema | dict[str, Type | str] | None = None,
        limits: Limits = DEFAULT_LIMITS,
        exist_ok: bool = False,
        origin: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Subscriptions:
        """Start a folder, with version 0, which is empty; OutputExistsError if there is one already.

        With `exist_ok`, open the one there is, whatever it holds, if it has the same schema and limits. So several
        processes may do it at once, and a script may be run again.

        A stream goes on only with subscriptions of the `origin` that it began with: a name that no others have,
        unless one is given to subscriptions that take the place of others.
        """
        declared = schema if schema is None or isinstance(schema, Schema) else Schema(schema)
        first = Snapshot(
            0, Rules(declared, limits), None, (), Profile(), origin=uuid.uuid4().hex if origin is None else origin
        )
        folder = folder_at(path, storage_options)
        log = VersionLog(folder.child("versions"))
        # Of one that is old, version 0 may be forgotten.
        exists = log.latest() is not None
        if not exists:
            try:
                log.append(0, Delta(0, "create", None, (), Profile()).to_json(first))
            except ConcurrentChangeError:
                exists = True
        if exists and not exist_ok:
            advice = "Subscriptions(path) opens it, create(path, exist_ok=True) opens or starts it"
            raise OutputExistsError(str(folder), advice)
        store = cls(folder)
        if exists and store.snapshot().rules != first.rules:
            raise SubscriptionError(f"{folder} was created with another schema or other limits")
        return store

    def __repr__(self) -> str:
        return f"Subscriptions({str(self.folder)!r}, version={self.version})"

    def __reduce__(self) -> tuple[type[Subscriptions], tuple[Folder]]:
        return Subscriptions, (self.folder,)

    @property
    def path(self) -> Path | None:
        """The folder on file systems of this machine; None if it is in a store."""
        return self.folder.path

    @property
    def version(self) -> int:
        """The latest version."""
        return self._log.latest() or 0

    def snapshot(self, version: int | None = None) -> Snapshot:
        """A version, or the latest one. Costs a small file for each change since what was told last, or a few."""
        number = self.version if version is None else version
        said = document = self._read(number)
        known, snapshot = self._told
        changes = []
        while document != known and not document.get("whole"):
            changes.append(self._delta(document))
            document = self._read(number - len(changes))
        if document != known:
            snapshot = Snapshot.from_json(document, str(self.folder))
        for change in reversed(changes):
            snapshot = snapshot.after(change)
        self._told = said, snapshot
        return snapshot

    def _read(self, version: int) -> Document:
        return modern(self._log.read(version), str(self.folder))

    def _delta(self, document: Document) -> Delta:
        return Delta.from_json(document, str(self.folder))

    # ---------------------------------------------------------------- changing

    def append(self, rows: SubscriptionSource | DataFrame, *, on_error: OnError = "raise") -> Change:
        """Add subscriptions whose ids are not in use; DuplicateSubscriptionError, and no change, if one is.

        Takes what `Engine.subscribe_many` takes, or a DataFrame, which Spark's tasks compile.
        """
        return self._put(rows, APPENDS, on_error)

    def upsert(self, rows: SubscriptionSource | DataFrame, *, on_error: OnError = "raise") -> Change:
        """Add subscriptions, or put them in the place of those of the same ids."""
        return self._put(rows, UPSERTS, on_error)

    def delete(self, ids: Iterable[SubscriptionId] | DataFrame, *, missing_ok: bool = False) -> Change:
        """Remove subscriptions by id; UnknownSubscriptionError, and no change, if one is not there."""
        gone = _ids_of(ids).unique()
        with SegmentWriter(self._place.segments, DELETES) as writer:
            writer.write(pa.table({"id": gone}))
        segment = writer.segment()
        written = Written(() if segment is None else (segment,), (), 0, Profile())
        check = _unchecked if missing_ok else lambda snapshot: self._refuse_unknown(gone, snapshot)
        return self._commit(written, "delete", check)

    def compact(self) -> Change:
        """Write the subscriptions that hold now into one fresh file; earlier versions stay readable for a while.

        ConcurrentChangeError, and no change, if somebody changes the subscriptions meanwhile. Rarely needed:
        changes merge files by themselves.
        """
        return self._merge(self.snapshot(), "compact")

    def vacuum(self, keep: int = 10, *, grace: timedelta = GRACE, orphans: timedelta = ORPHANS) -> int:
        """Forget versions that nobody can need, and remove files that no version names; how many files went.

        What stays are the latest `keep` versions, those that were the latest within `grace`, what streams are at,
        and all that any of these is made of, back to when files were last merged: `compact` before, if what was
        deleted is to be gone. Files that no version names go when they are older than `orphans`: before that, they
        may be those of a change that is being made.
        """
        return self._retention.vacuum(keep, grace, orphans)

    def readers(self) -> list[Reader]:
        """The streams that have not ended for good, as far as anybody knows, and the versions they are at."""
        return self._readers.all()

    def release(self, query: str) -> None:
        """No longer keep what a stream needs, as it will not be started again."""
        self._readers.remove(query)

    @property
    def _readers(self) -> Readers:
        return Readers(self.folder.child("readers"))

    @property
    def _retention(self) -> Retention:
        return Retention(self._log, self._place, self._readers, self._read)

    # ---------------------------------------------------------------- reading

    def read(self, spark: SparkSession, version: int | None = None) -> DataFrame:
        """All subscriptions of a version, in the compiled form."""
        return read_compiled(spark, self, self.snapshot(version))

    def rejects(self, spark: SparkSession, version: int | None = None) -> DataFrame:
        """The rows that the change which made this version did not take: id, expression, reason, line, column."""
        return read_rejects(spark, self._place.rejects, self.snapshot(version).rejects)

    def since(self, snapshot: Snapshot, version: int) -> Snapshot | None:
        """Of a version, only what changed after an earlier one; None if that can no longer be told.

        Reads a small file for every version between them.
        """
        added: list[Segment] = []
        for number in range(snapshot.version, version, -1):
            try:
                change = self._delta(self._read(number))
            except UnknownVersionError:
                return None
            if not change.replaced:
                added[:0] = change.added
        return replace(snapshot, segments=tuple(added))

    def tables(self, snapshot: Snapshot) -> Iterator[pa.Table]:
        """The subscriptions that hold at a version, in the compiled form, file by file from the latest on."""
        return live_tables(self._place.segments, snapshot.segments)

    def live(self, snapshot: Snapshot, at: int) -> pa.Table:
        """Of the file at this place, the subscriptions that no later file replaces or removes."""
        later = [each for each in snapshot.segments[at + 1 :] if each.kind != APPENDS]
        table = read_segment(self._place.segments, snapshot.segments[at])
        return without(table, ids_in(self._place.segments, later).chunks if later else [])

    def ids(self, snapshot: Snapshot) -> pa.ChunkedArray:
        """The ids of all subscriptions that hold at a version. Reads every file once."""
        id_type = pa.int64() if snapshot.integer_ids else pa.string()
        tables = live_tables(self._place.segments, snapshot.segments, ["id"])
        return pa.chunked_array([chunk for table in tables for chunk in table.column("id").chunks], id_type)

    def superseded(self, snapshot: Snapshot) -> pa.Array:
        """The ids that files of a version replace or remove, wherever they were before; each once."""
        segments = [each for each in snapshot.segments if each.kind != APPENDS]
        return ids_in(self._place.segments, segments).unique() if segments else id_array([])

    # ---------------------------------------------------------------- inside

    def _put(self, rows: SubscriptionSource | DataFrame, kind: Kind, on_error: OnError) -> Change:
        if on_error not in ("raise", "collect"):
            raise ValueError(f"on_error is 'raise' or 'collect', found {on_error!r}")
        rules = self.snapshot().rules
        if _is_frame(rows):
            written = write_frame(rows, kind, rules, self._place)  # type: ignore[arg-type]  # as just seen
        else:
            written = write_source(rows, kind, rules, self._place)
        if written.rejected and on_error == "raise":
            error = BulkLoadError(written.rejected_rows(self._place))
            written.discard(self._place)
            raise error
        ids = ids_in(self._place.segments, written.segments).combine_chunks() if written.segments else id_array([])
        check = (lambda snapshot: self._refuse_known(ids, snapshot)) if kind == APPENDS else _unchecked
        return self._commit(written, kind, check, ids)

    def _commit(
        self, written: Written, operation: str, check: Callable[[Snapshot], None], ids: pa.Array | None = None
    ) -> Change:
        """Make the version that names the files of a change; again, as long as other writers are first."""
        try:
            if ids is not None:
                refuse_repeated(ids)
            for attempt in range(ATTEMPTS):
                before = self.snapshot().with_ids(self._integer_ids(written.segments))
                check(before)
                try:
                    after = self._append(before, _change(before, written, operation))
                except ConcurrentChangeError:
                    if attempt == ATTEMPTS - 1:
                        raise
                    continue
                break
        except StorageError:  # the version may be there nevertheless, and need its files
            raise
        except HarkenError:  # after any other error, too
            written.discard(self._place)
            raise
        self._tidy(after)
        return Change(after.version, written.rows, written.rejected)

    def _append(self, before: Snapshot, change: Delta) -> Snapshot:
        """Make a version; ConcurrentChangeError if somebody else made it first."""
        after = before.after(change)
        tell_all = change.replaced or change.version % WHOLE_EVERY == 0
        self._log.append(after.version, change.to_json(after if tell_all else None))
        return after

    def _tidy(self, latest: Snapshot) -> None:
        """Merge files if there are many, and forget versions that are old, now and then.

        The change is made whatever becomes of this, and the next one tries it again.
        """
        try:
            with suppress(ConcurrentChangeError):
                run = overdue(latest.segments)
                if run:
                    self._merge(latest, "merge", run)
            if latest.version % FORGET_EVERY == 0:
                self._retention.forget(grace=self.grace)
        except (HarkenError, OSError) as error:
            _LOG.warning("%s was changed, but what is old there could not be cleared away: %s", self.folder, error)

    def _merge(self, before: Snapshot, operation: str, run: Sequence[Segment] | None = None) -> Change:
        """Write files anew as one, all of them unless said."""
        chosen = before.segments if run is None else run
        is_all = len(chosen) == len(before.segments)
        merged, profile = merge(self._place.segments, chosen, is_all=is_all)
        replaced = frozenset(each.file for each in chosen)
        change = Delta(before.version + 1, operation, before.integer_ids, merged, profile, (), replaced)
        try:
            after = self._append(before, change)
        except ConcurrentChangeError:
            self._place.segments.remove(each.file for each in merged)
            raise
        return Change(after.version, sum(each.rows for each in merged), 0)

    def _integer_ids(self, segments: tuple[Segment, ...]) -> bool | None:
        if not segments:
            return None
        table = read_segment(self._place.segments, segments[0], verify=False)
        return bool(pa.types.is_integer(table.schema.field("id").type))

    def _refuse_known(self, ids: pa.Array, snapshot: Snapshot) -> None:
        clash = self._known.in_use(ids, snapshot, self.since)
        if len(clash):
            advice = "upsert puts new expressions in the place of those there are"
            raise DuplicateSubscriptionError(clash[0].as_py(), suggestion=advice)

    def _refuse_unknown(self, ids: pa.Array, snapshot: Snapshot) -> None:
        strangers = self._known.unknown(ids, snapshot, self.since)
        if len(strangers):
            raise UnknownSubscriptionError(strangers[0].as_py())


def _unchecked(snapshot: Snapshot) -> None:
    """Changes that fit whatever is there."""


def refuse_repeated(ids: pa.Array | pa.ChunkedArray) -> None:
    """One change may name an id only once: it could not be told which of two rows is meant."""
    if len(ids.unique()) == len(ids):
        return
    counts = ids.value_counts()
    often = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
    raise DuplicateSubscriptionError(often[0].as_py(), "comes twice in one change", "name every id once")


def _change(before: Snapshot, written: Written, operation: str) -> Delta:
    version = before.version + 1
    added = tuple(segment.of_version(version) for segment in written.segments)
    return Delta(version, operation, before.integer_ids, added, written.profile, written.rejects)


def _is_frame(rows: object) -> bool:
    """Whether rows are a DataFrame of Spark, classic or Connect, told without importing either."""
    return hasattr(rows, "mapInArrow")


def _plain_ids(frame: Any) -> Any:
    """The column of ids in a frame, as plain texts if they are texts of another kind."""
    chosen = frame.select("id")
    is_other = is_other_text(chosen.schema["id"].dataType.simpleString())
    return chosen.selectExpr(f"{as_plain_text('id')} AS id") if is_other else chosen


def _ids_of(ids: object) -> pa.Array:
    """Ids as files have them; SubscriptionError if they cannot be ids."""
    if isinstance(ids, str | bytes) or not (_is_frame(ids) or hasattr(ids, "__iter__")):
        found = f"{type(ids).__name__} {ids!r}" if isinstance(ids, str | bytes | int) else type(ids).__name__
        said = f"ids are several, as a list or a column of a DataFrame, found {found}"
        raise ArgumentTypeError(said, argument="ids", suggestion="for one, write a list of one")
    if _is_frame(ids):
        ids = _plain_ids(ids).toArrow().column("id")
    if not isinstance(ids, pa.ChunkedArray | pa.Array | np.ndarray):
        return id_array([checked_id(id) for id in ids])  # type: ignore[attr-defined]
    column = conform(pa.table({"id": ids})).column("id").combine_chunks()
    if column.null_count:
        raise SubscriptionError("the id of a subscription is null")
    return column
