"""Small subscriptions on storage, and what is to be found in their folders."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa

from harken.spark import Subscriptions

Model = dict[int | str, int]


def rows(*numbers: int, **named: int) -> list[tuple[int | str, str]]:
    """Subscriptions `x = number`, called by the number, or as they are named."""
    return [(number, f"x = {number}") for number in numbers] + [(id, f"x = {n}") for id, n in named.items()]


def held(store: Subscriptions, version: int | None = None) -> Model:
    """By id, the number that a subscription asks for."""
    return numbers_in(store.tables(store.snapshot(version)))


def numbers_in(tables: Iterable[pa.Table]) -> Model:
    found: Model = {}
    for table in tables:
        for row in table.select(["id", "clauses"]).to_pylist():
            assert row["id"] not in found, "once"
            found[row["id"]] = row["clauses"][0][0]["integer"]
    return found


def files(store: Subscriptions) -> list[Path]:
    """All files but those of versions."""
    return sorted(path for path in store.path.rglob("*") if path.is_file() and path.parent.name != "versions")


def segment_files(store: Subscriptions, version: int | None = None) -> list[Path]:
    return [store.path / "segments" / each.file for each in store.snapshot(version).segments]


def version_file(store: Subscriptions, version: int) -> Path:
    return store.path / "versions" / f"{version:020d}.json"


NONE = timedelta(0)
"""Nobody reads, and nobody writes."""
