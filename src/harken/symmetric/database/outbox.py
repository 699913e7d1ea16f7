"""What is to be told, in a table: it waits in order, one deliverer has a claim on it, and settled it is gone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Generic

from harken.normal.operators import microseconds
from harken.symmetric.contract import Item
from harken.symmetric.database.connections import run
from harken.symmetric.database.sql.dialect import Dialect

if TYPE_CHECKING:
    from sqlalchemy import Connection


class TableOutbox(Generic[Item]):
    """As `outbox.Outbox` in memory. Every call is part of a transaction.

    The table has a `number`, the `columns` that `read` makes an item of, and `claimed_until`.
    """

    def __init__(self, dialect: Dialect, table: str, columns: str, read: Callable[..., Item]) -> None:
        self._table = table
        self._columns = columns
        self._read = read
        self._claiming = dialect.claiming(table, columns)

    def waiting(self, connection: Connection, limit: int) -> list[Item]:
        """The oldest, claimed or not."""
        query = f"SELECT {self._columns} FROM {self._table} ORDER BY number LIMIT :limit"
        return [self._read(*row) for row in run(connection, query, {"limit": limit})]

    def claim(self, connection: Connection, limit: int, until: datetime, moment: datetime) -> list[Item]:
        """The oldest that nobody has a claim on at a moment, and claim them; nobody waits for others who do."""
        said = {"limit": limit, "until": microseconds(until), "at": microseconds(moment)}
        found = [self._read(*row) for row in run(connection, self._claiming, said)]
        return sorted(found, key=lambda item: item.number)

    def release(self, connection: Connection, numbers: Iterable[int], until: datetime) -> None:
        """Give back what is still claimed until then."""
        change = f"UPDATE {self._table} SET claimed_until = NULL WHERE number = :number AND claimed_until = :until"
        if said := [{"number": number, "until": microseconds(until)} for number in numbers]:
            run(connection, change, said)

    def settle(self, connection: Connection, numbers: Iterable[int]) -> None:
        """Forget what was told."""
        if said := [{"number": number} for number in numbers]:
            run(connection, f"DELETE FROM {self._table} WHERE number = :number", said)
