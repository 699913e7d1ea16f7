"""Our encoding: every alternative of a constraint is a range in a table of numbers, of strings or of shapes.

A clause is found by one attribute and verified by its others, so that nothing is collected but candidates. If the
attributes of what is asked decide, the one with the fewest rows is sought: a count with a limit tells which. If
those of what is held decide, each clause has an access path, chosen when it was added. Where no
attribute tells much, clauses are found by the joint value of several. One statement does it all; what is asked
comes with it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from harken.symmetric.contract import Side
from harken.symmetric.database.attributes import Attributes
from harken.symmetric.database.encodings import PLACE, Decides, Found, Spread, described, forget_rows
from harken.symmetric.database.ranges.placement import Placement, Placements
from harken.symmetric.database.ranges.query_plan import RangeQueries, span_columns
from harken.symmetric.database.ranges.slots import (
    JOINT_SLOT,
    OF_ATTRIBUTE,
    Digested,
    Digests,
    Family,
    IntervalForm,
    Part,
    slot,
    sort_of_slot,
)
from harken.symmetric.database.ranges.statements import FAMILY_KEYS, table_name
from harken.symmetric.database.rows import KeySpan, ShapePlace, Sort, intervals_of, shapes_of
from harken.symmetric.database.schema import CLAUSES, SIDES, Layout
from harken.symmetric.database.sql.dialect import Row, TableIndex, Word
from harken.symmetric.pointsets import Anything, PointSet
from harken.symmetric.semantics import Box

if TYPE_CHECKING:
    from sqlalchemy import Connection


def _columns(family: Family) -> dict[str, Word]:
    common: dict[str, Word] = {"clause": "whole", "slot": "whole", "width": "whole"}
    keys = FAMILY_KEYS[family]
    if keys is None:
        return {**common, "bounded": "truth", **PLACE, "said": "text"}
    return {**common, "segment": "truth", **span_columns(keys)}


class RangeEncoding:
    """Ranges in tables by what their keys are, under an index for each form of them."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._dialect = layout.dialect
        self._attributes = Attributes(layout)
        self._queries = RangeQueries(layout, self._attributes)
        self._placements = Placements(self._attributes, self._queries)
        self.on_connect: Sequence[str] = self._dialect.steering

    # ---------------------------------------------------------------- tables

    def tables(self) -> list[str]:
        """A table for each family and side."""
        statements = []
        # Rows of an R*Tree are known by the row they stand for.
        row = "row INTEGER PRIMARY KEY, " if self._dialect.types["whole"] == "INTEGER" else ""
        for side in SIDES:
            for family in Family:
                table = table_name(side, family)
                columns = described(self._dialect, _columns(family))
                statements.append(f"CREATE TABLE {self._layout.names(table)} ({row}{columns})")
                statements.extend(self._dialect.near_table(self._layout.names, table, FAMILY_KEYS[family]))
        return statements

    def table_names(self, side: Side) -> list[str]:
        """Its tables of one side."""
        return [self._layout.names(table_name(side, family)) for family in Family]

    def indexes(self, side: Side) -> list[TableIndex]:
        """By clause, by key, and by where ranges and shapes lie."""
        names, made = self._layout.names, []
        for family in Family:
            table, keys = table_name(side, family), FAMILY_KEYS[family]
            by_key = "slot" if keys is None else f"slot, {self._dialect.key(keys, '')}"
            where = "NOT bounded" if keys is None else "NOT segment"
            for name, columns in (("clause", "clause, slot"), ("key", by_key)):
                said = f"CREATE INDEX {names.bare(table, name)} ON {names(table)} ({columns})"
                made.append(TableIndex(names(table, name), f"{said} WHERE {where}" if name == "key" else said))
            made.extend(self._dialect.near_index(names, table, keys))
        return made

    # ---------------------------------------------------------------- what is held

    def add(
        self,
        connection: Connection,
        side: Side,
        clauses: Sequence[tuple[int, Box]],
        spread: Spread | None = None,
    ) -> None:
        """Keep clauses: one row for each alternative of each attribute."""
        digests = Digests()
        boxes = [digests.of(box) for _, box in clauses]
        placements = self._placements.choose(connection, side, boxes, spread)
        numbers = self._register(connection, side, boxes, placements)
        rows: dict[Family, list[Row]] = {family: [] for family in Family}
        for (clause, _), box, placement in zip(clauses, boxes, placements, strict=True):
            width, known = len(box), numbers[placement.cluster]
            for name, digest in box.items():
                is_access, first = name == placement.access, known[name] * OF_ATTRIBUTE
                for part in digest.parts:
                    place = slot(part.sort, part.form, is_access=is_access)
                    rows[part.family].append((clause, first + place, width, *self._held(part)))
            if placement.joint is not None:
                place, value = placement.cluster * OF_ATTRIBUTE + JOINT_SLOT, self._dialect.number(placement.joint)
                rows[Family.NUMBERS].append((clause, place, width, False, value, True, value, True))
        for family, of_family in rows.items():
            table = self._layout.names(table_name(side, family))
            self._dialect.insert(connection, table, list(_columns(family)), of_family, near=True)

    def _register(
        self, connection: Connection, side: Side, boxes: Sequence[Digested], placements: Sequence[Placement]
    ) -> dict[int, dict[str, int]]:
        """The numbers of attributes, by cluster and name; which slots they use is noted."""
        used: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for box, placement in zip(boxes, placements, strict=True):
            of_cluster = used[placement.cluster]
            for name, digest in box.items():
                for part in digest.parts:
                    of_cluster[name] |= 1 << slot(part.sort, part.form, is_access=name == placement.access)
        return {
            cluster: self._attributes.register(connection, side, names, cluster)
            for cluster, names in sorted(used.items())
        }

    def remove(self, connection: Connection, side: Side, numbers: Sequence[int]) -> None:
        """Forget the rows of constraints."""
        forget_rows(connection, self.table_names(side), numbers)

    def restore(self, connection: Connection, side: Side, number: int) -> dict[int, Box]:
        """Rows back to boxes."""
        boxes: dict[int, dict[str, PointSet]] = defaultdict(dict)
        spans: dict[tuple[int, str, Sort], list[KeySpan]] = defaultdict(list)
        said: dict[tuple[int, str], list[str]] = defaultdict(list)
        for family in Family:
            columns = "said" if FAMILY_KEYS[family] is None else "low, low_closed, high, high_closed"
            for clause, name, place, *row in self._rows(connection, side, number, family, columns):
                sort = sort_of_slot(place)
                if sort is Sort.ANYTHING:
                    boxes[clause][name] = Anything()
                elif sort is Sort.SHAPE:
                    said[clause, name].extend(row)
                else:
                    spans[clause, name, sort].append(KeySpan(row[0], bool(row[1]), row[2], bool(row[3])))
        for (clause, name, sort), found in spans.items():
            boxes[clause][name] = intervals_of(sort, found)
        for (clause, name), shapes in said.items():
            boxes[clause][name] = shapes_of(shapes)
        return dict(boxes)

    def find(
        self, connection: Connection, side: Side, asked: Sequence[Box], decides: Decides, at: int
    ) -> Iterator[Found]:
        """By one attribute, verified by the others."""
        return self._queries.find(connection, side, asked, decides, at)

    def _held(self, part: Part) -> Row:
        if isinstance(part.said, ShapePlace):
            return (part.form is IntervalForm.BOUNDED, *part.said.columns, part.said.said)
        low, low_closed, high, high_closed = part.said
        if part.family is Family.NUMBERS:
            low, high = self._dialect.number(low), self._dialect.number(high)  # type: ignore[assignment]
        return (part.form is IntervalForm.SEGMENT, low, low_closed, high, high_closed)

    def _rows(
        self, connection: Connection, side: Side, number: int, family: Family, columns: str
    ) -> Iterator[Any]:
        from sqlalchemy import text

        table, attributes = self._layout.names(table_name(side, family)), self._layout.names("attributes")
        query = text(
            f"SELECT s.clause - :first, a.name, s.slot, {columns} FROM {table} s"
            f" JOIN {attributes} a ON a.number = s.slot / {OF_ATTRIBUTE}"
            " WHERE s.clause >= :first AND s.clause < :beyond"
        )
        bounds = {"first": number * CLAUSES, "beyond": (number + 1) * CLAUSES}
        for place, text_of_name, *row in connection.execute(query, bounds):
            name = json.loads(text_of_name)
            if isinstance(name, str):  # the others are joint values
                yield place, name, *row
