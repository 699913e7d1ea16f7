"""An event from its dictionary to codes and labels, without a line of Python for each value.

It does what `RowReader.read` does, with plain values under names that have been met before, and leaves to that
what else there is. Without compilation that is all.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from harken.jit import part
from harken.matching.kernels.layout import MISSING, UNLISTED, Events, Matrix

IS_KNOWN, CODES, CODE_COLUMN, LABELS, ORDERED, LABEL_COLUMN, PRESENCE_COLUMN = range(7)
"""Columns of a step: whether there is one; the dictionary of codes, or 0 if values have none, and the column where
the code goes; the dictionary of labels, the list of constants in order, and the column of labels; and another
column of codes, which only says that there is a value. Columns of events are -1 where there is none."""

PLACES, LOWEST, HIGHEST, STEP = range(7, 11)
"""Further ones, for ints: where their labels are, one after the other, or 0; and the first and the last of these
ints, which stand for all beyond."""

NAMES, REMAINDER, NONE, CLASS = range(4)
"""The objects: numbers by name; a dictionary for what Python has to read; None; and from here on the classes."""

INT, STR, FLOAT, BOOL, CLASSES = range(5)

READ, REMAINS, ODD, FAILED = range(4)
"""What became of an event: it is read; some of it remains for Python to read; it has to be checked first; or there
was no memory, and what was read means nothing."""


class Reading(NamedTuple):
    """What it takes to read events."""

    objects: npt.NDArray[np.int64]
    """Where they are (above)."""
    steps: Matrix[np.int64]
    """What to do with the values of a class under a name: a row for each class, for each number of a name."""


if not numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # set from the environment
    from harken.matching.kernels.objects import (
        class_of,
        fits_64_bits,
        is_less,
        is_text,
        item_of,
        listed_at,
        next_item,
        put,
        real,
        size_of_list,
        size_of_text,
        whole,
        word_at,
    )

    @part
    def class_among(objects: npt.NDArray[np.int64], its_class: int) -> int:
        """The number of a class, or CLASSES if it is none of these."""
        for number in range(CLASSES):
            if objects[CLASS + number] == its_class:
                return number
        return CLASSES

    @part
    def is_sound(value: int, its_class: int) -> bool:
        """Whether a value is one that the language has a type for."""
        if its_class == INT:
            return fits_64_bits(value)
        if its_class == STR:
            return is_text(value)
        if its_class == FLOAT:
            return real(value) == real(value)
        return True

    @part
    def label_of(value: int, labels: int, ordered: int) -> int:
        """As `ConstantOrder.label_of`: just below the label of the next constant, if it equals none."""
        found = item_of(labels, value)
        if found:
            return whole(found)
        count = size_of_list(ordered)
        if count == 0:
            return 0
        low, high = 0, count
        while low < high:
            middle = (low + high) >> 1
            if is_less(listed_at(ordered, middle), value):
                low = middle + 1
            else:
                high = middle
        if low == count:
            return whole(item_of(labels, listed_at(ordered, count - 1))) + 1
        return whole(item_of(labels, listed_at(ordered, low))) - 1

    @part
    def take_step(
        steps: npt.NDArray[np.int64], at: int, value: int, its_class: int, is_checked: bool, events: Events
    ) -> bool:
        """Write the code and the label of a value; False if it has to be checked first."""
        codes, column, label_column = steps[at, CODES], steps[at, CODE_COLUMN], steps[at, LABEL_COLUMN]
        found = item_of(codes, value) if codes else 0
        # Whatever equals a constant is sound, but for integers of more than 64 bits.
        if not is_checked and (not found or its_class == INT) and not is_sound(value, its_class):
            return False
        if column >= 0:
            events.code[0, column] = whole(found) if found else UNLISTED
        if label_column >= 0:
            if steps[at, PLACES]:
                place = min(max(whole(value), steps[at, LOWEST]), steps[at, HIGHEST]) - steps[at, LOWEST]
                events.label[0, label_column] = word_at(steps[at, PLACES], place)
            else:
                events.label[0, label_column] = label_of(value, steps[at, LABELS], steps[at, ORDERED])
        if steps[at, PRESENCE_COLUMN] >= 0:
            events.code[0, steps[at, PRESENCE_COLUMN]] = UNLISTED
        return True

    @part
    def read_event(event: int, is_checked: bool, reading: Reading, events: Events) -> int:
        """Read a dictionary into the codes and labels of the first event; what became of it.

        An event that has not been checked is odd as soon as there is anything that a flat one might not have.
        """
        objects, steps = reading.objects, reading.steps
        for column in range(events.code.shape[1]):
            events.code[0, column] = MISSING
        became, position = READ, 0
        while True:
            position, name, value = next_item(event, position)
            if position < 0:
                return became
            if class_of(name) != objects[CLASS + STR]:
                return ODD
            if value == objects[NONE] and not is_checked:
                if size_of_text(name) == 0:
                    return ODD
                continue
            its_class = class_among(objects, class_of(value))
            if its_class == CLASSES and not is_checked:
                return ODD
            number = item_of(objects[NAMES], name) if its_class < CLASSES else 0
            at = whole(number) * CLASSES + its_class if number else 0
            if number and steps[at, IS_KNOWN]:
                if not take_step(steps, at, value, its_class, is_checked, events):
                    return ODD
            else:
                became = REMAINS
                if not put(objects[REMAINDER], name, value):
                    return FAILED
