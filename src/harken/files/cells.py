"""What the cells of CSV mean: which type a column is of, and what each cell says.

One set of rules, for `harken match` and for Spark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from harken.errors import ExpressionError
from harken.files.declared import typed
from harken.model.values import INT_MAX, INT_MIN, Type
from harken.normal.compiled import MOMENT

WIDE = pa.decimal128(38, 0)
"""Whole numbers of which some do not fit 64 bits."""

_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
_OFFSET = r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
_EXPONENT = r"([eE][+-]?[0-9]+)?"

_FORMS: Mapping[Type, str] = {
    # `007` is no number: whoever writes it means the zeros.
    Type.INT: r"-?(0|[1-9][0-9]{0,37})",
    Type.FLOAT: rf"-?(0|[1-9][0-9]{{0,37}})(\.[0-9]*)?{_EXPONENT}|-?\.[0-9]+{_EXPONENT}|NaN|-?inf",
    Type.BOOL: "true|True|TRUE|false|False|FALSE",
    Type.DATE: _DAY,
    Type.TIMESTAMP: rf"{_DAY}[ T]{_CLOCK}{_OFFSET}?",
}
"""How values of a type are written, in the order in which they are tried."""

_SPOKEN = {Type.INT: "an int", Type.FLOAT: "a number"}
_COMPILED = {kind: re.compile(form) for kind, form in _FORMS.items()}
_ARROW = {Type.INT: pa.int64(), Type.FLOAT: pa.float64(), Type.BOOL: pa.bool_(), Type.DATE: pa.date32()}


def inferred(column: pa.ChunkedArray) -> Type | None:
    """The type that all cells of a column of text are of; None if there are only empty ones.

    INT also where some do not fit 64 bits; what is of no other type is STRING.
    """
    if column.null_count == len(column):
        return None
    for kind in _FORMS:
        if quick(column, kind) is not None:
            return kind
    return Type.STRING


def quick(column: pa.ChunkedArray, kind: Type) -> pa.ChunkedArray | None:
    """A column of text as values; None if some cell says none of this type.

    Whole numbers become decimals where some do not fit 64 bits.
    """
    if kind not in _FORMS:
        return column
    if not _all(column, f"^({_FORMS[kind]})$"):
        return None
    try:
        return _moments(column) if kind is Type.TIMESTAMP else column.cast(_ARROW[kind])
    except pa.ArrowInvalid:
        return column.cast(WIDE) if kind is Type.INT else None


def fault(text: str, kind: Type) -> str | None:
    """What is wrong with a cell that is to be of this type; None if it is."""
    if kind not in _COMPILED:
        return None
    if not _COMPILED[kind].fullmatch(text):
        return f"{_cut(text)} is not {_SPOKEN.get(kind, f'a {kind.value}')}"
    if kind is Type.INT and not INT_MIN <= int(text) <= INT_MAX:
        return f"{_cut(text)} does not fit a 64-bit integer"
    if kind in (Type.DATE, Type.TIMESTAMP):
        try:
            typed(kind, text)
        except ExpressionError as error:
            return str(error)
    return None


def _all(column: pa.ChunkedArray, form: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(column, form), min_count=0).as_py())


def _moments(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Timestamps; those that say no offset are meant in UTC."""
    said = pc.match_substring_regex(column, f"{_CLOCK}{_OFFSET}$")
    return pc.if_else(said, column, pc.binary_join_element_wise(column, "Z", "")).cast(MOMENT)


def _cut(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:80]}…")
