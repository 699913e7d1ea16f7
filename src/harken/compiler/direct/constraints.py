"""What a clause asks of one attribute, in rows of integers: `normal.constraints` once more, for kernels.

Functions give the number of a constraint, or EMPTY where nothing satisfies it. Which of two equal values stays
matters, as 1 and 1.0 are equal: everything is done in the order in which it is done there.
"""

from __future__ import annotations

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
    MOST_CONSTRAINTS,
    MOST_VALUES,
    ONE_OF,
    PRESENT,
    SAYS_FALSE,
    SAYS_TRUE,
    SPAN,
    VALUES,
    VALUES_TAKEN,
    Bytes,
    Work,
    compared,
    taken,
)
from harken.jit import tight


@tight
def constraint(work: Work, form: int, kind: int, values: int, count: int) -> int:
    """A constraint without bounds."""
    number = taken(work, CONSTRAINTS, MOST_CONSTRAINTS)
    row = work.constraint
    row[number, FORM], row[number, KIND] = form, kind
    row[number, LOW], row[number, LOW_IN], row[number, HIGH], row[number, HIGH_IN] = -1, 0, -1, 0
    row[number, VALUES], row[number, COUNT] = values, count
    return number


@tight
def add_value(work: Work, literal: int) -> None:
    """Add a value to the run that ends with the last."""
    at = taken(work, VALUES_TAKEN, MOST_VALUES)
    work.value[at] = literal


@tight
def one_of(work: Work, data: Bytes, kind: int, values: int) -> int:
    """The constraint to equal one of the values from `values` to the last; they are put in order."""
    return constraint(work, ONE_OF, kind, values, _ordered(work, data, values))


@tight
def none_of(work: Work, data: Bytes, kind: int, values: int) -> int:
    """The constraint to be of this kind and to equal none of these."""
    return span(work, data, kind, -1, 0, -1, 0, values, _ordered(work, data, values))


@tight
def _ordered(work: Work, data: Bytes, values: int) -> int:
    """Put the last values in order; how many are left when of equal ones the first stays."""
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
    return count


@tight
def span(
    work: Work,
    data: Bytes,
    kind: int,
    low: int,
    low_in: int,
    high: int,
    high_in: int,
    values: int,
    count: int,
) -> int:
    """The values between bounds that are not among some, in the one form that says so. The run becomes its own."""
    if kind == BOOLS:
        return _bools(work, data, low, low_in, high, high_in, values, count)
    if low >= 0 and high >= 0:
        sign = compared(work, data, low, high)
        if sign > 0 or (sign == 0 and not (low_in and high_in)):
            return EMPTY
        if sign == 0:
            return EMPTY if holds(work, data, values, count, low) else _single(work, kind, low)
    left = 0
    for at in range(values, values + count):
        literal = work.value[at]
        at_low = low >= 0 and compared(work, data, literal, low) == 0
        at_high = high >= 0 and compared(work, data, literal, high) == 0
        low_in, high_in = 0 if at_low else low_in, 0 if at_high else high_in
        if not (at_low or at_high):
            work.value[values + left] = literal
            left += 1
    number = constraint(work, SPAN, kind, values, left)
    row = work.constraint
    row[number, LOW], row[number, LOW_IN], row[number, HIGH], row[number, HIGH_IN] = low, low_in, high, high_in
    return number


@tight
def _single(work: Work, kind: int, literal: int) -> int:
    values = work.tops[VALUES_TAKEN]
    add_value(work, literal)
    return constraint(work, ONE_OF, kind, values, 1)


@tight
def _bools(
    work: Work, data: Bytes, low: int, low_in: int, high: int, high_in: int, excluded: int, count: int
) -> int:
    values = work.tops[VALUES_TAKEN]
    for literal in (SAYS_FALSE, SAYS_TRUE):
        inside = _within(work, data, low, low_in, high, high_in, literal)
        if inside and not holds(work, data, excluded, count, literal):
            add_value(work, literal)
    found = work.tops[VALUES_TAKEN] - values
    return constraint(work, ONE_OF, BOOLS, values, found) if found else EMPTY


@tight
def _within(work: Work, data: Bytes, low: int, low_in: int, high: int, high_in: int, literal: int) -> bool:
    if low >= 0:
        sign = compared(work, data, literal, low)
        if sign < 0 or (sign == 0 and not low_in):
            return False
    if high >= 0:
        sign = compared(work, data, literal, high)
        if sign > 0 or (sign == 0 and not high_in):
            return False
    return True


@tight
def holds(work: Work, data: Bytes, values: int, count: int, literal: int) -> bool:
    """Whether a value equals one of a run."""
    for at in range(values, values + count):
        if compared(work, data, work.value[at], literal) == 0:
            return True
    return False


@tight
def meet(work: Work, data: Bytes, one: int, other: int) -> int:
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


@tight
def _filtered(work: Work, data: Bytes, points: int, other: int) -> int:
    row, values = work.constraint, work.tops[VALUES_TAKEN]
    first, count = row[other, VALUES], row[other, COUNT]
    for at in range(row[points, VALUES], row[points, VALUES] + row[points, COUNT]):
        literal = work.value[at]
        listed = holds(work, data, first, count, literal)
        if row[other, FORM] == ONE_OF:
            kept = listed
        else:
            bounds = row[other, LOW], row[other, LOW_IN], row[other, HIGH], row[other, HIGH_IN]
            kept = not listed and _within(work, data, bounds[0], bounds[1], bounds[2], bounds[3], literal)
        if kept:
            add_value(work, literal)
    found = work.tops[VALUES_TAKEN] - values
    return constraint(work, ONE_OF, row[points, KIND], values, found) if found else EMPTY


@tight
def _met_spans(work: Work, data: Bytes, one: int, other: int) -> int:
    row, values = work.constraint, work.tops[VALUES_TAKEN]
    low, low_in = _tighter(work, data, one, other, LOW, LOW_IN, 1)
    high, high_in = _tighter(work, data, one, other, HIGH, HIGH_IN, -1)
    for number in (one, other):
        for at in range(row[number, VALUES], row[number, VALUES] + row[number, COUNT]):
            literal = work.value[at]
            if _within(work, data, low, low_in, high, high_in, literal):
                add_value(work, literal)
    count = _ordered(work, data, values)
    return span(work, data, row[one, KIND], low, low_in, high, high_in, values, count)


@tight
def _tighter(
    work: Work, data: Bytes, one: int, other: int, bound: int, is_in: int, inward: int
) -> tuple[int, int]:
    """The tighter of two bounds of a side, where values go inward by this sign."""
    row = work.constraint
    a, b = row[one, bound], row[other, bound]
    sign = 0 if a < 0 or b < 0 else compared(work, data, a, b) * inward
    if b < 0 or sign > 0:
        return a, row[one, is_in]
    if a < 0 or sign < 0:
        return b, row[other, is_in]
    return a, row[one, is_in] & row[other, is_in]


@tight
def implies(work: Work, data: Bytes, one: int, other: int) -> bool:
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


@tight
def _same(work: Work, data: Bytes, one: int, other: int) -> bool:
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


@tight
def cost(work: Work, one: int, other: int) -> int:
    """About how many steps it takes to compare two constraints, as the normal form counts them."""
    row = work.constraint
    a, b = _size(work, one), _size(work, other)
    return a * b if (row[one, FORM] == ONE_OF) != (row[other, FORM] == ONE_OF) else a + b


@tight
def _size(work: Work, number: int) -> int:
    row = work.constraint
    if row[number, FORM] == ONE_OF:
        return int(row[number, COUNT])
    return int(1 + row[number, COUNT])
