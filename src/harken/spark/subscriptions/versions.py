"""Numbered documents in a folder, each written once and whole: how storage shared by many processes changes.

A version is one small JSON file. Its name is its number, which the store grants to exactly one of several writers;
so readers see a version entirely or not at all, and of two changes made at once one is told.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any, TypeAlias

from harken.errors import ConcurrentChangeError, IndexFormatError, UnknownVersionError
from harken.spark.storage import FileEntry, Folder, folder_at

Document: TypeAlias = dict[str, Any]
"""Whatever JSON holds: who wrote it knows its form."""

_DIGITS, _SUFFIX = 20, ".json"


class VersionLog:
    """Documents 0, 1, 2, ... in a folder. Any number of processes may read and append."""

    def __init__(self, folder: Folder | str | os.PathLike[str]) -> None:
        self.folder = folder_at(folder)
        self._known: int | None = None
        """A version that there was; what is newer is looked for beyond it."""

    def numbers(self) -> list[int]:
        """All versions there are, ascending. Linear in their number."""
        return [number for number, _ in self.entries()]

    def entries(self, after: int = -1) -> list[tuple[int, FileEntry]]:
        """All versions beyond one, ascending, with what the store knows of them."""
        found = self.folder.entries(_name(after) if after >= 0 else "")
        return [(int(each.name.removesuffix(_SUFFIX)), each) for each in found if _is_version(each.name)]

    def latest(self) -> int | None:
        """The newest version; None before the first."""
        newer = self.entries(-1 if self._known is None else self._known)
        if newer:
            self._known = newer[-1][0]
        elif self._known is not None and not self.folder.exists(_name(self._known)):
            self._known = max(self.numbers(), default=None)  # somebody has removed it all, and maybe begun anew
        return self._known

    def read(self, version: int) -> Document:
        """What a version says; UnknownVersionError if there is none of this number."""
        document = self.find(version)
        if document is None:
            raise UnknownVersionError(str(self.folder), version, self.latest())
        return document

    def find(self, version: int) -> Document | None:
        """What a version says, if there is one of this number. Lists nothing."""
        where = f"{self.folder}/{_name(version)}"
        try:
            document = json.loads(self.folder.read(_name(version)))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise IndexFormatError(f"{where} is damaged: {error}") from error
        if not isinstance(document, dict):
            raise IndexFormatError(f"{where} is damaged: it holds no document")
        return document

    def append(self, version: int, document: Document) -> None:
        """Write a version; ConcurrentChangeError if another writer has taken its number."""
        try:
            self.folder.create(_name(version), json.dumps(document, indent=1).encode())
        except FileExistsError:
            raise ConcurrentChangeError(str(self.folder), version) from None

    def amend(self, version: int, document: Document) -> None:
        """Write a version in the place of what it was: only where nobody relies on that any more."""
        self.folder.replace(_name(version), json.dumps(document, indent=1).encode())

    def forget(self, versions: Iterable[int]) -> None:
        """Remove versions, as far as they are there."""
        self.folder.remove(map(_name, versions))


def _name(version: int) -> str:
    return f"{version:0{_DIGITS}d}{_SUFFIX}"


def _is_version(name: str) -> bool:
    return name.endswith(_SUFFIX) and name.removesuffix(_SUFFIX).isdigit()
