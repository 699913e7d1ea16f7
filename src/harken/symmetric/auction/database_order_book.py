"""The books of an auction in tables: entries, leaders, and changes that are still to be told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from harken.normal.operators import microseconds
from harken.symmetric.auction.order_book import BestChanged, Entry, Leader, OrderBook, Role
from harken.symmetric.contract import Store
from harken.symmetric.database.connections import Result
from harken.symmetric.database.sql.dialect import Dialect, Names
from harken.symmetric.database.store import DatabaseStore

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table


class DatabaseOrderBooks:
    """Books that processes share, beside the tables of a store."""

    def __init__(self, store: DatabaseStore) -> None:
        self._store = store
        self._dialect = store.dialect
        self._tables = _tables(store.names)
        store.make_beside("make the books of an auction", self._tables.entries.metadata)

    def together(self, attempted: str, work: Callable[[OrderBook], Result], *, alone: bool = False) -> Result:
        """Do some work in one transaction, again if another one got in its way."""

        def on(store: Store, connection: Connection) -> Result:
            if alone and connection.dialect.name == "postgresql":  # SQLite has one writer at a time anyway
                connection.exec_driver_sql(f"LOCK TABLE {self._tables.leaders} IN EXCLUSIVE MODE")
            return work(_OpenBook(store, connection, self._dialect, self._tables))

        return self._store.together(attempted, on)

    def look(self, attempted: str, work: Callable[[OrderBook], Result]) -> Result:
        """Do some work that only reads."""
        with self._store.looking(attempted) as (store, connection):
            return work(_OpenBook(store, connection, self._dialect, self._tables))

    def close(self) -> None:
        """Let go of connections."""
        self._store.close()


class _Tables(NamedTuple):
    entries: Table
    leaders: Table
    changes: Table


class _OpenBook:
    """The book in one transaction."""

    def __init__(self, store: Store, connection: Connection, dialect: Dialect, tables: _Tables) -> None:
        self.store = store
        self._connection = connection
        self._dialect = dialect
        self._entries, self._leaders, self._changes = tables

    def enter(self, entry: Entry) -> None:
        """Write an entry down."""
        row = {"role": entry.role, "id": entry.id, "product": entry.product, "at": entry.at.isoformat()}
        self._connection.execute(self._entries.insert(), row)

    def has(self, role: Role, id: str) -> bool:
        """Whether there is an entry."""
        columns = self._entries.c
        query = self._entries.select().where(columns.role == role, columns.id == id)
        return self._connection.execute(query).first() is not None

    def entries(self) -> list[Entry]:
        """All entries."""
        found = [
            Entry(row.role, row.id, row.product, datetime.fromisoformat(row.at), row.number)
            for row in self._connection.execute(self._entries.select())
        ]
        return sorted(found, key=lambda entry: (entry.at, entry.number))

    def strike(self, entries: Iterable[tuple[Role, str]]) -> None:
        """Remove entries."""
        columns = self._entries.c
        for role, id in entries:
            self._connection.execute(self._entries.delete().where(columns.role == role, columns.id == id))
            if role == "offer":
                self._connection.execute(self._leaders.delete().where(self._leaders.c.offer == id))

    def leaders(self) -> list[Leader]:
        """What led after the last cycle."""
        rows = self._connection.execute(self._leaders.select().order_by(self._leaders.c.offer))
        return [Leader(row.offer, row.bid, row.product) for row in rows]

    def lead(self, leaders: Iterable[Leader]) -> None:
        """Keep what leads now."""
        for each in leaders:
            self._connection.execute(self._leaders.delete().where(self._leaders.c.offer == each.offer))
            row = {"offer": each.offer, "bid": each.bid, "product": each.product}
            self._connection.execute(self._leaders.insert(), row)

    def tell(self, changes: Iterable[BestChanged]) -> list[BestChanged]:
        """Keep what is to be told."""
        numbered = []
        for each in changes:
            row = {"offer": each.offer, "before": each.before, "now": each.now, "product": each.product}
            key = self._connection.execute(self._changes.insert(), row).inserted_primary_key
            assert key is not None
            numbered.append(replace(each, number=key[0]))
        return numbered

    def claim(self, limit: int, until: datetime, moment: datetime) -> list[BestChanged]:
        """What is to be told and nobody has a claim on."""
        from sqlalchemy import text

        statement = text(self._dialect.claiming(self._changes.fullname, "number, offer, before, now, product"))
        said = {"limit": limit, "until": microseconds(until), "at": microseconds(moment)}
        rows = self._connection.execute(statement, said)
        found = [BestChanged(row.offer, row.before, row.now, row.product, row.number) for row in rows]
        return sorted(found, key=lambda change: change.number)

    def release(self, numbers: Iterable[int], until: datetime) -> None:
        """Give back what is still claimed until then."""
        columns = self._changes.c
        mine = columns.number.in_(list(numbers)), columns.claimed_until == microseconds(until)
        self._connection.execute(self._changes.update().where(*mine).values(claimed_until=None))

    def settle(self, numbers: Iterable[int]) -> None:
        """Forget what was told."""
        self._connection.execute(self._changes.delete().where(self._changes.c.number.in_(list(numbers))))


def _tables(names: Names) -> _Tables:
    from sqlalchemy import BigInteger, Column, Integer, MetaData, Table, Text, UniqueConstraint

    metadata = MetaData(schema=names.schema)
    number = BigInteger().with_variant(Integer, "sqlite")  # which counts up in a column of no other type
    return _Tables(
        Table(
            names.bare("auction_entries"),
            metadata,
            Column("number", number, primary_key=True),
            Column("role", Text, nullable=False),
            Column("id", Text, nullable=False),
            Column("product", Text, nullable=False),
            Column("at", Text, nullable=False),
            UniqueConstraint("role", "id"),
            sqlite_autoincrement=True,
        ),
        Table(
            names.bare("auction_leaders"),
            metadata,
            Column("offer", Text, primary_key=True),
            Column("bid", Text),
            Column("product", Text, nullable=False),
        ),
        Table(
            names.bare("auction_changes"),
            metadata,
            Column("number", number, primary_key=True),
            Column("offer", Text, nullable=False),
            Column("before", Text),
            Column("now", Text),
            Column("product", Text, nullable=False),
            Column("claimed_until", BigInteger),
            sqlite_autoincrement=True,
        ),
    )
