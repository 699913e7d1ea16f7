"""Streams that remember something from batch to batch, before they are matched."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from harken.errors import SinkError
from harken.spark import skip_batch
from harken.spark.streaming.sinks import TableSink
from tests.spark.streaming.scenes import FailsOnce, Scene, fail_to

ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@pytest.fixture(params=[None, ROCKS], ids=["in memory", "rocks"])
def store(request: pytest.FixtureRequest, lent_spark: SparkSession) -> None:
    if request.param is not None:
        lent_spark.conf.set("spark.sql.streaming.stateStore.providerClass", request.param)


def distinct(scene: Scene) -> DataFrame:
    return scene.events().dropDuplicates(["x"])


def test_a_batch_before_the_first_subscription_is_remembered(scene: Scene, store: None) -> None:
    scene.arrive((1, 5))
    scene.run(distinct(scene))
    scene.subscriptions.append([("a", "x > 1")])
    scene.arrive((2, 5), (3, 6))
    scene.run(distinct(scene))
    assert scene.matches() == {1: [(3, "a")]}


def test_a_batch_that_is_passed_over_is_remembered(scene: Scene, store: None) -> None:
    scene.subscriptions.append([("a", "x > 1")])
    scene.arrive((1, 5))
    scene.run(distinct(scene))
    scene.arrive((2, 6))
    fail_to(lambda: scene.run(distinct(scene), FailsOnce(scene.table, 1, late=False)), "the sink is full")
    skip_batch(scene.checkpoint, reason="nobody wants it")
    scene.arrive((3, 6), (4, 5), (5, 7))
    scene.run(distinct(scene))
    assert scene.matches() == {0: [(1, "a")], 2: [(5, "a")]}


@pytest.mark.parametrize("disturbed", [False, True])
def test_a_batch_that_is_repeated_though_the_sink_has_it_moves_the_watermark(
    scene: Scene, lent_spark: SparkSession, disturbed: bool
) -> None:
    """Otherwise an event that comes too late would be matched."""
    lent_spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
    scene.subscriptions.append([("a", "x > 0")])

    def run(*rows: tuple[int, str], sink: FailsOnce | None = None) -> None:
        scene.arrive(*({"id": id, "x": 1, "t": f"2026-01-01T{time}Z"} for id, time in rows))
        timed = scene.events("id int, x int, t timestamp").withWatermark("t", "10 minutes")
        scene.run(timed.dropDuplicates(["id", "t"]), sink)

    run((1, "00:00:00"))
    if disturbed:
        fail_to(lambda: run((2, "02:00:00"), sink=FailsOnce(scene.table, 1, late=True)), "the sink is full")
    else:
        run((2, "02:00:00"))
    run((3, "00:05:00"), (4, "02:01:00"))
    run((5, "00:06:00"), (6, "02:02:00"))
    assert scene.matches() == {
        0: [(1, "a")],
        1: [(2, "a")],
        2: [(3, "a"), (4, "a")],
        3: [(6, "a")],
    }


def test_a_batch_that_is_repeated_has_its_state_whatever_form_that_has(
    scene: Scene, lent_spark: SparkSession
) -> None:
    for name, value in {"providerClass": ROCKS, "checkpointFormatVersion": "2"}.items():
        lent_spark.conf.set(f"spark.sql.streaming.stateStore.{name}", value)
    scene.subscriptions.append([("a", "x > 1")])
    scene.arrive((1, 5))
    scene.run(distinct(scene))
    scene.arrive((2, 6))
    fail_to(lambda: scene.run(distinct(scene), FailsOnce(scene.table, 1, late=True)), "the sink is full")
    scene.arrive((3, 6), (4, 7))
    scene.run(distinct(scene))
    assert scene.matches() == {0: [(1, "a")], 1: [(2, "a")], 2: [(4, "a")]}


def test_rejects_of_a_new_stream_are_not_put_among_files_of_nobody(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x > 1")])
    theirs = scene.checkpoint.parent / "rejects" / "batch=0" / "part-0.parquet"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"theirs")
    scene.arrive((1, 5))
    with pytest.raises(SinkError, match="files that are those of no stream"):
        scene.start(on_error="collect", rejects=TableSink(theirs.parent.parent))
