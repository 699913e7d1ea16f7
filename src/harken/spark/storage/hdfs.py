"""Folders on HDFS, through hdfs-native, which speaks its protocol without a Java of its own.

Name services and what else a cluster has set up are found where HADOOP_CONF_DIR says, as Spark finds them.
"""

from __future__ import annotations

import json
import posixpath
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.errors import MissingExtraError, StorageError
from harken.spark.storage.folders import Entry, Folder

if TYPE_CHECKING:
    from hdfs_native import Client

PIECE = 8 << 20
"""Bytes that are held at once while a file is copied."""


class HdfsFolder(Folder):
    """A folder by its path. A file gets its name when it is complete: renaming is one step there."""

    def __init__(self, root: str, path: str, options: Mapping[str, Any]) -> None:
        self._root = root
        self._folder = "/" + path.strip("/")
        self._options = dict(options)

    @property
    def address(self) -> str:
        """With the name node, or the name service."""
        return f"{self._root}{self._folder}".rstrip("/")

    @property
    def options(self) -> Mapping[str, Any]:
        """As they were given, or found."""
        return self._options

    def child(self, name: str) -> HdfsFolder:
        """A folder below it."""
        return HdfsFolder(self._root, posixpath.join(self._folder, name), self._options)

    @property
    def above(self) -> tuple[HdfsFolder, str]:
        """By its path."""
        head, name = posixpath.split(self._folder)
        return HdfsFolder(self._root, head, self._options), name

    @property
    def renames(self) -> bool:
        """The name node can."""
        return True

    def rename(self, name: str, target: str) -> None:
        """One request."""
        with self._told(f"rename {name} in"):
            self._client.mkdirs(posixpath.dirname(self._at(target)), create_parent=True)
            self._client.rename(self._at(name), self._at(target), overwrite=False)

    def entries(self, after: str = "") -> list[Entry]:
        """Linear in what is there."""
        with self._told("list"):
            try:
                found = [_entry(each, self._folder) for each in self._client.list_status(self._folder)]
            except FileNotFoundError:
                return []
        return sorted(each for each in found if each.name > after)

    def files(self) -> list[Entry]:
        """Linear in what is there."""
        with self._told("list"):
            try:
                found = list(self._client.list_status(self._folder, recursive=True))
            except FileNotFoundError:
                return []
        return sorted(_entry(each, self._folder) for each in found if not each.isdir)

    def read(self, name: str) -> bytes:
        """At once."""
        with self._told(f"read {name} in"), self._client.read(self._at(name)) as file:
            return bytes(file.read())

    def create(self, name: str, content: bytes) -> None:
        """Written under a name that nobody knows, and renamed, unless the name is taken."""
        with self._draft() as draft:
            with self._told(f"create {name} in"), self._client.create(draft) as file:
                file.write(content)
            self._name(draft, name, content)

    def _name(self, draft: str, name: str, content: bytes) -> None:
        try:
            with self._told(f"create {name} in"):
                self._client.rename(draft, self._at(name), overwrite=False)
        except (StorageError, FileExistsError):
            # Said twice after a lost answer, it may have been this very call that took the name.
            try:
                taken = self.read(name)
            except FileNotFoundError:
                taken = None
            if taken is None:
                raise
            if taken != content:
                raise FileExistsError(f"{self.address}/{name}") from None

    def replace(self, name: str, content: bytes) -> None:
        """Written under a name that nobody knows, and renamed over what is there."""
        with self._draft() as draft, self._told(f"write {name} in"):
            with self._client.create(draft) as file:
                file.write(content)
            self._client.rename(draft, self._at(name), overwrite=True)

    def upload(self, name: str, source: Path) -> None:
        """Piece by piece, and renamed when complete."""
        with self._draft() as draft, self._told(f"write {name} in"):
            with open(source, "rb") as local, self._client.create(draft) as file:
                while piece := local.read(PIECE):
                    file.write(piece)
            self._client.mkdirs(posixpath.dirname(self._at(name)), create_parent=True)
            self._client.rename(draft, self._at(name), overwrite=True)

    def download(self, name: str, target: Path) -> None:
        """Piece by piece."""
        with self._told(f"read {name} in"), self._client.read(self._at(name)) as file, open(target, "wb") as local:
            while piece := file.read(PIECE):
                local.write(piece)

    def remove(self, names: Iterable[str]) -> None:
        """What somebody else removes meanwhile does no harm."""
        for name in names:
            with self._told(f"remove {name} from"):
                try:
                    self._client.delete(self._at(name), recursive=True)
                except FileNotFoundError:
                    continue

    def exists(self, name: str) -> bool:
        """One request."""
        try:
            with self._told(f"look for {name} in"):
                self._client.get_file_info(self._at(name))
        except FileNotFoundError:
            return False
        return True

    @property
    def _client(self) -> Client:
        return _connected(self._root, json.dumps(self._options, sort_keys=True))

    def _at(self, name: str) -> str:
        return posixpath.join(self._folder, name)

    @contextmanager
    def _draft(self) -> Iterator[str]:
        """A name for a file that is not complete, which is gone afterwards."""
        name = f".{uuid.uuid4().hex}"
        with self._told("write in"):
            self._client.mkdirs(self._folder, create_parent=True)
        try:
            yield self._at(name)
        except BaseException:
            self.remove([name])
            raise

    @contextmanager
    def _told(self, attempted: str) -> Iterator[None]:
        """What goes wrong, in one kind of error that says where."""
        try:
            yield
        except (FileNotFoundError, FileExistsError, StorageError):
            raise
        except (OSError, RuntimeError, ValueError) as error:
            said = str(error).partition("\n")[0]
            if "FileNotFoundException" in said:
                raise FileNotFoundError(f"{self.address}: {said}") from error
            raise StorageError(f"could not {attempted} {self.address}: {said}") from error


def _entry(found: Any, folder: str) -> Entry:  # a FileStatus
    name = found.path.removeprefix(folder).strip("/")
    modified = datetime.fromtimestamp(found.modification_time / 1_000, UTC)
    return Entry(name, found.length, modified, found.isdir)


@lru_cache(maxsize=8)
def _connected(root: str, options: str) -> Client:
    """A client, which keeps its connections; one for all folders of a cluster."""
    try:
        from hdfs_native import Client
    except ImportError:
        raise MissingExtraError("HDFS", "hdfs") from None
    try:
        return Client(root, config=json.loads(options))
    except (OSError, RuntimeError, ValueError) as error:
        raise StorageError(f"no HDFS can be reached at {root}: {error}") from error
