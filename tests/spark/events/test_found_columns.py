"""The columns of a stream are those of the files there are, of a schema, and of what is known from before."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType, LongType, StructType

from harken.errors import HarkenError
from harken.model.schema import Schema
from harken.spark.events.found_columns import as_wide
from harken.spark.events.sources import EventFiles


def followed(
    folder: Path, known: str, lines: str, schema: dict[str, str] | None, spark: SparkSession
) -> StructType:
    """The columns of a stream of one file, CSV if it begins with names."""
    file = folder / ("events.jsonl" if lines.startswith("{") else "events.csv")
    file.write_text(lines)
    files = EventFiles.at(str(folder), schema=None if schema is None else Schema(schema))
    before = StructType.fromDDL(known) if known else StructType()
    columns, noted = files.columns_to_follow(spark, before)
    assert set(noted.names) >= set(before.names)
    return columns


@pytest.mark.parametrize(
    ("known", "lines", "schema", "expected"),
    [
        ("p double, q bigint", '{"p": 1}', None, "p double, q bigint"),
        ("p bigint", '{"p": 1.5}', None, "p double"),
        ("p bigint", '{"p": null}', None, "p bigint"),
        ("at array<bigint>", '{"at": [1.5, 2]}', None, "at array<double>"),
        ("g struct<lat: double>", '{"g": {"lon": 1}}', None, "g struct<lon: bigint, lat: double>"),
        ("g string", '{"g": {"lon": 1}}', None, "g struct<lon: bigint>"),
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
    assert sorted(each.simpleString() for each in found) == sorted(
        each.simpleString() for each in StructType.fromDDL(expected)
    )


@pytest.mark.parametrize(
    ("known", "lines", "schema", "said"),
    [
        ("p double", '{"p": "dear"}', None, "'p' was number .* is string"),
        ("p double", '{"p": {"now": 1}}', None, "'p' was number .* is an object"),
        ("g struct<lat: double>", '{"g": "none"}', None, "'g.lat' was number .* is in 'g', which is string"),
        ("at array<double>", '{"at": "here"}', None, "'at' was array<numbers> .* is string"),
        ("p string", '{"p": 1}', None, "'p' was string .* is number"),
        ("d date", "d\n2026-01-01T10:00:00Z\n", None, "'d' was date .* is timestamp"),
        ("", '{"a": "x"}', {"a": "string", "a.b": "int"}, "'a' is declared, and so is what is within it"),
    ],
)
def test_columns_of_another_kind_are_refused(
    known, lines, schema, said, tmp_path: Path, spark: SparkSession
) -> None:
    with pytest.raises(HarkenError, match=said):
        followed(tmp_path, known, lines, schema, spark)


def test_the_wider_of_two_whole_numbers_is_taken() -> None:
    narrow, wide = StructType().add("n", IntegerType()), StructType().add("n", LongType())
    assert as_wide(narrow, wide) == as_wide(wide, narrow) == wide
