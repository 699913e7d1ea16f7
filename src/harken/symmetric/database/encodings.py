"""What a way to keep constraints in tables has to offer. There are two: our ranges, and the paper's operators."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, Protocol, TypeAlias

from harken.symmetric.contract import Side
from harken.symmetric.database.rows import PLACE_COLUMNS, Sort, points_of
from harken.symmetric.database.schema import CLAUSES
from harken.symmetric.database.sides import OpenSide
from harken.symmetric.database.sql.dialect import Dialect, TableIndex, Word
from harken.symmetric.pointsets import PointSet, is_single
from harken.symmetric.semantics import Box

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
    """Keeps clauses that ask something in tables of its own. Does not change: threads may share it."""

    dialect: Dialect
    on_connect: Sequence[str]
    """Statements for every new connection."""

    def tables(self) -> list[str]:
        """The statements that make its tables."""

    def table_names(self, side: Side) -> list[str]:
        """Its tables of one side, in full."""

    def indexes(self, side: Side) -> list[TableIndex]:
        """The indexes of one side that are better made after many rows have come."""

    def add(self, side: OpenSide, clauses: Sequence[tuple[int, Box]], spread: Spread | None = None) -> None:
        """Keep clauses under their numbers. Without `spread`, what is there already tells what is selective."""

    def find(self, side: OpenSide, asked: Sequence[Box], decides: Decides, at: int) -> Iterator[Found]:
        """What is held, holds at a time, and matches boxes that ask something; the same may come again."""

    def remove(self, side: OpenSide, numbers: Sequence[int]) -> None:
        """Forget all clauses of constraints."""
        for table in self.table_names(side.name):
            side.run(f"DELETE FROM {table} WHERE {_OF_CONSTRAINT}", list(map(_clauses_of, numbers)))

    def restore(self, side: OpenSide, number: int) -> dict[int, Box]:
        """The clauses of a constraint, by their places."""
        sets: dict[tuple[int, str, Sort], list[object]] = defaultdict(list)
        for place, name, sort, part in self.parts(side, number):
            sets[place, name, sort].append(part)
        boxes: dict[int, dict[str, PointSet]] = defaultdict(dict)
        for (place, name, sort), parts in sets.items():
            boxes[place][name] = points_of(sort, parts)
        return dict(boxes)

    def parts(self, side: OpenSide, number: int) -> Iterator[tuple[int, str, Sort, object]]:
        """Of each row of a constraint the place of its clause, the attribute, and what `points_of` needs."""


def rows_of(side: OpenSide, table: str, attribute: str, columns: str, number: int) -> Iterator[list[Any]]:
    """Rows of a constraint: the place of the clause, the attribute (of a cluster, its key), and columns."""
    query = (
        f"SELECT clause - :first, a.name, {columns} FROM {table} JOIN {side.dialect.names('attributes')} a"
        f" ON a.number = {attribute} WHERE {_OF_CONSTRAINT}"
    )
    for place, name, *row in side.run(query, _clauses_of(number)):
        yield [place, json.loads(name), *row]


_OF_CONSTRAINT = "clause >= :first AND clause < :beyond"


def _clauses_of(number: int) -> dict[str, int]:
    return {"first": number * CLAUSES, "beyond": (number + 1) * CLAUSES}
