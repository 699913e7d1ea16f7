"""JSON objects, one per line, as they come.

A batch of lines is what has been read at once, so that what arrives slowly is handed on at once, and what
arrives quickly in large pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from harken.errors import InputFileError
from harken.files.arrays import objects_in_text
from harken.files.blocks import Blocks, read_blocks
from harken.files.formats import Format, OnBad, format_of, raise_or_tell, shown
from harken.files.json_text import BYTE_ORDER_MARK, is_json, parse_object

MAX_LINE = 64 * 2**20
"""Bytes of one line: what never ends is not read into memory."""


@dataclass(frozen=True, slots=True)
class Objects:
    """Some objects of a file with their lines, from 1; and whether one has to wait for more."""

    lines: list[int]
    objects: list[dict[str, object]]
    waits: bool


def read_objects(path: str, on_bad: OnBad | None = None) -> Iterator[tuple[int, dict[str, object]]]:
    """The objects of a file with their line numbers, from 1. Blank lines are passed over."""
    for batch in read_batches(path, format_of(path), on_bad):
        yield from zip(batch.lines, batch.objects, strict=True)


def read_batches(path: str, kind: Format, on_bad: OnBad | None = None) -> Iterator[Objects]:
    """The objects of a file, in batches of what has been read at once."""
    with read_blocks(path) as blocks:
        pieces: Iterator[bytes] = iter(blocks)
        if kind is Format.JSON:
            first = _first_line(pieces)
            pieces = chain([first], pieces)
            if _spans_lines(first):
                for line, value in objects_in_text(path, pieces, on_bad):
                    yield Objects([line], [value], waits=False)
                return
        yield from _of_lines(path, blocks, pieces, on_bad)


def begins_over_lines(path: str) -> bool:
    """Whether a JSON file is an array, or holds objects of more than one line."""
    with read_blocks(path) as blocks:
        return _spans_lines(_first_line(iter(blocks)))


def spans_lines(path: str) -> bool:
    """Whether a JSON file is one array or one object, of more than one line."""
    with read_blocks(path) as blocks:
        pieces: Iterator[bytes] = iter(blocks)
        text = _first_line(pieces).removeprefix(BYTE_ORDER_MARK).lstrip()
        line = text.partition(b"\n")[0].rstrip()
        if text[:1] == b"[":
            return not line.endswith(b"]")
        if text[:1] != b"{" or is_json(line):
            return False
        for piece in pieces:
            text += piece
            if len(text) > MAX_LINE:
                return False
        return is_json(text)


def is_one_line(path: str) -> bool:
    """Whether a file has nothing after its first line."""
    with read_blocks(path) as blocks:
        pieces: Iterator[bytes] = iter(blocks)
        more = _first_line(pieces).removeprefix(BYTE_ORDER_MARK).lstrip().partition(b"\n")[2]
        return not any(piece.strip() for piece in chain([more], pieces))


def _of_lines(path: str, blocks: Blocks, pieces: Iterable[bytes], on_bad: OnBad | None) -> Iterator[Objects]:
    for first, texts in whole_lines(path, pieces):
        lines, objects = [], []
        for line, text in enumerate(texts, first):
            if not text.removeprefix(BYTE_ORDER_MARK).strip():
                continue
            try:
                objects.append(parse_object(text.rstrip(b"\r")))
            except ValueError as error:
                raise_or_tell(InputFileError(shown(path), str(error), line=line), on_bad)
            else:
                lines.append(line)
        yield Objects(lines, objects, blocks.waits())


def whole_lines(path: str, pieces: Iterable[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """Lines without their ends, as many as there are at a time, and the number of the first."""
    line = 1
    begun: list[bytes] = []
    for piece in pieces:
        head, newline, tail = piece.rpartition(b"\n")
        if newline:
            texts = b"".join([*begun, head]).split(b"\n")
            _check_length(path, line, texts)
            yield line, texts
            line += len(texts)
            begun = [tail]
        else:
            begun.append(piece)
        _check_length(path, line, begun)
        if sum(map(len, begun)) > MAX_LINE:
            raise _too_long(path, line)
    if last := b"".join(begun):
        yield line, [last]


def _check_length(path: str, line: int, texts: list[bytes]) -> None:
    for at, text in enumerate(texts):
        if len(text) > MAX_LINE:
            raise _too_long(path, line + at)


def _too_long(path: str, line: int) -> InputFileError:
    return InputFileError(shown(path), f"the line is longer than {MAX_LINE:,} bytes", line=line)


def _first_line(pieces: Iterator[bytes]) -> bytes:
    """The beginning of a file, up to the end of the first line that is not blank, and perhaps more."""
    first = b""
    for piece in pieces:
        first += piece
        if b"\n" in first.removeprefix(BYTE_ORDER_MARK).lstrip() or len(first) > MAX_LINE:
            break
    return first


def _spans_lines(first: bytes) -> bool:
    """Whether a file that begins so is an array, or holds objects of more than one line."""
    text = first.removeprefix(BYTE_ORDER_MARK).lstrip()
    return text[:1] == b"[" or (text[:1] == b"{" and not is_json(text.partition(b"\n")[0]))
