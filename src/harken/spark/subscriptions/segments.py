"""Files of compiled subscriptions: Arrow streams that are written once, checked by their sum, and mapped."""

from __future__ import annotations

import tempfile
import uuid
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from harken.durable import checksum, sync
from harken.errors import IndexFormatError, StorageError
from harken.normal.compiled import conform
from harken.spark.storage import Folder, machine_cache

Kind: TypeAlias = Literal["appends", "upserts", "deletes"]
APPENDS: Kind = "appends"
UPSERTS: Kind = "upserts"
DELETES: Kind = "deletes"


@dataclass(frozen=True, slots=True)
class Segment:
    """One file of a change: subscriptions that came or were changed, or ids that went."""

    file: str
    kind: Kind
    version: int
    """The version that first named it or, if it is merged of others, the latest of theirs."""
    rows: int
    bytes: int
    crc32: int

    def of_version(self, version: int) -> Segment:
        """The same file, first named by this version."""
        return replace(self, version=version)

    def to_json(self) -> dict[str, Any]:  # as JSON has it
        """As it is written down."""
        return asdict(self)


class SegmentWriter:
    """Writes tables one after the other into a file, which nobody knows of until a version names it.

    Leaving its context with an error removes the file. Where the folder is a store's, it is written on this
    machine and goes there when it is complete.
    """

    def __init__(self, folder: Folder, kind: Kind) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._path = self._local() / f"{uuid.uuid4().hex}.arrows"
        self._kind = kind
        self._rows = 0
        self._sink: pa.OSFile | None = None
        self._stream: pa.RecordBatchStreamWriter | None = None
        self._made: Segment | None = None

    def write(self, table: pa.Table) -> None:
        """Append a table of the same form as those before it."""
        if not table.num_rows:
            return
        if self._stream is None:
            self._sink = pa.OSFile(str(self._path), "wb")
            self._stream = pa.ipc.new_stream(self._sink, table.schema)
        self._stream.write_table(table)
        self._rows += table.num_rows

    def segment(self) -> Segment | None:
        """What was written, once it is; None if there was nothing to write."""
        if not self._rows:
            return None
        assert self._made is not None, "asked for after the context"
        return self._made

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._stack:
            try:
                for each in (self._stream, self._sink):
                    if each is not None:
                        each.close()
                if kind is None and self._rows:
                    self._made = self._put()
            except BaseException:
                kind = BaseException
                raise
            finally:
                if kind is not None:
                    self._path.unlink(missing_ok=True)

    def _local(self) -> Path:
        """Where the file is written."""
        if self._folder.path is None:
            return Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="harken-")))
        self._folder.path.mkdir(parents=True, exist_ok=True)
        return self._folder.path

    def _put(self) -> Segment:
        """Have the file where others find it."""
        size, crc = self._path.stat().st_size, checksum(self._path)
        if self._folder.path is None:
            self._folder.upload(self._path.name, self._path)
        else:
            for written in (self._path, self._path.parent):
                sync(written)
        return Segment(self._path.name, self._kind, 0, self._rows, size, crc)


def read_segment(folder: Folder, segment: Segment, *, verify: bool = True) -> pa.Table:
    """The table that was written, mapped; IndexFormatError if the file is not as it was."""
    where = f"{folder}/{segment.file}"

    def opened(path: Path) -> pa.Table:
        if path.stat().st_size != segment.bytes or (verify and checksum(path) != segment.crc32):
            raise IndexFormatError(f"{where} is damaged: its size or checksum is not what was written")
        try:
            return pa.ipc.open_stream(pa.memory_map(str(path))).read_all()
        except pa.ArrowException as error:
            raise IndexFormatError(f"{where} is damaged: {error}") from error

    try:
        table = machine_cache().file(folder, segment.file, segment.bytes, opened)
    except FileNotFoundError:
        raise IndexFormatError(f"{where} is missing") from None
    except StorageError:
        raise
    except OSError as error:
        raise IndexFormatError(f"{where} is damaged: {error}") from error
    return table if segment.kind == DELETES else conform(table)
