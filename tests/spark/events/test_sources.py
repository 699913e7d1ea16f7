"""Files of events as Spark reads them: what cannot be read is never taken for something that is missing."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from harken.errors import InputFileError, TaskError
from harken.model.schema import Schema
from harken.spark.events.sources import FAULT, EventFiles, faulty, sorted_out, sound
from harken.spark.runtime.failures import retold


def columns(files: EventFiles, spark: SparkSession) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in files.read(spark).schema}


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("e.csv", "csv"),
        ("e.JSONL", "json"),
        ("e.ndjson", "json"),
        ("e.json.gz", "json"),
        ("e.snappy.parquet", "parquet"),
    ],
)
def test_the_ending_tells_the_format(tmp_path: Path, name: str, format: str) -> None:  # noqa: A002
    (tmp_path / name).touch()
    assert EventFiles.at(str(tmp_path / name)).format == format
    (tmp_path / "_SUCCESS").touch()
    assert EventFiles.at(str(tmp_path)).format == format
    assert EventFiles.at(f"{tmp_path}/*.*").format == format
    assert EventFiles.at(f"s3a://bucket/{name}").format == format


def test_what_is_not_there_or_of_no_known_format_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "events.txt").touch()
    for path, said in (
        ("absent.csv", "there is no such file"),
        ("*.csv", "there is no such file"),
        ("events.txt", "cannot tell the format"),
    ):
        with pytest.raises(InputFileError, match=said):
            EventFiles.at(str(tmp_path / path))
    assert EventFiles.at(str(tmp_path / "events.txt"), "csv").format == "csv"


def test_names_are_taken_literally_if_they_are_there(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "day [1] {a}*"
    folder.mkdir()
    with gzip.open(folder / "e.csv.gz", "wt") as file:
        file.write("id,x\n1,2\n")
    assert EventFiles.at(str(folder)).read(spark).collect() == [(1, 2)]
    assert EventFiles.at(f"{tmp_path}/day*/*.gz").read(spark).collect() == [(1, 2)]


def test_declared_types_reach_into_structs_and_others_are_inferred(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text('{"id": 1, "seller": {"since": "2026-01-02", "rating": 4}, "at": [1, 2]}\n')
    schema = Schema({"seller.since": "date", "seller.rating": "float", "at": "point", "absent": "int"})
    assert columns(EventFiles.at(str(path), schema=schema), spark) == {
        "at": "array<double>",
        "id": "bigint",
        "seller": "struct<rating:double,since:date>",
    }


def test_files_with_their_columns_in_another_order_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("id,x\n1,2\n")
    (tmp_path / "2.csv").write_text("x,id\n2,1\n")
    with pytest.raises(TaskError, match="header"), retold():
        EventFiles.at(str(tmp_path)).read(spark).collect()


def test_bad_records_are_sorted_out_with_their_reasons(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text('id,x,where\n1,2,"[1, 2]"\n2,NaN,\n3,high,\n4,5,"[1, "\n5\n6,7,8,9\n')
    files = EventFiles.at(str(path), schema=Schema({"x": "float", "where": "point"}))
    events = sorted_out(files.read(spark, collect=True))
    assert [row.id for row in sound(events).collect()] == [1, 2]
    assert FAULT not in sound(events).columns
    bad = {row.record: row.reason for row in faulty(events, ["id", "x", "where"]).collect()}
    assert sorted(bad) == ["3,high,", "5", "6,7,8,9", "[1, "]
    assert set(bad.values()) == {"the record cannot be read, or a value is not of the type of its column"}
    with pytest.raises(TaskError, match="Malformed records"), retold():
        files.read(spark).collect()


def test_parquet_is_read_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2], "x": [0.5, float("nan")]}), tmp_path / "e.parquet")
    events = sorted_out(EventFiles.at(str(tmp_path)).read(spark, collect=True))
    assert sound(events).count() == 2
    assert sound(events).columns == ["id", "x"]


TWICE = """\
{"id": "e1", "price": 150, "at": {"x": 1}}
{"id": "e2", "price": 150, "price": 120, "at": {"x": 1, "x": 2.5}}
{"id": "e3", "price": 7, "tags": [{"a": 1, "a": 2}], "new": 1, "new": true}
"""


@pytest.mark.parametrize("over_lines", [False, True])
def test_of_a_key_that_comes_twice_in_an_object_the_last_one_counts(
    spark: SparkSession, tmp_path: Path, over_lines: bool
) -> None:
    file = tmp_path / "e.json"
    file.write_text(f"[{TWICE.strip().replace(chr(10), ',' + chr(10))}]" if over_lines else TWICE)
    files = EventFiles.at(str(file), schema=Schema({"price": "int"}))
    assert columns(files, spark) == {
        "at": "struct<x:double>",
        "id": "string",
        "new": "string",
        "price": "bigint",
        "tags": "array<struct<a:bigint>>",
    }
    read = sorted_out(files.read(spark, collect=True)).select("id", "price", "at.x", "new", FAULT)
    assert read.collect() == [
        ("e1", 150, 1.0, None, None),
        ("e2", 120, 2.5, None, None),
        ("e3", 7, None, "true", None),
    ]


def test_a_key_that_comes_twice_makes_a_bad_record_no_better(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "e.jsonl"
    file.write_text('{"price": "high", "price": 7}\n{"price": 7, "price": 8}\n{"price":\n')
    read = sorted_out(EventFiles.at(str(file), schema=Schema({"price": "int"})).read(spark, collect=True))
    assert sound(read).collect() == [(8,)]
    assert [row.record for row in faulty(read, ["price"]).collect()] == [
        '{"price": "high", "price": 7}',
        '{"price":',
    ]


def test_names_that_differ_in_case_alone_are_named(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "e.jsonl"
    file.write_text('{"at": {"price": 1, "Price": 2}}\n')
    with pytest.raises(InputFileError, match=r"the attributes 'at\.Price' and 'at\.price' are one; set spark"):
        EventFiles.at(str(file)).read(spark)
