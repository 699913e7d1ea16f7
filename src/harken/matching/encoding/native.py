"""What kernels do with values when they read an event: the steps of a `RowReader`, as numbers and addresses."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from harken.matching.encoding.reading import NOWHERE, RowReader
from harken.matching.kernels.reading import (
    CLASS,
    CLASSES,
    CODE_COLUMN,
    CODES,
    HIGHEST,
    IS_KNOWN,
    LABEL_COLUMN,
    LABELS,
    LOWEST,
    NAMES,
    NONE,
    ORDERED,
    PLACES,
    PRESENCE_COLUMN,
    REMAINDER,
    STEP,
    Reading,
)
from harken.matching.predicates.ordering import ConstantOrder
from harken.model.foreign import FlatValue
from harken.model.values import Kind, kind_of_class

PLAIN = int, str, float, bool
"""Classes whose values kernels read, in the order in which these number them."""

FIRST_NAMES = 64

MANY = 1_024
"""Events after which it pays to have labels by place."""


class NativeSteps:
    """The steps that kernels know: of plain values, unless there are tests, or constants that take code to meet.

    Names get their numbers when values under them have been read by Python, which also finds their columns.
    """

    def __init__(self, reader: RowReader) -> None:
        self._reader = reader
        self._names: dict[str, int] = {}
        self._settled = set[tuple[str, type]]()
        """Names and classes of which it has been seen whether kernels can read them."""
        self._named: list[object] = []
        """Whatever steps have addresses of."""
        self._labelled: dict[int, ConstantOrder] = {}
        """By step: the order that ints are labelled by, one after the other looked up among its constants."""
        self._events = 0
        self.remainder: dict[str, FlatValue] = {}
        """What is left of an event for Python to read."""
        objects = np.zeros(CLASS + CLASSES, np.int64)
        objects[[NAMES, REMAINDER, NONE]] = id(self._names), id(self.remainder), id(None)
        objects[CLASS:] = [id(each) for each in PLAIN]
        self.reading = Reading(objects, np.zeros((FIRST_NAMES * CLASSES, STEP), np.int64))

    def learn(self, values: Mapping[str, FlatValue]) -> bool:
        """Let kernels read such values from now on, where they can; whether there is more of `reading` then.

        The reader has just read these.
        """
        before = self.reading
        for name, value in values.items():
            its_class = type(value)
            if its_class in PLAIN and (name, its_class) not in self._settled and self._reader.remembers(name):
                self._settled.add((name, its_class))
                step = self._step(name, its_class)
                if step is not None:
                    self._have(name, its_class, step)
        return self.reading is not before

    def note(self, events: int) -> None:
        """So many events more have been read."""
        self._events += events
        if self._events >= MANY:
            while self._labelled:
                self._have_places(*self._labelled.popitem())

    def _have_places(self, row: int, order: ConstantOrder) -> None:
        """Have the labels of ints by place, if their constants lie close enough together."""
        labels, lowest = order.labels_by_place()
        if labels is not None:
            step = self.reading.steps[row]
            self._named.append(labels)
            step[[LOWEST, HIGHEST]] = lowest, lowest + len(labels) - 1
            step[PLACES] = labels.ctypes.data

    def _have(self, name: str, its_class: type, step: dict[int, int]) -> None:
        number = self._names.get(name, len(self._names))
        steps = self.reading.steps
        if number * CLASSES == len(steps):
            steps = np.concatenate([steps, np.zeros_like(steps)])
            self.reading = self.reading._replace(steps=steps)
        at = number * CLASSES + PLAIN.index(its_class)
        row = steps[at]
        row[[CODE_COLUMN, LABEL_COLUMN, PRESENCE_COLUMN]] = NOWHERE
        for column, what in step.items():
            row[column] = what
        row[IS_KNOWN] = True
        self._names[name] = number
        if its_class is int and LABELS in step:
            self._labelled[at] = self._reader.predicates.by_attribute[name][Kind.NUMBER].order

    def _step(self, name: str, its_class: type) -> dict[int, int] | None:
        """What kernels do with values of a class; None if they can't."""
        of_attribute, columns = self._reader.predicates.by_attribute.get(name, {}), self._reader.columns
        of_kind, of_any = of_attribute.get(kind_of_class(its_class)), of_attribute.get(None)
        if any(each is not None and self._reader.predicates.tests_of(each.number) for each in (of_kind, of_any)):
            return None
        step = {} if of_any is None else {PRESENCE_COLUMN: columns.of(of_any)}
        if of_kind is None:
            return step
        if of_kind.has_exact:
            return None
        column = columns.of(of_kind)
        step |= {CODES: self._address(of_kind.codes), CODE_COLUMN: column}
        label_column, order = int(columns.label_column[column]), of_kind.order
        if label_column >= 0:
            if order.has_exact:
                return None
            labels, ordered = order.known_labels, order.constants
            step |= {LABELS: self._address(labels), ORDERED: self._address(ordered), LABEL_COLUMN: label_column}
        return step

    def _address(self, named: object) -> int:
        self._named.append(named)
        return id(named)
