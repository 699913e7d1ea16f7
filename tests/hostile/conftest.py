from __future__ import annotations

import pytest

from harken import Engine, algorithms
from harken.compiler.bulk import SMALLEST_BULK


@pytest.fixture(scope="session", autouse=True)
def compiled_kernels() -> None:
    """Have all kernels compiled: that may take a while the first time, and is no input's fault."""
    for algorithm in algorithms():
        engine = Engine(algorithm)
        engine.subscribe_many((n, f"x = {n} OR y MATCHES 'a'") for n in range(SMALLEST_BULK))
        engine.match({"x": 1, "y": "a"})
        engine.match_batch([{"x": 1, "y": "a"}])
