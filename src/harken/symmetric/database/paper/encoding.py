"""The paper's encoding (Tomasic et al. 2006, section 3): tables of predicates by type, a query per operator pair.

Each attribute of a clause is a row, or several of which one has to meet, with its operator and value, in the table
of its type; a master counts the attributes of each clause. To match, one query for each pair of operators that is
in use writes down which attributes of which clauses meet, and an aggregate finds the clauses all of whose
attributes do. The planner is left to itself, as it was there.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from harken.symmetric.contract import Side
from harken.symmetric.database.attributes import Attributes
from harken.symmetric.database.encodings import PLACE, Decides, Found, Spread, described, forget_rows
from harken.symmetric.database.paper.rules import (
    ALWAYS,
    RULES,
    lies_apart,
    said,
    shape_operator,
    shortened,
    span_said,
)
from harken.symmetric.database.rows import (
    KeySpan,
    Sort,
    intervals_of,
    places_of,
    shapes_of,
    sort_of,
    spans_of,
    spatial_condition,
)
from harken.symmetric.database.schema import CLAUSES, HOLDS, SIDES, Layout
from harken.symmetric.database.sql.dialect import Keys, Row, Source, TableIndex, Word
from harken.symmetric.pointsets import Anything, Intervals, Lying, PointSet, Shapes
from harken.symmetric.semantics import Box

if TYPE_CHECKING:
    from sqlalchemy import Connection

_TOGETHER = 100
"""Clauses that are matched together. Many more gain nothing, and some plans get worse with their number."""

_ANSWER = "harken_intermediate_answer"
_ANSWER_COLUMNS: dict[str, Word] = {"ask": "whole", "clause": "whole", "field": "whole"}


def _columns(sort: Sort) -> dict[str, Word]:
    """The columns of a predicate of a type, after those that say whose it is."""
    common: dict[str, Word] = {"field": "whole", "op": "text"}
    match sort:
        case Sort.ANYTHING:
            return common
        case Sort.SHAPE:
            return {**common, **PLACE, "said": "text"}
        case Sort.NUMBER:
            return {**common, "val": "number", "val2": "number"}
        case Sort.STRING:
            return {**common, "val": "bytes", "val2": "bytes"}
    return {**common, "val": "number", "val2": "number"}


class PaperEncoding:
    """Operators and values in tables by type."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._dialect = layout.dialect
        self._attributes = Attributes(layout)
        self.on_connect: Sequence[str] = [self._dialect.temporary(_ANSWER, _ANSWER_COLUMNS)]

    # ---------------------------------------------------------------- tables

    def tables(self) -> list[str]:
        """For each side a master and a table for each type; and which operators are in use."""
        names, types = self._layout.names, self._dialect.types
        known = ", ".join(f"{column} {types['text']}" for column in ("side", "type", "op"))
        statements = [f"CREATE TABLE {names('operators')} ({known}, PRIMARY KEY (side, type, op))"]
        for side in SIDES:
            counted = f"clause {types['whole']} PRIMARY KEY, conjuncts {types['whole']} NOT NULL"
            statements.append(f"CREATE TABLE {names(side, 'master')} ({counted})")
            for sort in Sort:
                columns = described(self._dialect, {"clause": "whole", **_columns(sort)})
                statements.append(f"CREATE TABLE {self._table(side, sort)} ({columns})")
        return statements

    def table_names(self, side: Side) -> list[str]:
        """Its tables of one side."""
        return [self._layout.names(side, "master"), *(self._table(side, sort) for sort in Sort)]

    def indexes(self, side: Side) -> list[TableIndex]:
        """By operator and value, as the paper says; and by clause, to remove."""
        names, made = self._layout.names, []
        for sort in Sort:
            by = {"clause": "(clause)"}
            if sort is Sort.SHAPE:
                by["val"] = self._dialect.box_index()
            elif sort is not Sort.ANYTHING:
                keys: Keys = "bytes" if sort is Sort.STRING else "number"
                by["val"] = f"(op, {self._dialect.cut(keys, 'val')})"
            for name, on in by.items():
                parts = (side, sort.name.lower(), name)
                statement = f"CREATE INDEX {names.bare(*parts)} ON {self._table(side, sort)} {on}"
                made.append(TableIndex(names(*parts), statement))
        return made

    def _table(self, side: Side, sort: Sort) -> str:
        return self._layout.names(side, sort.name.lower())

    # ---------------------------------------------------------------- what is held

    def add(
        self,
        connection: Connection,
        side: Side,
        clauses: Sequence[tuple[int, Box]],
        spread: Spread | None = None,
    ) -> None:
        """A row in the master for each clause, and one for each alternative of each of its attributes."""
        names = {name for _, box in clauses for name in box}
        fields = self._attributes.register(connection, side, dict.fromkeys(names, 0))
        rows: dict[Sort, list[Row]] = defaultdict(list)
        for clause, box in clauses:
            for name, points in box.items():
                rows[sort_of(points)].extend((clause, fields[name], *row) for row in self._rows(points))
        self._note(connection, side, {(sort, str(row[2])) for sort, of_sort in rows.items() for row in of_sort})
        masters = [(clause, len(box)) for clause, box in clauses]
        self._dialect.insert(connection, self._layout.names(side, "master"), ("clause", "conjuncts"), masters)
        for sort, of_sort in rows.items():
            self._dialect.insert(connection, self._table(side, sort), ["clause", *_columns(sort)], of_sort)

    def remove(self, connection: Connection, side: Side, numbers: Sequence[int]) -> None:
        """Forget the rows of constraints."""
        forget_rows(connection, self.table_names(side), numbers)

    def restore(self, connection: Connection, side: Side, number: int) -> dict[int, Box]:
        """Rows back to boxes."""
        boxes: dict[int, dict[str, PointSet]] = defaultdict(dict)
        for sort in Sort:
            spans: dict[tuple[int, str], list[KeySpan]] = defaultdict(list)
            shapes: dict[tuple[int, str], list[str]] = defaultdict(list)
            columns = {Sort.ANYTHING: "s.op", Sort.SHAPE: "s.said"}.get(sort, "s.op, s.val, s.val2")
            for place, name, *row in self._kept(connection, side, number, sort, columns):
                if sort is Sort.ANYTHING:
                    boxes[place][name] = Anything()
                elif sort is Sort.SHAPE:
                    shapes[place, name].extend(row)
                else:
                    spans[place, name].append(span_said(*row))
            for (place, name), found in spans.items():
                boxes[place][name] = intervals_of(sort, found)
            for (place, name), texts in shapes.items():
                boxes[place][name] = shapes_of(texts)
        return dict(boxes)

    def _rows(self, points: PointSet) -> Iterator[Row]:
        """Operator and operand of each alternative."""
        match points:
            case Anything():
                yield ("exists",)
            case Intervals():
                whole = sort_of(points) is not Sort.STRING
                for operator, *values in map(said, spans_of(points)):
                    yield (operator, *(self._dialect.number(each) if whole else each for each in values))
            case Shapes() | Lying():
                for place in places_of(points):
                    yield (shape_operator(points), *place.columns, place.said)

    def _note(self, connection: Connection, side: Side, used: set[tuple[Sort, str]]) -> None:
        """Write down which operators are in use; there are few, and soon all of them are known."""
        from sqlalchemy import text

        add = text(
            f"INSERT INTO {self._layout.names('operators')} (side, type, op) VALUES (:side, :type, :op)"
            " ON CONFLICT DO NOTHING"
        )
        news = sorted(used - set(self._in_use(connection, side)))
        if news:
            connection.execute(add, [{"side": side, "type": sort.name, "op": op} for sort, op in news])

    def _in_use(self, connection: Connection, side: Side) -> list[tuple[Sort, str]]:
        from sqlalchemy import text

        query = text(f"SELECT type, op FROM {self._layout.names('operators')} WHERE side = :side")
        return [(Sort[type_name], op) for type_name, op in connection.execute(query, {"side": side})]

    def _kept(
        self, connection: Connection, side: Side, number: int, sort: Sort, columns: str
    ) -> Iterator[list[Any]]:
        from sqlalchemy import text

        query = text(
            f"SELECT s.clause - :first, a.name, {columns} FROM {self._table(side, sort)} s"
            f" JOIN {self._layout.names('attributes')} a ON a.number = s.field"
            " WHERE s.clause >= :first AND s.clause < :beyond"
        )
        bounds = {"first": number * CLAUSES, "beyond": (number + 1) * CLAUSES}
        for place, name, *row in connection.execute(query, bounds):
            yield [place, json.loads(name), *row]

    # ---------------------------------------------------------------- matching

    def find(
        self, connection: Connection, side: Side, asked: Sequence[Box], decides: Decides, at: int
    ) -> Iterator[Found]:
        """A query per pair of operators, and an aggregate."""
        known = self._attributes.known(connection, side, {name for box in asked for name in box})[0].attributes
        in_use = self._in_use(connection, side)
        for start in range(0, len(asked), _TOGETHER):
            rows: dict[Sort, list[Row]] = defaultdict(list)
            for ask, box in enumerate(asked[start : start + _TOGETHER], start):
                for name, points in box.items():
                    if name in known:
                        field = known[name].number
                        rows[sort_of(points)].extend((ask, field, *row) for row in self._rows(points))
            self._answer(connection, side, rows, in_use)
            counts = [(ask, len(asked[ask])) for ask in range(start, min(start + _TOGETHER, len(asked)))]
            yield from self._aggregate(connection, side, counts, decides, at)

    def _answer(
        self, connection: Connection, side: Side, rows: dict[Sort, list[Row]], in_use: Sequence[tuple[Sort, str]]
    ) -> None:
        """Fill the intermediate answer: which attributes of which clauses meet."""
        from sqlalchemy import text

        connection.exec_driver_sql(f"DELETE FROM {_ANSWER}")
        for sort, of_sort in rows.items():
            source = Source(f"asked_{sort.name.lower()}", {"ask": "whole", **_columns(sort)}, of_sort)
            with_asked, parameters = self._dialect.ask(connection, [source])
            operators = sorted({str(row[2]) for row in of_sort})
            for asked_op, (held_sort, held_op) in product(operators, in_use):
                condition = self._condition(sort, asked_op, held_sort, held_op)
                if condition is not None:
                    query = (
                        f"{with_asked} INSERT INTO {_ANSWER} SELECT DISTINCT p.ask, s.clause, p.field"
                        f" FROM {source.name} p, {self._table(side, held_sort)} s"
                        f" WHERE p.op = :asked AND s.op = :held AND p.field = s.field AND {condition}"
                    )
                    operands = {"asked": asked_op, "held": held_op}
                    connection.execute(text(query), {**parameters, **operands})

    def _condition(self, sort: Sort, asked_op: str, held_sort: Sort, held_op: str) -> str | None:
        """When predicates meet, besides being on one field; None if they never do."""
        if Sort.ANYTHING in (sort, held_sort):
            return ALWAYS
        if sort is not held_sort:
            return None
        if sort is Sort.STRING:
            return shortened(RULES[asked_op, held_op], lambda column: self._dialect.cut("bytes", column))
        if sort is not Sort.SHAPE:
            return RULES[asked_op, held_op]
        exact = spatial_condition("p", "s")
        return f"{self._dialect.boxes_overlap('p', 's')} AND {exact}" if lies_apart(asked_op, held_op) else exact

    def _aggregate(
        self, connection: Connection, side: Side, counts: Sequence[Row], decides: Decides, at: int
    ) -> Iterator[Found]:
        """The clauses of which as many attributes meet as count."""
        from sqlalchemy import text

        held = self._layout.names(side)
        with_asked, parameters = "", dict[str, object]()
        if decides == "asked":
            source = Source("asked_master", {"ask": "whole", "conjuncts": "whole"}, counts)
            with_asked, parameters = self._dialect.ask(connection, [source])
            master = "asked_master c ON c.ask = i.ask"
        else:
            master = f"{self._layout.names(side, 'master')} c ON c.clause = i.clause"
        met = (
            f"SELECT i.ask, i.clause FROM {_ANSWER} i JOIN {master}"
            " GROUP BY i.ask, i.clause, c.conjuncts HAVING count(DISTINCT i.field) = c.conjuncts"
        )
        query = (
            f"{with_asked} SELECT DISTINCT f.ask, m.number, m.id FROM ({met}) f"
            f" JOIN {held} m ON m.number = f.clause / {CLAUSES}"
            f" WHERE {HOLDS}"
        )
        for row in connection.execute(text(query), {**parameters, "at": at}):
            yield row[0], row[1], row[2]
