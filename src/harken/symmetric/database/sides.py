"""One side of a store in the middle of a transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harken.symmetric.contract import Side
from harken.symmetric.database.connections import run
from harken.symmetric.database.sql.dialect import Dialect

if TYPE_CHECKING:
    from sqlalchemy import Connection, CursorResult


@dataclass(frozen=True, slots=True)
class OpenSide:
    """The tables of the subscriptions, or of the publications, on a connection whose transaction has begun."""

    connection: Connection
    dialect: Dialect
    name: Side

    def table(self, *parts: str) -> str:
        """One of its tables, as statements name it."""
        return self.dialect.names(self.name, *parts)

    def run(
        self, statement: str, parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    ) -> CursorResult[*tuple[Any, ...]]:
        """Run a statement, as `connections.run` does."""
        return run(self.connection, statement, parameters)
