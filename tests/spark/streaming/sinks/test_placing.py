"""What is put in its place: one attempt counts, also where nothing can be renamed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from harken.errors import SinkError
from harken.spark import Query, TableSink
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


def test_a_stream_removes_no_record_of_what_is_beside_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = TableSink(tmp_path / "table")
    monkeypatch.setattr(type(sink.folder), "renames", False)  # as an object store
    matches, mine = spark.sql("select 1L event, 'a' subscription"), Query("mine", "/my/checkpoint")
    for batch, query in ((0, mine), (-99, None), (-199, None), (1, mine), (100, mine)):
        sink.write(batch, matches, query)
    assert {each.name for each in sink.folder.child(".batches").entries()} == {
        *("-99.json", "-199.json", "1.json", "100.json")
    }


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
