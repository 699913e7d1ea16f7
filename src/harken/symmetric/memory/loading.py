"""Many constraints from the compiled form, columnwise.

Most predicates bound an attribute, list its values, exclude some, or name one shape: those are read as columns.
Constraints with anything else, or with anything odd, are read one by one, as they would be put.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from harken.matching.runs import changes, edges, starts
from harken.model.limits import DEFAULT_LIMITS
from harken.model.schema import Schema
from harken.normal.columns import NestedClauses, flattened
from harken.normal.compiled import CLAUSES
from harken.normal.decompiled import expressions_of
from harken.symmetric.memory.clauses import Clauses, joined
from harken.symmetric.memory.constants import Constants
from harken.symmetric.memory.drafts import Draft
from harken.symmetric.memory.forms import Dimensions, Form
from harken.symmetric.memory.kernels.building import mark_repeated, sort_rows
from harken.symmetric.memory.kernels.layout import ClauseRows, Mask, Places, Words
from harken.symmetric.memory.predicates import UNBOUNDED, CompiledPredicates, Role
from harken.symmetric.semantics import boxes_of


def read(table: pa.Table, schema: Schema | None, dimensions: Dimensions) -> Clauses:
    """The clauses of a conformed table, their slots being row numbers. O(n log n).

    ConstraintError if one cannot be said in points.
    """
    chunks = table.column("clauses").chunks
    lists = chunks[0] if len(chunks) == 1 else pa.concat_arrays([pa.array([], CLAUSES), *chunks])
    parts = []
    if lists.null_count or flattened(lists).null_count:
        slow = np.arange(len(lists))
    else:
        columns = _Columns.of(lists, schema)
        clauses, contradicting = columns.clauses(dimensions)
        parts.append(clauses)
        slow = np.union1d(columns.odd, contradicting)
    if len(slow):
        draft = Draft(dimensions)
        for row, expression in zip(slow.tolist(), expressions_of(table.take(pa.array(slow))), strict=True):
            draft.add(row, boxes_of(expression, schema))
        parts.append(draft.finish())
    return joined(parts)


@dataclass(slots=True)
class _Columns:
    """The predicates of those rows of a table that can be read by column, and which the others are."""

    owner: Places
    """By clause: its row."""
    clause: Places
    """By predicate: its clause."""
    predicates: CompiledPredicates
    run: Places
    """By predicate: which run it is of. A run is what a clause says of one attribute."""
    run_first: Places
    odd: Places
    """The rows that have to be read one by one."""

    @classmethod
    def of(cls, lists: pa.ListArray, schema: Schema | None) -> _Columns:
        columns = NestedClauses.of(lists)
        owner, clause = columns.subscription_of, columns.clause_of
        predicates = CompiledPredicates.of(columns.predicates, schema)
        run, run_first = _runs(clause, predicates.attribute)
        is_odd = columns.clause_counts > DEFAULT_LIMITS.max_clauses
        repeated = np.empty(len(run_first), np.bool_)
        seen_in = np.empty(len(predicates.names), np.int64)
        mark_repeated(clause[run_first], predicates.attribute[run_first], seen_in, repeated)
        is_odd[owner[clause[run_first[repeated | ~_is_plain(predicates, run, run_first)]]]] = True
        if is_odd.any():
            staying = ~is_odd[owner]
            kept = staying[clause]
            # Clauses are numbered anew without those of odd rows.
            clause, predicates = (np.cumsum(staying) - 1)[clause[kept]], predicates.only(kept)
            owner = owner[staying]
            run, run_first = _runs(clause, predicates.attribute)
        return cls(owner, clause, predicates, run, run_first, np.flatnonzero(is_odd))

    def clauses(self, dimensions: Dimensions) -> tuple[Clauses, Places]:
        """The clauses, and the rows that they leave out because they contradict themselves, or nearly do."""
        rows = self._rows()
        axes, axis = self._axes(rows, dimensions)
        clause = self.clause[rows.predicate]
        first = edges(np.bincount(clause, minlength=len(self.owner)))
        if ((clause[1:] == clause[:-1]) & (axis[1:] < axis[:-1])).any():
            order = np.arange(len(clause))
            sort_rows(first, axis, order)
            rows, axis = rows.ordered(order), axis[order]
        constants, low, high = self._coded(rows, axis, len(axes))
        several = np.bincount(self.owner, minlength=1)[self.owner] > 1
        coded = ClauseRows(first, axis, low, high)
        clauses = Clauses(axes, constants, coded, self.owner.astype(np.int32), several)
        contradicting = np.unique(self.owner[self.clause[rows.predicate[low > high]]])
        if len(contradicting):
            clauses = clauses.only(~np.isin(clauses.slot, contradicting))
        return clauses.split(), contradicting

    def _rows(self) -> _Rows:
        """The rows of clauses, in the order of their predicates."""
        role = self.predicates.role
        named = np.flatnonzero(np.isin(role, [Role.POINT, Role.MEMBER, Role.SHAPE]))
        shapes = np.flatnonzero(role == Role.SHAPE)
        several = [
            _Rows(named, named, named, np.zeros(len(named), np.bool_)),
            _Rows(shapes, shapes, shapes, np.ones(len(shapes), np.bool_)),
            self._spans(),
        ]
        several = [rows for rows in several if len(rows.predicate)] or several[:1]
        if len(several) == 1:
            return several[0]
        rows = _Rows(*map(np.concatenate, zip(*several, strict=True)))
        return rows.ordered(np.argsort(rows.predicate, kind="stable"))

    def _spans(self) -> _Rows:
        """What lies between bounds, in as many pieces as excluded values leave of it.

        So the run `a > 1 AND a != 5 AND a != 7` has the pieces 1 to 5, 5 to 7, and 7 to no bound. The k-th value
        that a run excludes ends its k-th piece and begins the next.
        """
        role = self.predicates.role
        excluding = np.flatnonzero(role == Role.NOT)
        excluded = np.bincount(self.run[excluding], minlength=len(self.run_first))
        is_span = np.isin(role[self.run_first], [Role.LOW, Role.HIGH, Role.NOT, Role.EXISTS])
        pieces = np.where(is_span, excluded + 1, 0)
        first_piece = starts(pieces)
        low, high = np.full(pieces.sum(), UNBOUNDED), np.full(pieces.sum(), UNBOUNDED)
        at = np.flatnonzero(role == Role.LOW)
        low[first_piece[self.run[at]]] = at
        at = np.flatnonzero(role == Role.HIGH)
        high[(first_piece + excluded)[self.run[at]]] = at
        run = self.run[excluding]
        piece = first_piece[run] + np.arange(len(run)) - starts(excluded)[run]
        high[piece], low[piece + 1] = excluding, excluding
        return _Rows(np.repeat(self.run_first, pieces), low, high, np.zeros(len(low), np.bool_))

    def _axes(self, rows: _Rows, dimensions: Dimensions) -> tuple[Words, Words]:
        """The axes in use, by their numbers in the store, and the place among them of each row's."""
        predicates, forms = self.predicates, len(Form)
        key = predicates.attribute[rows.predicate] * np.int64(forms) + predicates.form[rows.predicate]
        number = np.full(len(predicates.names) * forms, -1)
        for each in np.flatnonzero(np.bincount(key, minlength=1)).tolist():
            number[each] = dimensions.axis(predicates.names[each // forms], Form(each % forms))
        of_rows = number[key] + rows.is_second
        used = np.flatnonzero(np.bincount(of_rows, minlength=1))
        place = np.zeros(int(used.max(initial=0)) + 1, np.int32)
        place[used] = np.arange(len(used))
        return used.astype(np.int32), place[of_rows]

    def _coded(self, rows: _Rows, axis: Words, axes: int) -> tuple[Constants, Words, Words]:
        """The constants of all axes, and the codes of all rows' bounds."""
        low, high = np.empty(len(axis), np.int32), np.empty(len(axis), np.int32)
        constants: list[Constants] = []
        # Numbers of 16 bits are sorted by counting.
        narrow = axis.astype(np.uint16) if axes <= 1 << 16 else axis
        by_axis = np.argsort(narrow, kind="stable") if axes > 1 else np.arange(len(axis))
        for members in np.split(by_axis, np.cumsum(np.bincount(axis, minlength=axes))[:-1])[:axes]:
            form = Form(int(self.predicates.form[rows.predicate[members[0]]]))
            is_second = bool(rows.is_second[members[0]])
            sources = rows.low[members], rows.high[members]
            own, low[members], high[members] = self.predicates.coded(form, is_second, *sources)
            constants.append(own)
        return Constants.chained(constants), low, high


class _Rows(NamedTuple):
    """Rows of clauses, whose bounds are those of predicates."""

    predicate: Places
    """Any one of the row's run."""
    low: Places
    """The predicate that the bound comes from, or UNBOUNDED."""
    high: Places
    is_second: Mask
    """Whether the row is on the axis of y."""

    def ordered(self, order: Places) -> _Rows:
        """The same in another order."""
        return _Rows(self.predicate[order], self.low[order], self.high[order], self.is_second[order])


def _runs(clause: Places, attribute: Words) -> tuple[Places, Places]:
    """The run of each predicate, and the first predicate of each run."""
    new = changes(clause, attribute)
    return np.cumsum(new) - 1, np.flatnonzero(new)


def _is_plain(predicates: CompiledPredicates, run: Places, run_first: Places) -> Mask:
    """Which runs can be read by column: one value or several, one shape, or bounds and excluded values."""
    plain: Mask = predicates.role[run_first] != Role.ODD
    lengths = np.diff(np.append(run_first, len(run)))
    long = np.flatnonzero(lengths > 1)
    if not len(long):
        return plain
    inside = np.flatnonzero(lengths[run] > 1)
    role, form = predicates.role[inside], predicates.form[inside]
    first = starts(lengths[long])

    def count(wanted: Role) -> Places:
        return np.add.reduceat((role == wanted).astype(np.int64), first)

    one_form = np.minimum.reduceat(form, first) == np.maximum.reduceat(form, first)
    lows, highs = count(Role.LOW), count(Role.HIGH)
    spans = (lows <= 1) & (highs <= 1) & (lows + highs + count(Role.NOT) == lengths[long])
    plain[long] = one_form & (spans | (count(Role.MEMBER) == lengths[long]))
    return plain
