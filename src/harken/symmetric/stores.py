"""Which store a URL stands for. Nothing is imported until it is opened."""

from __future__ import annotations

from typing import Any

from harken.errors import ArgumentTypeError
from harken.model.arguments import check_options
from harken.symmetric.contract import Store


def open_store(url: str | None, **options: Any) -> Store:  # each store says what it takes
    """The store in memory, or that of a database."""
    if url is None:
        from harken.symmetric.memory import MemoryStore

        check_options(MemoryStore, "in memory", options)
        memory: Store = MemoryStore(**options)
        return memory
    if not isinstance(url, str):
        raise ArgumentTypeError.of("url", "a text like 'sqlite:///market.db'", type(url).__name__)
    from harken.symmetric.database import DatabaseStore

    check_options(DatabaseStore, "of a database", options)
    database: Store = DatabaseStore(url, **options)
    return database
