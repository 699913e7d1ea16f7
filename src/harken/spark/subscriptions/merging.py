"""Which files of subscriptions are to be merged, and into what.

Changes leave files, the latest ones small and many. Whenever more than `RUN` changes in a row are of like size,
what they left is written anew as one: so the files of a folder are a few of each size, a subscription is written
again a few times for every tenfold of them, and what was replaced or removed goes when its file is merged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from harken.spark.storage import Folder
from harken.spark.subscriptions.profile import Profile
from harken.spark.subscriptions.segments import APPENDS, DELETES, UPSERTS, Segment, SegmentWriter, read_segment

RUN = 16
"""Changes of like size that may stand side by side."""

GROWTH = 4
"""A file is too large to be of like size if it has so many times the rows of all that follow it."""


def overdue(segments: Sequence[Segment]) -> Sequence[Segment]:
    """The latest files that are to be merged; none as long as they are few.

    >>> small = [Segment(str(at), APPENDS, at, 10, 0, 0) for at in range(20)]
    >>> large = Segment("large", APPENDS, 0, 100_000, 0, 0)
    >>> len(overdue([large, *small])), len(overdue([large, *small[:5]]))
    (20, 0)
    """
    rows, start = 0, len(segments)
    while start and (not rows or segments[start - 1].rows < GROWTH * rows):
        start -= 1
        rows += segments[start].rows
    run = segments[start:]
    return run if len({each.version for each in run}) > RUN else ()


def merge(folder: Folder, run: Sequence[Segment], *, is_all: bool) -> tuple[tuple[Segment, ...], Profile]:
    """Write files that mean what these mean together; if these are all, without what they remove."""
    only_appends = is_all or all(each.kind == APPENDS for each in run)
    profile = Profile()
    with SegmentWriter(folder, APPENDS if only_appends else UPSERTS) as writer:
        for table in live_tables(folder, run):
            writer.write(table)
            profile = profile.joined(Profile.of(table))
    merged = [writer.segment()]
    if not only_appends:
        merged.append(_removed(folder, run))
    newest = max((each.version for each in run), default=0)
    return tuple(each.of_version(newest) for each in merged if each is not None), profile


def live_tables(
    folder: Folder, segments: Sequence[Segment], columns: list[str] | None = None
) -> Iterator[pa.Table]:
    """What holds of files, from the latest on: so that each is read once, however many replace others."""
    gone: list[pa.Array] = []
    for segment in reversed(segments):
        table = read_segment(folder, segment)
        if segment.kind != DELETES:
            yield without(table if columns is None else table.select(columns), gone)
        if segment.kind != APPENDS:
            gone.extend(table.column("id").chunks)


def without(table: pa.Table, gone: Sequence[pa.Array]) -> pa.Table:
    """The rows of a table that have none of these ids."""
    if not gone:
        return table
    return table.filter(pc.invert(pc.is_in(table.column("id"), value_set=pa.concat_arrays(gone))))


def ids_in(folder: Folder, segments: Sequence[Segment]) -> pa.ChunkedArray:
    """The ids that files name, in their order."""
    tables = [read_segment(folder, segment) for segment in segments]
    return pa.chunked_array([chunk for table in tables for chunk in table.column("id").chunks])


def _removed(folder: Folder, run: Sequence[Segment]) -> Segment | None:
    """The ids that went and did not come back."""
    removals = [each for each in run if each.kind == DELETES]
    if not removals:
        return None
    ids = ids_in(folder, removals).unique()
    for table in live_tables(folder, run, ["id"]):
        ids = ids.filter(pc.invert(pc.is_in(ids, value_set=table.column("id"))))
    with SegmentWriter(folder, DELETES) as writer:
        writer.write(pa.table({"id": ids}))
    return writer.segment()
