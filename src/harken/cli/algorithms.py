"""`harken algorithms`: which ways of matching there are."""

from __future__ import annotations

import json

import typer

from harken.cli.options import JsonOption
from harken.cli.terminal import screen


def algorithms(as_json: JsonOption = False) -> None:
    """List the matching algorithms.

    Example: harken algorithms --json
    """
    from rich.table import Table

    import harken

    known = harken.algorithms()
    if as_json:
        typer.echo(json.dumps(known, ensure_ascii=False, indent=2))
        return
    table = Table("algorithm", "what it does", box=None, pad_edge=False)
    for name, summary in known.items():
        table.add_row(name, summary)
    screen().print(table)
