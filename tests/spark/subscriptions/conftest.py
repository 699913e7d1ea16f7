"""What most tests of subscriptions begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harken.spark import Subscriptions


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Subscriptions]:
    """An empty folder. Whatever a test does with it, it leaves no draft of a version."""
    store = Subscriptions.create(tmp_path / "subscriptions")
    yield store
    assert list(store.path.glob("versions/.*")) == []
