"""JSON, read strictly.

What lenient readers let pass changes meaning silently: of two equal keys one is lost, 1e999 becomes infinite.
Here each is an error.
"""

from __future__ import annotations

import codecs
import json
import math
from typing import NoReturn

BYTE_ORDER_MARK = codecs.BOM_UTF8
_MAX_DIGITS = 4_000


def parse_object(text: str | bytes) -> dict[str, object]:
    """The JSON object that a text is; ValueError says what is wrong with any other text."""
    return expect_object(_parse(_decoded(text) if isinstance(text, bytes) else text))


def parse_value(text: str) -> object:
    """Any JSON value, read as strictly as the objects are."""
    return _parse(text)


def expect_object(value: object) -> dict[str, object]:
    """The value, if it is an object; ValueError says what it is if not."""
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, found {_spoken(value)}")
    return value


def is_json(text: bytes) -> bool:
    """Whether a text is a JSON value as such."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _decoded(text: bytes) -> str:
    try:
        return text.removeprefix(BYTE_ORDER_MARK).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8: byte 0x{text[error.start]:02x} at position {error.start + 1}") from None


def _parse(text: str) -> object:
    try:
        return DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} (column {error.pos + 1})") from None
    except RecursionError:
        raise ValueError("the JSON nests too deeply") from None


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {key[:80]!r} occurs twice")
            seen.add(key)
    return made


def _integer(text: str) -> int:
    # Python refuses far longer ones by itself, with advice meant for programmers.
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"a number of {len(text):,} digits is too long")
    return int(text)


def _real(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text[:40]} does not fit a 64-bit float")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"not JSON: {name} is not a JSON number")


DECODER = json.JSONDecoder(
    object_pairs_hook=_distinct, parse_int=_integer, parse_float=_real, parse_constant=_refuse_constant
)


def _spoken(value: object) -> str:
    if value is None:
        return "null"
    names = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), type(value).__name__)
