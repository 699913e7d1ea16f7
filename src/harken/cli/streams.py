"""What `harken pipeline --stream` has Spark do: match events as they come in, and keep count."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from harken.cli.jobs import (
    Job,
    Outcome,
    Streaming,
    event_counts,
    event_files,
    match_count,
    named_by,
    prepared,
    write_refused,
)
from harken.cli.stages import Stages
from harken.cli.terminal import note
from harken.errors import OutputExistsError, SinkError, StreamError
from harken.model.foreign import parents

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

    from harken.spark import DatabaseSink, Query, Subscriptions, TableSink
    from harken.spark.storage import Folder
    from harken.spark.streaming.checkpoints import Checkpoint
    from harken.spark.streaming.spark_half import SparkHalf

POLL = 0.5
"""Seconds between two looks at a stream."""

_COUNTED = "harken"
"""The name under which a stream tells how many events it has seen."""

_LINES = "rejects"
"""In a checkpoint, that of the query for what cannot be read."""


def run_stream(spark: SparkSession, job: Job, stages: Stages, work: Folder) -> Outcome:
    """Match events as they come in, until there are no more (`once`) or somebody interrupts."""
    from harken.spark.events.sources import sorted_out
    from harken.spark.matching.batch import never_true

    _check_continues(job)
    with stages.spark_stage("read", "looking at the events", spark):
        files = event_files(job)
        # Where a line that is too wide may have passed as a reject, or numbers are written, they stay as they are.
        followed = files.columns_to_follow(spark, _known_columns(job), widening=not (job.collect or job.keep))
        events = files.follow(spark, followed.columns, collect=job.collect)
        job = replace(job, event_id=named_by(job, events))
    loaded, index = prepared(spark, job, stages, work)
    asked = index.state().profile.attributes
    said = [said for name, said in followed.remarks.items() if any(_is_of(name, each) for each in asked)]
    for each in (*said, *never_true(index.state(), events.schema)):
        note(f"warning: {each}")
    if job.collect:
        events = sorted_out(events)
    tally = Tally(CountingSink(_stream_sink(job), match_count(job), _begun(job)), _faults(job))
    lines = None if job.rejects is None else Lines.of(job)
    queries: list[StreamingQuery] = []
    interrupted = False
    try:
        queries.append(_started(job, events, loaded.store, tally))
        _place(job).note_columns(followed.known.jsonValue())  # not before all that a start may be refused for
        if lines is not None:
            _rejects(job).remove(["subscriptions"])  # of an earlier run, as was checked
            write_refused(spark, job, loaded.refused)
            queries.append(lines.started(job, events))
        _follow(queries, tally, stages)
    except KeyboardInterrupt:
        interrupted = True
        for query in queries[:1]:
            tally.update(query)
    finally:
        for query in queries:
            query.stop()
    state = index.state()
    plan = f"subscriptions from version {state.covers} on, {state.bytes:,} bytes in {state.division.shards} shards"
    return Outcome(
        tally.events,
        tally.sink.matches,
        len(loaded.refused),
        tally.bad,
        0 if tally.faults is None else tally.faults.matches,
        tally.batches,
        plan,
        interrupted,
    )


def _is_of(name: str, other: str) -> bool:
    """Whether two attributes are one, or one is within the other."""
    return name == other or name in parents(other) or other in parents(name)


def _started(job: Job, events: DataFrame, store: Subscriptions, tally: Tally) -> StreamingQuery:
    from harken.spark import match_stream
    from harken.spark.events.sources import sound

    observed = events.observe(_COUNTED, *event_counts(events))
    return match_stream(
        sound(observed) if job.collect else observed,
        store,
        tally.sink,
        checkpoint=_place(job).folder,
        on_error="raise" if tally.faults is None else "collect",
        rejects=tally.faults,
        event_id=job.event_id,
        keep=job.keep,
        how=job.how,
        trigger=_streaming(job).trigger,
        available_now=_streaming(job).once,
    )


def _known_columns(job: Job) -> StructType | None:
    """The columns that the stream has had so far, if anything has been done with them, by either query."""
    from pyspark.sql.types import StructType

    said = _place(job).columns() if _has_done_something(job) else None
    return None if said is None else StructType.fromJson(said)


def _has_done_something(job: Job) -> bool:
    """Whether a batch has come out, though Spark may not have noted so: the process may have been killed."""
    from harken.spark.streaming.spark_half import SparkHalf

    halves = _place(job).spark, SparkHalf(_lines_of(job))
    if any(each.done.whole for each in halves):
        return True
    sinks = [_stream_sink(job), *filter(None, [_faults(job)])]
    return _place(job).known is not None and any(each.latest_batch() is not None for each in sinks)


def _lines_of(job: Job) -> Folder:
    """The checkpoint of the query for what cannot be read."""
    return _place(job).folder.child(_LINES)


def pending_lines(checkpoint: str) -> int | None:
    """The batch of what cannot be read that was planned and not done, if there is one."""
    from harken.spark.storage import folder_at
    from harken.spark.streaming.spark_half import SparkHalf

    return SparkHalf(folder_at(checkpoint).child(_LINES)).pending


def skip_lines(checkpoint: str, reason: str) -> int:
    """Have what cannot be read of the pending batch passed over, and say why; StreamError if none is pending."""
    from harken.spark.storage import folder_at
    from harken.spark.streaming.checkpoints import Checkpoint

    batch = pending_lines(checkpoint)
    if batch is None:
        raise StreamError(f"of what cannot be read nothing is pending in {checkpoint}")
    Checkpoint(folder_at(checkpoint).child(_LINES)).note_skipped(batch, reason)
    return batch


@dataclass(frozen=True, slots=True)
class Lines:
    """The query for what cannot be read, beside that of matches; what it writes, it writes once."""

    checkpoint: Folder
    sink: TableSink

    @classmethod
    def of(cls, job: Job) -> Lines:
        """The one of a job, checked: nothing has been begun yet."""
        from harken.spark import TableSink

        sink = TableSink(_rejects(job).child("events"), job.output.format)
        lines = cls(_lines_of(job), sink)
        lines._mend()
        lines._check()
        return lines

    def started(self, job: Job, events: DataFrame) -> StreamingQuery:
        """Have them written."""
        from harken.spark.events.columns import leaves
        from harken.spark.events.sources import faulty

        writer = faulty(events, leaves(events.schema)).writeStream.foreachBatch(self._write)
        writer = writer.option("checkpointLocation", self.checkpoint.address)
        if _streaming(job).once:
            writer = writer.trigger(availableNow=True)
        elif (trigger := _streaming(job).trigger) is not None:
            writer = writer.trigger(processingTime=trigger)
        return writer.start()

    def _write(self, lines: DataFrame, batch: int) -> None:
        from harken.spark.streaming.checkpoints import Checkpoint

        if batch not in {each.batch for each in Checkpoint(self.checkpoint).skipped()}:
            self.sink.write(batch, lines, self._query)

    @property
    def _half(self) -> SparkHalf:
        from harken.spark.streaming.spark_half import SparkHalf

        return SparkHalf(self.checkpoint)

    @property
    def _query(self) -> Query:
        from harken.spark import Query

        return Query(self._half.id() or "", str(self.checkpoint))

    def _check(self) -> None:
        """SinkError if there is something else where they are to go."""
        if self.sink.folder.child("_spark_metadata").entries():
            raise SinkError(
                f"{self.sink.place} is a table that Spark itself wrote", suggestion="move it elsewhere"
            )
        owner = self.sink.owner()
        if owner is None:
            self.sink.check_empty(self._half.following if self._query.id else None)
        else:
            self._query.refuse(owner, self.sink.place)
        self.sink.check_like(["record", "reason"], {})

    def _mend(self) -> None:
        """Have the query go on though a loss of power has torn what Spark noted, unless lines would be lost."""
        half = self._half
        half.mend()
        latest = self.sink.latest_batch()
        written = -1 if latest is None else latest
        if half.unreadable or written >= half.new or (half.misses_files and written == half.new - 1):
            raise StreamError(
                f"Spark has lost what it noted of the lines that cannot be read, in {self.checkpoint}, or has an "
                f"older copy: {self.sink.place} has batch {written}",
                suggestion=f"move both {self.checkpoint} and {self.sink.place} elsewhere: all lines come again",
            )
        if half.planned.torn or half.misses_files:
            batch = half.new - 1 if half.misses_files else half.new
            half.forget_done(batch)
            half.forget_planned(batch)


@dataclass(slots=True)
class CountingSink:
    """Hands matches to another sink, and counts them; else it is as the other one."""

    sink: TableSink | DatabaseSink
    count: Column
    begun: frozenset[int]
    """Batches that an earlier run has begun, and may have written."""
    matches: int = field(default=0, init=False)

    @property
    def folder(self) -> Folder | None:
        """Of the other, if it has one."""
        return getattr(self.sink, "folder", None)

    @property
    def place(self) -> str:
        """Of the other."""
        return self.sink.place

    def check(self, columns: Sequence[str]) -> None:
        """As the other."""
        self.sink.check(columns)

    def owner(self) -> Query | None:
        """Of the other."""
        return self.sink.owner()

    def check_empty(self, first: int | None = None) -> None:
        """As the other, if it is a table."""
        from harken.spark import TableSink

        if isinstance(self.sink, TableSink):
            self.sink.check_empty(first)

    def check_like(self, columns: Sequence[str], types: Mapping[str, str]) -> None:
        """As the other, if it is a table."""
        from harken.spark import TableSink

        if isinstance(self.sink, TableSink):
            self.sink.check_like(columns, types)

    def has(self, batch: int) -> bool:
        """Whether the other has it."""
        return self.sink.has(batch)

    def latest_batch(self) -> int | None:
        """Of the other."""
        return self.sink.latest_batch()

    def write(self, batch: int, matches: DataFrame, query: Query) -> None:
        """Write a batch and add to the count."""
        from pyspark.sql import Observation

        if batch in self.begun:
            self._write_again(batch, matches, query)
            return
        found = Observation()
        self.sink.write(batch, matches.observe(found, self.count), query)
        self.matches += found.get["matches"]

    def _write_again(self, batch: int, matches: DataFrame, query: Query) -> None:
        # What is there already is not written again, and of what does not run nothing can be observed.
        kept = matches.persist()
        try:
            self.sink.write(batch, kept, query)
            self.matches += kept.agg(self.count).collect()[0][0]
        finally:
            kept.unpersist()


def _follow(queries: list[StreamingQuery], tally: Tally, stages: Stages) -> None:
    """Wait for the end of all queries, of which the first is the one to count."""
    with stages.stage("match", "waiting for events") as bar:
        running = queries
        while running:
            time.sleep(POLL)  # and not in a call to Java, which does not like to be interrupted
            running = [query for query in queries if not _ended(query)]
            tally.update(queries[0])
            bar.say(str(tally))


def _ended(query: StreamingQuery) -> bool:
    """Whether a query is over; if it failed, what it failed of is raised."""
    if query.isActive:
        return False
    query.awaitTermination()
    return True


@dataclass(slots=True)
class Tally:
    """What a stream has done so far."""

    sink: CountingSink
    faults: CountingSink | None
    """What takes the events with a value of another type than is declared, if they are collected."""
    batches: int = 0
    events: int = 0
    bad: int = 0
    """Events that could not be matched."""
    latest: int = -1
    """The number of the last batch that was counted."""

    def update(self, query: StreamingQuery) -> None:
        """Take note of the batches that have ended."""
        for progress in query.recentProgress:
            counted = progress["observedMetrics"].get(_COUNTED)
            if counted is not None and progress["numInputRows"] and progress["batchId"] > self.latest:
                self.latest = progress["batchId"]
                self.batches += 1
                self.events += counted["events"]
                self.bad += counted.asDict().get("bad", 0)

    def __str__(self) -> str:
        return f"{self.batches:,} batches, {self.events:,} events, {self.sink.matches:,} matches"


def _stream_sink(job: Job) -> TableSink | DatabaseSink:
    from harken.spark import DatabaseSink, TableSink

    place, output = job.output.place, job.output
    return DatabaseSink(place, output.table) if output.is_database else TableSink(place, output.format)


def _faults(job: Job) -> CountingSink | None:
    from pyspark.sql import functions

    from harken.spark import TableSink

    if not job.collect:
        return None
    place = (_place(job).folder if job.rejects is None else _rejects(job)).child("faults")
    count = functions.count(functions.lit(1)).alias("matches")
    return CountingSink(TableSink(place, job.output.format), count, _begun(job))


def _streaming(job: Job) -> Streaming:
    assert job.stream is not None, "who calls this has seen to it"
    return job.stream


def _place(job: Job) -> Checkpoint:
    from harken.spark.streaming.checkpoints import Checkpoint

    return Checkpoint(_streaming(job).checkpoint)


def _rejects(job: Job) -> Folder:
    from harken.spark.storage import folder_at

    assert job.rejects is not None, "who calls this has seen to it"
    return folder_at(job.rejects)


def _begun(job: Job) -> frozenset[int]:
    """The batches that Spark has noted as begun."""
    return frozenset(_place(job).spark.planned.whole)


def _check_continues(job: Job) -> None:
    """Refuse a table of another stream: its batches have the numbers that those of this one will have.

    Refuse rejects that are not those of an earlier run, too: these give way.
    """
    from harken.spark import TableSink
    from harken.spark.streaming.sinks.tables import is_table

    if job.rejects is not None and not is_table(_rejects(job), "subscriptions"):
        raise OutputExistsError(f"{_rejects(job)}/subscriptions")
    if job.output.is_database or _place(job).known is not None:
        return
    if TableSink(job.output.place).latest_batch() is not None:
        raise OutputExistsError(job.output.place)
