"""DataFrame in, DataFrame out: events of every type and shape meet the subscriptions they satisfy."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from harken.errors import ArgumentTypeError, BulkLoadError, EventError, SchemaError, SubscriptionError
from harken.spark import Index, Subscriptions, match, plan
from harken.spark.matching import tasks
from tests.spark.matching.frames import STRATEGIES, indexed, pairs

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


@pytest.mark.parametrize("how", ["pairs", "grouped"])
def test_numbers_are_those_of_the_events_however_answers_are_gathered(
    spark: SparkSession, everything: Index, how: str
) -> None:
    """A task that does several partitions, one after the other, has one number itself."""
    events = spark.range(0, 8, 1, 4)
    found = match(events, everything, how=how)  # type: ignore[call-overload]
    numbers = sorted(row.event for row in found.collect())
    assert len(set(numbers)) == 8
    for gathered in (found.coalesce(1), found.coalesce(2), found.limit(0).union(found)):
        assert sorted(row.event for row in gathered.collect()) == numbers


def test_texts_of_any_collation_or_bound_are_texts(lent_spark: SparkSession, tmp_path: Path) -> None:
    """Spark compares some by rules of its own; here they are equal if they are the same."""
    lent_spark.conf.set("spark.sql.preserveCharVarcharTypeInfo", "true")
    events = lent_spark.sql(
        "SELECT 'e' COLLATE UTF8_LCASE AS id, 'camera' COLLATE UTF8_LCASE AS item, "
        "CAST('ab' AS VARCHAR(9)) AS bound, CAST('ab' AS CHAR(4)) AS padded, "
        "named_struct('deep', 'x' COLLATE UNICODE) AS s"
    )
    asked = {
        "item": "item = 'camera'",
        "case": "item = 'Camera'",
        "bound": "bound IN ('ab', 'cd')",
        "padded": "padded LIKE 'ab%'",
        "deep": "s.deep >= 'x'",
    }
    store = Subscriptions.create(tmp_path / "subscriptions", schema={"item": "string"})
    store.append([("declared", "item LIKE 'cam%'")])
    for strategy in STRATEGIES:
        frame = lent_spark.createDataFrame(list(asked.items()), "id string, expression string")
        found = match(events, frame, event_id="id", keep=["item"], strategy=strategy)
        assert sorted(row.subscription for row in found.collect()) == ["bound", "deep", "item", "padded"]
    assert [(row.event, row.subscription) for row in match(events, store, event_id="id").collect()] == [
        ("e", "declared")
    ]


def test_texts_of_a_bounded_length_go_into_answers_as_texts(lent_spark: SparkSession) -> None:
    lent_spark.conf.set("spark.sql.preserveCharVarcharTypeInfo", "true")
    events = lent_spark.sql(
        "SELECT cast('ab' AS char(4)) AS c, cast('ab' AS varchar(3)) AS `v '`, 1 AS x, "
        "named_struct('a b', array(cast('q' AS varchar(2)))) AS s, map('k', cast('w' AS varchar(5))) AS m"
    )
    subscriptions = lent_spark.sql(
        "SELECT 'one' COLLATE UTF8_LCASE AS id, cast('x = 1' AS varchar(9)) AS expression"
    )
    for how in ("pairs", "grouped"):
        found = match(events, subscriptions, event_id="c", keep=["v '", "s", "m"], how=how)
        (row,) = found.collect()
        assert (row[0].rstrip(), row[2], row[3].asDict(), row[4]) == ("ab", "ab", {"a b": ["q"]}, {"k": "w"})
        assert row[1] == ("one" if how == "pairs" else ["one"])
        assert {found.dtypes[at][1] for at in (0, 2)} == {"string"}


def test_bounded_texts_whose_names_differ_by_case_are_told_as_others_are(lent_spark: SparkSession) -> None:
    lent_spark.conf.set("spark.sql.preserveCharVarcharTypeInfo", "true")
    subscriptions = lent_spark.createDataFrame([("one", "x = 1")], "id string, expression string")
    events = lent_spark.sql("SELECT 1 AS x, cast('q' AS char(2)) AS c, 1 AS C")
    with pytest.raises(EventError, match="columns 'C' and 'c' differ by case only"):
        match(events, subscriptions, keep=["c"])


@pytest.mark.parametrize(
    ("span", "kind"), [("interval '1' year", "interval year"), ("make_interval(1)", "interval")]
)
def test_what_python_cannot_hand_back_is_refused_by_its_name(spark: SparkSession, span: str, kind: str) -> None:
    events = spark.sql(f"SELECT 1 AS x, array({span}) AS spans")
    subscriptions = spark.createDataFrame([("one", "x = 1")], "id string, expression string")
    with pytest.raises(
        EventError, match=rf"the column 'spans' cannot go into the answer: Spark takes no {kind} from"
    ):
        match(events, subscriptions, keep=["spans"])
    assert match(events, subscriptions).count() == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_events_that_a_query_spells_out_have_numbers_of_their_own(
    spark: SparkSession, everything: Index, strategy: str
) -> None:
    """Spark computes columns of such rows before it divides them among tasks."""
    events = spark.sql("SELECT * FROM VALUES (0), (1), (2), (3), (4), (5), (6), (7) AS rows (id)")
    assert events.rdd.getNumPartitions() > 1
    pairs = match(events, everything, strategy=strategy).collect()  # type: ignore[call-overload]
    assert len({row.event for row in pairs}) == 8
    grouped = match(events, everything, event_id="id", how="grouped", strategy=strategy)  # type: ignore[call-overload]
    assert {row.event: sorted(row.subscriptions) for row in grouped.collect()} == {id: [1, 2] for id in range(8)}


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
