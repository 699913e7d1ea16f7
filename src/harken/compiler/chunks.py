"""One chunk of texts on its way through the kernels: scan, plan, decode, bind, and join with the slow rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.compiler.binding import Columns, Decoded, PlanTable, decode, fitting, plan_table, write
from harken.compiler.columns import ClauseColumns, offsets_of, run_positions
from harken.compiler.plans import PlanCache, ShapePlan, plan_for
from harken.compiler.scanning import FLOAT, Scan, same_shape, scan
from harken.errors import ExpressionError
from harken.language.literals import read_literal
from harken.model import capacity
from harken.model.limits import Limits
from harken.model.numbers import SHORT, SHORTEST_TINY, TINY, real_constant
from harken.model.schema import Schema
from harken.model.values import Type
from harken.normal.compiled import IN_PARTS, NO_TYPE, PredicateColumns
from harken.normal.operators import operand_of

SMALLEST_GROUP = 4
"""Fewer texts of one shape are parsed sooner than planned for."""

PLANS_KEPT = 65_536


@dataclass(slots=True)
class BoundChunk:
    """The texts of a chunk that a plan fits, ready to be written between those compiled the slow way."""

    bound: npt.NDArray[np.bool_]
    scanned: Scan
    decoded: Decoded
    plans: PlanTable
    plan_of: npt.NDArray[np.int32]
    names: dict[str, int]

    def joined(
        self, rows: npt.NDArray[np.int64], slow_rows: npt.NDArray[np.int64], slow: ClauseColumns
    ) -> tuple[npt.NDArray[np.int64], ClauseColumns]:
        """All subscriptions in the order of the input. `rows` are the input rows of this chunk's texts."""
        kept = self.bound | np.isin(rows, slow_rows)
        is_bound, plan = self.bound[kept], self.plan_of[kept]
        clause_counts = np.zeros(len(plan), np.int32)
        predicate_totals = np.zeros(len(plan), np.int32)
        clause_counts[is_bound] = np.diff(self.plans.clause_first)[plan[is_bound]]
        predicate_totals[is_bound] = np.diff(self.plans.predicate_first)[plan[is_bound]]
        clause_counts[~is_bound] = slow.clause_counts
        slow_ends = offsets_of(slow.predicate_counts)[offsets_of(slow.clause_counts)]
        predicate_totals[~is_bound] = np.diff(slow_ends)
        clause_at = offsets_of(clause_counts)[:-1]
        predicate_at = offsets_of(predicate_totals)[:-1]

        predicate_counts = np.zeros(int(clause_counts.sum()), np.int32)
        predicate_counts[run_positions(clause_at[~is_bound], slow.clause_counts)] = slow.predicate_counts
        bound_sizes = run_positions(self.plans.clause_first[plan[is_bound]], clause_counts[is_bound])
        bound_at = run_positions(clause_at[is_bound], clause_counts[is_bound])
        predicate_counts[bound_at] = self.plans.clause_size[bound_sizes]

        slow_at = run_positions(predicate_at[~is_bound], predicate_totals[~is_bound])
        columns = self._columns(kept, predicate_at, int(predicate_totals.sum()))
        predicates = self._with_slow(columns, slow_at, slow.predicates)
        return rows[kept], ClauseColumns(clause_counts, predicate_counts, predicates)

    def _columns(self, kept: npt.NDArray[np.bool_], predicate_at: npt.NDArray[np.int32], count: int) -> Columns:
        columns = Columns(
            np.zeros(count, np.int32),
            np.zeros(count, np.int8),
            np.full(count, NO_TYPE, np.int8),
            np.zeros(count, np.int64),
            np.zeros(count, np.float64),
            np.full(count, -1, np.int64),
        )
        into = np.zeros(len(kept), np.int64)
        into[kept] = predicate_at
        write(self.scanned, self.decoded, self.plans, self.plan_of, self.bound, into, columns)
        return columns

    def _with_slow(self, columns: Columns, at: npt.NDArray[np.int64], slow: PredicateColumns) -> PredicateColumns:
        """Put the predicates compiled the slow way into their places among the bound ones."""
        codes = np.array([self.names.setdefault(name, len(self.names)) for name in slow.names], np.int32)
        if len(at):
            columns.attribute[at] = codes[slow.attribute]
        columns.operator[at] = slow.operator
        columns.type[at] = slow.type
        columns.integer[at] = slow.integer
        columns.real[at] = slow.real
        strings = _strings(self.decoded)
        order = np.arange(len(at))
        columns.text[at] = order + len(strings)
        shape_at = np.full(len(columns.text), -1, np.int64)
        shape_at[at] = order
        return PredicateColumns(
            list(self.names),
            columns.attribute,
            columns.operator,
            columns.type,
            columns.integer,
            columns.real,
            _gathered(pa.concat_arrays([strings, slow.text]), columns.text),
            _gathered(slow.shape, shape_at),
        )


def compile_chunk(
    expressions: Sequence[object], cache: PlanCache, schema: Schema | None, limits: Limits
) -> BoundChunk:
    """Find the shapes of texts, plan for each, and see which texts their plan fits."""
    data, offsets = _utf8(expressions, limits)
    scanned = scan(data, offsets)
    raw = data.tobytes()
    plans, plan_of = _planned(expressions, raw, data, offsets, scanned, cache, schema, limits)
    decoded = decode(data, scanned)
    _decode_floats(raw, scanned, decoded)
    _decode_moments(raw, scanned, decoded, plans, plan_of)
    names: dict[str, int] = {}
    table = plan_table(plans, names)
    return BoundChunk(fitting(scanned, decoded, table, plan_of), scanned, decoded, table, plan_of, names)


def _utf8(expressions: Sequence[object], limits: Limits) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The texts as bytes; what is no text, or too long a one, is left empty, and empty texts have no plan."""
    texts = [each if isinstance(each, str) and len(each) <= limits.max_length else "" for each in expressions]
    try:
        encoded = pa.array(texts, pa.large_string())
    except UnicodeEncodeError:  # a lone surrogate somewhere: the parser will say where
        encoded = pa.array([each if _is_utf8(each) else "" for each in texts], pa.large_string())
    _, offsets, data = encoded.buffers()
    return np.frombuffer(data, np.uint8), np.frombuffer(offsets, np.int64, len(texts) + 1)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _planned(
    expressions: Sequence[object],
    raw: bytes,
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    scanned: Scan,
    cache: PlanCache,
    schema: Schema | None,
    limits: Limits,
) -> tuple[list[ShapePlan], npt.NDArray[np.int32]]:
    """The plans in use, and for each text the number of its plan or -1."""
    _, leaders, group, sizes = np.unique(scanned.shape, return_index=True, return_inverse=True, return_counts=True)
    plans: list[ShapePlan] = []
    number = np.full(len(leaders), -1, np.int32)
    for at, (leader, size) in enumerate(zip(leaders.tolist(), sizes.tolist(), strict=True)):
        if not scanned.cut[leader]:
            continue
        known = cache.get(int(scanned.shape[leader]))
        if known is None and size < SMALLEST_GROUP:
            continue
        shape, literals = _shape(raw, offsets, scanned, leader)
        if known is None or known[0] != shape:
            if len(cache) >= PLANS_KEPT:
                cache.clear()
            known = shape, plan_for(str(expressions[leader]), literals, schema, limits)
            cache[int(scanned.shape[leader])] = known
        plan = known[1]
        if plan is not None:
            number[at] = len(plans)
            plans.append(plan)
    alike = same_shape(data, offsets, scanned, leaders[group])
    return plans, np.where(alike, number[group], -1).astype(np.int32)


def _shape(raw: bytes, offsets: npt.NDArray[np.int64], scanned: Scan, text: int) -> tuple[bytes, list[str]]:
    """A text cut up: its shape, with each literal's place and kind marked, and its literals."""
    pieces, literals, at = [], [], int(offsets[text])
    for literal in range(int(scanned.first[text]), int(scanned.first[text + 1])):
        start, end = int(scanned.start[literal]), int(scanned.end[literal])
        pieces += [raw[at:start], b"\0%d" % scanned.kind[literal]]
        literals.append(raw[start:end].decode())
        at = end
    pieces.append(raw[at : int(offsets[text + 1])])
    return b"".join(pieces), literals


def _decode_floats(raw: bytes, scanned: Scan, decoded: Decoded) -> None:
    """Literals that floats say; the few others, decimals of many digits among them, go the ordinary way."""
    floats = np.flatnonzero(scanned.kind == FLOAT)
    starts, ends = scanned.start[floats], scanned.end[floats]
    reals = np.array([float(raw[start:end]) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)])
    decoded.real[floats] = reals
    decoded.meaningful[floats] = np.isfinite(reals)
    for at in np.flatnonzero(_may_be_exact(reals, ends - starts)).tolist():
        try:
            said = isinstance(real_constant(raw[starts[at] : ends[at]].decode()), float)
        except ExpressionError:
            said = False
        decoded.meaningful[floats[at]] = said


def _may_be_exact(reals: npt.NDArray[np.float64], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """`may_be_exact` of numbers, all at once."""
    return np.asarray((lengths > SHORT) | ((np.abs(reals) <= TINY) & (lengths > SHORTEST_TINY)), np.bool_)


def _decode_moments(
    raw: bytes, scanned: Scan, decoded: Decoded, plans: list[ShapePlan], plan_of: npt.NDArray[np.int32]
) -> None:
    """Dates and timestamps look like strings; only their plan knows better."""
    for number, plan in enumerate(plans):
        slots = [slot for slot, kind in enumerate(plan.slot_types) if kind in (Type.DATE, Type.TIMESTAMP)]
        if not slots:
            continue
        for first in scanned.first[:-1][plan_of == number].tolist():
            for slot in slots:
                literal = first + slot
                text = raw[scanned.start[literal] : scanned.end[literal]].decode()
                try:
                    value = read_literal(plan.slot_types[slot], text)
                except ExpressionError:
                    decoded.meaningful[literal] = False
                else:
                    decoded.integer[literal] = operand_of(value).integer


def _strings(decoded: Decoded) -> pa.Array:
    capacity.check("bytes of strings in one chunk", int(decoded.text_offsets[-1]), capacity.OFFSETS, IN_PARTS)
    offsets = pa.py_buffer(decoded.text_offsets.astype(np.int32))
    return pa.StringArray.from_buffers(len(decoded.text_offsets) - 1, offsets, pa.py_buffer(decoded.text))


def _gathered(values: pa.Array, at: npt.NDArray[np.int64]) -> pa.Array:
    return values.take(pa.array(at, mask=at < 0))
