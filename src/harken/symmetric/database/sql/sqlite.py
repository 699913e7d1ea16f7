"""SQLite: one writer at a time, temporary tables for what is asked, R*Trees for what lies near."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from harken.symmetric.contract import Side
from harken.symmetric.database.rows import Key
from harken.symmetric.database.sql.dialect import Dialect, Keys, Names, Row, Source, Word

if TYPE_CHECKING:
    import sqlite3

    from sqlalchemy import Connection

_FARTHEST, _NEAREST = 3e38, 1e-30
"""Coordinates in an R*Tree are 32-bit floats, rounded outward, but neither beyond the largest nor away from zero.
So what lies farther counts as lying there, and what is nearer to zero as zero."""

_LETTERS = 6
"""So many bytes of a key make a whole number that a float holds."""


class SQLite(Dialect):
    """A file. Writing waits for other writers, and for the disk: `synchronous=FULL` costs a flush each time.

    There is one writer at a time, so that nothing has to be locked. Indexes take keys of any length. Tables are
    better not analysed: joins and indexes are as they are written, and with statistics SQLite adds Bloom filters,
    for which it reads a whole table with every statement.
    """

    types: Mapping[Word, str] = {
        "whole": "INTEGER",
        # Without a type, a column takes integers and floats as they are, and compares them exactly.
        "number": "BLOB",
        "bytes": "BLOB",
        "real": "REAL",
        "truth": "BOOLEAN",
        "text": "TEXT",
    }
    counted = "INTEGER PRIMARY KEY AUTOINCREMENT"
    mark = "?"
    least = "-9e999"
    # Temporary tables have indexes, so any number will do.
    explained = 10_000

    def __init__(self, schema_name: str | None) -> None:
        self.names = Names(None, f"{schema_name}_harken_" if schema_name else "harken_")

    def on_connect(self, connection: object, statements: Sequence[str]) -> None:
        """Transactions begin when we say so; readers and the writer do not wait for each other."""
        connection = cast("sqlite3.Connection", connection)
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA cache_size = -65536")
        for statement in statements:
            connection.execute(statement)

    def temporary(self, name: str, columns: Mapping[str, Word]) -> str:
        """Its rows stay with the connection."""
        return f"CREATE TEMP TABLE IF NOT EXISTS {name} ({self.described(columns, '')})"

    def is_there(self, connection: Connection, table: str) -> bool:
        """Whether there is a table."""
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        return connection.exec_driver_sql(query, (self.names.bare(table),)).first() is not None

    def number(self, key: Key) -> object:
        """Integers beyond 64 bits come only from the neighbours of the first and the last, as bounds."""
        if isinstance(key, int) and not -(2**63) <= key < 2**63:
            return float(key) if float(key) == key else float(key) * (1 + 2**-52)
        return key

    def new_numbers(self, connection: Connection, side: Side, count: int) -> Sequence[int]:
        """The next ones."""
        last = connection.exec_driver_sql(f"SELECT coalesce(max(number), 0) FROM {self.names(side)}").scalar_one()
        return range(last + 1, last + count + 1)

    def insert_near(self, connection: Connection, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Those that lie somewhere into the tree, too."""
        last = connection.exec_driver_sql(f"SELECT coalesce(max(row), 0) FROM {table}").scalar_one()
        numbered = [(last + at, *row) for at, row in enumerate(rows, 1)]
        self.insert(connection, table, ("row", *columns), numbered)
        slot = columns.index("slot")
        placed = zip(_near(columns, rows), rows, range(last + 1, last + len(rows) + 1), strict=True)
        # A slot has some width, since an R*Tree goes by area.
        trees = [(at, *lies, row[slot], row[slot] + 0.5) for lies, row, at in placed if lies]  # type: ignore[operator]
        if trees:
            marks = ", ".join("?" * len(trees[0]))
            connection.exec_driver_sql(f"INSERT INTO {table}_tree VALUES ({marks})", trees)

    def ask(self, connection: Connection, sources: Sequence[Source]) -> tuple[str, dict[str, object]]:
        """Into temporary tables."""
        for source in sources:
            columns = dict(source.columns)
            rows = source.rows
            near = list(_near(list(columns), rows)) if {"near", "segment"} & columns.keys() else []
            if near:
                width = max(len(each or ()) for each in near) or 2
                columns |= {f"near_{at}": "real" for at in range(width)}
                rows = [(*row, *(lies or (None,) * width)) for row, lies in zip(rows, near, strict=True)]
            self._filled(connection, source.name, columns)
            self.insert(connection, f"temp.{source.name}", list(columns), rows)
        return "", {}

    def _filled(self, connection: Connection, name: str, columns: Mapping[str, Word]) -> None:
        connection.exec_driver_sql(self.temporary(name, columns))
        if "ask" in columns:
            by = "ask, attribute" if "attribute" in columns else "ask"
            connection.exec_driver_sql(f"CREATE INDEX IF NOT EXISTS temp.{name}_by_ask ON {name} ({by})")
        connection.exec_driver_sql(f"DELETE FROM temp.{name}")

    def among(self, column: str, parameter: str) -> str:
        """Texts are given as JSON."""
        return f"{column} IN (SELECT value FROM json_each(:{parameter}))"

    def several(self, texts: Sequence[str]) -> object:
        """Texts as JSON."""
        return json.dumps(list(texts))

    def near_table(self, table: str, keys: Keys | None) -> list[str]:
        """An R*Tree, from which rows go together with those of the table."""
        table = self.names(table)
        axes = ["x0, x1"] if keys else ["x0, x1", "y0, y1"]
        going = "WHEN old.segment" if keys else ""
        return [
            f"CREATE VIRTUAL TABLE {table}_tree USING rtree(id, {', '.join(axes)}, slot0, slot1)",
            f"CREATE TRIGGER {table}_felled AFTER DELETE ON {table} {going}"
            f" BEGIN DELETE FROM {table}_tree WHERE id = old.row; END",
        ]

    def near(self, table: str, keys: Keys | None) -> tuple[str, str]:
        """By the tree."""
        table = self.names(table)
        axes = ["x"] if keys else ["x", "y"]
        overlap = [
            f"t.{axis}0 <= a.near_{2 * at + 1} AND t.{axis}1 >= a.near_{2 * at}" for at, axis in enumerate(axes)
        ]
        slot = "t.slot0 <= a.slot AND t.slot1 >= a.slot AND s.slot = a.slot"
        return f"{table}_tree t CROSS JOIN {table} s", f"s.row = t.id AND {' AND '.join(overlap)} AND {slot}"

    def boxes_overlap(self, one: str, other: str) -> str:
        """Edge by edge."""
        return " AND ".join(
            f"{a}.reach_{axis}0 <= {b}.reach_{axis}1" for axis in "xy" for a, b in ((one, other), (other, one))
        )

    def box_index(self) -> str:
        """By the left edge."""
        return "(op, reach_x0)"


def _near(columns: Sequence[str], rows: Iterable[Row]) -> Iterable[tuple[float, ...] | None]:
    """Where rows lie, as far as an R*Tree can tell; None for those that do not belong there."""
    if "segment" in columns:
        segment, low, high = (columns.index(each) for each in ("segment", "low", "high"))
        for row in rows:
            yield (_coordinate(row[low]), _coordinate(row[high])) if row[segment] else None
        return
    first = columns.index("reach_x0")
    for row in rows:
        x0, y0, x1, y1 = map(_coordinate, row[first : first + 4])
        yield x0, x1, y0, y1


def _coordinate(key: object) -> float:
    """A number in the order of keys. Rounding may make keys equal, but never changes places."""
    if isinstance(key, bytes):
        return float(int.from_bytes(key[:_LETTERS].ljust(_LETTERS, b"\0")))
    number = max(-_FARTHEST, min(_FARTHEST, float(key)))  # type: ignore[arg-type]  # a number
    return number if abs(number) > _NEAREST else 0.0
