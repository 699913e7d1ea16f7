"""Clauses to the columns of the compiled form, one text after the other. As in `normal.operators`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.compiler.direct.layout import (
    ABSENT,
    BEGIN,
    COUNT,
    EMPTY,
    FLOAT,
    FORM,
    HIGH,
    HIGH_IN,
    INTEGER,
    LOW,
    LOW_IN,
    ONE_OF,
    PAST,
    PRESENT,
    STRING,
    TYPE,
    VALUES,
    Work,
)
from harken.jit import called, tight
from harken.normal.compiled import NO_TYPE, OPERATOR_CODE

_EQ, _NE, _LT, _LE, _GT, _GE = (OPERATOR_CODE[name] for name in ("=", "!=", "<", "<=", ">", ">="))
_IN, _IS_NULL, _IS_NOT_NULL = (OPERATOR_CODE[name] for name in ("in", "is null", "is not null"))


class Output(NamedTuple):
    """What is written: predicates columnwise, how many of them each clause has, and where strings stand."""

    attribute: npt.NDArray[np.int32]
    operator: npt.NDArray[np.int8]
    type: npt.NDArray[np.int8]
    integer: npt.NDArray[np.int64]
    real: npt.NDArray[np.float64]
    begin: npt.NDArray[np.int64]
    past: npt.NDArray[np.int64]
    predicate_count: npt.NDArray[np.int32]
    """By clause."""
    clause_count: npt.NDArray[np.int32]
    """By text; -1 for those that are declined."""
    used: npt.NDArray[np.int64]
    """How many predicates and how many clauses there are."""


def output(predicates: int, clauses: int, texts: int) -> Output:
    """Room for so many."""
    return Output(
        np.zeros(predicates, np.int32),
        np.zeros(predicates, np.int8),
        np.zeros(predicates, np.int8),
        np.zeros(predicates, np.int64),
        np.zeros(predicates, np.float64),
        np.zeros(predicates, np.int64),
        np.zeros(predicates, np.int64),
        np.zeros(clauses, np.int32),
        np.full(texts, -1, np.int32),
        np.zeros(2, np.int64),
    )


def enlarged_output(out: Output) -> Output:
    """The same with room for twice as many predicates and clauses."""
    larger = output(2 * len(out.attribute) + 1_024, 2 * len(out.predicate_count) + 256, 0)
    for name in Output._fields[:-2]:
        held: npt.NDArray[np.int64] = getattr(out, name)
        getattr(larger, name)[: len(held)] = held
    return larger._replace(clause_count=out.clause_count, used=out.used)


@called
def written(work: Work, out: Output, text: int, first: int, count: int) -> bool:
    """Write the clauses of a text; False, with nothing written, if there is no room."""
    size = 0
    for at in range(first, first + count):
        size += _size(work, work.listed[at])
    if out.used[0] + size > len(out.attribute) or out.used[1] + count > len(out.predicate_count):
        return False
    for at in range(first, first + count):
        before = out.used[0]
        begin, entries = work.clause[work.listed[at], 0], work.clause[work.listed[at], 1]
        for entry in range(begin, begin + entries):
            _write(work, out, work.entry[entry, 0], work.entry[entry, 1])
        out.predicate_count[out.used[1]] = out.used[0] - before
        out.used[1] += 1
    out.clause_count[text] = count
    return True


@called
def _size(work: Work, clause: int) -> int:
    """How many predicates a clause takes."""
    row, size = work.constraint, 0
    for entry in range(work.clause[clause, 0], work.clause[clause, 0] + work.clause[clause, 1]):
        number = work.entry[entry, 1]
        size += row[number, COUNT] + (row[number, LOW] >= 0) + (row[number, HIGH] >= 0)
        size += row[number, FORM] == ABSENT or row[number, FORM] == PRESENT
    return int(size)


@called
def _write(work: Work, out: Output, attribute: int, number: int) -> None:
    """The predicates that say a constraint."""
    row = work.constraint
    form, count = row[number, FORM], row[number, COUNT]
    if form in (ABSENT, PRESENT):
        _predicate(work, out, attribute, _IS_NULL if form == ABSENT else _IS_NOT_NULL, EMPTY)
        return
    if row[number, LOW] >= 0:
        _predicate(work, out, attribute, _GE if row[number, LOW_IN] else _GT, row[number, LOW])
    if row[number, HIGH] >= 0:
        _predicate(work, out, attribute, _LE if row[number, HIGH_IN] else _LT, row[number, HIGH])
    operator = _NE
    if form == ONE_OF:
        operator = _EQ if count == 1 else _IN
    for at in range(row[number, VALUES], row[number, VALUES] + count):
        _predicate(work, out, attribute, operator, work.value[at])


@called
def _predicate(work: Work, out: Output, attribute: int, operator: int, literal: int) -> None:
    at = out.used[0]
    out.used[0] = at + 1
    out.attribute[at], out.operator[at] = attribute, operator
    out.type[at], out.integer[at], out.real[at] = NO_TYPE, 0, 0.0
    out.begin[at], out.past[at] = 0, -1  # no string
    if literal < 0:
        return
    its_type = work.literal[literal, TYPE]
    out.type[at] = its_type
    if its_type == FLOAT:
        out.real[at] = work.as_float[literal]
    elif its_type == STRING:
        out.begin[at], out.past[at] = work.literal[literal, BEGIN], work.literal[literal, PAST]
    else:
        out.integer[at] = work.literal[literal, INTEGER]


@tight
def copy_strings(
    data: npt.NDArray[np.uint8],
    begin: npt.NDArray[np.int64],
    past: npt.NDArray[np.int64],
    text: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int32],
) -> None:
    """Put strings side by side; those that are none take no room."""
    into = 0
    for at in range(len(begin)):
        for place in range(begin[at], past[at]):
            text[into] = data[place]
            into += 1
        offsets[at + 1] = into
