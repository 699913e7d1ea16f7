"""Matching a stream of events with subscriptions that change: Structured Streaming, batch by batch.

Every batch is matched with one version of the subscriptions, the latest when it first began, which a ledger keeps.
Sinks take a batch once, however often it is repeated. So a stream that is killed at any moment and started again
gives the matches of one that was never disturbed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from harken.engine import OnError
from harken.errors import ArgumentError, ArgumentTypeError, EventError, StreamError
from harken.spark.events.columns import check_declared, plain_type, with_plain_texts
from harken.spark.index.building import rehearse
from harken.spark.index.index import Index, index_beside
from harken.spark.index.layers import IndexState
from harken.spark.matching.batch import check_frame, check_words, handed_through, plan_for
from harken.spark.matching.tasks import REJECT_COLUMNS, How
from harken.spark.runtime.mapping import compute
from harken.spark.runtime.workers import check_workers
from harken.spark.storage import Folder
from harken.spark.streaming.checkpoints import Checkpoint
from harken.spark.streaming.ledger import LedgerEntry
from harken.spark.streaming.retained_events import EventValidity, RetainedEvents
from harken.spark.streaming.sinks import Query, Sink
from harken.spark.streaming.sinks.contract import Counts, Placed, Remembers, Tabular, place_of
from harken.spark.streaming.sinks.tables import sink_at
from harken.spark.subscriptions.readers import Reader, Readers
from harken.spark.subscriptions.subscriptions import Subscriptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


Address: TypeAlias = str | os.PathLike[str] | Folder
"""A path, or an address in a store."""


def match_stream(
    events: DataFrame,
    subscriptions: Subscriptions,
    output: Sink | Address,
    *,
    checkpoint: Address,
    event_id: str | None = None,
    keep: Sequence[str] = (),
    how: How = "pairs",
    validity: EventValidity | None = None,
    on_error: OnError = "raise",
    rejects: Sink | Address | None = None,
    trigger: str | None = None,
    available_now: bool = False,
    name: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> StreamingQuery:
    """Start a query that matches a stream of events and writes its matches to a sink, or a folder of Parquet.

    Changes of the subscriptions take effect from one batch to the next. `checkpoint` is a folder that belongs to
    this query, by its path or its address in a store; started again with it, the query goes on where it was,
    without loss or repetition. With another checkpoint it is another query, and needs another output. Without
    `event_id`, events are called by their batch and a number in it, as in "12-7", so that no name comes twice.

    With `validity`,
    events are kept as long as they hold, and subscriptions that come later meet them; events need an `event_id`
    then. An event with a value of another type than the schema declares ends the query; with `on_error="collect"`
    the others are matched, and it goes, with the reason, to `rejects`: a sink or a folder of Parquet, `rejects` in
    the checkpoint unless said, which takes each batch once. `trigger` is an interval like "1 second"; with
    `available_now` the query ends when all there is is done. `storage_options` are those of the store, where the
    settings of the session do not tell.
    """
    check_words(how, on_error)
    check_frame(events, keep)
    if not isinstance(subscriptions, Subscriptions):
        raise ArgumentTypeError.of("subscriptions", "Subscriptions", type(subscriptions).__name__)
    if available_now and trigger is not None:
        raise ArgumentError("a query ends when all is done, or has a trigger, not both", argument="trigger")
    if rejects is not None and on_error != "collect":
        raise ArgumentError('rejects are for on_error="collect"', argument="rejects")
    if not events.isStreaming:
        raise EventError("the events are no stream; match is for DataFrames that are")
    if validity is not None:
        if event_id is None:
            raise EventError("events that are kept need an id to be known again", suggestion="pass event_id")
        validity.check(events)
    check_workers(events.sparkSession)
    place = Checkpoint(checkpoint, storage_options)
    told = place.folder.child("rejects") if rejects is None else rejects
    sink, aside = sink_at(output, storage_options, "output"), sink_at(told, storage_options, "rejects")
    _keep_apart(
        {"checkpoint": place.folder, "subscriptions": subscriptions.folder, "output": _folder(sink)}
        | ({} if rejects is None else {"rejects": _folder(aside)})
    )
    if on_error == "collect":
        _keep_rejects_apart(sink, aside)
    matcher = BatchMatcher(
        subscriptions,
        sink,
        place,
        event_id,
        tuple(keep),
        how,
        validity,
        None if on_error == "raise" else aside,
        goes_on=not available_now,
    )
    matcher.check_columns()
    handed_through(events, event_id, keep)
    if not _is_remote(events):
        matcher.check_places(events)
    # Spark asks the settings of whichever session is active, not those of the events', whether it may pass on
    # texts of a bounded length: in a thread of its own, or after another session was used, it would refuse them.
    source = matcher.prepared(with_plain_texts(events))
    writer = source.writeStream.foreachBatch(matcher).option("checkpointLocation", place.spark.folder.address)
    if name is not None:
        writer = writer.queryName(name)
    if available_now:
        writer = writer.trigger(availableNow=True)
    elif trigger is not None:
        writer = writer.trigger(processingTime=trigger)
    return writer.start()


def _plain_events(events: DataFrame) -> DataFrame:
    """The events among rows that may tell of changes too, as they are kept."""
    from harken.spark.streaming.changes import MARK, without_changes

    # Spark reads no texts of a bounded length back.
    return with_plain_texts(without_changes(events) if MARK in events.columns else events)


def _is_remote(events: DataFrame) -> bool:
    """Whether they are on a server of Spark Connect: that knows the places of a stream, and not we."""
    return type(events).__module__.startswith("pyspark.sql.connect")


def _folder(sink: Sink) -> Folder | None:
    found = getattr(sink, "folder", None)
    return found if isinstance(found, Folder) else None


def _keep_apart(folders: Mapping[str, Folder | None]) -> None:
    """ArgumentError if one of these folders is another one, or lies in it: the files of each are its own."""
    for name, folder in folders.items():
        if folder is not None and folder.path is not None and folder.path.exists() and not folder.path.is_dir():
            raise ArgumentError(f"{name} is to be a folder, and {folder} is a file", argument=name)
    known = {name: f"{_resolved(folder)}/" for name, folder in folders.items() if folder is not None}
    for name, one in known.items():
        for other in known:
            is_within = name != other and one.startswith(known[other])
            # Rejects lie in the checkpoint unless said, beside what is there.
            beside = (name, other) == ("rejects", "checkpoint") and not _is_in_use(one.removeprefix(known[other]))
            if is_within and (one == known[other] or not beside):
                said = (
                    "are one folder" if one == known[other] else f"lie in each other: {one} is in {known[other]}"
                )
                raise ArgumentError(f"{name} and {other} {said}", argument=name, suggestion="give each its own")


def _resolved(folder: Folder) -> str:
    """An address that two folders share if they are one, whatever links lead there."""
    return folder.address if folder.path is None else str(folder.path.resolve())


def _is_in_use(place: str) -> bool:
    """Whether a place in a checkpoint is that of something else than rejects."""
    return place.split("/")[0] in ("spark", "harken")


def _keep_rejects_apart(output: Sink, rejects: Sink) -> None:
    """ArgumentError if both are one: it has a batch once, and the rejects would be all there is of it."""
    both_known = isinstance(output, Placed) and isinstance(rejects, Placed)
    if rejects is output or (both_known and place_of(output) == place_of(rejects)):
        said = f"matches and rejects both go to {place_of(output)}"
        raise ArgumentError(said, argument="rejects", suggestion="give each its own")


def _is_written(sink: Sink, batch: int) -> bool:
    """Whether a sink is known to have a batch."""
    return isinstance(sink, Remembers) and sink.has(batch)


@dataclass(frozen=True, slots=True)
class BatchMatcher:
    """Does one batch. Can be pickled: a server of Spark Connect runs it in a process of its own."""

    subscriptions: Subscriptions
    sink: Sink
    checkpoint: Checkpoint
    event_id: str | None
    keep: tuple[str, ...]
    how: How
    validity: EventValidity | None
    rejects: Sink | None = None
    """Where events go that cannot be matched; without it, they end the stream."""
    goes_on: bool = True
    """Whether there is time for subscriptions to change: not if the stream ends when all there is is done."""
    _noted: set[tuple[int, int]] = field(default_factory=set, init=False, compare=False, repr=False)
    """Where this stream was last noted to be."""

    @property
    def _sinks(self) -> list[tuple[Sink, Sequence[str], Sequence[str]]]:
        """Where matches go and, if they do, rejects; of which columns they are, and those that are the events'."""
        matches = ["event", "subscription" if self.how == "pairs" else "subscriptions", *self.keep]
        found: list[tuple[Sink, Sequence[str], Sequence[str]]] = [(self.sink, matches, self.keep)]
        if self.rejects is not None:
            found.append((self.rejects, REJECT_COLUMNS, ()))
        return found

    def _types(self, events: DataFrame, kept: Sequence[str]) -> dict[str, str]:
        """The types of events' names and of columns that are kept, as Spark writes them."""
        columns = {name: name for name in kept} | ({} if self.event_id is None else {"event": self.event_id})
        known = {each: plain_type(events.schema[name].dataType).simpleString() for each, name in columns.items()}
        return {"event": "string", **known}

    def check_columns(self) -> None:
        """SinkError if a sink cannot take what it would be given."""
        for sink, columns, _ in self._sinks:
            if isinstance(sink, Placed):
                sink.check(columns)

    def check_places(self, events: DataFrame) -> None:
        """Refuse a checkpoint or an output that is that of another stream, or of other columns.

        At the start, and not with the first batch, wherever the places can be seen from here.
        """
        known = self.checkpoint.known
        declared = self.subscriptions.snapshot().rules.schema
        if declared is not None and self.rejects is None:
            check_declared(_plain_events(events).schema, declared)
        for each, asked, kept in self._sinks:
            owner = each.owner() if isinstance(each, Remembers) else None
            if owner is not None:
                (known or Query("", str(self.checkpoint.folder))).refuse(owner, place_of(each))
            elif isinstance(each, Tabular):
                each.check_empty(None if known is None else self.checkpoint.spark.following)
            if isinstance(each, Tabular):
                each.check_like(asked, self._types(events, kept))
        if known is not None:
            self.checkpoint.bind(self.subscriptions)
            self._check_age()
            self.checkpoint.check_keeping(self.validity is not None)
            pending = self.checkpoint.spark.pending
            begun = None if pending is None else self.checkpoint.ledger.entry(pending)
            if self.validity is not None:
                lasting, batch = (
                    RetainedEvents(self.checkpoint.events, self.validity),
                    self.checkpoint.spark.following,
                )
                clock = self.checkpoint.ledger.foreseen(batch, 0, lasting.clock(batch)).clock
                lasting.check_like(_plain_events(events), batch, clock)
            # One that the output of before may have taken would be in both.
            if begun is not None and begun.skipped is None:
                self.checkpoint.check_output(place_of(self.sink), self._rejects_place)

    def _check_age(self) -> None:
        """StreamError if the checkpoint, or Spark's half of it, is older than what was done with it."""
        self.checkpoint.check_halves()
        decided = self.checkpoint.ledger.latest()
        for sink, *_ in self._sinks:
            there = sink.latest_batch() if isinstance(sink, Counts) else None
            if there is not None and there > (-1 if decided is None else decided):
                raise self._is_older_than(sink, there)

    def _check_new(self, batch: int) -> None:
        """StreamError if a sink has a batch that this checkpoint does not know of: it would be a repetition."""
        known = self.checkpoint.ledger.entry(batch)
        if known is not None and not known.anew:
            return
        for sink, *_ in self._sinks:
            if not _is_written(sink, batch):
                continue
            if known is None:
                raise self._is_older_than(sink, batch)
            raise StreamError(
                f"{place_of(sink)} has batch {batch}, which the checkpoint {self.checkpoint.folder} has not begun "
                "since it was planned anew",
                suggestion="pass it over (harken stream skip), or remove it there if nobody used it",
            )

    def _is_older_than(self, sink: Sink, batch: int) -> StreamError:
        return StreamError(
            f"{place_of(sink)} has batch {batch}, which the checkpoint {self.checkpoint.folder} has not begun: it "
            "is an older copy of the one that wrote it",
            suggestion="start with a new checkpoint and a new output; if somebody else wrote that batch, have it "
            "by a number below 0, wherever it is noted",
        )

    @property
    def _rejects_place(self) -> str | None:
        return None if self.rejects is None else place_of(self.rejects)

    def _note_output(self, batch: int) -> None:
        self.checkpoint.note_output(batch, place_of(self.sink), self._rejects_place)

    def prepared(self, events: DataFrame) -> DataFrame:
        """The stream to run on: where events are kept, changes of the subscriptions are part of it."""
        if self.validity is None:
            return events
        from harken.spark.streaming.changes import with_changes

        return with_changes(events, self.subscriptions)

    def __call__(self, events: DataFrame, batch: int) -> None:
        """Match a batch, or match it again, and hand the matches to the sink."""
        events_kept = self.checkpoint.events
        lasting = None if self.validity is None else RetainedEvents(events_kept, self.validity)
        query = self.checkpoint.query  # refuses a ledger of another query, before anything is added to it
        is_first = not self._noted
        if is_first:
            self.check_places(events)  # on the server of Spark Connect, nobody has
            self.checkpoint.note_keeping(lasting is not None)
        self.checkpoint.bind(self.subscriptions)
        self._check_new(batch)
        clock = None if lasting is None else lasting.clock(batch)
        foreseen = self.checkpoint.ledger.foreseen(batch, self.subscriptions.version, clock)
        if foreseen.skipped is None:
            # Both before it is decided: the ledger names no version that nobody keeps, and whoever repeats the
            # batch is to look for it where it went.
            self._note(query, foreseen)
            self._note_output(batch)
        entry = self.checkpoint.ledger.enter(foreseen)
        if entry.skipped is not None:
            self._pass_over(events, entry, entry.skipped)
            return
        self._note(query, entry)
        index, state = index_beside(events.sparkSession, self.subscriptions, entry.version)
        if is_first and self.goes_on:
            rehearse(state.algorithm, state.options)
        with self._computed(events) if is_first and _is_written(self.sink, batch) else nullcontext():
            if lasting is None:
                self._once(events, index, state, entry)
            else:
                self._with_lasting(events, index, state, entry, lasting)

    def _pass_over(self, events: DataFrame, entry: LedgerEntry, reason: str) -> None:
        """Leave a batch as it is."""
        # If the output took it, it has been told of all changes; otherwise the next one is.
        if not _is_written(self.sink, entry.batch):
            self.checkpoint.ledger.hand_on(entry)
        self.checkpoint.note_skipped(entry.batch, reason)
        # What a stream remembers, say to drop duplicates, is written when its rows are computed.
        if self.checkpoint.spark.has_state:
            compute(events)

    @contextmanager
    def _computed(self, events: DataFrame) -> Iterator[None]:
        """Compute the rows of a batch, once, whoever asks for them then.

        A sink that has the batch will not; but Spark's watermark and state are made of them.
        """
        events.persist()
        try:
            compute(events)
            yield
        finally:
            events.unpersist()

    def _note(self, query: Query, entry: LedgerEntry) -> None:
        """Say which versions a repetition of this batch needs, so that they are kept."""
        at = entry.version, entry.before
        if at not in self._noted:
            readers = Readers(self.subscriptions.folder.child("readers"))
            readers.note(Reader.now(query.id, query.checkpoint, *at, follows=self.validity is not None))
            self._noted.clear()
            self._noted.add(at)

    def _once(self, events: DataFrame, index: Index, state: IndexState, entry: LedgerEntry) -> None:
        """Match events that are not kept; they are read once, though rejects and matches are two jobs."""
        twice = self.rejects is not None and state.schema is not None
        if twice:
            events = events.persist()
        try:
            self._write(entry, self._matched(events, index, state, entry))
        finally:
            if twice:
                events.unpersist()

    def _write(self, entry: LedgerEntry, matches: DataFrame) -> None:
        """Hand matches to the sink, once there can be some."""
        # Before the first subscription it is open whether their ids are numbers or strings, and with it the type
        # of a column that tables have to keep to.
        if self.subscriptions.snapshot(entry.version).integer_ids is not None:
            self.sink.write(entry.batch, matches, self.checkpoint.query)
        else:
            compute(matches)  # for what the stream remembers, as above

    def _matched(
        self, events: DataFrame, index: Index, state: IndexState, entry: LedgerEntry, *, tell: bool = True
    ) -> DataFrame:
        """The matches of events; those that cannot be matched go to the rejects first, unless they are there."""
        planned = plan_for(
            events,
            index.folder,
            state,
            event_id=self.event_id,
            keep=self.keep,
            how=self.how,
            at=entry.at,
            strategy="auto",
            collect=self.rejects is not None,
            prefix=f"{entry.batch}-",  # so that no name comes again in another batch
        )
        if tell and self.rejects is not None and planned.rejects is not None and state.schema is not None:
            self.rejects.write(entry.batch, planned.rejects, self.checkpoint.query)
        return planned.frame

    def _with_lasting(
        self, events: DataFrame, index: Index, state: IndexState, entry: LedgerEntry, lasting: RetainedEvents
    ) -> None:
        """Match the events of a batch, and new subscriptions with the earlier events that still hold."""
        arrived = _plain_events(events).persist()
        changed = None
        try:
            matches = self._matched(arrived, index, state, entry)
            changed = index.changes(arrived.sparkSession, state, entry.before)
            earlier = None if changed is None else lasting.before(arrived, entry.batch, entry.clock)
            if changed is not None and earlier is not None:
                matches = matches.unionByName(self._matched(earlier, index, changed, entry, tell=False))
            self._write(entry, matches)
            lasting.keep(entry.batch, arrived, entry.at, entry.clock)
            lasting.expire(entry.batch, entry.clock)
        finally:
            arrived.unpersist()
            if changed is not None:
                index.discard(changed, state)
