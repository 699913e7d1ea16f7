"""Taking in what is asked: from the stream of numbers to codes on the axes of one segment."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from harken.jit import called, part
from harken.symmetric.memory.kernels import layout
from harken.symmetric.memory.kernels.layout import NOTE

if TYPE_CHECKING:
    from harken.symmetric.memory.kernels.layout import Bytes, Floats, Places, Words


class SegmentArrays(NamedTuple):
    """The arrays of a segment, and which owners are alive."""

    words: Words
    keys: Floats
    text_at: Places
    text: Bytes
    alive: Bytes


class Asked(NamedTuple):
    """What is known of the asked constraint at hand, axis by axis, and where finds go.

    `state` has for each axis where its note begins in `notes`, or ABSENT. `out` has a row of places, one of slots
    and one of flags; more may be found than it has room for.
    """

    state: Words
    notes: Words
    decides: bool
    place: int
    attributes: int
    out: Places


@called
def encode(segment: SegmentArrays, asked: Asked, stream: Floats, asked_text: Bytes, at: int) -> tuple[int, int]:
    """Note the asks of one constraint on the axes that there are; the next in the stream, the end of the notes."""
    asks = np.int64(stream[at + 2])
    at += 3
    note, codes_at = 0, NOTE * asks
    for _ in range(asks):
        bounds_at, count = at + layout.ASK, np.int64(stream[at + 3])
        axis = _axis_numbered(segment.words, np.int64(stream[at]))
        if axis >= 0:
            asked.state[axis] = note
            asked.notes[note + layout.NOTE_AXIS] = axis
            asked.notes[note + layout.NOTE_ATTRIBUTE] = np.int32(stream[at + 1])
            asked.notes[note + layout.NOTE_MODE] = np.int32(stream[at + 2])
            asked.notes[note + layout.NOTE_COUNT] = count
            asked.notes[note + layout.NOTE_CODES_AT] = codes_at
            hint = np.int64(0)
            for bound in range(2 * count):
                code = _code(segment, axis, stream, asked_text, bounds_at + layout.BOUND * bound, hint)
                asked.notes[codes_at + bound] = code
                hint = max(0, code // 2 - 1)
            codes_at += 2 * count
            note += NOTE
        at = bounds_at + layout.INTERVAL * count
    return at, note


@part
def forget(asked: Asked, noted: int) -> None:
    """Undo it, for the next constraint."""
    for note in range(0, noted, NOTE):
        asked.state[asked.notes[note + layout.NOTE_AXIS]] = layout.ABSENT


@part
def axis_word(words: Words, axis: int, which: int) -> int:
    """One of the words of an axis."""
    return words[words[layout.AXES_AT] + layout.AXIS * axis + which]


@part
def _axis_numbered(words: Words, number: int) -> int:
    """The axis with this number in the store, or -1."""
    low, high = 0, np.int64(words[layout.AXES])
    while low < high:
        middle = (low + high) // 2
        if axis_word(words, middle, layout.NUMBER) < number:
            low = middle + 1
        else:
            high = middle
    if low < words[layout.AXES] and axis_word(words, low, layout.NUMBER) == number:
        return low
    return -1


@part
def _code(segment: SegmentArrays, axis: int, stream: Floats, asked_text: Bytes, at: int, hint: int) -> int:
    """The code of a bound among the constants of an axis, none of which before the hint is larger.

    Bounds ascend, and two that follow each other are often close: so the search widens from the hint on.
    """
    words, key, rest = segment.words, stream[at], stream[at + 1]
    count = np.int64(axis_word(words, axis, layout.CONSTANTS))
    if np.isinf(key):
        return 0 if key < 0 else 2 * count
    first = np.int64(axis_word(words, axis, layout.CONSTANTS_AT))
    is_text = axis_word(words, axis, layout.IS_TEXT) != 0
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
    rests_at = segment.words[layout.RESTS_AT]
    held = segment.keys[rests_at + at] if rests_at > 0 else 0.0
    if held == rest:
        return 0
    return -1 if held < rest else 1


@part
def _compare_text(segment: SegmentArrays, at: int, other: Bytes, begin: int, end: int) -> int:
    """Bytes of UTF-8 are ordered as the characters are."""
    first, last = segment.text_at[at], segment.text_at[at + 1]
    for place in range(min(last - first, end - begin)):
        mine, its = segment.text[first + place], other[begin + place]
        if mine != its:
            return -1 if mine < its else 1
    if last - first == end - begin:
        return 0
    return -1 if last - first < end - begin else 1
