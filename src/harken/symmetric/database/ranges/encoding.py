"""Our encoding: every alternative of a constraint is a range in a table of numbers, of strings or of shapes.

A clause is found by one attribute and verified by its others, so that nothing is collected but candidates. If the
attributes of what is asked decide, the one with the fewest rows is sought: a count with a limit tells which. If
those of what is held decide, each clause has an access path, chosen when it was added. Where no
attribute tells much, clauses are found by the joint value of several. One statement does it all; what is asked
comes with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harken.symmetric.contract import Side
from harken.symmetric.database.attributes import Attributes, ClusterKey
from harken.symmetric.database.encodings import PLACE, Decides, Encoding, Found, Spread, rows_of
from harken.symmetric.database.ranges.query_plan import RangeQueries
from harken.symmetric.database.ranges.slots import (
    CROWD,
    JOINT_SLOT,
    OF_ATTRIBUTE,
    Digested,
    Family,
    IntervalForm,
    Part,
    digested,
    joint_value,
    slot,
    sort_of_slot,
)
from harken.symmetric.database.ranges.statements import span_columns
from harken.symmetric.database.rows import KeySpan, ShapePlace, Sort
from harken.symmetric.database.schema import SIDES
from harken.symmetric.database.sides import OpenSide
from harken.symmetric.database.sql.dialect import Dialect, Row, TableIndex, Word
from harken.symmetric.semantics import Box

_CLUSTERS = 8
"""Every cluster is one more place to look."""


class Placement(NamedTuple):
    """The place of a clause: the attribute that is its access path, its cluster, and its joint value there."""

    access: str
    cluster: int = 0
    joint: int | None = None


def _columns(family: Family) -> dict[str, Word]:
    common: dict[str, Word] = {"clause": "whole", "slot": "whole", "width": "whole"}
    if family.keys is None:
        return {**common, "bounded": "truth", **PLACE, "said": "text"}
    return {**common, "segment": "truth", **span_columns(family.keys)}


class RangeEncoding(Encoding):
    """Ranges in tables by what their keys are, under an index for each form of them."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.on_connect = dialect.steering

    # ---------------------------------------------------------------- tables

    def tables(self) -> list[str]:
        """A table for each family and side."""
        statements = []
        # Rows of an R*Tree are known by the row they stand for.
        row = "row INTEGER PRIMARY KEY, " if self.dialect.types["whole"] == "INTEGER" else ""
        for side in SIDES:
            for family in Family:
                table, columns = family.table(side), self.dialect.described(_columns(family))
                statements.append(f"CREATE TABLE {self.dialect.names(table)} ({row}{columns})")
                statements.extend(self.dialect.near_table(table, family.keys))
        return statements

    def table_names(self, side: Side) -> list[str]:
        """Its tables of one side."""
        return [self.dialect.names(family.table(side)) for family in Family]

    def indexes(self, side: Side) -> list[TableIndex]:
        """By clause, by key, and by where ranges and shapes lie."""
        made = []
        for family in Family:
            table, keys = family.table(side), family.keys
            by_key = "(slot) WHERE NOT bounded"
            if keys is not None:
                by_key = f"(slot, {self.dialect.key(keys, '')}) WHERE NOT segment"
            for name, on in (("clause", "(clause, slot)"), ("key", by_key)):
                made.append(self.dialect.index((table, name), self.dialect.names(table), on))
            made.extend(self.dialect.near_index(table, keys))
        return made

    # ---------------------------------------------------------------- what is held

    def add(self, side: OpenSide, clauses: Sequence[tuple[int, Box]], spread: Spread | None = None) -> None:
        """Keep clauses: one row for each alternative of each attribute."""
        boxes = digested([box for _, box in clauses])
        places = _placements(side, boxes, spread)
        numbers = _register(side, boxes, places)
        rows: dict[Family, list[Row]] = {family: [] for family in Family}
        for (clause, _), box, placement in zip(clauses, boxes, places, strict=True):
            width, known = len(box), numbers[placement.cluster]
            for name, digest in box.items():
                is_access, first = name == placement.access, known[name] * OF_ATTRIBUTE
                for part in digest.parts:
                    place = slot(part.sort, part.form, is_access=is_access)
                    rows[part.family].append((clause, first + place, width, *self._held(part)))
            if placement.joint is not None:
                place, value = placement.cluster * OF_ATTRIBUTE + JOINT_SLOT, self.dialect.number(placement.joint)
                rows[Family.NUMBERS].append((clause, place, width, False, value, True, value, True))
        for family, of_family in rows.items():
            table = self.dialect.names(family.table(side.name))
            self.dialect.insert_near(side.connection, table, list(_columns(family)), of_family)

    def parts(self, side: OpenSide, number: int) -> Iterator[tuple[int, str, Sort, object]]:
        """Rows back to what they said; those of joint values say nothing."""
        attribute = f"slot / {OF_ATTRIBUTE}"
        for family in Family:
            table = self.dialect.names(family.table(side.name))
            columns = "slot, said" if family is Family.SHAPES else "slot, low, low_closed, high, high_closed"
            for place, name, its_slot, *row in rows_of(side, table, attribute, columns, number):
                if isinstance(name, str):
                    part = row[0] if len(row) == 1 else KeySpan(row[0], bool(row[1]), row[2], bool(row[3]))
                    yield place, name, sort_of_slot(its_slot), part

    def find(self, side: OpenSide, asked: Sequence[Box], decides: Decides, at: int) -> Iterator[Found]:
        """By one attribute, verified by the others."""
        return RangeQueries(side).find(asked, decides, at)

    def _held(self, part: Part) -> Row:
        if isinstance(part.said, ShapePlace):
            return (part.form is IntervalForm.BOUNDED, *part.said.columns, part.said.said)
        low, low_closed, high, high_closed = part.said
        if part.family is Family.NUMBERS:
            low, high = self.dialect.number(low), self.dialect.number(high)  # type: ignore[assignment]
        return (part.form is IntervalForm.SEGMENT, low, low_closed, high, high_closed)


def _register(side: OpenSide, boxes: Sequence[Digested], places: Sequence[Placement]) -> dict[int, dict[str, int]]:
    """The numbers of attributes, by cluster and name; which slots they use is noted."""
    used: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for box, placement in zip(boxes, places, strict=True):
        of_cluster = used[placement.cluster]
        for name, digest in box.items():
            for part in digest.parts:
                of_cluster[name] |= 1 << slot(part.sort, part.form, is_access=name == placement.access)
    attributes = Attributes(side)
    return {cluster: attributes.register(names, cluster) for cluster, names in sorted(used.items())}


# ---------------------------------------------------------------- where clauses are kept


def _placements(side: OpenSide, boxes: Sequence[Digested], spread: Spread | None) -> list[Placement]:
    """A place for each clause; without `spread`, what is there already tells what is selective.

    Those that no attribute tells apart from many others go into clusters, as long as there are few of these.
    """
    if spread is None:
        crowds = RangeQueries(side).fewest(boxes)
    else:
        crowds = [(_access(box, spread), spread.crowd(box)) for box in boxes]
    if all(crowd < CROWD for _, crowd in crowds):
        return [Placement(access) for access, _ in crowds]
    attributes = Attributes(side)
    numbers = {key: each.number for key, each in attributes.clusters().items()}
    keys = [
        _key(box, numbers, spread) if crowd >= CROWD else () for box, (_, crowd) in zip(boxes, crowds, strict=True)
    ]
    for key in sorted(set(keys) - {()}):
        numbers[key] = attributes.register_cluster(key, 1 << JOINT_SLOT)
    return [
        Placement(access, numbers[key], joint_value(box, key)) if key else Placement(access)
        for box, key, (access, _) in zip(boxes, keys, crowds, strict=True)
    ]


def _access(box: Digested, spread: Spread) -> str:
    return min(box, key=lambda name: (box[name].selectivity, -spread.values.get(name, 0)))


def _key(box: Digested, numbers: dict[ClusterKey, int], spread: Spread | None) -> ClusterKey:
    """The longest of the keys of which a box has single values, or a new one, if there may be another."""
    single = {name for name, found in box.items() if found.value is not None}
    known = max((key for key in numbers if single.issuperset(key)), key=len, default=())
    if known or len(numbers) >= _CLUSTERS:
        return known
    common = single if spread is None else single & spread.common
    if len(common) < 2:
        return ()
    fresh = tuple(sorted(common))
    numbers[fresh] = 0  # until it is registered
    return fresh
