"""What several modules match with."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from harken.spark import Index
from tests.spark.matching.frames import COLUMNS, TYPED_SUBSCRIPTIONS, indexed


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("match")


@pytest.fixture(scope="package")
def typed(spark: SparkSession) -> DataFrame:
    rows = list(zip(*(values for _, values in COLUMNS.values()), strict=True))
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
    return spark.createDataFrame(rows, columns).repartition(2).cache()


@pytest.fixture(scope="package")
def typed_index(spark: SparkSession, folder: Path) -> Index:
    return indexed(spark, folder / "typed", TYPED_SUBSCRIPTIONS)


@pytest.fixture(scope="package")
def everything(spark: SparkSession, folder: Path) -> Index:
    """Two subscriptions that every event satisfies, in shards of their own."""
    return indexed(spark, folder / "everything", {1: "true", 2: "absent is null"}, shards=2)
