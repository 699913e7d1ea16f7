"""What `harken pipeline` has Spark do, stage by stage, with the events that are there."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from harken.cli.loading import Loaded, Refused, is_store, load
from harken.cli.stages import Stages
from harken.errors import OutputExistsError, SinkError, SubscriptionError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from harken import Schema
    from harken.engine import OnError
    from harken.spark import Index, Plan, Subscriptions
    from harken.spark.events.sources import EventFiles
    from harken.spark.storage import Folder

STORES = frozenset({"file", "hdfs", "s3", "s3a", "gs", "abfs", "abfss"})
"""What the address of a folder begins with; other URLs are those of databases."""

_REFUSED = "place string, id string, expression string, reason string, line int, column int"


@dataclass(frozen=True, slots=True)
class Output:
    """Where matches go: a new folder, or a table of a database."""

    place: str
    format: Literal["parquet", "json"] = "parquet"
    """Of a folder."""
    table: str = "notifications"
    """Of a database."""

    @property
    def is_database(self) -> bool:
        """Whether the place is a database, not a folder, which may be one in a store."""
        scheme, found, _ = self.place.partition("://")
        return bool(found) and scheme.lower() not in STORES


@dataclass(frozen=True, slots=True)
class Streaming:
    """How a job goes on with events that come later."""

    checkpoint: str
    """Where it remembers what it has done."""
    trigger: str | None
    once: bool


@dataclass(frozen=True, slots=True)
class Job:
    """What the command was asked to do."""

    subscriptions: str
    events: EventFiles
    output: Output
    schema: Schema | None
    event_id: str | None
    keep: tuple[str, ...]
    how: Literal["pairs", "grouped"]
    shards: int | Literal["auto"]
    at: datetime | None
    collect: bool
    rejects: str | None
    stream: Streaming | None
    """None for a job that runs once."""


@dataclass(slots=True)
class Outcome:
    """What a job did."""

    events: int = 0
    matches: int = 0
    refused: int = 0
    """Subscriptions that were not taken."""
    bad: int = 0
    """Records that could not be read."""
    faults: int = 0
    """Events with a value of another type than is declared."""
    batches: int | None = None
    plan: str = ""
    interrupted: bool = False


# ---------------------------------------------------------------- once


def run_once(spark: SparkSession, job: Job, stages: Stages, work: Folder) -> Outcome:
    """Match the events that are there. If it fails, there is no output."""
    from harken.spark import write_table
    from harken.spark.events.sources import sorted_out
    from harken.spark.storage import folder_at

    with stages.spark_stage("read", "looking at the events", spark):
        events = event_files(job).read(spark, collect=job.collect)
        job = replace(job, event_id=named_by(job, events))
    loaded, index = prepared(spark, job, stages, work)
    if job.collect:
        events = sorted_out(events)
    with stages.spark_stage("match", "matching events", spark):
        planned, outcome = _match(job, events, index)
    outcome.refused = len(loaded.refused)
    if job.rejects is not None:
        with stages.spark_stage("rejects", "writing rejects", spark), _or_no_output(job):
            write_refused(spark, job, loaded.refused)
            _write_bad(spark, job, events if outcome.bad else None, planned)
            write_table(_or_none(planned), folder_at(job.rejects).child("faults"), job.output.format)
    return outcome


def _match(job: Job, events: DataFrame, index: Index) -> tuple[Plan, Outcome]:
    """Match and write, counting on the way: events are read only once."""
    from pyspark.sql import Observation

    from harken.spark import DatabaseSink, plan, write_table
    from harken.spark.events.sources import sound

    seen, found = Observation(), Observation()
    observed = events.observe(seen, *event_counts(events))
    good = sound(observed) if job.collect else observed
    on_error: OnError = "collect" if job.collect else "raise"
    planned = plan(good, index, event_id=job.event_id, keep=job.keep, how=job.how, at=job.at, on_error=on_error)
    # Before anything is written: a run that fails leaves no output.
    faults = 0 if planned.rejects is None or planned.state.schema is None else planned.rejects.count()
    matches = planned.frame.observe(found, match_count(job))
    if job.output.is_database:
        # It knows a batch by its number, and would take a second run of the same one for a repetition; what is of
        # no stream is below 0.
        DatabaseSink(job.output.place, job.output.table).write(_number(), matches)
    else:
        write_table(matches, job.output.place, job.output.format)
    counts = seen.get
    plan_line = "; ".join(line.strip() for line in str(planned).splitlines())
    outcome = Outcome(counts["events"], found.get["matches"], bad=counts.get("bad", 0), plan=plan_line)
    outcome.faults = faults
    return planned, outcome


def _number() -> int:
    """A number below 0 that no other run has, though it were of the same millisecond."""
    return -(time.time_ns() // 1_000_000 << 20 | secrets.randbits(20))


def _or_none(planned: Plan) -> DataFrame:
    assert planned.rejects is not None, "who calls this has asked for them"
    return planned.rejects


@contextmanager
def _or_no_output(job: Job) -> Iterator[None]:
    """A folder for rejects; if what comes after the output fails, neither is there. What others made stays."""
    from harken.spark.storage import folder_at

    assert job.rejects is not None, "who calls this has seen to it"
    made = [] if job.output.is_database else [job.output.place]
    try:
        _make_new(folder_at(job.rejects))
        made.append(job.rejects)
        yield
    except BaseException:
        for address in made:
            above, name = folder_at(address).above
            above.remove([name])
        raise


def _make_new(folder: Folder) -> None:
    """Make a folder, where there are folders; OutputExistsError if there is one."""
    if folder.path is None and folder.entries():
        raise OutputExistsError(str(folder))
    if folder.path is not None:
        try:
            folder.path.mkdir(parents=True)
        except FileExistsError:
            raise OutputExistsError(str(folder)) from None


def _write_bad(spark: SparkSession, job: Job, events: DataFrame | None, planned: Plan) -> None:
    """A table of the records that could not be read, if there are some."""
    from harken.spark import write_table
    from harken.spark.events.sources import faulty
    from harken.spark.storage import folder_at

    assert job.rejects is not None, "who calls this has seen to it"
    if events is None:
        rows = spark.createDataFrame([], "record string, reason string")
    else:
        ids = [] if job.event_id is None else [job.event_id]
        rows = faulty(events, [*ids, *planned.transport.attributes, *job.keep])
    write_table(rows, folder_at(job.rejects).child("events"), job.output.format)


# ---------------------------------------------------------------- for streams too


def prepared(spark: SparkSession, job: Job, stages: Stages, work: Folder) -> tuple[Loaded, Index]:
    """The subscriptions, where workers reach them, and their index."""
    with stages.spark_stage("compile", "compiling subscriptions", spark) as bar:
        loaded = load(spark, job.subscriptions, job.schema, work, collect=job.collect, progress=bar.done)
    with stages.spark_stage("index", "building the index", spark):
        return loaded, _index(spark, loaded.store, job.shards)


def _index(spark: SparkSession, store: Subscriptions, shards: int | Literal["auto"]) -> Index:
    """The index beside the subscriptions, up to date; built anew if it has another number of shards than asked."""
    from harken.spark import Index, build_index

    if not store.folder.child("index/versions").entries():
        return build_index(spark, store, shards=shards)
    index = Index(store.folder.child("index"))
    if shards != "auto" and index.state().division.shards != shards:
        return build_index(spark, store, shards=shards)
    index.refresh(spark)
    return index


def event_files(job: Job) -> EventFiles:
    """The events, of the types that are declared: by the folder of subscriptions, if they are in one."""
    if not is_store(job.subscriptions):
        return replace(job.events, schema=job.schema)
    from harken.spark import Subscriptions

    declared = Subscriptions(job.subscriptions).snapshot().rules.schema
    if declared is None:
        return replace(job.events, schema=job.schema)  # of events alone
    if job.schema is not None and job.schema != declared:
        said = f"{job.subscriptions} was made with another schema"
        raise SubscriptionError(said, suggestion="leave --schema out")
    return replace(job.events, schema=declared)


def named_by(job: Job, events: DataFrame) -> str | None:
    """The column that names events: as asked, or `id` if there is one."""
    if job.event_id is not None:
        return job.event_id
    if "id" in events.columns:
        return "id"
    if job.output.is_database:
        raise SinkError("a database knows events by their ids", suggestion="name their column with --event-id")
    return None


def event_counts(events: DataFrame) -> list[Column]:
    """What is counted of events: `events` and, if they were sorted out, `bad`."""
    from pyspark.sql import functions

    from harken.spark.events.sources import FAULT

    counts = [functions.count(functions.lit(1)).alias("events")]
    return [*counts, functions.count(FAULT).alias("bad")] if FAULT in events.columns else counts


def match_count(job: Job) -> Column:
    """What is counted of what was found: `matches`."""
    from pyspark.sql import functions

    if job.how == "pairs":
        return functions.count(functions.lit(1)).alias("matches")
    return functions.coalesce(functions.sum(functions.size("subscriptions")), functions.lit(0)).alias("matches")


def write_refused(spark: SparkSession, job: Job, refused: list[Refused]) -> None:
    """A table of the subscriptions that were not taken."""
    from harken.spark import write_table
    from harken.spark.storage import folder_at

    assert job.rejects is not None, "who calls this has seen to it"
    rows = spark.createDataFrame([astuple(each) for each in refused], _REFUSED)
    write_table(rows, folder_at(job.rejects).child("subscriptions"), job.output.format)
