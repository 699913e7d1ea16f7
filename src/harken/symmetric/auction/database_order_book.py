"""The book of an auction in tables: entries, leaders, and changes that are still to be told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import asdict, replace
from datetime import datetime
from typing import TYPE_CHECKING

from harken.symmetric.auction.order_book import BestChanged, Entry, Role
from harken.symmetric.contract import Outlet, Store
from harken.symmetric.database.connections import Result, run
from harken.symmetric.database.outbox import TableOutbox
from harken.symmetric.database.store import DatabaseStore
from harken.symmetric.outbox import Keeping

if TYPE_CHECKING:
    from sqlalchemy import Connection


_TABLES = ("auction_entries", "auction_leaders", "auction_changes")


class DatabaseOrderBook(Keeping[BestChanged]):
    """A book that processes share, beside the tables of a store."""

    _attempts = ("claim what changed", "release what was not told", "settle what was told")
    _connection: Connection
    """In the middle of a transaction."""

    def __init__(self, store: DatabaseStore) -> None:
        self.store: Store = store
        self._kept = store
        names = store.dialect.names
        self._entries, self._leaders, self._changes = map(names, _TABLES)
        columns = "offer, before, now, product, number"
        self._untold = TableOutbox(store.dialect, self._changes, columns, BestChanged)
        store.together("make the book of an auction", self._make)

    def together(
        self, attempted: str, work: Callable[[DatabaseOrderBook], Result], *, alone: bool = False
    ) -> Result:
        """Do some work in one transaction, again if another one got in its way."""

        def on(store: Store, connection: Connection) -> Result:
            if alone and connection.dialect.name == "postgresql":  # SQLite has one writer at a time anyway
                run(connection, f"LOCK TABLE {self._leaders} IN EXCLUSIVE MODE")
            return work(self._within(store, connection))

        return self._kept.together(attempted, on)

    def look(self, attempted: str, work: Callable[[DatabaseOrderBook], Result]) -> Result:
        """Do some work that only reads."""
        with self._kept.looking(attempted) as (store, connection):
            return work(self._within(store, connection))

    def _within(self, store: Store, connection: Connection) -> DatabaseOrderBook:
        book = copy(self)
        book.store, book._connection = store, connection
        return book

    def close(self) -> None:
        """Let go of connections."""
        self._kept.close()

    def _make(self, _: Store, connection: Connection) -> None:
        """The tables, and what an earlier version did not have in them, unless they are there."""
        dialect = self._kept.dialect
        whole, text = dialect.types["whole"], dialect.types["text"]
        needed, number, unique = f"{text} NOT NULL", f"number {dialect.counted}", "UNIQUE (role, id)"
        tables = {
            self._entries: f"{number}, role {needed}, id {needed}, product {needed}, at {needed}, {unique}",
            self._leaders: f"offer {needed} PRIMARY KEY, bid {text}, product {needed}",
            self._changes: f"{number}, offer {needed}, before {text}, now {text}, product {needed}",
        }
        # Who may use the tables need not have the right to make any.
        if not all(dialect.is_there(connection, name) for name in _TABLES):
            dialect.create_room(connection)
            for table, columns in tables.items():
                run(connection, f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
        known = set(run(connection, f"SELECT * FROM {self._changes} LIMIT 0").keys())
        if "claimed_until" not in known:
            run(connection, f"ALTER TABLE {self._changes} ADD COLUMN claimed_until {whole}")

    # ---------------------------------------------------------------- within a transaction

    def enter(self, entry: Entry) -> None:
        """Write an entry down."""
        add = f"INSERT INTO {self._entries} (role, id, product, at) VALUES (:role, :id, :product, :at)"
        run(self._connection, add, asdict(entry) | {"at": entry.at.isoformat()})

    def has(self, role: Role, id: str) -> bool:
        """Whether there is an entry."""
        query = f"SELECT 1 FROM {self._entries} WHERE role = :role AND id = :id"
        return run(self._connection, query, {"role": role, "id": id}).first() is not None

    def entries(self) -> list[Entry]:
        """All entries."""
        rows = run(self._connection, f"SELECT role, id, product, at, number FROM {self._entries}")
        found = [
            Entry(role, id, product, datetime.fromisoformat(at), number) for role, id, product, at, number in rows
        ]
        return sorted(found, key=lambda entry: (entry.at, entry.number))

    def strike(self, role: Role, id: str) -> None:
        """Remove an entry."""
        going = {"role": role, "id": id}
        run(self._connection, f"DELETE FROM {self._entries} WHERE role = :role AND id = :id", going)
        if role == "offer":
            run(self._connection, f"DELETE FROM {self._leaders} WHERE offer = :offer", {"offer": id})

    def leaders(self) -> dict[str, str | None]:
        """What led after the last cycle."""
        return dict(run(self._connection, f"SELECT offer, bid FROM {self._leaders} ORDER BY offer").all())

    def lead(self, offer: Entry, bid: str | None) -> None:
        """Keep which bid leads now."""
        keep = (
            f"INSERT INTO {self._leaders} (offer, bid, product) VALUES (:offer, :bid, :product)"
            " ON CONFLICT (offer) DO UPDATE SET bid = excluded.bid, product = excluded.product"
        )
        run(self._connection, keep, {"offer": offer.id, "bid": bid, "product": offer.product})

    def tell(self, changes: Iterable[BestChanged]) -> list[BestChanged]:
        """Keep what is to be told."""
        add = (
            f"INSERT INTO {self._changes} (offer, before, now, product)"
            " VALUES (:offer, :before, :now, :product) RETURNING number"
        )
        return [replace(each, number=run(self._connection, add, asdict(each)).scalar_one()) for each in changes]

    def _with_outbox(self, attempted: str, work: Callable[[Outlet[BestChanged]], Result]) -> Result:
        return self._kept.together(attempted, lambda _, connection: work(self._untold.on(connection)))
