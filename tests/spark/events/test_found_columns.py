"""The columns of a stream are those of the files there are, of a schema, and of what is known from before."""

from __future__ import annotations

import gzip
import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType, LongType, StructType

from harken.errors import HarkenError, InputFileError
from harken.model.schema import Schema
from harken.spark.events.found_columns import as_wide
from harken.spark.events.sources import EventFiles, Followed, sorted_out, sound


def followed(
    folder: Path, known: str, lines: str, schema: dict[str, str] | None, spark: SparkSession, **more: bool
) -> Followed:
    """The columns of a stream of one file, CSV if it begins with names."""
    file = folder / ("events.jsonl" if lines.startswith("{") else "events.csv")
    file.write_text(lines)
    files = EventFiles.at(str(folder), schema=None if schema is None else Schema(schema))
    before = StructType.fromDDL(known) if known else StructType()
    found = files.columns_to_follow(spark, before, **more)
    assert set(found.known.names) >= set(before.names)
    return found


def shown(columns: StructType) -> list[str]:
    return sorted(each.simpleString() for each in columns)


@pytest.mark.parametrize(
    ("known", "lines", "schema", "expected"),
    [
        ("p double, q bigint", '{"p": 1}', None, "p double, q bigint"),
        ("p bigint", '{"p": 1.5}', None, "p double"),
        ("p bigint", '{"p": null}', None, "p bigint"),
        ("at array<bigint>", '{"at": [1.5, 2]}', None, "at array<double>"),
        ("g struct<lat: double>", '{"g": {"lon": 1}}', None, "g struct<lat: double, lon: bigint>"),
        # What was known stays, whatever is found.
        ("g string", '{"g": {"lon": 1}}', None, "g string"),
        ("g struct<lat: double>", '{"g": "none"}', None, "g struct<lat: double>"),
        ("p double", '{"p": "dear", "q": 1}', None, "p double, q bigint"),
        ("p string", '{"p": 1}', None, "p string"),
        ("i array<struct<s: string>>", '{"i": [{"s": "a", "n": 1}]}', None, "i array<struct<s: string>>"),
        ("d date", "d\n2026-01-01T10:00:00Z\n", None, "d date"),
        # What is declared counts, whatever was known or found, and though no file has it.
        ("p string", '{"p": 1}', {"p": "float"}, "p double"),
        ("p double", '{"p": "dear"}', {"p": "string"}, "p string"),
        ("p double", '{"p": 1}', {"p": "int"}, "p bigint"),
        ("p bigint", '{"q": 1}', {"p": "float"}, "p double, q bigint"),
        ("", '{"p": 1}', {"q": "float", "g.lat": "float"}, "p bigint, q double, g struct<lat: double>"),
        ("", '{"g": "none"}', {"g.lat": "float"}, "g struct<lat: double>"),
        ("", '{"g.lat": 1}', {"g.lat": "float"}, "`g.lat` double"),
        # Files of CSV say which columns there are.
        ("p double, q bigint", "p\n1\n", None, "p double"),
        ("a bigint, `a.b` bigint", "a\n1\n", None, "a bigint"),
    ],
)
def test_known_columns_go_on(known, lines, schema, expected, tmp_path: Path, spark: SparkSession) -> None:
    found = followed(tmp_path, known, lines, schema, spark)
    assert shown(found.columns) == shown(StructType.fromDDL(expected))


def test_numbers_stay_as_they_are_where_too_wide_ones_were_rejects(tmp_path: Path, spark: SparkSession) -> None:
    found = followed(tmp_path, "p bigint", '{"p": 1.5, "q": 1.5}', None, spark, widening=False)
    assert shown(found.columns) == shown(found.known) == ["p:bigint", "q:double"]


@pytest.mark.parametrize(
    ("known", "lines", "said"),
    [
        ("p double", '{"p": "dear"}', {"p": "number, .* it is string"}),
        ("p double", '{"p": {"now": 1}}', {"p": "number, .* it is an object"}),
        ("g struct<lat: double>", '{"g": "none"}', {"g.lat": "number, .* it is in 'g', which is string"}),
        ("at array<double>", '{"at": "here"}', {"at": "array<numbers>, .* it is string"}),
        ("g string", '{"g": {"lon": 1}}', {"g": "string, .* it is an object"}),
        ("d date", "d\n2026-01-01T10:00:00Z\n", {"d": "date, .* it is timestamp"}),
        ("p bigint, q string", '{"p": 1.5, "q": null}', {}),
    ],
)
def test_what_is_otherwise_now_is_told(known, lines, said, tmp_path: Path, spark: SparkSession) -> None:
    remarks = followed(tmp_path, known, lines, None, spark).remarks
    assert remarks.keys() == said.keys()
    for name, words in said.items():
        assert re.search(f"'{name}' is read as {words}", remarks[name])


def test_what_is_declared_must_not_contradict_itself(tmp_path: Path, spark: SparkSession) -> None:
    with pytest.raises(HarkenError, match="'a' is declared, and so is what is within it"):
        followed(tmp_path, "", '{"a": "x"}', {"a": "string", "a.b": "int"}, spark)


def test_files_without_an_event_tell_of_no_column(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "0.jsonl").touch()
    files = EventFiles.at(str(tmp_path))
    with pytest.raises(InputFileError, match="there is no event yet, so the columns of events are not known"):
        files.columns_to_follow(spark)
    assert shown(files.columns_to_follow(spark, StructType.fromDDL("p double")).columns) == ["p:double"]
    (tmp_path / "1.jsonl").write_text('{"p": 1}\n')
    assert shown(files.columns_to_follow(spark).columns) == ["p:bigint"]
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "0.csv").touch()
    (tmp_path / "csv" / "1.csv").write_text("p,q\n1,007\n")
    assert shown(EventFiles.at(str(tmp_path / "csv")).columns_to_follow(spark).known) == ["p:bigint", "q:string"]


def test_columns_of_later_files_of_parquet_join(tmp_path: Path, spark: SparkSession) -> None:
    pq.write_table(pa.table({"p": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"p": [2], "color": ["red"]}), tmp_path / "2.parquet")
    files = EventFiles.at(str(tmp_path))
    assert shown(files.columns_to_follow(spark, StructType.fromDDL("p bigint")).columns) == [
        "color:string",
        "p:bigint",
    ]
    pq.write_table(pa.table({"p": ["dear"]}), tmp_path / "3.parquet")
    found = files.columns_to_follow(spark, StructType.fromDDL("p bigint"))
    assert shown(found.columns) == ["color:string", "p:bigint"], "one that has other types is in nobody's way"
    remote = EventFiles.at(f"file://{tmp_path}", "parquet").columns_to_follow(spark)
    assert shown(remote.columns) == ["color:string", "p:bigint"]
    assert EventFiles.at(str(tmp_path)).read(spark).columns == ["p", "color"]


@pytest.mark.parametrize(
    ("known", "files", "expected"),
    [
        ("p bigint", ["float64"], "double"),  # and none that is to be read has whole numbers
        ("p double", ["int64"], "bigint"),
        ("p double", ["int32"], "double"),
        ("p bigint", ["int32"], "bigint"),
        ("p decimal(12,2)", ["decimal128(10, 2)"], "decimal(12,2)"),
        ("p decimal(10,2)", ["decimal128(12, 2)"], "decimal(12,2)"),
        ("p int", ["int32", "int64"], "bigint"),
        ("p int", ["int64", "int32"], "bigint"),
        ("p float", ["float32", "float64"], "double"),
    ],
)
def test_numbers_of_parquet_are_read_as_they_can_be(known, files, expected, tmp_path: Path, spark) -> None:
    for number, kind in enumerate(files):
        name, _, digits = kind.partition("(")
        made = pa.decimal128(*map(int, digits[:-1].split(","))) if digits else pa.type_for_alias(name)
        value = Decimal("1.00") if digits else 1
        pq.write_table(pa.table({"p": pa.array([value], made)}), tmp_path / f"{number}.parquet")
    events = EventFiles.at(str(tmp_path))
    found = events.columns_to_follow(spark, StructType.fromDDL(known))
    assert found.columns["p"].dataType.simpleString() == expected
    assert [row.p for row in spark.read.schema(found.columns).parquet(str(tmp_path)).collect()] == [1] * len(files)
    assert [row.p for row in events.read(spark).collect()] == [1] * len(files)


def test_what_spark_does_not_read_tells_nothing(tmp_path: Path, spark: SparkSession) -> None:
    for folder in (".staging", "archive", "_old", "day=1"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "0.csv").write_text("p\nnone\n" if folder != "day=1" else "p\n1\n")
    columns = EventFiles.at(str(tmp_path)).columns_to_follow(spark).columns
    assert columns["p"].dataType.simpleString() == "bigint"


def test_files_of_two_forms_are_not_read_together(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "2.jsonl").write_text('{"p": 1}\n{"p": 2}\n')
    files = EventFiles.at(str(tmp_path))
    assert files.read(spark).count() == 2
    (tmp_path / "1.json").write_text('[{"p": 3},\n {"p": 4}]\n')
    with pytest.raises(InputFileError, match=r"2\.jsonl: it has an event on each line, and other files"):
        files.read(spark)
    with pytest.raises(InputFileError, match=r"1\.json: events span lines, and a stream reads"):
        files.columns_to_follow(spark)
    (tmp_path / "1.json").write_text('[{"p": 3}, {"p": 4}]\n')
    assert shown(files.columns_to_follow(spark).columns) == ["p:bigint"]
    (tmp_path / "2.jsonl").write_text('{"p": 1}\n\n')
    assert files.read(spark).count() == 3


@pytest.mark.parametrize(
    "text", ['oops\n{"p": 1}\n', '{"p": \n{"p": 1}\n', '{\n"p": 1}\n{"p": 2}\n', '{"p": 1},\n{"p": 2},\n']
)
def test_what_is_not_one_value_is_read_line_by_line(text: str, tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "1.json").write_text(text)
    (tmp_path / "2.json").write_text('{"p": 5}\n{"p": 6}\n')
    events = sorted_out(EventFiles.at(str(tmp_path)).read(spark, collect=True)).cache()
    good = {row.p for row in sound(events).collect()}
    assert good >= {5, 6}
    assert events.count() == len(
        [line for each in tmp_path.glob("*.json") for line in each.read_text().splitlines()]
    )


def test_a_value_over_lines_in_any_of_some_files_of_csv_is_one(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "1.csv").write_text("p,q\n1,a\n")
    (tmp_path / "2.csv").write_text('p,q\n2,"a\n7,b"\n')
    assert sorted(row.p for row in EventFiles.at(str(tmp_path)).read(spark).collect()) == [1, 2]
    with gzip.open(tmp_path / "0.csv.gz", "wb"):
        pass
    (tmp_path / "2.csv").write_text("p,q\n2,007\n")
    (tmp_path / "1.csv").unlink()
    assert [row.q for row in EventFiles.at(str(tmp_path)).read(spark).collect()] == ["007"]


def test_the_wider_of_two_whole_numbers_is_taken() -> None:
    narrow, wide = StructType().add("n", IntegerType()), StructType().add("n", LongType())
    assert as_wide(narrow, wide) == as_wide(wide, narrow) == wide
