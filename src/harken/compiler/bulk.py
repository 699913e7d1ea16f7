"""Compiling many texts at once: by kernels alone, by the plans of shapes, and what is left one by one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.compiler.columns import ClauseColumns, merged, offsets_of
from harken.compiler.encoding import utf8
from harken.compiler.plans import PlanCache
from harken.errors import HarkenError, Position, SubscriptionError
from harken.language import parse
from harken.model.expressions import Expression, Node, check_limits, check_schema
from harken.model.limits import DEFAULT_LIMITS, Limits
from harken.model.schema import Schema
from harken.model.subscriptions import SubscriptionId, Validity, checked_id, checked_owner, is_none
from harken.model.values import INT_MAX, INT_MIN
from harken.normal.compiled import (
    MOMENT,
    PredicateRows,
    assemble,
    compiled_schema,
    id_array,
)
from harken.normal.form import NormalForm, normalise

CHUNK = 262_144
"""Rows compiled together: large, so that shapes repeat within it; bounded, so that memory is."""

SMALLEST_BULK = 1_000
"""Fewer texts are parsed sooner than the kernels are loaded."""

SAMPLED = 256
"""Texts that are looked at to see whether many have one shape."""

_LITERAL = re.compile(r"'[^']*'|\d+")


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
    faults: Mapping[int, SubscriptionError] = field(default_factory=dict)
    """What is wrong with rows that could not be read as subscriptions at all."""

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


class Reading(NamedTuple):
    """A text, or tree, that could be read."""

    row: int
    expression: Expression
    form: NormalForm


def compile_texts(
    texts: Texts,
    *,
    schema: Schema | None = None,
    limits: Limits = DEFAULT_LIMITS,
    progress: Callable[[int], None] | None = None,
    plans: PlanCache | None = None,
) -> Compilation:
    """Texts to the compiled form; a row that cannot be taken becomes a reject and disturbs no other.

    Most texts cost a few microseconds each. So do those with timestamps, comments or unusual names if several
    share a shape; others, and all with patterns or shapes, cost a full parse. `progress` is told the number of
    rows done, chunk by chunk. `plans` is what is known of shapes: empty at first, and handed in again with later
    calls of the same schema and limits, not beside another call.
    """
    compiler = _Compiler(texts, schema, limits, {} if plans is None else plans)
    for start in range(0, len(texts), CHUNK):
        stop = min(start + CHUNK, len(texts))
        compiler.compile_rows(range(start, stop))
        if progress is not None:
            progress(stop)
    return compiler.finish()


def read_texts(texts: Texts, schema: Schema | None, limits: Limits) -> tuple[list[Reading], list[Reject]]:
    """Texts to normal forms, and the rows that `compile_texts` rejects too. For a few, that is quicker."""
    compiler = _Compiler(texts, schema, limits, {})
    readings = list(compiler.read(compiler.admitted(range(len(texts)))))
    return readings, sorted(compiler.rejects, key=lambda reject: reject.row)


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

    def __init__(self, texts: Texts, schema: Schema | None, limits: Limits, plans: PlanCache) -> None:
        self._texts = texts
        self._schema = schema
        self._limits = limits
        self._plans = plans
        self._tables: list[pa.Table] = []
        self._rows: list[npt.NDArray[np.int64]] = []
        self.rejects: list[Reject] = []
        self._id_class: type | None = None

    def compile_rows(self, rows: range) -> None:
        """Compile one chunk and keep its table: directly what can be, then by plans, then one by one.

        Texts of few shapes go by plans first, which is quicker for them.
        """
        left = np.array(self.admitted(rows), np.int64)
        parts = []
        ways = (self._directly, self._by_plans)
        for way in reversed(ways) if _are_alike(self._texts.expressions[rows.start : rows.stop]) else ways:
            if len(left) >= SMALLEST_BULK:
                is_done, columns = way([self._texts.expressions[row] for row in left.tolist()])
                parts.append((left[is_done], columns))
                left = left[~is_done]
        parts.append(self._parsed(left.tolist()))
        self._keep(*merged(parts))

    def _directly(self, expressions: Sequence[object]) -> tuple[npt.NDArray[np.bool_], ClauseColumns]:
        from harken.compiler.direct.compiling import compile_directly  # loads the kernels

        return compile_directly(*utf8(expressions, self._limits), self._schema, self._limits)

    def _by_plans(self, expressions: Sequence[object]) -> tuple[npt.NDArray[np.bool_], ClauseColumns]:
        from harken.compiler.chunks import compile_chunk  # loads the kernels

        chunk = compile_chunk(expressions, self._plans, self._schema, self._limits)
        return chunk.bound, chunk.columns()

    def finish(self) -> Compilation:
        """Everything compiled so far, in the order of the input."""
        id_type = pa.int64() if self._id_class is int else pa.string()
        tables = self._tables or [compiled_schema(id_type).empty_table()]
        rows = np.concatenate(self._rows) if self._rows else np.zeros(0, np.int64)
        self.rejects.sort(key=lambda reject: reject.row)
        return Compilation(pa.concat_tables(tables), rows, self.rejects)

    def admitted(self, rows: range) -> list[int]:
        """The rows whose id, owner and validity are in order."""
        texts = self._texts
        bounded = texts.valid_from is not None or texts.valid_until is not None
        owned = texts.owners is not None and not _all_plain(texts.owners[rows.start : rows.stop])
        plain = not (bounded or owned or texts.faults)
        if plain and self._all_in_order(texts.ids[rows.start : rows.stop]):
            return list(rows)
        admitted = []
        for row in rows:
            try:
                if row in texts.faults:
                    raise texts.faults[row]
                self._check_id(checked_id(texts.ids[row]))
                texts.validity(row)
                checked_owner(None if texts.owners is None else texts.owners[row])
            except SubscriptionError as error:
                self._reject(row, error)
            else:
                admitted.append(row)
        return admitted

    def _all_in_order(self, ids: Sequence[object]) -> bool:
        """A quick look that finds most columns of ids in order; a no means only: look at each."""
        classes = set(map(type, ids)) | ({self._id_class} if self._id_class else set())
        if classes == {int}:
            in_order = min(ids) >= INT_MIN and max(ids) <= INT_MAX  # type: ignore[type-var,operator]
        else:
            in_order = classes == {str} and all(ids) and all(map(str.isascii, ids))  # type: ignore[arg-type]
        if in_order:
            self._id_class = classes.pop()
        return in_order

    def _check_id(self, id: SubscriptionId) -> None:
        if self._id_class is None:
            self._id_class = type(id)
        elif type(id) is not self._id_class:
            wanted = "integers" if self._id_class is int else "strings"
            raise SubscriptionError(f"the id {id!r} is not like the ids before it, which are {wanted}")

    def _parsed(self, rows: list[int]) -> tuple[npt.NDArray[np.int64], ClauseColumns]:
        """The slow way: each text parsed and normalised for itself; the rows that could be, and their clauses."""
        taken, clause_counts, predicates = [], [], PredicateRows()
        for row, _, form in self.read(rows):
            predicates.add(form)
            taken.append(row)
            clause_counts.append(len(form.clauses))
        columns = ClauseColumns(
            np.asarray(clause_counts, np.int32), np.diff(predicates.offsets()), predicates.columns()
        )
        return np.asarray(taken, np.int64), columns

    def read(self, rows: Iterable[int]) -> Iterator[Reading]:
        """These texts, read one by one; those that cannot be are rejected."""
        for row in rows:
            try:
                expression = read_expression(self._texts.expressions[row], self._schema, self._limits)
                form = normalise(expression, self._limits)
            except HarkenError as error:
                self._reject(row, error)
            else:
                yield Reading(row, expression, form)

    def _reject(self, row: int, error: HarkenError) -> None:
        id = self._texts.ids[row]
        self.rejects.append(Reject(row, id if isinstance(id, str | int) else None, error))

    def _keep(self, rows: npt.NDArray[np.int64], columns: ClauseColumns) -> None:
        if not len(rows):
            return  # no rows, so no telling of which type their ids are
        taken = rows.tolist()
        texts = self._texts
        self._rows.append(rows)
        self._tables.append(
            assemble(
                id_array([texts.ids[row] for row in taken]),
                offsets_of(columns.clause_counts),
                offsets_of(columns.predicate_counts),
                columns.predicates,
                owners=_taken(texts.owners, taken, pa.string()),
                valid_from=_taken(texts.valid_from, taken, MOMENT),
                valid_until=_taken(texts.valid_until, taken, MOMENT),
            )
        )


def _are_alike(texts: Sequence[object]) -> bool:
    """Whether texts have few shapes, from a look at some of them with their literals left out."""
    some = texts[:: 1 + len(texts) // SAMPLED]
    shapes = {_LITERAL.sub("", text) for text in some if type(text) is str}
    return len(shapes) * 8 <= len(some)


def _all_plain(owners: Sequence[object]) -> bool:
    """A quick look that finds most columns of owners in order; a no means only: look at each."""
    return all(owner is None or (type(owner) is str and owner.isascii()) for owner in owners)


def _taken(column: Sequence[object] | None, rows: list[int], kind: pa.DataType) -> pa.Array | None:
    if column is None:
        return None
    values = (column[row] for row in rows)
    return pa.array([None if is_none(value) else value for value in values], kind)
