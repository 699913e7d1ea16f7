"""What `harken pipeline` has Spark do, stage by stage: once, or as events come in."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from harken.cli.loading import Loaded, Refused, is_store, load
from harken.cli.stages import Stages
from harken.errors import OutputExistsError, SinkError, SubscriptionError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from harken import Schema
    from harken.spark import Index, Plan, Sink, Subscriptions
    from harken.spark.sources import EventFiles

POLL = 0.5
"""Seconds between two looks at a stream."""

_REFUSED = "place string, id string, expression string, reason string, line int, column int"
_COUNTED = "harken"
"""The name under which a stream tells how many events it has seen."""


@dataclass(frozen=True, slots=True)
class Job:
    """What the command was asked to do."""

    subscriptions: str
    events: EventFiles
    output: str
    format: Literal["parquet", "json"]
    table: str
    schema: Schema | None
    event_id: str | None
    keep: tuple[str, ...]
    how: Literal["pairs", "grouped"]
    shards: int | Literal["auto"]
    at: datetime | None
    collect: bool
    rejects: Path | None
    checkpoint: Path | None
    """Where a stream remembers what it has done; None for a job that runs once."""
    trigger: str | None
    once: bool

    @property
    def database(self) -> bool:
        """Whether the output is a database, not a folder."""
        return "://" in self.output


@dataclass(slots=True)
class Outcome:
    """What a job did."""

    events: int = 0
    matches: int = 0
    refused: int = 0
    """Subscriptions that were not taken."""
    bad: int = 0
    """Events that could not be matched."""
    batches: int | None = None
    plan: str = ""
    interrupted: bool = False


# ---------------------------------------------------------------- once


def run_once(spark: SparkSession, job: Job, stages: Stages, work: Path) -> Outcome:
    """Match the events that are there. If it fails, there is no output."""
    from harken.spark.sources import sorted_out

    with stages.spark_stage("read", "looking at the events", spark):
        events = _event_files(job).read(spark, collect=job.collect)
        job = replace(job, event_id=_event_id(job, events))
    loaded, index = _prepared(spark, job, stages, work)
    if job.collect:
        events = sorted_out(events, index.state().profile.attributes)
    with stages.spark_stage("match", "matching events", spark):
        planned, outcome = _match(job, events, index)
    outcome.refused = len(loaded.refused)
    if job.rejects is not None:
        with stages.spark_stage("rejects", "writing rejects", spark), _or_no_output(job):
            _write_refused(spark, job, loaded.refused)
            _write_bad(spark, job, events if outcome.bad else None, planned)
    return outcome


def _match(job: Job, events: DataFrame, index: Index) -> tuple[Plan, Outcome]:
    """Match and write, counting on the way: events are read only once."""
    from pyspark.sql import Observation

    from harken.spark import DatabaseSink, plan, write_table
    from harken.spark.sources import sound

    seen, found = Observation(), Observation()
    observed = events.observe(seen, *_event_counts(events))
    good = sound(observed) if job.collect else observed
    planned = plan(good, index, event_id=job.event_id, keep=job.keep, how=job.how, at=job.at)
    matches = planned.frame.observe(found, _match_count(job))
    if job.database:
        # It knows a batch by its number, and would take a second run of number 0 for a repetition.
        DatabaseSink(job.output, job.table).write(time.time_ns() // 1_000, matches)
    else:
        write_table(matches, job.output, job.format)
    counts = seen.get
    plan_line = "; ".join(line.strip() for line in str(planned).splitlines())
    return planned, Outcome(counts["events"], found.get["matches"], bad=counts.get("bad", 0), plan=plan_line)


@contextmanager
def _or_no_output(job: Job) -> Iterator[None]:
    """If what comes after the output fails, there is no output either."""
    try:
        yield
    except BaseException:
        for folder in (job.rejects, None if job.database else Path(job.output)):
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
        raise


def _write_bad(spark: SparkSession, job: Job, events: DataFrame | None, planned: Plan) -> None:
    """A table of the events that could not be matched, if there are some."""
    from harken.spark import write_table
    from harken.spark.sources import faulty

    assert job.rejects is not None, "who calls this has seen to it"
    if events is None:
        rows = spark.createDataFrame([], "record string, reason string")
    else:
        ids = [] if job.event_id is None else [job.event_id]
        rows = faulty(events, [*ids, *planned.transport.attributes, *job.keep])
    write_table(rows, job.rejects / "events", job.format)


def _write_refused(spark: SparkSession, job: Job, refused: list[Refused]) -> None:
    """A table of the subscriptions that were not taken."""
    from harken.spark import write_table

    assert job.rejects is not None, "who calls this has seen to it"
    rows = spark.createDataFrame([astuple(each) for each in refused], _REFUSED)
    write_table(rows, job.rejects / "subscriptions", job.format)


# ---------------------------------------------------------------- as events come in


def run_stream(spark: SparkSession, job: Job, stages: Stages, work: Path) -> Outcome:
    """Match events as they come in, until there are no more (`once`) or somebody interrupts."""
    from harken.spark.sources import sorted_out

    _check_continues(job)
    with stages.spark_stage("read", "looking at the events", spark):
        events = _event_files(job).follow(spark, collect=job.collect)
        job = replace(job, event_id=_event_id(job, events))
    loaded, index = _prepared(spark, job, stages, work)
    if job.collect:
        events = sorted_out(events)
    state = index.state()
    plan = f"subscriptions from version {state.covers} on, {state.bytes:,} bytes in {state.division.shards} shards"
    outcome = Outcome(refused=len(loaded.refused), plan=plan)
    queries: list[StreamingQuery] = []
    try:
        if job.rejects is not None:
            shutil.rmtree(job.rejects / "subscriptions", ignore_errors=True)  # of an earlier run
            _write_refused(spark, job, loaded.refused)
            queries.append(_started_rejects(job, events))
        sink = CountingSink(_stream_sink(job), _match_count(job), _begun(job))
        queries.insert(0, _started(job, events, loaded.store, sink))
        _follow(queries, sink, stages, outcome)
    except KeyboardInterrupt:
        outcome.interrupted = True
    finally:
        for query in queries:
            query.stop()
    return outcome


def _started(job: Job, events: DataFrame, store: Subscriptions, sink: Sink) -> StreamingQuery:
    from harken.spark import match_stream
    from harken.spark.sources import sound

    observed = events.observe(_COUNTED, *_event_counts(events))
    return match_stream(
        sound(observed) if job.collect else observed,
        store,
        sink,
        checkpoint=_place(job),
        event_id=job.event_id,
        keep=job.keep,
        how=job.how,
        trigger=job.trigger,
        available_now=job.once,
    )


def _started_rejects(job: Job, events: DataFrame) -> StreamingQuery:
    """A query of its own for events that cannot be matched; what it writes, it writes once."""
    from harken.spark.columns import leaves
    from harken.spark.sources import faulty

    writer = faulty(events, leaves(events.schema)).writeStream.format(job.format)
    writer = writer.option("checkpointLocation", f"file://{_place(job) / 'rejects'}")
    if job.once:
        writer = writer.trigger(availableNow=True)
    elif job.trigger is not None:
        writer = writer.trigger(processingTime=job.trigger)
    assert job.rejects is not None, "who calls this has seen to it"
    return writer.start(f"file://{job.rejects.absolute() / 'events'}")


@dataclass(slots=True)
class CountingSink:
    """Hands matches to another sink, and counts them."""

    sink: Sink
    count: Column
    begun: frozenset[int]
    """Batches that an earlier run has begun, and may have written."""
    matches: int = field(default=0, init=False)

    def write(self, batch: int, matches: DataFrame) -> None:
        """Write a batch and add to the count."""
        from pyspark.sql import Observation

        if batch in self.begun:
            self._write_again(batch, matches)
            return
        found = Observation()
        self.sink.write(batch, matches.observe(found, self.count))
        self.matches += found.get["matches"]

    def _write_again(self, batch: int, matches: DataFrame) -> None:
        # What is there already is not written again, and of what does not run nothing can be observed.
        kept = matches.persist()
        try:
            self.sink.write(batch, kept)
            self.matches += kept.agg(self.count).collect()[0][0]
        finally:
            kept.unpersist()


def _follow(queries: list[StreamingQuery], sink: CountingSink, stages: Stages, outcome: Outcome) -> None:
    """Wait for the end of a stream, the first of these queries, and of those beside it; and keep count."""
    counts: dict[int, tuple[int, int]] = {}
    with stages.stage("match", "waiting for events") as bar:
        running = queries
        while running:
            time.sleep(POLL)  # and not in a call to Java, which does not like to be interrupted
            running = [query for query in queries if not _ended(query)]
            counts.update(_progress(queries[0]))
            outcome.events = sum(events for events, _ in counts.values())
            outcome.bad = sum(bad for _, bad in counts.values())
            outcome.batches, outcome.matches = len(counts), sink.matches
            bar.say(f"{len(counts):,} batches, {outcome.events:,} events, {outcome.matches:,} matches")


def _ended(query: StreamingQuery) -> bool:
    """Whether a query is over; if it failed, what it failed of is raised."""
    if query.isActive:
        return False
    query.awaitTermination()
    return True


def _progress(query: StreamingQuery) -> dict[int, tuple[int, int]]:
    """By batch, the events it had and how many of them could not be matched."""
    found = {}
    for progress in query.recentProgress:
        counted = progress["observedMetrics"].get(_COUNTED)
        if counted is not None and progress["numInputRows"]:
            found[progress["batchId"]] = counted["events"], counted.asDict().get("bad", 0)
    return found


def _stream_sink(job: Job) -> Sink:
    from harken.spark import DatabaseSink, TableSink

    return DatabaseSink(job.output, job.table) if job.database else TableSink(job.output, job.format)


def _place(job: Job) -> Path:
    assert job.checkpoint is not None, "a stream has one"
    return job.checkpoint.absolute()


def _begun(job: Job) -> frozenset[int]:
    """The batches that Spark has noted as begun."""
    names = (path.name for path in (_place(job) / "spark" / "offsets").glob("*"))
    return frozenset(int(name) for name in names if name.isdigit())


def _check_continues(job: Job) -> None:
    """Refuse a table of another stream: its batches have the numbers that those of this one will have."""
    if not job.database and not _begun(job) and any(Path(job.output).glob("batch=*")):
        raise OutputExistsError(job.output)


# ---------------------------------------------------------------- both


def _prepared(spark: SparkSession, job: Job, stages: Stages, work: Path) -> tuple[Loaded, Index]:
    with stages.spark_stage("compile", "compiling subscriptions", spark) as bar:
        loaded = load(spark, job.subscriptions, job.schema, work, collect=job.collect, progress=bar.done)
    with stages.spark_stage("index", "building the index", spark):
        return loaded, _index(spark, loaded.store, job.shards)


def _index(spark: SparkSession, store: Subscriptions, shards: int | Literal["auto"]) -> Index:
    """The index beside the subscriptions, up to date; built anew if it has another number of shards than asked."""
    from harken.spark import Index, build_index

    if not (store.path / "index" / "versions").exists():
        return build_index(spark, store, shards=shards)
    index = Index(store.path / "index")
    if shards != "auto" and index.state().division.shards != shards:
        return build_index(spark, store, shards=shards)
    index.refresh(spark)
    return index


def _event_files(job: Job) -> EventFiles:
    """The events, of the types that are declared: by the folder of subscriptions, if they are in one."""
    if not is_store(job.subscriptions):
        return replace(job.events, schema=job.schema)
    from harken.spark import Subscriptions

    declared = Subscriptions(job.subscriptions).snapshot().rules.schema
    if job.schema is not None and job.schema != declared:
        said = f"{job.subscriptions} was made with {'no' if declared is None else 'another'} schema"
        raise SubscriptionError(said, suggestion="leave --schema out")
    return replace(job.events, schema=declared)


def _event_id(job: Job, events: DataFrame) -> str | None:
    """The column that names events: as asked, or `id` if there is one."""
    if job.event_id is not None:
        return job.event_id
    if "id" in events.columns:
        return "id"
    if job.database:
        raise SinkError("a database knows events by their ids", suggestion="name their column with --event-id")
    return None


def _event_counts(events: DataFrame) -> list[Column]:
    from pyspark.sql import functions

    from harken.spark.sources import FAULT

    counts = [functions.count(functions.lit(1)).alias("events")]
    return [*counts, functions.count(FAULT).alias("bad")] if FAULT in events.columns else counts


def _match_count(job: Job) -> Column:
    from pyspark.sql import functions

    if job.how == "pairs":
        return functions.count(functions.lit(1)).alias("matches")
    return functions.coalesce(functions.sum(functions.size("subscriptions")), functions.lit(0)).alias("matches")
