"""Events from their dictionaries to codes and labels, without a line of Python for each value.

It does what `RowReader.read` does, with plain values under names that have been met before, and leaves to Python
what else there is. Without compilation that is all, and so it is where the interpreter has no lock to keep.
"""

from __future__ import annotations

import sysconfig
from typing import TypeAlias

import numba
import numpy as np
import numpy.typing as npt

from harken.jit import holding, part
from harken.matching.kernels.layout import MISSING, UNLISTED, Reading

STATE, CODES, CODE_COLUMN, LABELS, ORDERED, LABEL_COLUMN, PRESENCE_COLUMN = range(7)
"""Columns of a step: whether there is one (below); the dictionary of codes, or 0 if values have none, and the
column where the code goes; the dictionary of labels, the list of constants in order, and the column of labels; and
another column of codes, which only says that there is a value. Columns of events are -1 where there is none."""

PLACES, LOWEST, HIGHEST, STEP = range(7, 11)
"""Further ones, for ints: where their labels are, one after the other, or 0; and the first and the last of these
ints, which stand for all beyond."""

UNKNOWN, KNOWN, UNASKED = range(3)
"""Whether there is a step: of a name that nobody asks for, nothing is looked at."""

NAMES, REMAINDER, NONE, TRUE, IS_ASCII, DICT, CLASS = range(7)
"""The objects: numbers by name; a dictionary for what Python has to read; None; True; the name of a method; the
class of dictionaries; and from here on those of values."""

INT, STR, FLOAT, BOOL, CLASSES = range(5)
"""Classes of plain values, and how many these are."""

INERT = 8
"""Further classes, whose values matter to nobody under a name that nobody asks for: nothing lies below them."""

READ, REMAINS, ODD, FAILED = range(4)
"""What became of an event: it is read; some of it remains for Python to read; it has to be checked first; or it is
for Python to read all of it, and what was read means nothing."""

MOST = 4_096
"""Values that a kernel reads at once: others wait for the interpreter meanwhile."""

Codes: TypeAlias = npt.NDArray[np.int32]
Labels: TypeAlias = npt.NDArray[np.int64]

IN_KERNELS = not (numba.config.DISABLE_JIT or sysconfig.get_config_var("Py_GIL_DISABLED"))  # type: ignore[attr-defined]
"""Whether kernels read events."""

if IN_KERNELS:
    from harken.matching.kernels.objects import (
        WENT_WRONG,
        answer_of,
        class_of,
        fits_64_bits,
        is_less,
        item_of,
        listed_at,
        next_item,
        put,
        real,
        size_of_dictionary,
        size_of_list,
        size_of_text,
        whole,
        word_at,
    )

    TAKEN, LEFT, STUCK = range(3)
    """What became of a value: it is read; Python has to read it; or something went wrong."""

    @part
    def class_among(objects: npt.NDArray[np.int64], its_class: int) -> int:
        """The number of a class, or how many there are if it is none of these."""
        known = len(objects) - CLASS
        for number in range(known):
            if objects[CLASS + number] == its_class:
                return number
        return known

    @part
    def is_sound(objects: npt.NDArray[np.int64], value: int, its_class: int) -> bool:
        """Whether a value is one that the language has a type for; says no in doubt."""
        if its_class == INT:
            return fits_64_bits(value)
        if its_class == STR:
            return answer_of(value, objects[IS_ASCII]) == objects[TRUE]
        if its_class == FLOAT:
            return real(value) == real(value)
        return True

    @part
    def label_of(value: int, labels: int, ordered: int) -> tuple[bool, int]:
        """As `ConstantOrder.label_of`: just below the label of the next constant, if it equals none.

        False if something went wrong.
        """
        found = item_of(labels, value)
        if found:
            return found != WENT_WRONG, whole(found) if found != WENT_WRONG else 0
        count = size_of_list(ordered)
        if count == 0:
            return True, 0
        low, high = 0, count
        while low < high:
            middle = (low + high) >> 1
            less = is_less(listed_at(ordered, middle), value)
            if less == WENT_WRONG:
                return False, 0
            if less:
                low = middle + 1
            else:
                high = middle
        found = item_of(labels, listed_at(ordered, min(low, count - 1)))
        if found == WENT_WRONG or not found:
            return False, 0
        return True, whole(found) + (1 if low == count else -1)

    @part
    def take_step(
        reading: Reading,
        at: int,
        value: int,
        its_class: int,
        is_checked: bool,
        code: Codes,
        label: Labels,
        row: int,
    ) -> int:
        """Write the code and the label of a value; what became of it."""
        steps = reading.steps
        codes, column, label_column = steps[at, CODES], steps[at, CODE_COLUMN], steps[at, LABEL_COLUMN]
        found = item_of(codes, value) if codes else 0
        if found == WENT_WRONG:
            return STUCK
        # Whatever equals a constant is sound, but for integers of more than 64 bits.
        if not is_checked and (not found or its_class == INT) and not is_sound(reading.objects, value, its_class):
            return LEFT
        if label_column >= 0:
            is_found, its_label = True, 0
            if steps[at, PLACES]:
                if is_checked and not fits_64_bits(value):  # another thread has put it there since
                    return STUCK
                place = min(max(whole(value), steps[at, LOWEST]), steps[at, HIGHEST]) - steps[at, LOWEST]
                its_label = word_at(steps[at, PLACES], place)
            else:
                is_found, its_label = label_of(value, steps[at, LABELS], steps[at, ORDERED])
            if not is_found:
                return STUCK
            label[row, label_column] = its_label
        if column >= 0:
            code[row, column] = whole(found) if found else UNLISTED
        if steps[at, PRESENCE_COLUMN] >= 0:
            code[row, steps[at, PRESENCE_COLUMN]] = UNLISTED
        return TAKEN

    @part
    def take(
        reading: Reading, name: int, value: int, is_checked: bool, code: Codes, label: Labels, row: int
    ) -> int:
        """Read what is under one name; what became of it."""
        objects, steps = reading.objects, reading.steps
        its_class = class_among(objects, class_of(value))
        if its_class == len(objects) - CLASS:
            return LEFT
        number = item_of(objects[NAMES], name)
        if not number or number == WENT_WRONG:
            return LEFT
        at = whole(number) * CLASSES
        if steps[at, STATE] == UNASKED:
            return TAKEN
        if its_class >= CLASSES or steps[at + its_class, STATE] == UNKNOWN:
            return LEFT
        return take_step(reading, at + its_class, value, its_class, is_checked, code, label, row)

    @part
    def read_event(event: int, is_checked: bool, reading: Reading, code: Codes, label: Labels, row: int) -> int:
        """Read a dictionary into a row of codes and of labels; what became of it.

        One that has not been checked may have any values. What is not plain, or not sound, is left for Python.
        """
        objects = reading.objects
        if size_of_dictionary(event) > MOST:
            return FAILED
        for column in range(code.shape[1]):
            code[row, column] = MISSING
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
            what = take(reading, name, value, is_checked, code, label, row)
            if what == LEFT:
                became = REMAINS
                if not put(objects[REMAINDER], name, value):
                    return FAILED
            elif what == STUCK:
                return FAILED

    @holding
    def read_rows(events: int, row: int, reading: Reading, code: Codes, label: Labels) -> tuple[int, int]:
        """Read a list of dictionaries that have been checked, from a row on, each into its own row.

        Which one is next, and what became of it, if that is to be looked after; READ if others are to run first.
        """
        values = 0
        while row < size_of_list(events) and values <= MOST:
            event = listed_at(events, row)
            if class_of(event) != reading.objects[DICT]:
                return row, FAILED
            values += size_of_dictionary(event)
            became = read_event(event, True, reading, code, label, row)
            if became != READ:
                return row, became
            row += 1
        return row, READ

    @part
    def is_plain(event: int, objects: npt.NDArray[np.int64]) -> bool:
        """As `is_flat`, of a dictionary."""
        position = 0
        while True:
            position, name, value = next_item(event, position)
            if position < 0:
                return True
            if class_of(name) != objects[CLASS + STR] or size_of_text(name) == 0:
                return False
            its_class = class_among(objects, class_of(value))
            if its_class >= CLASSES or not is_sound(objects, value, its_class):
                return False

    @holding
    def plain_until(events: int, row: int, objects: npt.NDArray[np.int64]) -> tuple[int, bool]:
        """The row from a row on up to which all events of a list are flat; whether that one may not be."""
        values = 0
        while row < size_of_list(events) and values <= MOST:
            event = listed_at(events, row)
            if class_of(event) != objects[DICT]:
                return row, True
            values += size_of_dictionary(event)
            if size_of_dictionary(event) > MOST or not is_plain(event, objects):
                return row, True
            row += 1
        return row, False
