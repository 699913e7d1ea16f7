"""Events from dictionaries to codes and labels, value by value, with as little Python for each as can be."""

from __future__ import annotations

from collections.abc import Callable, MutableSequence
from decimal import Decimal
from typing import TypeAlias

from harken.matching.encoding.columns import EventColumns
from harken.matching.kernels.layout import UNLISTED
from harken.matching.predicates.dimensions import Dimension
from harken.matching.predicates.table import PredicateTable
from harken.model.events import FlatEvent
from harken.model.foreign import FlatValue, Foreign
from harken.model.values import EventValue, Kind, kind_of_class

Codes: TypeAlias = MutableSequence[int] | memoryview
Further: TypeAlias = Callable[[EventValue, Codes, list[int]], None]
Step: TypeAlias = tuple[int, Callable[[FlatValue, int], int], Further | None]
"""What to do with a value: the column its code goes to, how to find its code, and what else to find out."""


class RowReader:
    """Reads events for the predicates of one table, as they are now. For one thread: columns come as it reads."""

    def __init__(self, predicates: PredicateTable, columns: EventColumns) -> None:
        self._predicates = predicates
        self._mentioned, self._above = predicates.attributes.counts, predicates.attributes.above
        self.columns = columns
        self._steps: dict[str, dict[type, tuple[Step, ...]]] = {}

    def read(self, event: FlatEvent, code: Codes, label: Codes, also: list[int]) -> None:
        """Write an event's codes and labels, by their columns; list other predicates that hold.

        Full if the event has a dimension that there is no column for: then it has to be read anew, with more room.
        """
        known = self._steps
        for name, value in event.items():
            by_class = known.get(name)
            if by_class is None:
                if name not in self._mentioned and name not in self._above:
                    continue
                by_class = known[name] = {}
            steps = by_class.get(type(value))
            if steps is None:
                steps = by_class[type(value)] = self._steps_for(name, type(value))
            for column, code_of, further in steps:
                code[column] = code_of(value, UNLISTED)
                if further is not None:
                    further(value, label, also)  # type: ignore[arg-type]  # never for a foreign one

    def _steps_for(self, name: str, its_class: type) -> tuple[Step, ...]:
        if its_class is Foreign:
            dimensions = presence_dimensions(self._predicates, name)
            return tuple((self.columns.of(dimension), _unlisted, None) for dimension in dimensions)
        of_attribute = self._predicates.by_attribute.get(name, {})
        kinds: tuple[Kind | None, ...] = (kind_of_class(its_class), None)
        return tuple(self._step(of_attribute[kind], its_class) for kind in kinds if kind in of_attribute)

    def _step(self, dimension: Dimension, its_class: type) -> Step:
        column, further = self.columns.of(dimension), self._further(dimension)
        if dimension.kind is None:
            return column, _unlisted, further
        if its_class is Decimal:
            return column, lambda value, _: dimension.code_of(value), further
        return column, dimension.codes.get, further  # type: ignore[return-value]

    def _further(self, dimension: Dimension) -> Further | None:
        column = int(self.columns.label_column[self.columns.of(dimension)])
        tests = self._predicates.tests_of(dimension.number)
        if column < 0 and tests is None:
            return None

        def find_label(value: EventValue, label: Codes, also: list[int]) -> None:
            label[column] = dimension.order.label_of(value)

        if tests is None:
            return find_label
        passed_by = tests.passed_by

        def find_out(value: EventValue, label: Codes, also: list[int]) -> None:
            if column >= 0:
                find_label(value, label, also)
            also.extend(passed_by(value))

        return find_out


def presence_dimensions(predicates: PredicateTable, name: str, *, below_only: bool = False) -> list[Dimension]:
    """Where it is asked whether there is a value at all: of a name and of all those below it."""
    names = [*([] if below_only else [name]), *predicates.attributes.below(name)]
    of_names = (predicates.by_attribute.get(each, {}) for each in names)
    return [each[None] for each in of_names if None in each]


def _unlisted(value: FlatValue, default: int) -> int:
    return default
