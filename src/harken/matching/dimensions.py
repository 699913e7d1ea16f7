"""Dimensions: an attribute and a kind of value. Each knows the constants that predicates compare with there.

An event's value becomes a **code**: which constant it equals (from 1), 0 for none, -1 where there is no value.
Where predicates ask for order, it also becomes a **label**: odd if it equals an ordered constant, even if it
falls between two. Then every comparison, on every type, is a comparison of integers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from harken.model.values import EventValue, Kind, Value, compare
from harken.normal.operators import operand_of

EXACT_IN_FLOAT = 2**53
INTEGER_KINDS = (Kind.BOOL, Kind.DATE, Kind.TIMESTAMP)
"""Kinds whose values are integers underneath."""


class Dimension:
    """The constants of one attribute and kind. `kind` None stands for mere presence of the attribute."""

    def __init__(self, number: int, attribute: str, kind: Kind | None) -> None:
        self.number = number
        self.attribute = attribute
        self.kind = kind
        self.codes: dict[Value, int] = {}
        self.constants: list[Value | None] = [None]
        self.ordered: list[Value] = []
        self._uses: list[int] = [0]
        self._free: list[int] = []
        self.ordered_numbers: npt.NDArray[np.int64] | npt.NDArray[np.float64] | None = None
        """The ordered constants as numbers, where all values of this kind compare with those exactly."""

    def hold(self, constant: Value) -> int:
        """The code of a constant for one more predicate that uses it."""
        code = self.codes.get(constant)
        if code is None:
            code = self._new_code(constant)
        self._uses[code] += 1
        return code

    def drop(self, code: int) -> None:
        """One predicate less uses a constant; without any, its code is free for another."""
        self._uses[code] -= 1
        if self._uses[code] == 0:
            del self.codes[self.constants[code]]  # type: ignore[arg-type]  # codes in use have constants
            self.constants[code] = None
            self._free.append(code)

    def _new_code(self, constant: Value) -> int:
        if self._free:
            code = self._free.pop()
        else:
            code = len(self.constants)
            self.constants.append(None)
            self._uses.append(0)
        self.constants[code] = constant
        self.codes[constant] = code
        return code

    def code_of(self, value: EventValue) -> int:
        """The code of a value of this kind: which constant it equals, or 0."""
        if isinstance(value, Decimal):
            value = _as_constant(value)
        return self.codes.get(value, 0)  # type: ignore[arg-type]  # decimals that equal no constant are no key

    def order(self, constants: Iterable[Value]) -> None:
        """Set the ordered constants; labels of before mean nothing after."""
        self.ordered = sorted(set(constants))
        self.ordered_numbers = self._as_numbers()

    def _as_numbers(self) -> npt.NDArray[np.int64] | npt.NDArray[np.float64] | None:
        if self.kind is Kind.NUMBER:
            # Strictly below 2^53 no int of an event can meet one of these by rounding.
            exact = all(abs(number) < EXACT_IN_FLOAT for number in self.ordered)  # type: ignore[arg-type]
            return np.array(self.ordered, np.float64) if exact else None
        if self.kind in INTEGER_KINDS:
            return np.array([operand_of(value).integer for value in self.ordered], np.int64)
        return None

    def label_of_constant(self, constant: Value) -> int:
        """The label of an ordered constant."""
        return 2 * bisect_left(self.ordered, constant) + 1

    def label_of(self, value: EventValue) -> int:
        """The label of a value of this kind."""
        low, high = 0, len(self.ordered)
        while low < high:
            middle = (low + high) // 2
            if compare(self.ordered[middle], value) < 0:
                low = middle + 1
            else:
                high = middle
        return 2 * low + (low < len(self.ordered) and compare(self.ordered[low], value) == 0)


def _as_constant(value: Decimal) -> int | float | Decimal:
    """The int or float that equals a decimal, if one does."""
    if value == value.to_integral_value():
        return int(value)
    nearest = float(value)
    return nearest if compare(value, nearest) == 0 else value
