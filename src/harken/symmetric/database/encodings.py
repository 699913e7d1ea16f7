"""What a way to keep constraints in tables has to offer. There are two: our ranges, and the paper's operators."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from harken.symmetric.contract import Side
from harken.symmetric.database.rows import PLACE_COLUMNS
from harken.symmetric.database.schema import CLAUSES
from harken.symmetric.database.sql.dialect import Dialect, TableIndex, Word
from harken.symmetric.pointsets import PointSet, is_single
from harken.symmetric.semantics import Box

if TYPE_CHECKING:
    from sqlalchemy import Connection

Decides: TypeAlias = Literal["asked", "held"]
"""Whose attributes count: those of what is asked about, or those of what is held."""

Found: TypeAlias = tuple[int, int, str]
"""The place of what was asked about; the number and the id, as JSON, of what is held and matches it."""

PLACE: dict[str, Word] = {name: "truth" if name in ("boxes", "points") else "real" for name in PLACE_COLUMNS}
"""The columns of a shape."""

_SAMPLED = 5_000


@dataclass(frozen=True, slots=True)
class Spread:
    """What boxes are like that are about to come in number."""

    coming: int
    seen: int
    values: Mapping[str, int]
    """How many different sets each attribute has among those that were seen."""
    common: frozenset[str]
    """The attributes of which at least half of these have a single value."""

    @classmethod
    def of(cls, boxes: Iterable[Box], coming: int) -> Spread:
        """As the first of them are."""
        sets: dict[str, set[PointSet]] = defaultdict(set)
        single: Counter[str] = Counter()
        seen = 0
        for box in islice(boxes, _SAMPLED):
            seen += 1
            for name, points in box.items():
                sets[name].add(points)
                single[name] += is_single(points)
        common = frozenset(name for name, having in single.items() if 2 * having >= seen)
        return cls(coming, seen, {name: len(found) for name, found in sets.items()}, common)

    def crowd(self, names: Iterable[str]) -> float:
        """How many will have the same set as a box has, in that of its attributes in which the fewest do."""
        return min(map(self._crowd, names))

    def _crowd(self, name: str) -> float:
        values = self.values.get(name, self.seen)
        return self.coming / values if 2 * values < self.seen else 0.0


class Encoding(Protocol):
    """Keeps clauses that ask something in tables of its own. Has no state: threads may share it."""

    on_connect: Sequence[str]
    """Statements for every new connection."""

    def tables(self) -> list[str]:
        """The statements that make its tables."""

    def table_names(self, side: Side) -> list[str]:
        """Its tables of one side, in full."""

    def indexes(self, side: Side) -> list[TableIndex]:
        """The indexes of one side that are better made after many rows have come."""

    def add(
        self,
        connection: Connection,
        side: Side,
        clauses: Sequence[tuple[int, Box]],
        spread: Spread | None = None,
    ) -> None:
        """Keep clauses under their numbers. Without `spread`, what is there already tells what is selective."""

    def remove(self, connection: Connection, side: Side, numbers: Sequence[int]) -> None:
        """Forget all clauses of constraints."""

    def restore(self, connection: Connection, side: Side, number: int) -> dict[int, Box]:
        """The clauses of a constraint, by their places."""

    def find(
        self, connection: Connection, side: Side, asked: Sequence[Box], decides: Decides, at: int
    ) -> Iterator[Found]:
        """What is held, holds at a time, and matches boxes that ask something; the same may come again."""


def described(dialect: Dialect, columns: Mapping[str, str]) -> str:
    """Columns, none of them null, as CREATE TABLE wants them."""
    return ", ".join(f"{name} {dialect.types[word]} NOT NULL" for name, word in columns.items())  # type: ignore[index]


def forget_rows(connection: Connection, tables: Iterable[str], numbers: Sequence[int]) -> None:
    """Remove all rows of the clauses of some constraints."""
    from sqlalchemy import text

    clauses = [{"first": each * CLAUSES, "beyond": (each + 1) * CLAUSES} for each in numbers]
    for table in tables:
        connection.execute(text(f"DELETE FROM {table} WHERE clause >= :first AND clause < :beyond"), clauses)
