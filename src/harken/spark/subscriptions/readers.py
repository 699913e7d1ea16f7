"""Which versions of subscriptions streams are at, so that these are kept for them."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from harken.errors import IndexFormatError
from harken.spark.storage import Folder

_SUFFIX = ".json"
_NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Reader:
    """A stream: after a crash it repeats its last batch, with the version that it began it with."""

    query: str
    checkpoint: str
    version: int
    before: int
    """The version of the batch before it."""
    follows: bool
    """Whether it needs to be told of every change since: it keeps events for subscriptions to come."""
    at: str
    """When it said so, for people to judge whether it is still there."""

    @classmethod
    def now(cls, query: str, checkpoint: str, version: int, before: int, *, follows: bool) -> Reader:
        """A stream at this moment."""
        return cls(query, checkpoint, version, before, follows, datetime.now(UTC).isoformat())


class Readers:
    """A small file for each stream."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def all(self) -> list[Reader]:
        """All that there are; IndexFormatError if one cannot be read: what it needs is not known then."""
        names = [each.name for each in self._folder.entries() if each.name.endswith(_SUFFIX)]
        return [reader for name in names if (reader := self._read(name)) is not None]

    def note(self, reader: Reader) -> None:
        """Say where a stream is."""
        if not _NAME.fullmatch(reader.query):
            raise ValueError(f"{reader.query!r} cannot be the name of a query")
        self._folder.replace(f"{reader.query}{_SUFFIX}", json.dumps(asdict(reader)).encode())

    def remove(self, query: str) -> None:
        """Forget a stream, if it is known."""
        self._folder.remove([f"{query}{_SUFFIX}"])

    def _read(self, name: str) -> Reader | None:
        try:
            return Reader(**json.loads(self._folder.read(name)))
        except FileNotFoundError:
            return None  # released meanwhile
        except (TypeError, ValueError) as error:
            raise IndexFormatError(f"{self._folder}/{name} is damaged: {error}") from error
