"""Subscriptions on storage that many processes share: a folder in which every change set is a version.

    subscriptions/
      versions/00000000000000000003.json    which files make up version 3, and what their subscriptions ask for
      segments/….arrows                     compiled subscriptions that came or changed, or ids that went
      rejects/….parquet                     rows that were not taken, and why

Files are written before the version that names them, and never changed. So a change is there entirely or not at
all, readers of a version are not disturbed by later ones, and two writers at once cannot mix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harken.errors import (
    BulkLoadError,
    ConcurrentChangeError,
    DuplicateSubscriptionError,
    HarkenError,
    IndexFormatError,
    OutputExistsError,
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
from harken.spark.compiling import Rules
from harken.spark.profile import Profile
from harken.spark.segments import APPENDS, DELETES, UPSERTS, Kind, Segment, SegmentWriter, read_segment
from harken.spark.snapshots import Snapshot
from harken.spark.versions import VersionLog
from harken.spark.writing import Place, Written, write_frame, write_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ATTEMPTS = 50
"""How often a change is tried again when another writer was first."""

OnError: TypeAlias = Literal["raise", "collect"]


class Change(NamedTuple):
    """What a change did: the version it made, the rows it took, and how many it rejected."""

    version: int
    rows: int
    rejected: int


class Subscriptions:
    """Subscriptions in a folder that all of a cluster reach by the same path.

    Any number of processes may read and change it at once. A change costs what it writes; nothing is rewritten
    until `compact`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self._place = Place(self.path)
        self._log = VersionLog(self.path / "versions")
        if self._log.latest() is None:
            raise IndexFormatError(
                f"{self.path} holds no subscriptions", suggestion="Subscriptions.create(path) starts a new folder"
            )

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        schema: Schema | dict[str, Type | str] | None = None,
        limits: Limits = DEFAULT_LIMITS,
        exist_ok: bool = False,
    ) -> Subscriptions:
        """Start a folder, with version 0, which is empty; OutputExistsError if there is one already.

        With `exist_ok`, open the one there is, whatever it holds, if it has the same schema and limits. So several
        processes may do it at once, and a script may be run again.
        """
        declared = schema if schema is None or isinstance(schema, Schema) else Schema(schema)
        first = Snapshot(0, Rules(declared, limits), None, (), Profile())
        log = VersionLog(Path(path) / "versions")
        # Of one that is old, version 0 may be forgotten.
        exists = log.latest() is not None
        if not exists:
            try:
                log.append(0, first.to_json("create"))
            except ConcurrentChangeError:
                exists = True
        if exists and not exist_ok:
            advice = "Subscriptions(path) opens it, create(path, exist_ok=True) opens or starts it"
            raise OutputExistsError(str(Path(path).absolute()), advice)
        store = cls(path)
        if exists and store.snapshot().rules != first.rules:
            raise SubscriptionError(f"{store.path} was created with another schema or other limits")
        return store

    def __repr__(self) -> str:
        return f"Subscriptions({str(self.path)!r}, version={self.version})"

    @property
    def version(self) -> int:
        """The latest version."""
        return self._log.latest() or 0

    def snapshot(self, version: int | None = None) -> Snapshot:
        """A version, or the latest one. Costs one small file."""
        number = self.version if version is None else version
        return Snapshot.from_json(self._log.read(number), str(self.path))

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
        """Write the subscriptions that hold now into one fresh file; earlier versions stay readable.

        ConcurrentChangeError, and no change, if somebody changes the subscriptions meanwhile.
        """
        snapshot = self.snapshot()
        profile = Profile()
        with SegmentWriter(self._place.segments, APPENDS) as writer:
            for table in self.tables(snapshot):
                writer.write(table)
                profile = profile.joined(Profile.of(table))
        segment = writer.segment()
        written = Written(() if segment is None else (segment,), (), 0, profile)
        compacted = _after(replace(snapshot, segments=(), profile=Profile()), written)
        compacted = replace(compacted, rewritten=compacted.version)
        try:
            self._log.append(compacted.version, compacted.to_json("compact"))
        except ConcurrentChangeError:
            written.discard(self._place)
            raise
        return Change(compacted.version, written.rows, 0)

    def vacuum(self, keep: int = 10) -> int:
        """Forget all but the latest `keep` versions, and remove files that none of these names; how many.

        Not beside a change, whose files are not named yet.
        """
        if keep < 1:
            raise ValueError(f"keep is at least 1, found {keep}")
        numbers = self._log.numbers()
        kept = [self.snapshot(number) for number in numbers[-keep:]]
        for number in numbers[:-keep]:
            self._log.forget(number)
        named = {segment.file for each in kept for segment in each.segments}
        named.update(file for each in kept for file in each.rejects)
        folders = (self._place.segments, self._place.rejects)
        unnamed = [path for folder in folders for path in folder.glob("*") if path.name not in named]
        for path in unnamed:
            path.unlink(missing_ok=True)  # somebody else may be at it too
        return len(unnamed)

    # ---------------------------------------------------------------- reading

    def read(self, spark: SparkSession, version: int | None = None) -> DataFrame:
        """All subscriptions of a version, in the compiled form."""
        from harken.spark.reading import read_compiled

        return read_compiled(spark, self, self.snapshot(version))

    def rejects(self, spark: SparkSession, version: int | None = None) -> DataFrame:
        """The rows that the change which made this version did not take: id, expression, reason, line, column."""
        from harken.spark.reading import read_rejects

        return read_rejects(spark, self._place.rejects, self.snapshot(version).rejects)

    def since(self, snapshot: Snapshot, version: int) -> Snapshot | None:
        """Of a version, only what changed after an earlier one; None if that can no longer be told.

        Past the point where everything was last written anew, the version before it tells, unless it is forgotten.
        """
        changed = snapshot.since(version)
        if changed is not None:
            return changed
        try:
            earlier = self.since(self.snapshot(snapshot.rewritten - 1), version)
        except UnknownVersionError:
            return None
        later = snapshot.since(snapshot.rewritten)
        if earlier is None or later is None:
            return None
        return replace(snapshot, segments=(*earlier.segments, *later.segments))

    def tables(self, snapshot: Snapshot) -> Iterator[pa.Table]:
        """The subscriptions that hold at a version, in the compiled form, file by file from the latest on."""
        return self._held(snapshot)

    def live(self, snapshot: Snapshot, at: int) -> pa.Table:
        """Of the file at this place, the subscriptions that no later file replaces or removes."""
        later = [each for each in snapshot.segments[at + 1 :] if each.kind != APPENDS]
        table = read_segment(self._place.segments, snapshot.segments[at])
        return _without(table, [self._ids_in(later)] if later else [])

    def ids(self, snapshot: Snapshot) -> pa.ChunkedArray:
        """The ids of all subscriptions that hold at a version. Reads every file once."""
        id_type = pa.int64() if snapshot.integer_ids else pa.string()
        chunks = [chunk for table in self._held(snapshot, ["id"]) for chunk in table.column("id").chunks]
        return pa.chunked_array(chunks, id_type)

    def superseded(self, snapshot: Snapshot) -> pa.Array:
        """The ids that files of a version replace or remove, wherever they were before; each once."""
        segments = [each for each in snapshot.segments if each.kind != APPENDS]
        return self._ids_in(segments).unique() if segments else id_array([])

    # ---------------------------------------------------------------- inside

    def _held(self, snapshot: Snapshot, columns: list[str] | None = None) -> Iterator[pa.Table]:
        """What holds, from the latest file on: so that each file is read once, however many replace others."""
        gone: list[pa.Array] = []
        for segment in reversed(snapshot.segments):
            table = read_segment(self._place.segments, segment)
            if segment.kind != DELETES:
                yield _without(table if columns is None else table.select(columns), gone)
            if segment.kind != APPENDS:
                gone.extend(table.column("id").chunks)

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
        ids = self._ids_in(written.segments) if written.segments else id_array([])
        check = (lambda snapshot: self._refuse_known(ids, snapshot)) if kind == APPENDS else _unchecked
        return self._commit(written, kind, check, ids)

    def _commit(
        self, written: Written, operation: str, check: Callable[[Snapshot], None], ids: pa.Array | None = None
    ) -> Change:
        """Make the version that names the files of a change; again, as long as other writers are first."""
        try:
            _refuse_repeated(ids)
            for attempt in range(ATTEMPTS):
                before = self.snapshot().with_ids(self._integer_ids(written.segments))
                check(before)
                after = _after(before, written)
                try:
                    self._log.append(after.version, after.to_json(operation))
                except ConcurrentChangeError:
                    if attempt == ATTEMPTS - 1:
                        raise
                    continue
                break
        except HarkenError:  # after any other error, the version may be there and need its files
            written.discard(self._place)
            raise
        return Change(after.version, written.rows, written.rejected)

    def _ids_in(self, segments: Iterable[Segment]) -> pa.Array:
        tables = [read_segment(self._place.segments, segment) for segment in segments]
        return pa.concat_arrays([chunk for table in tables for chunk in table.column("id").chunks])

    def _integer_ids(self, segments: tuple[Segment, ...]) -> bool | None:
        if not segments:
            return None
        table = read_segment(self._place.segments, segments[0], verify=False)
        return bool(pa.types.is_integer(table.schema.field("id").type))

    def _refuse_known(self, ids: pa.Array, snapshot: Snapshot) -> None:
        known = self.ids(snapshot)
        if len(known) and len(ids):
            clash = ids.filter(pc.is_in(ids, value_set=known.combine_chunks()))
            if len(clash):
                advice = "upsert puts new expressions in the place of those there are"
                raise DuplicateSubscriptionError(clash[0].as_py(), suggestion=advice)

    def _refuse_unknown(self, ids: pa.Array, snapshot: Snapshot) -> None:
        known = self.ids(snapshot).combine_chunks().cast(ids.type)
        strangers = ids.filter(pc.invert(pc.is_in(ids, value_set=known)))
        if len(strangers):
            raise UnknownSubscriptionError(strangers[0].as_py())


def _without(table: pa.Table, gone: list[pa.Array]) -> pa.Table:
    """The rows of a table that have none of these ids."""
    if not gone:
        return table
    return table.filter(pc.invert(pc.is_in(table.column("id"), value_set=pa.concat_arrays(gone))))


def _unchecked(snapshot: Snapshot) -> None:
    """Changes that fit whatever is there."""


def _refuse_repeated(ids: pa.Array | None) -> None:
    """One change may name an id only once: it could not be told which of two rows is meant."""
    if ids is None or len(ids.unique()) == len(ids):
        return
    counts = ids.value_counts()
    often = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
    raise DuplicateSubscriptionError(often[0].as_py(), "comes twice in one change", "name every id once")


def _after(before: Snapshot, written: Written) -> Snapshot:
    version = before.version + 1
    added = tuple(replace(segment, version=version) for segment in written.segments)
    return replace(
        before,
        version=version,
        segments=(*before.segments, *added),
        profile=before.profile.joined(written.profile),
        rejects=written.rejects,
    )


def _is_frame(rows: object) -> bool:
    """Whether rows are a DataFrame of Spark, classic or Connect, told without importing either."""
    return hasattr(rows, "mapInArrow")


def _ids_of(ids: object) -> pa.Array:
    """Ids as files have them; SubscriptionError if they cannot be ids."""
    if _is_frame(ids):
        ids = ids.select("id").toArrow().column("id")  # type: ignore[attr-defined]
    if not isinstance(ids, pa.ChunkedArray | pa.Array | np.ndarray):
        return id_array([checked_id(id) for id in ids])  # type: ignore[attr-defined]
    column = conform(pa.table({"id": ids})).column("id").combine_chunks()
    if column.null_count:
        raise SubscriptionError("the id of a subscription is null")
    return column
