"""Matching a stream of events with subscriptions that change: Structured Streaming, batch by batch.

Every batch is matched with one version of the subscriptions, the latest when it first began, which a ledger keeps.
Sinks take a batch once, however often it is repeated. So a stream that is killed at any moment and started again
gives the matches of one that was never disturbed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harken.engine import OnError
from harken.errors import ArgumentError, EventError
from harken.spark.index import Index, index_beside
from harken.spark.lasting import EventValidity, LastingEvents
from harken.spark.layers import IndexState
from harken.spark.ledger import Entry, Ledger
from harken.spark.matching import check_frame, check_words, plan_for
from harken.spark.sinks import Sink, TableSink
from harken.spark.subscriptions import Subscriptions
from harken.spark.tasks import How

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

TIDY_EVERY = 50
"""Batches after which parts of the index that nobody needs any more are removed."""


def match_stream(
    events: DataFrame,
    subscriptions: Subscriptions,
    output: Sink | str | Path,
    *,
    checkpoint: str | Path,
    event_id: str | None = None,
    keep: Sequence[str] = (),
    how: How = "pairs",
    validity: EventValidity | None = None,
    on_error: OnError = "raise",
    rejects: Sink | str | Path | None = None,
    trigger: str | None = None,
    available_now: bool = False,
    name: str | None = None,
) -> StreamingQuery:
    """Start a query that matches a stream of events and writes its matches to a sink, or a folder of Parquet.

    Changes of the subscriptions take effect from one batch to the next. `checkpoint` is a folder that belongs to
    this query; started again with it, the query goes on where it was, without loss or repetition. With `validity`,
    events are kept as long as they hold, and subscriptions that come later meet them; events need an `event_id`
    then. An event with a value of another type than the schema declares ends the query; with `on_error="collect"`
    the others are matched, and it goes, with the reason, to `rejects`: a sink or a folder of Parquet, `rejects` in
    the checkpoint unless said, which takes each batch once. `trigger` is an interval like "1 second"; with
    `available_now` the query ends when all there is is done.
    """
    check_words(how, on_error)
    check_frame(events, keep)
    if rejects is not None and on_error != "collect":
        raise ArgumentError('rejects are for on_error="collect"', argument="rejects")
    if not events.isStreaming:
        raise EventError("the events are no stream; match is for DataFrames that are")
    if validity is not None:
        if event_id is None:
            raise EventError("events that are kept need an id to be known again", suggestion="pass event_id")
        validity.check(events)
    folder = Path(checkpoint).absolute()
    left_out = None if on_error == "raise" else _sink(folder / "rejects" if rejects is None else rejects)
    matcher = BatchMatcher(
        subscriptions, _sink(output), folder / "harken", event_id, tuple(keep), how, validity, left_out
    )
    source = matcher.prepared(events)
    writer = source.writeStream.foreachBatch(matcher).option("checkpointLocation", str(folder / "spark"))
    if name is not None:
        writer = writer.queryName(name)
    if available_now:
        writer = writer.trigger(availableNow=True)
    elif trigger is not None:
        writer = writer.trigger(processingTime=trigger)
    return writer.start()


def _sink(given: Sink | str | Path) -> Sink:
    return TableSink(given) if isinstance(given, str | Path) else given


@dataclass(frozen=True, slots=True)
class BatchMatcher:
    """Does one batch. Can be pickled: a server of Spark Connect runs it in a process of its own."""

    subscriptions: Subscriptions
    sink: Sink
    folder: Path
    event_id: str | None
    keep: tuple[str, ...]
    how: How
    validity: EventValidity | None
    rejects: Sink | None = None
    """Where events go that cannot be matched; without it, they end the stream."""

    def prepared(self, events: DataFrame) -> DataFrame:
        """The stream to run on: where events are kept, changes of the subscriptions are part of it."""
        if self.validity is None:
            return events
        from harken.spark.changes import with_changes

        return with_changes(events, self.subscriptions)

    def __call__(self, events: DataFrame, batch: int) -> None:
        """Match a batch, or match it again, and hand the matches to the sink."""
        lasting = None if self.validity is None else LastingEvents(self.folder / "events", self.validity)
        clock = None if lasting is None else lasting.clock(batch)
        entry = Ledger(self.folder / "ledger").decide(batch, self.subscriptions.version, clock)
        index, state = index_beside(events.sparkSession, self.subscriptions, entry.version)
        if lasting is None:
            self._once(events, index, state, entry)
        else:
            self._with_lasting(events, index, state, entry, lasting)
        if batch % TIDY_EVERY == TIDY_EVERY - 1:
            index.vacuum()

    def _once(self, events: DataFrame, index: Index, state: IndexState, entry: Entry) -> None:
        """Match events that are not kept; they are read once, though rejects and matches are two jobs."""
        twice = self.rejects is not None and state.schema is not None
        if twice:
            events = events.persist()
        try:
            self._write(entry, self._matched(events, index, state, entry))
        finally:
            if twice:
                events.unpersist()

    def _write(self, entry: Entry, matches: DataFrame) -> None:
        """Hand matches to the sink, once there can be some."""
        # Before the first subscription it is open whether their ids are numbers or strings, and with it the type
        # of a column that tables have to keep to.
        if self.subscriptions.snapshot(entry.version).integer_ids is not None:
            self.sink.write(entry.batch, matches)

    def _matched(
        self, events: DataFrame, index: Index, state: IndexState, entry: Entry, *, tell: bool = True
    ) -> DataFrame:
        """The matches of events; those that cannot be matched go to the rejects first, unless they are there."""
        planned = plan_for(
            events,
            index,
            state,
            event_id=self.event_id,
            keep=self.keep,
            how=self.how,
            at=entry.at,
            strategy="auto",
            collect=self.rejects is not None,
        )
        if tell and self.rejects is not None and planned.rejects is not None and state.schema is not None:
            self.rejects.write(entry.batch, planned.rejects)
        return planned.frame

    def _with_lasting(
        self, events: DataFrame, index: Index, state: IndexState, entry: Entry, lasting: LastingEvents
    ) -> None:
        """Match the events of a batch, and new subscriptions with the earlier events that still hold."""
        from harken.spark.changes import without_changes

        arrived = without_changes(events).persist()
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
