"""`harken match`: which subscriptions of a file the events of another satisfy."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harken.cli.options import (
    FILES,
    AtOption,
    FileFormat,
    SchemaOption,
    SubscriptionsFormatOption,
    SubscriptionsOption,
    check_there,
    schema_of,
    time_of,
)
from harken.cli.terminal import note, progress

if TYPE_CHECKING:
    from datetime import datetime

    from harken import Engine
    from harken.errors import InputFileError
    from harken.files import EventChunk, MatchWriter


def match(
    subscriptions: SubscriptionsOption,
    events: Annotated[str, typer.Option("--events", "-e", metavar="FILE", help=f"What happened: {FILES}.")],
    algorithm: Annotated[str, typer.Option(metavar="NAME", help="See 'harken algorithms'.")] = "auto",
    schema: SchemaOption = None,
    events_format: Annotated[
        FileFormat | None,
        typer.Option(
            "--events-format", "--format", help="What events are written in, where the name does not tell."
        ),
    ] = None,
    subscriptions_format: SubscriptionsFormatOption = None,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", help="csv, jsonl or parquet; '-' prints JSON Lines."),
    ] = "-",
    at: AtOption = None,
    on_error: Annotated[
        Literal["raise", "collect"],
        typer.Option(help="raise: stop at the first bad row; collect: report bad rows and match the others."),
    ] = "raise",
) -> None:
    """Match a file of events against a file of subscriptions.

    Writes one line per match: the event's id (or its row, from 0, if it has none) and the subscription's id.
    Matches of events that come from standard input are printed as the events come. A summary goes to standard
    error. A run that fails leaves no output file behind. All cores match; the environment variable HARKEN_THREADS
    says how many threads instead.

    Examples: harken match -s subscriptions.csv -e events.jsonl -o matches.parquet

    tail -f offers.log | harken match -s wishes.jsonl -e -

    zcat events.gz | harken match -s wishes.csv -e - --format csv --schema types.json
    """
    from harken import Engine
    from harken.files import read_events, write_matches

    _check_paths(subscriptions, events, output)
    moment = time_of(at)
    engine = Engine(algorithm, schema_of(schema))
    rejects = _Rejects() if on_error == "collect" else None
    _load(engine, subscriptions, subscriptions_format, rejects)
    with (
        write_matches(output) as writer,
        closing(read_events(events, engine.schema, on_bad=rejects, format=events_format)) as chunks,
    ):
        summary = _match_all(engine, chunks, writer, moment, rejects)
    refused = 0 if rejects is None else rejects.count
    note(f"{summary}, {refused:,} rejects; {len(engine):,} subscriptions, algorithm {engine.algorithm}")


class _Rejects:
    """Tells of rows left out as they are met, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, reason: object) -> None:
        self.count += 1
        note(f"rejected: {reason}")


def _check_paths(subscriptions: str, events: str, output: str) -> None:
    if subscriptions == events == "-":
        raise typer.BadParameter("only one of --subscriptions and --events can be '-'")
    check_there(subscriptions, events)
    for path in (subscriptions, events):
        if os.path.exists(path) and os.path.exists(output) and os.path.samefile(path, output):
            raise typer.BadParameter(f"{output} is also read from", param_hint="--output")


def _load(engine: Engine, path: str, form: FileFormat | None, rejects: _Rejects | None) -> None:
    from harken.cli.findings import Finding
    from harken.errors import BulkLoadError, SubscriptionError
    from harken.files import read_subscriptions

    def tell(error: InputFileError) -> None:
        if rejects is not None:
            rejects(Finding.of_line(error))

    file = read_subscriptions(path, None if rejects is None else tell, format=form)
    on_error: Literal["raise", "collect"] = "raise" if rejects is None else "collect"
    try:
        with progress("loading subscriptions", len(file)) as done:
            report = engine.subscribe_many(file.rows, on_error=on_error, progress=done)
    except BulkLoadError as error:
        first = Finding.of_reject(file, error.rejects[0])  # type: ignore[arg-type]  # an engine's rejects
        raise SubscriptionError(
            f"{len(error.rejects):,} of {len(file):,} subscriptions are bad; the first: {first}",
            suggestion=f"'harken check {path}' lists them all; --on-error collect leaves them out",
        ) from error
    for reject in report.rejects:
        if rejects is not None:
            rejects(Finding.of_reject(file, reject))


def _match_all(
    engine: Engine,
    chunks: Iterable[EventChunk],
    writer: MatchWriter,
    at: datetime | None,
    rejects: _Rejects | None,
) -> str:
    from harken.files import match_chunk

    count = found = 0
    start = time.perf_counter()
    with progress("matching events") as done:
        for chunk in chunks:
            for names, matches in match_chunk(engine, chunk, at=at, on_bad=rejects):
                writer.write(names, matches)
                found += len(matches)
            count += len(chunk)
            done(count)
    seconds = time.perf_counter() - start
    return f"{count:,} events, {found:,} matches in {seconds:.2f} s ({count / max(seconds, 1e-9):,.0f} events/s)"
