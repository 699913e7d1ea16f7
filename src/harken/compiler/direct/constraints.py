"""What a clause asks of one attribute, in rows of integers: `normal.constraints` once more, for kernels.

Functions give the number of a constraint, or EMPTY where nothing satisfies it. Which of two equal values stays
matters, as 1 and 1.0 are equal: everything is done in the order in which it is done there.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.compiler.direct.layout import (
    ABSENT,
    BOOLS,
    CONSTRAINTS,
    COUNT,
    EMPTY,
    FORM,
    HIGH,
    HIGH_IN,
    KIND,
    LOW,
    LOW_IN,
    ONE_OF,
    PRESENT,
    SAYS_FALSE,
    SAYS_TRUE,
    SPAN,
    VALUES,
    VALUES_TAKEN,
    Work,
    compared,
    taken,
)
from harken.jit import called


@called
def constraint(work: Work, kind: int, values: int) -> int:
    """A span without bounds that has the values from `values` to the last."""
    number = taken(work, CONSTRAINTS)
    row = work.constraint
    row[number, FORM], row[number, KIND] = SPAN, kind
    row[number, LOW], row[number, LOW_IN], row[number, HIGH], row[number, HIGH_IN] = -1, 0, -1, 0
    row[number, VALUES], row[number, COUNT] = values, work.tops[VALUES_TAKEN] - values
    return number


@called
def add_value(work: Work, literal: int) -> None:
    """Add a value to the run that ends with the last."""
    at = taken(work, VALUES_TAKEN)
    work.value[at] = literal


@called
def one_of(work: Work, data: npt.NDArray[np.uint8], kind: int, values: int) -> int:
    """The constraint to equal one of the values from `values` to the last; they are put in order."""
    _put_in_order(work, data, values)
    return _points(work, kind, values)


@called
def none_of(work: Work, data: npt.NDArray[np.uint8], kind: int, values: int) -> int:
    """The constraint to be of this kind and to equal none of these."""
    _put_in_order(work, data, values)
    return tidy(work, data, constraint(work, kind, values))


@called
def _points(work: Work, kind: int, values: int) -> int:
    """The constraint to equal one of the values from `values` to the last, which are in order."""
    if work.tops[VALUES_TAKEN] == values:
        return EMPTY
    number = constraint(work, kind, values)
    work.constraint[number, FORM] = ONE_OF
    return number


@called
def _put_in_order(work: Work, data: npt.NDArray[np.uint8], values: int) -> None:
    """Put the last values in order; of equal ones the first stays."""
    value, past, count = work.value, work.tops[VALUES_TAKEN], 0
    for at in range(values, past):
        literal, place = value[at], values + count
        sign = 1
        while place > values:
            sign = compared(work, data, literal, value[place - 1])
            if sign >= 0:
                break
            place -= 1
        if place > values and sign == 0:
            continue
        for moved in range(values + count, place, -1):
            value[moved] = value[moved - 1]
        value[place] = literal
        count += 1
    work.tops[VALUES_TAKEN] = values + count


@called
def tidy(work: Work, data: npt.NDArray[np.uint8], number: int) -> int:
    """A span that is nobody else's yet, in the one form that says the same."""
    row = work.constraint
    low, high, kind = row[number, LOW], row[number, HIGH], row[number, KIND]
    if kind == BOOLS:
        return _bools(work, data, number)
    if low >= 0 and high >= 0:
        sign = compared(work, data, low, high)
        if sign > 0 or (sign == 0 and not (row[number, LOW_IN] and row[number, HIGH_IN])):
            return EMPTY
        if sign == 0:
            values = work.tops[VALUES_TAKEN]
            if not holds(work, data, number, low):
                add_value(work, low)
            return _points(work, kind, values)
    if row[number, COUNT]:
        _open(work, data, number)
    return number


@called
def _bools(work: Work, data: npt.NDArray[np.uint8], number: int) -> int:
    """Of truth values, those that a span has are listed."""
    values = work.tops[VALUES_TAKEN]
    for literal in (SAYS_FALSE, SAYS_TRUE):
        if _admits(work, data, number, literal):
            add_value(work, literal)
    return _points(work, BOOLS, values)


@called
def _open(work: Work, data: npt.NDArray[np.uint8], number: int) -> None:
    """An excluded value on a closed bound opens the bound instead."""
    row, left = work.constraint, 0
    low, high, values = row[number, LOW], row[number, HIGH], row[number, VALUES]
    for at in range(values, values + row[number, COUNT]):
        literal = work.value[at]
        at_low = low >= 0 and compared(work, data, literal, low) == 0
        at_high = high >= 0 and compared(work, data, literal, high) == 0
        if at_low:
            row[number, LOW_IN] = 0
        if at_high:
            row[number, HIGH_IN] = 0
        if not (at_low or at_high):
            work.value[values + left] = literal
            left += 1
    row[number, COUNT] = left


@called
def _within(work: Work, data: npt.NDArray[np.uint8], number: int, literal: int) -> bool:
    """Whether a value is between the bounds of a span."""
    row = work.constraint
    if row[number, LOW] >= 0:
        sign = compared(work, data, literal, row[number, LOW])
        if sign < 0 or (sign == 0 and not row[number, LOW_IN]):
            return False
    if row[number, HIGH] >= 0:
        sign = compared(work, data, literal, row[number, HIGH])
        if sign > 0 or (sign == 0 and not row[number, HIGH_IN]):
            return False
    return True


@called
def holds(work: Work, data: npt.NDArray[np.uint8], number: int, literal: int) -> bool:
    """Whether a value equals one of those of a constraint."""
    values = work.constraint[number, VALUES]
    for at in range(values, values + work.constraint[number, COUNT]):
        if compared(work, data, work.value[at], literal) == 0:
            return True
    return False


@called
def _admits(work: Work, data: npt.NDArray[np.uint8], number: int, literal: int) -> bool:
    """Whether a value of its kind satisfies a constraint."""
    if work.constraint[number, FORM] == ONE_OF:
        return holds(work, data, number, literal)
    return _within(work, data, number, literal) and not holds(work, data, number, literal)


@called
def meet(work: Work, data: npt.NDArray[np.uint8], one: int, other: int) -> int:
    """The constraint that asks for both."""
    row = work.constraint
    one_form, other_form = row[one, FORM], row[other, FORM]
    if one_form == ABSENT or other_form == ABSENT:
        return one if one_form == other_form else EMPTY
    if one_form == PRESENT:
        return other
    if other_form == PRESENT:
        return one
    if row[one, KIND] != row[other, KIND]:
        return EMPTY
    if other_form == ONE_OF:
        return _filtered(work, data, other, one)
    if one_form == ONE_OF:
        return _filtered(work, data, one, other)
    return _met_spans(work, data, one, other)


@called
def _filtered(work: Work, data: npt.NDArray[np.uint8], points: int, other: int) -> int:
    row, values = work.constraint, work.tops[VALUES_TAKEN]
    for at in range(row[points, VALUES], row[points, VALUES] + row[points, COUNT]):
        if _admits(work, data, other, work.value[at]):
            add_value(work, work.value[at])
    return _points(work, row[points, KIND], values)


@called
def _met_spans(work: Work, data: npt.NDArray[np.uint8], one: int, other: int) -> int:
    row, values = work.constraint, work.tops[VALUES_TAKEN]
    number = constraint(work, row[one, KIND], values)
    row[number, LOW], row[number, LOW_IN] = _tighter(work, data, one, other, LOW)
    row[number, HIGH], row[number, HIGH_IN] = _tighter(work, data, one, other, HIGH)
    for excluding in (one, other):
        for at in range(row[excluding, VALUES], row[excluding, VALUES] + row[excluding, COUNT]):
            if _within(work, data, number, work.value[at]):
                add_value(work, work.value[at])
    _put_in_order(work, data, values)
    row[number, COUNT] = work.tops[VALUES_TAKEN] - values
    return tidy(work, data, number)


@called
def _tighter(work: Work, data: npt.NDArray[np.uint8], one: int, other: int, bound: int) -> tuple[int, int]:
    """The tighter of two lower or upper bounds, and whether it is closed."""
    row, is_in = work.constraint, bound + LOW_IN - LOW
    a, b = row[one, bound], row[other, bound]
    sign = 0 if a < 0 or b < 0 else compared(work, data, a, b)
    if bound == HIGH:
        sign = -sign
    if b < 0 or sign > 0:
        return a, row[one, is_in]
    if a < 0 or sign < 0:
        return b, row[other, is_in]
    return a, row[one, is_in] & row[other, is_in]


@called
def implies(work: Work, data: npt.NDArray[np.uint8], one: int, other: int) -> bool:
    """Whether everything that satisfies `one` satisfies `other`; may say no when in doubt. Leaves no trace."""
    row = work.constraint
    if _same(work, data, one, other):
        return True
    if row[other, FORM] == PRESENT:
        return bool(row[one, FORM] != ABSENT)
    if row[one, FORM] != ONE_OF and (row[one, FORM] != SPAN or row[other, FORM] != SPAN):
        return False
    constraints, values = work.tops[CONSTRAINTS], work.tops[VALUES_TAKEN]
    both = meet(work, data, one, other)
    does = both != EMPTY and _same(work, data, both, one)
    work.tops[CONSTRAINTS], work.tops[VALUES_TAKEN] = constraints, values
    return does


@called
def _same(work: Work, data: npt.NDArray[np.uint8], one: int, other: int) -> bool:
    """Whether two constraints are equal, value by value."""
    row = work.constraint
    for field in (FORM, KIND, LOW_IN, HIGH_IN, COUNT):
        if row[one, field] != row[other, field]:
            return False
    for field in (LOW, HIGH):
        a, b = row[one, field], row[other, field]
        if (a < 0) != (b < 0) or (a >= 0 and compared(work, data, a, b) != 0):
            return False
    for at in range(row[one, COUNT]):
        if compared(work, data, work.value[row[one, VALUES] + at], work.value[row[other, VALUES] + at]) != 0:
            return False
    return True


@called
def cost(work: Work, one: int, other: int) -> int:
    """About how many steps it takes to compare two constraints, as the normal form counts them."""
    row = work.constraint
    a, b = _size(work, one), _size(work, other)
    return a * b if (row[one, FORM] == ONE_OF) != (row[other, FORM] == ONE_OF) else a + b


@called
def _size(work: Work, number: int) -> int:
    row = work.constraint
    if row[number, FORM] == ONE_OF:
        return int(row[number, COUNT])
    return int(1 + row[number, COUNT])
