"""The distinct predicates of all subscriptions. Each is kept once, has a number, and counts who uses it.

**Enumerated** predicates are found true in phase one: equalities through their constant, sets through their
members, and tests that need more than integers. The others are evaluated in clusters, where they are first met.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.matching.events.mentions import Mentions
from harken.matching.kernels.layout import (
    DIFFERENT,
    EQUAL,
    FALSE,
    INTERVAL,
    MEMBER,
    TESTED,
    UNKNOWN,
    PredicateArrays,
)
from harken.matching.predicates.columns import PredicateColumns
from harken.matching.predicates.constants import ConstantIndex
from harken.matching.predicates.dimensions import Dimension, Dimensions, state_of
from harken.matching.predicates.intervals import Bounded, Expected, Intervals, Recut
from harken.matching.predicates.rows import (
    PREDICATE_ROWS,
    Row,
    constant_in,
    meaning,
    predicate_table,
    predicates_of,
)
from harken.matching.predicates.soundness import check_predicates, sense_of
from harken.matching.predicates.value_tests import SettledTests, ValueTests
from harken.matching.saving import State, require
from harken.model import capacity
from harken.model.values import Kind, Value
from harken.normal.operators import expression_of

_LISTED = (MEMBER, TESTED)
"""Operators of predicates that phase one finds from an event's values, perhaps several in one dimension ..."""

_LED_TO = (EQUAL, *_LISTED)
"""... and those of which it finds one."""


class PredicateTable:
    """Predicates by number. Changes must not run beside anything else; `arrays` may be read by any thread.

    It knows what each predicate says. What kernels know of it is in columns, in the index of constants, or among
    the intervals; which attributes and kinds are looked at, the dimensions know.
    """

    def __init__(self) -> None:
        self.attributes = Mentions()
        """The attributes that predicates in use mention."""
        self._numbers: dict[tuple[Row, ...], int] = {}
        self._rows: list[tuple[Row, ...] | None] = []
        self._free: list[int] = []
        self._columns = PredicateColumns()
        self._constants = ConstantIndex()
        self._intervals = Intervals(self._columns)
        self.bands = self._intervals.bands
        self._dimensions = Dimensions(forget=self.bands.forget)
        self.dimensions, self.by_attribute = self._dimensions.all, self._dimensions.by_attribute
        """By number, and those that predicates look at."""
        self._tests: dict[int, ValueTests] = {}
        self._unsettled: set[int] = set()
        """Dimensions of which tests have come or gone since they were last seen to be settled."""
        self._listed = 0
        self._has_new = False

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
    def nbytes(self) -> int:
        """Bytes taken by the arrays, and by what finds patterns and shapes."""
        tests = sum(each.nbytes for each in self._tests.values())
        return self._columns.nbytes + self._constants.nbytes + tests

    def check_room(self, more: int, attributes: int) -> None:
        """CapacityError if so many more predicates on so many attributes, all of them new, had no numbers."""
        known = len(self) + len(self._constants.members.next)
        capacity.check("distinct predicates and members of sets", known + more, capacity.PREDICATES)
        dimensions = self._dimensions.in_use + attributes * (len(Kind) + 1)
        capacity.check("attributes and kinds", dimensions, capacity.DIMENSIONS)

    # ---------------------------------------------------------------- what is known

    def has_new(self) -> bool:
        """Whether predicates have been given numbers since this was last asked."""
        has_new, self._has_new = self._has_new, False
        return has_new

    def renamed(self) -> list[int]:
        """The dimensions that have come to stand for something else since this was last asked."""
        return self._dimensions.renamed()

    @property
    def ordered_count(self) -> int:
        """In how many dimensions order is asked for."""
        return len(self._intervals)

    def is_ordered(self, dimension: int) -> bool:
        """Whether order is asked for in a dimension."""
        return dimension in self._intervals

    def intervals(self) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
        """The order predicates of each dimension that has any."""
        return iter(self._intervals)

    def rows(self, word: int) -> tuple[Row, ...]:
        """What a predicate says, in predicates of the compiled form."""
        rows = self._rows[word]
        assert rows is not None, "the predicate is in use"
        return rows

    def tests_of(self, dimension: int) -> ValueTests | None:
        """The predicates of a dimension that need a value rather than its code, if there are any."""
        return self._tests.get(dimension)

    def equality_counts(self) -> npt.NDArray[np.int64]:
        """How many clauses ask for an equality in each dimension."""
        columns = self._columns
        equal = columns.operator.values == EQUAL
        counts = np.bincount(
            columns.dimension.values[equal], columns.uses.values[equal], minlength=len(self.dimensions)
        )
        return counts.astype(np.int64)

    def share_of_truths(self) -> float:
        """The part of all that clauses ask that are equalities of truths."""
        columns = self._columns
        is_truth = np.array([each.kind is Kind.BOOL for each in self.dimensions], bool)
        used, uses = columns.operator.values >= 0, columns.uses.values
        asked = used & (columns.operator.values == EQUAL)
        of_truths = int(uses[asked][is_truth[columns.dimension.values[asked]]].sum())
        return of_truths / max(1, int(uses[used].sum()))

    def arrays(self) -> PredicateArrays:
        """What kernels need to know: views that are valid until the next change."""
        columns, constants = self._columns, self._constants
        return PredicateArrays(
            constants.first.values,
            constants.equal.values,
            constants.members.head.values,
            constants.members.next.values,
            constants.members.predicate.values,
            columns.operator.values,
            columns.dimension.values,
            columns.low.values,
            columns.high.values,
            columns.intervals,
            columns.initial.values,
            columns.cell.values,
            self.bands.dimensions,
            self.bands.first,
        )

    # ---------------------------------------------------------------- changes

    def intern(self, rows: tuple[Row, ...]) -> int:
        """The number of a predicate. New ones are added unused."""
        number = self._numbers.get(rows)
        return self.intern_many([rows])[0] if number is None else number

    def intern_many(self, several: Sequence[tuple[Row, ...]]) -> list[int]:
        """The numbers of predicates, as `intern` gives them one by one."""
        found, new = [], []
        for rows in several:
            number = self._numbers.get(rows)
            if number is None:  # one that is free, or the next
                number = self._free.pop() if self._free else len(self._rows)
                if number == len(self._rows):
                    self._rows.append(rows)
                self._rows[number] = rows
                self._numbers[rows] = number
                new.append(number)
            found.append(number)
        if new:
            self._has_new = True
            self._columns.grow_to(len(self._rows))
            self._enter(new)
        return found

    def make_room(self, several: Sequence[tuple[Row, ...]]) -> None:
        """Have room for predicates that are to get numbers. Nothing that others read is changed."""
        self._columns.make_room(len(self) + len(several))
        constants = [len(each.constants) for each in self.dimensions]
        self._constants.make_room(sum(map(len, several)), constants)

    def unknown(self, several: Sequence[tuple[Row, ...]]) -> list[tuple[Row, ...]]:
        """Those of some predicates that have no numbers, each once."""
        return [rows for rows in dict.fromkeys(several) if rows not in self._numbers]

    def numbers(self, several: Sequence[tuple[Row, ...]]) -> list[int]:
        """The numbers of predicates that have some."""
        numbers = self._numbers
        return [numbers[rows] for rows in several]

    def use(self, words: npt.NDArray[np.int64]) -> None:
        """Count clauses that use predicates. Brings labels up to date after `intern`."""
        np.add.at(self._columns.uses.values, words, 1)
        self._intervals.settle(self.dimensions)

    @property
    def tests_are_settled(self) -> bool:
        """Whether there are structures for nearly all tests. Only those are looked at that have changed."""
        if self._unsettled:  # those that are settled are so until they change
            self._unsettled = {each for each in self._with_tests() if not self._tests[each].is_settled}
        return not self._unsettled

    def settle_tests(self) -> None:
        """Have structures for tests that came, if they are many, and for what is left of others."""
        if self._unsettled:
            self.have_tests(self.settled_tests())

    def settled_tests(self) -> dict[int, SettledTests]:
        """What `settle_tests` has. Nothing that others read changes, and nothing may before this is had."""
        return {each: self._tests[each].settled() for each in self._with_tests()}

    def have_tests(self, settled: Mapping[int, SettledTests]) -> list[SettledTests]:
        """Have structures for tests as were just made; what was there, which takes long to free."""
        self._unsettled.clear()
        return [self._tests[dimension].have(several) for dimension, several in settled.items()]

    def _with_tests(self) -> set[int]:
        """The dimensions whose tests have changed, of those that have any."""
        return self._unsettled & self._tests.keys()

    def bounds_of_new(self) -> list[Bounded]:
        """The bounds of predicates that have got numbers since `have`. Nothing that others read changes."""
        return self._intervals.bounds_of_new(self.dimensions)

    def have_bounds(self, several: Sequence[Bounded]) -> None:
        """Have predicates bounded so."""
        self._intervals.have_bounds(several)

    def release(self, words: npt.NDArray[np.int64]) -> None:
        """Count clauses that no longer use predicates; those that nobody uses are forgotten."""
        uses = self._columns.uses.values
        np.subtract.at(uses, words, 1)
        for number in sorted(set(words[uses[words] == 0].tolist())):
            self._forget(number)

    def leading(self, several: Sequence[tuple[Row, ...]]) -> list[tuple[Row, ...]]:
        """Of some predicates the first one that looks at each dimension that none has looked at."""
        first: dict[tuple[str, Kind | None], tuple[Row, ...]] = {}
        for rows in several:
            attribute, operator, operand = rows[0]
            first.setdefault((attribute, meaning(operator, operand.type)[1]), rows)
        return [rows for (attribute, kind), rows in first.items() if not self._looks_at(attribute, kind)]

    def _looks_at(self, attribute: str, kind: Kind | None) -> bool:
        return kind in self.by_attribute.get(attribute, {})

    def expect(self, several: Sequence[tuple[Row, ...]]) -> list[Expected]:
        """What labels are to be once these predicates have numbers, of dimensions that others look at.

        Nothing that others read changes.
        """
        constants: dict[int, list[Value]] = {}
        for rows in several:
            attribute, its_operator, operand = rows[0]
            operator, kind = meaning(its_operator, operand.type)
            if operator == INTERVAL:
                dimension = self.by_attribute[attribute][kind].number
                constants.setdefault(dimension, []).extend(constant_in(each) for _, _, each in rows)
        told = (self._intervals.expect(self.dimensions[at], those) for at, those in constants.items())
        return [each for each in told if each is not None]

    def have(self, expected: Expected) -> object:
        """Have labels of a dimension as was just told; what they replace, to be freed when nobody waits."""
        return self._intervals.have(expected)

    def recuts(self) -> list[Recut]:
        """How to cut dimensions into bands that have come to have many more order predicates.

        Nothing that others read changes.
        """
        return self._intervals.recuts(self.dimensions)

    def have_recut(self, recuts: Sequence[Recut]) -> list[int]:
        """Have dimensions cut as was just told: which.

        Clauses in the cells of these have to be placed anew before the next event.
        """
        self._intervals.have_recut(recuts)
        return [each.dimension.number for each in recuts]

    def _enter(self, new: list[int]) -> None:
        """Have kernels know predicates that have just been given numbers."""
        columns, constants = self._columns, self._constants
        # Each look at `values` takes as long as an entry, and they stay as they are until the columns grow.
        operators, dimensions, low = columns.operator.values, columns.dimension.values, columns.low.values
        uses, cell, initial = columns.uses.values, columns.cell.values, columns.initial.values
        for number in new:
            rows = self.rows(number)
            attribute, its_operator, operand = rows[0]
            self.attributes.add(attribute)
            operator, kind = meaning(its_operator, operand.type)
            dimension = self._dimensions.look_at(attribute, kind)
            constants.have_dimensions(len(self.dimensions))
            code = dimension.hold(constant_in(operand)) if operator in (EQUAL, DIFFERENT) else 0
            uses[number], cell[number], low[number] = 0, -1, code
            operators[number], dimensions[number] = operator, dimension.number
            initial[number] = FALSE if operator in _LED_TO else UNKNOWN
            self._listed += operator in _LISTED
            self._link(number, rows, operator, dimension, code)

    def _link(self, number: int, rows: tuple[Row, ...], operator: int, dimension: Dimension, code: int) -> None:
        """Put a new predicate where phase one, or who gives it bounds, finds it."""
        constants = self._constants
        if operator in (EQUAL, DIFFERENT):
            place = constants.place(dimension.number, code)
            if operator == EQUAL:
                constants.equal.values[place] = number
        elif operator == MEMBER:
            for _, _, operand in rows:
                place = constants.place(dimension.number, dimension.hold(constant_in(operand)))
                constants.members.add(place, number)
        elif operator == TESTED:
            self._know_test(number, dimension.number, rows)
        elif operator == INTERVAL:
            self._intervals.add(dimension, number, rows)

    def _know_test(self, number: int, dimension: int, rows: tuple[Row, ...]) -> None:
        self._tests.setdefault(dimension, ValueTests()).add(number, expression_of([rows]))
        self._unsettled.add(dimension)

    def _forget(self, number: int) -> None:
        rows, operator = self.rows(number), int(self._columns.operator.values[number])
        dimension = self.dimensions[int(self._columns.dimension.values[number])]
        self._unlink(number, operator, dimension)
        self._listed -= operator in _LISTED
        self._rows[number] = None
        self._columns.operator.values[number] = -1
        del self._numbers[rows]
        self._free.append(number)
        self.attributes.drop(rows[0][0])
        self._dimensions.look_away(dimension)

    def _unlink(self, number: int, operator: int, dimension: Dimension) -> None:
        constants = self._constants
        if operator in (EQUAL, DIFFERENT):
            code = int(self._columns.low.values[number])
            if operator == EQUAL:
                constants.equal.values[constants.place(dimension.number, code)] = -1
            dimension.drop(code)
        elif operator == MEMBER:
            for _, _, operand in self.rows(number):
                code = dimension.codes[constant_in(operand)]
                constants.members.discard(constants.place(dimension.number, code), number)
                dimension.drop(code)
        elif operator == TESTED:
            tests = self._tests[dimension.number]
            tests.discard(number)
            self._unsettled.add(dimension.number)
            if not len(tests):
                del self._tests[dimension.number]
        elif operator == INTERVAL:
            self._intervals.drop(dimension, number)

    # ---------------------------------------------------------------- saved and restored

    def state(self) -> State:
        """The predicates by number, as kernels see them, and all that their dimensions know."""
        self._intervals.settle(self.dimensions)
        arrays = {**self._columns.state(), **self._constants.state()}
        known = [(number, rows) for number, rows in enumerate(self._rows) if rows is not None]
        parts = {
            "table": State({}, arrays, {"predicates": predicate_table(known)}),
            "members": self._constants.members.state(),
            "dimensions": state_of(self.dimensions),
            "bands": self.bands.state(),
        }
        return State.of_parts(parts)

    def restore(self, state: State) -> None:
        """Become what another table was: clusters hold its numbers and codes. Only an empty one can."""
        own = state.part("table")
        self._columns.restore(own)
        self._constants.restore(own, state.part("members"))
        self._dimensions.restore(state.part("dimensions"), self._constants.room)
        self.bands.restore(state.part("bands"), self.dimensions)
        self._restore_rows(own.table("predicates", PREDICATE_ROWS))

    def _restore_rows(self, table: pa.Table) -> None:
        """Know again what the predicates say, and which are of what sort."""
        size = len(self._columns)
        self._rows = [None] * size
        for number, rows in predicates_of(table):
            require(0 <= number < size and self._rows[number] is None, "a predicate has no number")
            self._rows[number] = rows
            self._numbers[rows] = number
            self.attributes.add(rows[0][0])
        require(len(self._numbers) == size - self._rows.count(None), "two predicates say the same")
        known = ((number, rows) for number, rows in enumerate(self._rows) if rows is not None)
        senses = {number: sense_of(rows, self.by_attribute) for number, rows in known}
        check_predicates(senses, self.arrays(), self._constants.room, self.dimensions, self.bands)
        self._free = np.flatnonzero(self._columns.operator.values < 0).tolist()
        for number, (operator, dimension, *_) in senses.items():
            dimension.predicates += 1
            self._listed += operator in _LISTED
            if operator == TESTED:
                self._know_test(number, dimension.number, self.rows(number))
            elif operator == INTERVAL:
                self._intervals.know(dimension, number, self.rows(number))
        self.settle_tests()
        self._dimensions.retire_idle()

    def check_uses(self, found: npt.NDArray[np.int64]) -> None:
        """ValueError unless predicates are used as often as was found."""
        said = "predicates are used more or less often than is said"
        require(np.array_equal(found, self._columns.uses.values), said)
