"""`harken generate`: write a workload's subscriptions and events as Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harken.cli.terminal import note, screen


def _list_workloads(wanted: bool) -> None:
    if not wanted:
        return
    from rich.table import Table

    from harken.workloads import workloads

    table = Table("workload", "what it is", box=None, pad_edge=False)
    for name, summary in workloads().items():
        table.add_row(name, summary)
    screen().print(table)
    raise typer.Exit


def generate(
    name: Annotated[str, typer.Argument(metavar="WORKLOAD", help="Which workload; see --list.")],
    out: Annotated[Path, typer.Option(help="Folder for subscriptions.parquet and events.parquet.")],
    subscriptions: Annotated[int, typer.Option(min=0, help="How many subscriptions.")] = 100_000,
    events: Annotated[int, typer.Option(min=0, help="How many events.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed makes the same data.")] = 20_001,
    list_all: Annotated[
        bool, typer.Option("--list", callback=_list_workloads, is_eager=True, help="List the workloads and stop.")
    ] = False,
) -> None:
    """Generate one of the papers' workloads: subscriptions in compiled form, events as columns.

    Example: harken generate w0 --subscriptions 1000000 --events 100000 --out w0
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from harken.normal.compiled import compiled_schema
    from harken.workloads import workload

    made = workload(name, seed)
    out.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(out / "subscriptions.parquet", compiled_schema(pa.int64())) as writer:
        for table in made.subscriptions(subscriptions):
            writer.write_table(table)
    pq.write_table(made.events(events), out / "events.parquet")
    note(f"{subscriptions:,} subscriptions and {events:,} events in {out}")
