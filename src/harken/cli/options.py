"""Options that several verbs take."""

from __future__ import annotations

import os
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

if TYPE_CHECKING:
    from harken import Schema

FILES = "csv, jsonl, ndjson, json or parquet, also .gz or .zst; '-' is JSON Lines from standard input"

FileFormat: TypeAlias = Literal["csv", "jsonl", "json", "parquet"]
"""What a file may be said to hold."""

SubscriptionsOption = Annotated[
    str, typer.Option("--subscriptions", "-s", metavar="FILE", help=f"Standing conditions: {FILES}.")
]
SubscriptionsFormatOption = Annotated[
    FileFormat | None,
    typer.Option(help="What the subscriptions are written in, where the name of their file does not tell."),
]
SchemaOption = Annotated[
    str | None,
    typer.Option(metavar="FILE", help='Declared types: JSON like {"price": "float", "listed": "date"}.'),
]
AtOption = Annotated[
    str | None, typer.Option(metavar="TIMESTAMP", help="Match as of this time instead of now; UTC unless it says.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def check_there(*paths: str | None) -> None:
    """InputFileError if a file is not there: that is the first thing to know, whatever its name ends in."""
    from harken.errors import InputFileError

    for path in paths:
        if not path or path == "-" or "\0" in path:
            continue
        try:
            os.lstat(path)
        except FileNotFoundError:
            raise InputFileError(path, "there is no such file or folder") from None
        except OSError:
            continue  # whoever reads it says why it cannot be read


def schema_of(path: str | None) -> Schema | None:
    """The schema of the file that `--schema` names, if it was given."""
    from harken.files import read_schema

    return None if path is None else read_schema(path)


def time_of(text: str | None) -> datetime | None:
    """The moment that `--at` says, if it was given."""
    from harken.errors import ExpressionError
    from harken.files.declared import moment

    if text is None:
        return None
    try:
        return moment(text)
    except ExpressionError as error:
        said = f"{error.message}; write it like '2026-11-15 10:30:00Z'"
        raise typer.BadParameter(said, param_hint="--at") from None
