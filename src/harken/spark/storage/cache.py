"""Files of stores on the disk of a machine: fetched once, shared by its processes, and mapped there.

What is fetched never changes, so a copy is good for ever; it goes when the disk is wanted for others, the least
recently used first. A file that is removed while somebody maps it stays until he lets go.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
import time
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from harken.errors import IndexFormatError, StorageError
from harken.spark.storage.folders import Folder

FOLDER = "HARKEN_CACHE"
"""The environment variable that says where copies lie; without it, where Spark has its local files."""

BYTES = "HARKEN_CACHE_BYTES"
"""The environment variable that says how much they may take."""

SHARE = 0.5
"""Of the disk's room, how much they may take unless said."""


LOCKS = 256
"""Files that keep two processes from fetching the same. They are never removed: somebody may wait for one."""

ATTEMPTS = 10
"""How often a copy is fetched that others have removed before it was used."""

ABANDONED = 24 * 3600.0
"""Seconds after which a copy that is not complete belongs to a process that was killed."""

T = TypeVar("T")


class Cache:
    """Copies in a folder of this machine, of which all processes of a user may use one at once."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self.limit = limit

    def file(self, source: Folder, name: str, size: int, use: Callable[[Path], T]) -> T:
        """Use a file: as it is in the folder itself, if that is on this machine, or else a copy of it.

        If the copy turns out to be damaged (IndexFormatError), or is removed for others meanwhile, it is fetched
        anew, once. StorageError if the file has another size than it should have; FileNotFoundError if it is not
        there.
        """

        def fetch(draft: Path) -> None:
            source.download(name, draft)
            _expect(size, draft.stat().st_size, f"{source.address}/{name}")

        return self._used(source, name, fetch, use)

    def tree(self, source: Folder, name: str, size: int, use: Callable[[Path], T]) -> T:
        """The same for a folder with all that is below it."""

        def fetch(draft: Path) -> None:
            source.download_folder(name, draft)
            found = sum(path.stat().st_size for path in draft.rglob("*") if path.is_file())
            _expect(size, found, source.child(name).address)

        return self._used(source, name, fetch, use)

    def _used(self, source: Folder, name: str, fetch: Callable[[Path], None], use: Callable[[Path], T]) -> T:
        if source.path is not None:
            return use(source.path / name)
        try:
            return self._use_kept(source, name, fetch, use)
        except (IndexFormatError, FileNotFoundError):
            final = self._place(source, name)
            with self._locked(final):
                _set_aside(final)
            return self._use_kept(source, name, fetch, use)

    def _use_kept(self, source: Folder, name: str, fetch: Callable[[Path], None], use: Callable[[Path], T]) -> T:
        """Use a copy, which nobody removes meanwhile."""
        for _ in range(ATTEMPTS):
            final = self._kept(source, name, fetch)
            with self._locked(final, fcntl.LOCK_SH):
                if final.exists():  # and was not removed for others since it was found
                    return use(final)
        raise StorageError(
            f"copies in {self.folder} are removed for others before they can be used",
            suggestion=f"let them take more room: {BYTES}",
        )

    def _kept(self, source: Folder, name: str, fetch: Callable[[Path], None]) -> Path:
        """The copy of this name, fetched by one process while others who want it wait."""
        final = self._place(source, name)
        if not _touched(final):
            with self._locked(final):
                if not _touched(final):
                    draft = final.parent / f".{uuid.uuid4().hex}"
                    final.parent.mkdir(parents=True, exist_ok=True)
                    try:
                        fetch(draft)
                        draft.rename(final)
                    finally:
                        _remove(draft)
                    self._make_room(final)
        return final

    def _place(self, source: Folder, name: str) -> Path:
        return self.folder / hashlib.sha256(source.address.encode()).hexdigest()[:24] / name

    @contextmanager
    def _locked(self, final: Path, how: int = fcntl.LOCK_EX) -> Iterator[None]:
        """Be alone with a copy or, if it is to be used, among others who use it; BlockingIOError if asked for."""
        locks = self.folder / ".locks"
        locks.mkdir(parents=True, exist_ok=True)
        with open(locks / str(zlib.crc32(os.fsencode(final)) % LOCKS), "w") as lock:
            fcntl.flock(lock, how)
            yield

    def _make_room(self, newest: Path) -> None:
        """Remove what was used least recently until the rest, and the newest at any rate, has room."""
        ages: list[tuple[float, Path, int]] = []
        for path in self.folder.glob("[!.]*/*"):
            with suppress(FileNotFoundError):
                age = path.stat().st_mtime
                if not path.name.startswith("."):
                    ages.append((age, path, _size(path)))
                elif age < time.time() - ABANDONED:
                    _remove(path)
        room = self.limit - sum(size for *_, size in ages)
        for _, path, size in sorted(ages, key=lambda each: each[0]):
            if room >= 0:
                return
            if path != newest:
                with suppress(BlockingIOError), self._locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB):
                    _set_aside(path)
                    room += size


@lru_cache(maxsize=1)
def machine_cache() -> Cache:
    """The cache of this machine, where the environment says."""
    said = os.environ.get(FOLDER)
    folder = Path(said) if said else _private()
    folder.mkdir(parents=True, exist_ok=True)
    limit = os.environ.get(BYTES)
    return Cache(folder, int(limit) if limit else int(SHARE * shutil.disk_usage(folder).total))


def _private() -> Path:
    """A folder of this user alone: what is mapped from it must not be anybody else's to change."""
    above = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir()
    folder = Path(above) / f"harken-cache-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = folder.lstat()
    if facts.st_uid != os.getuid() or not stat.S_ISDIR(facts.st_mode) or facts.st_mode & 0o022:
        raise StorageError(f"{folder} is somebody else's", suggestion=f"name another folder in {FOLDER}")
    return folder


def _expect(wanted: int, found: int, where: str) -> None:
    if wanted != found:
        raise StorageError(f"{where} has {found:,} bytes instead of {wanted:,}")


def _touched(path: Path) -> bool:
    """Whether it is there, and then noted as used."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    return True


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())


def _set_aside(path: Path) -> None:
    """Remove a copy in one step: others find all of it, or nothing."""
    aside = path.parent / f".{uuid.uuid4().hex}"
    with suppress(FileNotFoundError):
        path.rename(aside)
    _remove(aside)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
