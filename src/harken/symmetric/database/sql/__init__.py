"""What SQLite and PostgreSQL do each in their own way."""

from __future__ import annotations

from harken.errors import ArgumentTypeError, DatabaseError
from harken.symmetric.database.connections import is_file
from harken.symmetric.database.sql.dialect import Dialect
from harken.symmetric.database.sql.postgresql import PostgreSQL
from harken.symmetric.database.sql.sqlite import SQLite

__all__ = ["dialect_of"]


def dialect_of(url: str, schema_name: str | None) -> Dialect:
    """The dialect of a database, with tables in a schema whose name can stand in statements as it is."""
    spoken = SQLite if is_file(url) else PostgreSQL
    if not isinstance(schema_name, str | None):
        raise ArgumentTypeError.of("schema_name", "a text", type(schema_name).__name__)
    if schema_name is not None and not (
        schema_name.isascii() and schema_name.isidentifier() and schema_name.islower() and len(schema_name) <= 40
    ):
        reason = "a schema name has up to 40 lower-case letters, digits and underscores, a letter first"
        raise DatabaseError("use the schema name", repr(schema_name), reason)
    return spoken(schema_name)
