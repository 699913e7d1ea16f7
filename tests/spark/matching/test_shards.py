"""Wherever events and shards meet, they find the same; and the plan says where."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from harken.language import parse
from harken.model.evaluation import truth
from harken.spark import Index, match, plan
from harken.spark.events import partitioning
from harken.spark.events.columns import Transport
from harken.spark.index import pacing, worker_cache
from harken.spark.index.worker_cache import Parts
from harken.spark.matching import batch as matching
from harken.spark.matching import tasks
from harken.spark.matching.tasks import Request, route_events
from harken.spark.runtime.session import BATCH_BYTES
from tests.spark.matching.frames import NOON, STRATEGIES, indexed, pairs

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
    few = pa.table({"n": [5, 5, 7], "m": [1, 5, 5], "s": ["a3", "b", "a3"], "partition": [0, 0, 0]})
    few = few.select([*transport.attributes, "partition"])
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
    events = crowd.selectExpr("n", "m", "s", "monotonically_increasing_id() AS number").toArrow()
    parts = Parts(sharded.folder, state.layers, state.division, state.integer_ids)
    request = Request(parts, Transport(("n", "m", "s"), (), 0), datetime.now(UTC), "pairs", True)
    answers = []
    for size, rows in ((1_000, 32_768), (7, 20), (1, 1)):
        monkeypatch.setattr(tasks, "ROWS", rows)
        batches: Iterable[pa.RecordBatch] = events.to_batches(max_chunksize=size)
        found = pa.Table.from_batches(list(tasks.match_events(request, iter(batches))))
        assert found.column("event").to_pylist() == sorted(found.column("event").to_pylist())
        assert set(found.column("event").to_pylist()) <= set(events.column("number").to_pylist())
        answers.append(sorted(zip(*found.to_pydict().values(), strict=True)))
    assert answers[0] == answers[1] == answers[2]
    assert len(answers[0]) > 500


@pytest.mark.parametrize("how", ["pairs", "grouped"])
def test_however_little_is_held_at_once_the_answer_is_the_same(
    sharded: Index, crowd: DataFrame, monkeypatch: pytest.MonkeyPatch, how: tasks.How
) -> None:
    state = sharded.state()
    events = crowd.selectExpr(
        "n", "m", "s", "monotonically_increasing_id() AS number", "repeat('x', n % 50) AS payload"
    ).toArrow()
    parts = Parts(sharded.folder, state.layers, state.division, state.integer_ids)
    request = Request(parts, Transport(("n", "m", "s"), (), 1), NOON, how, True)
    answers, pieces = [], []
    for at_first, held, at_once in ((1_024, 64 << 20, 64 << 20), (3, 800, 1_000), (1, 1, 1)):
        monkeypatch.setattr(pacing, "FIRST", at_first)
        monkeypatch.setattr(pacing, "HELD", held)
        monkeypatch.setattr(tasks, "MOST_BYTES", at_once)
        monkeypatch.setattr(worker_cache, "_OPEN", {})  # with its pace
        found = list(tasks.match_events(request, iter(events.to_batches())))
        pieces.append(len(found))
        answers.append(pa.Table.from_batches(found).to_pylist())
    assert answers[0] == answers[1] == answers[2]
    assert pieces[0] < 5 < 10 * pieces[0] < pieces[1] < pieces[2] == len(answers[2])


LARGE = "x" * (1 << 20)
KEPT = {
    "text": pa.array([LARGE, "y"]),
    "large text": pa.array([LARGE, "y"], pa.large_string()),
    "struct": pa.array([{"a": {"b": LARGE}}, *[{"a": {"b": "y"}}] * 2_000]),
    "list": pa.array([["y", LARGE], *[["y"]] * 2_000]),
    "map": pa.array([[("y", LARGE)], *[[("y", "y")]] * 2_000], pa.map_(pa.string(), pa.string())),
    "nulls": pa.array([LARGE, None]),
}


@pytest.mark.parametrize("kept", KEPT)
def test_the_largest_values_fit_however_often_they_are_told(kept: str) -> None:
    """A column of Arrow has two gigabytes of text at most."""
    request = Request(None, Transport((), (), 1), NOON, "pairs", False)  # type: ignore[arg-type]  # opens nothing
    payload = pa.chunked_array([KEPT[kept]])
    rows, ids = np.zeros(3_000, np.int64), pa.array(range(3_000))
    found = tasks._answer(request, (rows, ids), [pa.chunked_array([range(len(payload))]), payload])
    told = [(batch.num_rows, batch.nbytes) for batch in found]
    assert sum(count for count, _ in told) == 3_000
    assert max(size for _, size in told) < 2 * tasks.MOST_BYTES


def test_many_columns_and_long_ids_go_out_together_no_more_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "MOST_BYTES", 100_000)
    request = Request(None, Transport((), (), 40), NOON, "pairs", False)  # type: ignore[arg-type]  # opens nothing
    columns = [pa.chunked_array([["x" * 1_000]])] * 40
    rows, ids = np.zeros(50, np.int64), pa.array(["y" * 10_000] * 50)
    told = list(tasks._answer(request, (rows, ids), columns))
    assert [batch.num_rows for batch in told] == [1] * 50
    told = list(tasks._answer(request, (rows, ids), columns[:1]))
    assert [batch.num_rows for batch in told] == [9, 9, 9, 9, 9, 5]


def test_batches_are_joined_to_no_more_bytes_than_workers_have_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "MOST_BYTES", 1_000)
    batches = [pa.RecordBatch.from_pydict({"x": ["y" * size]}) for size in (10, 10, 900, 200, 5_000, 10)]
    tables = list(tasks._joined(iter([*batches, pa.RecordBatch.from_pydict({"x": pa.array([], pa.string())})])))
    assert [each.num_rows for each in tables] == [4, 1, 1]
    assert pa.concat_tables(tables).column("x").to_pylist() == [each["x"][0].as_py() for each in batches]


@pytest.mark.parametrize("how", ["pairs", "grouped"])
def test_ids_go_out_as_spark_has_them(how: str) -> None:
    """They are held as texts of any length together."""
    rows, ids = np.array([0, 0, 1]), pa.array(["a", "b", "c"], pa.large_string())
    request = Request(None, None, None, how, numbered=False)  # type: ignore[arg-type]
    (told,) = tasks._answer(request, (rows, ids), [pa.chunked_array([["e0", "e1"]])])
    kind = pa.string() if how == "pairs" else pa.list_(pa.string())
    assert told.column(1).type == kind
    assert told.column(1).to_pylist() == (["a", "b", "c"] if how == "pairs" else [["a", "b"], ["c"]])
