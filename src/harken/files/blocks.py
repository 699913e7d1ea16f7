"""The bytes of a file or of standard input as they come, decompressed where they are compressed.

All reading is done by the thread that asks for it. A reader that reads ahead in threads of its own, as those of
Arrow do, calls back into Python for every block; one that is still at it while the interpreter ends takes the
process down with it.
"""

from __future__ import annotations

import codecs
import io
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, cast

import pyarrow as pa

from harken.errors import InputFileError
from harken.files.formats import STANDARD_STREAM, compression_of, shown, told

BLOCK = 2**20
"""Bytes asked for at a time."""

_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_SIGNS = (*_MAGIC, codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""What files may begin with that is not part of their text."""


class Readable(Protocol):
    """A file that gives what is there without waiting for more."""

    def read1(self, size: int, /) -> bytes:
        """What is there, up to `size` bytes; nothing at the end."""

    def fileno(self) -> int:
        """Its number; OSError if it has none."""


class Blocks:
    """What a file holds, block by block; to be iterated once."""

    def __init__(self, path: str, file: Readable) -> None:
        self._path = shown(path)
        self._file = file
        self._first = _begin(file)
        self._compression = next((name for magic, name in _MAGIC.items() if self._first.startswith(magic)), None)
        claimed = compression_of(path)
        if claimed is not None and self._first and self._compression != claimed:
            raise InputFileError(self._path, f"this is not {claimed}, which its name says it is")
        self._poll = None if self._compression else _poll(file)

    def __iter__(self) -> Iterator[bytes]:
        blocks = self._blocks()
        for first in blocks:
            if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise InputFileError(self._path, "the file is not UTF-8 but UTF-16")
            yield first
            break
        yield from blocks

    def _blocks(self) -> Iterator[bytes]:
        read = self._file.read1
        if self._compression is not None:
            read = self._decompressing(self._compression)
        elif self._first:
            yield self._first
        while block := read(BLOCK):
            yield block

    def waits(self) -> bool:
        """Whether nothing more is there yet, and reading on would wait for somebody to write."""
        return self._poll is not None and not self._poll.poll(0)

    def _decompressing(self, compression: str) -> Callable[[int], bytes]:
        source = pa.PythonFile(_Joined(self._first, self._file), mode="r")
        stream = pa.CompressedInputStream(source, compression)

        def read(size: int) -> bytes:
            try:
                return cast("bytes", stream.read(size))
            except (OSError, pa.ArrowException) as error:
                reason = " ".join(str(error).split())
                if "Truncated" in reason:
                    reason = "it ends too early, as if part of it were missing"
                raise InputFileError(self._path, f"the {compression} data is damaged: {reason}") from error

        return read


class _Joined(io.RawIOBase):
    """A file, of which the beginning has been read already, from its beginning."""

    def __init__(self, first: bytes, file: Readable) -> None:
        self._first = first
        self._file = file

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        if self._first:
            head, self._first = self._first[:size], self._first[size:]
            return head
        return self._file.read1(size)


@contextmanager
def read_blocks(path: str) -> Iterator[Blocks]:
    """The blocks of a file, or of standard input for "-"; what the system says against it is InputFileError."""
    with told(path):
        if path == STANDARD_STREAM:
            if sys.stdin is None:
                raise InputFileError(shown(path), "standard input is closed")
            yield Blocks(path, sys.stdin.buffer)  # type: ignore[arg-type]  # buffered, whatever its class
            return
        with open(path, "rb") as file:
            yield Blocks(path, file)


def read_all(path: str) -> bytes:
    """All that a file holds."""
    with read_blocks(path) as blocks:
        return b"".join(blocks)


def _begin(file: Readable) -> bytes:
    """The first bytes: enough to know by what they are."""
    first = file.read1(BLOCK)
    while first and any(sign.startswith(first) and sign != first for sign in _SIGNS):
        more = file.read1(BLOCK)
        if not more:
            break
        first += more
    return first


def _poll(file: Readable) -> select.poll | None:
    """What tells whether there is something to read; None where there is always something, or nobody knows."""
    try:
        poll = select.poll()
        poll.register(file.fileno(), select.POLLIN)
    except (OSError, AttributeError):
        return None
    return poll
