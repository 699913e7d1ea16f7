"""A table on shared storage has every batch once and whole, wherever an attempt to write it ended."""

from __future__ import annotations

import os
import pickle
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from harken.errors import HarkenError, OutputExistsError, SinkError, StorageError
from harken.spark.storage import Folder
from harken.spark.storage.local import LocalFolder
from harken.spark.streaming.sinks import Query, TableSink, tables, write_table

MINE = Query("mine", "/my/checkpoint")
PAIRS = "event bigint, subscription string"


def pairs(spark: SparkSession, *rows: tuple[int, str]) -> DataFrame:
    return spark.createDataFrame(list(rows), PAIRS)


def failing(spark: SparkSession) -> DataFrame:
    """Rows, the last of which cannot be computed, in one partition: no other task still writes when it fails."""
    return spark.range(0, 4, 1, 1).selectExpr("id as event", "if(id = 3, raise_error('bad'), 'a') as subscription")


def contents(table: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in table.collect())


def visible(path: Path) -> list[str]:
    return sorted(name for name in os.listdir(path) if not name.startswith("."))


def everything(path: Path) -> list[Path]:
    """All files below a folder, hidden or not."""
    return sorted(file for file in path.rglob("*") if file.is_file())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table"


@pytest.fixture(params=["parquet", "json"])
def sink(path: Path, request: pytest.FixtureRequest) -> TableSink:
    return TableSink(path, format=request.param)


# Batches


def test_batches_are_read_with_their_numbers(spark: SparkSession, sink: TableSink) -> None:
    sink.write(0, pairs(spark, (1, "a"), (2, "b")))
    sink.write(1, pairs(spark, (1, "c")))
    assert contents(sink.read(spark)) == [(1, "a", 0), (1, "c", 1), (2, "b", 0)]
    assert sink.read(spark).dtypes == [("event", "bigint"), ("subscription", "string"), ("batch", "bigint")]


def test_every_microsecond_is_kept(spark: SparkSession, sink: TableSink) -> None:
    matches = spark.sql(
        """select timestamp '2026-11-17 01:02:03.123456+05:30' as at,
        timestamp_ntz '1583-02-03 04:05:06.000007' as of
        union all select timestamp '9999-12-31 23:59:59.999999Z', timestamp_ntz '2026-03-29 02:30:00'
        union all select timestamp '1850-07-02 03:04:05.000001Z', timestamp_ntz '1850-07-02 03:04:05.000001'"""
    )
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")  # whose offset had seconds then
    try:
        sink.write(0, matches)
        in_order = [frame.selectExpr("unix_micros(at)", "of") for frame in (sink.read(spark), matches)]
        assert contents(in_order[0]) == contents(in_order[1])
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_batches_with_timestamps_as_spark_writes_them_are_read_too(spark: SparkSession, path: Path) -> None:
    sink, at = TableSink(path, "json"), "timestamp '2026-11-17 01:02:03.123Z' as at"
    matches = spark.sql(f"select {at}, timestamp_ntz '2026-11-17 01:02:03.123' as of")
    sink.write(0, matches)
    matches.write.json(str(path / "batch=1"))  # as before microseconds were kept
    assert contents(sink.read(spark).drop("batch")) == 2 * contents(matches)


def test_spark_reads_the_table_without_harken(spark: SparkSession, path: Path) -> None:
    sink = TableSink(str(path))
    sink.write(7, pairs(spark, (1, "a")))
    sink.write(8, pairs(spark, (2, "b")))
    assert contents(spark.read.parquet(str(path))) == [(1, "a", 7), (2, "b", 8)]


def test_arrow_reads_the_table_without_spark(spark: SparkSession, path: Path) -> None:
    TableSink(path).write(7, pairs(spark, (1, "a")))
    assert pq.read_table(path).to_pylist() == [{"event": 1, "subscription": "a", "batch": 7}]


def test_any_columns_are_kept_with_their_types(spark: SparkSession, sink: TableSink) -> None:
    sink.write(0, spark.sql("select 'e' event, array(3L, 4L) subscriptions, date'2026-01-02' day, 1.5d `a.b`"))
    read = sink.read(spark)
    assert read.dtypes[:4] == [
        ("event", "string"),
        ("subscriptions", "array<bigint>"),
        ("day", "date"),
        ("a.b", "double"),
    ]
    assert [row.subscriptions for row in read.collect()] == [[3, 4]]


def test_names_of_folders_are_taken_literally(spark: SparkSession, tmp_path: Path) -> None:
    sink = TableSink(tmp_path / "a b%20[c]{d,e}*?#f\\g")
    sink.write(0, pairs(spark, (1, "a")))
    assert [each.name for each in tmp_path.iterdir()] == [sink.path.name]
    assert contents(sink.read(spark)) == [(1, "a", 0)]


# Empty batches


def test_a_table_of_empty_batches_only_can_be_read(spark: SparkSession, sink: TableSink) -> None:
    without_partitions = spark.sql("select 1L event, 'a' subscription where false")
    assert without_partitions.rdd.getNumPartitions() == 0
    sink.write(0, without_partitions)
    sink.write(1, pairs(spark))
    assert visible(sink.path) == ["batch=0", "batch=1"]
    assert contents(sink.read(spark)) == []
    assert sink.read(spark).dtypes == [("event", "bigint"), ("subscription", "string"), ("batch", "bigint")]


def test_spark_knows_the_columns_of_a_table_of_empty_batches(spark: SparkSession, path: Path) -> None:
    TableSink(path).write(0, pairs(spark))
    assert spark.read.parquet(str(path)).columns == ["event", "subscription", "batch"]


def test_an_empty_batch_is_known_when_it_comes_again(spark: SparkSession, sink: TableSink) -> None:
    sink.write(0, pairs(spark))
    sink.write(0, pairs(spark, (1, "a")))
    assert contents(sink.read(spark)) == []


# Attempts that came before


def test_a_batch_that_is_there_stays_as_it_is_and_is_not_computed(spark: SparkSession, sink: TableSink) -> None:
    sink.write(0, pairs(spark, (1, "a")))
    before = everything(sink.path)
    sink.write(0, pairs(spark, (2, "b")))
    sink.write(0, failing(spark))
    assert everything(sink.path) == before
    assert contents(sink.read(spark)) == [(1, "a", 0)]


def test_a_crash_before_the_rename_leaves_nothing_to_see_and_the_next_attempt_clears_up(
    spark: SparkSession, sink: TableSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink.write(0, pairs(spark, (1, "a")))
    with monkeypatch.context() as crash:
        crash.setattr(tables, "place", power_cut)
        with pytest.raises(KeyboardInterrupt):
            sink.write(1, pairs(spark, (2, "b"), (3, "c")))
    assert list(sink.path.glob(".staging/1/*/part-*"))
    assert contents(sink.read(spark)) == [(1, "a", 0)]
    sink.write(1, pairs(spark, (2, "b"), (3, "c")))
    assert contents(sink.read(spark)) == [(1, "a", 0), (2, "b", 1), (3, "c", 1)]
    assert list(sink.path.glob(".staging/*")) == []


def power_cut(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_crash_while_spark_writes_leaves_nothing_to_see(spark: SparkSession, sink: TableSink) -> None:
    half = sink.path / ".staging" / "3" / "dead"
    half.joinpath("_temporary").mkdir(parents=True)
    half.joinpath("part-00000.parquet").write_bytes(b"PAR1 and then nothing")
    other = sink.path / ".staging" / "33"
    other.mkdir()
    sink.write(3, pairs(spark, (1, "a")))
    assert contents(sink.read(spark)) == [(1, "a", 3)]
    assert list(sink.path.glob(".staging/*")) == [other]


def test_a_crash_after_the_rename_is_cleared_up_when_the_batch_comes_again(
    spark: SparkSession, sink: TableSink
) -> None:
    sink.write(0, pairs(spark, (1, "a")))
    shutil.copytree(sink.path / "batch=0", sink.path / ".staging" / "0" / "of-another-attempt")
    sink.write(0, pairs(spark, (1, "a")))
    assert list(sink.path.glob(".staging/*")) == []
    assert contents(sink.read(spark)) == [(1, "a", 0)]


def test_of_two_attempts_at_once_one_counts(
    spark: SparkSession, sink: TableSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = tables._write

    def overtaken(matches: DataFrame, folder: Folder, staging: str, form: tables.Format) -> None:
        monkeypatch.setattr(tables, "_write", write)
        write(matches, folder, staging, form)
        sink.write(0, pairs(spark, (9, "first")))

    monkeypatch.setattr(tables, "_write", overtaken)
    sink.write(0, pairs(spark, (1, "late")))
    assert contents(sink.read(spark)) == [(9, "first", 0)]
    assert list(sink.path.glob(".staging/*")) == []


def test_a_batch_that_cannot_be_computed_leaves_nothing(spark: SparkSession, sink: TableSink) -> None:
    with pytest.raises(PySparkException, match="bad"):
        sink.write(0, failing(spark))
    assert everything(sink.path) == []
    sink.write(0, pairs(spark, (1, "a")))
    assert contents(sink.read(spark)) == [(1, "a", 0)]


def test_readers_meanwhile_see_whole_batches_only(spark: SparkSession, path: Path) -> None:
    """Each batch has ten rows in four files."""
    sink, sizes, finished = TableSink(path), set[int](), threading.Event()

    def batch(number: int) -> DataFrame:
        return spark.range(0, 10, 1, 4).selectExpr("id as event", f"'{number}' as subscription")

    def watch() -> None:
        while not finished.wait(0.01):
            counted: dict[int, int] = {}
            for file in path.glob("batch=*/part-*.parquet"):
                number = int(file.parent.name.removeprefix("batch="))
                counted[number] = counted.get(number, 0) + pq.ParquetFile(file).metadata.num_rows
            sizes.update(counted.values())

    sink.write(0, batch(0))
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for number in range(1, 6):
            sink.write(number, batch(number))
            assert sink.read(spark).count() == 10 * (number + 1)
    finally:
        finished.set()
        watcher.join()
    assert sizes == {10}


def test_a_stream_that_dies_between_the_sink_and_its_checkpoint_delivers_once(
    spark: SparkSession, sink: TableSink, tmp_path: Path
) -> None:
    """Its batch comes again under the same number when it is started again."""
    batches: list[int] = []
    (tmp_path / "events").mkdir()
    stream = spark.readStream.schema("event bigint, subscription string").json(str(tmp_path / "events"))

    def deliver(matches: DataFrame, batch: int) -> None:
        sink.write(batch, matches)
        batches.append(batch)
        if len(batches) == 2:
            raise OSError("out of paper")

    def run_until_done() -> None:
        writer = stream.writeStream.foreachBatch(deliver).option(
            "checkpointLocation", str(tmp_path / "checkpoint")
        )
        writer.trigger(availableNow=True).start().awaitTermination()

    (tmp_path / "events" / "1.json").write_text('{"event": 1, "subscription": "a"}')
    run_until_done()
    (tmp_path / "events" / "2.json").write_text('{"event": 2, "subscription": "b"}')
    with pytest.raises(StreamingQueryException, match="out of paper"):
        run_until_done()
    run_until_done()
    assert batches == [0, 1, 1]
    assert contents(sink.read(spark)) == [(1, "a", 0), (2, "b", 1)]


# What it does not take


def test_nothing_can_be_read_before_the_first_batch(spark: SparkSession, sink: TableSink) -> None:
    with pytest.raises(SinkError, match="nothing has been written to"):
        sink.read(spark)


def test_a_batch_of_other_columns_is_refused(spark: SparkSession, sink: TableSink) -> None:
    sink.write(0, pairs(spark, (1, "a")))
    with pytest.raises(SinkError) as caught:
        sink.write(1, spark.sql("select 1L event, 2L subscription"))
    assert caught.value.message == (
        f"{sink.path} has the columns event bigint, subscription string, "
        "the batch has event bigint, subscription bigint"
    )
    assert visible(sink.path) == ["batch=0"]


def test_whether_there_can_be_nulls_does_not_matter(spark: SparkSession, sink: TableSink) -> None:
    sink.write(0, spark.range(1).selectExpr("id as event", "'a' as subscription"))
    sink.write(1, pairs(spark, (2, "b")))
    assert contents(sink.read(spark)) == [(0, "a", 0), (2, "b", 1)]


@pytest.mark.parametrize("name", ["batch", "Batch"])
def test_a_column_that_would_hide_the_number_is_refused(spark: SparkSession, sink: TableSink, name: str) -> None:
    with pytest.raises(SinkError, match=f"'{name}' would be mistaken for the number of the batch"):
        sink.write(0, spark.sql(f"select 1L event, 2L subscription, 3 {name}"))
    assert not sink.path.exists()


def test_a_folder_that_the_workers_do_not_share_is_noticed(
    spark: SparkSession, sink: TableSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the workers wrote to a disk of their own."""
    monkeypatch.setattr(LocalFolder, "address", property(lambda folder: f"file://{folder.path}-elsewhere"))
    with pytest.raises(SinkError, match="the driver and all workers must share this folder"):
        sink.write(0, pairs(spark, (1, "a")))
    assert visible(sink.path) == []


def test_a_store_that_is_not_supported_is_refused_by_name() -> None:
    with pytest.raises(StorageError, match="addresses with wasb: are not supported"):
        TableSink("wasb://box/table")


def test_an_address_of_a_file_system_is_its_path(spark: SparkSession, path: Path) -> None:
    TableSink(f"file://{path}").write(0, pairs(spark, (1, "a")))
    assert contents(TableSink(path).read(spark)) == [(1, "a", 0)]


# What is left behind


def test_a_batch_is_one_file_and_nothing_else(spark: SparkSession, sink: TableSink) -> None:
    for batch in range(2):
        sink.write(batch, spark.range(0, 10, 1, 4).selectExpr("id as event", "'a' as subscription"), MINE)
    names = [file.relative_to(sink.path).as_posix() for file in everything(sink.path)]
    assert [name.partition("part-")[0] for name in names] == [".query", ".schema", "batch=0/", "batch=1/"]
    assert contents(sink.read(spark)) == [(id, "a", batch) for id in range(10) for batch in range(2)]


def test_a_batch_can_have_more_files(spark: SparkSession, path: Path) -> None:
    sink = TableSink(path, files=3)
    sink.write(0, spark.range(0, 99, 1, 2).selectExpr("id as event", "'a' as subscription"))
    assert len(list(path.glob("batch=0/part-*"))) == 3
    assert sink.read(spark).count() == 99
    with pytest.raises(SinkError, match="one file or more, found 0"):
        TableSink(path, files=0)


def test_columns_of_a_table_of_an_earlier_release_still_hold(spark: SparkSession, sink: TableSink) -> None:
    """There, every batch told them."""
    sink.write(0, pairs(spark, (1, "a")))
    (sink.path / ".schema").rename(sink.path / "batch=0" / ".schema")
    with pytest.raises(SinkError, match="has the columns event bigint, subscription string"):
        sink.write(1, spark.sql("select 1L event, 2L subscription"))
    sink.write(1, pairs(spark, (2, "b")))
    assert contents(sink.read(spark)) == [(1, "a", 0), (2, "b", 1)]


# Whose batches these are


def test_a_table_belongs_to_the_query_that_writes_first(spark: SparkSession, sink: TableSink) -> None:
    sink.write(0, pairs(spark, (1, "a")), MINE)
    sink.write(1, pairs(spark, (2, "b")), MINE)
    for batch in (0, 2):
        with pytest.raises(SinkError) as caught:
            sink.write(batch, failing(spark), Query("theirs", "/their/checkpoint"))
    assert str(caught.value) == (
        f"{sink.path} has the batches of another query, mine, of the checkpoint /my/checkpoint; "
        "write to another place, or go on with that checkpoint instead of /their/checkpoint"
    )
    assert contents(sink.read(spark)) == [(1, "a", 0), (2, "b", 1)]


def test_a_table_that_nobody_owns_is_taken_over(spark: SparkSession, sink: TableSink) -> None:
    sink.write(0, pairs(spark, (1, "a")))
    sink.write(1, pairs(spark, (2, "b")), MINE)
    assert (sink.has(0), sink.has(1), sink.has(2)) == (True, True, False)


def test_an_unknown_format_is_refused(path: Path) -> None:
    with pytest.raises(SinkError, match="written as parquet or json, found 'csv'"):
        TableSink(path, format="csv")  # type: ignore[arg-type]


def test_a_sink_can_be_pickled_and_says_what_it_is(path: Path) -> None:
    copy = pickle.loads(pickle.dumps(TableSink(path, "json")))
    assert repr(copy) == f"TableSink({str(path)!r}, format='json')"


# Jobs that run once


@pytest.mark.parametrize("form", ["parquet", "json"])
def test_a_table_is_written_in_one_step(spark: SparkSession, tmp_path: Path, form: tables.Format) -> None:
    path = tmp_path / "new" / "table"
    write_table(pairs(spark, (1, "a"), (2, "b")), path, format=form)
    assert contents(spark.read.format(form).load(str(path))) == [(1, "a"), (2, "b")]
    assert [each.name for each in path.parent.iterdir()] == ["table"]


@pytest.fixture(params=["folder", "file", "link to nowhere"])
def taken(path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A name that is taken, and still is by the same thing after the test."""
    match request.param:
        case "folder":
            path.mkdir()
        case "file":
            path.touch()
        case _:
            path.symlink_to("nowhere")
    before = path.lstat()
    yield path
    assert path.lstat() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_name_that_is_taken_is_refused_before_anything_runs(spark: SparkSession, taken: Path) -> None:
    with pytest.raises(OutputExistsError) as caught:
        write_table(failing(spark), taken)
    assert str(caught.value) == f"{taken} exists; remove it, or write somewhere else"
    assert isinstance(caught.value, HarkenError)
    assert isinstance(caught.value, FileExistsError)


def test_a_name_that_is_taken_meanwhile_is_refused(
    spark: SparkSession, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = tables._write

    def overtaken(matches: DataFrame, folder: Folder, staging: str, form: tables.Format) -> None:
        write(matches, folder, staging, form)
        path.mkdir()
        (path / "mine").touch()

    monkeypatch.setattr(tables, "_write", overtaken)
    with pytest.raises(OutputExistsError):
        write_table(pairs(spark, (1, "a")), path)
    assert everything(path.parent) == [path / "mine"]


def test_a_job_that_fails_leaves_nothing_behind(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="bad"):
        write_table(failing(spark), tmp_path / "several" / "new" / "table")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_table_keeps_its_columns(spark: SparkSession, path: Path) -> None:
    write_table(pairs(spark), path)
    assert pq.read_table(path).schema.equals(pa.schema([("event", pa.int64()), ("subscription", pa.string())]))


@pytest.mark.parametrize(
    "value", ["repeat('x', 20000001) as big", "'text' as _corrupt_record", "5 as _corrupt_record"]
)
def test_json_reads_what_it_wrote_or_nothing(spark: SparkSession, path: Path, value: str) -> None:
    table, rows = TableSink(path, "json"), spark.sql(f"SELECT 'e' AS event, 's' AS subscription, {value}")
    table.write(0, rows)
    assert [tuple(row)[:3] for row in table.read(spark).collect()] == [tuple(row) for row in rows.collect()]


@pytest.mark.parametrize("value", ["map(1, 'a')", "array(named_struct('m', map(DATE'2026-01-01', 'a')))"])
def test_json_refuses_keys_that_it_could_not_read(spark: SparkSession, path: Path, value: str) -> None:
    rows = spark.sql(f"SELECT 'e' AS event, 's' AS subscription, {value} AS m")
    with pytest.raises(SinkError, match=r'keys of maps are texts.*format="parquet"'):
        TableSink(path, "json").write(0, rows)
    TableSink(path, "parquet").write(0, rows)


def test_damaged_json_is_an_error_and_no_match_of_nulls(spark: SparkSession, path: Path) -> None:
    table = TableSink(path, "json")
    table.write(0, pairs(spark, (1, "a")))
    (file,) = (path / "batch=0").glob("part-*")
    file.write_text('{"event": 1, "subscr', encoding="utf-8")
    with pytest.raises((PySparkException, Py4JJavaError), match=r"(?i)malformed"):
        table.read(spark).collect()
