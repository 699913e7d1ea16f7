"""Folders on HDFS, through hdfs-native, which speaks its protocol without a Java of its own.

Name services and what else a cluster has set up are found where HADOOP_CONF_DIR says, as Spark finds them.
"""

from __future__ import annotations

import json
import posixpath
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.errors import MissingExtraError, StorageError
from harken.spark.storage.folders import FileEntry, Folder

if TYPE_CHECKING:
    from hdfs_native import Client

PIECE = 8 << 20
"""Bytes that are held at once while a file is copied."""

PATIENCE = {"dfs.client.failover.max.attempts": "6", "dfs.client.failover.sleep.max.millis": "2000"}
"""For a name node that does not answer and is the only one: some ten seconds. Otherwise it would be minutes."""


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

    def entries(self, after: str = "") -> list[FileEntry]:
        """Linear in what is there."""
        found = [_entry(each, self._folder) for each in self._listed(recursive=False)]
        return sorted(each for each in found if each.name > after)

    def files(self) -> list[FileEntry]:
        """Linear in what is there."""
        return sorted(_entry(each, self._folder) for each in self._listed(recursive=True) if not each.isdir)

    def _listed(self, *, recursive: bool) -> list[Any]:
        """What the name node says is in it: nothing if it is a file, or below one."""
        with self._told("list"):
            try:
                found = list(self._client.list_status(self._folder, recursive=recursive))
            except FileNotFoundError:
                return []
            except (OSError, RuntimeError) as error:
                if "is not a directory" in str(error):
                    return []
                raise
        return [each for each in found if each.isdir or each.path.rstrip("/") != self._folder.rstrip("/")]

    def read(self, name: str) -> bytes:
        """At once."""
        with self._told(f"read {name} in"), self._client.read(self._at(name)) as file:
            return bytes(file.read())

    def create(self, name: str, content: bytes) -> None:
        """Written under a name that nobody knows, and renamed, unless the name is taken."""
        with self._draft(name) as draft:
            self._write(draft, content)
            try:
                self._client.rename(draft, self._at(name), overwrite=False)
            except (OSError, RuntimeError):
                # Said twice after a lost answer, it may have been this very call that took the name.
                if not self.exists(name):
                    raise
                if self.read(name) != content:
                    raise FileExistsError(f"{self.address}/{name}") from None
                self._client.delete(draft)

    def replace(self, name: str, content: bytes) -> None:
        """Written under a name that nobody knows, and renamed over what is there."""
        with self._draft(name) as draft:
            self._write(draft, content)
            self._client.rename(draft, self._at(name), overwrite=True)

    def upload(self, name: str, source: Path) -> None:
        """Piece by piece. Nobody knows the name before it is complete, so it is written where it belongs."""
        client = self._client
        from hdfs_native import WriteOptions

        anew = WriteOptions(overwrite=True, create_parent=True)
        with (
            self._told(f"write {name} in"),
            open(source, "rb") as local,
            client.create(self._at(name), anew) as file,
        ):
            while piece := local.read(PIECE):
                file.write(piece)

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
                return not self._client.get_file_info(self._at(name)).isdir
        except FileNotFoundError:
            return False

    @property
    def _client(self) -> Client:
        return _connected(self._root, json.dumps(self._options, sort_keys=True))

    def _at(self, name: str) -> str:
        return posixpath.join(self._folder, name)

    def _write(self, path: str, content: bytes) -> None:
        with self._client.create(path) as file:
            file.write(content)

    @contextmanager
    def _draft(self, name: str) -> Iterator[str]:
        """Where to write a file before it is complete; nothing is left there after an error."""
        above = posixpath.dirname(self._at(name))
        draft = posixpath.join(above, f".{uuid.uuid4().hex}")
        with self._told(f"write {name} in"):
            self._client.mkdirs(above, create_parent=True)
            try:
                yield draft
            except BaseException:
                with suppress(OSError, RuntimeError):
                    self._client.delete(draft)
                raise

    @contextmanager
    def _told(self, attempted: str) -> Iterator[None]:
        """What goes wrong, in one kind of error that says where, without the name node's own stack."""
        try:
            yield
        except StorageError:
            raise
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{self.address}: {_said(error)}") from None
        except FileExistsError as error:
            raise FileExistsError(f"{self.address}: {_said(error)}") from None
        except (OSError, RuntimeError, ValueError) as error:
            said = _said(error)
            if "FileNotFoundException" in said:
                raise FileNotFoundError(f"{self.address}: {said}") from error
            raise StorageError(f"could not {attempted} {self.address}: {said}") from error


def _said(error: Exception) -> str:
    """What an error says in words, before it goes on about Java."""
    return re.split(r"\n|\\n", str(error))[0]


def _entry(found: Any, folder: str) -> FileEntry:  # a FileStatus
    name = found.path.removeprefix(folder).strip("/")
    modified = datetime.fromtimestamp(found.modification_time / 1_000, UTC)
    return FileEntry(name, found.length, modified, found.isdir)


@lru_cache(maxsize=8)
def _connected(root: str, options: str) -> Client:
    """A client, which keeps its connections; one for all folders of a cluster."""
    try:
        from hdfs_native import Client
    except ImportError:
        raise MissingExtraError("HDFS", "hdfs") from None
    # One of a name service's nodes answers for another; behind a port there is one.
    alone = PATIENCE if ":" in root.removeprefix("hdfs://") else {}
    try:
        return Client(root, config={**alone, **json.loads(options)})
    except (OSError, RuntimeError, ValueError) as error:
        raise StorageError(f"no HDFS can be reached at {root}: {error}") from error
