"""What operators do with a stream that is stopped: see where it is, and go on past a batch that cannot be done.

A batch that fails is repeated for as long as it fails. If what it needs is broken for good, it can be passed over,
or be matched with a later version of the subscriptions; both are recorded in the checkpoint. If Spark has lost its
file of the last batch, as after a loss of power, it can be planned anew.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harken.errors import StreamError
from harken.spark.storage import Folder
from harken.spark.streaming.checkpoints import Checkpoint, Skipped
from harken.spark.streaming.ledger import LedgerEntry
from harken.spark.streaming.sinks import Sink, TableSink
from harken.spark.streaming.sinks.contract import Query, Remembers, place_of
from harken.spark.streaming.sinks.tables import sink_at
from harken.spark.subscriptions.readers import Reader, Readers
from harken.spark.subscriptions.subscriptions import Subscriptions


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """Where a stream is."""

    query: Query
    latest: LedgerEntry | None
    """What the latest batch that began depends on."""
    pending: int | None
    """The batch that is planned and not done: the first to run when the stream is started."""
    skipped: tuple[Skipped, ...]
    """All batches that were passed over."""
    lost: int | None = None
    """The batch that Spark has lost its file of: the stream is refused until it is planned anew."""

    def __str__(self) -> str:
        lines = [f"query {self.query.id} of {self.query.checkpoint}"]
        if self.latest is None:
            lines.append("no batch has begun")
        else:
            at = self.latest.at.isoformat(timespec="seconds")
            lines.append(f"batch {self.latest.batch} began at {at} with version {self.latest.version}")
        waits = self.latest is not None and self.latest.batch == self.pending and self.latest.skipped is not None
        if self.lost is not None:
            lines.append(f"batch {self.lost} was planned, and Spark has lost its file of it: have it planned anew")
        elif self.latest is not None and self.latest.anew and self.latest.batch != self.pending:
            lines.append(f"batch {self.latest.batch} will be planned anew")
        elif self.pending is None:
            lines.append("no batch is pending")
        else:
            lines.append(f"batch {self.pending} is pending{', and will be passed over' if waits else ''}")
        lines += [f"batch {each.batch} was passed over at {each.at}: {each.reason}" for each in self.skipped]
        return "\n".join(lines)


def stream_status(
    checkpoint: str | os.PathLike[str] | Folder, *, storage_options: Mapping[str, Any] | None = None
) -> StreamStatus:
    """Where the stream of a checkpoint is. Reads a few small files, and needs no Spark."""
    place = Checkpoint(checkpoint, storage_options)
    entries = place.ledger.entries()
    latest = entries[-1] if entries else None
    return StreamStatus(place.query, latest, place.spark.pending, tuple(place.skipped()), place.lost())


def skip_batch(
    checkpoint: str | os.PathLike[str] | Folder,
    *,
    reason: str,
    storage_options: Mapping[str, Any] | None = None,
) -> int:
    """Have the pending batch passed over: nothing more is done for it, and it gets no matches. Gives its number.

    The stream must be stopped. When it is started it goes on with the batch after this one. The reason is recorded
    in the checkpoint for good. Its events are not kept, unless they are already. What the output
    has of the batch stays, and is not told again if the output can be asked. StreamError if no batch is pending.
    """
    if not reason.strip():
        raise StreamError("a batch is passed over for a reason", suggestion="say which")
    place = Checkpoint(checkpoint, storage_options)
    batch = _pending(place)
    place.forget_skipped(batch)
    place.ledger.skip(batch, reason)
    place.note_skipped(batch, reason)  # the stream sees to it, should this be interrupted
    return batch


def repin_batch(
    checkpoint: str | os.PathLike[str] | Folder,
    subscriptions: Subscriptions,
    output: Sink | str | os.PathLike[str] | Folder,
    *,
    version: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> LedgerEntry:
    """Have the pending batch matched with another version of the subscriptions: the latest, unless said.

    For a batch whose version is gone. The stream must be stopped. StreamError if no batch is pending, if the
    output has taken it already, or if the version is older than that of the batch before it.
    """
    place = Checkpoint(checkpoint, storage_options)
    batch, sink = _pending(place), sink_at(output, storage_options, "output")
    known = place.ledger.entry(batch)
    if known is not None:  # else it may go elsewhere than those before it
        place.check_output(place_of(sink))
    if _has(sink, batch, place.query):
        raise StreamError(
            f"batch {batch} is done: {sink!r} has it", suggestion="pass it over, and the stream goes on after it"
        )
    chosen = subscriptions.version if version is None else version
    subscriptions.snapshot(chosen)
    place.bind(subscriptions)
    before = place.ledger.entry(batch - 1)
    if before is not None and chosen < before.version:
        raise StreamError(
            f"batch {batch - 1} was matched with version {before.version}, which is later than {chosen}"
        )
    place.note_output(batch, place_of(sink))
    place.forget_skipped(batch)  # if it is passed over after all, since this is interrupted, the stream says so
    needed = known.before if known is not None else chosen if before is None else before.version
    _keep_version(place, subscriptions, chosen, needed)
    return place.ledger.repin(batch, chosen)


def replan_batch(
    checkpoint: str | os.PathLike[str] | Folder,
    output: Sink | str | os.PathLike[str] | Folder,
    *,
    rejects: Sink | str | os.PathLike[str] | Folder | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> int:
    """Have the last batch planned anew, if Spark has lost its file of it. Gives its number.

    The batch may get other events then, so nothing of it may have come out: StreamError if output or rejects have
    it, unless they cannot be asked, as Kafka; then it may be told again. They are those of the stream; `rejects`
    need not be named if they are in the checkpoint. StreamError, too, if Spark has lost nothing, or more. The
    stream must be stopped.
    """
    place = Checkpoint(checkpoint, storage_options)
    query, batch = place.query, place.lost()
    if batch is None:
        raise StreamError(
            f"nothing in {place.folder} is to be planned anew: Spark has all it planned, or lacks more"
        )
    # Those of the checkpoint are asked whatever is known: of a stream, and of the command line.
    within = [TableSink(place.folder.child(name)) for name in ("rejects", "faults")]
    sinks, known = [sink_at(output, storage_options, "output")], place.outputs().get("rejects")
    if rejects is not None:
        sinks.append(sink_at(rejects, storage_options, "rejects"))
    elif known is not None:
        sinks.append(next((each for each in within if each.place == known), within[0]))
    place.check_output(*map(place_of, sinks))
    if batch < (since := int(place.outputs().get("since", "0"))):
        raise StreamError(
            f"batch {batch} went to another output than those from {since} on, and its events would come again",
            suggestion="start with a new checkpoint and a new output",
        )
    for sink in [*sinks, *within]:
        if _has(sink, batch, query):
            raise StreamError(
                f"{place_of(sink)} has batch {batch}, and its events would come again, or others by its number",
                suggestion="start with a new checkpoint and a new output, or remove it there if nobody used it",
            )
    place.replan(batch)
    return batch


def _has(sink: Sink, batch: int, query: Query) -> bool:
    """Whether a sink is known to have a batch; SinkError if it is that of another query."""
    if not isinstance(sink, Remembers):
        return False
    owner = sink.owner()
    if owner is not None:
        query.refuse(owner, place_of(sink))
    return sink.has(batch)


def _keep_version(place: Checkpoint, subscriptions: Subscriptions, version: int, before: int) -> None:
    """Have a version kept for the stream, before the ledger names it, as the stream itself does."""
    follows = place.keeps_events() is not False  # if nobody knows, more is kept
    reader = Reader.now(place.query.id, place.query.checkpoint, version, before, follows=follows)
    Readers(subscriptions.folder.child("readers")).note(reader)


def _pending(place: Checkpoint) -> int:
    query, lost, spark = place.query, place.lost(), place.spark
    if lost is not None:
        raise StreamError(
            f"Spark has lost its file of batch {lost}, in {query.checkpoint}",
            suggestion="have it planned anew (harken stream replan)",
        )
    if spark.pending is None:
        said = f"batch {spark.new - 1} is done" if spark.new else "no batch has begun"
        raise StreamError(f"nothing is pending in {query.checkpoint}: {said}")
    return spark.pending
