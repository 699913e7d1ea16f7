"""Every algorithm, for the tests that ask for one."""

from __future__ import annotations

import pytest

from harken import algorithms


@pytest.fixture(params=algorithms())
def algorithm(request: pytest.FixtureRequest) -> str:
    return str(request.param)
