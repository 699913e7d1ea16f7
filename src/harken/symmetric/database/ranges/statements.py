"""The statements of the range encoding, put together from the ways in which rows are found.

In all of them `a` is a row of what is asked, `s` a row of what is held that meets it, and `r` and `o` the same for
the attributes by which a candidate is verified. `wanted` has the other attributes of what is asked.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from harken.symmetric.contract import Side
from harken.symmetric.database.encodings import Decides
from harken.symmetric.database.ranges.slots import Family
from harken.symmetric.database.rows import span_condition, spatial_condition
from harken.symmetric.database.schema import CLAUSES, HOLDS, Layout
from harken.symmetric.database.sql.dialect import Keys

Way: TypeAlias = Literal["key", "near", "all"]
"""By which index: that of keys, that of ranges and boxes, or, for shapes of which all match, that of slots."""

FAMILY_KEYS: dict[Family, Keys | None] = {
    Family.NUMBERS: "number",
    Family.STRINGS: "bytes",
    Family.SHAPES: None,
}


class Search(NamedTuple):
    """What a statement has to look at: the ways to take, and the families to verify candidates in, if any."""

    side: Side
    ways: tuple[tuple[Family, Way], ...]
    verified: tuple[Family, ...]


def source_name(family: Family) -> str:
    """Under which name what is asked is read."""
    return f"asked_{family.name.lower()}"


def table_name(side: Side, family: Family) -> str:
    """The table of a family."""
    return f"{side}_{family.name.lower()}"


def counting_statement(layout: Layout, search: Search) -> str:
    """How many rows each row of what is asked finds, up to a limit, by its attribute."""
    counts = []
    for family, way in search.ways:
        tables, condition, asked = _way(layout, search.side, family, way)
        found = f"SELECT 1 FROM {tables} WHERE {condition} LIMIT :most"
        counts.append(
            f"SELECT a.ask, a.attribute, (SELECT count(*) FROM ({found}) found)"
            f" FROM {source_name(family)} a WHERE {asked}"
        )
    return " UNION ALL ".join(counts)


def matching_statement(layout: Layout, search: Search, decides: Decides) -> str:
    """What is held and matches what is asked: the place of the one, the number and the id of the other."""
    held = layout.names(search.side)
    candidates = []
    for family, way in search.ways:
        tables, condition, asked = _way(layout, search.side, family, way)
        conditions = ["a.access", asked, condition, _meets(family, "s", "a")]
        if search.verified:
            verify = _all_asked_is_met if decides == "asked" else _all_held_is_met
            conditions.append(verify(layout, search))
        candidates.append(
            f"SELECT a.ask AS ask, s.clause AS clause FROM {source_name(family)} a CROSS JOIN {tables}"
            f" WHERE {' AND '.join(conditions)}"
        )
    return (
        f"SELECT DISTINCT f.ask, m.number, m.id FROM ({' UNION ALL '.join(candidates)}) f CROSS JOIN {held} m"
        f" WHERE m.number = f.clause / {CLAUSES} AND {HOLDS}"
    )


def _way(layout: Layout, side: Side, family: Family, way: Way) -> tuple[str, str, str]:
    """What to join, how rows of it are found, and of what is asked, which rows are looked for so."""
    table, keys, dialect = table_name(side, family), FAMILY_KEYS[family], layout.dialect
    if way == "near":
        tables, condition = dialect.near(layout.names, table, keys)
        return tables, condition, "a.near" if keys is None else "a.segment"
    tables = f"{layout.names(table)} s"
    if keys is None:
        return tables, "NOT s.bounded AND s.slot = a.slot", "NOT a.near"
    key, low, high = dialect.key(keys, "s."), dialect.cut(keys, "a.key_low"), dialect.cut(keys, "a.key_high")
    return tables, f"NOT s.segment AND s.slot = a.slot AND {key} >= {low} AND {key} <= {high}", "NOT a.segment"


def _meets(family: Family, one: str, other: str) -> str:
    return spatial_condition(one, other) if FAMILY_KEYS[family] is None else span_condition(one, other)


def _all_asked_is_met(layout: Layout, search: Search) -> str:
    """No attribute of what is asked is one that the clause has not, or in which they do not meet."""
    # For EXISTS, PostgreSQL may collect all rows that any clause has, to look clauses up among them.
    unmet = " AND ".join(
        f"(SELECT 1 FROM {source_name(family)} o CROSS JOIN {layout.names(table_name(search.side, family))} r"
        f" WHERE o.ask = w.ask AND o.attribute = w.attribute AND r.clause = s.clause AND r.slot = o.slot"
        f" AND {_meets(family, 'r', 'o')} LIMIT 1) IS NULL"
        for family in search.verified
    )
    return f"NOT EXISTS (SELECT 1 FROM wanted w WHERE w.ask = a.ask AND {unmet})"


def _all_held_is_met(layout: Layout, search: Search) -> str:
    """As many attributes are met as the clause has."""
    met = " UNION ALL ".join(
        f"SELECT o.attribute FROM {layout.names(table_name(search.side, family))} r"
        f" CROSS JOIN {source_name(family)} o"
        f" WHERE r.clause = s.clause AND o.ask = a.ask AND o.attribute >= 0 AND o.slot = r.slot"
        f" AND {_meets(family, 'r', 'o')}"
        for family in search.verified
    )
    return f"(s.width = 1 OR s.width = (SELECT count(DISTINCT met.attribute) FROM ({met}) met))"
