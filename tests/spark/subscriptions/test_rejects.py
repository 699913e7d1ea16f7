"""Rows that are no subscriptions change nothing, or are told with reason and place."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from harken.compiler import Texts, compile_texts
from harken.errors import (
    BulkLoadError,
)
from harken.spark import Change, Subscriptions
from harken.spark.subscriptions import compiling
from tests.spark.subscriptions.stored import files, held, rows

BAD = [(1, "x = 1"), (2, "x = = 2"), (3, "x = 3\n  and (y > 'a' or"), (4, None), ("", "x = 5")]


def test_with_raise_a_bad_row_leaves_no_files_and_no_version(store: Subscriptions) -> None:
    with pytest.raises(BulkLoadError, match="nothing was loaded: 4 rejected") as caught:
        store.append(BAD)
    assert [reject.row for reject in caught.value.rejects] == [1, 2, 3, 4]
    assert "the first is row 1: line 1, column 5" in str(caught.value)
    assert store.version == 0
    assert files(store) == []


def test_with_collect_bad_rows_are_written_with_reason_line_and_column(
    store: Subscriptions, spark: SparkSession
) -> None:
    assert store.append(BAD, on_error="collect") == Change(1, 1, 4)
    assert held(store) == {1: 1}
    found = {row["id"]: row for row in store.rejects(spark).collect()}
    assert set(found) == {"2", "3", "4", ""}
    assert (found["2"].expression, found["2"].line, found["2"].column) == ("x = = 2", 1, 5)
    assert (found["3"].line, found["3"].column) == (2, 18)
    assert found["3"].reason.startswith("the expression ends too early")
    assert found["4"].expression is None
    assert "string or an integer" not in found["4"].reason
    assert store.rejects(spark, 0).collect() == []
    assert store.rejects(spark, 0).columns == ["id", "expression", "reason", "line", "column"]


def test_what_cannot_be_written_as_text_is_rejected_like_anything_else(store: Subscriptions) -> None:
    """Lone surrogates, and numbers that Python does not print."""
    hostile = [("\ud800", "x = 1"), ("a", "x = '\udfff'"), ("b", object()), (10**5_000, "x = 1"), ("c", "x = 3")]
    assert store.append(hostile, on_error="collect") == Change(1, 1, 4)
    assert held(store) == {"c": 3}


def test_only_known_ways_to_treat_errors_are_taken(store: Subscriptions) -> None:
    with pytest.raises(ValueError, match="on_error is 'raise' or 'collect', found 'ignore'"):
        store.append(rows(1), on_error="ignore")  # type: ignore[arg-type]


def test_a_compiled_table_is_checked_like_texts(store: Subscriptions) -> None:
    table = compile_texts(Texts([1, 2], ["x = 1", "x like 'a%'"])).table
    broken = json.loads(json.dumps(table.to_pylist()))
    broken[1]["clauses"][0][0]["operator"] = "resembles"
    source = pa.Table.from_pylist(broken, pa.schema([("id", pa.int64()), ("clauses", _plain_clauses())]))
    assert store.append(source, on_error="collect") == Change(1, 1, 1)
    assert held(store) == {1: 1}


def _plain_clauses() -> pa.DataType:
    return compiling._plain_type(compile_texts(Texts([1], ["true"])).table.schema.field("clauses").type)
