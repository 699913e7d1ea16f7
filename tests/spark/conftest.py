"""One Spark session per test process, started by the first test that asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from harken.spark.lifetime import temporary_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A small session on two cores. What it writes goes to a temporary folder, and its Java ends with it."""
    settings = {
        "spark.driver.memory": "1g",
        "spark.local.dir": str(tmp_path_factory.mktemp("spark-scratch")),
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("spark-warehouse")),
    }
    with temporary_session("local[2]", name="harken tests", settings=settings) as session:
        yield session
