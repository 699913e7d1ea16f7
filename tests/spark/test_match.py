"""DataFrame in, DataFrame out: events of every type and shape meet the subscriptions they satisfy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from harken import Engine
from harken.errors import ArgumentTypeError, BulkLoadError, EventError, SchemaError, SubscriptionError
from harken.language import parse
from harken.model.evaluation import truth
from harken.spark import Index, Subscriptions, build_index, match, plan
from harken.spark.events import partitioning
from harken.spark.events.columns import Transport
from harken.spark.index.worker_cache import Parts
from harken.spark.matching import batch as matching
from harken.spark.matching import tasks
from harken.spark.matching.tasks import Request, route_events
from harken.spark.runtime.session import BATCH_BYTES
from harken.spark.subscriptions.profile import Profile

Ids = Mapping[int, str] | Mapping[str, str]
STRATEGIES = ("local", "grid")


def pairs(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in frame.collect())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("match")


def indexed(spark: SparkSession, path: Path, rows: Ids, shards: int = 1, **rules: Mapping[str, str]) -> Index:
    store = Subscriptions.create(path, **rules)  # type: ignore[arg-type]
    store.append(rows.items())
    return build_index(spark, store, shards=shards)


# ---------------------------------------------------------------- types

NOON = datetime(2026, 2, 28, 12, 30, 0, 1, tzinfo=UTC)
BEFORE_1970 = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
LARGE, SMALL = Decimal("99999999999999999999.999999999999999999"), Decimal("0.000000000000000001")
COLUMNS: dict[str, tuple[str, list[object]]] = {
    "id": ("int", [1, 2, 3, 4]),
    "whole": ("bigint", [2**53 + 1, 2**53, 2**63 - 1, None]),
    "tiny": ("tinyint", [5, -128, 127, None]),
    "real": ("double", [0.1, float(2**53), float("inf"), None]),
    "half": ("float", [0.5, 0.1, -0.0, None]),
    "price": ("decimal(38,18)", [Decimal("1.10"), SMALL, LARGE, None]),
    "flag": ("boolean", [True, False, None, None]),
    "text": ("string", ["a", "日本 \U0001f600\x00'\"\\%_\n", "", None]),
    "day": ("date", [date(2026, 2, 28), date(1969, 12, 31), date(9999, 12, 31), None]),
    "seen": ("timestamp", [NOON, BEFORE_1970, datetime(9999, 12, 30, tzinfo=UTC), None]),
    "local": ("timestamp_ntz", [NOON.replace(tzinfo=None), datetime.min, datetime.max, None]),
    "nothing": ("void", [None, None, None, None]),
    "place": (
        "struct<city:string, at:struct<zone:int, name:string>>",
        [("Bonn", (7, "x")), ("Ulm", None), (None, (8, None)), None],
    ),
    "tags": ("array<string>", [["a"], [], None, None]),
    "extra": ("map<string,int>", [{"a": 1}, {}, None, None]),
}
TYPED_SUBSCRIPTIONS = {
    1: "whole = 9007199254740993",
    2: "whole = 9007199254740992.0",
    3: "whole > 9007199254740992.0",
    4: "tiny >= 5 and tiny < 127.5",
    5: "real = 0.1",
    6: "real = 9007199254740992",
    7: "real > 1e308",
    8: "half = 0.1",
    9: "half = 0.5 or half = 0",
    10: "price = 1.10",
    11: "price < 1e-17",
    12: "price > 9223372036854775807 and price < 1e20",
    13: "flag = true",
    14: "not (flag = true)",
    15: "text = 'a'",
    16: "text like '日本%'",
    17: "text = ''",
    18: "text contains '\U0001f600'",
    19: "day = date '2026-02-28'",
    20: "day < date '1970-01-01' or day = date '9999-12-31'",
    21: "seen = timestamp '2026-02-28 12:30:00.000001Z'",
    22: "seen = timestamp '2026-02-28 13:30:00.000001+01:00'",
    23: "seen < timestamp '1970-01-01 00:00:00Z'",
    24: "local = timestamp '2026-02-28 12:30:00.000001Z'",
    25: "local < timestamp '0001-01-01 00:00:01Z' or local > timestamp '9999-12-31 23:00:00Z'",
    26: "nothing is null and exists whole",
    27: "place.city = 'Bonn' and place.at.zone = 7",
    28: "place.city = 'Ulm' and place.at.zone is null",
    29: "place.at.zone = 8 and place.at.name is null",
    30: "absent is null and real = 0.1",
    31: "absent = 1",
    32: "whole is null and place.city is null",
    33: "day = timestamp '2026-02-28 00:00:00Z'",
    34: "text = 1",
    35: "true",
}
TYPED_MATCHES = {
    1: [1, 3, 4, 5, 9, 10, 13, 15, 19, 21, 22, 24, 26, 27, 30, 35],
    2: [2, 6, 11, 14, 16, 18, 20, 23, 25, 26, 28, 35],
    3: [3, 4, 7, 9, 12, 17, 20, 25, 26, 29, 35],
    4: [32, 35],
}


@pytest.fixture(scope="module")
def typed(spark: SparkSession) -> DataFrame:
    rows = list(zip(*(values for _, values in COLUMNS.values()), strict=True))
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
    return spark.createDataFrame(rows, columns).repartition(2).cache()


@pytest.fixture(scope="module")
def typed_index(spark: SparkSession, folder: Path) -> Index:
    return indexed(spark, folder / "typed", TYPED_SUBSCRIPTIONS)


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


def test_without_a_schema_no_event_is_rejected(spark: SparkSession, asking: Index) -> None:
    found = match(spark.sql("select 1 n, double('NaN') whole"), asking, event_id="n", on_error="collect")
    assert pairs(found.matches) == [(1, 2), (1, 5), (1, 6)]
    assert (found.rejects.columns, found.rejects.collect()) == (["event", "attribute", "reason", "value"], [])


# ---------------------------------------------------------------- names

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


# ---------------------------------------------------------------- geometry


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


# ---------------------------------------------------------------- what comes with a match

KEPT = {
    "list": "array(1, 2)",
    "dictionary": "map('x', array(1))",
    "record": "named_struct('p', 1, 'q', named_struct('r', 's'))",
    "bytes": "cast('ab' as binary)",
    "span": "interval '1' day",
    "amount": "cast(1.5 as decimal(20,3))",
    "moment": "timestamp'2026-01-01 00:00:00'",
    "local": "timestamp_ntz'2026-01-01 00:00:00'",
    "day": "date'2026-01-01'",
    "records": "array(named_struct('z', array(1)))",
    "nothing": "cast(null as string)",
}


@pytest.fixture(scope="module")
def everything(spark: SparkSession, folder: Path) -> Index:
    """Two subscriptions that every event satisfies, in shards of their own."""
    return indexed(spark, folder / "everything", {1: "true", 2: "absent is null"}, shards=2)


@pytest.mark.parametrize("how", ["pairs", "grouped"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_columns_of_any_type_are_kept(
    spark: SparkSession, everything: Index, strategy: str, how: tasks.How
) -> None:
    events = spark.sql(f"select 7 id, {', '.join(f'{value} as {name}' for name, value in KEPT.items())}")
    found = match(events, everything, event_id="id", keep=list(KEPT), how=how, strategy=strategy)  # type: ignore[arg-type]
    assert dict(found.dtypes[2:]) == dict(events.dtypes[1:])
    kept = tuple(events.collect()[0])[1:]
    rows = [tuple(row) for row in found.collect()]
    assert [row[2:] for row in rows] == [kept] * len(rows)
    if how == "pairs":
        assert sorted(row[:2] for row in rows) == [(7, 1), (7, 2)]
    else:
        assert [(event, sorted(ids)) for event, ids, *_ in rows] == [(7, [1, 2])]


@pytest.mark.parametrize("name", ["list", "record", "bytes", "nothing"])
def test_any_column_may_be_the_id_of_events(spark: SparkSession, everything: Index, name: str) -> None:
    events = spark.sql(f"select {KEPT[name]} as `the id`")
    found = match(events, everything, event_id="the id")
    assert found.dtypes[0] == ("event", events.dtypes[0][1])
    value = events.collect()[0][0]
    assert sorted(map(tuple, found.collect()), key=lambda row: row[1]) == [(value, 1), (value, 2)]


def test_events_without_an_id_are_numbered(spark: SparkSession, everything: Index) -> None:
    events = spark.range(0, 7, 1, 3).selectExpr("id", "id % 2 as other")
    seen = []
    for strategy in STRATEGIES:
        rows = match(events, everything, keep=["id"], strategy=strategy).collect()
        assert len(rows) == 14
        seen.append({row["id"]: row["event"] for row in rows})
        assert len(set(seen[-1].values())) == 7
    assert seen[0] == seen[1]


def test_events_of_equal_ids_are_grouped_apart(spark: SparkSession, everything: Index) -> None:
    events = spark.createDataFrame([(1, "a"), (1, "b"), (None, "c")], "id int, name string")
    for strategy in STRATEGIES:
        found = match(events, everything, event_id="id", keep=["name"], how="grouped", strategy=strategy)
        assert found.dtypes == [("event", "int"), ("subscriptions", "array<bigint>"), ("name", "string")]
        rows = {row["name"]: (row["event"], sorted(row["subscriptions"])) for row in found.collect()}
        assert rows == {"a": (1, [1, 2]), "b": (1, [1, 2]), "c": (None, [1, 2])}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_events_without_any_column_that_is_asked_for_are_matched(
    spark: SparkSession, everything: Index, strategy: str
) -> None:
    found = match(spark.range(0, 5, 1, 2), everything, strategy=strategy)  # type: ignore[arg-type]
    assert sorted(row["subscription"] for row in found.collect()) == [1] * 5 + [2] * 5


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_events_give_no_matches(spark: SparkSession, everything: Index, strategy: str) -> None:
    for events in (spark.createDataFrame([], "id int, absent int"), spark.range(3).where("id > 7")):
        found = match(events, everything, event_id="id", keep=["id"], strategy=strategy)  # type: ignore[arg-type]
        assert found.columns == ["event", "subscription", "id"]
        assert found.collect() == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"event_id": "key"}, "events have no column 'key'"),
        ({"keep": ["nmae"]}, "events have no column 'nmae'; did you mean 'name'?"),
        ({"keep": ["place.city"]}, "events have no column 'place.city'"),
        ({"keep": ["event"]}, "a column 'event' cannot be kept: the answer has one of that name"),
        ({"keep": ["name", "name"]}, "a column 'name' cannot be kept"),
    ],
)
def test_columns_that_cannot_be_kept_are_named(
    spark: SparkSession, everything: Index, arguments: dict[str, object], said: str
) -> None:
    events = spark.sql("select 'a' name, 1 event, named_struct('city', 'Bonn') place")
    with pytest.raises(EventError, match=re.escape(said)):
        match(events, everything, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("arguments", [{"how": "lists"}, {"strategy": "magic"}])
def test_other_ways_are_refused(spark: SparkSession, everything: Index, arguments: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"(how|strategy) is one of .*, found '(lists|magic)'"):
        match(spark.range(1), everything, **arguments)  # type: ignore[arg-type]


def test_events_that_are_no_frame_and_one_name_to_keep_are_refused(spark: SparkSession, everything: Index) -> None:
    with pytest.raises(ArgumentTypeError, match="events is a DataFrame of Spark, found list; for others there is"):
        match([{"x": 1}], everything)  # type: ignore[call-overload]
    with pytest.raises(ArgumentTypeError, match=r"keep is a list .*, found 'price'; write keep=\['price'\]"):
        match(spark.range(1), everything, keep="price")


# ---------------------------------------------------------------- subscriptions in every form


def test_subscriptions_hold_while_they_are_valid(spark: SparkSession, folder: Path) -> None:
    store = Subscriptions.create(folder / "validity")
    begin, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
    store.append(
        [
            {"id": "from", "expression": "true", "valid_from": begin},
            {"id": "until", "expression": "true", "valid_until": end},
            {"id": "both", "expression": "true", "valid_from": begin, "valid_until": end},
            {"id": "always", "expression": "true"},
            {"id": "past", "expression": "true", "valid_until": begin},
        ]
    )
    events = spark.range(1)

    def valid(at: datetime | None) -> list[str]:
        return sorted(row["subscription"] for row in match(events, store, event_id="id", at=at).collect())

    assert valid(begin) == ["always", "both", "from", "until"]
    assert valid(end) == ["always", "from"]
    assert valid(datetime(2025, 12, 31, 23, 59, 59, 999_999)) == ["always", "past", "until"]
    assert valid(None) == ["always", "from"]


def test_subscriptions_may_be_given_as_a_folder_an_index_or_a_dataframe(spark: SparkSession, folder: Path) -> None:
    rows = {"low": "n < 3", "high": "n > 1 and s = 'x'"}
    events = spark.createDataFrame([(1, 1, "x"), (2, 2, "x"), (3, 3, "y")], "id int, n int, s string")
    expected = [(1, "low"), (2, "high"), (2, "low")]
    store = Subscriptions.create(folder / "forms")
    store.append(rows.items())
    assert pairs(match(events, store, event_id="id")) == expected
    index = Index(store.path / "index")
    assert pairs(match(events, index, event_id="id")) == expected
    texts = spark.createDataFrame(list(rows.items()), "id string, expression string")
    assert pairs(match(events, texts, event_id="id")) == expected

    store.upsert([("low", "n = 3")])
    assert pairs(match(events, index, event_id="id")) == expected, "an index answers as it is"
    after = [(2, "high"), (3, "low")]
    assert pairs(match(events, store, event_id="id")) == after
    assert pairs(match(events, index, event_id="id")) == after
    assert pairs(match(events, store.read(spark), event_id="id")) == after


def test_a_dataframe_of_subscriptions_must_be_sound(spark: SparkSession) -> None:
    events = spark.range(1)
    with pytest.raises(BulkLoadError, match="1 rejected"):
        match(events, spark.sql("select 1 id, 'n <' expression"))
    with pytest.raises(SubscriptionError, match="need the column 'expression'"):
        match(events, spark.range(1))


def test_a_folder_without_subscriptions_matches_nothing(spark: SparkSession, folder: Path) -> None:
    found = match(spark.range(3), Subscriptions.create(folder / "empty"), event_id="id")
    assert found.dtypes == [("event", "bigint"), ("subscription", "string")]
    assert found.collect() == []


# ---------------------------------------------------------------- declared types


@pytest.fixture(scope="module")
def declared(spark: SparkSession, folder: Path) -> Index:
    types = {"n": "int", "price": "float", "spot": "point", "seen": "timestamp", "unasked": "string"}
    rows = {1: "n = 1 and price < 2", 2: "spot within box(0, 0, 1, 1) or seen is null"}
    return indexed(spark, folder / "declared", rows, schema=types)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("'a' n", "attribute 'n' is declared int, found string"),
        ("1.5d n", "attribute 'n' is declared int, found double"),
        ("cast(1 as decimal(5,0)) n", "attribute 'n' is declared int, found decimal(5,0)"),
        ("true price", "attribute 'price' is declared float, found boolean"),
        ("date'2026-01-01' seen", "attribute 'seen' is declared timestamp, found date"),
        ("'1 2' spot", "attribute 'spot' is declared point, found string"),
        ("1 unasked", "attribute 'unasked' is declared string, found int"),
    ],
)
def test_a_column_of_another_type_than_declared_is_an_error_before_anything_runs(
    spark: SparkSession, declared: Index, columns: str, said: str
) -> None:
    with pytest.raises(SchemaError, match=re.escape(said)):
        match(spark.sql(f"select raise_error('it ran') id, {columns}"), declared)


def test_columns_that_fit_what_is_declared_are_matched(spark: SparkSession, declared: Index) -> None:
    events = spark.sql(
        "select cast(1 as smallint) n, cast(1.5 as decimal(5,2)) price, array(0.5d, 0.5d) spot, "
        "timestamp_ntz'2026-01-01 00:00:00' seen, 'a' unasked, 7 undeclared"
    )
    assert sorted(row["subscription"] for row in match(events, declared).collect()) == [1, 2]
    assert sorted(row["subscription"] for row in match(events.select("n"), declared).collect()) == [2]


# ---------------------------------------------------------------- shards

SHARDED = {
    **{id: f"n = {id % 12} and m >= {id % 4}" for id in range(60)},
    **{100 + id: "n = 5" for id in range(40)},
    **{200 + id: f"m = {id} or s = 'a{id}'" for id in range(8)},
    300: "n in (1, 2.5, 900)",
    301: "n = 900",
    302: "n is null",
    303: "true",
}


@pytest.fixture(scope="module")
def crowd(spark: SparkSession) -> DataFrame:
    """Events three quarters of which have the value that most subscriptions ask for."""
    value = "case when id % 4 < 3 then 5 when id % 20 = 3 then null when id % 20 = 7 then 2.5 else id % 15 end"
    columns = ("id", f"cast({value} as decimal(6,1)) n", "id % 6 as m", "concat('a', id % 11) as s")
    return spark.range(0, 120, 1, 3).selectExpr(*columns)


@pytest.fixture(scope="module")
def sharded(spark: SparkSession, folder: Path) -> Index:
    return indexed(spark, folder / "sharded", SHARDED, shards=5)


@pytest.fixture(scope="module")
def crowd_matches(crowd: DataFrame) -> list[tuple[int, int]]:
    asked = {id: parse(text) for id, text in SHARDED.items()}
    rows = [(row["id"], row.asDict()) for row in crowd.collect()]
    return sorted(
        (at, id)
        for at, event in rows
        for id, expression in asked.items()
        if truth(expression, {name: value for name, value in event.items() if value is not None}) is True
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_skewed_events_and_hot_shards_find_the_same_wherever_they_meet(
    crowd: DataFrame, sharded: Index, crowd_matches: list[tuple[int, int]], strategy: str
) -> None:
    assert len(sharded.state().division.shards_of[5]) > 1
    assert pairs(match(crowd, sharded, event_id="id", strategy=strategy)) == crowd_matches  # type: ignore[arg-type]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_groups_are_whole_wherever_events_meet_subscriptions(
    crowd: DataFrame, sharded: Index, crowd_matches: list[tuple[int, int]], strategy: str
) -> None:
    found = match(crowd, sharded, event_id="id", how="grouped", strategy=strategy)  # type: ignore[arg-type]
    rows = [tuple(row) for row in found.collect()]
    assert len({event for event, _ in rows}) == len(rows)
    assert sorted((event, id) for event, ids in rows for id in ids) == crowd_matches


def test_copies_of_a_shard_share_its_events(
    spark: SparkSession, crowd: DataFrame, sharded: Index, crowd_matches: list[tuple[int, int]]
) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "11")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "7")
    try:
        planned = plan(crowd, sharded, event_id="id", strategy="grid")
        assert max(planned.copies) > 1
        assert pairs(planned.frame) == crowd_matches
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "50000")


def test_a_spark_before_4_1_sends_events_to_the_same_shards(
    crowd: DataFrame, sharded: Index, crowd_matches: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "by_number", partitioning.by_key)
    assert pairs(match(crowd, sharded, event_id="id", strategy="grid")) == crowd_matches


@pytest.mark.parametrize("texts", [{1: "n = 5", 2: "n = 5 and m > 2"}, {1: "s = 'a3'"}, {}])
def test_no_event_goes_to_a_shard_that_holds_nothing(
    spark: SparkSession, crowd: DataFrame, tmp_path: Path, texts: dict[int, str]
) -> None:
    index = indexed(spark, tmp_path / "few", texts, shards=5)
    state = index.state()
    planned = plan(crowd, index, event_id="id", strategy="grid")
    held = [shard in state.layers[0].parts for shard in range(5)]
    assert not all(held)
    assert [count > 0 for count in planned.copies] == held
    asked = {id: parse(text) for id, text in texts.items()}
    rows = [row.asDict() for row in crowd.collect()]
    expected = [(row["id"], id) for row in rows for id in asked if truth(asked[id], row) is True]
    assert pairs(planned.frame) == sorted(expected)
    parts = Parts(index.folder, state.layers, state.division, state.integer_ids)
    transport = plan(crowd, index, strategy="grid").transport
    request = Request(parts, transport, NOON, "pairs", True, planned.copies)
    ends = np.cumsum(planned.copies)
    few = pa.table({"n": [5, 5, 7], "m": [1, 5, 5], "s": ["a3", "b", "a3"]}).select(transport.attributes)
    packets = route_events(request, iter(few.to_batches()))
    sent = [target for packet in packets for target in packet["target"].to_pylist()]
    assert all(held[int(np.searchsorted(ends, target, side="right"))] for target in sent)


def test_the_plan_says_what_is_going_to_happen(
    spark: SparkSession, crowd: DataFrame, sharded: Index, everything: Index, typed_index: Index
) -> None:
    state = sharded.state()
    planned = plan(crowd, sharded, strategy="grid")
    lines = str(planned).splitlines()
    assert lines[:3] == [
        f"{len(SHARDED)} subscriptions of version 1, 1 layers, {state.bytes:,} bytes",
        "3 attributes travel",
        f"5 shards, divided by 'n'; events travel to them, {sum(planned.copies)} partitions",
    ]
    held = [state.layers[0].parts[shard].rows for shard in range(5)]
    for shard, line in enumerate(lines[3:8]):
        concern = "every event" if shard == 4 else r"events with one of \d+ values"
        held_here, copies = held[shard], planned.copies[shard]
        assert re.fullmatch(rf"  shard {shard}: {held_here} subscriptions, {concern}, {copies} copies", line)
    assert lines[8:] == ["  values with several shards: 5"]
    assert str(plan(crowd, sharded)).splitlines()[2] == "5 shards, divided by 'n'; mapped by every worker"
    assert str(plan(crowd, everything)).splitlines()[2] == "2 shards, dealt out by id; mapped by every worker"
    assert str(plan(crowd, typed_index)).splitlines()[2:] == ["one shard, mapped by every worker"]


def test_the_plan_warns_of_constants_of_a_kind_that_a_column_never_holds(spark: SparkSession) -> None:
    events = spark.createDataFrame(
        [(datetime(2026, 1, 2), 5, "a", ("b",))], "at timestamp, price bigint, maker string, d struct<x: string>"
    )
    texts = [
        *("at > '2026-01-01'", "price < 5 OR price = 'five'", "d.x = 5", "maker = 'a'", "gone = 1", "price > 1.5"),
        "at > TIMESTAMP '2026-01-01'",
    ]
    planned = plan(events, spark.createDataFrame(list(enumerate(texts)), "id bigint, expression string"))
    assert planned.warnings == (
        "'at' is timestamp in the events and is compared with a string: never true; write TIMESTAMP '2026-01-01'",
        "'d.x' is string in the events and is compared with a number: never true; write a string in single quotes",
        "'price' is number in the events and is compared with a string: never true; write a number without quotes",
    )
    assert str(planned).splitlines()[-3:] == [f"warning: {each}" for each in planned.warnings]


def test_the_plan_tells_of_a_setting_that_costs_much(lent_spark, typed_index, crowd):
    lent_spark.conf.unset(BATCH_BYTES)
    assert str(plan(crowd, typed_index)).splitlines()[3] == (
        "Spark measures each row: spark.sql.execution.arrow.maxBytesPerBatch=2147483647 "
        "would hand events over faster"
    )


def test_the_strategy_follows_from_the_memory_of_executors(
    crowd: DataFrame, sharded: Index, typed_index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    for memory, expected in ((10**12, "local"), (1_000, "grid")):
        monkeypatch.setattr("harken.spark.matching.batch.executor_memory", lambda _, memory=memory: memory)
        assert plan(crowd, sharded).strategy == expected
        assert plan(crowd, typed_index).strategy == "local", "one shard is all there is to map"


# ---------------------------------------------------------------- inside a task


def test_batches_are_joined_and_numbered(
    sharded: Index, crowd: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever batches a task gets, it answers for each event once, in the order they came."""
    state = sharded.state()
    events = crowd.select("n", "m", "s").toArrow()
    parts = Parts(sharded.folder, state.layers, state.division, state.integer_ids)
    request = Request(parts, Transport(("n", "m", "s"), (), 0), datetime.now(UTC), "pairs", True)
    answers = []
    for size, rows in ((1_000, 32_768), (7, 20), (1, 1)):
        monkeypatch.setattr(tasks, "ROWS", rows)
        batches: Iterable[pa.RecordBatch] = events.to_batches(max_chunksize=size)
        found = pa.Table.from_batches(list(tasks.match_events(request, iter(batches))))
        assert found.column("event").to_pylist() == sorted(found.column("event").to_pylist())
        answers.append(sorted(zip(*found.to_pydict().values(), strict=True)))
    assert answers[0] == answers[1] == answers[2]
    assert len(answers[0]) > 500


def test_a_profile_says_of_which_types_constants_are() -> None:
    from harken.compiler import Texts, compile_texts

    texts = ["a = 1 or a = 'x'", "b is null", "c within box(0, 0, 1, 1)", "a = 2.5 and d = true", "false"]
    profile = Profile.of(compile_texts(Texts(list(range(5)), texts)).table)
    assert {name: set(types) for name, types in profile.attributes.items()} == {
        "a": {"int", "string", "float"},
        "b": set(),
        "c": {"box"},
        "d": {"bool"},
    }
    assert [profile.geometric(name) for name in "abcd"] == [False, True, True, False]
    assert Profile.from_json(profile.to_json()) == profile


def test_a_plan_warns_of_attributes_that_seem_misspelt(spark, tmp_path):
    store = Subscriptions.create(tmp_path / "subscriptions")
    store.append([("a", "prize > 1"), ("b", "price > 1"), ("c", "maker.name = 'x'"), ("d", "EXISTS(maker)")])
    events = spark.sql("select 1 id, 2.0 price, named_struct('name', 'y') maker")
    (warning,) = plan(events, store).warnings
    assert warning == "subscriptions ask for 'prize', which no column is called; did somebody mean 'price'?"


def test_a_kept_column_is_not_that_of_the_answer_in_other_letters(spark, tmp_path):
    store = Subscriptions.create(tmp_path / "subscriptions")
    with pytest.raises(EventError, match="a column 'Event' cannot be kept"):
        match(spark.sql("select 1 id, 2 Event"), store, event_id="id", keep=["Event"])
