"""What is put in its place: one attempt counts, also where nothing can be renamed."""

from __future__ import annotations

import pytest

from harken.errors import SinkError
from harken.spark.storage import Folder
from harken.spark.streaming.sinks.placing import is_placed, place

RECORD = ".batches/1.json"


def stage(folder: Folder, attempt: str) -> str:
    folder.create(f".staging/{attempt}/part-0", attempt.encode())
    return f".staging/{attempt}"


def test_of_two_attempts_the_first_counts(empty: Folder) -> None:
    assert not is_placed(empty, "batch=1", RECORD)
    first, second = stage(empty, "first"), stage(empty, "second")
    place(empty, first, "batch=1", RECORD)
    with pytest.raises(FileExistsError):
        place(empty, second, "batch=1", RECORD)
    assert is_placed(empty, "batch=1", RECORD)
    assert empty.read("batch=1/part-0") == b"first"


def test_what_was_removed_can_be_placed_again_once_its_record_is(empty: Folder) -> None:
    place(empty, stage(empty, "first"), "batch=1", RECORD)
    empty.remove(["batch=1", ".staging"])
    assert not is_placed(empty, "batch=1", RECORD)
    second = stage(empty, "second")
    if not empty.renames:
        with pytest.raises(
            SinkError, match=r"batch=1 was removed, and .*1\.json still counts on it; remove that too"
        ):
            place(empty, second, "batch=1", RECORD)
        empty.remove([RECORD])
    place(empty, second, "batch=1", RECORD)
    assert empty.read("batch=1/part-0") == b"second"
