"""One chunk of texts on its way to plans: scan, plan, decode, bind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.compiler.binding import Columns, Decoded, PlanTable, decode, fitting, plan_table, write
from harken.compiler.columns import ClauseColumns, offsets_of, run_positions
from harken.compiler.encoding import utf8
from harken.compiler.plans import PlanCache, ShapePlan, plan_for
from harken.compiler.scanning import FLOAT, Scan, same_shape, scan
from harken.errors import ExpressionError
from harken.language.literals import read_literal
from harken.model import capacity
from harken.model.limits import Limits
from harken.model.numbers import SHORT, SHORTEST_TINY, TINY, real_constant
from harken.model.schema import Schema
from harken.model.values import Type
from harken.normal.compiled import IN_PARTS, NO_TYPE, PREDICATE, PredicateColumns
from harken.normal.operators import operand_of

SMALLEST_GROUP = 4
"""Fewer texts of one shape are parsed sooner than planned for."""

PLANS_KEPT = 65_536


@dataclass(slots=True)
class BoundChunk:
    """The texts of a chunk, of which those are bound that a plan fits."""

    bound: npt.NDArray[np.bool_]
    scanned: Scan
    decoded: Decoded
    plans: PlanTable
    plan_of: npt.NDArray[np.int32]
    names: dict[str, int]

    def columns(self) -> ClauseColumns:
        """The clauses of those texts."""
        plan = self.plan_of[self.bound]
        clause_counts = np.diff(self.plans.clause_first)[plan]
        totals = np.diff(self.plans.predicate_first)[plan]
        sizes = run_positions(self.plans.clause_first[plan], clause_counts)
        return ClauseColumns(clause_counts, self.plans.clause_size[sizes], self._predicates(totals))

    def _predicates(self, totals: npt.NDArray[np.int32]) -> PredicateColumns:
        """The predicates of those texts, of which each has so many."""
        count = int(totals.sum(dtype=np.int64))
        columns = Columns(
            np.zeros(count, np.int32),
            np.zeros(count, np.int8),
            np.full(count, NO_TYPE, np.int8),
            np.zeros(count, np.int64),
            np.zeros(count, np.float64),
            np.full(count, -1, np.int64),
        )
        into = np.zeros(len(self.bound), np.int64)
        into[self.bound] = offsets_of(totals)[:-1]
        write(self.scanned, self.decoded, self.plans, self.plan_of, self.bound, into, columns)
        return PredicateColumns(
            list(self.names),
            columns.attribute,
            columns.operator,
            columns.type,
            columns.integer,
            columns.real,
            _strings(self.decoded).take(pa.array(columns.text, mask=columns.text < 0)),
            pa.nulls(count, PREDICATE.field("shape").type),
        )


def compile_chunk(
    expressions: Sequence[object], cache: PlanCache, schema: Schema | None, limits: Limits
) -> BoundChunk:
    """Find the shapes of texts, plan for each, and see which texts their plan fits."""
    data, offsets = utf8(expressions, limits)
    scanned = scan(data, offsets)
    raw = data.tobytes()
    plans, plan_of = _planned(expressions, raw, data, offsets, scanned, cache, schema, limits)
    decoded = decode(data, scanned)
    _decode_floats(raw, scanned, decoded)
    _decode_moments(raw, scanned, decoded, plans, plan_of)
    names: dict[str, int] = {}
    table = plan_table(plans, names)
    return BoundChunk(fitting(scanned, decoded, table, plan_of), scanned, decoded, table, plan_of, names)


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
