"""DataFrames of subscriptions: compiled by tasks as texts are here."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from harken.compiler import Texts, compile_texts
from harken.errors import (
    BulkLoadError,
    DuplicateSubscriptionError,
    SubscriptionError,
)
from harken.model.limits import Limits
from harken.model.schema import Schema
from harken.normal.compiled import conform
from harken.spark import Change, Subscriptions, compile_subscriptions
from harken.spark.subscriptions import compiling
from tests.spark.subscriptions.stored import NONE, files, held

MOMENT = datetime(2026, 3, 1, 12, tzinfo=UTC)
TEXTS = [
    ("a", "price < 300 and maker in ('Sony', 'Nikon')", "ann", None, MOMENT),
    ("b", "x = 1 or y = 2.5 or spot within box(0, 0, 1, 1)", None, MOMENT, None),
    ("c", "price < ", "bob", None, None),
    ("d", "day = date '2026-01-01' and seen > timestamp '2026-01-01 00:00:00Z'", None, None, None),
    (None, "x = 1", None, None, None),
    ("e", "name like 'a%' and not (flag = true)", None, MOMENT, MOMENT),
    ("f", None, None, None, None),
    ("g", "true", None, None, None),
]
COLUMNS = "id string, expression string, owner string, valid_from timestamp, valid_until timestamp"


@pytest.fixture(scope="module")
def texts_frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(TEXTS, COLUMNS).repartition(3)


def by_id(frame: DataFrame) -> list[dict[str, object]]:
    """A compiled DataFrame as compile_texts would give it."""
    return sorted(conform(frame.toArrow()).to_pylist(), key=lambda row: str(row["id"]))


def expected_table() -> pa.Table:
    return compile_texts(Texts(*[[row[at] for row in TEXTS] for at in range(5)])).table


def test_a_dataframe_is_compiled_as_texts_are(texts_frame: DataFrame) -> None:
    done = compile_subscriptions(texts_frame)
    try:
        assert by_id(done.compiled) == expected_table().to_pylist()
        rejects = {row["id"]: row for row in done.rejects.collect()}
        assert set(rejects) == {"c", None, "e", "f"}
        assert (rejects["c"].expression, rejects["c"].line, rejects["c"].column) == ("price < ", 1, 9)
        assert rejects["e"].reason == f"valid_from {MOMENT} is not before valid_until {MOMENT}"
        assert rejects[None].expression == "x = 1"
        assert dict(done.rejects.dtypes) == {
            **dict.fromkeys(("id", "expression", "reason"), "string"),
            **dict.fromkeys(("line", "column"), "int"),
        }
    finally:
        done.unpersist()


def test_ids_of_any_integer_type_become_bigint(spark: SparkSession) -> None:
    frame = spark.sql("select cast(7 as tinyint) id, 'x = 1' expression, 'extra' other")
    done = compile_subscriptions(frame)
    assert done.compiled.dtypes[0] == ("id", "bigint")
    assert by_id(done.compiled) == compile_texts(Texts([7], ["x = 1"])).table.to_pylist()
    done.unpersist()


def test_a_dataframe_is_held_to_schema_and_limits(spark: SparkSession) -> None:
    texts = [(1, "x = 1"), (2, "y = 1"), (3, "x = 1.5")]
    frame = spark.createDataFrame(texts, "id int, expression string")
    done = compile_subscriptions(frame, schema=Schema({"x": "int"}), limits=Limits(max_length=5))
    found = {row["id"]: row["reason"] for row in done.rejects.collect()}
    assert found.keys() == {"2", "3"}
    assert found["2"].startswith("the schema has no attribute 'y'")
    assert "7 characters, but max_length allows 5" in found["3"]
    done.unpersist()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("'a' id", "subscriptions need the column 'expression', found id"),
        ("'x = 1' expression", "subscriptions need the column 'id'"),
        ("1.5d id, 'x = 1' expression", "the column 'id' of subscriptions is string, found double"),
        ("1 id, 2 expression", "the column 'expression' of subscriptions is string, found int"),
        (
            "1 id, 'x = 1' expression, date'2026-01-01' valid_from",
            "the column 'valid_from' of subscriptions is timestamp, found date",
        ),
    ],
)
def test_other_columns_are_refused_before_anything_runs(
    spark: SparkSession, store: Subscriptions, columns: str, message: str
) -> None:
    frame = spark.sql(f"select {columns}")
    for take in (compile_subscriptions, store.append):
        with pytest.raises(SubscriptionError, match=message):
            take(frame)


def test_a_dataframe_is_appended_read_and_appended_again(
    spark: SparkSession, store: Subscriptions, texts_frame: DataFrame, tmp_path: Path
) -> None:
    assert store.append(texts_frame, on_error="collect") == Change(1, 4, 4)
    assert by_id(store.read(spark)) == expected_table().to_pylist()
    assert {row["id"] for row in store.rejects(spark).collect()} == {"c", None, "e", "f"}
    store.upsert([("a", "x = 1")])
    store.delete(["g"])
    assert [row["id"] for row in by_id(store.read(spark))] == ["a", "b", "d"]
    assert by_id(store.read(spark, 1)) == expected_table().to_pylist()
    assert by_id(store.read(spark, 0)) == []
    assert store.rejects(spark).collect() == []

    copy = Subscriptions.create(tmp_path / "copy [of] {them}*")
    assert copy.append(store.read(spark, 1)) == Change(1, 4, 0)
    assert by_id(copy.read(spark)) == expected_table().to_pylist()
    assert copy.upsert(spark.createDataFrame([("z", "z =")], "id string, expression string"), on_error="collect")
    assert [row["id"] for row in copy.rejects(spark).collect()] == ["z"]


def test_a_dataframe_with_bad_rows_leaves_nothing_unless_rejects_are_collected(
    store: Subscriptions, texts_frame: DataFrame
) -> None:
    with pytest.raises(BulkLoadError, match="nothing was loaded: 4 rejected"):
        store.append(texts_frame)
    assert store.version == 0
    assert files(store) == []


def test_ids_repeated_in_other_partitions_or_in_use_are_refused(spark: SparkSession, store: Subscriptions) -> None:
    twice = spark.range(0, 4, 1, 4).selectExpr("id % 3 as id", "'x = 1' as expression")
    with pytest.raises(DuplicateSubscriptionError, match="subscription 0 "):
        store.append(twice)
    once = spark.range(0, 3, 1, 2).selectExpr("id", "concat('x = ', id) as expression")
    assert store.append(once) == Change(1, 3, 0)
    with pytest.raises(DuplicateSubscriptionError):
        store.append(once.where("id = 2"))
    assert len(files(store)) == len(store.snapshot().segments) == 2
    assert store.upsert(once.selectExpr("id", "'x = 9' as expression").where("id > 0")).version == 2
    assert store.delete(once.where("id < 2")).version == 3
    assert held(store) == {2: 9}


def test_a_compiled_dataframe_can_be_appended(
    store: Subscriptions, texts_frame: DataFrame, spark: SparkSession
) -> None:
    done = compile_subscriptions(texts_frame)
    assert store.append(done.compiled) == Change(1, 4, 0)
    done.unpersist()
    assert by_id(store.read(spark)) == expected_table().to_pylist()


def test_a_job_that_fails_makes_no_version(spark: SparkSession, store: Subscriptions) -> None:
    failing = spark.range(0, 4, 1, 4).selectExpr("id", "if(id = 3, raise_error('bad'), 'x = 1') as expression")
    with pytest.raises(PySparkException, match="bad"):
        store.append(failing)
    assert store.version == 0
    store.vacuum(orphans=NONE)
    assert files(store) == []


def test_many_rows_are_compiled_in_portions(store: Subscriptions, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each portion brings its own dictionaries of names into the file."""
    monkeypatch.setattr(compiling, "PORTION", 2)
    batches = [pa.RecordBatch.from_pydict({"id": [n], "expression": [f"x{n} = {n}"]}) for n in range(7)]
    tables = list(compiling.portions(iter(batches)))
    assert [table.num_rows for table in tables] == [2, 2, 2, 1]
    for table in tables:
        store.append(table)
    store.compact()
    (table,) = store.tables(store.snapshot())
    named = {row["id"]: row["clauses"][0][0]["attribute"] for row in table.to_pylist()}
    assert named == {n: f"x{n}" for n in range(7)}
    assert set(store.snapshot().profile.attributes) == {f"x{n}" for n in range(7)}


def test_ids_of_any_kind_of_text_are_deleted(lent_spark: SparkSession, store: Subscriptions) -> None:
    lent_spark.conf.set("spark.sql.preserveCharVarcharTypeInfo", "true")
    store.append([("one", "x = 1"), ("two", "x = 2"), ("three", "x = 3")])
    store.delete(lent_spark.sql("SELECT cast('one' AS varchar(9)) AS id, 1 AS other"))
    store.delete(lent_spark.sql("SELECT 'two' COLLATE UTF8_LCASE AS id"))
    assert held(store) == {"three": 3}
