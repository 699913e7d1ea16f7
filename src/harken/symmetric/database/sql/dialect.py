"""What databases do each in their own way: types, locks, writing in bulk, and finding intervals and boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from harken.symmetric.contract import Side
from harken.symmetric.database.rows import Key

if TYPE_CHECKING:
    from sqlalchemy import Connection

Row: TypeAlias = tuple[object, ...]
Word: TypeAlias = Literal["whole", "number", "bytes", "real", "truth", "text"]
"""A type of columns."""

Keys: TypeAlias = Literal["number", "bytes"]
"""What the keys of a table of intervals are."""


@dataclass(frozen=True, slots=True)
class Source:
    """Rows that a statement is to read beside the tables that are there: what is asked about."""

    name: str
    columns: Mapping[str, Word]
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Names:
    """What tables are called: `harken_…`, in a schema of PostgreSQL, or with its name before in a SQLite file."""

    schema: str | None
    stem: str

    def __call__(self, *parts: str) -> str:
        """A table, as statements name it."""
        return f'"{self.schema}".{self.bare(*parts)}' if self.schema else self.bare(*parts)

    def bare(self, *parts: str) -> str:
        """Its name without the schema."""
        return self.stem + "_".join(parts)


@dataclass(frozen=True, slots=True)
class TableIndex:
    """An index, with the statement that makes it."""

    name: str
    statement: str


class Dialect(Protocol):
    """One database, and what tables are called there. Does not change: threads may share it.

    Text that is made here and becomes part of statements holds names of ours only, never what a user said.
    """

    names: Names
    types: Mapping[Word, str]
    counted: str
    """The type of a primary key that the database counts up, and whose values never come again."""
    mark: str
    """What stands for a parameter in a statement, as the driver has it."""
    least: str
    """The number that is less than all others."""
    among_claimants: str = ""
    """What a query says to leave out rows that others are just claiming."""
    steering: Sequence[str] = ()
    """Statements for a connection whose plans are to use indexes, whatever the statistics say."""
    explained: int
    """So many rows of what is asked may be compared with every candidate; more go into another statement."""

    # ---------------------------------------------------------------- connections and transactions

    def on_connect(self, connection: object, statements: Sequence[str]) -> None:
        """Set a fresh connection up, and run statements on it."""

    def create_room(self, connection: Connection) -> None:
        """Make what tables are made in, and keep others from making them at the same time."""
        return

    def lock(self, connection: Connection, side: Side, *, alone: bool) -> None:
        """Wait for all writers of the other side to end, and let none begin; `alone`, those of this side too."""
        return

    # ---------------------------------------------------------------- tables

    def described(self, columns: Mapping[str, Word], also: str = " NOT NULL") -> str:
        """Columns as CREATE TABLE wants them."""
        return ", ".join(f"{name} {self.types[word]}{also}" for name, word in columns.items())

    def temporary(self, name: str, columns: Mapping[str, Word]) -> str:
        """The statement that makes a table for one connection; what is in it may be left from an earlier use."""

    def is_there(self, connection: Connection, table: str) -> bool:
        """Whether there is a table."""

    def index(self, parts: Sequence[str], table: str, on: str) -> TableIndex:
        """An index of a table, called by these parts, on what comes in it."""
        return TableIndex(self.names(*parts), f"CREATE INDEX {self.names.bare(*parts)} ON {table} {on}")

    def analyse(self, connection: Connection, tables: Sequence[str]) -> None:
        """Have the database look at what is in tables, after many rows have come."""
        return

    # ---------------------------------------------------------------- rows

    def number(self, key: Key) -> object:
        """A key that is a number, exactly, as the driver takes it."""

    def new_numbers(self, connection: Connection, side: Side, count: int) -> Sequence[int]:
        """Numbers for constraints that nobody else has or gets."""

    def insert(self, connection: Connection, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Write rows, few or many."""
        if rows:
            marks = ", ".join([self.mark] * len(columns))
            statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"
            connection.exec_driver_sql(statement, list(rows))

    def insert_near(self, connection: Connection, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Write rows; segments and shapes among them are to be found by where they lie."""
        self.insert(connection, table, columns, rows)

    def claiming(self, table: str, columns: str) -> str:
        """The statement that claims the oldest rows of a table that nobody has a claim on, and gives some columns.

        Its parameters are `limit`, `at` and `until`.
        """
        free = (
            f"SELECT number FROM {table} WHERE claimed_until IS NULL OR claimed_until <= :at"
            f" ORDER BY number LIMIT :limit{self.among_claimants}"
        )
        # Materialized, or a plan might look for them anew for every row, and claim others each time.
        return (
            f"WITH free AS MATERIALIZED ({free}) UPDATE {table} SET claimed_until = :until"
            f" WHERE number IN (SELECT number FROM free) RETURNING {columns}"
        )

    # ---------------------------------------------------------------- asking

    def ask(self, connection: Connection, sources: Sequence[Source]) -> tuple[str, dict[str, object]]:
        """Make rows readable under names: what a statement has to begin with, and its parameters."""

    def among(self, column: str, parameter: str) -> str:
        """The condition that a text is among those of a parameter, which `several` makes."""

    def several(self, texts: Sequence[str]) -> object:
        """Texts as a parameter."""

    def key(self, keys: Keys, alias: str) -> str:
        """By what intervals that are no segments are ordered: their lower bound or, without one, the upper."""
        bounded = f"{alias}low > {self.least}" if keys == "number" else f"length({alias}low) > 0"
        return self.cut(keys, f"(CASE WHEN {bounded} THEN {alias}low ELSE {alias}high END)")

    def cut(self, keys: Keys, column: str) -> str:
        """A key, short enough for an index: the order stays, but some become equal."""
        return column

    def near_table(self, table: str, keys: Keys | None) -> list[str]:
        """Statements that make what finds segments (of keys) or shapes by where they lie, besides indexes."""
        return []

    def near_index(self, table: str, keys: Keys | None) -> list[TableIndex]:
        """The indexes that do."""
        return []

    def near(self, table: str, keys: Keys | None) -> tuple[str, str]:
        """Tables to join, with `s` among them, and the condition for `s` to lie near the source `a`."""

    def boxes_overlap(self, one: str, other: str) -> str:
        """A condition that holds if the reach of two places overlaps, and seldom otherwise."""

    def box_index(self) -> str:
        """On what an index has to be that helps with it."""
