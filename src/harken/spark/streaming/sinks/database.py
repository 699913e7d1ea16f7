"""Matches as rows of a table in SQLite or PostgreSQL, through SQLAlchemy.

The rows of a batch and the note that it was written are one transaction. So a crash leaves both or neither, and a
batch that comes again is recognised by its note.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from harken.databases import is_in_memory, is_supported, parsed_url, shown, with_driver
from harken.errors import DatabaseError, MissingExtraError, SinkError
from harken.spark.streaming.sinks.contract import BATCH, Query, refuse_beside, require, text

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType
    from sqlalchemy import URL, Connection, Engine, Insert, MetaData, Table

CHUNK = 10_000
"""Rows that go to the database at once. More gain little, and take memory."""

_PAIR = ("event", "subscription")
_TAKES_PAIRS = "a database sink takes pairs: it"


class DatabaseSink:
    """A table with the columns event, subscription, batch and made_at (UTC), in which a pair is there once.

    `url` is SQLAlchemy's: `sqlite:////folder/file.db`, on a local disk of the driver, or
    `postgresql://user:password@host/database`. Tables that are missing are made: `table`, with the primary key
    (event, subscription), `<table>_batches`, which notes every batch with the number of its matches, and
    `<table>_query`, which notes whose batches they are: the first query to write owns the table. Whole numbers are
    stored as BIGINT, everything else as TEXT, the way Spark writes it. A pair that an earlier batch
    brought keeps the number of that batch: an event whose id comes again, with the same matches, leaves no trace.

    Takes pairs; their other columns are not stored. The matches of a batch come to the driver as Arrow before its
    transaction begins, so that no lock waits for Spark: a pair of integers takes 16 bytes, and
    `spark.driver.maxResultSize` is the limit. Databases take some ten thousand pairs a second from there, so for
    larger batches a `TableSink` is the better place.

    Every write opens connections of its own, so threads may share a sink. Its password is in no error and no repr.
    """

    def __init__(self, url: str, table: str = "notifications", *, chunk: int = CHUNK) -> None:
        """MissingExtraError without SQLAlchemy or a driver; DatabaseError or SinkError if the URL will not do."""
        if chunk < 1:
            raise SinkError(f"chunk must be at least 1, found {chunk}")
        self._url = _normal(url)
        self.table = table
        self.chunk = chunk
        _engine(self._url)

    def __repr__(self) -> str:
        return f"DatabaseSink({shown(self._url)!r}, table={self.table!r})"

    def write(self, batch: int, matches: DataFrame, query: Query | None = None) -> None:
        """Add the matches of a batch, unless it is noted, and note it.

        SinkError if matches are no pairs, or of other types than the table has, or if the table belongs to another
        query. What is written beside a query, without one, has numbers of its own below 0: the query takes all
        others, sooner or later. DatabaseError if the database cannot be reached or refuses, with nothing of the
        batch there.
        """
        pairs = _pairs(matches)
        tables = Tables.of(self.table, pairs.schema)
        with self._transaction(f"prepare table {self.table}") as connection:
            tables.prepare(connection)
            if query is None:
                refuse_beside(batch, tables.owner(connection), self.place)
            else:
                query.refuse(tables.claimed(connection, query), self.place)
            if tables.noted(connection, batch):
                return
        rows = pairs.toArrow()
        if nameless := rows.column("event").null_count:
            raise SinkError(
                f"{nameless} matches of batch {batch} are of events whose id is null",
                suggestion="filter such events out, or have others written to a TableSink",
            )
        with self._transaction(f"write batch {batch} to table {self.table}") as connection:
            tables.add(connection, batch, rows, self.chunk)

    @property
    def place(self) -> str:
        """The database and the table."""
        return f"table {self.table} of {shown(self._url)}"

    def check(self, columns: Sequence[str]) -> None:
        """SinkError unless they are pairs and nothing else."""
        require(columns, *_PAIR, sink=_TAKES_PAIRS)
        others = [name for name in columns if name not in _PAIR]
        if others:
            said = f"a database takes only the ids, not {', '.join(others)}"
            raise SinkError(said, suggestion="a TableSink takes all columns")

    def owner(self) -> Query | None:
        """The query whose batches are noted, if there is one."""
        from sqlalchemy import Text, column, inspect, select, table

        with self._transaction(f"look into table {self.table}") as connection:
            notes = f"{self.table}_query"
            if not inspect(connection).has_table(notes):
                return None
            columns = column("id", Text()), column("checkpoint", Text())
            known = connection.execute(select(*columns).select_from(table(notes))).first()
            return None if known is None else Query(*known)

    def has(self, batch: int) -> bool:
        """Whether a batch is noted."""
        return self._noted(batch) is not None

    def latest_batch(self) -> int | None:
        """The latest batch that is noted; those beside the query come before it."""
        return self._noted()

    def _noted(self, batch: int | None = None) -> int | None:
        """A batch, or the latest, if it is noted."""
        from sqlalchemy import BigInteger, column, func, inspect, select, table

        with self._transaction(f"look into table {self.table}") as connection:
            notes = f"{self.table}_batches"
            if not inspect(connection).has_table(notes):
                return None
            number = column(BATCH, BigInteger())
            latest = select(func.max(number)).select_from(table(notes))
            found: int | None = connection.scalar(latest if batch is None else latest.where(number == batch))
            return found

    @contextmanager
    def _transaction(self, attempted: str) -> Iterator[Connection]:
        """A transaction on a connection of its own. All that a driver raises becomes one DatabaseError here."""
        from sqlalchemy.exc import SQLAlchemyError

        try:
            with _engine(self._url).begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            said = textwrap.shorten(str(getattr(error, "orig", None) or error), 300)
            raise DatabaseError(attempted, shown(self._url), said) from error


@dataclass(frozen=True, slots=True)
class Tables:
    """The table of pairs, the table of notes, and that of the query they are of."""

    metadata: MetaData
    pairs: Table
    batches: Table
    query: Table

    @classmethod
    def of(cls, name: str, schema: StructType) -> Tables:
        """As they are made for pairs of these types."""
        from sqlalchemy import BigInteger, Column, DateTime, MetaData, Table, Text

        def made_at() -> Column[datetime]:
            return Column("made_at", DateTime(timezone=True), nullable=False)

        metadata = MetaData()
        whole = {field.name: field.dataType.typeName() == "long" for field in schema}
        ids = [Column(each, BigInteger() if whole[each] else Text(), primary_key=True) for each in _PAIR]
        pairs = Table(name, metadata, *ids, Column(BATCH, BigInteger(), nullable=False), made_at())
        number = Column(BATCH, BigInteger(), primary_key=True, autoincrement=False)
        count = Column("matches", BigInteger(), nullable=False)
        batches = Table(f"{name}_batches", metadata, number, count, made_at())
        one = Column("one", BigInteger(), primary_key=True, autoincrement=False)  # there is one row, at most
        said = [Column(each, Text(), nullable=False) for each in ("id", "checkpoint")]
        return cls(metadata, pairs, batches, Table(f"{name}_query", metadata, one, *said))

    def prepare(self, connection: Connection) -> None:
        """Make what is missing; SinkError if what is there has ids of other types."""
        from sqlalchemy import Integer, inspect

        self.metadata.create_all(connection)
        found = {each["name"]: each["type"] for each in inspect(connection).get_columns(self.pairs.name)}
        for name in _PAIR:
            wanted = self.pairs.columns[name].type
            # SQLite would store a string among numbers without a word.
            if name in found and isinstance(found[name], Integer) != isinstance(wanted, Integer):
                raise SinkError(f"{name} is {found[name]} in table {self.pairs.name}, but {wanted} in the batch")

    def owner(self, connection: Connection) -> Query | None:
        """The query that the table belongs to, if it belongs to any."""
        from sqlalchemy import select

        known = connection.execute(select(self.query.columns["id"], self.query.columns["checkpoint"])).first()
        return None if known is None else Query(*known)

    def claimed(self, connection: Connection, query: Query) -> Query:
        """The query that the table belongs to: this one, if there was none before."""
        claim = {"one": 1, "id": query.id, "checkpoint": query.checkpoint}
        connection.execute(_unless_there(connection, self.query), claim)
        return self.owner(connection) or query

    def noted(self, connection: Connection, batch: int) -> bool:
        """Whether a batch was written."""
        from sqlalchemy import select

        note = select(self.batches).where(self.batches.columns[BATCH] == batch)
        return connection.execute(note).first() is not None

    def add(self, connection: Connection, batch: int, rows: pa.Table, chunk: int) -> None:
        """Write a batch and its note."""
        made = {BATCH: batch, "made_at": datetime.now(UTC)}
        # First the note: it makes an attempt that runs at the same time wait here, and then see that it is late.
        noting = _unless_there(connection, self.batches).returning(self.batches.columns[BATCH])
        if connection.execute(noting, {**made, "matches": rows.num_rows}).first() is None:
            return
        adding = _unless_there(connection, self.pairs)
        for part in rows.to_batches(max_chunksize=chunk):
            if part.num_rows:
                connection.execute(adding, [{**pair, **made} for pair in part.to_pylist()])


def _pairs(matches: DataFrame) -> DataFrame:
    """Event and subscription, as bigint or string."""
    from pyspark.sql.types import IntegralType

    require(matches.columns, *_PAIR, sink=_TAKES_PAIRS)
    whole = {name: isinstance(matches.schema[name].dataType, IntegralType) for name in _PAIR}
    return matches.select(
        *(matches[name].cast("bigint") if whole[name] else text(matches, name).alias(name) for name in _PAIR)
    )


def _unless_there(connection: Connection, table: Table) -> Insert:
    """Insert, but leave alone what has the same key; an error if the table, made by its user, has no such key."""
    from sqlalchemy.dialects import postgresql, sqlite

    if connection.dialect.name == "sqlite":
        return sqlite.insert(table).on_conflict_do_nothing(index_elements=list(table.primary_key))
    return postgresql.insert(table).on_conflict_do_nothing(index_elements=list(table.primary_key))


# ---------------------------------------------------------------- URLs and connections


def _normal(url: str) -> URL:
    """A URL with its driver and its patience."""
    parsed = parsed_url(url, "database sinks")
    if not is_supported(parsed):
        raise SinkError(f"a database sink takes sqlite:// and postgresql://, found {parsed.drivername}://")
    if is_in_memory(parsed):
        raise SinkError("a database in memory would be gone after each batch", suggestion="name a file")
    driven, file = with_driver(parsed), parsed.database or ""
    is_file = driven.get_backend_name() == "sqlite" and not file.startswith("file:")
    return driven.set(database=os.path.abspath(file)) if is_file else driven  # wherever a batch is done


def _engine(url: URL) -> Engine:
    """An engine that keeps no connection: batches are far apart, and come in threads of their own."""
    from sqlalchemy import NullPool, create_engine, event

    try:
        # What events are called is nobody's business in a log.
        engine = create_engine(url, poolclass=NullPool, hide_parameters=True)
    except ImportError:
        raise MissingExtraError("PostgreSQL sinks", "postgres") from None
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _let_read_while_writing)
    return engine


def _let_read_while_writing(connection: object, _record: object) -> None:
    connection.execute("PRAGMA journal_mode = WAL")  # type: ignore[attr-defined]  # a sqlite3.Connection
