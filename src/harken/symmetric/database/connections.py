"""The way to a database: URLs, connections, transactions, and one error for all that goes wrong on the way."""

from __future__ import annotations

import os
import textwrap
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from harken.databases import is_in_memory, is_sqlite, is_supported, parsed_url, shown, with_driver
from harken.errors import ClosedError, DatabaseError, MissingExtraError

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, CursorResult, Engine, TextClause

Result = TypeVar("Result")

_IN_VAIN = frozenset({"23505", "40001", "40P01"})
"""What PostgreSQL says of a transaction that another one got in the way of: unique, serialisation, deadlock."""

_ATTEMPTS = 10


class OvertakenError(DatabaseError):
    """Another transaction got in the way; the same again may succeed."""


class Database:
    """Connections to one database, kept and shared. Threads may use it at the same time; so may forked processes.

    A connection that is lost takes the call with it; the next call opens another.
    """

    def __init__(self, url: str, on_connect: Callable[[object], None]) -> None:
        """DatabaseError if the URL will not do; MissingExtraError without SQLAlchemy or a driver."""
        self._url = _normal(url)
        self._engine: Engine | None = _engine(self._url, on_connect)
        self._process = os.getpid()
        # Whoever lets go of this without closing it leaves no connections open either.
        weakref.finalize(self, _let_go, self._engine, self._process)

    @property
    def where(self) -> str:
        """The URL without its password."""
        return shown(self._url)

    @contextmanager
    def transaction(self, attempted: str, *, writes: bool) -> Iterator[Connection]:
        """A transaction that is committed in the end, or rolled back if anything is raised in it.

        One that does not write sees one state of the database throughout. On SQLite one that writes waits for all
        others that do; on PostgreSQL it sees what was committed before each of its statements.
        """
        from sqlalchemy.exc import SQLAlchemyError

        engine = self._live(attempted)
        driver_error: type[Exception] = engine.dialect.loaded_dbapi.Error
        try:
            with engine.connect() as connection:
                if is_sqlite(self._url):
                    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
                elif not writes:
                    connection = connection.execution_options(isolation_level="REPEATABLE READ")
                yield connection
                connection.commit()
        except (SQLAlchemyError, driver_error) as error:
            raise self._wrapped(attempted, error) from error

    def write(self, attempted: str, work: Callable[[Connection, bool], Result]) -> Result:
        """Do some work in a transaction that writes; again if another one got in its way.

        The work is told whether that happened, and had better be alone then.
        """
        for attempt in range(_ATTEMPTS):
            try:
                with self.transaction(attempted, writes=True) as connection:
                    return work(connection, attempt > 0)
            except OvertakenError as error:
                last = error
        raise last

    def close(self) -> None:
        """Let go of all connections."""
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None

    def check_open(self, attempted: str) -> None:
        """ClosedError if it was closed."""
        if self._engine is None:
            raise ClosedError(f"{attempted} ({self.where})")

    def _live(self, attempted: str) -> Engine:
        self.check_open(attempted)
        engine: Engine = self._engine  # type: ignore[assignment]  # open, as just seen
        if self._process != os.getpid():
            # The parent goes on using its connections.
            engine.dispose(close=False)
            self._process = os.getpid()
        return engine

    def _wrapped(self, attempted: str, error: Exception) -> DatabaseError:
        original = getattr(error, "orig", None) or error
        said = textwrap.shorten(str(original), 300)
        kind = OvertakenError if getattr(original, "sqlstate", None) in _IN_VAIN else DatabaseError
        return kind(attempted, self.where, said)


def run(
    connection: Connection,
    statement: str,
    parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
) -> CursorResult[*tuple[Any, ...]]:
    """Run a statement whose parameters are named, like `:at`; with several sets of them, once for each."""
    return connection.execute(_text(statement), parameters)


@lru_cache(maxsize=1_000)
def _text(statement: str) -> TextClause:
    """A statement that is taken apart once: most come again and again."""
    from sqlalchemy import text

    return text(statement)


def _let_go(engine: Engine, process: int) -> None:
    """Close the connections of the process that opened them; a fork of it has no business with them."""
    if os.getpid() == process:
        engine.dispose()


def is_file(url: str) -> bool:
    """Whether a URL is of a file of SQLite; otherwise it is of a PostgreSQL server. Errors as with `Database`."""
    return is_sqlite(_normal(url))


def _normal(url: str) -> URL:
    """A URL with its driver and its patience."""
    parsed = parsed_url(url, "symmetric matching on a database")
    if not is_supported(parsed):
        known = "constraints are kept on sqlite:// and postgresql://"
        raise DatabaseError("use the URL", shown(parsed), f"{known}, found {parsed.drivername}://")
    if is_in_memory(parsed):
        raise DatabaseError("use the URL", shown(parsed), "name a file; without a URL constraints are in memory")
    return with_driver(parsed)


def _engine(url: URL, on_connect: Callable[[object], None]) -> Engine:
    from sqlalchemy import create_engine, event

    try:
        # What constraints say is nobody's business in a log.
        engine = create_engine(url, hide_parameters=True, pool_timeout=60)
    except ImportError:
        raise MissingExtraError("symmetric matching on PostgreSQL", "postgres") from None
    event.listen(engine, "connect", lambda connection, _record: on_connect(connection))
    return engine
