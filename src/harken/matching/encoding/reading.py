"""Events from dictionaries to codes and labels, value by value, with as little Python for each as can be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableSequence, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

from harken.matching.encoding.columns import EventColumns
from harken.matching.kernels.layout import UNLISTED
from harken.matching.predicates.dimensions import Dimension
from harken.matching.predicates.table import PredicateTable
from harken.matching.predicates.value_tests import ValueTests
from harken.model.events import PLAIN, Event
from harken.model.foreign import FlatValue, Foreign
from harken.model.values import CLASSES, INT_MAX, INT_MIN, EventValue, kind_of_class

Codes: TypeAlias = MutableSequence[int] | memoryview

MOST_UNASKED = 4_096
"""Names that nobody asks for, which are remembered as such: events may have any number."""

NOWHERE = -1
"""In place of a column: a value that nobody asks for has no code."""


class Step(NamedTuple):
    """What to do with a value of one class under one name."""

    column: int
    """Where its code goes."""
    code_of: Callable[[Any, int], int]
    """Finds it, or gives back what is said of values that equal no constant."""
    more: More | None
    """What else there is to do."""


class More(NamedTuple):
    """What few values want."""

    label_column: int
    """Where its label goes; -1 if order is not asked for."""
    labels_of: Callable[[Any], int | None]
    """Finds it quickly, for a value that equals a constant."""
    label_of: Callable[[EventValue], int]
    """Finds it for any value."""
    presence: tuple[int, ...]
    """Further columns, which only say that there is a value."""
    tests: tuple[ValueTests, ...]


class RowReader:
    """Reads events for the predicates of one table, as they are now. For one thread: columns come as it reads."""

    def __init__(self, predicates: PredicateTable, columns: EventColumns) -> None:
        self.predicates = predicates
        self.columns = columns
        self._steps: dict[str, Mapping[type, Step]] = {}
        """By name, what to do with values of the classes that have been met there."""

    def read(self, event: Event, code: Codes, label: Codes, also: list[int], *, is_checked: bool = True) -> bool:
        """Write an event's codes and labels, by their columns; list other predicates that hold.

        Of an event that has not been checked, False as soon as there is anything that a flat event might not have:
        what was written so far means nothing then. No code of anybody else is run: what is looked up is of classes
        of our own, as has been seen by comparing them. Who equals a constant needs no check, as that has had one.

        Full if the event has a dimension that there is no column for: then it has to be read anew, with more room.
        """
        known = self._steps
        for name, value in event.items():
            its_class = type(value)
            if not (its_class is int or its_class is str or its_class is float or its_class is bool or is_checked):
                return False
            if type(name) is not str:
                return False
            try:
                column, code_of, more = known[name][its_class]
            except KeyError:
                column, code_of, more = self._new_step(name, its_class)
            found = code_of(value, UNLISTED)
            if not found:
                if not (is_checked or (name and PLAIN[its_class](value))):
                    return False
                if column == NOWHERE:
                    continue
            code[column] = found
            if more is not None:
                label_column, labels_of, label_of, presence, tests = more
                if label_column >= 0:
                    its_label = labels_of(value)
                    label[label_column] = label_of(value) if its_label is None else its_label  # type: ignore[arg-type]
                for each in presence:
                    code[each] = UNLISTED
                for test in tests:
                    also.extend(test.passed_by(value))  # type: ignore[arg-type]  # never a foreign one
        return True

    def remembers(self, name: str) -> bool:
        """Whether values under this name have been met, and what to do with them is known."""
        return name in self._steps

    def passes_over(self, name: str) -> bool:
        """Whether it is known that nobody asks for values under this name, nor below it."""
        return self._steps.get(name) is _UNASKED

    def _new_step(self, name: str, its_class: type) -> Step:
        """What to do with values of a class that has not been met under this name."""
        of_name, attributes = self._steps.get(name), self.predicates.attributes
        if of_name is None:
            if not attributes.concern(name):
                if len(self._steps) < len(attributes) + MOST_UNASKED and name:
                    self._steps[name] = _UNASKED
                return _PASSED_OVER
            of_name = self._steps[name] = {}
        step = of_name[its_class] = self._step(name, its_class)  # type: ignore[index]  # the other one has them all
        return step

    def _step(self, name: str, its_class: type) -> Step:
        if its_class is Foreign:
            return _presence_step([self.columns.of(each) for each in presence_dimensions(self.predicates, name)])
        of_attribute = self.predicates.by_attribute.get(name, {})
        of_kind, of_any = of_attribute.get(kind_of_class(its_class)), of_attribute.get(None)
        looked_at = [self.predicates.tests_of(each.number) for each in (of_kind, of_any) if each is not None]
        tests = tuple(each for each in looked_at if each is not None)
        presence = () if of_any is None else (self.columns.of(of_any),)
        if of_kind is None:
            return _presence_step(presence, tests)
        column, order = self.columns.of(of_kind), of_kind.order
        label_column = int(self.columns.label_column[column])
        more = None
        if label_column >= 0 or presence or tests:
            # Decimals do not meet constants as Python's own comparison has it.
            labels_of = _no_label if its_class is Decimal else order.known_labels.get
            more = More(label_column, labels_of, order.label_of, presence, tests)
        return Step(column, _code_finder(of_kind, its_class), more)


def _code_finder(dimension: Dimension, its_class: type) -> Callable[[Any, int], int]:
    """What finds the codes of values of a class in their dimension."""
    codes = dimension.codes
    if its_class is Decimal:
        return lambda value, _: dimension.code_of(value)
    if its_class is int and dimension.has_huge:  # which integers of more than 64 bits may equal, and are foreign
        return lambda value, unlisted: codes.get(value, unlisted) if INT_MIN <= value <= INT_MAX else unlisted
    return codes.get


def _presence_step(columns: Sequence[int], tests: tuple[ValueTests, ...] = ()) -> Step:
    """For values that equal no constant: what is asked is whether there is one, or what it takes tests to find."""
    if not columns:
        return _PASSED_OVER
    first, *others = columns
    more = More(-1, _no_label, _unlisted, tuple(others), tests) if others or tests else None
    return Step(first, _unlisted, more)


def presence_dimensions(predicates: PredicateTable, name: str, *, below_only: bool = False) -> list[Dimension]:
    """Where it is asked whether there is a value at all: of a name and of all those below it."""
    names = [*([] if below_only else [name]), *predicates.attributes.below(name)]
    of_names = (predicates.by_attribute.get(each, {}) for each in names)
    return [each[None] for each in of_names if None in each]


def _unlisted(_: FlatValue, default: int = UNLISTED) -> int:
    return default


def _no_label(_: EventValue) -> None:
    return None


_PASSED_OVER = Step(NOWHERE, _unlisted, None)
_UNASKED: Mapping[type, Step] = dict.fromkeys((*CLASSES, Foreign), _PASSED_OVER)
"""What to do with values that nobody asks for."""
