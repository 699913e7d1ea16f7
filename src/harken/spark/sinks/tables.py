"""Tables of Parquet or JSON files in folders that the whole cluster shares.

A folder is made under a hidden name and gets its real name when it is complete. Renaming is one step, so nobody
ever reads half of it, and a crash at any moment leaves either everything or a hidden folder that nobody reads.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from harken.errors import OutputExistsError, SinkError
from harken.spark.sinks.contract import BATCH, reserve_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Format: TypeAlias = Literal["parquet", "json"]
"""How the rows of a table are written."""

_SCHEMA = ".schema"
"""The file beside the rows that tells their columns, which JSON, and JSON without rows, does not."""

_WRITTEN = re.compile(r"\.schema|_SUCCESS|part-.*|\..*\.crc")
"""What the files of a table are called: Spark's, and the one above."""


class TableSink:
    """A table that gets a folder `batch=<number>` with every batch, so that readers find the number as a column.

    Takes any columns, the same with every batch. `path` is a folder on storage that the driver and all workers see
    under this name; a folder of the driver alone will do for a `local` master only. Spark and others can read the
    table: `spark.read.parquet(path)`. JSON does not tell types, so with it `read` knows better.

    A batch costs what Spark takes to write it, and a few operations on files. Of two processes that write the same
    batch at once one succeeds and the other's rows go nowhere, whether it fails or not. Threads may share a sink.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        format: Format = "parquet",  # noqa: A002  # as Spark calls it
    ) -> None:
        self.path = _folder(path)
        self.format = _known(format)

    def __repr__(self) -> str:
        return f"TableSink({str(self.path)!r}, format={self.format!r})"

    def write(self, batch: int, matches: DataFrame) -> None:
        """Add the matches of a batch, unless it is there. An empty batch leaves its mark too.

        SinkError, before anything runs, if the columns differ from those of the table, or one is named `batch`.
        """
        final = self.path / f"{BATCH}={batch}"
        if not final.exists():
            reserve_batch(matches)
            self._check(matches.schema)
            staging = self._staging / f"{batch}-{uuid.uuid4().hex}"
            _write(matches, staging, self.format)
            with suppress(FileExistsError):
                _put(staging, final)
        # Not before: an attempt that is thought dead could otherwise put what is left of its folder into place.
        for stale in self._staging.glob(f"{batch}-*"):
            shutil.rmtree(stale, ignore_errors=True)

    def read(self, spark: SparkSession) -> DataFrame:
        """All batches that are there now, with the types they were written with and `batch` as a bigint.

        SinkError before the first batch. Lists the folders; rows are read when the DataFrame is used.
        """
        from pyspark.sql.types import LongType

        schema = self._schema()
        if schema is None:
            raise SinkError(f"nothing has been written to {self.path} yet")
        return spark.read.schema(schema.add(BATCH, LongType())).format(self.format).load(_literally(self.path))

    @property
    def _staging(self) -> Path:
        # Within the table, to be on its file system. Whatever starts with a dot is hidden from readers; an
        # underscore alone would not do, for Spark reads names like "_batch=3".
        return self.path / ".staging"

    def _schema(self) -> StructType | None:
        """The columns of any batch, as they are the same in all."""
        from pyspark.sql.types import StructType

        for file in self.path.glob(f"{BATCH}=*/{_SCHEMA}"):
            return StructType.fromJson(json.loads(file.read_text(encoding="utf-8")))
        return None

    def _check(self, schema: StructType) -> None:
        """Hold a batch to the columns of the table: most readers look at one file, and take all to be like it."""
        agreed = self._schema()
        if agreed is not None and _described(schema) != _described(agreed):
            raise SinkError(
                f"{self.path} has the columns {_described(agreed)}, the batch has {_described(schema)}",
                suggestion="write to another folder",
            )


def write_table(
    matches: DataFrame,
    path: str | os.PathLike[str],
    format: Format = "parquet",  # noqa: A002  # as Spark calls it
) -> None:
    """Write matches into a new folder, which is there when they are complete; for jobs that run once.

    OutputExistsError, before anything runs, if there is something of this name; of two jobs that write to the same
    name at once, one gets it too. A job that fails leaves nothing behind, except that a task which Spark ends too
    late may leave a hidden folder. As with a `TableSink`, all workers must see the folder. Costs what Spark takes
    to write.
    """
    final, known = _folder(path), _known(format)
    if os.path.lexists(final):
        raise OutputExistsError(str(final))
    missing = [folder for folder in final.parents if not folder.exists()]
    staging = final.parent / f".{final.name}-{uuid.uuid4().hex}"
    try:
        _write(matches, staging, known)
        _put(staging, final)
    except BaseException as error:
        for folder in missing:
            with suppress(OSError):
                folder.rmdir()
        if isinstance(error, FileExistsError):
            raise OutputExistsError(str(final)) from None
        raise


def is_table(folder: Path) -> bool:
    """Whether a folder holds what `write_table` wrote, and nothing else."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    names = os.listdir(folder)
    return _SCHEMA in names and all(map(_WRITTEN.fullmatch, names))


def _folder(path: str | os.PathLike[str]) -> Path:
    if "://" in os.fspath(path):
        raise SinkError(f"tables are written to folders, found the address {os.fspath(path)!r}")
    return Path(path).absolute()


def _known(name: Format) -> Format:
    if name not in get_args(Format):
        raise SinkError(f"tables are written as {' or '.join(get_args(Format))}, found {name!r}")
    return name


def _described(schema: StructType) -> str:
    """Names and types; whether there can be nulls is not kept by a table."""
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema)


def _address(path: Path) -> str:
    """What Spark is told: a cluster may have another file system as its default."""
    return f"file://{path}"


def _literally(path: Path) -> str:
    """The same, for reading: there Spark takes some characters for patterns."""
    return _address(Path("".join(f"\\{char}" if char in "\\{}[]*?" else char for char in str(path))))


def _write(matches: DataFrame, staging: Path, form: Format) -> None:
    """Have Spark write a new folder, whole and durable; nothing is left of it if that fails."""
    try:
        matches.write.format(form).save(_address(staging))
        # Even without rows Spark writes one file.
        if not any(staging.glob("part-*")):
            raise SinkError(
                f"what was written to {staging.parent} is not there",
                suggestion="the driver and all workers must share this folder",
            )
        (staging / _SCHEMA).write_text(matches.schema.json(), encoding="utf-8")
        for path in (*staging.iterdir(), staging):
            _sync(path)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def _put(staging: Path, final: Path) -> None:
    """Give a complete folder its name; FileExistsError, and the folder is gone, if that is taken."""
    try:
        staging.rename(final)
    except OSError as error:
        shutil.rmtree(staging, ignore_errors=True)
        if os.path.lexists(final):
            raise FileExistsError(str(final)) from error
        raise
    _sync(final.parent)


def _sync(path: Path) -> None:
    """Have a file, or the names in a folder, survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
