"""Hypothesis profiles, and one Spark session per test process. No example is judged by its speed."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from harken.spark.runtime.lifetime import temporary_session
from tests.bounds import IS_CHECKED, refuse_negative_indices

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

if IS_CHECKED:
    refuse_negative_indices()  # before any kernel is compiled

# Tests run Java briefly and often: to optimise its code would cost more than it ever saves, and what it loads is
# taken from a file, if `make` has had one made (scripts/share-java.py).
QUICK_TO_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
CLASSES = Path(__file__).parent.parent / "build" / "spark.jsa"
SHARED = f"-XX:SharedArchiveFile={CLASSES} -Xlog:disable -Xlog:all=error:stderr" if CLASSES.exists() else ""
os.environ.setdefault("SPARK_SUBMIT_OPTS", f"{QUICK_TO_START} {SHARED}")

settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("local"), derandomize=True, print_blob=True)
settings.register_profile("thorough", settings.get_profile("local"), max_examples=2_000)

settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "local"))


def pytest_collection_finish() -> None:
    """Leave what stays for the whole run out of every search for garbage, and search less often.

    Each would look at all of it again, and compiling makes so many objects that a fifth of its time goes there.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


SERVICES = {"spark", "lent_spark", "postgres", "backend"}
"""Fixtures of what takes seconds to start, or to ask."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test-fast` leaves out."""
    for item in items:
        if isinstance(item, pytest.Function) and _needs_a_service(item):
            item.add_marker("service")


def _needs_a_service(test: pytest.Function) -> bool:
    folders = {"spark", "judge"} & set(test.path.parts[len(Path(__file__).parts) - 1 :])
    chosen = test.callspec.params.values() if hasattr(test, "callspec") else ()
    # As "sqlite", or with the encoding behind it.
    is_on_a_database = any(
        each.partition(",")[0] in ("sqlite", "postgresql") for each in chosen if isinstance(each, str)
    )
    return bool(folders or is_on_a_database or SERVICES & set(test.fixturenames))


@pytest.fixture(scope="session", autouse=True)
def filters_from_the_first_on() -> Iterator[None]:
    """What pays for large indexes only is there for those of tests, which are small.

    Once for all: set for each of fifteen thousand, it took seconds.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harken.matching.clusters.filtering.FILTERED_FROM", 0)
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A small session on two cores, started by the first test that asks for it. Its Java ends with the tests."""
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": QUICK_TO_START,
        "spark.local.dir": str(tmp_path_factory.mktemp("spark-scratch")),
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("spark-warehouse")),
    }
    with temporary_session("local[2]", name="harken tests", settings=settings) as session:
        yield session


@pytest.fixture
def lent_spark(spark: SparkSession) -> Iterator[SparkSession]:
    """The session for what finds it by itself, and may change its settings; they are as before afterwards."""
    before = dict(spark.conf.getAll)
    yield spark
    for name, value in before.items():
        if spark.conf.isModifiable(name) and spark.conf.getAll.get(name) != value:
            spark.conf.set(name, value)
    for name in spark.conf.getAll.keys() - before.keys():
        spark.conf.unset(name)
