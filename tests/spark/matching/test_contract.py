"""The laws of matching hold for `harken.spark.match`, with one shard and with several that events travel to."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.contract.checks import CHECKS, Case
from tests.contract.checks import check_saving_and_loading_is_identity as saving
from tests.contract.checks import check_what_is_known_of_a_subscription_is_what_was_asked as telling
from tests.spark.adapter import SparkEngine
from tests.strategies import TYPED

NOT_APPLICABLE = {
    saving: "subscriptions and indexes lie in folders anyway: there is nothing to save or load",
    telling: "single subscriptions are not told or explained: an Engine over Subscriptions.read does that",
}
"""Checks of what only an `Engine` can do, and why they say nothing about Spark."""

VARIANTS = {"one shard": {"shards": 1}, "grid": {"shards": 3, "strategy": "grid"}}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    "check",
    [check for check in CHECKS if check not in NOT_APPLICABLE],
    ids=lambda check: check.__name__.removeprefix("check_"),
)
def test_match_obeys(check, variant, spark: SparkSession, tmp_path: Path) -> None:
    case = Case.made(f"{check.__name__}-spark-{variant}", TYPED, subscriptions=25, events=8)
    check(lambda: SparkEngine(spark, tmp_path / "s", announced=case.events, **VARIANTS[variant]), case)


def test_what_is_not_applicable_is_among_the_checks() -> None:
    assert NOT_APPLICABLE.keys() <= set(CHECKS)
