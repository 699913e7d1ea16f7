"""The paper's encoding (Tomasic et al. 2006, section 3): tables of predicates by type, a query per operator pair.

Each attribute of a clause is a row, or several of which one has to meet, with its operator and value, in the table
of its type; a master counts the attributes of each clause. To match, one query for each pair of operators that is
in use writes down which attributes of which clauses meet, and an aggregate finds the clauses all of whose
attributes do. The planner is left to itself, as it was there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from harken.symmetric.contract import Side
from harken.symmetric.database.attributes import Attributes
from harken.symmetric.database.encodings import PLACE, Decides, Encoding, Found, Spread, rows_of
from harken.symmetric.database.paper.rules import (
    ALWAYS,
    RULES,
    lies_apart,
    said,
    shape_operator,
    shortened,
    span_said,
)
from harken.symmetric.database.rows import Sort, places_of, sort_of, spans_of, spatial_condition
from harken.symmetric.database.schema import CLAUSES, HOLDS, SIDES
from harken.symmetric.database.sides import OpenSide
from harken.symmetric.database.sql.dialect import Dialect, Keys, Row, Source, TableIndex, Word
from harken.symmetric.pointsets import Anything, Intervals, Lying, PointSet, Shapes
from harken.symmetric.semantics import Box

_TOGETHER = 100
"""Clauses that are matched together. Many more gain nothing, and some plans get worse with their number."""

_ANSWER = "harken_intermediate_answer"
_ANSWER_COLUMNS: dict[str, Word] = {"ask": "whole", "clause": "whole", "field": "whole"}


def _keys(sort: Sort) -> Keys | None:
    """What the values of a type are; None for those that are in no order."""
    if sort in (Sort.ANYTHING, Sort.SHAPE):
        return None
    return "bytes" if sort is Sort.STRING else "number"


def _columns(sort: Sort) -> dict[str, Word]:
    """The columns of a predicate of a type, after those that say whose it is."""
    common: dict[str, Word] = {"field": "whole", "op": "text"}
    if sort is Sort.SHAPE:
        return {**common, **PLACE, "said": "text"}
    keys = _keys(sort)
    return common if keys is None else {**common, "val": keys, "val2": keys}


class PaperEncoding(Encoding):
    """Operators and values in tables by type."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._names = dialect.names
        self.on_connect = [dialect.temporary(_ANSWER, _ANSWER_COLUMNS)]

    # ---------------------------------------------------------------- tables

    def tables(self) -> list[str]:
        """For each side a master and a table for each type; and which operators are in use."""
        known = self.dialect.described({"side": "text", "type": "text", "op": "text"}, "")
        statements = [f"CREATE TABLE {self._names('operators')} ({known}, PRIMARY KEY (side, type, op))"]
        whole = self.dialect.types["whole"]
        for side in SIDES:
            counted = f"clause {whole} PRIMARY KEY, conjuncts {whole} NOT NULL"
            statements.append(f"CREATE TABLE {self._names(side, 'master')} ({counted})")
            for sort in Sort:
                columns = self.dialect.described({"clause": "whole", **_columns(sort)})
                statements.append(f"CREATE TABLE {self._table(side, sort)} ({columns})")
        return statements

    def table_names(self, side: Side) -> list[str]:
        """Its tables of one side."""
        return [self._names(side, "master"), *(self._table(side, sort) for sort in Sort)]

    def indexes(self, side: Side) -> list[TableIndex]:
        """By operator and value, as the paper says; and by clause, to remove."""
        made = []
        for sort in Sort:
            by, keys = {"clause": "(clause)"}, _keys(sort)
            if sort is Sort.SHAPE:
                by["val"] = self.dialect.box_index()
            elif keys is not None:
                by["val"] = f"(op, {self.dialect.cut(keys, 'val')})"
            for name, on in by.items():
                made.append(self.dialect.index((side, sort.name.lower(), name), self._table(side, sort), on))
        return made

    def _table(self, side: Side, sort: Sort) -> str:
        return self._names(side, sort.name.lower())

    # ---------------------------------------------------------------- what is held

    def add(self, side: OpenSide, clauses: Sequence[tuple[int, Box]], spread: Spread | None = None) -> None:
        """A row in the master for each clause, and one for each alternative of each of its attributes."""
        names = {name for _, box in clauses for name in box}
        fields = Attributes(side).register(dict.fromkeys(names, 0))
        rows = self._rows(clauses, fields)
        self._note(side, {(sort, str(row[2])) for sort, of_sort in rows.items() for row in of_sort})
        masters = [(clause, len(box)) for clause, box in clauses]
        self.dialect.insert(side.connection, side.table("master"), ("clause", "conjuncts"), masters)
        for sort, of_sort in rows.items():
            columns = ["clause", *_columns(sort)]
            self.dialect.insert(side.connection, self._table(side.name, sort), columns, of_sort)

    def parts(self, side: OpenSide, number: int) -> Iterator[tuple[int, str, Sort, object]]:
        """Operators and values back to what they said."""
        for sort in Sort:
            columns = {Sort.ANYTHING: "op", Sort.SHAPE: "said"}.get(sort, "op, val, val2")
            for place, name, *row in rows_of(side, self._table(side.name, sort), "field", columns, number):
                yield place, name, sort, row[0] if _keys(sort) is None else span_said(*row)

    def _rows(self, boxes: Iterable[tuple[int, Box]], fields: Mapping[str, int]) -> dict[Sort, list[Row]]:
        """A row for each alternative of attributes that are known, by type: whose it is, field, predicate."""
        rows: dict[Sort, list[Row]] = defaultdict(list)
        for number, box in boxes:
            for name, points in box.items():
                if name in fields:
                    of_sort = ((number, fields[name], *each) for each in self._predicates(points))
                    rows[sort_of(points)].extend(of_sort)
        return rows

    def _predicates(self, points: PointSet) -> Iterator[Row]:
        """Operator and operand of each alternative."""
        match points:
            case Anything():
                yield ("exists",)
            case Intervals():
                whole = sort_of(points) is not Sort.STRING
                for operator, *values in map(said, spans_of(points)):
                    yield (operator, *(self.dialect.number(each) if whole else each for each in values))
            case Shapes() | Lying():
                for place in places_of(points):
                    yield (shape_operator(points), *place.columns, place.said)

    def _note(self, side: OpenSide, used: set[tuple[Sort, str]]) -> None:
        """Write down which operators are in use; there are few, and soon all of them are known."""
        add = f"INSERT INTO {self._names('operators')} VALUES (:side, :type, :op) ON CONFLICT DO NOTHING"
        if news := sorted(used - set(self._in_use(side))):
            side.run(add, [{"side": side.name, "type": sort.name, "op": op} for sort, op in news])

    def _in_use(self, side: OpenSide) -> list[tuple[Sort, str]]:
        query = f"SELECT type, op FROM {self._names('operators')} WHERE side = :side"
        return [(Sort[type_name], op) for type_name, op in side.run(query, {"side": side.name})]

    # ---------------------------------------------------------------- matching

    def find(self, side: OpenSide, asked: Sequence[Box], decides: Decides, at: int) -> Iterator[Found]:
        """A query per pair of operators, and an aggregate."""
        known = Attributes(side).known({name for box in asked for name in box})
        fields = {name: each.number for name, each in known[0].attributes.items()}
        in_use = self._in_use(side)
        for start in range(0, len(asked), _TOGETHER):
            chunk = list(enumerate(asked[start : start + _TOGETHER], start))
            self._answer(side, self._rows(chunk, fields), in_use)
            yield from self._aggregate(side, [(ask, len(box)) for ask, box in chunk], decides, at)

    def _answer(self, side: OpenSide, rows: dict[Sort, list[Row]], in_use: Sequence[tuple[Sort, str]]) -> None:
        """Fill the intermediate answer: which attributes of which clauses meet."""
        side.run(f"DELETE FROM {_ANSWER}")
        for sort, of_sort in rows.items():
            source = Source(f"asked_{sort.name.lower()}", {"ask": "whole", **_columns(sort)}, of_sort)
            with_asked, parameters = self.dialect.ask(side.connection, [source])
            operators = sorted({str(row[2]) for row in of_sort})
            for asked_op, (held_sort, held_op) in product(operators, in_use):
                condition = self._condition(sort, asked_op, held_sort, held_op)
                if condition is not None:
                    query = (
                        f"{with_asked} INSERT INTO {_ANSWER} SELECT DISTINCT p.ask, s.clause, p.field"
                        f" FROM {source.name} p, {self._table(side.name, held_sort)} s"
                        f" WHERE p.op = :asked AND s.op = :held AND p.field = s.field AND {condition}"
                    )
                    operands = {"asked": asked_op, "held": held_op}
                    side.run(query, {**parameters, **operands})

    def _condition(self, sort: Sort, asked_op: str, held_sort: Sort, held_op: str) -> str | None:
        """When predicates meet, besides being on one field; None if they never do."""
        if Sort.ANYTHING in (sort, held_sort):
            return ALWAYS
        if sort is not held_sort:
            return None
        if sort is Sort.STRING:
            return shortened(RULES[asked_op, held_op], lambda column: self.dialect.cut("bytes", column))
        if sort is not Sort.SHAPE:
            return RULES[asked_op, held_op]
        exact = spatial_condition("p", "s")
        return f"{self.dialect.boxes_overlap('p', 's')} AND {exact}" if lies_apart(asked_op, held_op) else exact

    def _aggregate(self, side: OpenSide, counts: Sequence[Row], decides: Decides, at: int) -> Iterator[Found]:
        """The clauses of which as many attributes meet as count."""
        with_asked, parameters = "", dict[str, object]()
        if decides == "asked":
            source = Source("asked_master", {"ask": "whole", "conjuncts": "whole"}, counts)
            with_asked, parameters = self.dialect.ask(side.connection, [source])
            master = "asked_master c ON c.ask = i.ask"
        else:
            master = f"{side.table('master')} c ON c.clause = i.clause"
        met = (
            f"SELECT i.ask, i.clause FROM {_ANSWER} i JOIN {master}"
            " GROUP BY i.ask, i.clause, c.conjuncts HAVING count(DISTINCT i.field) = c.conjuncts"
        )
        query = (
            f"{with_asked} SELECT DISTINCT f.ask, m.number, m.id FROM ({met}) f"
            f" JOIN {side.table()} m ON m.number = f.clause / {CLAUSES}"
            f" WHERE {HOLDS}"
        )
        for row in side.run(query, {**parameters, "at": at}):
            yield row[0], row[1], row[2]
