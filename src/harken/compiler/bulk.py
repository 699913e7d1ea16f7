"""Compiling many texts at once: grouped by shape and bound columnwise, the rest parsed one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.compiler.binding import Part, bind, join, part_of_rows
from harken.compiler.shapes import Plan, plan_for, split
from harken.errors import HarkenError, Position, SubscriptionError
from harken.language import parse
from harken.model.expressions import Expression, Node, check_limits, check_schema
from harken.model.limits import DEFAULT_LIMITS, Limits
from harken.model.schema import Schema
from harken.model.subscriptions import SubscriptionId, Validity, checked_id
from harken.normal.compiled import MOMENT, PredicateRows, assemble, compiled_schema, id_array
from harken.normal.form import normalise

CHUNK = 262_144
"""Rows compiled together: large, so that shapes repeat within it; bounded, so that memory is."""

SMALLEST_GROUP = 4
"""Fewer texts of one shape are parsed sooner than bound."""

PLANS_KEPT = 65_536


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that was not taken, and why."""

    row: int
    id: SubscriptionId | None
    error: HarkenError

    @property
    def reason(self) -> str:
        """What is wrong, in one line."""
        return str(self.error).splitlines()[0]

    @property
    def position(self) -> Position | None:
        """Where in the expression, if that can be said."""
        return getattr(self.error, "position", None)


@dataclass(slots=True)
class Texts:
    """Subscriptions as columns of text (or trees). Columns left out are null throughout."""

    ids: Sequence[object]
    expressions: Sequence[object]
    owners: Sequence[str | None] | None = None
    valid_from: Sequence[datetime | None] | None = None
    valid_until: Sequence[datetime | None] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def validity(self, row: int) -> Validity:
        """The validity of one row; SubscriptionError if its bounds make no sense."""
        start = None if self.valid_from is None else self.valid_from[row]
        end = None if self.valid_until is None else self.valid_until[row]
        return Validity(start, end)


@dataclass(slots=True)
class Compilation:
    """A compiled table, the input row that each of its rows came from, and the rows that were rejected."""

    table: pa.Table
    rows: npt.NDArray[np.int64]
    rejects: list[Reject]


def compile_texts(
    texts: Texts,
    *,
    schema: Schema | None = None,
    limits: Limits = DEFAULT_LIMITS,
    progress: Callable[[int], None] | None = None,
) -> Compilation:
    """Texts to the compiled form; a row that cannot be taken becomes a reject and disturbs no other.

    Texts of a shared shape cost a few microseconds each, others a full parse. `progress` is told the
    number of rows done, chunk by chunk.
    """
    compiler = _Compiler(texts, schema, limits)
    for start in range(0, len(texts), CHUNK):
        stop = min(start + CHUNK, len(texts))
        compiler.compile_rows(range(start, stop))
        if progress is not None:
            progress(stop)
    return compiler.finish()


def read_expression(given: object, schema: Schema | None, limits: Limits) -> Expression:
    """The expression that a text says, or that is given as a tree, checked against schema and limits."""
    if not isinstance(given, Node):
        return parse(given, schema=schema, limits=limits)  # type: ignore[arg-type]  # parse says what is wrong
    expression: Expression = given  # type: ignore[assignment]  # Node's subclasses are the expressions
    check_limits(expression, limits)
    if schema is not None:
        check_schema(expression, schema)
    return expression


class _Compiler:
    """The state of one `compile_texts`: plans by shape, finished chunks, rejects."""

    def __init__(self, texts: Texts, schema: Schema | None, limits: Limits) -> None:
        self._texts = texts
        self._schema = schema
        self._limits = limits
        self._plans: dict[str, Plan | None] = {}
        self._tables: list[pa.Table] = []
        self._rows: list[npt.NDArray[np.int64]] = []
        self._rejects: list[Reject] = []
        self._id_class: type | None = None

    def compile_rows(self, rows: range) -> None:
        """Compile one chunk and keep its table."""
        parts = []
        slow = []
        for shape, members in self._by_shape(self._admitted(rows)).items():
            part, unfit = self._bound(shape, members)
            slow.extend(unfit)
            if part is not None:
                parts.append(part)
        parts.append(self._parsed(slow))
        self._keep(join(parts))

    def finish(self) -> Compilation:
        """Everything compiled so far, in the order of the input."""
        id_type = pa.int64() if self._id_class is int else pa.string()
        tables = self._tables or [compiled_schema(id_type).empty_table()]
        rows = np.concatenate(self._rows) if self._rows else np.zeros(0, np.int64)
        self._rejects.sort(key=lambda reject: reject.row)
        return Compilation(pa.concat_tables(tables), rows, self._rejects)

    def _admitted(self, rows: range) -> list[int]:
        """The rows whose id and validity are in order."""
        admitted = []
        for row in rows:
            try:
                self._check_id(checked_id(self._texts.ids[row]))
                self._texts.validity(row)
            except SubscriptionError as error:
                self._reject(row, error)
            else:
                admitted.append(row)
        return admitted

    def _check_id(self, id: SubscriptionId) -> None:
        if self._id_class is None:
            self._id_class = type(id)
        elif type(id) is not self._id_class:
            wanted = "integers" if self._id_class is int else "strings"
            raise SubscriptionError(f"the id {id!r} is not like the ids before it, which are {wanted}")

    def _by_shape(self, rows: list[int]) -> dict[str, list[tuple[int, list[str]]]]:
        groups: dict[str, list[tuple[int, list[str]]]] = {}
        expressions, longest = self._texts.expressions, self._limits.max_length
        for row in rows:
            text = expressions[row]
            if isinstance(text, str) and len(text) <= longest:
                shape, literals = split(text)
            else:
                shape, literals = "", []
            groups.setdefault(shape, []).append((row, literals))
        return groups

    def _bound(self, shape: str, members: list[tuple[int, list[str]]]) -> tuple[Part | None, list[int]]:
        rows = [row for row, _ in members]
        if len(members) < SMALLEST_GROUP and shape not in self._plans:
            return None, rows
        plan = self._plan(shape, members[0])
        if plan is None:
            return None, rows
        return bind(plan, rows, [literals for _, literals in members])

    def _plan(self, shape: str, member: tuple[int, list[str]]) -> Plan | None:
        if shape not in self._plans:
            if len(self._plans) >= PLANS_KEPT:
                self._plans.clear()
            row, literals = member
            text = self._texts.expressions[row]
            self._plans[shape] = plan_for(str(text), literals, self._schema, self._limits)
        return self._plans[shape]

    def _parsed(self, rows: list[int]) -> Part:
        """The slow way: each text parsed and normalised for itself."""
        taken, clause_counts, predicates = [], [], PredicateRows()
        for row in rows:
            try:
                expression = read_expression(self._texts.expressions[row], self._schema, self._limits)
                form = normalise(expression, self._limits)
            except HarkenError as error:
                self._reject(row, error)
                continue
            predicates.add(form)
            taken.append(row)
            clause_counts.append(len(form.clauses))
        return part_of_rows(taken, clause_counts, predicates)

    def _reject(self, row: int, error: HarkenError) -> None:
        id = self._texts.ids[row]
        self._rejects.append(Reject(row, id if isinstance(id, str | int) else None, error))

    def _keep(self, part: Part) -> None:
        taken = part.rows.tolist()
        texts = self._texts
        ids = [texts.ids[row] for row in taken]
        table = assemble(
            id_array(ids),  # checked when admitted
            _offsets(part.clause_counts),
            _offsets(part.predicate_counts),
            part.predicates,
            owners=_taken(texts.owners, taken, pa.string()),
            valid_from=_taken(texts.valid_from, taken, MOMENT),
            valid_until=_taken(texts.valid_until, taken, MOMENT),
        )
        order = np.argsort(part.rows, kind="stable")
        self._tables.append(table.take(pa.array(order)))
        self._rows.append(part.rows[order])


def _offsets(counts: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def _taken(column: Sequence[object] | None, rows: list[int], kind: pa.DataType) -> pa.Array | None:
    return None if column is None else pa.array([column[row] for row in rows], kind)
