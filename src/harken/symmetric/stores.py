"""Which store a URL stands for. Nothing is imported until it is opened."""

from __future__ import annotations

from typing import Any

from harken.symmetric.contract import Store


def open_store(url: str | None, **options: Any) -> Store:  # each store says what it takes
    """The store in memory, or that of a database."""
    if url is None:
        from harken.symmetric.memory import MemoryStore

        memory: Store = MemoryStore(**options)
        return memory
    from harken.symmetric.database import DatabaseStore

    database: Store = DatabaseStore(url, **options)
    return database
