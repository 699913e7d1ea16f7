"""Dimensions: an attribute and a kind of value. Each knows the constants that predicates compare with there.

An event's value becomes a **code**: which constant it equals (from 1), 0 for none, -1 where there is no value.
Where predicates ask for order, it also becomes a **label** (see ordering.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from heapq import heappop, heappush

import numpy as np
import pyarrow as pa

from harken.matching.kernels.layout import HIGHEST, LOWEST
from harken.matching.predicates.ordering import ConstantOrder, Held
from harken.matching.predicates.rows import (
    BOUNDS,
    OPERAND_TYPES,
    Row,
    constant_in,
    listed,
    operand_columns,
    operands_of,
)
from harken.matching.saving import State, counted, require
from harken.model.numbers import Exact, equal_constant
from harken.model.values import INT_MAX, INT_MIN, EventValue, Kind, Value, checked_constant, kind_of
from harken.normal.operators import constant_of, operand_of


class Dimension:
    """The constants of one attribute and kind. `kind` None stands for mere presence of the attribute."""

    def __init__(self, number: int, attribute: str, kind: Kind | None) -> None:
        self.number = number
        self.attribute = attribute
        self.kind = kind
        self.codes: dict[Value, int] = {}
        self.constants: list[Value | None] = [None]
        self.order = ConstantOrder(kind)
        self.version = 0
        """Changes whenever a code comes to mean something else."""
        self.predicates = 0
        """How many look at this dimension."""
        self.has_huge = False
        """Whether a constant is, or was, a number that no integer of 64 bits can be."""
        self.has_exact = False
        """Whether a constant is, or was, a decimal that is compared by code of our own."""
        self.is_spare = False
        """Whether its number is listed among those that may be given to another."""
        self._uses: list[int] = [0]
        self._free: list[int] = []

    def renamed(self, attribute: str, kind: Kind | None) -> Dimension:
        """Another dimension with the number of this one, which no predicate looks at any more."""
        other = Dimension(self.number, attribute, kind)
        other.version, other.order.epoch = self.version + 1, self.order.epoch + 1
        return other

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
        self._note_sort(constant)
        self.version += 1
        return code

    def _note_sort(self, constant: Value) -> None:
        self.has_huge |= _is_huge(constant)
        self.has_exact |= isinstance(constant, Exact)

    def held(self) -> list[Held]:
        """The constants in use, with their codes."""
        return [(constant, code, self._uses[code]) for constant, code in self.codes.items()]

    def restore(self, held: Sequence[Held], room: int) -> None:
        """Hold the constants that another dimension held, of codes below this. Only one without any can."""
        codes = {code for _, code, _ in held}
        require(all(1 <= code < room for code in codes), "a constant has a code that there is not")
        require(len(codes) == len({constant for constant, _, _ in held}) == len(held), "a code comes twice")
        size = 1 + max((code for _, code, _ in held), default=0)
        self.constants, self._uses = [None] * size, [0] * size
        for constant, code, uses in held:
            self.codes[constant] = code
            self.constants[code], self._uses[code] = constant, uses
            self._note_sort(constant)
        self._free = [code for code in range(1, size) if self.constants[code] is None]
        self.version += 1

    def code_of(self, value: EventValue) -> int:
        """The code of a value of this kind: which constant it equals, or 0."""
        if isinstance(value, Decimal):
            value = equal_constant(value)
        return self.codes.get(value, 0)  # type: ignore[arg-type]  # decimals that equal no constant are no key

    def bounds(self, rows: tuple[Row, ...]) -> tuple[int, int]:
        """The least and the greatest label of a value that is within these bounds."""
        low, high = LOWEST, HIGHEST
        for _, operator, operand in rows:
            from_below, offset = BOUNDS[operator]
            label = self.order.label_of_constant(constant_in(operand)) + offset
            low, high = (label, high) if from_below else (low, label)
        return low, high


def _is_huge(constant: Value) -> bool:
    """Whether this is a number that no integer of 64 bits can be."""
    return isinstance(constant, float | Exact) and not INT_MIN <= constant <= INT_MAX


class Dimensions:
    """The dimensions by number, and by attribute and kind those that predicates look at.

    One that no predicate looks at any more keeps its number, and what it knows, until another is in need of one:
    then it is renamed, and who was to `forget` it is told.
    """

    def __init__(self, forget: Callable[[int], None]) -> None:
        self.all: list[Dimension] = []
        self.by_attribute: dict[str, dict[Kind | None, Dimension]] = {}
        self._forget = forget
        self._idle: dict[tuple[str, Kind | None], Dimension] = {}
        """Dimensions that no predicate looks at."""
        self._spare: list[int] = []
        """A heap of the numbers of these, and of some that have come to be looked at again."""
        self._renamed: list[int] = []

    @property
    def in_use(self) -> int:
        """How many dimensions predicates look at."""
        return len(self.all) - len(self._idle)

    def renamed(self) -> list[int]:
        """The dimensions that have come to stand for something else since this was last asked."""
        renamed, self._renamed = self._renamed, []
        return renamed

    def look_at(self, attribute: str, kind: Kind | None) -> Dimension:
        """The dimension of an attribute and a kind, for one more predicate that looks at it."""
        of_attribute = self.by_attribute.setdefault(attribute, {})
        found = of_attribute.get(kind)
        if found is None:
            found = self._idle.pop((attribute, kind), None) or self._new(attribute, kind)
            of_attribute[kind] = found
        found.predicates += 1
        return found

    def look_away(self, dimension: Dimension) -> None:
        """One predicate less looks at a dimension."""
        dimension.predicates -= 1
        if not dimension.predicates:
            self._retire(dimension)

    def restore(self, state: State, room: Sequence[int]) -> None:
        """Become what others were, as if predicates looked at each. Only one without any can."""
        self.all.extend(dimensions_of(state, room))
        for dimension in self.all:
            self.by_attribute.setdefault(dimension.attribute, {})[dimension.kind] = dimension

    def retire_idle(self) -> None:
        """Take note of which dimensions no predicate looks at, after all others have been restored."""
        for dimension in self.all:
            if not dimension.predicates:
                self._retire(dimension)

    def _new(self, attribute: str, kind: Kind | None) -> Dimension:
        """A dimension with the number of one that nobody looks at, and its room for constants, or a new number."""
        while self._spare:
            known = self.all[heappop(self._spare)]
            known.is_spare = False
            if self._idle.pop((known.attribute, known.kind), None) is not None:
                found = self.all[known.number] = known.renamed(attribute, kind)
                self._forget(found.number)
                self._renamed.append(found.number)
                return found
        found = Dimension(len(self.all), attribute, kind)
        self.all.append(found)
        return found

    def _retire(self, dimension: Dimension) -> None:
        of_attribute = self.by_attribute[dimension.attribute]
        del of_attribute[dimension.kind]
        if not of_attribute:
            del self.by_attribute[dimension.attribute]
        self._idle[dimension.attribute, dimension.kind] = dimension
        if not dimension.is_spare:
            dimension.is_spare = True
            heappush(self._spare, dimension.number)


_DIMENSIONS = pa.schema([("attribute", pa.string()), ("kind", pa.string()), ("epoch", pa.int64())])
_NUMBERS = ("dimension", "is", "uses")
_CONSTANTS = pa.schema(
    [("dimension", pa.int64()), *OPERAND_TYPES.items(), *((name, pa.int64()) for name in _NUMBERS[1:])]
)


def state_of(dimensions: Sequence[Dimension]) -> State:
    """All that dimensions know, each under its number."""
    about = {
        "attribute": pa.array([each.attribute for each in dimensions], pa.string()),
        "kind": pa.array([each.kind and each.kind.value for each in dimensions], pa.string()),
        "epoch": pa.array([each.order.epoch for each in dimensions], pa.int64()),
    }
    tables = {
        "dimensions": pa.table(about),
        "codes": _constant_table([each.held() for each in dimensions]),
        "labels": _constant_table([each.order.held() for each in dimensions]),
    }
    return State({}, {}, tables)


def dimensions_of(state: State, room: Sequence[int]) -> list[Dimension]:
    """Dimensions that know the same, each of codes below what there is room for."""
    about = state.table("dimensions", _DIMENSIONS)
    kinds = [None if kind is None else Kind(kind) for kind in listed(about.column("kind"))]
    made = [Dimension(at, name, kinds[at]) for at, name in enumerate(listed(about.column("attribute")))]
    require(all(isinstance(each.attribute, str) for each in made), "a dimension is of no attribute")
    require(len({(each.attribute, each.kind) for each in made}) == len(made), "two dimensions are the same")
    codes, labels = (_held_in(state.table(name, _CONSTANTS), made) for name in ("codes", "labels"))
    for dimension, epoch, its_room in zip(made, listed(about.column("epoch")), room, strict=True):
        dimension.restore(codes[dimension.number], its_room)
        dimension.order.restore(labels[dimension.number], counted("an epoch", epoch))
    return made


def _constant_table(by_dimension: Sequence[Sequence[Held]]) -> pa.Table:
    held = [each for of_dimension in by_dimension for each in of_dimension]
    dimension = np.repeat(np.arange(len(by_dimension)), [len(each) for each in by_dimension])
    return pa.table(
        {
            "dimension": pa.array(dimension, pa.int64()),
            **operand_columns([operand_of(constant) for constant, _, _ in held]),
            "is": pa.array([integer for _, integer, _ in held], pa.int64()),
            "uses": pa.array([uses for _, _, uses in held], pa.int64()),
        }
    )


def _held_in(table: pa.Table, dimensions: Sequence[Dimension]) -> list[list[Held]]:
    by_dimension: list[list[Held]] = [[] for _ in dimensions]
    require(not any(table.column(name).null_count for name in _NUMBERS), "a number is missing")
    columns = (listed(table.column(name)) for name in _NUMBERS)
    for operand, number, integer, uses in zip(operands_of(table), *columns, strict=True):
        constant = checked_constant(constant_of(operand))
        require(0 <= number < len(dimensions), "a constant is of no dimension")
        require(kind_of(constant) is dimensions[number].kind, f"{constant!r} is not of its dimension")
        by_dimension[number].append((constant, integer, uses))
    return by_dimension
