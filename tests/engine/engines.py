"""Engines of a few texts, and their answers in an order to compare."""

from __future__ import annotations

import pyarrow as pa

from harken import Engine


def engine_of(algorithm: str, *written: str, **options: object) -> Engine:
    """An engine with these texts, by their places."""
    engine = Engine(algorithm, **options)  # type: ignore[arg-type]  # of the engine
    engine.subscribe_many(enumerate(written))
    return engine


def pairs(table: pa.Table) -> list[tuple[int, int]]:
    return sorted(zip(table.column("event").to_pylist(), table.column("subscription").to_pylist(), strict=True))
