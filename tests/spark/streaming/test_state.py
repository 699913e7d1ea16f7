"""Streams that remember something from batch to batch, before they are matched."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from harken.spark import skip_batch
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
