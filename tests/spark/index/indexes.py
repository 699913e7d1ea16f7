"""Indexes of a few subscriptions, what they find, and what they must find."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
from pyspark.sql import SparkSession

from harken import Engine
from harken.spark import Index, Subscriptions
from harken.spark.index.layers import IndexState
from harken.spark.index.worker_cache import OpenIndex, Parts

EVENTS = pa.table(
    {
        "n": [value % 10 for value in range(60)],
        "m": [value % 7 for value in range(60)],
        "s": [["a", "b", "c", None][value % 4] for value in range(60)],
    }
)
AT = datetime(2026, 1, 1, tzinfo=UTC)
Pairs = list[tuple[int, int | str]]


def with_memory(configured: str | None) -> SparkSession:
    """All that is asked of a session, where everything is built in this process."""
    return SimpleNamespace(conf=SimpleNamespace(get=lambda name, default: configured))  # type: ignore[return-value]


NO_SPARK = with_memory(None)
NONE = timedelta(0)


def texts(*ids: int, salt: int = 0) -> list[tuple[int, str]]:
    """Subscriptions most of which ask for one value of n."""
    kinds = (
        "n = {} and m > {}",
        "n = {}",
        "n in ({}, {})",
        "s = 'a' and m <= {}",
        "m = {} or s is null and n = {}",
    )
    return [(id, kinds[(id + salt) % 5].format((id + salt) % 10, (id + salt) % 7)) for id in ids]


def pairs(state: IndexState, index: Index, events: pa.Table = EVENTS) -> Pairs:
    """What a version of an index finds, without Spark."""
    rows, ids = OpenIndex(parts_of(state, index)).match(events, AT)
    assert rows.tolist() == sorted(rows.tolist())
    return sorted(zip(rows.tolist(), ids.to_pylist(), strict=True))


def expected(store: Subscriptions, version: int | None = None, events: pa.Table = EVENTS) -> Pairs:
    """What a version of the subscriptions must find."""
    engine = Engine("reference")
    for table in store.tables(store.snapshot(version)):
        engine.subscribe_many(table)
    found = engine.match_batch(events, at=AT)
    return sorted(zip(found.column("event").to_pylist(), found.column("subscription").to_pylist(), strict=True))


def sizes(state: IndexState) -> list[int]:
    return [layer.rows for layer in state.layers]


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def parts_of(state: IndexState, index: Index) -> Parts:
    return Parts(index.folder, state.layers, state.division, state.integer_ids)
