"""The tables that both encodings share, and the mark by which a database is known to be one of ours.

- `harken_layout`: the version of the tables, and the encoding of constraints.
- `harken_attributes`: the number of each attribute in each cluster and, for each side, which slots constraints on
  it ever used; and the clusters themselves.
- `harken_subscriptions`, `harken_publications`: a row for each constraint, with its number, its id and text as
  JSON, from when and until when it holds, how many clauses it has, and whether one of them asks nothing.
- `harken_notices`: matches that somebody is to be told of, and until when a deliverer has a claim on each.

Moments are microseconds since 1970 (UTC). Rows of clauses, which the encodings keep, have one number for both the
constraint and the place of the clause in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harken.errors import ConstraintError, IndexFormatError
from harken.symmetric.contract import Side
from harken.symmetric.database.connections import run
from harken.symmetric.database.sql.dialect import Dialect, TableIndex

if TYPE_CHECKING:
    from sqlalchemy import Connection

VERSION = 2
SIDES: tuple[Side, ...] = ("subscriptions", "publications")

ADDED = {"subscriptions": "valid_from", "publications": "valid_from", "notices": "claimed_until"}
"""The columns, one of each of these tables, that layout 2 has and layout 1 had not; null is what held before."""

HOLDS = "(m.valid_until IS NULL OR m.valid_until > :at) AND (m.valid_from IS NULL OR m.valid_from <= :at)"
"""The condition that a constraint `m` holds at a time."""

CLAUSES = 1 << 16
"""A clause's number is its constraint's times this, plus its place: no table has to lead from one to the other."""


def clause_number(number: int, place: int) -> int:
    """The number of a clause."""
    if place >= CLAUSES:
        raise ConstraintError(f"a database keeps constraints of up to {CLAUSES:,} alternatives", attribute="")
    return number * CLAUSES + place


@dataclass(frozen=True, slots=True)
class Layout:
    """The tables of one store, in one encoding."""

    dialect: Dialect
    encoding: str

    def prepare(self, connection: Connection, tables: Sequence[str], indexes: Sequence[TableIndex]) -> None:
        """Make the tables, or what is new in them, unless it is there; IndexFormatError if they are not ours."""
        self.dialect.create_room(connection)
        if self.is_ready(connection):
            return
        if self.dialect.is_there(connection, "layout"):
            self._take_over(connection)
            return
        for statement in [*self._tables(), *tables, *(each.statement for each in indexes)]:
            run(connection, statement)
        marks = {"version": VERSION, "encoding": self.encoding}
        run(connection, f"INSERT INTO {self.dialect.names('layout')} VALUES (:version, :encoding)", marks)

    def is_ready(self, connection: Connection) -> bool:
        """Whether the tables are there as they should be; IndexFormatError if they are not ours."""
        from sqlalchemy.exc import DBAPIError

        names = self.dialect.names
        if not self.dialect.is_there(connection, "layout"):
            for table in ("attributes", *SIDES, "notices"):
                if self.dialect.is_there(connection, table):
                    raise IndexFormatError(
                        f"there is a table {names(table)} that Harken has not made",
                        suggestion="use another database or another schema_name",
                    )
            return False
        try:
            version, encoding = run(connection, f"SELECT version, encoding FROM {names('layout')}").one()
        except (DBAPIError, LookupError):
            raise IndexFormatError(f"the table {names('layout')} is not as Harken makes it") from None
        self._check(version, encoding)
        return bool(version == VERSION)

    def _take_over(self, connection: Connection) -> None:
        """Bring tables of layout 1 up to date."""
        names, whole = self.dialect.names, self.dialect.types["whole"]
        for table, column in ADDED.items():
            run(connection, f"ALTER TABLE {names(table)} ADD COLUMN {column} {whole}")
        run(connection, f"UPDATE {names('layout')} SET version = {VERSION}")

    def _check(self, version: object, encoding: object) -> None:
        tables = f"the tables {self.dialect.names('…')}"
        if version not in (1, VERSION):
            raise IndexFormatError(
                f"{tables} have layout {version}, and this Harken knows layout {VERSION}",
                suggestion="use the Harken that made them, or another database",
            )
        if encoding != self.encoding:
            raise IndexFormatError(
                f"{tables} are in the encoding {encoding!r}, not {self.encoding!r}",
                suggestion=f"pass encoding={encoding!r}",
            )

    def _tables(self) -> list[str]:
        words, names, counted = self.dialect.types, self.dialect.names, self.dialect.counted
        whole, text, truth = words["whole"], words["text"], words["truth"]
        statements = [
            f"CREATE TABLE {names('layout')} (version {whole} NOT NULL, encoding {text} NOT NULL)",
            f"CREATE TABLE {names('attributes')} (number {counted}, name {text} NOT NULL,"
            f" cluster {whole} NOT NULL, subscriptions {whole} NOT NULL, publications {whole} NOT NULL,"
            " UNIQUE (name, cluster))",
            f"CREATE INDEX {names.bare('clusters')} ON {names('attributes')} (number) WHERE cluster < 0",
            f"CREATE TABLE {names('notices')} (number {counted}, publication {text} NOT NULL,"
            f" subscription {text} NOT NULL, made_at {whole} NOT NULL, claimed_until {whole})",
        ]
        for side in SIDES:
            statements += [
                f"CREATE TABLE {names(side)} (number {counted}, id {text} NOT NULL UNIQUE,"
                f" said {text} NOT NULL, valid_until {whole}, clauses {whole} NOT NULL, always {truth} NOT NULL,"
                f" valid_from {whole})",
                f"CREATE INDEX {names.bare(side, 'always')} ON {names(side)} (number) WHERE always",
            ]
        return statements
