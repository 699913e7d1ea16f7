"""`harken pipeline`: match events with subscriptions on Spark."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harken.cli.options import AtOption, SchemaOption, schema_of, time_of
from harken.cli.terminal import note

if TYPE_CHECKING:
    from harken.cli.jobs import Job, Outcome, Output, Streaming
    from harken.cli.stages import Stages
    from harken.spark.storage import Folder

_SPLITS_PER_CORE = 4
"""Parts that events are read in, per core: several, so that cores end together and a bar has something to show."""


_Subscriptions = Annotated[
    str,
    typer.Option(
        "--subscriptions", "-s", metavar="PATH", help="csv, jsonl or parquet, or a folder of harken.spark."
    ),
]
_Events = Annotated[
    str,
    typer.Option(
        "--events",
        "-e",
        metavar="PATH",
        help="csv, json, jsonl, ndjson or parquet, also .gz: a file, folder or pattern.",
    ),
]
_Output = Annotated[
    str, typer.Option("--output", "-o", metavar="PATH|URL", help="A new folder, or sqlite:// or postgresql://.")
]
_Master = Annotated[str, typer.Option(help="Where Spark runs.")]
_Shards = Annotated[str, typer.Option(metavar="N|auto", help="Parts of the index.")]
_EventId = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Names events; 'id' if there is one, else a number.")
]
_Keep = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="A column of events to hand on; repeatable.")
]
_Grouped = Annotated[bool, typer.Option("--grouped", help="A row per event, with all its subscriptions.")]
_OnError = Annotated[
    Literal["raise", "collect"],
    typer.Option(help="raise: stop at a bad subscription or event; collect: leave it out and count it."),
]
_Rejects = Annotated[
    str | None, typer.Option(metavar="FOLDER", help="With --on-error collect: write what was left out.")
]
_EventsFormat = Annotated[
    Literal["csv", "json", "jsonl", "parquet"] | None, typer.Option(help="Where names of files do not tell.")
]
_Format = Annotated[Literal["parquet", "json"], typer.Option(help="How a folder is written.")]
_Table = Annotated[str, typer.Option(help="The table of a database.")]
_Conf = Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="A setting of Spark; repeatable.")]
_Stream = Annotated[
    bool, typer.Option("--stream", help="Go on with every file that is added to the folder of events.")
]
_Once = Annotated[bool, typer.Option("--once", help="With --stream: do what is new, and end.")]
_Trigger = Annotated[
    str | None, typer.Option(metavar="INTERVAL", help="With --stream: how often to look, like '1 second'.")
]
_Checkpoint = Annotated[
    str | None,
    typer.Option(metavar="FOLDER", help="With --stream: what is done; beside the output unless given."),
]


def pipeline(
    subscriptions: _Subscriptions,
    events: _Events,
    output: _Output,
    master: _Master = "local[*]",
    shards: _Shards = "auto",
    event_id: _EventId = None,
    keep: _Keep = None,
    grouped: _Grouped = False,
    schema: SchemaOption = None,
    at: AtOption = None,
    on_error: _OnError = "raise",
    rejects: _Rejects = None,
    events_format: _EventsFormat = None,
    format: _Format = "parquet",  # noqa: A002
    table: _Table = "notifications",
    conf: _Conf = None,
    stream: _Stream = False,
    once: _Once = False,
    trigger: _Trigger = None,
    checkpoint: _Checkpoint = None,
) -> None:
    """Match events with subscriptions on Spark, here or on a cluster.

    Writes a row for every match: the event, the subscription and the columns to keep. Only columns that some
    subscription asks about are read. CSV needs a header; its types, and those of JSON, are inferred except where
    --schema declares them, and a column has one type: where that makes a difference to 'harken match', it is
    said. A summary goes to standard error. A run that fails leaves no output; a stream that is stopped goes on
    where it was when it is started again.

    Examples: harken pipeline -s subscriptions.csv -e events/ -o matches

    harken pipeline -s wishes.parquet -e offers.json -o sqlite:///matches.db --schema types.json

    harken pipeline -s subscriptions/ -e incoming/ -o matches --stream --trigger '5 seconds'
    """
    from harken.cli.jobs import Job, Output, Streaming
    from harken.spark.events.sources import EventFiles

    for name, wanted in (("--once", once), ("--trigger", trigger), ("--checkpoint", checkpoint)):
        if wanted and not stream:
            raise typer.BadParameter("is for --stream", param_hint=name)
    to = Output(output, format, table)
    job = Job(
        subscriptions,
        events=EventFiles.at(events, "json" if events_format == "jsonl" else events_format),
        output=to,
        schema=schema_of(schema),
        event_id=event_id,
        keep=tuple(keep or ()),
        how="grouped" if grouped else "pairs",
        shards=_shards(shards),
        at=time_of(at),
        collect=on_error == "collect",
        rejects=rejects,
        stream=Streaming(_checkpoint(to, checkpoint), trigger, once) if stream else None,
    )
    _check(job)
    _work(job, master, conf or [])


def _work(job: Job, master: str, conf: list[str]) -> None:
    """Do a job that can be done, and tell how it went."""
    from harken.cli.stages import shown_stages

    for remark in replace(job.events, schema=job.schema).remarks():
        note(f"note: {remark}; 'harken match' does not. Declare it in a schema.")
    with shown_stages() as stages:
        outcome = _run(job, stages, master, _settings(conf))
    _summarise(outcome, stages)
    if outcome.interrupted:
        raise KeyboardInterrupt


def _run(job: Job, stages: Stages, master: str, settings: dict[str, str]) -> Outcome:
    from harken.cli.jobs import run_once
    from harken.cli.loading import is_store
    from harken.cli.streams import run_stream
    from harken.spark.runtime.failures import retold
    from harken.spark.runtime.lifetime import temporary_session
    from harken.spark.runtime.session import cores_of

    cores = cores_of(master)
    place = job.subscriptions
    if cores is None and job.output.is_database and not _is_address(place) and not is_store(place):
        said = "a cluster needs subscriptions in a folder that it reaches, as there is no folder for the output"
        raise typer.BadParameter(said, param_hint="--subscriptions")
    if cores is not None:
        settings = {"spark.sql.files.minPartitionNum": str(_SPLITS_PER_CORE * cores), **settings}
    with retold(), ExitStack() as stack:
        with stages.stage("Spark", "starting Spark"):
            spark = stack.enter_context(temporary_session(master, settings=settings))
        work = stack.enter_context(_work_folder(job, local=cores is not None))
        run = run_once if job.stream is None else run_stream
        with _hinting(job), retold():
            return run(spark, job, stages, work.child("subscriptions"))


@contextmanager
def _hinting(job: Job) -> Iterator[None]:
    """Where a bad record ends a run, say how to go on without it."""
    from harken.errors import TaskError

    try:
        yield
    except TaskError as error:
        if job.collect or "Malformed records" not in error.message:
            raise
        raise TaskError(error.message, suggestion="--on-error collect leaves bad records out") from error


@contextmanager
def _work_folder(job: Job, *, local: bool) -> Iterator[Folder]:
    """A folder for subscriptions and their index, while the command runs; a cluster must reach it too."""
    from harken.spark.storage import folder_at

    if local or job.output.is_database:
        with tempfile.TemporaryDirectory(prefix=".harken-") as folder:
            yield folder_at(folder)
        return
    beside, _ = folder_at(job.output.place).above
    name = f".harken-{uuid.uuid4().hex}"
    try:
        yield beside.child(name)
    finally:
        beside.remove([name])


def _check(job: Job) -> None:
    """Refuse what cannot be done before Spark is started."""
    from harken.errors import InputFileError

    if not _is_address(job.subscriptions) and job.subscriptions != "-" and not os.path.exists(job.subscriptions):
        raise InputFileError(job.subscriptions, "there is no such file or folder")
    if job.output.is_database:
        _check_database(job)
    elif job.stream is None:
        _check_new(job.output.place)
    if job.rejects is not None:
        _check_rejects(job, job.rejects)
    if job.stream is not None:
        _check_stream(job, job.stream)


def _check_new(place: str) -> None:
    """OutputExistsError if there is something already."""
    from harken.errors import OutputExistsError

    if not _is_address(place) and os.path.lexists(place):
        raise OutputExistsError(place)


def _check_stream(job: Job, stream: Streaming) -> None:
    if os.path.isfile(job.events.path):
        raise typer.BadParameter("a stream follows a folder", param_hint="--events")
    if job.at is not None:
        raise typer.BadParameter("a stream matches as of the time of each batch", param_hint="--at")
    if stream.once and stream.trigger:
        raise typer.BadParameter("there is nothing to wait for with --once", param_hint="--trigger")


def _check_database(job: Job) -> None:
    from harken.spark import DatabaseSink

    DatabaseSink(job.output.place, job.output.table)
    if job.how == "grouped":
        raise typer.BadParameter("a database takes pairs", param_hint="--grouped")
    if job.keep:
        raise typer.BadParameter("a database takes only the ids", param_hint="--keep")


def _check_rejects(job: Job, rejects: str) -> None:
    if not job.collect:
        raise typer.BadParameter("is for --on-error collect", param_hint="--rejects")
    if job.stream is None:
        _check_new(rejects)


def _is_address(path: str) -> bool:
    """Whether only a store can tell what is there, which is asked when Spark has said how to get to it."""
    return "://" in path


def _shards(text: str) -> int | Literal["auto"]:
    if text == "auto":
        return "auto"
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise typer.BadParameter(f"a positive number or 'auto', found {text!r}", param_hint="--shards")
    return int(text)


def _settings(pairs: list[str]) -> dict[str, str]:
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"like spark.executor.memory=8g, found {pair!r}", param_hint="--conf")
        settings[key] = value
    return settings


def _checkpoint(output: Output, given: str | None) -> str:
    """Where a stream remembers what it has done: as given, or beside the output."""
    if given is not None:
        return given
    if not output.is_database:
        return f"{output.place.rstrip('/')}.checkpoint"
    name, _, path = output.place.partition(":///")
    if name.startswith("sqlite") and path:
        return f"{path.partition('?')[0]}.checkpoint"
    raise typer.BadParameter("say where; a server has no place beside it", param_hint="--checkpoint")


def _summarise(outcome: Outcome, stages: Stages) -> None:
    seconds = stages.seconds.get("match", 0.0)
    speed = outcome.events / max(seconds, 1e-9)
    batches = "" if outcome.batches is None else f" in {outcome.batches:,} batches"
    note(
        f"{outcome.events:,} events{batches}, {outcome.matches:,} matches, "
        f"{outcome.refused + outcome.bad + outcome.faults:,} rejects in {seconds:.2f} s ({speed:,.0f} events/s)"
    )
    if outcome.refused or outcome.bad or outcome.faults:
        note(f"rejects: {outcome.refused:,} subscriptions, {outcome.bad + outcome.faults:,} events")
    note(f"stages: {stages}")
    note(f"plan: {outcome.plan}")
