"""Scanning texts for literals, a million a second: UTF-8 bytes in, literal positions and shape hashes out.

A shape is a text without its literals. The scanner only has to be cautious, not clever: a text it cannot
cut safely is marked and parsed the ordinary way, and a plan is made from a real parse of one text per shape.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.jit import kernel, tight

INT, FLOAT, STRING = 0, 1, 2
"""What a literal looks like."""

_QUOTE, _DOUBLE_QUOTE, _DASH, _PLUS, _DOT, _SLASH, _STAR, _NEWLINE = (ord(char) for char in "'\"-+./*\n")
_UNDERSCORE, _ZERO, _NINE, _LOWER_E, _UPPER_E = (ord(char) for char in "_09eE")
_HASH_START, _HASH_STEP = np.uint64(14695981039346656037), np.uint64(1099511628211)  # FNV-1a


class Scan(NamedTuple):
    """The literals of many texts: text i has those from first[i] to first[i + 1]; none if it was not cut."""

    first: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    kind: npt.NDArray[np.uint8]
    shape: npt.NDArray[np.uint64]
    """A hash of each text's shape."""
    cut: npt.NDArray[np.bool_]
    """Whether the text could be cut into shape and literals."""


@tight
def is_word(byte: int) -> bool:
    """Whether a byte may be part of a word."""
    letter = 97 <= byte <= 122 or 65 <= byte <= 90
    return letter or byte == _UNDERSCORE or _ZERO <= byte <= _NINE or byte >= 128


@tight
def string_end(data: npt.NDArray[np.uint8], at: int, end: int, quote: int) -> int:
    """Past the closing quote of what begins at `at`; -1 if it is never closed. A doubled quote is none."""
    at += 1
    while at < end:
        if data[at] == quote:
            if at + 1 < end and data[at + 1] == quote:
                at += 1
            else:
                return at + 1
        at += 1
    return -1


@kernel
def _comment_end(data: npt.NDArray[np.uint8], at: int, end: int) -> int:
    """Past the comment that begins at `at`; `at` if none does; -1 if it is never closed."""
    if at + 1 >= end:
        return at
    if data[at] == _DASH and data[at + 1] == _DASH:
        while at < end and data[at] != _NEWLINE:
            at += 1
        return at
    if data[at] == _SLASH and data[at + 1] == _STAR:
        at += 2
        while at + 1 < end:
            if data[at] == _STAR and data[at + 1] == _SLASH:
                return at + 2
            at += 1
        return -1
    return at


@tight
def _digits_end(data: npt.NDArray[np.uint8], at: int, end: int) -> int:
    while at < end and _ZERO <= data[at] <= _NINE:
        at += 1
    return at


@tight
def number_end(data: npt.NDArray[np.uint8], at: int, end: int) -> tuple[int, bool]:
    """Past the number that begins at `at` (`at` if none does), and whether it is a float."""
    begin = at
    if data[at] == _PLUS or data[at] == _DASH:
        at += 1
    whole = _digits_end(data, at, end)
    digits, is_float = whole - at, False
    at = whole
    if at < end and data[at] == _DOT:
        fraction = _digits_end(data, at + 1, end)
        if digits > 0 or fraction > at + 1:
            digits += fraction - at - 1
            is_float, at = True, fraction
    if digits == 0:
        return begin, False
    if at < end and (data[at] == _LOWER_E or data[at] == _UPPER_E):
        exponent = at + 1
        if exponent < end and (data[exponent] == _PLUS or data[exponent] == _DASH):
            exponent += 1
        past = _digits_end(data, exponent, end)
        if past > exponent:
            is_float, at = True, past
    return at, is_float


@kernel
def _word_end(data: npt.NDArray[np.uint8], at: int, end: int) -> int:
    while at < end and (is_word(data[at]) or data[at] == _DOT):
        at += 1
    return at


@kernel
def _number_or_comment(data: npt.NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """Past what begins at `at` (-1 if it cannot be cut), and the kind of literal it is, or -1."""
    after = _comment_end(data, at, end)
    if after != at:
        return after, -1
    after, is_float = number_end(data, at, end)
    if after == at:
        return at + 1, -1
    if after < end and (is_word(data[after]) or data[after] == _DOT):
        return -1, -1  # like 300USD: no text that begins so is valid, and the parser will say why
    return after, FLOAT if is_float else INT


@kernel
def _cut(
    data: npt.NDArray[np.uint8],
    at: int,
    end: int,
    into: int,
    start: npt.NDArray[np.int64],
    past: npt.NDArray[np.int64],
    kind: npt.NDArray[np.uint8],
) -> tuple[int, np.uint64]:
    """Cut one text: literals go to start/past/kind from `into` on (if there is room). Count (-1: failed), hash."""
    hashed, count = _HASH_START, 0
    while at < end:
        byte = data[at]
        literal_kind = -1
        if byte == _QUOTE:
            after = string_end(data, at, end, _QUOTE)
            literal_kind = STRING
        elif byte == _DOUBLE_QUOTE:
            after = string_end(data, at, end, _DOUBLE_QUOTE)
        elif _ZERO <= byte <= _NINE or _PLUS <= byte <= _SLASH:  # + , - . / stand side by side in ASCII
            after, literal_kind = _number_or_comment(data, at, end)
        else:
            after = at + 1
            if is_word(byte):
                after = _word_end(data, after, end)
        if after < 0:
            return -1, hashed
        if literal_kind >= 0:
            if into + count < len(start):
                start[into + count], past[into + count], kind[into + count] = at, after, literal_kind
            count += 1
            hashed = (hashed ^ np.uint64(256 + literal_kind)) * _HASH_STEP
        else:
            for mixed in range(at, after):
                hashed = (hashed ^ np.uint64(data[mixed])) * _HASH_STEP
        at = after
    return count, hashed


def scan(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> Scan:
    """Cut all texts; text i is data[offsets[i] : offsets[i + 1]]."""
    texts = len(offsets) - 1
    scanned = Scan(
        np.zeros(texts + 1, np.int64),
        *_room(0),
        np.zeros(texts, np.uint64),
        np.zeros(texts, np.bool_),
    )
    literals = _count_literals(data, offsets, scanned)
    start, end, kind = _room(literals)
    scanned = scanned._replace(start=start, end=end, kind=kind)
    _find_literals(data, offsets, scanned)
    return scanned


def _room(
    literals: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    return np.zeros(literals, np.int64), np.zeros(literals, np.int64), np.zeros(literals, np.uint8)


@kernel
def _count_literals(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], scanned: Scan) -> int:
    """Where each text's literals are to go, its shape, and whether it can be cut; how many literals there are."""
    first, start, end, kind, shape, cut = scanned
    for text in range(len(cut)):
        count, hashed = _cut(data, offsets[text], offsets[text + 1], 0, start, end, kind)
        cut[text] = count >= 0
        shape[text] = hashed
        first[text + 1] = first[text] + max(count, 0)
    return int(first[len(cut)])


@kernel
def _find_literals(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], scanned: Scan) -> None:
    first, start, end, kind, _, cut = scanned
    for text in range(len(cut)):
        if cut[text]:
            _cut(data, offsets[text], offsets[text + 1], first[text], start, end, kind)


def same_shape(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    scanned: Scan,
    others: npt.NDArray[np.int64],
) -> npt.NDArray[np.bool_]:
    """For each text, whether it differs from the text others[i] in nothing but literals: hashes can collide."""
    same = np.zeros(len(offsets) - 1, np.bool_)
    _note_same_shape(data, offsets, scanned, others, same)
    return same


@kernel
def _note_same_shape(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    scanned: Scan,
    others: npt.NDArray[np.int64],
    same: npt.NDArray[np.bool_],
) -> None:
    for text in range(len(same)):
        other = others[text]
        same[text] = scanned.cut[text] and _differ_in_literals_only(data, offsets, scanned, text, other)


@kernel
def _differ_in_literals_only(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], scanned: Scan, one: int, other: int
) -> bool:
    count = scanned.first[one + 1] - scanned.first[one]
    if count != scanned.first[other + 1] - scanned.first[other]:
        return False
    at_one, at_other = offsets[one], offsets[other]
    for literal in range(count + 1):
        if literal < count:
            a, b = scanned.first[one] + literal, scanned.first[other] + literal
            if scanned.kind[a] != scanned.kind[b]:
                return False
            until_one, until_other = scanned.start[a], scanned.start[b]
        else:
            until_one, until_other = offsets[one + 1], offsets[other + 1]
        if until_one - at_one != until_other - at_other:
            return False
        for step in range(until_one - at_one):
            if data[at_one + step] != data[at_other + step]:
                return False
        if literal < count:
            at_one, at_other = scanned.end[a], scanned.end[b]
    return True
