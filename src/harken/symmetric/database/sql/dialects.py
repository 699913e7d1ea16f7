"""The dialects by the names of their databases."""

from __future__ import annotations

from typing import Literal

from harken.symmetric.database.sql.dialect import Dialect
from harken.symmetric.database.sql.postgresql import PostgreSQL
from harken.symmetric.database.sql.sqlite import SQLite


def dialect(name: Literal["sqlite", "postgresql"]) -> Dialect:
    """The dialect of a database."""
    return SQLite() if name == "sqlite" else PostgreSQL()
