"""Files that travel to whoever asks for them, by Spark's own means: for machines that share no storage."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NoReturn, Protocol

from harken.errors import StorageError
from harken.spark.storage.folders import FileEntry, Folder


class Luggage(Protocol):
    """What brings the contents of files by their names, such as a broadcast variable of Spark."""

    @property
    def value(self) -> Mapping[str, bytes]:
        """All of them, fetched when it is first asked for."""


class CarriedFolder(Folder):
    """A folder that is only read, and is wherever it is sent: where it is pickled, so is what brings its files."""

    def __init__(self, luggage: Luggage, name: str | None = None, within: str = "") -> None:
        self._luggage = luggage
        self._name = name or uuid.uuid4().hex
        self._within = within

    @property
    def address(self) -> str:
        """A name, by which copies of it are known."""
        return f"carried://{self._name}/{self._within}".rstrip("/")

    def child(self, name: str) -> CarriedFolder:
        """The files whose names begin so."""
        return CarriedFolder(self._luggage, self._name, f"{self._within}{name}/")

    @property
    def above(self) -> tuple[CarriedFolder, str]:
        """By its name."""
        within, _, name = self._within.rstrip("/").rpartition("/")
        return CarriedFolder(self._luggage, self._name, f"{within}/" if within else ""), name

    def entries(self, after: str = "") -> list[FileEntry]:
        """Linear in all there is."""
        here = {name.partition("/")[0]: "/" in name for name in self._files()}
        return [FileEntry(name, 0, None, folder) for name, folder in sorted(here.items()) if name > after]

    def files(self) -> list[FileEntry]:
        """Linear in all there is."""
        return sorted(FileEntry(name, len(content), None) for name, content in self._files().items())

    def read(self, name: str) -> bytes:
        """What was sent."""
        try:
            return self._luggage.value[self._within + name]
        except KeyError:
            raise FileNotFoundError(f"{self.address}/{name}") from None

    def download(self, name: str, target: Path) -> None:
        """What was sent, in a file."""
        target.write_bytes(self.read(name))

    def download_folder(self, name: str, target: Path) -> None:
        """As all folders do. What has come this far is on disk then, and no longer kept in memory."""
        super().download_folder(name, target)
        # A broadcast variable that was looked at stays with the worker, as large as the index; its file does too.
        if hasattr(self._luggage, "_path"):
            vars(self._luggage).pop("_value", None)

    def create(self, name: str, content: bytes) -> NoReturn:
        """Refused."""
        raise StorageError(f"{self.address} is only read")

    def replace(self, name: str, content: bytes) -> NoReturn:
        """Refused."""
        raise StorageError(f"{self.address} is only read")

    def upload(self, name: str, source: Path) -> NoReturn:
        """Refused."""
        raise StorageError(f"{self.address} is only read")

    def remove(self, names: Iterable[str]) -> NoReturn:
        """Refused."""
        raise StorageError(f"{self.address} is only read")

    def _files(self) -> dict[str, bytes]:
        begin = len(self._within)
        return {name[begin:]: each for name, each in self._luggage.value.items() if name.startswith(self._within)}
