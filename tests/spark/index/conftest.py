"""What most tests of indexes begin with; tests on other stores take it too."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from harken.spark import Subscriptions
from harken.spark.index import index as indexing
from harken.spark.index.building import Blueprint, build_here
from harken.spark.index.layers import Part


@pytest.fixture
def store(tmp_path: Path) -> Subscriptions:
    return Subscriptions.create(tmp_path / "subscriptions")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[Blueprint]:
    """Build in this process what tasks would build; the blueprints of what was."""
    built: list[Blueprint] = []

    def build(_: SparkSession, blueprint: Blueprint) -> dict[int, Part]:
        built.append(blueprint)
        return build_here(blueprint)

    monkeypatch.setattr(indexing, "build_by_tasks", build)
    return built


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes at which a few subscriptions count as many."""
    monkeypatch.setattr(indexing, "SMALL", 8)
