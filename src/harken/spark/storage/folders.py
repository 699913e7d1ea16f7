"""What Harken asks of a place for files, wherever it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from harken.errors import StorageError

AT_ONCE = 16
"""Files of a folder that are copied at once: most are small, and a store takes its time to answer for each."""


class FileEntry(NamedTuple):
    """A file, or a folder."""

    name: str
    bytes: int
    modified: datetime | None
    """When it was last written to; None for folders of stores that know no folders."""
    is_folder: bool = False


class Folder(ABC):
    """A folder, which need not be there yet. Can be pickled, with what it takes to get there.

    FileNotFoundError is raised for a file that is not there, FileExistsError for a name that is taken, and
    StorageError for everything else that goes wrong in a store; this machine's own disks raise what Python does.
    """

    @property
    @abstractmethod
    def address(self) -> str:
        """Where it is, with its scheme, as Spark is told."""

    @property
    def options(self) -> Mapping[str, Any]:
        """What it takes to get there, besides the address."""
        return {}

    @property
    def path(self) -> Path | None:
        """Where it is on file systems of this machine; None if only its store knows."""
        return None

    @abstractmethod
    def child(self, name: str) -> Folder:
        """The folder of a name in it; names may have several parts, divided by slashes."""

    @property
    @abstractmethod
    def above(self) -> tuple[Folder, str]:
        """The folder that it is in, and its name there."""

    @property
    def renames(self) -> bool:
        """Whether a folder can be given another name, in one step."""
        return False

    def rename(self, name: str, target: str) -> None:
        """Give a folder in it another name, in one step, unless that is taken; only where `renames`."""
        raise StorageError(f"{self.address} cannot rename")

    @abstractmethod
    def entries(self, after: str = "") -> list[FileEntry]:
        """What is in it, by name, from beyond a name on; nothing if it is not there."""

    @abstractmethod
    def files(self) -> list[FileEntry]:
        """All files in it and below it, by their names from here."""

    @abstractmethod
    def read(self, name: str) -> bytes:
        """The contents of a file."""

    @abstractmethod
    def create(self, name: str, content: bytes) -> None:
        """Write a new file, whole, once and for all: of several who want the same name one gets it.

        Two who want to write the same contents may both be told that they did: who must know that it was he writes
        something that nobody else would.
        """

    @abstractmethod
    def replace(self, name: str, content: bytes) -> None:
        """Write a file, whole, in the place of one that may be there."""

    @abstractmethod
    def upload(self, name: str, source: Path) -> None:
        """Put a file of this machine here, under a name that nobody else uses."""

    @abstractmethod
    def download(self, name: str, target: Path) -> None:
        """Copy a file to this machine."""

    @abstractmethod
    def remove(self, names: Iterable[str]) -> None:
        """Remove files, and folders with all that is in them, as far as they are there."""

    def exists(self, name: str) -> bool:
        """Whether there is a file of this name."""
        return any(each.name == name for each in self.entries() if not each.is_folder)

    def copy(self, name: str, target: str) -> None:
        """Have the contents of a file under another name as well, which is there whole or not at all."""
        with TemporaryDirectory(prefix="harken-") as here:
            self.download(name, Path(here) / "copy")
            self.upload(target, Path(here) / "copy")

    def upload_folder(self, name: str, source: Path, last: str) -> None:
        """Put a folder of this machine here with all below it; the file `last` comes after all others."""
        target = self.child(name)
        files = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
        with ThreadPoolExecutor(AT_ONCE) as threads:
            list(threads.map(lambda each: target.upload(each, source / each), sorted(files - {last})))
        target.upload(last, source / last)

    def download_folder(self, name: str, target: Path) -> None:
        """Copy a folder with all below it to this machine; FileNotFoundError if nothing is there."""
        source = self.child(name)
        files = [each.name for each in source.files()]
        if not files:
            raise FileNotFoundError(source.address)
        for above in {(target / each).parent for each in files}:
            above.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(AT_ONCE) as threads:
            list(threads.map(lambda each: source.download(each, target / each), files))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Folder) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    def __str__(self) -> str:
        path = self.path
        return self.address if path is None else str(path)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"  # not what it takes to get there: that may be a secret
