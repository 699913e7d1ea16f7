"""Dimensions: an attribute and a kind of value. Each knows the constants that predicates compare with there.

An event's value becomes a **code**: which constant it equals (from 1), 0 for none, -1 where there is no value.
Where predicates ask for order, it also becomes a **label** (see ordering.py).
"""

from __future__ import annotations

from decimal import Decimal

from harken.matching.ordering import Order
from harken.model.values import EventValue, Kind, Value, compare


class Dimension:
    """The constants of one attribute and kind. `kind` None stands for mere presence of the attribute."""

    def __init__(self, number: int, attribute: str, kind: Kind | None) -> None:
        self.number = number
        self.attribute = attribute
        self.kind = kind
        self.codes: dict[Value, int] = {}
        self.constants: list[Value | None] = [None]
        self.order = Order(kind)
        self.version = 0
        """Changes whenever a code comes to mean something else."""
        self._uses: list[int] = [0]
        self._free: list[int] = []

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
            self.version += 1

    def _new_code(self, constant: Value) -> int:
        if self._free:
            code = self._free.pop()
        else:
            code = len(self.constants)
            self.constants.append(None)
            self._uses.append(0)
        self.constants[code] = constant
        self.codes[constant] = code
        self.version += 1
        return code

    def code_of(self, value: EventValue) -> int:
        """The code of a value of this kind: which constant it equals, or 0."""
        if isinstance(value, Decimal):
            value = _as_constant(value)
        return self.codes.get(value, 0)  # type: ignore[arg-type]  # decimals that equal no constant are no key


def _as_constant(value: Decimal) -> int | float | Decimal:
    """The int or float that equals a decimal, if one does."""
    if value == value.to_integral_value():
        return int(value)
    nearest = float(value)
    return nearest if compare(value, nearest) == 0 else value
