"""Numbered documents in a folder, each written once and whole: how storage shared by many processes changes.

A version is one small JSON file. Its writer makes it visible by linking it to its number, which the file system
grants to exactly one of several writers; so readers see a version entirely or not at all, and of two changes made
at once one is told.
"""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any, TypeAlias

from harken.durable import sync, write_durably
from harken.errors import ConcurrentChangeError, IndexFormatError, UnknownVersionError

Document: TypeAlias = dict[str, Any]
"""Whatever JSON holds: who wrote it knows its form."""

_DIGITS, _SUFFIX = 20, ".json"


class VersionLog:
    """Documents 0, 1, 2, ... in a folder. Any number of processes may read and append."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def numbers(self) -> list[int]:
        """All versions there are, ascending. Linear in their number."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        return sorted(int(name.removesuffix(_SUFFIX)) for name in names if _is_version(name))

    def latest(self) -> int | None:
        """The newest version; None before the first."""
        return max(self.numbers(), default=None)

    def read(self, version: int) -> Document:
        """What a version says; UnknownVersionError if there is none of this number."""
        path = self._path(version)
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise UnknownVersionError(str(self.folder), version, self.latest()) from None
        except (ValueError, OSError) as error:
            raise IndexFormatError(f"{path} is damaged: {error}") from error
        if not isinstance(document, dict):
            raise IndexFormatError(f"{path} is damaged: it holds no document")
        return document

    def append(self, version: int, document: Document) -> None:
        """Write a version; ConcurrentChangeError if another writer has taken its number."""
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = self.folder / f".{uuid.uuid4().hex}"
        try:
            write_durably(draft, json.dumps(document, indent=1))
            os.link(draft, self._path(version))
        except FileExistsError:
            raise ConcurrentChangeError(str(self.folder), version) from None
        finally:
            draft.unlink(missing_ok=True)
        sync(self.folder)

    def forget(self, version: int) -> None:
        """Remove a version, if it is there."""
        self._path(version).unlink(missing_ok=True)

    def _path(self, version: int) -> Path:
        return self.folder / f"{version:0{_DIGITS}d}{_SUFFIX}"


def _is_version(name: str) -> bool:
    return name.endswith(_SUFFIX) and name.removesuffix(_SUFFIX).isdigit()
