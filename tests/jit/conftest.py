"""A package of its own for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jit.trial import Shop


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the compiled kernels of the package."""
    made = Shop(tmp_path_factory.mktemp("warm"))
    assert made.use().compiled == 3
    return made.home


@pytest.fixture
def warm_shop(tmp_path: Path, warm: Path) -> Shop:
    """A package whose kernels were compiled by an earlier process, elsewhere: where it lies does not matter."""
    return Shop(tmp_path, warm)
