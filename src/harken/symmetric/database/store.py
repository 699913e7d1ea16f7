"""The store on a database: every call is a transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from harken.errors import ArgumentError
from harken.locking import SharedLock
from harken.model.schema import Schema
from harken.model.subscriptions import SubscriptionId, moment_of
from harken.normal.operators import EPOCH, microseconds
from harken.symmetric.contract import OTHER, Held, Notice, Pair, Side, arriving, check_kind, duplicate, unknown
from harken.symmetric.database.connections import Database, Result, dialect_of
from harken.symmetric.database.encodings import Decides, Encoding, Spread
from harken.symmetric.database.loading import held_of
from harken.symmetric.database.paper.encoding import PaperEncoding
from harken.symmetric.database.ranges.encoding import RangeEncoding
from harken.symmetric.database.rows import id_of, id_text
from harken.symmetric.database.schema import HOLDS, SIDES, Layout, clause_number
from harken.symmetric.database.sql.dialect import Dialect, Names, Row, checked_schema_name
from harken.symmetric.database.sql.dialects import dialect
from harken.symmetric.semantics import Box, Boxes, Covers

if TYPE_CHECKING:
    from sqlalchemy import Connection, MetaData, Table

_AT_ONCE = 20_000
"""Constraints that are written together while many are loaded."""

_ENCODINGS: dict[str, Callable[[Layout], Encoding]] = {"ranges": RangeEncoding, "paper": PaperEncoding}

_KEPT = ("number", "id", "said", "valid_until", "clauses", "always", "valid_from")


class DatabaseStore:
    """Constraints in tables of SQLite (`sqlite:///market.db`) or PostgreSQL (`postgresql://user@host/database`).

    Tables are made on first use, in `schema_name` if one is given (on SQLite it becomes part of their names). Two
    encodings give the same answers: "ranges", the quicker one, and "paper", that of Tomasic et al. 2006, section
    3. It is chosen for good when the tables are made.

    Every call is one transaction, durable when it returns: on SQLite with a flush of the disk (WAL,
    `synchronous=FULL`), on PostgreSQL as the server is configured. Threads and processes may share a database. A
    publication and a subscription that are put at the same time find each other: writers of the two sides wait for
    each other, and on SQLite all writers do. Readers wait for nobody, except for `load` into a PostgreSQL table
    that has few rows, which makes its indexes anew.

    Calls raise DatabaseError if the database cannot be reached, is full or refuses; then nothing has changed,
    unless the connection was lost during COMMIT, of which nobody can tell. They raise IndexFormatError if there
    are tables that this Harken has not made. Passwords are in no error and no repr.
    """

    def __init__(
        self, url: str, *, encoding: Literal["ranges", "paper"] = "ranges", schema_name: str | None = None
    ) -> None:
        if encoding not in _ENCODINGS:
            raise ArgumentError.choice("encoding", encoding, tuple(_ENCODINGS))
        spoken = dialect(dialect_of(url))
        self._layout = Layout(spoken, spoken.names(checked_schema_name(schema_name)), encoding)
        self._encoding: Encoding = _ENCODINGS[encoding](self._layout)
        first = self._encoding.on_connect
        self._database = Database(url, on_connect=lambda connection: spoken.on_connect(connection, first))
        self._preparing = SharedLock()
        self._is_prepared = False
        self._joined: Connection | None = None

    def __repr__(self) -> str:
        return f"DatabaseStore({self._database.where!r}, encoding={self._layout.encoding!r})"

    @property
    def names(self) -> Names:
        """What its tables are called, for those who keep others beside them."""
        return self._layout.names

    @property
    def dialect(self) -> Dialect:
        """How its database speaks."""
        return self._layout.dialect

    def together(self, attempted: str, work: Callable[[DatabaseStore, Connection], Result]) -> Result:
        """Do several calls, and other work on the connection, in one transaction.

        The work is given a store whose calls are part of it. If another transaction gets in its way, it is done
        again.
        """
        return self._write(attempted, lambda connection, _: work(self._within(connection), connection))

    @contextmanager
    def looking(self, attempted: str) -> Iterator[tuple[DatabaseStore, Connection]]:
        """One state of the database, to read from: a store that sees it, and the connection."""
        with self._read(attempted) as connection:
            yield self._within(connection), connection

    def _within(self, connection: Connection) -> DatabaseStore:
        """A store whose calls are part of a transaction."""
        store = copy(self)
        store._joined = connection
        return store

    def make_beside(self, attempted: str, tables: MetaData) -> None:
        """Make tables of others beside its own, and columns that are new in them, unless they are there."""

        def work(_: DatabaseStore, connection: Connection) -> None:
            self._layout.dialect.create_room(connection, self.names)
            tables.create_all(connection)
            for table in tables.sorted_tables:
                _add_columns(connection, table)

        self.together(attempted, work)

    # ---------------------------------------------------------------- writing

    def put(
        self,
        side: Side,
        several: Sequence[Held],
        covers: Covers,
        *,
        replace: bool = False,
        notify: bool = False,
        at: datetime | None = None,
    ) -> list[Pair]:
        """Keep constraints, match each with the other side, and note the matches: all of it, or nothing."""
        kept: dict[SubscriptionId, Held] = {}
        for each in several:
            if not replace and each.id in kept:
                raise duplicate(side, each.id)
            kept[each.id] = each
        moment = moment_of(at)

        def work(connection: Connection, alone: bool) -> list[Pair]:
            self._lock(connection, side, alone=alone)
            check_kind(side, self._first_id(connection, side), kept)
            self._make_room(connection, side, list(kept), replace=replace)
            self._add(connection, side, list(kept.values()))
            pairs = self._matches(connection, OTHER[side], arriving(several, moment), covers, moment)
            if notify:
                self._notify(connection, side, several, pairs, moment)
            return pairs

        if not several:
            self._database.check_open(f"keep {side}")
            return []
        return self._write(f"keep {side}", work)

    def load(self, side: Side, table: pa.Table, schema: Schema | None) -> None:
        """Keep many constraints, given in the compiled form: a million in a minute or two.

        If there are more than the side has, its indexes are made anew, and on PostgreSQL readers wait meanwhile.
        """

        def work(connection: Connection, alone: bool) -> None:
            self._lock(connection, side, alone=alone)
            check_kind(side, self._first_id(connection, side), table.column("id")[:1].to_pylist())
            afresh = table.num_rows > max(_AT_ONCE, self._count(connection, side))
            indexes = self._encoding.indexes(side) if afresh else []
            for index in indexes:
                connection.exec_driver_sql(f"DROP INDEX {index.name}")
            self._load(connection, side, held_of(table, schema), table.num_rows)
            for index in indexes:
                connection.exec_driver_sql(index.statement)
            if afresh:
                tables = [self._layout.names(side), *self._encoding.table_names(side)]
                self._layout.dialect.analyse(connection, tables)

        self._write(f"load {side}", work)

    def remove(self, side: Side, ids: Iterable[SubscriptionId]) -> None:
        """Forget constraints, all or none."""
        going = list(dict.fromkeys(ids))

        def work(connection: Connection, _: bool) -> None:
            gone = self._forget(connection, side, going)
            for id in going:
                if id not in gone:
                    raise unknown(side, id)

        if going:
            self._write(f"remove {side}", work)
        self._database.check_open(f"remove {side}")

    def settle(self, numbers: Iterable[int]) -> None:
        """Forget notices that were delivered."""
        from sqlalchemy import text

        done = [{"number": number} for number in numbers]
        statement = text(f"DELETE FROM {self._layout.names('notices')} WHERE number = :number")
        if done:
            self._write("settle notices", lambda connection, _: connection.execute(statement, done))
        self._database.check_open("settle notices")

    def claim(self, limit: int, until: datetime, *, at: datetime | None = None) -> list[Notice]:
        """The oldest notices that nobody has a claim on, and claim them; nobody waits for others who do."""
        from sqlalchemy import text

        table, columns = self._layout.names("notices"), "number, publication, subscription, made_at"
        statement = text(self._layout.dialect.claiming(table, columns))
        said = {"limit": limit, "until": microseconds(until), "at": microseconds(moment_of(at))}
        found = self._write("claim notices", lambda connection, _: connection.execute(statement, said).all())
        return sorted((_notice(row) for row in found), key=lambda notice: notice.number)

    def release(self, numbers: Iterable[int], until: datetime) -> None:
        """Give notices back that are still claimed until then."""
        from sqlalchemy import text

        said = [{"number": number, "until": microseconds(until)} for number in numbers]
        statement = text(
            f"UPDATE {self._layout.names('notices')} SET claimed_until = NULL"
            " WHERE number = :number AND claimed_until = :until"
        )
        if said:
            self._write("release notices", lambda connection, _: connection.execute(statement, said))
        self._database.check_open("release notices")

    # ---------------------------------------------------------------- reading

    def match(
        self, side: Side, asked: Sequence[Boxes], covers: Covers, *, at: datetime | None = None
    ) -> list[Pair]:
        """What is held and matches, in one state of the database.

        In the range encoding, a publication takes a few looks into indexes, and as many rows as have what its most
        selective attribute asks for. Any number may be asked about at once: they are sent in portions that are as
        quick as if asked alone.
        """
        with self._read(f"match with {side}") as connection:
            return self._matches(connection, side, asked, covers, moment_of(at))

    def matched(
        self, side: Side, asked: Boxes, covers: Covers, *, at: datetime | None = None
    ) -> dict[SubscriptionId, Boxes]:
        """What matches one constraint, with its boxes, in one state of the database."""
        with self._read(f"match with {side}") as connection:
            found = self._matches(connection, side, [asked], covers, moment_of(at))
            kept = {id: self._within(connection).get(side, id) for _, id in found}
        return {id: held.boxes for id, held in kept.items() if held is not None}

    def attributes(self, side: Side) -> set[str]:
        """The attributes that any constraint was ever about."""
        query = f"SELECT name FROM {self._layout.names('attributes')} WHERE cluster >= 0"
        with self._read("list attributes") as connection:
            return {json.loads(name) for name in connection.exec_driver_sql(query).scalars()}

    def get(self, side: Side, id: SubscriptionId) -> Held | None:
        """What is kept under an id."""
        from sqlalchemy import text

        columns = "number, said, valid_until, valid_from, clauses"
        query = text(f"SELECT {columns} FROM {self._layout.names(side)} WHERE id = :id")
        with self._read(f"get one of the {side}") as connection:
            row = connection.execute(query, {"id": id_text(id)}).first()
            if row is None:
                return None
            number, said, *times, clauses = row
            boxes = self._encoding.restore(connection, side, number)
        # A clause that asks nothing has no rows.
        restored = Boxes(tuple(boxes.get(place, {}) for place in range(clauses)))
        return Held(id, restored, json.loads(said), *(None if each is None else _moment(each) for each in times))

    def ids(self, side: Side) -> list[SubscriptionId]:
        """All ids of one side, in the order in which they came."""
        query = f"SELECT id FROM {self._layout.names(side)} ORDER BY number"
        with self._read(f"list {side}") as connection:
            return [id_of(text) for text in connection.exec_driver_sql(query).scalars()]

    def count(self, side: Side) -> int:
        """How many constraints one side has."""
        with self._read(f"count {side}") as connection:
            return self._count(connection, side)

    def notices(self, limit: int) -> list[Notice]:
        """The oldest notices that nobody has settled."""
        from sqlalchemy import text

        columns, table = "number, publication, subscription, made_at", self._layout.names("notices")
        query = text(f"SELECT {columns} FROM {table} ORDER BY number LIMIT :limit")
        with self._read("read notices") as connection:
            return [_notice(row) for row in connection.execute(query, {"limit": limit})]

    def close(self) -> None:
        """Let go of connections. All other calls afterwards raise ClosedError."""
        self._database.close()

    # ---------------------------------------------------------------- inside

    @contextmanager
    def _read(self, attempted: str) -> Iterator[Connection]:
        if self._joined is not None:
            yield self._joined
            return
        self._prepare()
        with self._database.transaction(attempted, writes=False) as connection:
            yield connection

    def _write(self, attempted: str, work: Callable[[Connection, bool], Result]) -> Result:
        if self._joined is not None:
            return work(self._joined, False)
        self._prepare()
        return self._database.write(attempted, work)

    def _prepare(self) -> None:
        if self._is_prepared:
            return
        with self._preparing.lock:
            with self._database.transaction("look at the tables", writes=False) as connection:
                ready = self._layout.is_ready(connection)
            if not ready:
                indexes = [index for side in SIDES for index in self._encoding.indexes(side)]
                tables = self._encoding.tables()
                self._database.write(
                    "make the tables", lambda connection, _: self._layout.prepare(connection, tables, indexes)
                )
            self._is_prepared = True

    def _lock(self, connection: Connection, side: Side, *, alone: bool) -> None:
        """Keep writers of the other side out; and all, if the first subscription is to say what ids are."""
        first = side == "subscriptions" and self._first_id(connection, side) is None
        self._layout.dialect.lock(connection, self._layout.names, side, alone=alone or first)

    def _first_id(self, connection: Connection, side: Side) -> SubscriptionId | None:
        query = f"SELECT id FROM {self._layout.names(side)} ORDER BY number LIMIT 1"
        found = connection.exec_driver_sql(query).scalar()
        return None if found is None else id_of(found)

    def _make_room(
        self, connection: Connection, side: Side, ids: Sequence[SubscriptionId], *, replace: bool
    ) -> None:
        if replace:
            self._forget(connection, side, ids)
            return
        taken = self._among(connection, f"SELECT id, number FROM {self._layout.names(side)} WHERE", ids)
        for id in ids:
            if id in taken:
                raise duplicate(side, id)

    def _forget(
        self, connection: Connection, side: Side, ids: Sequence[SubscriptionId]
    ) -> dict[SubscriptionId, int]:
        """Remove those that are there, with all their rows."""
        table = self._layout.names(side)
        gone = self._among(connection, f"DELETE FROM {table} WHERE", ids, "RETURNING id, number")
        if gone:
            self._encoding.remove(connection, side, list(gone.values()))
        return gone

    def _among(
        self, connection: Connection, statement: str, ids: Sequence[SubscriptionId], then: str = ""
    ) -> dict[SubscriptionId, int]:
        from sqlalchemy import text

        dialect = self._layout.dialect
        found = connection.execute(
            text(f"{statement} {dialect.among('id', 'ids')} {then}"),
            {"ids": dialect.several([id_text(id) for id in ids])},
        )
        return {id_of(id): number for id, number in found}

    def _add(
        self, connection: Connection, side: Side, several: Sequence[Held], spread: Spread | None = None
    ) -> None:
        dialect, names = self._layout.dialect, self._layout.names
        numbers = dialect.new_numbers(connection, names, side, len(several))
        rows: list[Row] = []
        clauses: list[tuple[int, Box]] = []
        for number, held in zip(numbers, several, strict=True):
            boxes = held.boxes.boxes
            begin, end = (
                None if each is None else microseconds(each) for each in (held.valid_from, held.valid_until)
            )
            said = json.dumps(held.text, ensure_ascii=False)
            rows.append((number, id_text(held.id), said, end, len(boxes), any(not box for box in boxes), begin))
            clauses.extend((clause_number(number, place), box) for place, box in enumerate(boxes) if box)
        dialect.insert(connection, names(side), _KEPT, rows)
        if clauses:
            self._encoding.add(connection, side, clauses, spread)

    def _load(self, connection: Connection, side: Side, coming: Iterator[Held], count: int) -> None:
        spread = None
        while several := list(islice(coming, _AT_ONCE)):
            ids: dict[SubscriptionId, None] = {}
            for each in several:
                if each.id in ids:
                    raise duplicate(side, each.id)
                ids[each.id] = None
            self._make_room(connection, side, list(ids), replace=False)
            if spread is None:
                spread = Spread.of((box for each in several for box in each.boxes.boxes if box), count)
            self._add(connection, side, several, spread)

    def _count(self, connection: Connection, side: Side) -> int:
        query = f"SELECT count(*) FROM {self._layout.names(side)}"
        return int(connection.exec_driver_sql(query).scalar_one())

    def _matches(
        self, connection: Connection, side: Side, asked: Sequence[Boxes], covers: Covers, moment: datetime
    ) -> list[Pair]:
        decides: Decides = "asked" if (covers == "publication") == (side == "subscriptions") else "held"
        at = microseconds(moment)
        found: list[dict[int, SubscriptionId]] = [{} for _ in asked]
        open_to_all = [
            place
            for place, boxes in enumerate(asked)
            if (boxes.boxes if decides == "held" else any(not box for box in boxes.boxes))
        ]
        if open_to_all:
            everybody = self._unasked(connection, side, decides, at)
            for place in open_to_all:
                found[place] |= everybody
        clauses = [(place, box) for place, boxes in enumerate(asked) for box in boxes.boxes if box]
        if clauses:
            boxes = [box for _, box in clauses]
            for ask, number, id in self._encoding.find(connection, side, boxes, decides, at):
                found[clauses[ask][0]][number] = id_of(id)
        return [(place, ids[number]) for place, ids in enumerate(found) for number in sorted(ids)]

    def _unasked(self, connection: Connection, side: Side, decides: Decides, at: int) -> dict[int, SubscriptionId]:
        """What matches without any attribute being compared: all, or what asks nothing."""
        from sqlalchemy import text

        which = "clauses > 0" if decides == "asked" else "always"
        query = text(f"SELECT number, id FROM {self._layout.names(side)} m WHERE {which} AND {HOLDS}")
        return {number: id_of(id) for number, id in connection.execute(query, {"at": at})}

    def _notify(
        self, connection: Connection, side: Side, several: Sequence[Held], pairs: list[Pair], moment: datetime
    ) -> None:
        made_at = microseconds(moment)
        rows: list[Row] = []
        for place, id in pairs:
            kept, met = id_text(several[place].id), id_text(id)
            rows.append((*((kept, met) if side == "publications" else (met, kept)), made_at))
        columns = ("publication", "subscription", "made_at")
        self._layout.dialect.insert(connection, self._layout.names("notices"), columns, rows)


def _add_columns(connection: Connection, table: Table) -> None:
    """Columns that a version before did not have; they may be null."""
    from sqlalchemy import inspect

    known = {column["name"] for column in inspect(connection).get_columns(table.name, schema=table.schema)}
    for column in table.columns:
        if column.name not in known:
            shown = connection.dialect.identifier_preparer.format_table(table)
            described = column.type.compile(connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {shown} ADD COLUMN {column.name} {described}")


def _notice(row: Sequence[Any]) -> Notice:  # a row of the driver's
    number, publication, subscription, made_at = row
    return Notice(number, id_of(publication), id_of(subscription), _moment(made_at))


def _moment(count: int) -> datetime:
    return EPOCH + timedelta(microseconds=count)
