"""Putting what Spark has written into its place, so that of several attempts exactly one counts.

Where a store renames, that is one step, and nobody ever reads half of it. An object store cannot. There, a record,
which is created once, says which attempt counts and what its files are; these are then copied one by one, and
whoever comes to it again finishes what the record says. Readers may meanwhile see some of the files of a batch.
"""

from __future__ import annotations

import json

from harken.errors import SinkError
from harken.spark.storage import Folder


def is_placed(folder: Folder, name: str, record: str) -> bool:
    """Whether an attempt has counted; if it did not come to its end, it does here.

    Without a record, which goes after a time, files tell: none was put there before its record was.
    """
    if not folder.renames:
        try:
            _finish(folder, name, folder.read(record))
        except FileNotFoundError:
            pass
        else:
            return True
    return bool(folder.child(name).entries())


def place(folder: Folder, staging: str, name: str, record: str) -> None:
    """Have what lies in a hidden folder under its name; FileExistsError if that is taken, or was just now."""
    if folder.renames:
        folder.rename(staging, name)
        return
    files = [each.name for each in folder.child(staging).files()]
    decided = json.dumps({"staging": staging, "files": files}).encode()
    try:
        folder.create(record, decided)
    except FileExistsError:
        try:
            _finish(folder, name, folder.read(record))
        except FileNotFoundError:
            said = f"{folder}/{name} was removed, and {folder}/{record} still counts on it"
            raise SinkError(said, suggestion="remove that too") from None
        raise
    _finish(folder, name, decided)


def _finish(folder: Folder, name: str, decided: bytes) -> None:
    """Copy the files of the attempt that counts, as far as they are not there."""
    said = json.loads(decided)
    for file in said["files"]:
        target = f"{name}/{file}"
        if folder.exists(target):
            continue
        try:
            folder.copy(f"{said['staging']}/{file}", target)
        except FileNotFoundError:
            if not folder.exists(target):  # nobody else has finished it either
                raise
