"""What is to be told, in a table: it waits in order, one deliverer has a claim on it, and settled it is gone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from datetime import datetime
from typing import TYPE_CHECKING, Generic

from harken.model.subscriptions import moment_of
from harken.normal.operators import microseconds
from harken.symmetric.contract import Item
from harken.symmetric.database.connections import run
from harken.symmetric.database.sql.dialect import Dialect

if TYPE_CHECKING:
    from sqlalchemy import Connection


class TableOutbox(Generic[Item]):
    """As `outbox.Outbox` in memory, `on` a connection whose transaction has begun.

    The table has a `number`, the `columns` that `read` makes an item of, and `claimed_until`.
    """

    _connection: Connection

    def __init__(self, dialect: Dialect, table: str, columns: str, read: Callable[..., Item]) -> None:
        self._table = table
        self._columns = columns
        self._read = read
        self._claiming = dialect.claiming(table, columns)

    def on(self, connection: Connection) -> TableOutbox[Item]:
        """The same in the middle of a transaction, of which all that is asked of it is part."""
        opened = copy(self)
        opened._connection = connection
        return opened

    def waiting(self, limit: int) -> list[Item]:
        """The oldest, claimed or not."""
        query = f"SELECT {self._columns} FROM {self._table} ORDER BY number LIMIT :limit"
        return [self._read(*row) for row in run(self._connection, query, {"limit": limit})]

    def claim(self, limit: int, until: datetime, *, at: datetime | None = None) -> list[Item]:
        """The oldest that nobody has a claim on at a moment, and claim them; nobody waits for others who do."""
        said = {"limit": limit, "until": microseconds(until), "at": microseconds(moment_of(at))}
        found = [self._read(*row) for row in run(self._connection, self._claiming, said)]
        return sorted(found, key=lambda item: item.number)

    def release(self, numbers: Iterable[int], until: datetime) -> None:
        """Give back what is still claimed until then."""
        change = f"UPDATE {self._table} SET claimed_until = NULL WHERE number = :number AND claimed_until = :until"
        if said := [{"number": number, "until": microseconds(until)} for number in numbers]:
            run(self._connection, change, said)

    def settle(self, numbers: Iterable[int]) -> None:
        """Forget what was told."""
        if said := [{"number": number} for number in numbers]:
            run(self._connection, f"DELETE FROM {self._table} WHERE number = :number", said)
