"""Columns may be called anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from harken.errors import EventError
from harken.spark import Index, match
from tests.spark.matching.frames import STRATEGIES, indexed, pairs

NAMES = {
    "dotted": ("a.b", 5),
    "quoted": ("x`y", 6),
    "spaced": ("two words", 7),
    "umlaut": ("größe", 8),
    "said": ('say "hi"', 9),
}


def test_names_may_have_dots_backticks_spaces_and_anything(spark: SparkSession, folder: Path) -> None:
    rows = {id: '"{}" = {}'.format(name.replace('"', '""'), value) for id, (name, value) in NAMES.items()}
    inner = {"p.q.r": 1, "p.b`t": 2, "p.in ner.a.b": 3}
    rows |= {name: f'"{name}" = {value}' for name, value in inner.items()}
    index = indexed(spark, folder / "names", rows)
    field = {name: f"`{name.replace('`', '``')}` int" for name, _ in NAMES.values()}
    nested = "p struct<`q.r`:int,`b``t`:int,`in ner`:struct<`a.b`:int>>"
    events = spark.createDataFrame(
        [(*(value for _, value in NAMES.values()), (1, 2, (3,)))], ", ".join([*field.values(), nested])
    )
    kept = [name for name, _ in NAMES.values()]
    for strategy in STRATEGIES:
        found = match(events, index, event_id="x`y", keep=kept, strategy=strategy)
        assert found.columns == ["event", "subscription", *kept]
        assert pairs(found) == [(6, id, 5, 6, 7, 8, 9) for id in sorted(rows)]


def test_an_attribute_that_occurs_twice_is_an_error(spark: SparkSession, typed_index: Index) -> None:
    events = spark.sql("select 1 as `place.city`, named_struct('city', 'Bonn') as place")
    with pytest.raises(EventError, match=r"attribute 'place\.city' occurs twice"):
        match(events, typed_index)


def test_columns_that_differ_by_case_only_are_told_apart_if_spark_does(spark: SparkSession, folder: Path) -> None:
    index = indexed(spark, folder / "case", {"small": "price < 3", "large": '"Price" > 3', "field": "at.x = 1"})
    frames = {
        "price int, Price int": (1, 9),
        "at struct<x:int>, At struct<y:int>": ((1,), (2,)),
        "at struct<x:int,X:int>": ((1, 2),),
    }
    for columns, row in frames.items():
        with pytest.raises(EventError, match=r"columns '.*' and '.*' differ by case only; rename one, or set"):
            match(spark.createDataFrame([row], columns), index)
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        found = [pairs(match(spark.createDataFrame([row], columns), index)) for columns, row in frames.items()]
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert [[id for _, id in each] for each in found] == [["large", "small"], ["field"], ["field"]]


def test_dotted_names_are_no_structs_and_what_is_handed_through_is_told_apart_too(
    spark: SparkSession, folder: Path
) -> None:
    index = indexed(spark, folder / "dots", {"dotted": '"a.b" = 1', "plain": '"A" = 2'})
    events = spark.createDataFrame([(1, 2)], "`a.b` int, A int")
    assert [id for _, id in pairs(match(events, index))] == ["dotted", "plain"]
    with pytest.raises(EventError, match=r"columns 'ID' and 'id' differ by case only"):
        match(spark.createDataFrame([(1, 2, 3)], "id int, ID int, A int"), index, event_id="id")


@pytest.mark.parametrize("setting", ["true", "TRUE"])
def test_spark_may_be_told_to_heed_case_in_capitals(spark: SparkSession, folder: Path, setting: str) -> None:
    index = indexed(spark, folder / f"heed {setting}", {"large": '"Price" > 3'})
    spark.conf.set("spark.sql.caseSensitive", setting)
    try:
        events = spark.createDataFrame([(1, 9)], "price int, Price int")
        assert [id for _, id in pairs(match(events, index))] == ["large"]
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_names_that_look_like_variables_are_names(spark: SparkSession, folder: Path) -> None:
    """In SQL, Spark would put the value of the setting in their place, be it a column or a field."""
    name = "${spark.app.name}"
    index = indexed(spark, folder / "variables", {"column": f'"{name}" = 1', "field": f'"p.{name}" = 1'})
    columns = f"`{name}` int, `{spark.conf.get('spark.app.name')}` int, p struct<`{name}`:int>"
    events = spark.createDataFrame([(1, 2, (1,)), (2, 1, (2,))], columns)
    for strategy in STRATEGIES:
        found = match(events, index, event_id=name, keep=[name], strategy=strategy)
        assert pairs(found) == [(1, "column", 1), (1, "field", 1)]


@pytest.mark.parametrize("setting", ["true", "false"])
def test_quotes_in_fields_are_read_alike_however_sql_escapes_them(
    spark: SparkSession, folder: Path, setting: str
) -> None:
    rows = {"quoted": '"p.it\'s" = 1', "slashed": '"p.a\\nb" = 2'}
    index = indexed(spark, folder / f"escaped {setting}", rows)
    events = spark.createDataFrame([((1, 2),)], "p struct<`it's`:int,`a\\nb`:int>")
    spark.conf.set("spark.sql.parser.escapedStringLiterals", setting)
    try:
        assert [id for _, id in pairs(match(events, index))] == ["quoted", "slashed"]
    finally:
        spark.conf.unset("spark.sql.parser.escapedStringLiterals")


def test_fields_may_have_quotes_and_backslashes_and_be_called_like_an_alias(
    spark: SparkSession, folder: Path
) -> None:
    index = indexed(spark, folder / "fields", {"odd": '"p.it\'s a \\ n" = 1', "aliased": "p.q = 2"})
    events = spark.createDataFrame([((1, 2), 3)], "p struct<`it's a \\ n`:int,q:int>, q int").alias("p")
    assert [id for _, id in pairs(match(events, index))] == ["aliased", "odd"]
