"""The partition directory in a database, whose schemas are the rows of servers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

from harken.errors import ConcurrentChangeError
from harken.symmetric.contract import Store
from harken.symmetric.database.connections import Database, OvertakenError, dialect_of
from harken.symmetric.database.sql.dialect import checked_schema_name
from harken.symmetric.database.sql.dialects import dialect
from harken.symmetric.database.store import DatabaseStore
from harken.symmetric.partitions import Partitions

if TYPE_CHECKING:
    from sqlalchemy import Connection


class DatabaseDirectory:
    """A directory that processes share: one row of a table, which is exchanged only by who knows what it says."""

    def __init__(self, url: str, *, schema_name: str | None = None) -> None:
        spoken = dialect(dialect_of(url))
        self._dialect = spoken
        self._names = spoken.names(checked_schema_name(schema_name))
        self._table = self._names("directory")
        self._database = Database(url, on_connect=lambda connection: spoken.on_connect(connection, ()))
        self._database.write("make the directory", self._make)

    def read(self) -> Partitions | None:
        """What holds now."""
        with self._database.transaction("read the directory", writes=False) as connection:
            said = connection.exec_driver_sql(f"SELECT partitions FROM {self._table}").scalar()
        return None if said is None else Partitions(**json.loads(said))

    def write(self, expected: Partitions | None, partitions: Partitions) -> None:
        """Put others in their place."""
        from sqlalchemy import text

        change = (
            f"INSERT INTO {self._table} VALUES (1, :after)"
            if expected is None
            else f"UPDATE {self._table} SET partitions = :after WHERE partitions = :before"
        )
        said = {"before": _said(expected), "after": _said(partitions)}
        refused = ConcurrentChangeError("the directory", partitions.version)
        try:
            with self._database.transaction("write the directory", writes=True) as connection:
                if expected is None and connection.exec_driver_sql(f"SELECT 1 FROM {self._table}").first():
                    raise refused
                if connection.execute(text(change), said).rowcount != 1:
                    raise refused
        except OvertakenError as error:
            raise refused from error

    def close(self) -> None:
        """Let go of connections."""
        self._database.close()

    def _make(self, connection: Connection, _: bool) -> None:
        self._dialect.create_room(connection, self._names)
        whole, text = self._dialect.types["whole"], self._dialect.types["text"]
        connection.exec_driver_sql(
            f"CREATE TABLE IF NOT EXISTS {self._table}"
            f" (only_row {whole} PRIMARY KEY CHECK (only_row = 1), partitions {text} NOT NULL)"
        )


def schemas_of(url: str) -> Callable[[str], Store]:
    """Rows of servers that are schemas of one database, by name."""
    return lambda name: DatabaseStore(url, schema_name=name)


def _said(partitions: Partitions | None) -> str | None:
    return None if partitions is None else json.dumps(asdict(partitions), sort_keys=True)
