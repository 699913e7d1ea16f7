"""What kernels do with values when they read events: the steps of a `RowReader`, as numbers and addresses."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from harken.errors import EventError
from harken.matching.encoding.columns import EventColumns
from harken.matching.encoding.reading import NOWHERE, RowReader
from harken.matching.kernels.layout import MISSING, Reading
from harken.matching.kernels.reading import (
    CLASS,
    CLASSES,
    CODE_COLUMN,
    CODES,
    DICT,
    FAILED,
    HIGHEST,
    IN_KERNELS,
    INERT,
    IS_ASCII,
    KNOWN,
    LABEL_COLUMN,
    LABELS,
    LOWEST,
    NAMES,
    NONE,
    ORDERED,
    PLACES,
    PRESENCE_COLUMN,
    READ,
    REMAINDER,
    REMAINS,
    STATE,
    STEP,
    TRUE,
    UNASKED,
    Codes,
    Labels,
)
from harken.matching.predicates.ordering import ConstantOrder
from harken.model.events import MAX_NESTING, Event, FlatEvent, flatten
from harken.model.values import Kind, kind_of_class

if IN_KERNELS:
    from harken.matching.kernels.reading import plain_until, read_rows

PLAIN = int, str, float, bool
"""Classes whose values kernels read, in the order in which these number them."""

_INERT = list, tuple, set, bytes, datetime, date, Decimal, frozenset
"""Classes whose values are no mappings, and for whoever asks for none of them as good as not there."""

_NUMPY = (
    *(np.bool_, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64),
    *(np.uint8, np.uint16, np.uint32, np.uint64),
)

_KNOWN = frozenset(map(id, (*PLAIN, *_INERT, *_NUMPY, type(None))))
"""Classes of which no method is anybody else's; not asked for by themselves, as their own classes may be."""

_ZONES = type(None), timezone, ZoneInfo

_IS_ASCII = "isascii"
"""The method of texts that tells whether there is more to look at."""

_OBJECTS = np.zeros(CLASS + CLASSES + INERT, np.int64)
"""What kernels compare with, whichever reader it is for."""

_OBJECTS[[NONE, TRUE, IS_ASCII, DICT]] = [id(each) for each in (None, True, _IS_ASCII, dict)]
_OBJECTS[CLASS:] = [id(each) for each in (*PLAIN, *_INERT)]

FIRST_NAMES = 64

MOST_NAMES = 16_384
"""Names that kernels know, at most: under further ones, Python reads."""

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
        self._became = FAILED
        """What became of the event that kernels read last."""
        self.remainder: dict[str, object] = {}
        """What is left of an event for Python to read."""
        objects = _OBJECTS.copy()
        objects[[NAMES, REMAINDER]] = id(self._names), id(self.remainder)
        self.reading = Reading(objects, np.zeros((FIRST_NAMES * CLASSES, STEP), np.int64))

    @property
    def columns(self) -> EventColumns:
        """The columns that events are read into."""
        return self._reader.columns

    def read_rows(self, events: list[FlatEvent], row: int, code: Codes, label: Labels) -> int:
        """Read events from a row on, each into its own, as far as kernels can; the row that is for `read_row`."""
        self._became = FAILED
        while IN_KERNELS and row < len(events):
            row, self._became = read_rows(id(events), row, self.reading, code, label)
            if self._became != READ:
                break
        return row

    def read_row(self, event: FlatEvent, code: Codes, label: Labels) -> list[int]:
        """Read the event that kernels have left, or what they have left of it; list other predicates that hold."""
        remainder: FlatEvent = self.remainder  # type: ignore[assignment]  # as it is of a flat event
        try:
            if self._became != REMAINS:
                return self._read_anew(event, code, label)
            also = self._read(remainder, code, label)
            self.learn(remainder)
            return also
        except KeyError:  # no flat event has such a value: another thread has put it there since it was checked
            return self._read_anew(flatten(event)[0], code, label)
        finally:
            remainder.clear()

    def _read_anew(self, event: FlatEvent, code: Codes, label: Labels) -> list[int]:
        code[:] = MISSING
        return self._read(event, code, label)

    def _read(self, event: FlatEvent, code: Codes, label: Labels) -> list[int]:
        also = list[int]()
        self._reader.read(event, memoryview(code), memoryview(label), also)  # type: ignore[arg-type]  # are buffers
        return also

    def flat_remainder(self, event: Event) -> FlatEvent | None:
        """What is left of an event that has not been checked, flattened; None if all of it has to be looked at.

        That is where something is at fault, or foreign and asked for: then it is to be counted, or told. And where
        code of somebody else would be run.
        """
        remainder = self.remainder
        if not _is_known(remainder, MAX_NESTING):
            return None
        try:
            flat, foreign = flatten(remainder)
        except EventError as error:
            if error.__cause__ is not None:  # what somebody's code has raised is told once
                raise
            return None
        attributes = self._reader.predicates.attributes
        is_told = any(attributes.concern(name) for name in foreign)
        return None if is_told or any(name in event and name not in remainder for name in flat) else flat

    def learn(self, values: FlatEvent) -> bool:
        """Let kernels read such values from now on, where they can; whether there is more of `reading` then.

        The reader has just read these.
        """
        before = self.reading
        for name, value in values.items():
            if len(self._names) >= MOST_NAMES:
                break
            its_class = type(value)
            if (name, its_class) in self._settled or not self._reader.remembers(name):
                continue
            self._settled.add((name, its_class))
            if self._reader.passes_over(name):
                self._row_of(name, 0)[STATE] = UNASKED
            elif its_class in PLAIN and (step := self._step(name, its_class)) is not None:
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

    def _row_of(self, name: str, its_class: int) -> npt.NDArray[np.int64]:
        """Where the step of a class under a name is, or is to be."""
        number, steps = self._names.setdefault(name, len(self._names)), self.reading.steps
        if number * CLASSES == len(steps):
            steps = np.concatenate([steps, np.zeros_like(steps)])
            self.reading = self.reading._replace(steps=steps)
        row: npt.NDArray[np.int64] = steps[number * CLASSES + its_class]
        return row

    def _have(self, name: str, its_class: type, step: dict[int, int]) -> None:
        row = self._row_of(name, PLAIN.index(its_class))
        row[[CODE_COLUMN, LABEL_COLUMN, PRESENCE_COLUMN]] = NOWHERE
        for column, what in step.items():
            row[column] = what
        row[STATE] = KNOWN
        if its_class is int and LABELS in step:
            order = self._reader.predicates.by_attribute[name][Kind.NUMBER].order
            self._labelled[self._names[name] * CLASSES] = order

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


def flat_until(events: list[Event], row: int) -> int:
    """The row from a row on up to which all events are flat, as far as kernels see."""
    is_odd = not IN_KERNELS
    while row < len(events) and not is_odd:
        row, is_odd = plain_until(id(events), row, _OBJECTS)
    return row


def _is_known(value: object, depth: int) -> bool:
    """Whether a value, with all that lies below it, can be looked at without running code of somebody else."""
    its_class = type(value)
    if its_class is dict:
        inner: dict[object, object] = value.copy()  # type: ignore[attr-defined]  # as just seen
        if depth == 0 or "coordinates" in inner:  # of a shape, which are looked at one by one
            return False
        return all(type(name) is str and _is_known(each, depth - 1) for name, each in inner.items())
    return id(its_class) in _KNOWN and (its_class is not datetime or type(value.tzinfo) in _ZONES)  # type: ignore[attr-defined]
