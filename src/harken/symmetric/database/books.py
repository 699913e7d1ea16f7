"""The books of an auction in tables: entries, leaders, and changes that are still to be told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from harken.symmetric.books import Entry, Leader, Told
from harken.symmetric.database.connections import Database

if TYPE_CHECKING:
    from sqlalchemy import Connection, MetaData, Table


class DatabaseBook:
    """Books that processes share. Every call is one transaction."""

    def __init__(self, url: str) -> None:
        self._database = Database(url)
        self._entries, self._leaders, self._changes = _tables()
        metadata: MetaData = self._entries.metadata
        with self._database.transaction("make the books of an auction", writes=True) as connection:
            metadata.create_all(connection)

    def enter(self, entry: Entry) -> None:
        """Write an entry down, under the next number."""
        row = {"role": entry.role, "id": entry.id, "product": entry.product, "at": entry.at.isoformat()}
        with self._writing() as connection:
            connection.execute(self._entries.insert(), row)

    def has(self, role: str, id: str) -> bool:
        """Whether there is an entry."""
        columns = self._entries.c
        with self._reading() as connection:
            found = connection.execute(self._entries.select().where(columns.role == role, columns.id == id))
            return found.first() is not None

    def entries(self) -> list[Entry]:
        """All entries, by number."""
        with self._reading() as connection:
            rows = connection.execute(self._entries.select().order_by(self._entries.c.number)).all()
        return [Entry(row.role, row.id, row.product, datetime.fromisoformat(row.at), row.number) for row in rows]

    def strike(self, entries: Iterable[tuple[str, str]]) -> None:
        """Remove entries, and what leads for offers among them."""
        going, columns = list(entries), self._entries.c
        with self._writing() as connection:
            for role, id in going:
                connection.execute(self._entries.delete().where(columns.role == role, columns.id == id))
                if role == "offer":
                    connection.execute(self._leaders.delete().where(self._leaders.c.offer == id))

    def leaders(self) -> list[Leader]:
        """What led after the last cycle."""
        with self._reading() as connection:
            rows = connection.execute(self._leaders.select().order_by(self._leaders.c.offer)).all()
        return [Leader(row.offer, row.bid, row.product) for row in rows]

    def lead(self, leaders: Sequence[Leader], changes: Sequence[Told]) -> None:
        """Keep what leads now, and what is to be told of it, together."""
        with self._writing() as connection:
            for each in leaders:
                connection.execute(self._leaders.delete().where(self._leaders.c.offer == each.offer))
                row = {"offer": each.offer, "bid": each.bid, "product": each.product}
                connection.execute(self._leaders.insert(), row)
            for offer, before, now, product in changes:
                told = {"offer": offer, "before": before, "now": now, "product": product}
                connection.execute(self._changes.insert(), told)

    def changes(self) -> list[tuple[int, str, str | None, str | None, str]]:
        """What is to be told, oldest first, with numbers."""
        with self._reading() as connection:
            rows = connection.execute(self._changes.select().order_by(self._changes.c.number)).all()
        return [(row.number, row.offer, row.before, row.now, row.product) for row in rows]

    def settle(self, numbers: Iterable[int]) -> None:
        """Forget what was told."""
        done = list(numbers)
        with self._writing() as connection:
            connection.execute(self._changes.delete().where(self._changes.c.number.in_(done)))

    def _writing(self) -> _Transaction:
        return self._database.transaction("write the books of an auction", writes=True)

    def _reading(self) -> _Transaction:
        return self._database.transaction("read the books of an auction", writes=False)


if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    _Transaction = AbstractContextManager[Connection]


def _tables() -> tuple[Table, Table, Table]:
    from sqlalchemy import Column, Integer, MetaData, Table, Text

    metadata = MetaData()
    entries = Table(
        "harken_auction_entries",
        metadata,
        Column("number", Integer, primary_key=True),
        Column("role", Text, nullable=False),
        Column("id", Text, nullable=False),
        Column("product", Text, nullable=False),
        Column("at", Text, nullable=False),
    )
    leaders = Table(
        "harken_auction_leaders",
        metadata,
        Column("offer", Text, primary_key=True),
        Column("bid", Text),
        Column("product", Text, nullable=False),
    )
    changes = Table(
        "harken_auction_changes",
        metadata,
        Column("number", Integer, primary_key=True),
        Column("offer", Text, nullable=False),
        Column("before", Text),
        Column("now", Text),
        Column("product", Text, nullable=False),
    )
    return entries, leaders, changes
