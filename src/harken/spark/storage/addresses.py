"""Which folder an address means."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from harken.errors import StorageError
from harken.spark.storage import hdfs, objects
from harken.spark.storage.folders import Folder
from harken.spark.storage.hadoop import session_options
from harken.spark.storage.local import LocalFolder

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
"""A scheme of one letter would be a drive; there are none here."""


def folder_at(address: str | os.PathLike[str] | Folder, options: Mapping[str, Any] | None = None) -> Folder:
    """The folder of an address; StorageError, by name, for schemes that are not supported.

    A path without a scheme is one of this machine, whatever Spark's default file system is. `options` are those of
    the store; what they leave out is taken from the settings of this process's Spark session, and then from the
    environment, as the makers of the stores have it.
    """
    if isinstance(address, Folder):
        return address
    written = os.fspath(address)
    found = _SCHEME.match(written)
    if found is None:
        return LocalFolder(written)
    scheme, parts = found[1].lower(), urlsplit(written)
    if scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise StorageError(f"{written!r} names a host, and files are on this one: write file:///folder")
        return LocalFolder(unquote(parts.path) or "/")
    if scheme in objects.SCHEMES:
        known = {**session_options(scheme, parts.netloc), **(options or {})}
        return objects.ObjectFolder(f"{scheme}://{parts.netloc}", unquote(parts.path), known)
    if scheme == "hdfs":
        return hdfs.HdfsFolder(f"hdfs://{parts.netloc}", unquote(parts.path), options or {})
    supported = ", ".join(sorted({"file", "hdfs", *objects.SCHEMES}))
    raise StorageError(
        f"addresses with {scheme}: are not supported, found {written!r}",
        suggestion="name the store behind it" if scheme == "dbfs" else f"supported are {supported}",
    )
