"""Subscriptions from whatever a pipeline is given: files of texts, compiled Parquet, or a folder with versions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from harken.errors import DuplicateSubscriptionError, SubscriptionError, closest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from harken import Schema
    from harken.cli.findings import Finding
    from harken.files import SubscriptionFile
    from harken.spark import Subscriptions
    from harken.spark.storage import Folder


@dataclass(frozen=True, slots=True)
class Refused:
    """A subscription that was not taken: where it stands, what is wrong, and where in its expression."""

    place: str
    id: str | None
    expression: str | None
    reason: str
    line: int | None
    column: int | None

    def __str__(self) -> str:
        id = "-" if self.id is None else self.id
        at = "-" if self.line is None else f"{self.line}:{self.column}"
        return f"{self.place} {id} {at} {self.reason}"


@dataclass(frozen=True, slots=True)
class Loaded:
    """Subscriptions that Spark's workers can reach, and those that were not taken."""

    store: Subscriptions
    refused: list[Refused]


def is_store(path: str) -> bool:
    """Whether a path, or an address in a store, is a folder in which subscriptions have versions."""
    if "://" not in path:
        return os.path.isdir(os.path.join(path, "versions"))
    from harken.spark.storage import folder_at

    return bool(folder_at(path).child("versions").entries())


def load(
    spark: SparkSession,
    path: str,
    schema: Schema | None,
    folder: Folder,
    *,
    collect: bool,
    progress: Callable[[int], None] | None = None,
) -> Loaded:
    """Open a folder of subscriptions, or compile files into a new one at `folder`.

    CSV and JSON Lines are compiled here, so that it can be said in which line a bad one stands; Parquet by Spark's
    tasks. Without `collect`, SubscriptionError if one cannot be taken.
    """
    from harken.spark import Subscriptions

    if is_store(path):
        return Loaded(Subscriptions(path), [])
    # Every run of a stream reads the file anew: what it reads takes the place of what the last run read.
    store = Subscriptions.create(folder, schema=schema, origin="a file")
    by_spark = path.lower().endswith(".parquet") or _is_folder(path)
    refused = _from_parquet(spark, path, store) if by_spark else _from_lines(path, schema, store, progress)
    if refused and not collect:
        raise SubscriptionError(
            f"{len(refused):,} subscriptions are bad; the first: {refused[0]}",
            suggestion="--on-error collect leaves them out",
        )
    return Loaded(store, refused)


def _is_folder(path: str) -> bool:
    """Whether it is a folder, here or in a store: one of files of Parquet."""
    if "://" not in path:
        return os.path.isdir(path)
    from harken.spark.storage import folder_at

    return bool(folder_at(path).entries())


def _from_parquet(spark: SparkSession, path: str, store: Subscriptions) -> list[Refused]:
    from harken.spark.storage import folder_at
    from harken.spark.storage.hadoop import literally

    frame = spark.read.parquet(literally(folder_at(path).address))
    _check_columns(path, frame)
    if "expression" in frame.columns:
        # One file would keep one core busy. Compiled rows are large, and not worth the moving.
        frame = frame.repartition(spark.sparkContext.defaultParallelism)
    try:
        change = store.append(frame, on_error="collect")
    except DuplicateSubscriptionError as error:
        raise SubscriptionError(f"{path}: the id {error.subscription!r} occurs twice") from error
    rows = store.rejects(spark).collect() if change.rejected else []
    return [Refused(path, row.id, row.expression, row.reason, row.line, row.column) for row in rows]


def _check_columns(path: str, frame: DataFrame) -> None:
    """Refuse a column we do not know: it may be a misspelt one that matters."""
    from harken.intake import COLUMNS

    for name in frame.columns:
        if name not in COLUMNS and name != "clauses":
            near = closest(name, COLUMNS)
            said = f"{path}: subscriptions have no column {name!r}; there are {', '.join(COLUMNS)}"
            raise SubscriptionError(said, suggestion=f"did you mean {near!r}?" if near else None)


def _from_lines(
    path: str, schema: Schema | None, store: Subscriptions, progress: Callable[[int], None] | None
) -> list[Refused]:
    from harken.cli.findings import Finding
    from harken.files import read_subscriptions
    from harken.intake import admit
    from harken.matching.identities import Identities
    from harken.model.limits import DEFAULT_LIMITS

    unread: list[Refused] = []
    with _fetched(path) as (here, said):
        file = read_subscriptions(here, lambda error: unread.append(_of_line(Finding.of_line(error))))
        admission = admit(file.rows, Identities(), schema, DEFAULT_LIMITS, replace=False, progress=progress)
        store.append(admission.incoming.compiled)
        found = [(Finding.of_reject(file, reject), _expression(file, reject.row)) for reject in admission.rejects]
    refused = [*unread, *(_of_line(finding, expression) for finding, expression in found)]
    return [replace(each, place=said(each.place)) for each in refused]


@contextmanager
def _fetched(path: str) -> Iterator[tuple[str, Callable[[str], str]]]:
    """A file on this machine, a copy if it is in a store; and how to say where something stands in it."""
    if "://" not in path:
        yield path, str
        return
    from harken.errors import InputFileError
    from harken.spark.storage import folder_at

    folder, name = folder_at(path).above
    with TemporaryDirectory(prefix="harken-") as temporary:
        here = Path(temporary) / Path(name).name
        try:
            folder.download(name, here)
        except FileNotFoundError:
            raise InputFileError(path, "there is no such file or folder") from None
        yield str(here), lambda place: place.replace(str(here), path)


def _of_line(finding: Finding, expression: str | None = None) -> Refused:
    id = None if finding.id is None else str(finding.id)
    at = finding.expression_line, finding.expression_column
    return Refused(finding.where, id, expression, finding.message, *at)


def _expression(file: SubscriptionFile, row: int) -> str | None:
    if isinstance(file.rows, list):
        expression = file.rows[row].get("expression")
    else:
        expression = file.rows.column("expression")[row].as_py()
    return None if expression is None else str(expression)
