"""The statements of the range encoding, put together from the ways in which rows are found.

In all of them `a` is a row of what is asked, `s` a row of what is held that meets it, and `r` and `o` the same for
the attributes by which a candidate is verified. `wanted` has the other attributes of what is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias

from harken.symmetric.database.encodings import PLACE, Found
from harken.symmetric.database.ranges.slots import Family
from harken.symmetric.database.rows import span_condition, spatial_condition
from harken.symmetric.database.schema import CLAUSES, HOLDS
from harken.symmetric.database.sides import OpenSide
from harken.symmetric.database.sql.dialect import Row, Source, Word

Way: TypeAlias = Literal["key", "near", "all"]
"""By which index: that of keys, that of ranges and boxes, or, for shapes of which all match, that of slots."""


def span_columns(keys: Word) -> dict[str, Word]:
    """The columns of an interval."""
    return {"low": keys, "low_closed": "truth", "high": keys, "high_closed": "truth"}


def _columns(family: Family) -> dict[str, Word]:
    common: dict[str, Word] = {"ask": "whole", "attribute": "whole", "slot": "whole", "access": "truth"}
    keys = family.keys
    if keys is None:
        return {**common, "near": "truth", **PLACE}
    return {**common, "segment": "truth", "key_low": keys, "key_high": keys, **span_columns(keys)}


class Search:
    """What one statement looks at: rows of what is asked, and the ways to take for those that give access."""

    def __init__(self, side: OpenSide) -> None:
        self._side = side
        self._rows: dict[Family, list[Row]] = {}
        self._ways: set[tuple[Family, Way]] = set()

    def add(self, family: Family, way: Way, row: Row) -> None:
        """Ask a row, of the query, its attribute, a slot, whether it gives access, and what is asked there."""
        self._rows.setdefault(family, []).append(row)
        if row[3]:
            self._ways.add((family, way))

    def count(self, most: int) -> Iterator[tuple[int, int, int]]:
        """How many rows each row of what is asked finds, up to a limit, by query and attribute."""
        if self._ways:
            yield from self._run(self._counting_statement(), (), most=most)

    def match(self, wanted: Sequence[Row] | None, at: int) -> Iterator[Found]:
        """What is held and matches what is asked: the query, the number and the id of what is held.

        `wanted` are the attributes in which candidates have yet to meet what is asked; None, if those of what is
        held decide.
        """
        if self._ways:
            sources = [Source("wanted", {"ask": "whole", "attribute": "whole"}, wanted)] if wanted else []
            yield from self._run(self._matching_statement(wanted), sources, at=at)

    def _run(self, statement: str, sources: Sequence[Source], **parameters: int) -> Iterator[Any]:
        asked = [Source(family.asked, _columns(family), rows) for family, rows in self._rows.items()]
        with_asked, arrays = self._side.dialect.ask(self._side.connection, [*asked, *sources])
        for row in self._side.run(f"{with_asked} {statement}", {**arrays, **parameters}):
            yield tuple(row)

    def _counting_statement(self) -> str:
        counts = []
        for family, way in sorted(self._ways):  # so that the same statements come again
            tables, condition, asked = self._way(family, way)
            found = f"SELECT 1 FROM {tables} WHERE {condition} LIMIT :most"
            counts.append(
                f"SELECT a.ask, a.attribute, (SELECT count(*) FROM ({found}) found)"
                f" FROM {family.asked} a WHERE {asked}"
            )
        return " UNION ALL ".join(counts)

    def _matching_statement(self, wanted: Sequence[Row] | None) -> str:
        verified = []
        if wanted is None:
            verified = [self._all_held_is_met()]
        elif wanted:
            verified = [self._all_asked_is_met()]
        candidates = []
        for family, way in sorted(self._ways):
            tables, condition, asked = self._way(family, way)
            conditions = ["a.access", asked, condition, _meets(family, "s", "a"), *verified]
            candidates.append(
                f"SELECT a.ask AS ask, s.clause AS clause FROM {family.asked} a CROSS JOIN {tables}"
                f" WHERE {' AND '.join(conditions)}"
            )
        return (
            f"SELECT DISTINCT f.ask, m.number, m.id FROM ({' UNION ALL '.join(candidates)}) f"
            f" CROSS JOIN {self._side.table()} m WHERE m.number = f.clause / {CLAUSES} AND {HOLDS}"
        )

    def _way(self, family: Family, way: Way) -> tuple[str, str, str]:
        """What to join, how rows of it are found, and of what is asked, which rows are looked for so."""
        dialect, keys = self._side.dialect, family.keys
        if way == "near":
            tables, condition = dialect.near(family.table(self._side.name), keys)
            return tables, condition, "a.near" if keys is None else "a.segment"
        tables = f"{self._table(family)} s"
        if keys is None:
            return tables, "NOT s.bounded AND s.slot = a.slot", "NOT a.near"
        key = dialect.key(keys, "s.")
        between = f"{key} >= {dialect.cut(keys, 'a.key_low')} AND {key} <= {dialect.cut(keys, 'a.key_high')}"
        return tables, f"NOT s.segment AND s.slot = a.slot AND {between}", "NOT a.segment"

    def _all_asked_is_met(self) -> str:
        """No attribute of what is asked is one that the clause has not, or in which they do not meet."""
        # For EXISTS, PostgreSQL may collect all rows that any clause has, to look clauses up among them.
        unmet = " AND ".join(
            f"(SELECT 1 FROM {family.asked} o CROSS JOIN {self._table(family)} r"
            f" WHERE o.ask = w.ask AND o.attribute = w.attribute AND r.clause = s.clause AND r.slot = o.slot"
            f" AND {_meets(family, 'r', 'o')} LIMIT 1) IS NULL"
            for family in self._rows
        )
        return f"NOT EXISTS (SELECT 1 FROM wanted w WHERE w.ask = a.ask AND {unmet})"

    def _all_held_is_met(self) -> str:
        """As many attributes are met as the clause has."""
        met = " UNION ALL ".join(
            f"SELECT o.attribute FROM {self._table(family)} r CROSS JOIN {family.asked} o"
            f" WHERE r.clause = s.clause AND o.ask = a.ask AND o.attribute >= 0 AND o.slot = r.slot"
            f" AND {_meets(family, 'r', 'o')}"
            for family in self._rows
        )
        return f"(s.width = 1 OR s.width = (SELECT count(DISTINCT met.attribute) FROM ({met}) met))"

    def _table(self, family: Family) -> str:
        return self._side.dialect.names(family.table(self._side.name))


def _meets(family: Family, one: str, other: str) -> str:
    return spatial_condition(one, other) if family is Family.SHAPES else span_condition(one, other)
