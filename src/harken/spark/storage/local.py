"""Folders on file systems of this machine, which others may have mounted at the same path."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from harken.durable import sync, write_durably
from harken.errors import StorageError
from harken.spark.storage.folders import FileEntry, Folder

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EOPNOTSUPP}


class LocalFolder(Folder):
    """A folder by its path. What is written is on disk when the call returns."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path).absolute()

    @property
    def address(self) -> str:
        """With a scheme: where a cluster has another file system as its default, Spark would look there."""
        return f"file://{self._path}"

    @property
    def path(self) -> Path:
        """The path itself."""
        return self._path

    def child(self, name: str) -> LocalFolder:
        """A folder below it."""
        return LocalFolder(self._path / name)

    @property
    def above(self) -> tuple[LocalFolder, str]:
        """By its path."""
        return LocalFolder(self._path.parent), self._path.name

    @property
    def renames(self) -> bool:
        """File systems can."""
        return True

    def rename(self, name: str, target: str) -> None:
        """One call. A folder of this name that is empty is taken for none."""
        (self._path / target).parent.mkdir(parents=True, exist_ok=True)
        try:
            (self._path / name).rename(self._path / target)
        except OSError as error:
            if os.path.lexists(self._path / target):
                raise FileExistsError(str(self._path / target)) from error
            raise
        sync((self._path / target).parent)

    def entries(self, after: str = "") -> list[FileEntry]:
        """Linear in what is there."""
        try:
            with os.scandir(self._path) as found:
                return sorted(filter(None, (_entry(each) for each in found if each.name > after)))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def files(self) -> list[FileEntry]:
        """Linear in what is there."""
        found = []
        for above, _, names in os.walk(self._path):
            for path in (Path(above) / name for name in names):
                with suppress(FileNotFoundError):  # removed meanwhile
                    found.append(_described(path.relative_to(self._path).as_posix(), path.stat()))
        return sorted(found)

    def read(self, name: str) -> bytes:
        """At once."""
        return (self._path / name).read_bytes()

    def create(self, name: str, content: bytes) -> None:
        """The file is complete under a name that nobody knows, and then linked to its own."""
        final = self._path / name
        with _draft(final.parent, content) as draft:
            try:
                os.link(draft, final)
            except OSError as error:
                if error.errno in _NO_LINKS:
                    raise StorageError(
                        f"the file system at {self._path} has no hard links, so of two who change it at once"
                        " neither would be told",
                        suggestion="use another disk, or the address of the store behind this mount",
                    ) from error
                raise
        sync(final.parent)

    def replace(self, name: str, content: bytes) -> None:
        """The file is complete under a name that nobody knows, and then renamed."""
        final = self._path / name
        with _draft(final.parent, content) as draft:
            draft.replace(final)
        sync(final.parent)

    def upload(self, name: str, source: Path) -> None:
        """Copied, and renamed when complete."""
        target = self._path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.parent / f".{uuid.uuid4().hex}"
        try:
            shutil.copyfile(source, draft)
            sync(draft)
            draft.rename(target)
        finally:
            draft.unlink(missing_ok=True)
        sync(target.parent)

    def download(self, name: str, target: Path) -> None:
        """Copied."""
        shutil.copyfile(self._path / name, target)

    def remove(self, names: Iterable[str]) -> None:
        """What somebody else removes meanwhile does no harm."""
        for path in (self._path / name for name in names):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    def exists(self, name: str) -> bool:
        """At once."""
        return (self._path / name).is_file()


@contextmanager
def _draft(folder: Path, content: bytes) -> Iterator[Path]:
    """A file with these contents on disk, gone afterwards if it still has its name."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{uuid.uuid4().hex}"
    try:
        write_durably(draft, content)
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def _entry(found: os.DirEntry[str]) -> FileEntry | None:
    try:
        return _described(found.name, found.stat(), is_folder=found.is_dir())
    except FileNotFoundError:
        return None  # removed meanwhile


def _described(name: str, facts: os.stat_result, *, is_folder: bool = False) -> FileEntry:
    return FileEntry(name, facts.st_size, datetime.fromtimestamp(facts.st_mtime, UTC), is_folder)
