"""One Spark session per test process, started by the first test that asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from py4j.java_gateway import JavaGateway
from pyspark import SparkContext
from pyspark.sql import SparkSession

from harken.spark.session import local_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A small session on two cores. What it writes goes to a temporary folder, and its Java ends with it."""
    settings = {
        "spark.driver.memory": "1g",
        "spark.local.dir": str(tmp_path_factory.mktemp("spark-scratch")),
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("spark-warehouse")),
    }
    session = local_session("local[2]", name="harken tests", settings=settings)
    gateway = session.sparkContext._gateway
    yield session
    session.stop()
    end(gateway)


def end(gateway: JavaGateway) -> None:
    """Stop the Java process, which otherwise lives as long as this one, and let a later session start another."""
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=60)
    SparkContext._gateway = SparkContext._jvm = None
