"""Bounds of rows, given as columns, to codes: axis by axis, the distinct constants are ordered and ranked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from harken.symmetric.memory.constants import check_constants
from harken.symmetric.memory.forms import FIRST_OF_SHAPES, Form
from harken.symmetric.memory.orders import AxisValues, Floats, Numbers, Places, Texts
from harken.symmetric.memory.predicates import CompiledPredicates

Codes = npt.NDArray[np.int32]

UNBOUNDED = -1
"""In place of the predicate that a bound comes from."""

_TOO_LARGE = 2.0**63


@dataclass(slots=True)
class Side:
    """The lower, or the upper, bounds of rows: from which predicate each comes."""

    source: Places
    step: int
    """Where the neighbour of an open bound lies: 1 for lower bounds, -1 for upper ones."""

    def of(self, rows: Places) -> Side:
        """Those of some rows."""
        return Side(self.source[rows], self.step)


def coded(
    predicates: CompiledPredicates, form: Form, second: bool, low: Side, high: Side
) -> tuple[AxisValues, Codes, Codes]:
    """The constants of one axis, and the codes of rows' bounds; `second` if it is the axis of y."""
    if form is Form.ANYTHING:
        nothing = np.zeros(len(low.source), np.int32)
        return Numbers(np.zeros(0)), nothing, nothing
    bounded = [side.source != UNBOUNDED for side in (low, high)]
    # Of a point, both bounds are the same: looked up once.
    apart = bounded[1] & (low.source != high.source) if form < FIRST_OF_SHAPES else bounded[1]
    sides = (Side(low.source[bounded[0]], 1), Side(high.source[apart], -1))
    order, ranks = _ranked(predicates, form, second, sides)
    check_constants(len(order))
    codes = []
    for side, mask, rank in zip((low, high), (bounded[0], apart), ranks, strict=True):
        code = np.full(len(side.source), 0 if side.step > 0 else 2 * len(order), np.int32)
        code[mask] = 2 * rank + 1 + _nudge(predicates, side.source[mask], side.step)
        codes.append(code)
    same = bounded[1] & ~apart
    codes[1][same] = codes[0][same]
    return order, codes[0], codes[1]


def _ranked(
    predicates: CompiledPredicates, form: Form, second: bool, sides: tuple[Side, Side]
) -> tuple[AxisValues, list[Places]]:
    if form is Form.STRING:
        texts = [_texts(predicates, side) for side in sides]
        order: AxisValues
        order, ranks = Texts.of(pa.concat_arrays(texts))
    elif form >= FIRST_OF_SHAPES:
        column = 1 if second else 0
        edges = [predicates.bounds[side.source, column + (0 if side.step > 0 else 2)] for side in sides]
        order, ranks = Numbers.of(np.concatenate(edges))
    else:
        positions = [_positions(predicates, side) for side in sides]
        order, ranks = Numbers.of(*(np.concatenate(parts) for parts in zip(*positions, strict=True)))
    return order, np.split(ranks, [len(sides[0].source)])


def _nudge(predicates: CompiledPredicates, source: Places, step: int) -> npt.NDArray[np.int64]:
    """Open bounds are just beside the constant, unless that has become the neighbour."""
    is_open = predicates.is_open[source] & ~predicates.is_discrete[source]
    if step > 0:
        is_open &= predicates.form[source] != Form.STRING
    return np.where(is_open, step, 0)


def _texts(predicates: CompiledPredicates, side: Side) -> pa.Array:
    """Strings; the one after a string is that and a zero character."""
    texts = predicates.text.take(pa.array(side.source)).cast(pa.large_string())
    is_open = predicates.is_open[side.source]
    if side.step < 0 or not is_open.any():
        return texts
    after = pc.binary_join_element_wise(
        texts, pa.scalar("\0", pa.large_string()), pa.scalar("", pa.large_string())
    )
    return pc.if_else(pa.array(is_open), after, texts)


def _positions(predicates: CompiledPredicates, side: Side) -> tuple[Floats, Floats]:
    """Keys and rests, as in `positions`."""
    shifted = predicates.is_open[side.source] & predicates.is_discrete[side.source]
    whole = predicates.integer[side.source] + np.where(shifted, side.step, 0)
    keys = whole.astype(np.float64)
    # 2^63 is the nearest float of the largest ints, but no int itself.
    large = keys >= _TOO_LARGE
    rests = (whole - np.where(large, 0.0, keys).astype(np.int64)).astype(np.float64)
    rests[large] = ((whole[large] - (2**63 - 1)) - 1).astype(np.float64)
    is_real = predicates.is_real[side.source]
    if is_real.any():
        keys[is_real], rests[is_real] = predicates.real[side.source][is_real], 0
    return keys, rests
