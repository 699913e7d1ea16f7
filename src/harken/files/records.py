"""CSV as bytes: records, which may span lines where values are quoted, and the lines they begin on.

RFC 4180: commas, and double quotes around values that hold commas, quotes or line ends. Blank lines are passed
over. Line ends are LF, CRLF or CR.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

from harken.errors import InputFileError
from harken.files.blocks import Blocks
from harken.files.formats import shown

MAX_RECORD = 64 * 2**20
"""Bytes of one record: what never ends is not read into memory."""

PART = 8 * 2**20
"""Bytes read before records are handed on, unless nothing more is there yet."""

_VALUE = rb'(?:"(?:[^"]++|"")*+"[^,\r\n]*+|[^",\r\n][^,\r\n]*+)?+'
_RECORD = re.compile(rb"(?:" + _VALUE + rb",)*+" + _VALUE + rb"(?:\r\n|\n|\r(?!\Z))")
_RECORDS = re.compile(rb"(?:" + _RECORD.pattern + rb")*+")
_JSON = re.compile(rb'\s*[\[{]\s*["\[{\]}]')
_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True)
class Records:
    """Some whole records of a file, and the line on which the first begins."""

    text: bytes
    first_line: int
    waits: bool = False
    """Whether nothing more was there when these were read."""

    @cached_property
    def lines(self) -> list[int]:
        """The line on which each record begins. Costs a look at everything: for errors only."""
        ends = [end.start() for end in _LINE_END.finditer(self.text)]
        return [self.first_line + bisect_right(ends, found.start() - 1) for found in self._found()]

    @property
    def over_lines(self) -> bool:
        """Whether some record is longer than a line."""
        if b'"' not in self.text:
            return False
        return any(_LINE_END.search(found[0].rstrip(b"\r\n")) for found in self._found())

    def split(self) -> list[bytes]:
        """Each record by itself."""
        return [found[0] for found in self._found()]

    def _found(self) -> Iterator[re.Match[bytes]]:
        return (found for found in _RECORD.finditer(self.text) if found[0].strip(b"\r\n"))


class RecordLines(Sequence[int]):
    """The lines of some records, counted when somebody asks."""

    def __init__(self, records: Records, places: Sequence[int]) -> None:
        self._records = records
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    @property
    def over_lines(self) -> bool:
        """Whether some record is longer than a line."""
        return self._records.over_lines

    @overload
    def __getitem__(self, at: int) -> int: ...

    @overload
    def __getitem__(self, at: slice) -> RecordLines: ...

    def __getitem__(self, at: int | slice) -> int | RecordLines:
        if isinstance(at, slice):
            return RecordLines(self._records, self._places[at])
        return self._records.lines[self._places[at]]


def read_records(path: str, blocks: Blocks) -> Iterator[Records]:
    """The records of a file: the first one alone, as it is the header, then as many as there are at a time."""
    reading = _Reading(path)
    for block in blocks:
        reading.take(block)
        if reading.header is None:
            if (header := reading.begin()) is not None:
                yield header
            else:
                continue
        waits = blocks.waits()
        if (reading.held >= PART or waits) and (records := reading.whole(waits)) is not None:
            yield records
    yield from reading.rest()


class _Reading:
    """What has been read and not yet been handed on."""

    def __init__(self, path: str) -> None:
        self._path = shown(path)
        self._pieces: list[bytes] = []
        self._line = 1
        self.held = 0
        self.header: Records | None = None

    def take(self, block: bytes) -> None:
        """Add what was read."""
        if self._line == 1 and self.header is None and not self._pieces:
            block = block.removeprefix(codecs.BOM_UTF8)
            self._check_kind(block)
        self._pieces.append(block)
        self.held += len(block)

    def begin(self) -> Records | None:
        """The header, as soon as it is there."""
        text = self._joined()
        blank = len(text) - len(text.lstrip(b"\r\n"))
        found = _RECORD.match(text, blank)
        if found is None:
            self._check_size()
            return None
        self._line += _line_ends(text[:blank])
        self.header = self._cut(text[blank:], found.end() - blank, waits=False)
        return self.header

    def whole(self, waits: bool) -> Records | None:
        """All whole records that are there; None if there is none."""
        text = self._joined()
        end = _end_of_records(text)
        if end == 0:
            self._check_size()
            return None
        return self._cut(text, end, waits)

    def rest(self) -> Iterator[Records]:
        """What there is at the end of the file, where the last line need not be ended."""
        text = self._joined()
        if not text.strip(b"\r\n"):
            return
        if not text.endswith(b"\n"):
            text += b"\n"
        self._pieces = [text]
        if self.header is None:
            if (header := self.begin()) is None:
                raise self._unclosed(text)
            yield header
        if (records := self.whole(waits=False)) is not None:
            yield records
        if left := self._joined():
            raise self._unclosed(left)

    def _joined(self) -> bytes:
        text = b"".join(self._pieces)
        self._pieces = [text]
        return text

    def _cut(self, text: bytes, end: int, waits: bool) -> Records:
        records = Records(text[:end], self._line, waits)
        self._line += _line_ends(records.text)
        self._pieces = [text[end:]] if end < len(text) else []
        self.held = len(text) - end
        return records

    def _check_size(self) -> None:
        if self.held > MAX_RECORD:
            raise self._unclosed(self._joined())

    def _unclosed(self, text: bytes) -> InputFileError:
        if b'"' in text:
            return InputFileError(self._path, "a quoted value that begins here is never closed", line=self._line)
        return InputFileError(self._path, f"the line is longer than {MAX_RECORD:,} bytes", line=self._line)

    def _check_kind(self, block: bytes) -> None:
        """Refuse what is no CSV, but would be read as a strange one."""
        if block[:4] == b"PAR1":
            raise InputFileError(self._path, "this is Parquet, not CSV")
        if b"\0" in block[:4096]:
            raise InputFileError(self._path, "this is not text: it holds NUL bytes")
        if _JSON.match(block):
            hint = "name it .jsonl or .json, or say that it is"
            raise InputFileError(self._path, "this is JSON, not CSV", suggestion=hint)


def _line_ends(text: bytes) -> int:
    return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")


def _end_of_records(text: bytes) -> int:
    """Where the last whole record ends."""
    if b'"' in text:
        return _RECORDS.match(text).end()  # type: ignore[union-attr]  # matches nothing too
    if b"\r" not in text:
        return text.rfind(b"\n") + 1
    # A CR at the very end may be half of a CRLF.
    return max(text.rfind(b"\n"), text.rfind(b"\r", 0, len(text) - 1)) + 1
