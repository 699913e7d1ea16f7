"""The distinct predicates of all subscriptions. Each is kept once, has a number, and counts who uses it.

**Enumerated** predicates are found true in phase one: equalities through their constant, sets through their
members, and tests that need more than integers. The others are evaluated in clusters, where they are first met.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.matching.events.mentions import Mentions
from harken.matching.growing import GrowingArray
from harken.matching.kernels.layout import (
    DIFFERENT,
    EQUAL,
    FALSE,
    HIGHEST,
    INTERVAL,
    IS_ABSENT,
    IS_PRESENT,
    LOWEST,
    MEMBER,
    TESTED,
    UNKNOWN,
    PredicateArrays,
)
from harken.matching.predicates.bands import Bands
from harken.matching.predicates.dimensions import Dimension, dimensions_of, state_of
from harken.matching.predicates.members import Members
from harken.matching.predicates.rows import (
    BOUNDS,
    PREDICATE_ROWS,
    Row,
    canonical,
    constant_in,
    meaning,
    predicate_table,
    predicates_of,
)
from harken.matching.predicates.soundness import Sense, check_predicates
from harken.matching.saving import Arrays, State, require
from harken.model import capacity
from harken.model.evaluation import holds
from harken.model.expressions import Expression, Not, Predicate
from harken.model.values import SPATIAL_KINDS, EventValue, Kind, kind_of
from harken.normal.operators import OPERATORS, expression_of

Test = Callable[[EventValue], bool]

_LED_TO = (EQUAL, MEMBER, TESTED)
"""Operators of predicates that phase one finds from an event's values."""


class PredicateTable:
    """Predicates by number. Changes must not run beside anything else; `arrays` may be read by any thread."""

    def __init__(self) -> None:
        self.dimensions: list[Dimension] = []
        self.by_attribute: dict[str, dict[Kind | None, Dimension]] = {}
        self._idle: dict[tuple[str, Kind | None], Dimension] = {}
        """Dimensions that no predicate looks at: they keep their numbers until others are in need of them."""
        self._spare: list[int] = []
        """A heap of the numbers of these, and of some that have come to be looked at again."""
        self._renamed: list[int] = []
        self.attributes = Mentions()
        """The attributes that predicates in use mention."""
        self._numbers: dict[tuple[Row, ...], int] = {}
        self._rows: list[tuple[Row, ...] | None] = []
        self._free: list[int] = []
        self._operator = GrowingArray(np.int8)
        self._dimension = GrowingArray(np.int32)
        self._low = GrowingArray(np.int64)
        self._high = GrowingArray(np.int64)
        self._initial = GrowingArray(np.uint8)
        self._cell = GrowingArray(np.int32, fill=-1)
        self._uses = GrowingArray(np.int64)
        self._equal_first = GrowingArray(np.int64)
        self._equal_room: list[int] = []
        self._equal = GrowingArray(np.int32, fill=-1)
        self._members = Members()
        self._tests: dict[int, dict[int, Test]] = {}
        self._intervals: dict[int, set[int]] = {}
        self._unordered: dict[int, list[int]] = {}
        self.bands = Bands()
        self._listed = 0

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def in_use(self) -> int:
        """How many predicates there are."""
        return len(self._numbers)

    @property
    def most_satisfied(self) -> int:
        """How many predicates phase one can list at most for one event: of equalities, one per dimension."""
        return len(self.dimensions) + self._listed

    @property
    def ordered_count(self) -> int:
        """In how many dimensions order is asked for."""
        return len(self._intervals)

    def is_ordered(self, dimension: int) -> bool:
        """Whether order is asked for in a dimension."""
        return dimension in self._intervals

    @property
    def nbytes(self) -> int:
        """Bytes taken by the arrays."""
        arrays = (self._operator, self._dimension, self._low, self._high, self._initial, self._cell, self._uses)
        return sum(each.nbytes for each in (*arrays, self._equal)) + self._members.nbytes

    def check_room(self, more: int, attributes: int) -> None:
        """CapacityError if so many more predicates on so many attributes, all of them new, had no numbers."""
        known = len(self) + len(self._members.next)
        capacity.check("distinct predicates and members of sets", known + more, capacity.PREDICATES)
        dimensions = len(self.dimensions) - len(self._idle) + attributes * (len(Kind) + 1)
        capacity.check("attributes and kinds", dimensions, capacity.DIMENSIONS)

    def intern(self, rows: tuple[Row, ...]) -> int:
        """The number of a predicate. New ones are added unused."""
        number = self._numbers.get(rows)
        return self._add(rows) if number is None else number

    def use(self, words: npt.NDArray[np.int64]) -> None:
        """Count clauses that use predicates. Brings labels up to date after `intern`."""
        self._uses.values[:] += np.bincount(words, minlength=len(self))
        self._order_dimensions()

    def release(self, words: npt.NDArray[np.int64]) -> None:
        """Count clauses that no longer use predicates; those that nobody uses are forgotten."""
        self._uses.values[:] -= np.bincount(words, minlength=len(self))
        for number in np.unique(words[self._uses.values[words] == 0]).tolist():
            self._forget(number)

    def renamed(self) -> list[int]:
        """The dimensions that have come to stand for something else since this was last asked."""
        renamed, self._renamed = self._renamed, []
        return renamed

    def rows(self, word: int) -> tuple[Row, ...]:
        """What a predicate says, in predicates of the compiled form."""
        rows = self._rows[word]
        assert rows is not None, "the predicate is in use"
        return rows

    def intervals(self) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
        """The order predicates of each dimension that has any."""
        for dimension, numbers in self._intervals.items():
            yield dimension, np.fromiter(numbers, np.int64, len(numbers))

    def equality_counts(self) -> npt.NDArray[np.int64]:
        """How many clauses ask for an equality in each dimension."""
        equal = self._operator.values == EQUAL
        counts = np.bincount(
            self._dimension.values[equal], self._uses.values[equal], minlength=len(self.dimensions)
        )
        return counts.astype(np.int64)

    def tests_of(self, dimension: int) -> dict[int, Test]:
        """The predicates of a dimension that need a value rather than its code, and how to ask them."""
        return self._tests.get(dimension, {})

    def arrays(self) -> PredicateArrays:
        """What kernels need to know: views that are valid until the next change."""
        return PredicateArrays(
            self._equal_first.values,
            self._equal.values,
            self._members.head.values,
            self._members.next.values,
            self._members.predicate.values,
            self._operator.values,
            self._dimension.values,
            self._low.values,
            self._high.values,
            self._initial.values,
            self._cell.values,
            self.bands.dimensions,
            self.bands.first,
        )

    def state(self) -> State:
        """The predicates by number, as kernels see them, and all that their dimensions know."""
        self._order_dimensions()
        arrays: Arrays = {
            "operator": self._operator.values,
            "dimension": self._dimension.values,
            "low": self._low.values,
            "high": self._high.values,
            "initial": self._initial.values,
            "cell": self._cell.values,
            "uses": self._uses.values,
            "equal_first": self._equal_first.values,
            "equal_room": np.array(self._equal_room, np.int64),
            "equal": self._equal.values,
        }
        known = [(number, rows) for number, rows in enumerate(self._rows) if rows is not None]
        parts = {
            "table": State({}, arrays, {"predicates": predicate_table(known)}),
            "members": self._members.state(),
            "dimensions": state_of(self.dimensions),
            "bands": self.bands.state(),
        }
        return State.of_parts(parts)

    def restore(self, state: State) -> None:
        """Become what another table was: clusters hold its numbers and codes. Only an empty one can."""
        own = state.part("table")
        self._operator = GrowingArray.of(own.array("operator", np.int8))
        size = len(self._operator)
        self._dimension = GrowingArray.of(own.array("dimension", np.int32, size=size))
        self._low = GrowingArray.of(own.array("low", np.int64, size=size))
        self._high = GrowingArray.of(own.array("high", np.int64, size=size))
        self._initial = GrowingArray.of(own.array("initial", np.uint8, size=size))
        self._cell = GrowingArray.of(own.array("cell", np.int32, size=size), fill=-1)
        self._uses = GrowingArray.of(own.array("uses", np.int64, size=size))
        self._equal_first = GrowingArray.of(own.array("equal_first", np.int64))
        self._equal_room = own.array("equal_room", np.int64).tolist()
        self._equal = GrowingArray.of(own.array("equal", np.int32), fill=-1)
        self._members.restore(state.part("members"))
        self.dimensions = dimensions_of(state.part("dimensions"), self._equal_room)
        for dimension in self.dimensions:
            self.by_attribute.setdefault(dimension.attribute, {})[dimension.kind] = dimension
        self.bands.restore(state.part("bands"), self.dimensions)
        self._restore_rows(own.table("predicates", PREDICATE_ROWS))

    def _restore_rows(self, table: pa.Table) -> None:
        """Know again what the predicates say, and which are of what sort."""
        operator, dimension = self._operator.values, self._dimension.values
        self._rows = [None] * len(operator)
        for number, rows in predicates_of(table):
            require(0 <= number < len(operator) and self._rows[number] is None, "a predicate has no number")
            self._rows[number] = rows
            self._numbers[rows] = number
            self.attributes.add(rows[0][0])
        require(len(self._numbers) == len(self._rows) - self._rows.count(None), "two predicates say the same")
        senses = {number: self._sense(rows) for number, rows in enumerate(self._rows) if rows is not None}
        check_predicates(senses, self.arrays(), self._equal_room, self.dimensions, self.bands)
        self._free = np.flatnonzero(operator < 0).tolist()
        for sense in senses.values():
            sense.dimension.predicates += 1
        for each in self.dimensions:
            if not each.predicates:
                self._retire(each)
        for number in np.flatnonzero(operator == TESTED).tolist():
            self._tests.setdefault(int(dimension[number]), {})[number] = _test(expression_of([self.rows(number)]))
        intervals = np.flatnonzero(operator == INTERVAL)
        for number, its_dimension in zip(intervals.tolist(), dimension[intervals].tolist(), strict=True):
            self._intervals.setdefault(its_dimension, set()).add(number)
        listed = (self._initial.values == FALSE) & (operator >= 0) & (operator != EQUAL)
        self._listed = int(np.count_nonzero(listed))

    def check_uses(self, found: npt.NDArray[np.int64]) -> None:
        """ValueError unless predicates are used as often as was found."""
        require(np.array_equal(found, self._uses.values), "predicates are used more or less often than is said")

    def _sense(self, rows: tuple[Row, ...]) -> Sense:
        """What a predicate says of a dimension that is there; ValueError if it is none."""
        name, operator, operand = rows[0]
        operators = {row[1] for row in rows}
        require(len(rows) == 1 or operators == {"in"} or operators <= BOUNDS.keys(), "a predicate is several")
        require(all(row[0] == name for row in rows) and operator in OPERATORS, "a predicate is of two attributes")
        # The same predicate would be interned anew if it were said in any other way.
        require(rows == tuple(sorted(set(rows))), "a predicate is not said as it is known")
        require(
            all(each == canonical(operator, each) for _, _, each in rows), "an operand is not said as it is known"
        )
        code, kind = meaning(operator, operand)
        dimension = self.by_attribute[name][kind]
        if code in (TESTED, IS_PRESENT, IS_ABSENT):
            expression_of([rows])  # looks at its parts itself
            return Sense(code, dimension, (), 0, 0)
        constants = [constant_in(each) for _, _, each in rows]
        require(all(kind_of(constant) is kind for constant in constants), "a predicate is of two kinds")
        low, high = 0, 0
        if code == INTERVAL:
            require(kind not in SPATIAL_KINDS, "shapes are in no order")
            low, high = self._bounds_in_labels(dimension, rows)
        elif code != MEMBER:
            low = dimension.codes[constants[0]]
        return Sense(code, dimension, constants, low, high)

    def _add(self, rows: tuple[Row, ...]) -> int:
        number = self._free.pop() if self._free else len(self._rows)
        if number == len(self._rows):
            self._rows.append(None)
            for array in (self._operator, self._dimension, self._low, self._high, self._initial, self._cell):
                array.grow_to(number + 1)
            self._uses.grow_to(number + 1)
        self._rows[number] = rows
        self._numbers[rows] = number
        self._uses.values[number] = 0
        self.attributes.add(rows[0][0])
        operator, dimension, low = self._understood(number, rows)
        self._operator.values[number] = operator
        self._dimension.values[number] = dimension.number
        self._low.values[number] = low
        self._cell.values[number] = -1
        self._initial.values[number] = FALSE if operator in _LED_TO else UNKNOWN
        self._listed += self._is_listed(number)
        self._link(number, operator, dimension)
        return number

    def _understood(self, number: int, rows: tuple[Row, ...]) -> tuple[int, Dimension, int]:
        """A predicate's operator for kernels, its dimension and its first operand."""
        attribute, operator, operand = rows[0]
        code, kind = meaning(operator, operand)
        dimension = self._dimension_for(attribute, kind)
        dimension.predicates += 1
        if code == TESTED:
            self._tests.setdefault(dimension.number, {})[number] = _test(expression_of([rows]))
        return code, dimension, dimension.hold(constant_in(operand)) if code in (EQUAL, DIFFERENT) else 0

    def _is_listed(self, number: int) -> bool:
        """Whether phase one may list a predicate along with others of its dimension."""
        return bool(self._initial.values[number] == FALSE and self._operator.values[number] != EQUAL)

    def _link(self, number: int, operator: int, dimension: Dimension) -> None:
        """Put a new predicate where phase one finds it."""
        if operator in (EQUAL, DIFFERENT):
            place = self._place(dimension, int(self._low.values[number]))
            if operator == EQUAL:
                self._equal.values[place] = number
        if operator == MEMBER:
            for _, _, operand in self.rows(number):
                self._members.add(self._place(dimension, dimension.hold(constant_in(operand))), number)
        if operator == INTERVAL:
            self._intervals.setdefault(dimension.number, set()).add(number)
            self._unordered.setdefault(dimension.number, []).append(number)
            for _, _, operand in self.rows(number):
                dimension.order.hold(constant_in(operand))

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
            # Whatever fails from here on, the keys of clusters can be read.
            self._equal_first.values[number] = start
            self._equal_room[number] = room
            self._equal.values[old : old + used] = -1
            self._members.head.values[old : old + used] = -1
        return int(self._equal_first.values[number]) + code

    def _dimension_for(self, attribute: str, kind: Kind | None) -> Dimension:
        of_attribute = self.by_attribute.setdefault(attribute, {})
        found = of_attribute.get(kind)
        if found is None:
            found = self._idle.pop((attribute, kind), None) or self._new_dimension(attribute, kind)
            of_attribute[kind] = found
        return found

    def _new_dimension(self, attribute: str, kind: Kind | None) -> Dimension:
        """A dimension with the number of one that nobody looks at, and its room for constants, or a new number."""
        while self._spare:
            known = self.dimensions[heappop(self._spare)]
            known.is_spare = False
            if self._idle.pop((known.attribute, known.kind), None) is not None:
                found = self.dimensions[known.number] = known.renamed(attribute, kind)
                self.bands.forget(found.number)
                self._renamed.append(found.number)
                return found
        found = Dimension(len(self.dimensions), attribute, kind)
        self.dimensions.append(found)
        self._equal_first.append(0)
        self._equal_room.append(0)
        return found

    def _retire(self, dimension: Dimension) -> None:
        """Take note that no predicate looks at a dimension any more."""
        of_attribute = self.by_attribute[dimension.attribute]
        del of_attribute[dimension.kind]
        if not of_attribute:
            del self.by_attribute[dimension.attribute]
        self._idle[dimension.attribute, dimension.kind] = dimension
        if not dimension.is_spare:
            dimension.is_spare = True
            heappush(self._spare, dimension.number)

    def _forget(self, number: int) -> None:
        rows = self.rows(number)
        self._unlink(number, rows)
        self._listed -= self._is_listed(number)
        self._rows[number] = None
        self._operator.values[number] = -1
        del self._numbers[rows]
        self._free.append(number)
        self.attributes.drop(rows[0][0])
        dimension = self.dimensions[int(self._dimension.values[number])]
        dimension.predicates -= 1
        if not dimension.predicates:
            self._retire(dimension)

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
                code = dimension.codes[constant_in(operand)]
                self._members.discard(self._place(dimension, code), number)
                dimension.drop(code)
        elif operator == TESTED:
            tests = self._tests[dimension.number]
            del tests[number]
            if not tests:
                del self._tests[dimension.number]
        if operator == INTERVAL:
            intervals = self._intervals[dimension.number]
            intervals.discard(number)
            if not intervals:
                del self._intervals[dimension.number]
            for _, _, operand in rows:
                dimension.order.drop(constant_in(operand))

    def _order_dimensions(self) -> None:
        """Give new order predicates, or all of a dimension whose labels are new, their bounds in labels."""
        unordered, self._unordered = self._unordered, {}
        for dimension, new in unordered.items():
            relabelled = self.dimensions[dimension].order.settle()
            known = self._intervals.get(dimension, set())
            numbers = known if relabelled else known.intersection(new)
            self._bound(self.dimensions[dimension], numbers)
            if relabelled:
                self.bands.relabel(self.dimensions[dimension])
            self._cell.values[list(numbers)] = self.bands.cells(dimension, *self._bounds(numbers))

    def _bound(self, dimension: Dimension, numbers: Collection[int]) -> None:
        for number in numbers:
            self._low.values[number], self._high.values[number] = self._bounds_in_labels(
                dimension, self.rows(number)
            )

    def _bounds_in_labels(self, dimension: Dimension, rows: tuple[Row, ...]) -> tuple[int, int]:
        low, high = LOWEST, HIGHEST
        for _, operator, operand in rows:
            from_below, offset = BOUNDS[operator]
            label = dimension.order.label_of_constant(constant_in(operand)) + offset
            low, high = (label, high) if from_below else (low, label)
        return low, high

    def _bounds(self, numbers: Collection[int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        return self._low.values[list(numbers)], self._high.values[list(numbers)]

    def reband(self) -> list[int]:
        """Cut dimensions that have come to have many more order predicates into bands; which have new ones.

        Clauses in the cells of these have to be placed anew before the next event.
        """
        changed = []
        for dimension, numbers in self._intervals.items():
            if self.bands.outgrown(dimension, len(numbers)):
                self.bands.cut(self.dimensions[dimension], len(numbers))
                self._cell.values[list(numbers)] = self.bands.cells(dimension, *self._bounds(numbers))
                changed.append(dimension)
        return changed


def _test(expression: Expression) -> Test:
    leaf, wanted = (expression.term, False) if isinstance(expression, Not) else (expression, True)
    predicate: Predicate = leaf  # type: ignore[assignment]  # a single compiled predicate is a leaf or its negation
    return lambda value: holds(predicate, value) is wanted
