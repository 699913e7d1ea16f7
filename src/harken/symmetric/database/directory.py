"""The partition directory in a database, whose schemas are the rows of servers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

from harken.errors import ConcurrentChangeError
from harken.symmetric.contract import Store
from harken.symmetric.database.connections import Database, OvertakenError, run
from harken.symmetric.database.sql import dialect_of
from harken.symmetric.database.store import DatabaseStore
from harken.symmetric.partitions import Partitions

if TYPE_CHECKING:
    from sqlalchemy import Connection


class DatabaseDirectory:
    """A directory that processes share: one row of a table, which is exchanged only by who knows what it says."""

    def __init__(self, url: str, *, schema_name: str | None = None) -> None:
        dialect = self._dialect = dialect_of(url, schema_name)
        self._table = dialect.names("directory")
        self._database = Database(url, lambda connection: dialect.on_connect(connection, ()))
        self._database.write("make the directory", self._make)

    def read(self) -> Partitions | None:
        """What holds now."""
        with self._database.transaction("read the directory", writes=False) as connection:
            said = run(connection, f"SELECT partitions FROM {self._table}").scalar()
        return None if said is None else Partitions(**json.loads(said))

    def write(self, expected: Partitions | None, partitions: Partitions) -> None:
        """Put others in their place."""
        change = (
            f"INSERT INTO {self._table} SELECT 1, :after WHERE NOT EXISTS (SELECT 1 FROM {self._table})"
            if expected is None
            else f"UPDATE {self._table} SET partitions = :after WHERE partitions = :before"
        )
        said = {"after": _said(partitions)} | ({"before": _said(expected)} if expected else {})
        refused = ConcurrentChangeError("the directory", partitions.version)
        try:
            with self._database.transaction("write the directory", writes=True) as connection:
                if run(connection, change, said).rowcount != 1:
                    raise refused
        except OvertakenError as error:
            raise refused from error

    def close(self) -> None:
        """Let go of connections."""
        self._database.close()

    def _make(self, connection: Connection, _: bool) -> None:
        self._dialect.create_room(connection)
        whole, text = self._dialect.types["whole"], self._dialect.types["text"]
        columns = f"only_row {whole} PRIMARY KEY CHECK (only_row = 1), partitions {text} NOT NULL"
        run(connection, f"CREATE TABLE IF NOT EXISTS {self._table} ({columns})")


def schemas_of(url: str) -> Callable[[str], Store]:
    """Rows of servers that are schemas of one database, by name."""
    return lambda name: DatabaseStore(url, schema_name=name)


def _said(partitions: Partitions) -> str:
    return json.dumps(asdict(partitions), sort_keys=True)
