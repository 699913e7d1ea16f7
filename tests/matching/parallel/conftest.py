"""A crowd of subscriptions, and events for several threads to match."""

from __future__ import annotations

import pyarrow as pa
import pytest

from harken import Engine, Parallel
from harken.workloads import workload

SIZE, EVENTS = 3_000, 2_000
ALONE = Parallel(threads=1)
ORDER = [("event", "ascending"), ("subscription", "ascending")]


@pytest.fixture(scope="module")
def crowd() -> Engine:
    engine = Engine("dynamic")
    made = workload("equalities-and-ranges", 1)
    for table in made.subscriptions(SIZE):
        engine.subscribe_many(table)
    engine.subscribe_many((SIZE + at, "a00 > 3 or a01 < 990 or a02 is null") for at in range(40))
    return engine


@pytest.fixture(scope="module")
def events() -> pa.Table:
    return workload("equalities-and-ranges", 1).events(EVENTS)
