"""The store on a database: every call is a transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from harken.errors import ArgumentError
from harken.locking import SharedLock
from harken.model.schema import Schema
from harken.model.subscriptions import SubscriptionId, moment_of
from harken.normal.operators import microseconds, moment_from
from harken.symmetric.contract import (
    OTHER,
    Held,
    Notice,
    Outlet,
    Pair,
    Side,
    arriving,
    check_kind,
    check_new,
    named,
    unknown,
)
from harken.symmetric.database.connections import Database, Result
from harken.symmetric.database.encodings import Decides, Encoding, Spread
from harken.symmetric.database.loading import held_of
from harken.symmetric.database.outbox import TableOutbox
from harken.symmetric.database.paper.encoding import PaperEncoding
from harken.symmetric.database.ranges.encoding import RangeEncoding
from harken.symmetric.database.rows import id_of, id_text
from harken.symmetric.database.schema import HOLDS, SIDES, Layout, clause_number
from harken.symmetric.database.sides import OpenSide
from harken.symmetric.database.sql import dialect_of
from harken.symmetric.database.sql.dialect import Dialect, Row
from harken.symmetric.outbox import Keeping
from harken.symmetric.semantics import Box, Boxes, Covers

if TYPE_CHECKING:
    from sqlalchemy import Connection

_AT_ONCE = 20_000
"""Constraints that are written together while many are loaded."""

_ENCODINGS: dict[str, Callable[[Dialect], Encoding]] = {"ranges": RangeEncoding, "paper": PaperEncoding}

_KEPT = ("number", "id", "said", "valid_until", "clauses", "always", "valid_from")


class DatabaseStore(Keeping[Notice]):
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
        self.dialect = dialect = dialect_of(url, schema_name)
        self._layout = Layout(dialect, encoding)
        self._encoding: Encoding = _ENCODINGS[encoding](dialect)
        first = self._encoding.on_connect
        self._database = Database(url, lambda connection: dialect.on_connect(connection, first))
        self._notices = TableOutbox(
            dialect, dialect.names("notices"), "number, publication, subscription, made_at", _notice
        )
        self._preparing = SharedLock()
        self._is_prepared = False
        self._joined: Connection | None = None

    def __repr__(self) -> str:
        return f"DatabaseStore({self._database.where!r}, encoding={self._layout.encoding!r})"

    def together(self, attempted: str, work: Callable[[DatabaseStore, Connection], Result]) -> Result:
        """Do several calls, and other work on the connection, in one transaction.

        The work is given a store whose calls are part of it. If another transaction gets in its way, it is done
        again.
        """
        return self._write(attempted, lambda connection, _: work(self._within(connection), connection))

    @contextmanager
    def looking(self, attempted: str) -> Iterator[tuple[DatabaseStore, Connection]]:
        """One state of the database, to read from: a store that sees it, and the connection."""
        with self._read(attempted) as opened:
            yield self._within(opened.connection), opened.connection

    def _within(self, connection: Connection) -> DatabaseStore:
        """A store whose calls are part of a transaction."""
        store = copy(self)
        store._joined = connection
        return store

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
        kept = {each.id: each for each in several}
        moment = moment_of(at)

        def work(connection: Connection, alone: bool) -> list[Pair]:
            opened = self._open_alone(connection, side, alone, kept)
            if replace:
                self._forget(opened, kept)
            else:
                self._check_new(opened, several)
            self._add(opened, kept.values())
            asked = arriving(several, moment)
            pairs = self._matches(self._open(connection, OTHER[side]), asked, covers, moment)
            if notify:
                self._notify(connection, named(side, several, pairs), moment)
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
            opened = self._open_alone(connection, side, alone, table.column("id")[:1].to_pylist())
            afresh = table.num_rows > max(_AT_ONCE, _count(opened))
            indexes = self._encoding.indexes(side) if afresh else []
            for index in indexes:
                opened.run(f"DROP INDEX {index.name}")
            self._load(opened, held_of(table, schema), table.num_rows)
            for index in indexes:
                opened.run(index.statement)
            if afresh:
                self.dialect.analyse(connection, [opened.table(), *self._encoding.table_names(side)])

        self._write(f"load {side}", work)

    def remove(self, side: Side, ids: Iterable[SubscriptionId]) -> None:
        """Forget constraints, all or none."""
        going = list(dict.fromkeys(ids))

        def work(connection: Connection, _: bool) -> None:
            gone = self._forget(self._open(connection, side), going)
            for id in going:
                if id not in gone:
                    raise unknown(side, id)

        if going:
            self._write(f"remove {side}", work)
        self._database.check_open(f"remove {side}")

    # ---------------------------------------------------------------- reading

    def match(
        self, side: Side, asked: Sequence[Boxes], covers: Covers, *, at: datetime | None = None
    ) -> list[Pair]:
        """What is held and matches, in one state of the database.

        In the range encoding, a publication takes a few looks into indexes, and as many rows as have what its most
        selective attribute asks for. Any number may be asked about at once: they are sent in portions that are as
        quick as if asked alone.
        """
        with self._read(f"match with {side}", side) as opened:
            return self._matches(opened, asked, covers, moment_of(at))

    def matched(
        self, side: Side, asked: Boxes, covers: Covers, *, at: datetime | None = None
    ) -> dict[SubscriptionId, Boxes]:
        """What matches one constraint, with its boxes, in one state of the database."""
        with self._read(f"match with {side}", side) as opened:
            found = self._matches(opened, [asked], covers, moment_of(at))
            kept = [self._get(opened, id) for _, id in found]
        return {held.id: held.boxes for held in kept if held is not None}

    def attributes(self, side: Side) -> set[str]:
        """The attributes that any constraint was ever about."""
        query = f"SELECT name FROM {self.dialect.names('attributes')} WHERE cluster >= 0"
        with self._read("list attributes", side) as opened:
            return {json.loads(name) for name in opened.run(query).scalars()}

    def get(self, side: Side, id: SubscriptionId) -> Held | None:
        """What is kept under an id."""
        with self._read(f"get one of the {side}", side) as opened:
            return self._get(opened, id)

    def ids(self, side: Side) -> list[SubscriptionId]:
        """All ids of one side, in the order in which they came."""
        with self._read(f"list {side}", side) as opened:
            return [
                id_of(text) for text in opened.run(f"SELECT id FROM {opened.table()} ORDER BY number").scalars()
            ]

    def count(self, side: Side) -> int:
        """How many constraints one side has."""
        with self._read(f"count {side}", side) as opened:
            return _count(opened)

    # ---------------------------------------------------------------- notices

    def notices(self, limit: int) -> list[Notice]:
        """The oldest notices that nobody has settled."""
        with self._read("read notices") as opened:
            return self._notices.on(opened.connection).waiting(limit)

    def close(self) -> None:
        """Let go of connections. All other calls afterwards raise ClosedError."""
        self._database.close()

    # ---------------------------------------------------------------- inside

    @contextmanager
    def _read(self, attempted: str, side: Side = "subscriptions") -> Iterator[OpenSide]:
        if self._joined is not None:
            yield self._open(self._joined, side)
            return
        self._prepare()
        with self._database.transaction(attempted, writes=False) as connection:
            yield self._open(connection, side)

    def _write(self, attempted: str, work: Callable[[Connection, bool], Result]) -> Result:
        if self._joined is not None:
            return work(self._joined, False)
        self._prepare()
        return self._database.write(attempted, work)

    def _with_outbox(self, attempted: str, work: Callable[[Outlet[Notice]], Result]) -> Result:
        return self._write(attempted, lambda connection, _: work(self._notices.on(connection)))

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

    def _open(self, connection: Connection, side: Side) -> OpenSide:
        return OpenSide(connection, self.dialect, side)

    def _open_alone(
        self, connection: Connection, side: Side, alone: bool, coming: Iterable[SubscriptionId]
    ) -> OpenSide:
        """A side with writers of the other kept out; and all, if the first subscription is to say what ids are."""
        opened = self._open(connection, side)
        first = side == "subscriptions" and _first_id(opened) is None
        self.dialect.lock(connection, side, alone=alone or first)
        check_kind(side, _first_id(opened), coming)
        return opened

    def _get(self, side: OpenSide, id: SubscriptionId) -> Held | None:
        columns = "number, said, valid_until, valid_from, clauses"
        row = side.run(f"SELECT {columns} FROM {side.table()} WHERE id = :id", {"id": id_text(id)}).first()
        if row is None:
            return None
        number, said, *times, clauses = row
        boxes = self._encoding.restore(side, number)
        # A clause that asks nothing has no rows.
        restored = Boxes(tuple(boxes.get(place, {}) for place in range(clauses)))
        return Held(
            id, restored, json.loads(said), *(None if each is None else moment_from(each) for each in times)
        )

    def _check_new(self, side: OpenSide, several: Iterable[Held]) -> None:
        """DuplicateSubscriptionError if one of the ids is taken or comes twice."""
        ids = [each.id for each in several]
        check_new(side.name, ids, _among(side, f"SELECT id, number FROM {side.table()} WHERE", ids))

    def _forget(self, side: OpenSide, ids: Iterable[SubscriptionId]) -> dict[SubscriptionId, int]:
        """Remove those that are there, with all their rows."""
        gone = _among(side, f"DELETE FROM {side.table()} WHERE", ids, "RETURNING id, number")
        if gone:
            self._encoding.remove(side, list(gone.values()))
        return gone

    def _add(self, side: OpenSide, several: Collection[Held], spread: Spread | None = None) -> None:
        numbers = self.dialect.new_numbers(side.connection, side.name, len(several))
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
        self.dialect.insert(side.connection, side.table(), _KEPT, rows)
        if clauses:
            self._encoding.add(side, clauses, spread)

    def _load(self, side: OpenSide, coming: Iterator[Held], count: int) -> None:
        spread = None
        while several := list(islice(coming, _AT_ONCE)):
            self._check_new(side, several)
            if spread is None:
                spread = Spread.of((box for each in several for box in each.boxes.boxes if box), count)
            self._add(side, several, spread)

    def _matches(self, side: OpenSide, asked: Sequence[Boxes], covers: Covers, moment: datetime) -> list[Pair]:
        decides: Decides = "asked" if (covers == "publication") == (side.name == "subscriptions") else "held"
        at = microseconds(moment)
        found: list[dict[int, SubscriptionId]] = [{} for _ in asked]
        open_to_all = [
            place
            for place, boxes in enumerate(asked)
            if (boxes.boxes if decides == "held" else any(not box for box in boxes.boxes))
        ]
        if open_to_all:
            everybody = _unasked(side, decides, at)
            for place in open_to_all:
                found[place] |= everybody
        clauses = [(place, box) for place, boxes in enumerate(asked) for box in boxes.boxes if box]
        if clauses:
            for ask, number, id in self._encoding.find(side, [box for _, box in clauses], decides, at):
                found[clauses[ask][0]][number] = id_of(id)
        return [(place, ids[number]) for place, ids in enumerate(found) for number in sorted(ids)]

    def _notify(
        self, connection: Connection, matches: Iterable[tuple[SubscriptionId, SubscriptionId]], moment: datetime
    ) -> None:
        rows = [(*map(id_text, match), microseconds(moment)) for match in matches]
        columns = ("publication", "subscription", "made_at")
        self.dialect.insert(connection, self.dialect.names("notices"), columns, rows)


def _notice(number: int, publication: str, subscription: str, made_at: int) -> Notice:
    return Notice(number, id_of(publication), id_of(subscription), moment_from(made_at))


def _first_id(side: OpenSide) -> SubscriptionId | None:
    found = side.run(f"SELECT id FROM {side.table()} ORDER BY number LIMIT 1").scalar()
    return None if found is None else id_of(found)


def _count(side: OpenSide) -> int:
    return int(side.run(f"SELECT count(*) FROM {side.table()}").scalar_one())


def _among(
    side: OpenSide, statement: str, ids: Iterable[SubscriptionId], then: str = ""
) -> dict[SubscriptionId, int]:
    """The numbers of constraints that a statement gives, by their ids, which are among some."""
    asked = {"ids": side.dialect.several([id_text(id) for id in ids])}
    found = side.run(f"{statement} {side.dialect.among('id', 'ids')} {then}", asked)
    return {id_of(id): number for id, number in found}


def _unasked(side: OpenSide, decides: Decides, at: int) -> dict[int, SubscriptionId]:
    """What matches without any attribute being compared: all, or what asks nothing."""
    which = "clauses > 0" if decides == "asked" else "always"
    query = f"SELECT number, id FROM {side.table()} m WHERE {which} AND {HOLDS}"
    return {number: id_of(id) for number, id in side.run(query, {"at": at})}
