"""Bytes to tokens, one at a time: what `language.lexer` does with a regular expression, for what is plain."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.compiler.direct.layout import EQ, GE, GT, LE, LT, NE
from harken.compiler.scanning import is_word, number_end, string_end
from harken.jit import called

UNSURE, END, WORD, WHOLE, REAL, TEXT, COMPARATOR, MARK = range(-1, 7)
"""What a token looks like. A mark is one character that stands for itself."""

_LONGEST_KEY = 9
_QUOTE, _DOT, _PLUS, _DASH, _SPACE, _UNDERSCORE = (ord(char) for char in "'.+- _")
_LESS, _EQUAL, _GREATER, _EXCLAMATION = (ord(char) for char in "<=>!")
_OPEN, _CLOSE, _COMMA, _OPEN_SQUARE, _CLOSE_SQUARE = (ord(char) for char in "(),[]")
_ZERO, _NINE, _LOWER_E, _UPPER_E = (ord(char) for char in "09eE")
_LAST_TENTH, EXACT_IN_FLOAT = (2**63 - 1) // 10, 2**53
_MOST_CHARACTERS, _MOST_TENS = 16, 22
_DATE_LENGTH = len("2026-11-15")
_BEFORE_1970 = 719_468
"""Days from the first of March of the year 0 on."""


def key_of(word: str) -> int:
    """A short word of letters as a number, whatever their case; `word_key` makes the same of bytes."""
    key = 0
    for char in word.upper():
        key = key * 32 + ord(char) - 64
    return key


@called
def word_key(data: npt.NDArray[np.uint8], at: int, past: int) -> int:
    """A word as a number if it may be a keyword, or else 0."""
    if past - at > _LONGEST_KEY:
        return 0
    key = 0
    for place in range(at, past):
        upper = int(data[place]) & 0xDF  # of a letter; of what else is in words, nothing that is a letter
        if upper < 65 or upper > 90:
            return 0
        key = key * 32 + upper - 64
    return key


@called
def past_space(data: npt.NDArray[np.uint8], at: int, past: int) -> int:
    """Past what plain space there is."""
    while at < past and (data[at] == _SPACE or 9 <= data[at] <= 13):
        at += 1
    return at


@called
def next_token(data: npt.NDArray[np.uint8], at: int, past: int) -> tuple[int, int]:
    """What begins at `at`, which is no space, and where it ends."""
    if at >= past:
        return END, at
    byte = data[at]
    if byte < 128 and is_word(byte) and not _ZERO <= byte <= _NINE:
        return _word(data, at, past)
    if _ZERO <= byte <= _NINE or byte in (_PLUS, _DASH, _DOT):
        return _number(data, at, past)
    if byte == _QUOTE:
        return _text(data, at, past)
    if byte in (_OPEN, _CLOSE, _COMMA, _OPEN_SQUARE, _CLOSE_SQUARE):
        return MARK, at + 1
    if byte in (_LESS, _EQUAL, _GREATER, _EXCLAMATION):
        return _comparator(data, at, past)
    return UNSURE, at


@called
def _word(data: npt.NDArray[np.uint8], at: int, past: int) -> tuple[int, int]:
    """Words may have dots in them, each before a letter or an underscore."""
    while at < past:
        byte = data[at]
        if byte >= 128:
            return UNSURE, at
        if byte == _DOT:
            following = data[at + 1] if at + 1 < past else _DOT
            if not is_word(following) or _ZERO <= following <= _NINE:
                return UNSURE, at
        elif not is_word(byte):
            break
        at += 1
    return WORD, at


@called
def _number(data: npt.NDArray[np.uint8], at: int, past: int) -> tuple[int, int]:
    after, is_real = number_end(data, at, past)
    if after == at or (after < past and (is_word(data[after]) or data[after] == _DOT)):
        return UNSURE, at
    return (REAL if is_real else WHOLE), after


@called
def _text(data: npt.NDArray[np.uint8], at: int, past: int) -> tuple[int, int]:
    """A quoted string without quotes in it."""
    after = string_end(data, at, past, _QUOTE)
    for place in range(at + 1, after - 1):
        if data[place] == _QUOTE:
            return UNSURE, at
    return (TEXT if after > 0 else UNSURE), after


@called
def _comparator(data: npt.NDArray[np.uint8], at: int, past: int) -> tuple[int, int]:
    two = at + 1 < past and (
        (data[at + 1] == _EQUAL and data[at] != _EQUAL) or (data[at] == _LESS and data[at + 1] == _GREATER)
    )
    if data[at] == _EXCLAMATION and not two:
        return UNSURE, at
    return COMPARATOR, at + 2 if two else at + 1


@called
def comparator_of(data: npt.NDArray[np.uint8], at: int, past: int) -> int:
    """Which comparator is written there."""
    if past - at == 1:
        if data[at] == _EQUAL:
            return EQ
        return LT if data[at] == _LESS else GT
    if data[at] == _EXCLAMATION or data[at + 1] == _GREATER:
        return NE
    return LE if data[at] == _LESS else GE


@called
def whole_of(data: npt.NDArray[np.uint8], at: int, past: int) -> tuple[int, bool]:
    """The int that is written there, and whether it is sure that it fits 64 bits."""
    negative = data[at] == _DASH
    if negative or data[at] == _PLUS:
        at += 1
    value = np.int64(0)
    while at < past:
        digit = np.int64(data[at]) - _ZERO
        if value > _LAST_TENTH or (value == _LAST_TENTH and digit > 7):
            return 0, False
        value = value * 10 + digit
        at += 1
    return (-value if negative else value), True


@called
def real_of(data: npt.NDArray[np.uint8], at: int, past: int) -> tuple[float, bool]:
    """The float that is written there, and whether it is sure.

    Fifteen digits are exact in a float, and so are the powers of ten up to 22: one rounding gives the nearest.
    """
    if past - at > _MOST_CHARACTERS:
        return 0.0, False
    negative = data[at] == _DASH
    if negative or data[at] == _PLUS:
        at += 1
    digits, tens, is_fraction = np.int64(0), 0, False
    while at < past and data[at] != _LOWER_E and data[at] != _UPPER_E:
        if data[at] == _DOT:
            is_fraction = True
        else:
            digits = digits * 10 + np.int64(data[at]) - _ZERO
            tens -= is_fraction
        at += 1
    if at < past:
        exponent, is_sure = whole_of(data, at + 1, past)
        if not is_sure or abs(exponent) > 2 * _MOST_TENS:
            return 0.0, False
        tens += exponent
    if abs(tens) > _MOST_TENS or digits >= 10**15:
        return 0.0, False
    scale = 1.0
    for _ in range(abs(tens)):
        scale *= 10.0
    value = np.float64(digits) * scale if tens >= 0 else np.float64(digits) / scale
    return (-value if negative else value), True


@called
def date_of(data: npt.NDArray[np.uint8], at: int, past: int) -> tuple[int, bool]:
    """The day that is written there as 2026-11-15, counted from 1970 on, and whether there is such a day."""
    if past - at != _DATE_LENGTH or data[at + 4] != _DASH or data[at + 7] != _DASH:
        return 0, False
    year, month, day = _digits(data, at, at + 4), _digits(data, at + 5, at + 7), _digits(data, at + 8, past)
    if year < 1 or month < 1 or month > 12 or day < 1 or day > 31:
        return 0, False
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if (day > 30 and month in (4, 6, 9, 11)) or (month == 2 and day > 28 + is_leap):
        return 0, False
    # Years that begin in March have the odd day at their end.
    years = year - (month < 3)
    days = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return years * 365 + years // 4 - years // 100 + years // 400 + days - _BEFORE_1970, True


@called
def _digits(data: npt.NDArray[np.uint8], at: int, past: int) -> int:
    """The number that is written there; -1 if there is anything but digits."""
    value = 0
    while at < past:
        if not _ZERO <= data[at] <= _NINE:
            return -1
        value = value * 10 + int(data[at]) - _ZERO
        at += 1
    return value
