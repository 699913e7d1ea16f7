"""Subscriptions that are a DataFrame: read once, sent to the workers, and nothing of them is left."""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from harken.errors import (
    ArgumentError,
    ArgumentTypeError,
    BulkLoadError,
    DuplicateSubscriptionError,
    StorageError,
)
from harken.spark import Subscriptions, match, plan
from harken.spark.index import frames
from harken.spark.index import worker_cache as opened
from harken.spark.index.frames import InPlan, _handed_over, index_of_frame
from harken.spark.index.sharding import Division
from harken.spark.storage import folder_at
from harken.spark.storage.carried import CarriedFolder
from tests.spark.matching.frames import pairs


def texts(spark: SparkSession, **expressions: str) -> DataFrame:
    """A frame of subscriptions."""
    return spark.createDataFrame(list(expressions.items()), "id string, expression string")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this process makes its temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def noted(spark: SparkSession, tmp_path: Path) -> tuple[DataFrame, Path]:
    """A frame of subscriptions, and a folder in which a file appears whenever it is computed."""
    folder = tmp_path / "computed"
    folder.mkdir()

    def note(batches):
        for batch in batches:
            tempfile.mkstemp(dir=folder)
            yield batch

    rows = spark.createDataFrame([(1, "n = 1"), (2, "n > 1")], "id bigint, expression string").coalesce(1)
    return rows.mapInArrow(note, rows.schema), folder


def test_a_frame_is_read_once_however_often_it_is_matched_with(spark, noted):
    subscriptions, computed = noted
    expected = [(1, 1), (2, 2)]
    events = spark.createDataFrame([(1, 1), (2, 2)], "id int, n int")
    for _ in range(3):
        assert pairs(match(events, subscriptions, event_id="id")) == expected
    assert len(list(computed.iterdir())) == 1


def test_threads_that_match_with_one_frame_wait_for_its_index(spark, noted):
    subscriptions, computed = noted
    threads = [threading.Thread(target=index_of_frame, args=(subscriptions,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(computed.iterdir())) == 1


def test_no_file_is_shared_and_answers_outlive_frame_and_folder(spark, temporary):
    subscriptions = texts(spark, low="n < 2", high="n >= 2")
    answer = match(spark.range(4).selectExpr("id", "id as n"), subscriptions, event_id="id")
    del subscriptions
    gc.collect()
    assert list(temporary.iterdir()) == [], "nothing of it is on the disk of this process"
    assert pairs(answer) == [(0, "low"), (1, "low"), (2, "high"), (3, "high")]


def test_what_was_sent_goes_when_frame_and_answers_are_gone(spark):
    subscriptions = texts(spark, low="n < 2")
    answer = match(spark.range(4).selectExpr("id as n"), subscriptions)
    sent = list(frames._SENT)[-1]
    del subscriptions
    _collect(spark)
    assert answer.count() == 2
    assert Path(sent).exists()
    del answer
    deadline = time.monotonic() + 60
    while Path(sent).exists() and time.monotonic() < deadline:
        _collect(spark)
    assert not Path(sent).exists()


def _collect(spark: SparkSession) -> None:
    """Have the garbage collectors of Python and Java run, and another frame come."""
    gc.collect()
    spark.sparkContext._jvm.System.gc()
    index_of_frame(texts(spark, other="n = 1"))


def test_a_frame_may_be_empty_or_have_an_id_twice(spark):
    events = spark.range(3)
    assert match(events, spark.sql("select 1 id, 'id = 1' expression where false")).collect() == []
    twice = spark.sql("select 1 id, 'id = 1' expression union all select 1, 'id = 2'")
    with pytest.raises(DuplicateSubscriptionError):
        match(events, twice)


def test_a_bad_row_is_told_by_its_id(spark):
    rows = [(f"s{number}", "n = 1") for number in range(7)]
    subscriptions = spark.createDataFrame([*rows, ("bad", "n <")], "id string, expression string")
    with pytest.raises(BulkLoadError, match=r"the first is 'bad': .*compile_subscriptions tells them all"):
        match(spark.range(1), subscriptions)


def test_an_index_that_could_not_be_made_is_made_when_it_can(spark, monkeypatch):
    subscriptions = texts(spark, low="id < 2")
    with monkeypatch.context() as patch:
        patch.setattr(frames, "Engine", None)
        with pytest.raises(TypeError):
            match(spark.range(3), subscriptions)
    assert match(spark.range(3), subscriptions).count() == 2


def test_a_folder_may_be_named_that_all_machines_reach(spark, empty, monkeypatch):
    removed = []
    monkeypatch.setattr(frames.atexit, "register", lambda call, *arguments: removed.append((call, arguments)))
    subscriptions = texts(spark, low="id < 2")
    for _ in range(2):
        planned = plan(spark.range(3), subscriptions, folder=empty)
        assert planned.frame.count() == 2
    (name,) = [each.name for each in empty.entries()]
    assert {each.name for each in empty.child(name).entries()} >= {"versions", "segments", "index"}
    ((call, arguments),) = removed
    call(*arguments)
    assert empty.entries() == []


def test_a_process_leaves_no_file_behind(tmp_path):
    program = f"""
from harken.errors import ArgumentError
from harken.spark import local_session, match
spark = local_session("local[2]")
texts = spark.sql("select 1 id, 'n < 3' expression")
events = spark.range(9).selectExpr("id as n")
print(match(events, texts).count(), match(events, texts, folder={str(tmp_path / "shared")!r}).count())
spark.stop()
try:
    match(local_session("local[2]").range(1), texts)
except ArgumentError as error:
    print(error)
"""
    (tmp_path / "temporary").mkdir()
    environment = {"TMPDIR": str(tmp_path / "temporary"), **_environment()}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.stdout == "3 3\nthe subscriptions are of a session that has ended\n", done.stderr
    assert list((tmp_path / "shared").iterdir()) == []
    deadline = time.monotonic() + 30  # Java removes what it had after Python has ended
    while _left(tmp_path / "temporary") and time.monotonic() < deadline:
        time.sleep(0.2)
    assert _left(tmp_path / "temporary") == []


def _left(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and "hsperfdata" not in str(path)]


def _environment() -> dict[str, str]:
    import os

    return {name: value for name, value in os.environ.items() if name not in ("TMPDIR", "SPARK_LOCAL_DIRS")}


def test_folders_are_for_frames_and_subscriptions_of_a_known_class(spark, tmp_path):
    stored = Subscriptions.create(tmp_path / "subscriptions")
    with pytest.raises(ArgumentError, match="folder is for subscriptions in a DataFrame"):
        match(spark.range(1), stored, folder=tmp_path / "other")
    with pytest.raises(ArgumentTypeError, match="are an Index, Subscriptions or a DataFrame of Spark, found"):
        match(spark.range(1), [("a", "n = 1")])


def test_a_worker_keeps_few_indexes_open(spark, monkeypatch):
    for name in ("_ENGINES", "_OPEN", "_OPEN_SHARDS", "_RECENT"):
        monkeypatch.setattr(opened, name, {})
    for number in range(opened.MOST_OPEN + 3):
        folder, state = index_of_frame(texts(spark, one=f"n = {number}"))
        parts = opened.Parts(folder, state.layers, state.division, state.integer_ids)
        opened.open_index(parts)
        opened.open_shard(parts, 0)
    for held in (opened._ENGINES, opened._OPEN, opened._OPEN_SHARDS, opened._RECENT):
        assert len(held) == opened.MOST_OPEN


def test_a_worker_keeps_few_routers(monkeypatch):
    monkeypatch.setattr(opened, "_ROUTERS", {})
    first = opened.open_router(Division(1))
    for shards in range(2, opened.MOST_OPEN + 1):
        opened.open_router(Division(shards))
    assert opened.open_router(Division(1)) is first
    for shards in range(20, 20 + opened.MOST_OPEN - 1):
        opened.open_router(Division(shards))
    assert len(opened._ROUTERS) == opened.MOST_OPEN
    assert opened.open_router(Division(1)) is first


def test_with_connect_an_index_travels_in_the_plan_if_it_is_small_enough(tmp_path, monkeypatch):
    place = folder_at(tmp_path)
    place.create("parts/one/file", b"content")
    without_context = object()
    handed = _handed_over(without_context, place)  # type: ignore[arg-type]  # as a session of Connect, it has none
    assert isinstance(handed, InPlan)
    carried = CarriedFolder(handed)
    assert carried.child("parts").child("one").read("file") == b"content"
    monkeypatch.setattr(frames, "MOST_IN_PLAN", 6)
    with pytest.raises(StorageError, match="name a folder that all machines reach"):
        _handed_over(without_context, place)  # type: ignore[arg-type]


def test_a_carried_folder_is_a_folder_that_is_only_read(tmp_path):
    folder = CarriedFolder(InPlan({"a": b"1", "b/c": b"2", "b/d/e": b"33"}))
    assert [(each.name, each.is_folder) for each in folder.entries()] == [("a", False), ("b", True)]
    assert [each.name for each in folder.entries("a")] == ["b"]
    assert [(each.name, each.bytes) for each in folder.child("b").files()] == [("c", 1), ("d/e", 2)]
    assert folder.exists("a")
    assert not folder.exists("b")
    above, name = folder.child("b/d").above
    assert (above.address, name) == (folder.child("b").address, "d")
    assert folder.child("b").above[0] == folder
    with pytest.raises(FileNotFoundError):
        folder.read("missing")
    for change in (
        lambda: folder.create("x", b""),
        lambda: folder.replace("a", b""),
        lambda: folder.upload("x", tmp_path),
        lambda: folder.remove(["a"]),
    ):
        with pytest.raises(StorageError, match="only read"):
            change()
