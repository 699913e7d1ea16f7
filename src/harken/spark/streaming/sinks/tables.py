"""Tables of Parquet or JSON files in folders that the whole cluster shares, or in object stores.

A folder is made under a hidden name and gets its real name when it is complete, so a crash at any moment leaves
either everything or a hidden folder that nobody reads. How that is done where nothing can be renamed, `placing`
tells.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from harken.durable import sync
from harken.errors import ArgumentTypeError, OutputExistsError, SinkError
from harken.spark.events.partitioning import partitions_of
from harken.spark.storage import Folder, folder_at
from harken.spark.storage.hadoop import literally
from harken.spark.streaming.sinks.contract import BATCH, Query, Sink, refuse_beside, reserve
from harken.spark.streaming.sinks.placing import is_placed, place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

Format: TypeAlias = Literal["parquet", "json"]
"""How the rows of a table are written."""

RECORDS = 100
"""Batches whose records are kept, where there are records: Spark itself can go back no further."""

# Whatever starts with a dot is hidden from readers; an underscore alone would not do, for Spark reads names like
# "_batch=3".
_STAGING = ".staging"
"""Where Spark writes: within the table, to be on its file system."""

_RECORDS = ".batches"
"""Where it is recorded which attempt at a batch counts."""

_SCHEMA = ".schema"
"""The file that tells the columns, which JSON, and JSON without rows, does not."""

_QUERY = ".query"
"""The file that tells whose batches these are."""

_NO_MARK = "mapreduce.fileoutputcommitter.marksuccessfuljobs"

_WHOLE: Mapping[Format, Mapping[str, str]] = {
    "parquet": {},
    "json": {
        "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
        "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
        "timeZone": "UTC",  # others have had offsets of seconds, which are cut as well
        "enableDateTimeParsingFallback": "true",  # for batches that were written before this was told
        "maxStringLen": str(2**31 - 1),  # Spark writes longer texts than it reads otherwise
        "mode": "FAILFAST",  # what cannot be read is no row of nulls
        "columnNameOfCorruptRecord": "\ufdd0",  # and no column of the table is taken for what could not be read
    },
}
"""What Spark is told so that nothing is cut: left to itself it writes JSON with milliseconds, of microseconds."""

_BESIDE = re.compile(rf"\.|{BATCH}=-\d+$")
"""What is no batch of a query: hidden files, and batches that were written without one."""

_WRITTEN = re.compile(r"\.schema|\.files|_SUCCESS|part-.*|\..*\.crc")
"""What the files of a table are called: Spark's, and those that are written beside them."""


class TableSink:
    """A table that gets a folder `batch=<number>` with every batch, so that readers find the number as a column.

    Takes any columns, the same with every batch, of one query: the first that writes owns the table. `path` is a
    folder on storage that the driver and all workers reach by this address, a path or one in a store; a folder of
    the driver alone will do for a `local` master only. Spark and others can read the table:
    `spark.read.parquet(path)`. JSON does not tell types, so with it `read` knows better.

    A batch is there in one step, except in an object store: there, readers may see some of its files while it is
    put in place, which takes a copy within the store for each; they never see a row twice.

    A batch is one file, unless `files` allows for more: it is matched by as many tasks as ever, and one of them
    writes what they all have found. A batch costs what Spark takes for that, and a few operations on files,
    however many came before. Of two processes that write the same batch at once one succeeds and the other's rows
    go nowhere, whether it fails or not. Threads may share a sink.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Folder,
        format: Format = "parquet",  # noqa: A002  # as Spark calls it
        *,
        files: int = 1,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        if files < 1:
            raise SinkError(f"a batch is written to one file or more, found {files}")
        self.folder = folder_at(path, storage_options)
        self.format = _known(format)
        self.files = files

    def __repr__(self) -> str:
        return f"TableSink({str(self.folder)!r}, format={self.format!r})"

    @property
    def path(self) -> Path | None:
        """The folder on file systems of this machine; None if it is in a store."""
        return self.folder.path

    def write(self, batch: int, matches: DataFrame, query: Query | None = None) -> None:
        """Add the matches of a batch, unless it is there. An empty batch leaves its mark too.

        SinkError, before anything runs, if the columns differ from those of the table, or one is named `batch`, or
        if the table belongs to another query. What is written beside a query, without one, has numbers of its own
        below 0: the query takes all others, sooner or later.
        """
        if query is None:
            refuse_beside(batch, self.owner(), str(self.folder))
        else:
            query.refuse(self._claimed(query), str(self.folder))
        if not self.has(batch):
            self.check(matches.columns)
            self._check(matches.schema)
            staging = f"{_STAGING}/{batch}/{uuid.uuid4().hex}"
            _write(self._gathered(matches), self.folder, staging, self.format)
            self._agree(matches.schema)
            with suppress(FileExistsError):
                place(self.folder, staging, f"{BATCH}={batch}", _record(batch))
        # Not before: an attempt that is thought dead could otherwise put what is left of its folder into place.
        gone, old = [f"{_STAGING}/{batch}"], batch - RECORDS
        # What is beside a query has no order.
        has_record = not self.folder.renames and query is not None and old >= 0
        self.folder.remove([*gone, _record(old)] if has_record else gone)

    @property
    def place(self) -> str:
        """The folder."""
        return str(self.folder)

    def check(self, columns: Sequence[str]) -> None:
        """SinkError if one is named `batch`, or two differ by case only."""
        reserve(columns, BATCH)

    def check_like(self, columns: Sequence[str], types: Mapping[str, str]) -> None:
        """SinkError if there is a table of other columns, or of other types where they are said, or formats."""
        agreed = self._schema()
        if agreed is None:
            return
        written, instead = self._format(), "write to another folder"
        if agreed.names != list(columns):
            said = f"has the columns {', '.join(agreed.names)}, and these are {', '.join(columns)}"
            raise SinkError(f"{self.folder} {said}", suggestion=instead)
        for each in agreed:
            found = each.dataType.simpleString()
            if types.get(each.name, found) != found:
                said = f"has {found} in the column {each.name!r}, and it would be {types[each.name]} now"
                raise SinkError(f"{self.folder} {said}", suggestion=instead)
        if written not in (None, self.format):
            raise SinkError(f"{self.folder} is a table of {written}, not of {self.format}", suggestion=instead)

    def check_empty(self, first: int | None = None) -> None:
        """SinkError if there are files that no query owns: batches of one could be taken for repetitions.

        With `first`, only batches from there on count: a table may have been copied that goes on with that one.
        """
        if first is None:
            found = any(not _BESIDE.match(each.name) for each in self.folder.entries())
        else:
            found = any(batch >= first for batch in self._batches())
        if found:
            raise SinkError(
                f"{self.folder} has files that are those of no stream", suggestion="write to another folder"
            )

    def owner(self) -> Query | None:
        """The query that the table belongs to, if it belongs to any."""
        try:
            return Query(**json.loads(self.folder.read(_QUERY)))
        except FileNotFoundError:
            return None
        except (TypeError, ValueError) as error:
            raise SinkError(f"{self.folder}/{_QUERY} is damaged: {error!r}") from error

    def has(self, batch: int) -> bool:
        """Whether a batch is there."""
        return is_placed(self.folder, f"{BATCH}={batch}", _record(batch))

    def latest_batch(self) -> int | None:
        """The latest batch that is there; those beside the query do not count. Lists the folders."""
        return max(self._batches(), default=None)

    def read(self, spark: SparkSession) -> DataFrame:
        """All batches that are there now, with the types they were written with and `batch` as a bigint.

        SinkError before the first batch. Lists the folders; rows are read when the DataFrame is used.
        """
        from pyspark.sql.types import LongType

        schema = self._schema()
        if schema is None:
            raise SinkError(f"nothing has been written to {self.folder} yet")
        return (
            spark.read.schema(schema.add(BATCH, LongType()))
            .format(self.format)
            .options(**_WHOLE[self.format])  # not all parsers that Spark can be set to would see it
            .load(literally(self.folder.address))
        )

    def _batches(self) -> list[int]:
        found = (re.fullmatch(rf"{BATCH}=(\d+)", each.name) for each in self.folder.entries())
        return [int(each.group(1)) for each in found if each is not None]

    def _gathered(self, matches: DataFrame) -> DataFrame:
        """The same rows in as many partitions as there are to be files; left where they are, if that will do."""
        known = partitions_of(matches)
        return matches if known is not None and known <= self.files else matches.repartition(self.files)

    def _claimed(self, query: Query) -> Query:
        """The query that the table belongs to: this one, if there was none before."""
        owner = self.owner()
        if owner is not None:
            return owner
        with suppress(FileExistsError):
            self.folder.create(_QUERY, json.dumps({"id": query.id, "checkpoint": query.checkpoint}).encode())
        return self.owner() or query

    def _schema(self) -> StructType | None:
        """The columns of the table; None before the first batch."""
        try:
            return self._schema_in(_SCHEMA)
        except FileNotFoundError:
            pass
        # Tables of earlier releases have such a file with every batch.
        for batch in (each.name for each in self.folder.entries() if each.name.startswith(f"{BATCH}=")):
            with suppress(FileNotFoundError):
                return self._schema_in(f"{batch}/{_SCHEMA}")
        return None

    def _schema_in(self, name: str) -> StructType:
        from pyspark.sql.types import StructType

        try:
            return StructType.fromJson(json.loads(self.folder.read(name)))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise SinkError(f"{self.folder}/{name} is damaged: {error!r}") from error

    def _format(self) -> str | None:
        """How the rows of the table are written, by the name of a file; None if there is none yet."""
        for batch in (each.name for each in self.folder.entries() if each.name.startswith(f"{BATCH}=")):
            for each in self.folder.child(batch).entries():
                if each.name.startswith("part-"):
                    return "json" if each.name.endswith(".json") else "parquet"
        return None

    def _agree(self, schema: StructType) -> None:
        """Have the columns of the table told, if no batch before has done so."""
        if not self.folder.exists(_SCHEMA):
            with suppress(FileExistsError):
                self.folder.create(_SCHEMA, schema.json().encode())
            self._check(schema)

    def _check(self, schema: StructType) -> None:
        """Hold a batch to the columns of the table: most readers look at one file, and take all to be like it."""
        if self.format == "json" and (odd := _odd_keys(schema)) is not None:
            raise SinkError(
                f"{odd}: in JSON the keys of maps are texts, and Spark does not read others back",
                suggestion='cast them, or write format="parquet"',
            )
        agreed = self._schema()
        if agreed is not None and _described(schema) != _described(agreed):
            raise SinkError(
                f"{self.folder} has the columns {_described(agreed)}, the batch has {_described(schema)}",
                suggestion="write to another folder",
            )


def sink_at(
    given: Sink | str | os.PathLike[str] | Folder, options: Mapping[str, Any] | None, argument: str
) -> Sink:
    """A sink as it was given, or that of a folder; ArgumentTypeError if it is neither."""
    if isinstance(given, str | os.PathLike | Folder):
        return TableSink(given, storage_options=options)
    if isinstance(given, type) or not callable(getattr(given, "write", None)):
        found = f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
        raise ArgumentTypeError.of(argument, "a sink or a folder", found)
    return given


def write_table(
    matches: DataFrame,
    path: str | os.PathLike[str] | Folder,
    format: Format = "parquet",  # noqa: A002  # as Spark calls it
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Write matches into a new folder, which is there when they are complete; for jobs that run once.

    In an object store its files come one by one, when all of them are complete. OutputExistsError, before anything
    runs, if there is something of this name; of two jobs that write to the same name at once, one gets it too. A
    job that fails leaves nothing behind, except that a task which Spark ends too late may leave a hidden folder.
    As with a `TableSink`, all workers must reach the folder. Costs what Spark takes to write.
    """
    folder, known = folder_at(path, storage_options), _known(format)
    above, name = folder.above
    if _is_taken(above, name):
        raise OutputExistsError(str(folder))
    missing = (
        [] if above.path is None else [each for each in (above.path, *above.path.parents) if not each.exists()]
    )
    staging = f".{name}-{uuid.uuid4().hex}"
    try:
        _write(matches, above, staging, known)
        # By it, what was written here is known again.
        above.child(staging).create(_SCHEMA, matches.schema.json().encode())
        place(above, staging, name, f"{name}/.files")
    except BaseException as error:
        above.remove([staging])
        for each in missing:
            with suppress(OSError):
                each.rmdir()
        if isinstance(error, FileExistsError):
            raise OutputExistsError(str(folder)) from None
        raise
    if not above.renames:
        above.remove([staging])


def is_table(above: Folder, name: str) -> bool:
    """Whether of this name there is what `write_table` wrote, and nothing else, or nothing at all."""
    if not _is_taken(above, name):
        return True
    if above.path is not None and (above.path / name).is_symlink():
        return False
    names = [each.name for each in above.child(name).entries()]
    return _SCHEMA in names and all(map(_WRITTEN.fullmatch, names))


def _is_taken(above: Folder, name: str) -> bool:
    if above.path is not None:
        return os.path.lexists(above.path / name)
    return above.exists(name) or bool(above.child(name).entries())


def _record(batch: int) -> str:
    return f"{_RECORDS}/{batch}.json"


def _known(name: Format) -> Format:
    if name not in get_args(Format):
        raise SinkError(f"tables are written as {' or '.join(get_args(Format))}, found {name!r}")
    return name


def _odd_keys(kind: DataType, name: str = "") -> str | None:
    """A map within a type whose keys are no strings, by its name; None if there is none."""
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType

    if isinstance(kind, StructType):
        inner = [(f"{name}.{each.name}" if name else each.name, each.dataType) for each in kind]
    elif isinstance(kind, ArrayType):
        inner = [(name, kind.elementType)]
    elif isinstance(kind, MapType):
        if not isinstance(kind.keyType, StringType):
            return f"column {name} is a {kind.simpleString()}"
        inner = [(name, kind.valueType)]
    else:
        return None
    return next((found for at, each in inner if (found := _odd_keys(each, at)) is not None), None)


def _described(schema: StructType) -> str:
    """Names and types; whether there can be nulls is not kept by a table."""
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema)


def _write(matches: DataFrame, folder: Folder, staging: str, form: Format) -> None:
    """Have Spark write a new folder, whole and durable; nothing is left of it if that fails."""
    made = folder.child(staging)
    try:
        matches.write.format(form).options(**{_NO_MARK: "false"}, **_WHOLE[form]).save(made.address)
        names = [each.name for each in made.entries()]
        # Even without rows Spark writes one file.
        if not any(name.startswith("part-") for name in names):
            raise SinkError(
                f"what was written to {folder} is not there",
                suggestion="the driver and all workers must share this folder",
            )
        made.remove(name for name in names if not name.startswith("part-"))  # such as checksums of Hadoop's own
        if made.path is not None:
            for path in (*made.path.iterdir(), made.path):
                sync(path)
    except BaseException:
        folder.remove([staging])
        raise
