"""`harken stream`: where a stream is, and how it goes on past a batch that cannot be done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from harken.cli.terminal import note

if TYPE_CHECKING:
    from harken.spark import DatabaseSink, TableSink

stream = typer.Typer(
    name="stream",
    help="See where a stream is, and have it go on past a batch that cannot be done.",
    no_args_is_help=True,
)

Place = Annotated[str, typer.Argument(metavar="CHECKPOINT", help="The folder of the checkpoint, or its address.")]


@stream.command()
def status(checkpoint: Place) -> None:
    """Say which batch a stream is at, with which version of the subscriptions, and what was passed over."""
    from harken.cli.streams import pending_lines
    from harken.spark.streaming.operating import stream_status

    typer.echo(str(stream_status(checkpoint)))
    if (batch := pending_lines(checkpoint)) is not None:
        typer.echo(f"of what cannot be read, batch {batch} is pending")


@stream.command()
def skip(
    checkpoint: Place,
    reason: Annotated[str, typer.Option(help="Why, for those who look at the status.")],
    unread: Annotated[
        bool, typer.Option("--unread", help="Of the records that cannot be read, as --rejects writes them.")
    ] = False,
) -> None:
    """Pass over the batch that is pending: it gives no matches. The stream must be stopped.

    What writes the records that cannot be read has batches of its own, and may be stopped by the same file.

    Example: harken stream skip matches.checkpoint --reason 'a file of events was removed'
    """
    from harken.cli.streams import pending_lines, skip_lines
    from harken.spark.streaming.operating import skip_batch

    if unread:
        note(f"of what cannot be read, batch {skip_lines(checkpoint, reason)} will be passed over")
        return
    note(f"batch {skip_batch(checkpoint, reason=reason)} will be passed over")
    if (batch := pending_lines(checkpoint)) is not None:
        note(f"of what cannot be read, batch {batch} is pending too: --unread passes it over")


@stream.command()
def repin(
    checkpoint: Place,
    subscriptions: Annotated[str, typer.Option("--subscriptions", "-s", metavar="PATH", help="Their folder.")],
    output: Annotated[str, typer.Option("--output", "-o", metavar="PATH|URL", help="Where matches go.")],
    version: Annotated[int | None, typer.Option(help="Of the subscriptions; the latest unless given.")] = None,
    table: Annotated[str, typer.Option(help="The table of a database.")] = "notifications",
) -> None:
    """Match the batch that is pending with another version of the subscriptions. The stream must be stopped.

    Example: harken stream repin matches.checkpoint -s subscriptions -o matches
    """
    from harken.spark import Subscriptions
    from harken.spark.streaming.operating import repin_batch

    entry = repin_batch(checkpoint, Subscriptions(subscriptions), _sink(output, table), version=version)
    note(f"batch {entry.batch} will be matched with version {entry.version}")


@stream.command()
def replan(
    checkpoint: Place,
    output: Annotated[str, typer.Option("--output", "-o", metavar="PATH|URL", help="Where matches go.")],
    rejects: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Of rejects outside the checkpoint: DIR/faults of --rejects DIR."),
    ] = None,
    table: Annotated[str, typer.Option(help="The table of a database.")] = "notifications",
) -> None:
    """Have the last batch planned anew, if Spark has lost its file of it, as after a loss of power.

    The stream must be stopped, and nothing of the batch may have come out.

    Example: harken stream replan matches.checkpoint -o matches
    """
    from harken.spark.streaming.operating import replan_batch

    note(f"batch {replan_batch(checkpoint, _sink(output, table), rejects=rejects)} will be planned anew")


def _sink(output: str, table: str) -> TableSink | DatabaseSink:
    from harken.cli.jobs import Output
    from harken.spark import DatabaseSink, TableSink

    return DatabaseSink(output, table) if Output(output).is_database else TableSink(output)
