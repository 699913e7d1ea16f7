"""Which versions, and which of the files they name, are kept, and for how long.

Somebody may be reading a version that was the latest a while ago, and writing files that no version names yet. So
versions are kept for a time after they were the latest, and longer if a stream is at them; and files that nobody
names go only when whoever wrote them must have given up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from harken.errors import ArgumentError, ArgumentTypeError, UnknownVersionError
from harken.spark.storage import FileEntry, Folder
from harken.spark.subscriptions.readers import Reader, Readers
from harken.spark.subscriptions.versions import Document, VersionLog
from harken.spark.subscriptions.writing import StoreFolders

KEEP = 10
"""Versions that are kept at least."""

GRACE = timedelta(hours=1)
"""How long a version is kept after it was the latest."""

ORPHANS = timedelta(days=1)
"""How long a file is kept that no version names."""


@dataclass(frozen=True, slots=True)
class Retention:
    """Of one folder of subscriptions."""

    log: VersionLog
    place: StoreFolders
    readers: Readers
    read: Callable[[int], Document]
    """What a version says."""

    def forget(self, keep: int = KEEP, grace: timedelta = GRACE) -> int:
        """Forget old versions and remove the files they had replaced or had to themselves; how many files.

        Reads the versions that go, and those that are kept for streams alone.
        """
        old = self._old(keep, grace)
        readers = self.readers.all()
        pinned = self._needed(old, readers)
        going = [version for version in old if version not in pinned]
        files: set[str] = set()
        for document in self._said(going):
            files |= {*document["replaced"], *document["rejects"]}
        files -= self._named(sorted(pinned))
        # The versions go first: after a crash between the two, files are left that nobody names.
        self.log.forget(going)
        self.place.segments.remove(files)
        self.place.rejects.remove(files)
        return len(files)

    def vacuum(self, keep: int, grace: timedelta, orphans: timedelta) -> int:
        """The same, and remove files that no version names; how many. Reads all versions that stay."""
        check_retention(keep, grace, orphans)
        removed = self.forget(keep, grace)
        # Listed before versions are read: a file that is named meanwhile is among them, or younger.
        found = {folder: folder.entries() for folder in (self.place.segments, self.place.rejects)}
        named = self._named(self.log.numbers())
        for folder, entries in found.items():
            removed += remove_unnamed(folder, entries, named, orphans)
        return removed

    def _said(self, versions: Iterable[int]) -> Iterator[Document]:
        """What versions say, but for those that somebody else forgets meanwhile."""
        for version in versions:
            with suppress(UnknownVersionError):
                yield self.read(version)

    def _old(self, keep: int, grace: timedelta) -> list[int]:
        """Versions that nobody can need, up to one that says all there is."""
        entries = self.log.entries()
        try:
            kept = self._told_from(first_kept(entries, keep, grace))
        except UnknownVersionError:
            return []  # somebody else is just forgetting them
        return [version for version, _ in entries if version < kept]

    def _told_from(self, version: int) -> int:
        """From which version on documents tell what a version holds."""
        while not self.read(version)["whole"]:
            version -= 1
        return version

    def _needed(self, old: Sequence[int], readers: Iterable[Reader]) -> set[int]:
        """The old versions that streams may still ask for, and those that tell what these hold."""
        needed: set[int] = set()
        for reader in readers:
            # One of the two may be gone: somebody has had the batch matched with another version.
            asked = [each for each in (reader.before, reader.version) if each in old]
            if asked:
                last = old[-1] if reader.follows else reader.version
                with suppress(UnknownVersionError):
                    first = self._told_from(min(asked))
                    needed |= {each for each in old if first <= each <= last}
        return needed

    def _named(self, versions: Iterable[int]) -> set[str]:
        """The files that versions name."""
        named: set[str] = set()
        for document in self._said(versions):
            segments = [*document["added"], *(document["whole"] or {"segments": ()})["segments"]]
            named |= {each["file"] for each in segments} | set(document["rejects"])
        return named


def check_retention(keep: object, grace: object, orphans: object) -> None:
    """What is to be kept, before anything is removed; ArgumentError if that can't be."""
    if isinstance(keep, bool) or not isinstance(keep, int):
        raise ArgumentTypeError.of("keep", "a whole number from 1 on", repr(keep))
    if keep < 1:
        raise ArgumentError.of("keep", "at least 1", repr(keep))
    for name, age in {"grace": grace, "orphans": orphans}.items():
        if not isinstance(age, timedelta):
            raise ArgumentTypeError.of(name, "a timedelta, like timedelta(hours=1)", repr(age))


def first_kept(entries: Sequence[tuple[int, FileEntry]], keep: int, grace: timedelta) -> int:
    """The first of the versions that are the latest so many, or were the latest within the grace."""
    limit = datetime.now(UTC) - grace
    first = len(entries) - min(keep, len(entries))
    # A version is the latest until the next is there.
    while first and (entries[first][1].modified or limit) > limit:
        first -= 1
    return entries[first][0] if entries else 0


def remove_unnamed(folder: Folder, entries: Iterable[FileEntry], named: set[str], age: timedelta) -> int:
    """Remove files that nobody names and that are so old; how many."""
    limit = datetime.now(UTC) - age
    unnamed = [each for each in entries if each.name not in named and not each.is_folder]
    gone = [each.name for each in unnamed if each.modified is not None and each.modified < limit]
    folder.remove(gone)
    return len(gone)
