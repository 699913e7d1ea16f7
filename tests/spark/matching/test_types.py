"""Values of every type are compared exactly; those that the language has not are foreign."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from harken import Engine
from harken.errors import EventError, SchemaError
from harken.spark import Index, Subscriptions, build_index, match, plan
from harken.spark.events.columns import Transport
from tests.spark.matching.frames import STRATEGIES, TYPED_MATCHES, TYPED_SUBSCRIPTIONS, indexed, pairs


@pytest.fixture
def zone(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """A session whose time is another's."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns"], indirect=True)
def test_values_of_every_type_are_compared_exactly(typed: DataFrame, typed_index: Index, zone: str) -> None:
    found = match(typed, typed_index, event_id="id")
    assert found.dtypes == [("event", "int"), ("subscription", "bigint")]
    expected = [(event, subscription) for event, ids in TYPED_MATCHES.items() for subscription in ids]
    assert pairs(found) == expected


def test_an_engine_finds_the_same_in_the_same_columns(typed: DataFrame) -> None:
    engine = Engine()
    engine.subscribe_many(TYPED_SUBSCRIPTIONS.items())
    events = typed.toArrow()
    found = engine.match_batch(events)
    ids = events.column("id").take(found.column("event")).to_pylist()
    expected = [(event, subscription) for event, some in TYPED_MATCHES.items() for subscription in some]
    assert sorted(zip(ids, found.column("subscription").to_pylist(), strict=True)) == expected


def test_only_what_is_asked_for_travels(typed: DataFrame, spark: SparkSession, folder: Path) -> None:
    """Of arrays and maps, and whatever else nobody asks for, nothing is read."""
    index = indexed(spark, folder / "asked", {1: "place.at.zone = 7 and tiny > 0", 2: "absent = 1 or price > 1"})
    planned = plan(typed, index, event_id="id", keep=["flag"])
    assert planned.transport == Transport(("tiny", "price", "place.at.zone"), (), 2)
    assert str(planned).splitlines()[1] == "3 attributes travel"


FOREIGN = {
    "array(1)": "array<int>",
    "map('a', 1)": "map<string,int>",
    "cast('a' as binary)": "binary",
    "interval '1' day": "interval day",
    "interval '1' month": "interval month",
    "array(array(1.5d))": "array<array<double>>",
    "array(named_struct('id', 1))": "array<struct<id:int>>",
    "parse_json('[1]')": "variant",
}


@pytest.fixture(scope="module")
def asking(spark: SparkSession, folder: Path) -> Index:
    rows = {
        1: "whole is null",
        2: "exists whole",
        3: "whole = 1",
        4: "not whole = 'a'",
        5: "exists whole.id",
        6: "n = 1",
        7: "place.city is not null and n = 1",
    }
    return indexed(spark, folder / "asking", rows)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("column", FOREIGN)
def test_a_column_of_a_type_the_language_has_not_is_foreign(
    spark: SparkSession, asking: Index, column: str, strategy: str
) -> None:
    """It matters to nobody else, and `plan` tells before anything runs."""
    events = spark.sql(
        f"select n, if(n = 1, {column}, null) whole, named_struct('city', if(n = 1, {column}, null)) place "
        "from values (1), (2) as rows(n)"
    )
    planned = plan(events, asking, event_id="n", strategy=strategy)
    kind = FOREIGN[column]
    assert planned.warnings == tuple(
        f"{name!r} is {kind}, which is foreign: it is there for IS NULL and EXISTS, and all else is unknown"
        for name in ("whole", "place.city")
    )
    assert f"warning: 'whole' is {kind}, which is foreign" in str(planned)
    assert pairs(planned.frame) == [(1, 2), (1, 5), (1, 6), (1, 7), (2, 1)]


def test_a_number_that_is_none_is_foreign_in_its_row_alone(spark: SparkSession, folder: Path) -> None:
    rows = {1: "real < 1", 2: "exists real", 3: "real is null", 4: "not real < 1"}
    index = indexed(spark, folder / "nan", rows)
    events = spark.sql("select * from values (1, double('NaN')), (2, 0.5d), (3, null) as rows(id, real)")
    planned = plan(events, index, event_id="id")
    assert planned.warnings == ()
    assert pairs(planned.frame) == [(1, 2), (2, 1), (2, 2), (3, 3)]


@pytest.fixture(scope="module")
def declaring(spark: SparkSession, folder: Path) -> Index:
    schema = {"price": "float", "tags": "int", "spot": "point", "unasked": "float"}
    store = Subscriptions.create(folder / "declaring", schema=schema)
    store.append({1: "price < 5", 2: "tags is null", 3: "spot within box(0, 0, 9, 9)"}.items())
    return build_index(spark, store, shards=2)


FAULTY = """
    select * from values
        (1, 1d, cast(null as array<int>), array(1d, 1d), 1d),
        (2, double('NaN'), null, null, 1d),
        (3, 1d, array(7), null, 1d),
        (4, 1d, null, array(1d, 2d, 3d, 4d), 1d),
        (5, 1d, null, array(1d), 1d),
        (6, 1d, null, null, double('NaN')),
        (7, 9d, null, null, null)
    as rows(id, price, tags, spot, unasked)"""
REJECTS = [
    (2, "price", "attribute 'price' is declared float, found NaN", "nan"),
    (3, "tags", "attribute 'tags' is declared int, found array<int>", "[7]"),
    (
        4,
        "spot",
        "attribute 'spot' is declared point, found fixed_size_list<...>[4]",
        "[1.0, 2.0, 3.0, 4.0]",
    ),
    (5, "spot", "attribute 'spot' is declared point, found list<element: double>", "[1.0]"),
    (6, "unasked", "attribute 'unasked' is declared float, found NaN", "nan"),
]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_events_at_fault_are_collected_and_all_others_matched(
    spark: SparkSession, declaring: Index, strategy: str
) -> None:
    events = spark.sql(FAULTY).repartition(1)
    found = match(events, declaring, event_id="id", strategy=strategy, on_error="collect")
    assert pairs(found.matches) == [(1, 1), (1, 2), (1, 3), (7, 2)]
    rejects = sorted((row.event, row.attribute, row.reason, row.value) for row in found.rejects.collect())
    assert [(event, attribute) for event, attribute, _, _ in rejects] == [each[:2] for each in REJECTS]
    assert [(reason.split("<")[0], value) for _, _, reason, value in rejects] == [
        (reason.split("<")[0], value) for _, _, reason, value in REJECTS
    ]
    grouped = match(events, declaring, strategy=strategy, how="grouped", on_error="collect")
    assert sorted(sorted(row.subscriptions) for row in grouped.matches.collect()) == [[1, 2, 3], [2]]
    assert sorted(row.event for row in grouped.rejects.collect()) == [1, 2, 3, 4, 5]


def test_a_stream_is_refused_with_the_word_for_streams(spark: SparkSession, declaring: Index) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(EventError, match=r"the events are a stream.*; match_stream is for streams"):
        match(stream, declaring)


def test_an_event_at_fault_fails_the_job_otherwise(spark: SparkSession, declaring: Index) -> None:
    with pytest.raises(PySparkException, match="EventError: event 0: attribute 'price' is declared float"):
        match(spark.sql(FAULTY).drop("tags").where("id = 2"), declaring).collect()
    for strategy, how in (("local", "pairs"), ("grid", "pairs"), ("grid", "grouped")):
        faulty = spark.sql(FAULTY).drop("tags").where("id = 2")
        with pytest.raises(PySparkException, match="EventError: event 2: attribute 'price' is declared float"):
            match(faulty, declaring, event_id="id", strategy=strategy, how=how).collect()  # type: ignore[call-overload]
    with pytest.raises(SchemaError, match="'tags' is declared int, found array<int>"):
        match(spark.sql(FAULTY), declaring)
    with pytest.raises(ValueError, match="on_error is one of"):
        match(spark.sql(FAULTY), declaring, on_error="ignore")  # type: ignore[call-overload]


def test_an_event_at_fault_is_named_though_python_has_no_such_date(spark: SparkSession, declaring: Index) -> None:
    events = spark.sql("SELECT date_add(DATE '9999-12-31', 1) AS id, double('NaN') AS price")
    with pytest.raises(PySparkException, match=r"EventError: event 10000-01-01: attribute 'price'"):
        match(events, declaring, event_id="id").collect()


def test_without_a_schema_no_event_is_rejected(spark: SparkSession, asking: Index) -> None:
    found = match(spark.sql("select 1 n, double('NaN') whole"), asking, event_id="n", on_error="collect")
    assert pairs(found.matches) == [(1, 2), (1, 5), (1, 6)]
    assert (found.rejects.columns, found.rejects.collect()) == (["event", "attribute", "reason", "value"], [])
