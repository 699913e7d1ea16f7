"""The kinds of files there are, and errors that name the file."""

from __future__ import annotations

import enum
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import TypeAlias

from harken.errors import InputFileError

STANDARD_STREAM = "-"
"""The path that means standard input or output, which carry JSON Lines unless it is said what else."""

OnBad: TypeAlias = Callable[[InputFileError], None]
"""Told of a row that is left out; without one, the first such row ends the reading."""


class Format(enum.Enum):
    """What a file holds."""

    CSV = "csv"
    JSONL = "jsonl"
    JSON = "json"
    """JSON Lines, an array of objects, or objects one after the other: its content tells."""
    PARQUET = "parquet"


ENDINGS = {
    ".csv": Format.CSV,
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".json": Format.JSON,
    ".parquet": Format.PARQUET,
}
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
WRITTEN = (".csv", ".jsonl", ".ndjson", ".parquet")
"""The endings of files that matches are written to."""


def format_of(path: str, said: str | None = None) -> Format:
    """What a file holds: as is said, or as its ending tells."""
    if path != STANDARD_STREAM and os.path.isdir(path):
        raise InputFileError(path, "this is a folder, not a file")
    if said is not None:
        return Format(said)
    if path == STANDARD_STREAM:
        return Format.JSONL
    name = PurePath(path)
    if name.suffix.lower() in COMPRESSIONS:
        name = name.with_suffix("")
    known = ENDINGS.get(name.suffix.lower())
    if known is None:
        raise _unknown(path, name.suffix, f"{', '.join(ENDINGS)}, also with {' or '.join(COMPRESSIONS)} after it")
    return known


def written_format(path: str) -> Format:
    """What a file for matches is to hold."""
    if path == STANDARD_STREAM:
        return Format.JSONL
    ending = PurePath(path).suffix
    if ending.lower() not in WRITTEN:
        raise _unknown(path, ending, f"{', '.join(WRITTEN)} for matches")
    return ENDINGS[ending.lower()]


def _unknown(path: str, ending: str, kinds: str) -> InputFileError:
    found = f"files ending in {ending!r} are" if ending else "a file without an ending is"
    hint = "rename it, or say what it holds with an option (see --help)" if "also" in kinds else None
    return InputFileError(path, f"{found} not known; the kinds are {kinds}", suggestion=hint)


def compression_of(path: str) -> str | None:
    """How a path's ending says that the file is compressed."""
    return COMPRESSIONS.get(PurePath(path).suffix.lower())


def shown(path: str) -> str:
    """The path as errors name it."""
    return "<stdin>" if path == STANDARD_STREAM else path


@contextmanager
def told(path: str, doing: str = "read") -> Iterator[None]:
    """Errors of the system inside become errors that name the file."""
    path = shown(path) if doing == "read" else path
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
