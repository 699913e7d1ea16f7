"""The kinds of files there are, and opening one with errors that name it."""

from __future__ import annotations

import enum
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import PurePath
from typing import TypeAlias

from harken.errors import InputFileError

STANDARD_STREAM = "-"
"""The path that means standard input or output, which carry JSON Lines."""

OnBad: TypeAlias = Callable[[InputFileError], None]
"""Told of a row that is left out; without one, the first such row ends the reading."""


class Format(enum.Enum):
    """A kind of file, by its ending."""

    CSV = ".csv"
    JSONL = ".jsonl"
    PARQUET = ".parquet"


def format_of(path: str) -> Format:
    """The kind of file that a path's ending names."""
    if path == STANDARD_STREAM:
        return Format.JSONL
    if os.path.isdir(path):
        raise InputFileError(path, "this is a folder, not a file")
    ending = PurePath(path).suffix.lower()
    try:
        return Format(ending)
    except ValueError:
        known = ", ".join(each.value for each in Format)
        found = f"files ending in {ending!r} are" if ending else "a file without an ending is"
        hint = "for one JSON object per line, name the file .jsonl" if ending in (".json", ".ndjson") else None
        raise InputFileError(path, f"{found} not known; the kinds are {known}", suggestion=hint) from None


def shown(path: str) -> str:
    """The path as errors name it."""
    return "<stdin>" if path == STANDARD_STREAM else path


@contextmanager
def opened(path: str) -> Iterator[BufferedReader]:
    """The file for reading; whatever the system says against it becomes an InputFileError."""
    with told(path):
        if path == STANDARD_STREAM:
            yield sys.stdin.buffer  # type: ignore[misc]  # buffered, whatever its class
            return
        with open(path, "rb") as file:
            yield file


@contextmanager
def told(path: str, doing: str = "read") -> Iterator[None]:
    """Errors of the system inside become errors that name the file."""
    try:
        yield
    except FileNotFoundError:
        raise InputFileError(path, "there is no such file or folder") from None
    except IsADirectoryError:
        raise InputFileError(path, "this is a folder, not a file") from None
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = " ".join(str(error.strerror or error).split())  # Arrow's are many lines
        raise InputFileError(path, f"cannot be {doing}: {reason}") from error
    except ValueError as error:
        if "null byte" not in str(error):
            raise
        raise InputFileError(path, "a path cannot hold a NUL character") from None


def raise_or_tell(error: InputFileError, on_bad: OnBad | None) -> None:
    """Tell whoever collects bad rows; if nobody does, raise."""
    if on_bad is None:
        raise error
    on_bad(error)
