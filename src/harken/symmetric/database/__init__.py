"""Constraints in a database: SQLite or PostgreSQL, in our encoding or the paper's. Loads SQLAlchemy when used."""

from harken.symmetric.database.store import DatabaseStore

__all__ = ["DatabaseStore"]
