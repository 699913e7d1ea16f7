"""Binding literals to plans: kernels that decode literals, check a plan's guards and write predicate columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.compiler.columns import offsets_of
from harken.compiler.plans import Bound, ShapePlan
from harken.compiler.scanning import INT, STRING, Scan
from harken.jit import kernel
from harken.model.values import Type
from harken.normal.compiled import NO_TYPE, OPERATOR_CODE, TYPE_CODE

_FLOAT_TYPE, _STRING_TYPE = TYPE_CODE["float"], TYPE_CODE["string"]
_ZERO, _DASH, _PLUS, _QUOTE = (ord(char) for char in "0-+'")
_LAST_TENTH, _EXACT_IN_FLOAT = (2**63 - 1) // 10, 2**53
_ASCENDING, _DISTINCT = 0, 1
_INCOMPARABLE = 2


class Decoded(NamedTuple):
    """What the literals of a scan stand for. Strings lie in `text`, unquoted; literal i at text_at[i]."""

    integer: npt.NDArray[np.int64]
    real: npt.NDArray[np.float64]
    text: npt.NDArray[np.uint8]
    text_offsets: npt.NDArray[np.int64]
    text_at: npt.NDArray[np.int64]
    meaningful: npt.NDArray[np.bool_]
    """Whether the literal stands for a value at all."""


class PlanTable(NamedTuple):
    """All plans of a chunk, flat: plan p has the entries from *_first[p] to *_first[p + 1]."""

    predicate_first: npt.NDArray[np.int32]
    attribute: npt.NDArray[np.int32]
    operator: npt.NDArray[np.int8]
    type: npt.NDArray[np.int8]
    slot: npt.NDArray[np.int32]
    """Which literal is the operand; -1 where the shape itself fixes it."""
    fixed: npt.NDArray[np.int64]
    clause_first: npt.NDArray[np.int32]
    clause_size: npt.NDArray[np.int32]
    guard_first: npt.NDArray[np.int32]
    guard: npt.NDArray[np.int32]
    """Rows of (what must hold, one slot, its type, another slot, its type)."""


class Columns(NamedTuple):
    """The operands and codes of predicates, columnwise; text is an index into the decoded strings or -1."""

    attribute: npt.NDArray[np.int32]
    operator: npt.NDArray[np.int8]
    type: npt.NDArray[np.int8]
    integer: npt.NDArray[np.int64]
    real: npt.NDArray[np.float64]
    text: npt.NDArray[np.int64]


def plan_table(plans: Sequence[ShapePlan], names: dict[str, int]) -> PlanTable:
    """Plans as flat arrays; `names` gives attributes their codes and grows as needed."""
    bounds = [[bound for clause in plan.clauses for bound in clause] for plan in plans]
    flat = [bound for each in bounds for bound in each]
    guards = [_guards(plan) for plan in plans]
    return PlanTable(
        _first([len(each) for each in bounds]),
        np.array([names.setdefault(bound.attribute, len(names)) for bound in flat], np.int32),
        np.array([OPERATOR_CODE[bound.operator] for bound in flat], np.int8),
        np.array([_type_code(bound.type) for bound in flat], np.int8),
        np.array([-1 if bound.slot is None else bound.slot for bound in flat], np.int32),
        np.array([_fixed(bound) for bound in flat], np.int64),
        _first([len(plan.clauses) for plan in plans]),
        np.array([len(clause) for plan in plans for clause in plan.clauses], np.int32),
        _first([len(each) for each in guards]),
        np.array([guard for each in guards for guard in each], np.int32).reshape(-1, 5),
    )


def _guards(plan: ShapePlan) -> list[tuple[int, int, int, int, int]]:
    codes = [_type_code(kind) for kind in plan.slot_types]
    guards = [(_ASCENDING, low, codes[low], high, codes[high]) for low, high in plan.ascending]
    for slots in plan.distinct:
        pairs = ((one, other) for at, one in enumerate(slots) for other in slots[at + 1 :])
        guards.extend((_DISTINCT, one, codes[one], other, codes[other]) for one, other in pairs)
    return guards


def _type_code(kind: Type | None) -> int:
    return NO_TYPE if kind is None else TYPE_CODE[kind.value]


def _fixed(bound: Bound) -> int:
    return int(bool(bound.value)) if bound.slot is None else 0


def _first(counts: list[int]) -> npt.NDArray[np.int32]:
    return offsets_of(np.array(counts, np.int64))


def decode(data: npt.NDArray[np.uint8], scanned: Scan) -> Decoded:
    """Ints and strings to their values. Floats are left to others: reading those exactly is an art."""
    literals = len(scanned.start)
    integer, real = np.zeros(literals, np.int64), np.zeros(literals, np.float64)
    meaningful = np.ones(literals, np.bool_)
    text_at = np.full(literals, -1, np.int64)
    strings, size = _decode_integers(data, scanned, integer, meaningful, text_at)
    text, offsets = np.zeros(size, np.uint8), np.zeros(strings + 1, np.int64)
    used = _decode_strings(data, scanned, text_at, text, offsets)
    return Decoded(integer, real, text[:used], offsets, text_at, meaningful)


@kernel
def _decode_integers(
    data: npt.NDArray[np.uint8],
    scanned: Scan,
    integer: npt.NDArray[np.int64],
    meaningful: npt.NDArray[np.bool_],
    text_at: npt.NDArray[np.int64],
) -> tuple[int, int]:
    """Besides, number the strings; how many there are, and the bytes they need at most."""
    strings = 0
    size = 0
    for literal in range(len(scanned.start)):
        if scanned.kind[literal] == INT:
            integer[literal], meaningful[literal] = _integer(data, scanned.start[literal], scanned.end[literal])
        elif scanned.kind[literal] == STRING:
            text_at[literal] = strings
            strings += 1
            size += scanned.end[literal] - scanned.start[literal]
    return strings, size


@kernel
def _decode_strings(
    data: npt.NDArray[np.uint8],
    scanned: Scan,
    text_at: npt.NDArray[np.int64],
    text: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
) -> int:
    """Copy strings side by side; how many bytes they took."""
    into = 0
    for literal in range(len(scanned.start)):
        if scanned.kind[literal] == STRING:
            into = _copy_unquoted(data, scanned.start[literal], scanned.end[literal], text, into)
            offsets[text_at[literal] + 1] = into
    return into


@kernel
def _integer(data: npt.NDArray[np.uint8], at: int, end: int) -> tuple[np.int64, bool]:
    """The int written there, and whether it fits 64 bits (the lowest one is left to the ordinary way)."""
    negative = data[at] == _DASH
    if negative or data[at] == _PLUS:
        at += 1
    value = np.int64(0)
    while at < end:
        digit = np.int64(data[at]) - _ZERO
        if value > _LAST_TENTH or (value == _LAST_TENTH and digit > 7):
            return np.int64(0), False
        value = value * 10 + digit
        at += 1
    return -value if negative else value, True


@kernel
def _copy_unquoted(data: npt.NDArray[np.uint8], at: int, end: int, text: npt.NDArray[np.uint8], into: int) -> int:
    at += 1
    while at < end - 1:
        text[into] = data[at]
        into += 1
        # A quote inside is always doubled.
        at += 2 if data[at] == _QUOTE else 1
    return into


@kernel
def _compared(decoded: Decoded, one: int, one_type: int, other: int, other_type: int) -> int:
    """-1, 0 or 1 as one literal is less than, equal to or greater than another; 2 where it takes more care."""
    if one_type == _STRING_TYPE:
        return _compared_texts(decoded, decoded.text_at[one], decoded.text_at[other])
    if one_type == _FLOAT_TYPE or other_type == _FLOAT_TYPE:
        a = decoded.real[one] if one_type == _FLOAT_TYPE else np.float64(decoded.integer[one])
        b = decoded.real[other] if other_type == _FLOAT_TYPE else np.float64(decoded.integer[other])
        if one_type != other_type and max(abs(a), abs(b)) >= _EXACT_IN_FLOAT:
            return _INCOMPARABLE
        return int(a > b) - int(a < b)
    low, high = decoded.integer[one], decoded.integer[other]
    return int(low > high) - int(low < high)


@kernel
def _compared_texts(decoded: Decoded, one: int, other: int) -> int:
    """UTF-8 bytes are in the order of code points."""
    a, a_end = decoded.text_offsets[one], decoded.text_offsets[one + 1]
    b, b_end = decoded.text_offsets[other], decoded.text_offsets[other + 1]
    while a < a_end and b < b_end:
        if decoded.text[a] != decoded.text[b]:
            return -1 if decoded.text[a] < decoded.text[b] else 1
        a += 1
        b += 1
    return int(a < a_end) - int(b < b_end)


def fitting(
    scanned: Scan, decoded: Decoded, plans: PlanTable, plan_of: npt.NDArray[np.int32]
) -> npt.NDArray[np.bool_]:
    """For each text, whether it has a plan, its literals mean something, and the plan's guards hold."""
    fits = plan_of >= 0
    _hold_to_plans(scanned, decoded, plans, plan_of, fits)
    return fits


@kernel
def _hold_to_plans(
    scanned: Scan,
    decoded: Decoded,
    plans: PlanTable,
    plan_of: npt.NDArray[np.int32],
    fits: npt.NDArray[np.bool_],
) -> None:
    for text in range(len(plan_of)):
        plan, first = plan_of[text], scanned.first[text]
        if plan < 0:
            continue
        for literal in range(first, scanned.first[text + 1]):
            fits[text] &= decoded.meaningful[literal]
        for at in range(plans.guard_first[plan], plans.guard_first[plan + 1]):
            asked, one, one_type, other, other_type = plans.guard[at]
            sign = _compared(decoded, first + one, one_type, first + other, other_type)
            fits[text] &= sign == -1 or (asked == _DISTINCT and sign == 1)


@kernel
def write(
    scanned: Scan,
    decoded: Decoded,
    plans: PlanTable,
    plan_of: npt.NDArray[np.int32],
    fits: npt.NDArray[np.bool_],
    into: npt.NDArray[np.int64],
    columns: Columns,
) -> None:
    """Write the predicates of each fitting text at into[text] and after."""
    for text in range(len(plan_of)):
        if not fits[text]:
            continue
        at, plan, first = into[text], plan_of[text], scanned.first[text]
        for predicate in range(plans.predicate_first[plan], plans.predicate_first[plan + 1]):
            columns.attribute[at] = plans.attribute[predicate]
            columns.operator[at] = plans.operator[predicate]
            columns.type[at] = plans.type[predicate]
            columns.integer[at] = plans.fixed[predicate]
            slot = plans.slot[predicate]
            if slot >= 0:
                columns.integer[at] = decoded.integer[first + slot]
                columns.real[at] = decoded.real[first + slot]
                if plans.type[predicate] == _STRING_TYPE:
                    columns.text[at] = decoded.text_at[first + slot]
            at += 1
