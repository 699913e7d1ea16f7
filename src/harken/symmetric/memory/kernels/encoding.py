"""Taking in what is asked: from the stream of numbers to codes on the axes of one segment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.symmetric.memory.kernels.layout import (
    ABSENT,
    ASK,
    AXES,
    AXES_AT,
    AXIS,
    BOUND,
    CONSTANTS,
    CONSTANTS_AT,
    INTERVAL,
    IS_TEXT,
    NOTE,
    NOTE_ATTRIBUTE,
    NOTE_AXIS,
    NOTE_COUNT,
    NOTE_MODE,
    NUMBER,
    RESTS_AT,
)


class SegmentArrays(NamedTuple):
    """The arrays of a segment, and which owners are alive."""

    words: npt.NDArray[np.int32]
    keys: npt.NDArray[np.float64]
    text_at: npt.NDArray[np.int64]
    text: npt.NDArray[np.uint8]
    alive: npt.NDArray[np.uint8]


class Asked(NamedTuple):
    """What is known of the asked constraint at hand, axis by axis, and where finds go.

    `state` has for each axis where its note begins in `notes`, or ABSENT. `out` has a row of places, one of slots
    and one of flags; more may be found than it has room for.
    """

    state: npt.NDArray[np.int32]
    notes: npt.NDArray[np.int32]
    decides: bool
    place: int
    attributes: int
    out: npt.NDArray[np.int64]


@tight
def encode(
    segment: SegmentArrays,
    asked: Asked,
    stream: npt.NDArray[np.float64],
    asked_text: npt.NDArray[np.uint8],
    at: int,
) -> tuple[int, int]:
    """Note the asks of one constraint on the axes that there are; the next in the stream, the end of the notes."""
    asks = np.int64(stream[at + 2])
    at += 3
    noted = 0
    for _ in range(asks):
        count = np.int64(stream[at + 3])
        axis = _axis_numbered(segment.words, np.int64(stream[at]))
        if axis >= 0:
            asked.state[axis] = noted
            asked.notes[noted + NOTE_MODE] = np.int32(stream[at + 2])
            asked.notes[noted + NOTE_COUNT] = count
            asked.notes[noted + NOTE_ATTRIBUTE] = np.int32(stream[at + 1])
            asked.notes[noted + NOTE_AXIS] = axis
            noted += NOTE
            hint = np.int64(0)
            for bound in range(2 * count):
                code = _code(segment, axis, stream, asked_text, at + ASK + BOUND * bound, hint)
                asked.notes[noted + bound] = code
                hint = max(0, code // 2 - 1)
            noted += 2 * count
        at += ASK + INTERVAL * count
    return at, noted


@part
def forget(asked: Asked, noted: int) -> None:
    """Undo it, for the next constraint."""
    at = 0
    while at < noted:
        asked.state[asked.notes[at + NOTE_AXIS]] = ABSENT
        at += NOTE + 2 * asked.notes[at + NOTE_COUNT]


@part
def _axis_numbered(words: npt.NDArray[np.int32], number: int) -> int:
    """The axis with this number in the store, or -1."""
    low, high = 0, np.int64(words[AXES])
    while low < high:
        middle = (low + high) // 2
        if words[words[AXES_AT] + AXIS * middle + NUMBER] < number:
            low = middle + 1
        else:
            high = middle
    if low < words[AXES] and words[words[AXES_AT] + AXIS * low + NUMBER] == number:
        return low
    return -1


@part
def _code(
    segment: SegmentArrays,
    axis: int,
    stream: npt.NDArray[np.float64],
    asked_text: npt.NDArray[np.uint8],
    at: int,
    hint: int,
) -> int:
    """The code of a bound among the constants of an axis, none of which before the hint is larger.

    Bounds ascend, and two that follow each other are often close: so the search widens from the hint on.
    """
    words, key, rest = segment.words, stream[at], stream[at + 1]
    axis_at = words[AXES_AT] + AXIS * axis
    first, count = np.int64(words[axis_at + CONSTANTS_AT]), np.int64(words[axis_at + CONSTANTS])
    if np.isinf(key):
        return 0 if key < 0 else 2 * count
    is_text = words[axis_at + IS_TEXT] != 0
    low, high, equal = first + hint, first + count, False
    step = 4 if hint > 0 else count
    while low < high:
        middle = min(low + step, (low + high) // 2)
        if is_text:
            order = _compare_text(segment, middle, asked_text, np.int64(key), np.int64(rest))
        else:
            order = _compare_number(segment, middle, key, rest)
        if order < 0:
            low = middle + 1
            step = min(8 * step, count)
        else:
            high = middle
            equal = equal or order == 0
    return 2 * (low - first) + (1 + np.int64(stream[at + 2]) if equal else 0)


@part
def _compare_number(segment: SegmentArrays, at: int, key: float, rest: float) -> int:
    constant = segment.keys[at]
    if constant != key:
        return -1 if constant < key else 1
    rests_at = segment.words[RESTS_AT]
    held = segment.keys[rests_at + at] if rests_at > 0 else 0.0
    if held == rest:
        return 0
    return -1 if held < rest else 1


@part
def _compare_text(segment: SegmentArrays, at: int, other: npt.NDArray[np.uint8], begin: int, end: int) -> int:
    """Bytes of UTF-8 are ordered as the characters are."""
    first, last = segment.text_at[at], segment.text_at[at + 1]
    for place in range(min(last - first, end - begin)):
        mine, its = segment.text[first + place], other[begin + place]
        if mine != its:
            return -1 if mine < its else 1
    if last - first == end - begin:
        return 0
    return -1 if last - first < end - begin else 1
