"""Which folder an address means."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from harken.errors import StorageError
from harken.spark.storage import hdfs, objects
from harken.spark.storage.folders import Folder
from harken.spark.storage.hadoop import session_options
from harken.spark.storage.local import LocalFolder

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?=/)(?://([^/]*))?(.*)", re.DOTALL)
"""Scheme, host and path. What follows is taken as it is written, also `%20`, `#` and `?`: so does Hadoop."""

_SCHEMES = "|".join(sorted({"file", "hdfs", "dbfs", "wasb", "wasbs", "s3n", *objects.SCHEMES}))

_ALMOST = re.compile(rf"\s*(?:{_SCHEMES}):.*|.*/(?:{_SCHEMES}):(?:/.*)?", re.DOTALL | re.IGNORECASE)
"""What was meant for an address, as `s3a:b/x` or an address made absolute, and would be a folder called `s3a:`."""


def folder_at(address: str | os.PathLike[str] | Folder, options: Mapping[str, Any] | None = None) -> Folder:
    """The folder of an address; StorageError, by name, for schemes that are not supported.

    A path without a scheme is one of this machine, whatever Spark's default file system is. Addresses are taken as
    Hadoop takes them: nothing in them is decoded. `options` are those of
    the store; what they leave out is taken from the settings of this process's Spark session, and then from the
    environment, as the makers of the stores have it.
    """
    if isinstance(address, Folder):
        return address
    written = os.fspath(address)
    found = _ADDRESS.fullmatch(written)
    if found is None:
        if _ALMOST.fullmatch(written):
            raise StorageError(f"{written!r} is no address", suggestion="write it as scheme://bucket/folder")
        return LocalFolder(written)
    scheme, host, path = found[1].lower(), found[2] or "", found[3]
    if scheme == "file":
        if host not in ("", "localhost"):
            raise StorageError(f"{written!r} names a host, and files are on this one: write file:///folder")
        return LocalFolder(path or "/")
    if scheme in objects.SCHEMES:
        if not host:
            raise StorageError(f"{written!r} names no bucket: write {scheme}://bucket/folder")
        known = {**session_options(scheme, host), **(options or {})}
        return objects.ObjectFolder(f"{scheme}://{host}", path, known)
    if scheme == "hdfs":
        return hdfs.HdfsFolder(f"hdfs://{host}", path, options or {})
    supported = ", ".join(sorted({"file", "hdfs", *objects.SCHEMES}))
    raise StorageError(
        f"addresses with {scheme}: are not supported, found {written!r}",
        suggestion="name the store behind it" if scheme == "dbfs" else f"supported are {supported}",
    )
