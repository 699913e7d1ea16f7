"""The distinct predicates of all subscriptions. Each is kept once, has a number, and counts who uses it.

**Enumerated** predicates are found true in phase one, each at most once per event: equalities through their
constant, sets through their members, order predicates of a dimension with few of them, and tests that need more
than integers. The others are **lazy**: evaluated in the clusters, where they are met.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from harken.matching.dimensions import Dimension
from harken.matching.growing import GrowingArray
from harken.matching.kernels.layout import (
    DIFFERENT,
    EQUAL,
    INTERVAL,
    IS_ABSENT,
    IS_PRESENT,
    LAZY,
    MEMBER,
    TESTED,
    Predicates,
)
from harken.model.evaluation import holds
from harken.model.expressions import Expression, Not, Predicate
from harken.model.values import SPATIAL_KINDS, EventValue, Kind, Type, Value
from harken.normal.operators import Operand, constant_of, expression_of

Row = tuple[str, str, Operand]
"""A predicate of the compiled form: attribute, operator, operand."""

Test = Callable[[EventValue], bool]

_BOUNDS = {">": (True, 1), ">=": (True, 0), "<": (False, -1), "<=": (False, 0)}
"""Bounding operators: whether they bound from below, and how far from the constant's label the bound is."""

_LOWEST, _HIGHEST = -(2**62), 2**62
_NUMBER_BITS = LAZY - 1


class PredicateTable:
    """Predicates by number. Changes must not run beside anything else; `arrays` may be read by any thread."""

    def __init__(self, *, eager_limit: int) -> None:
        self.dimensions: list[Dimension] = []
        self._eager_limit = eager_limit
        self.by_attribute: dict[str, dict[Kind | None, Dimension]] = {}
        self._mentions: dict[str, int] = {}
        self._numbers: dict[tuple[Row, ...], int] = {}
        self._rows: list[tuple[Row, ...] | None] = []
        self._free: list[int] = []
        self._operator = GrowingArray(np.int8)
        self._dimension = GrowingArray(np.int32)
        self._low = GrowingArray(np.int64)
        self._high = GrowingArray(np.int64)
        self._lazy = GrowingArray(np.bool_)
        self._uses = GrowingArray(np.int64)
        self._eager_next = GrowingArray(np.int32, fill=-1)
        self._eager_head = GrowingArray(np.int32, fill=-1)
        self._equal_first = GrowingArray(np.int64)
        self._equal_room: list[int] = []
        self._equal = GrowingArray(np.int32, fill=-1)
        self._members = _Members()
        self._eager_count: dict[int, int] = {}
        self._tests: dict[int, dict[int, Test]] = {}
        self._intervals: dict[int, set[int]] = {}
        self._unordered: set[int] = set()

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def attributes(self) -> dict[str, int]:
        """The attributes that predicates in use mention, and how many predicates do."""
        return self._mentions

    @property
    def ordered(self) -> list[int]:
        """The dimensions in which order is asked for."""
        return [number for number, predicates in self._intervals.items() if predicates]

    @property
    def nbytes(self) -> int:
        """Bytes taken by the arrays."""
        arrays = (self._operator, self._dimension, self._low, self._high, self._lazy, self._uses)
        return sum(each.nbytes for each in (*arrays, self._eager_next, self._equal)) + self._members.nbytes

    def intern(self, rows: tuple[Row, ...]) -> int:
        """The word of a predicate: its number, with the LAZY bit if it is lazy. New ones are added unused."""
        number = self._numbers.get(rows)
        if number is None:
            number = self._add(rows)
        return number | LAZY if self._lazy.values[number] else number

    def use(self, words: npt.NDArray[np.int64]) -> None:
        """Count clauses that use predicates. Brings labels up to date after `intern`."""
        np.add.at(self._uses.values, words & _NUMBER_BITS, 1)
        self._order_dimensions()

    def release(self, words: npt.NDArray[np.int64]) -> None:
        """Count clauses that no longer use predicates; those that nobody uses are forgotten."""
        numbers = words & _NUMBER_BITS
        np.subtract.at(self._uses.values, numbers, 1)
        for number in np.unique(numbers[self._uses.values[numbers] == 0]).tolist():
            self._forget(number)
        self._order_dimensions()

    def rows(self, word: int) -> tuple[Row, ...]:
        """What a predicate says, in predicates of the compiled form."""
        rows = self._rows[word & _NUMBER_BITS]
        assert rows is not None, "the predicate is in use"
        return rows

    def tests_of(self, dimension: int) -> dict[int, Test]:
        """The predicates of a dimension that need a value rather than its code, and how to ask them."""
        return self._tests.get(dimension, {})

    def arrays(self) -> Predicates:
        """What kernels need to know: views that are valid until the next change."""
        return Predicates(
            self._equal_first.values,
            self._equal.values,
            self._members.head.values,
            self._members.next.values,
            self._members.predicate.values,
            self._eager_head.values,
            self._eager_next.values,
            self._operator.values,
            self._dimension.values,
            self._low.values,
            self._high.values,
        )

    def _add(self, rows: tuple[Row, ...]) -> int:
        number = self._free.pop() if self._free else len(self._rows)
        if number == len(self._rows):
            self._rows.append(None)
            for array in (self._operator, self._dimension, self._low, self._high):
                array.grow_to(number + 1)
            self._lazy.grow_to(number + 1)
            self._uses.grow_to(number + 1)
            self._eager_next.grow_to(number + 1)
        self._rows[number] = rows
        self._numbers[rows] = number
        self._uses.values[number] = 0
        attribute = rows[0][0]
        self._mentions[attribute] = self._mentions.get(attribute, 0) + 1
        operator, dimension, low = self._understood(number, rows)
        self._operator.values[number] = operator
        self._dimension.values[number] = dimension.number
        self._low.values[number] = low
        self._lazy.values[number] = self._is_lazy(operator, dimension.number)
        self._link(number, operator, dimension)
        return number

    def _understood(self, number: int, rows: tuple[Row, ...]) -> tuple[int, Dimension, int]:
        """A predicate's operator for kernels, its dimension and its first operand."""
        attribute, operator, operand = rows[0]
        if operator in ("is null", "is not null"):
            dimension = self._dimension_for(attribute, None)
            return IS_ABSENT if operator == "is null" else IS_PRESENT, dimension, 0
        kind = Type(operand.type).kind
        if operator in ("=", "!="):
            dimension = self._dimension_for(attribute, kind)
            return EQUAL if operator == "=" else DIFFERENT, dimension, dimension.hold(_constant(operand))
        if operator == "in":
            return MEMBER, self._dimension_for(attribute, kind), 0
        if operator == "is":
            return IS_PRESENT, self._dimension_for(attribute, kind), 0
        if operator in _BOUNDS:
            return INTERVAL, self._dimension_for(attribute, kind), 0
        # Spatial predicates ask points and boxes alike: theirs is the dimension of all values.
        dimension = self._dimension_for(attribute, None if kind in SPATIAL_KINDS else Kind.STRING)
        self._tests.setdefault(dimension.number, {})[number] = _test(expression_of([rows]))
        return TESTED, dimension, 0

    def _is_lazy(self, operator: int, dimension: int) -> bool:
        if operator in (EQUAL, MEMBER, TESTED):
            return False
        if operator != INTERVAL or self._eager_count.get(dimension, 0) >= self._eager_limit:
            return True
        self._eager_count[dimension] = self._eager_count.get(dimension, 0) + 1
        return False

    def _link(self, number: int, operator: int, dimension: Dimension) -> None:
        """Put a new predicate where phase one finds it."""
        if operator in (EQUAL, DIFFERENT):
            place = self._place(dimension, int(self._low.values[number]))
            if operator == EQUAL:
                self._equal.values[place] = number
        if operator == MEMBER:
            for _, _, operand in self.rows(number):
                self._members.add(self._place(dimension, dimension.hold(_constant(operand))), number)
        elif operator not in (EQUAL, TESTED) and not self._lazy.values[number]:
            self._eager_next.values[number] = self._eager_head.values[dimension.number]
            self._eager_head.values[dimension.number] = number
        if operator == INTERVAL:
            self._intervals.setdefault(dimension.number, set()).add(number)
            self._unordered.add(dimension.number)

    def _place(self, dimension: Dimension, code: int) -> int:
        """Where a constant's equality stands; a dimension that has outgrown its room moves to the end."""
        number = dimension.number
        if code >= self._equal_room[number]:
            room = max(16, 2 * code)
            start, old = len(self._equal), int(self._equal_first.values[number])
            used = self._equal_room[number]
            self._equal.grow_to(start + room)
            self._members.head.grow_to(start + room)
            self._equal.values[start : start + used] = self._equal.values[old : old + used]
            self._members.head.values[start : start + used] = self._members.head.values[old : old + used]
            self._equal_first.values[number] = start
            self._equal_room[number] = room
        return int(self._equal_first.values[number]) + code

    def _dimension_for(self, attribute: str, kind: Kind | None) -> Dimension:
        of_attribute = self.by_attribute.setdefault(attribute, {})
        found = of_attribute.get(kind)
        if found is None:
            found = of_attribute[kind] = Dimension(len(self.dimensions), attribute, kind)
            self.dimensions.append(found)
            self._equal_first.append(0)
            self._equal_room.append(0)
            self._eager_head.append(-1)
        return found

    def _forget(self, number: int) -> None:
        rows = self.rows(number)
        self._unlink(number, rows)
        self._rows[number] = None
        self._operator.values[number] = -1
        del self._numbers[rows]
        self._free.append(number)
        attribute = rows[0][0]
        self._mentions[attribute] -= 1
        if not self._mentions[attribute]:
            del self._mentions[attribute]

    def _unlink(self, number: int, rows: tuple[Row, ...]) -> None:
        operator = int(self._operator.values[number])
        dimension = self.dimensions[int(self._dimension.values[number])]
        if operator in (EQUAL, DIFFERENT):
            code = int(self._low.values[number])
            if operator == EQUAL:
                place = self._place(dimension, code)
                self._equal.values[place] = -1
            dimension.drop(code)
        elif operator == MEMBER:
            for _, _, operand in rows:
                code = dimension.codes[_constant(operand)]
                self._members.discard(self._place(dimension, code), number)
                dimension.drop(code)
        elif operator == TESTED:
            del self._tests[dimension.number][number]
        if operator not in (EQUAL, MEMBER, TESTED) and not self._lazy.values[number]:
            self._unlink_eager(number, dimension.number)
        if operator == INTERVAL:
            self._intervals[dimension.number].discard(number)
            self._unordered.add(dimension.number)
            if not self._lazy.values[number]:
                self._eager_count[dimension.number] = self._eager_count.get(dimension.number, 1) - 1

    def _unlink_eager(self, number: int, dimension: int) -> None:
        head = self._eager_head.values
        following = self._eager_next.values[number]
        if head[dimension] == number:
            head[dimension] = following
            return
        before = head[dimension]
        while self._eager_next.values[before] != number:
            before = self._eager_next.values[before]
        self._eager_next.values[before] = following

    def _order_dimensions(self) -> None:
        """Give dimensions whose order predicates changed new labels, and those predicates bounds in labels."""
        for number in self._unordered:
            self._order(self.dimensions[number], self._intervals[number])
        self._unordered.clear()

    def _order(self, dimension: Dimension, numbers: set[int]) -> None:
        bounds = {
            number: [(operator, _constant(operand)) for _, operator, operand in self.rows(number)]
            for number in numbers
        }
        dimension.order(value for each in bounds.values() for _, value in each)
        for number, each in bounds.items():
            low, high = _LOWEST, _HIGHEST
            for operator, value in each:
                from_below, offset = _BOUNDS[operator]
                label = dimension.label_of_constant(value) + offset
                low, high = (label, high) if from_below else (low, label)
            self._low.values[number], self._high.values[number] = low, high


class _Members:
    """Which sets hold a constant: linked lists in flat arrays, by the constant's place."""

    def __init__(self) -> None:
        self.head = GrowingArray(np.int32, fill=-1)
        self.next = GrowingArray(np.int32, fill=-1)
        self.predicate = GrowingArray(np.int32)
        self._free: list[int] = []

    @property
    def nbytes(self) -> int:
        """Bytes taken."""
        return self.head.nbytes + self.next.nbytes + self.predicate.nbytes

    def add(self, place: int, predicate: int) -> None:
        """A set holds the constant at this place."""
        if self._free:
            node = self._free.pop()
        else:
            node = self.next.append(-1)
            self.predicate.append(0)
        self.predicate.values[node] = predicate
        self.next.values[node] = self.head.values[place]
        self.head.values[place] = node

    def discard(self, place: int, predicate: int) -> None:
        """It no longer does."""
        before, node = -1, int(self.head.values[place])
        while self.predicate.values[node] != predicate:
            before, node = node, int(self.next.values[node])
        following = self.next.values[node]
        if before < 0:
            self.head.values[place] = following
        else:
            self.next.values[before] = following
        self._free.append(node)


def _constant(operand: Operand) -> Value:
    value = constant_of(operand)
    assert value is not None, "compiled tables are checked before they come here"
    return value


def _test(expression: Expression) -> Test:
    leaf, wanted = (expression.term, False) if isinstance(expression, Not) else (expression, True)
    predicate: Predicate = leaf  # type: ignore[assignment]  # a single compiled predicate is a leaf or its negation
    return lambda value: holds(predicate, value) is wanted
