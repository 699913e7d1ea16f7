"""What most tests of streams begin with."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from harken.spark.streaming import ledger as ledger_room
from tests.spark.streaming.scenes import NOON, Scene, Watch


@pytest.fixture
def scene(spark: SparkSession, tmp_path: Path) -> Scene:
    return Scene(spark, tmp_path)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> type[Watch]:
    monkeypatch.setattr(Watch, "moment", NOON)
    monkeypatch.setattr(ledger_room, "datetime", Watch)
    return Watch
