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
from harken.symmetric.contract import OTHER, Side
from harken.symmetric.database.sql.dialect import Dialect, Names, TableIndex

if TYPE_CHECKING:
    from sqlalchemy import Connection

VERSION = 2
SIDES: tuple[Side, ...] = ("subscriptions", "publications")
assert set(SIDES) == set(OTHER)

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
    """Tables of one store: their names, and the database that has them."""

    dialect: Dialect
    names: Names
    encoding: str

    def prepare(self, connection: Connection, tables: Sequence[str], indexes: Sequence[TableIndex]) -> None:
        """Make the tables, or what is new in them, unless it is there; IndexFormatError if they are not ours."""
        self.dialect.create_room(connection, self.names)
        if self.is_ready(connection):
            return
        if self.dialect.is_there(connection, self.names, "layout"):
            self._take_over(connection)
            return
        for statement in [*self._tables(), *tables, *(each.statement for each in indexes)]:
            connection.exec_driver_sql(statement)
        insert = ("version", "encoding"), [(VERSION, self.encoding)]
        self.dialect.insert(connection, self.names("layout"), *insert)

    def is_ready(self, connection: Connection) -> bool:
        """Whether the tables are there as they should be; IndexFormatError if they are not ours."""
        from sqlalchemy.exc import DBAPIError

        if not self.dialect.is_there(connection, self.names, "layout"):
            for table in ("attributes", *SIDES, "notices"):
                if self.dialect.is_there(connection, self.names, table):
                    raise IndexFormatError(
                        f"there is a table {self.names(table)} that Harken has not made",
                        suggestion="use another database or another schema_name",
                    )
            return False
        try:
            query = f"SELECT version, encoding FROM {self.names('layout')}"
            version, encoding = connection.exec_driver_sql(query).one()
        except (DBAPIError, LookupError):
            raise IndexFormatError(f"the table {self.names('layout')} is not as Harken makes it") from None
        self._check(version, encoding)
        return bool(version == VERSION)

    def _take_over(self, connection: Connection) -> None:
        """Bring tables of layout 1 up to date."""
        for table, column in ADDED.items():
            change = f"ALTER TABLE {self.names(table)} ADD COLUMN {column} {self.dialect.types['whole']}"
            connection.exec_driver_sql(change)
        connection.exec_driver_sql(f"UPDATE {self.names('layout')} SET version = {VERSION}")

    def _check(self, version: object, encoding: object) -> None:
        if version not in (1, VERSION):
            raise IndexFormatError(
                f"the tables {self.names('…')} have layout {version}, and this Harken knows layout {VERSION}",
                suggestion="use the Harken that made them, or another database",
            )
        if encoding != self.encoding:
            raise IndexFormatError(
                f"the tables {self.names('…')} are in the encoding {encoding!r}, not {self.encoding!r}",
                suggestion=f"pass encoding={encoding!r}",
            )

    def _tables(self) -> list[str]:
        words, names = self.dialect.types, self.names
        whole, text, truth = words["whole"], words["text"], words["truth"]
        kept = [
            f"CREATE TABLE {names(side)} (number {self.dialect.counted}, id {text} NOT NULL UNIQUE,"
            f" said {text} NOT NULL, valid_until {whole}, clauses {whole} NOT NULL, always {truth} NOT NULL,"
            f" valid_from {whole})"
            for side in SIDES
        ]
        return [
            f"CREATE TABLE {names('layout')} (version {whole} NOT NULL, encoding {text} NOT NULL)",
            f"CREATE TABLE {names('attributes')} (number {self.dialect.counted}, name {text} NOT NULL,"
            f" cluster {whole} NOT NULL, subscriptions {whole} NOT NULL, publications {whole} NOT NULL,"
            " UNIQUE (name, cluster))",
            f"CREATE INDEX {names.bare('clusters')} ON {names('attributes')} (number) WHERE cluster < 0",
            *kept,
            *(
                f"CREATE INDEX {names.bare(side, 'always')} ON {names(side)} (number) WHERE always"
                for side in SIDES
            ),
            f"CREATE TABLE {names('notices')} (number {self.dialect.counted}, publication {text} NOT NULL,"
            f" subscription {text} NOT NULL, made_at {whole} NOT NULL, claimed_until {whole})",
        ]
