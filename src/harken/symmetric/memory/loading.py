"""Many constraints from the compiled form, columnwise.

Most predicates bound an attribute, list its values, exclude some, or name one shape: those are read as columns.
Constraints with anything else, or with anything odd, are read one by one, as they would be put.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.model.limits import DEFAULT_LIMITS
from harken.model.schema import Schema
from harken.normal.columns import NestedClauses
from harken.normal.compiled import CLAUSES
from harken.normal.decompiled import expressions_of
from harken.symmetric.memory.clauses import Clauses, joined
from harken.symmetric.memory.coding import UNBOUNDED, Side, coded
from harken.symmetric.memory.constants import Constants
from harken.symmetric.memory.dimensions import Dimensions
from harken.symmetric.memory.drafts import Draft
from harken.symmetric.memory.forms import Form
from harken.symmetric.memory.kernels.reading import ascending_rows, repeated
from harken.symmetric.memory.orders import AxisValues, Mask, Places
from harken.symmetric.memory.predicates import (
    EXISTS,
    HIGH,
    LOW,
    MEMBER,
    NOT,
    ODD,
    POINT,
    SHAPE,
    CompiledPredicates,
)
from harken.symmetric.semantics import boxes_of

Words = npt.NDArray[np.int32]


def read(table: pa.Table, schema: Schema | None, dimensions: Dimensions) -> Clauses:
    """The clauses of a conformed table, their slots being row numbers. O(n log n).

    ConstraintError if one cannot be said in points.
    """
    chunks = table.column("clauses").chunks
    lists = chunks[0] if len(chunks) == 1 else pa.concat_arrays([pa.array([], CLAUSES), *chunks])
    parts = []
    if lists.null_count or lists.flatten().null_count:
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
        counts, owner, clause = columns.clause_counts, columns.subscription_of, columns.clause_of
        predicates = CompiledPredicates.of(columns.predicates, schema)
        run, run_first = _runs(clause, predicates.attribute)
        is_odd = counts > DEFAULT_LIMITS.max_clauses
        is_odd[owner[clause[run_first[~_is_plain(predicates, run, run_first)]]]] = True
        again = repeated(clause[run_first], predicates.attribute[run_first], len(predicates.names))
        is_odd[owner[again]] = True
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
        rows = _Rows.joined([self._points(), self._spans(), *self._shapes(), self._anything()])
        axes, axis = self._axes(rows, dimensions)
        clause = self.clause[rows.predicate]
        first = np.concatenate([[0], np.cumsum(np.bincount(clause, minlength=len(self.owner)))])
        if ((clause[1:] == clause[:-1]) & (axis[1:] < axis[:-1])).any():
            order = np.arange(len(clause))
            ascending_rows(first, axis, order)
            rows, axis = rows.of(order), axis[order]
        constants, low, high = self._coded(rows, axis, len(axes))
        several = np.bincount(self.owner, minlength=1)[self.owner] > 1
        clauses = Clauses(axes, constants, first, axis, low, high, self.owner.astype(np.int32), several)
        contradicting = np.unique(self.owner[self.clause[rows.predicate[low > high]]])
        if len(contradicting):
            clauses = clauses.only(~np.isin(clauses.slot, contradicting))
        return clauses.split(), contradicting

    def _points(self) -> _Rows:
        at = np.flatnonzero(np.isin(self.predicates.role, [POINT, MEMBER]))
        return _Rows(at, at, at, np.zeros(len(at), np.bool_))

    def _spans(self) -> _Rows:
        """What lies between bounds, in as many pieces as excluded values leave of it."""
        role = self.predicates.role
        bounding = np.isin(role, [LOW, HIGH, NOT])
        runs, counts = _counted(self.run[role == NOT], self.run[bounding])
        piece = np.cumsum(counts + 1) - (counts + 1)
        total = int((counts + 1).sum())
        low, high = np.full(total, UNBOUNDED), np.full(total, UNBOUNDED)
        for_run = np.zeros(len(self.run_first), np.int64)
        for_run[runs] = piece
        at = np.flatnonzero(role == LOW)
        low[for_run[self.run[at]]] = at
        at = np.flatnonzero(role == HIGH)
        for_run[runs] = piece + counts
        high[for_run[self.run[at]]] = at
        excluding = np.flatnonzero(role == NOT)
        # The k-th value that a run excludes ends its k-th piece and begins the next.
        nth = np.arange(len(excluding)) - np.repeat(np.cumsum(counts) - counts, counts)
        at = np.repeat(piece, counts) + nth
        high[at], low[at + 1] = excluding, excluding
        return _Rows(np.repeat(self.run_first[runs], counts + 1), low, high, np.zeros(total, np.bool_))

    def _shapes(self) -> list[_Rows]:
        at = np.flatnonzero(self.predicates.role == SHAPE)
        return [_Rows(at, at, at, np.full(len(at), second)) for second in (False, True)]

    def _anything(self) -> _Rows:
        at = np.flatnonzero(self.predicates.role == EXISTS)
        unbounded = np.full(len(at), UNBOUNDED)
        return _Rows(at, unbounded, unbounded, np.zeros(len(at), np.bool_))

    def _axes(self, rows: _Rows, dimensions: Dimensions) -> tuple[Words, Words]:
        """The axes in use, by their numbers in the store, and the place among them of each row's."""
        predicates, forms = self.predicates, len(Form)
        key = predicates.attribute[rows.predicate] * np.int64(forms) + predicates.form[rows.predicate]
        number = np.full(len(predicates.names) * forms, -1)
        for each in np.flatnonzero(np.bincount(key, minlength=1)).tolist():
            number[each] = dimensions.axis(predicates.names[each // forms], Form(each % forms))
        of_rows = number[key] + rows.second
        used = np.flatnonzero(np.bincount(of_rows, minlength=1))
        place = np.zeros(int(used.max(initial=0)) + 1, np.int32)
        place[used] = np.arange(len(used))
        return used.astype(np.int32), place[of_rows]

    def _coded(self, rows: _Rows, axis: Words, axes: int) -> tuple[Constants, Words, Words]:
        """The constants of all axes, and the codes of all rows' bounds."""
        low, high = np.empty(len(axis), np.int32), np.empty(len(axis), np.int32)
        orders: list[AxisValues] = []
        # Numbers of 16 bits are sorted by counting.
        narrow = axis.astype(np.uint16) if axes <= 1 << 16 else axis
        by_axis = np.argsort(narrow, kind="stable") if axes > 1 else np.arange(len(axis))
        for members in np.split(by_axis, np.cumsum(np.bincount(axis, minlength=axes))[:-1])[:axes]:
            form = Form(int(self.predicates.form[rows.predicate[members[0]]]))
            second = bool(rows.second[members[0]])
            sides = Side(rows.low[members], 1), Side(rows.high[members], -1)
            order, low[members], high[members] = coded(self.predicates, form, second, *sides)
            orders.append(order)
        return Constants.of(orders), low, high


@dataclass(slots=True)
class _Rows:
    """Rows of clauses: a predicate of each one's run, those that its bounds come from, and if it is of y."""

    predicate: Places
    low: Places
    high: Places
    second: Mask

    @classmethod
    def joined(cls, several: list[_Rows]) -> _Rows:
        """All of several, in the order of their predicates."""
        several = [rows for rows in several if len(rows.predicate)] or several[:1]
        if len(several) == 1:
            return several[0]
        rows = cls(
            np.concatenate([each.predicate for each in several]),
            np.concatenate([each.low for each in several]),
            np.concatenate([each.high for each in several]),
            np.concatenate([each.second for each in several]),
        )
        return rows.of(np.argsort(rows.predicate, kind="stable"))

    def of(self, order: Places) -> _Rows:
        """The same in another order."""
        return _Rows(self.predicate[order], self.low[order], self.high[order], self.second[order])


def _runs(clause: Places, attribute: Words) -> tuple[Places, Places]:
    """The run of each predicate, and the first predicate of each run."""
    new = np.ones(len(clause), np.bool_)
    new[1:] = (clause[1:] != clause[:-1]) | (attribute[1:] != attribute[:-1])
    return np.cumsum(new) - 1, np.flatnonzero(new)


def _is_plain(predicates: CompiledPredicates, run: Places, run_first: Places) -> Mask:
    """Which runs can be read by column: one value or several, one shape, or bounds and excluded values."""
    plain: Mask = predicates.role[run_first] != ODD
    lengths = np.diff(np.append(run_first, len(run)))
    long = np.flatnonzero(lengths > 1)
    if not len(long):
        return plain
    inside = np.flatnonzero(lengths[run] > 1)
    role, form = predicates.role[inside], predicates.form[inside]
    starts = np.cumsum(lengths[long]) - lengths[long]
    counts = {each: np.add.reduceat((role == each).astype(np.int64), starts) for each in (MEMBER, LOW, HIGH, NOT)}
    one_form = np.minimum.reduceat(form, starts) == np.maximum.reduceat(form, starts)
    spans = (counts[LOW] <= 1) & (counts[HIGH] <= 1)
    spans &= counts[LOW] + counts[HIGH] + counts[NOT] == lengths[long]
    plain[long] = one_form & (spans | (counts[MEMBER] == lengths[long]))
    return plain


def _counted(given: Places, among: Places) -> tuple[Places, Places]:
    """The distinct runs among some, which ascend, and how often each is given."""
    if not len(among):
        return among, among
    new = np.ones(len(among), np.bool_)
    new[1:] = among[1:] != among[:-1]
    runs = among[new]
    return runs, np.bincount(given, minlength=int(runs[-1]) + 1)[runs]
