"""Arrays of numbers are points and boxes, where these are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from harken.spark import Index, match, plan
from tests.spark.matching.frames import STRATEGIES, indexed, pairs


@pytest.fixture(scope="module")
def shapes(spark: SparkSession, folder: Path) -> Index:
    rows = {
        1: "spot within box(0, 0, 1, 1)",
        2: "area overlaps box(0, 0, 1, 1)",
        3: "area contains point(3.5, 3.5)",
        4: "spot = point(5, 5)",
        5: "spot is null",
        6: "path is not null",
        7: "line = 1",
    }
    return indexed(spark, folder / "shapes", rows)


@pytest.mark.parametrize("number", ["double", "float"])
def test_arrays_of_numbers_are_points_and_boxes(spark: SparkSession, shapes: Index, number: str) -> None:
    rows = [
        (1, [0.5, 0.5], [0.0, 0.0, 2.0, 2.0]),
        (2, None, None),
        (3, [5.0, 5.0], [3.0, 3.0, 4.0, 4.0]),
        (4, None, [1.0, 1.0, 5.0, 5.0]),
    ]
    columns = f"id int, spot array<{number}>, area array<{number}>"
    events = spark.createDataFrame(rows, columns).selectExpr("*", "area as path").repartition(1)
    strategy = "local" if number == "double" else "grid"
    found = match(events, shapes, event_id="id", strategy=strategy)
    assert pairs(found) == [(1, 1), (1, 2), (1, 6), (2, 5), (3, 3), (3, 4), (3, 6), (4, 2), (4, 3), (4, 5), (4, 6)]


def test_arrays_of_numbers_of_which_no_shape_is_asked_are_foreign(spark: SparkSession, shapes: Index) -> None:
    planned = plan(spark.sql("select array(1d, 2d) line, array(1d, 2d) spot"), shapes)
    assert [each.partition(",")[0] for each in planned.warnings] == ["'line' is array<double>"]
    assert [row.subscription for row in planned.frame.collect()] == []


def test_shapes_that_are_all_missing_are_missing(spark: SparkSession, shapes: Index) -> None:
    events = spark.createDataFrame([(1, None), (2, None)], "id int, spot array<double>")
    assert pairs(match(events, shapes, event_id="id")) == [(1, 5), (2, 5)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_points_boxes_and_lists_that_are_neither_may_be_mixed(
    spark: SparkSession, shapes: Index, strategy: str
) -> None:
    rows = [
        (1, [0.5, 0.5], [0.0, 0.0]),
        (2, [0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 2.0, 2.0]),
        (3, [1.0, 2.0, 3.0], None),
        (4, [1.0, None], []),
        (5, None, [3.5, 3.5]),
        (6, [], [9.0, 9.0, 9.0, 9.0, 9.0]),
    ]
    events = spark.createDataFrame(rows, "id int, spot array<double>, area array<double>").repartition(1)
    found = match(events, shapes, event_id="id", strategy=strategy)
    assert pairs(found) == [(1, 1), (1, 2), (2, 1), (2, 2), (5, 3), (5, 5)]
