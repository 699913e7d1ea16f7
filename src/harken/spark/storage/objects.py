"""Folders in object stores: Amazon's S3 and what speaks like it, Google's and Microsoft's, through obstore.

Such a store knows no folders, only names with slashes in them, and cannot rename. But an object is there whole or
not at all, and all of them can be asked to write one only if there is none of its name.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeAlias

from harken.errors import MissingExtraError, StorageError
from harken.spark.storage.folders import FileEntry, Folder

if TYPE_CHECKING:
    from obstore.store import ObjectStore

SCHEMES = frozenset({"s3", "s3a", "gs", "abfs", "abfss"})

ATTEMPTS = 8
"""How often a name is asked for that is said to be taken, though nothing is there: somebody is just writing it."""

PIECE = 8 << 20
"""Bytes that are held at once while a file is copied to this machine."""

_CLIENT = ("allow_http", "allow_invalid_certificates", "connect_timeout", "proxy_url", "timeout", "user_agent")
"""Options of the connection: obstore takes them apart from those of the store, and panics elsewhere."""

_REASON = re.compile(r"<Code>([^<]*)</Code>\s*<Message>([^<]*)</Message>")
_NO_KEYS = ("/latest/api/token", "/latest/meta-data", "/metadata/identity/oauth2/token", "computeMetadata/v1")
"""Where keys are asked for that nobody gave: on machines that have a role, somebody answers there."""

_KEYS = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (GOOGLE_SERVICE_ACCOUNT, AZURE_STORAGE_ACCOUNT_KEY), or give "
    "the session spark.hadoop.fs.s3a.access.key and secret.key"
)

_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist")

Options: TypeAlias = Mapping[str, Any]
"""What obstore's stores take, as far as JSON can hold it: `access_key_id`, `endpoint`, `client_options`."""


class ObjectFolder(Folder):
    """The objects of a bucket or container whose names begin alike."""

    def __init__(self, root: str, prefix: str, options: Options) -> None:
        self._root = root
        self._prefix = prefix.strip("/")
        self._options = dict(options)

    @property
    def address(self) -> str:
        """Of the scheme it was given with: some clusters have `s3`, most have `s3a`."""
        return f"{self._root}/{self._prefix}" if self._prefix else self._root

    @property
    def options(self) -> Mapping[str, Any]:
        """As they were given, or found."""
        return self._options

    def child(self, name: str) -> ObjectFolder:
        """Objects whose names go on with this one."""
        return ObjectFolder(self._root, self._key(name), self._options)

    @property
    def above(self) -> tuple[ObjectFolder, str]:
        """By its name."""
        head, _, name = self._prefix.rpartition("/")
        return ObjectFolder(self._root, head, self._options), name

    def entries(self, after: str = "") -> list[FileEntry]:
        """One request for every thousand that are there, or that come after a name."""
        import obstore

        with self._told("list"):
            if after:
                batches = obstore.list(self._store, self._prefix, offset=self._key(after))
                return self._beyond(after, [each for batch in batches for each in batch])
            listed = obstore.list_with_delimiter(self._store, self._prefix or None)
            folders = [FileEntry(self._below(each), 0, None, True) for each in listed["common_prefixes"]]
            return _by_name([*folders, *self._files(listed["objects"])])

    def _beyond(self, after: str, found: Iterable[Mapping[str, Any]]) -> list[FileEntry]:
        entries = self._files(found)
        folders = {each.name.partition("/")[0] for each in entries if "/" in each.name}
        files = [each for each in entries if "/" not in each.name]
        return _by_name([*files, *(FileEntry(name, 0, None, True) for name in folders if name > after)])

    def files(self) -> list[FileEntry]:
        """One request for every thousand."""
        import obstore

        with self._told("list"):
            batches = obstore.list(self._store, self._prefix or None)
            return _by_name(self._files(each for batch in batches for each in batch))

    def read(self, name: str) -> bytes:
        """One request."""
        import obstore

        with self._told(f"read {name} in"):
            return bytes(obstore.get(self._store, self._key(name)).bytes())

    def create(self, name: str, content: bytes) -> None:
        """Written on condition that nothing is there.

        A request that was sent again after its answer was lost finds what itself has written: contents that are
        the same are taken for one's own.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError

        for _ in range(ATTEMPTS):
            try:
                with self._told(f"create {name} in"):
                    obstore.put(self._store, self._key(name), content, mode="create")
                return
            except AlreadyExistsError:
                try:
                    if self.read(name) == content:
                        return
                except FileNotFoundError:
                    continue
                raise FileExistsError(f"{self.address}/{name}") from None
        raise StorageError(f"{self.address} neither takes {name} nor has it")

    def replace(self, name: str, content: bytes) -> None:
        """One request."""
        import obstore

        with self._told(f"write {name} in"):
            obstore.put(self._store, self._key(name), content)

    def upload(self, name: str, source: Path) -> None:
        """In pieces, if it is large; it is there when all of them are."""
        import obstore

        with self._told(f"write {name} in"):
            obstore.put(self._store, self._key(name), source)

    def copy(self, name: str, target: str) -> None:
        """One request, which moves nothing to this machine."""
        import obstore

        with self._told(f"copy {name} in"):
            obstore.copy(self._store, self._key(name), self._key(target))

    def download(self, name: str, target: Path) -> None:
        """Piece by piece."""
        import obstore

        with self._told(f"read {name} in"), open(target, "wb") as file:
            for piece in obstore.get(self._store, self._key(name)).stream(min_chunk_size=PIECE):
                file.write(piece)

    def remove(self, names: Iterable[str]) -> None:
        """Objects of these names, and those whose names go on with them."""
        import obstore

        with self._told("remove from"):
            keys: list[str] = []
            for name in names:
                below = (each["path"] for batch in obstore.list(self._store, self._key(name)) for each in batch)
                keys += [self._key(name), *below]
            try:
                if keys:
                    obstore.delete(self._store, keys)
            except FileNotFoundError:  # some stores say so, and may have left others
                for key in keys:
                    with suppress(FileNotFoundError):
                        obstore.delete(self._store, key)

    def exists(self, name: str) -> bool:
        """One request."""
        import obstore

        try:
            with self._told(f"look for {name} in"):
                obstore.head(self._store, self._key(name))
        except FileNotFoundError:
            return False
        return True

    @property
    def _store(self) -> ObjectStore:
        return _opened(self._root, json.dumps(self._options, sort_keys=True))

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def _below(self, key: str) -> str:
        return key.removeprefix(self._prefix).strip("/")

    def _files(self, found: Iterable[Mapping[str, Any]]) -> list[FileEntry]:
        """Objects, but for empty ones that stand for folders, as consoles and Hadoop make them."""
        entries = [self._entry(each) for each in found]
        if all(each.bytes for each in entries):
            return entries
        folders = {above.as_posix() for each in entries for above in PurePosixPath(each.name).parents}
        return [each for each in entries if each.name and (each.bytes or each.name not in folders)]

    def _entry(self, found: Mapping[str, Any]) -> FileEntry:
        return FileEntry(self._below(found["path"]), found["size"], found["last_modified"])

    @contextmanager
    def _told(self, attempted: str) -> Iterator[None]:
        """What goes wrong in a store, in one kind of error that says where."""
        from obstore.exceptions import AlreadyExistsError, BaseError

        try:
            yield
        except AlreadyExistsError:
            raise
        except (FileNotFoundError, BaseError) as error:
            said = str(error)
            if any(each in said for each in _NO_BUCKET):
                raise StorageError(f"there is no {self._root}", suggestion="make it, or name another") from error
            if any(each in said for each in _NO_KEYS):
                raise StorageError(
                    f"could not {attempted} {self.address}: no keys were given, and this machine has no role",
                    suggestion=_KEYS,
                ) from error
            if isinstance(error, FileNotFoundError):
                raise FileNotFoundError(f"{self.address}: {_said(said)}") from None
            raise StorageError(f"could not {attempted} {self.address}: {_said(said)}") from error


def _by_name(entries: Iterable[FileEntry]) -> list[FileEntry]:
    """In order; there may be an object and a folder of one name."""
    return sorted(entries, key=lambda each: (each.name, each.is_folder))


def _said(error: str) -> str:
    """What a store says: its own words, if there are any, and the first line of the error otherwise."""
    found = _REASON.search(error)
    return f"{found[1]}: {found[2]}" if found else error.partition("\n")[0]


@lru_cache(maxsize=16)
def _opened(root: str, options: str) -> ObjectStore:
    """A store, which keeps its connections; one for all folders in it."""
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ImportError:
        raise MissingExtraError("object stores", "objects") from None
    open_at: Callable[..., ObjectStore] = from_url  # with options as they come, whichever store takes them
    known = json.loads(options)
    apart = {name: known.pop(name) for name in _CLIENT if name in known}
    client = {**_as_endpoint(known), **apart, **known.pop("client_options", {})}
    try:
        return open_at(root.replace("s3a://", "s3://", 1), client_options=client, **known)
    except (BaseError, TypeError, ValueError) as error:
        said = str(error).partition("\n")[0]
        raise StorageError(f"no store can be reached at {root} with these options: {said}") from error


def _as_endpoint(options: Options) -> dict[str, bool]:
    """Speak without encryption if, and only if, the endpoint that was named does."""
    named = options.get("endpoint") or os.environ.get("AWS_ENDPOINT_URL") or os.environ.get("AWS_ENDPOINT") or ""
    return {"allow_http": True} if str(named).startswith("http://") else {}
