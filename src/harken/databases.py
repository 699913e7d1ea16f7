"""URLs of databases: which are meant, with which driver and how much patience, and how they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harken.errors import DatabaseError, MissingExtraError

if TYPE_CHECKING:
    from sqlalchemy import URL

_DRIVERS = {
    "sqlite": "sqlite+pysqlite",
    "sqlite+pysqlite": "sqlite+pysqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
"""What a URL may start with, and the driver that is meant."""

_PATIENCE = {"sqlite+pysqlite": {"timeout": "60"}, "postgresql+psycopg": {"connect_timeout": "10"}}
"""Seconds to wait for another writer, or for a server, unless the URL tells."""


def parsed_url(url: str, purpose: str) -> URL:
    """A URL taken apart; DatabaseError if it is none, MissingExtraError without SQLAlchemy."""
    try:
        from sqlalchemy import make_url
        from sqlalchemy.exc import ArgumentError
    except ImportError:
        raise MissingExtraError(purpose, "postgres" if url.startswith("postgres") else "database") from None
    try:
        return make_url(url)
    except (ArgumentError, ValueError):
        # Not chained, and not shown: what could not be taken apart may have a password anywhere.
        raise DatabaseError("understand the URL", "it is not shown", "it is not a database URL") from None


def is_supported(url: URL) -> bool:
    """Whether it is of SQLite or PostgreSQL."""
    return url.drivername in _DRIVERS


def is_sqlite(url: URL) -> bool:
    """Whether it is of SQLite."""
    return url.drivername.startswith("sqlite")


def is_in_memory(url: URL) -> bool:
    """Whether it is of a database that ends with its connection."""
    return is_sqlite(url) and url.database in (None, "", ":memory:")


def with_driver(url: URL) -> URL:
    """A supported URL with its driver and its patience."""
    driver = _DRIVERS[url.drivername]
    return url.set(drivername=driver, query={**_PATIENCE[driver], **url.query})


def shown(url: URL) -> str:
    """A URL that can be shown; its query may have a password too."""
    return url.set(query={}).render_as_string(hide_password=True)
