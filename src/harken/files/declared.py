"""What files hold as text, made into values of the types that a schema declares.

JSON has no dates and CSV has no points. Where the schema says an attribute is one, `"2026-11-15"` becomes a date
and `[2.35, 48.86]` a point. All other values stay as they are: whether they fit is for the engine to say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import pyarrow as pa

from harken.errors import EventError, ExpressionError
from harken.files.json_text import parse_value
from harken.language.literals import read_literal, read_timestamp
from harken.language.printer import value_text
from harken.model.events import MAX_NESTING
from harken.model.schema import Schema
from harken.model.values import Box, Point, Type
from harken.normal.compiled import MOMENT

_EXAMPLES = {Type.DATE: "2026-11-15", Type.TIMESTAMP: "2026-11-15T10:30:00Z"}
_SHAPES = {Type.POINT: (Point, 2), Type.BOX: (Box, 4)}
_ARROW = {
    Type.DATE: pa.date32(),
    Type.TIMESTAMP: MOMENT,
    Type.POINT: pa.list_(pa.float64(), 2),
    Type.BOX: pa.list_(pa.float64(), 4),
}


def moment(text: str) -> datetime:
    """The timestamp that a text says, by the rules of the language; ExpressionError if it says none."""
    return read_timestamp(value_text(text))


class Declared:
    """The attributes of a schema whose values files hold in another form."""

    def __init__(self, schema: Schema | None) -> None:
        self.types: Mapping[str, Type] = {
            name: declared for name, declared in (schema or {}).items() if declared in _ARROW
        }

    def fill(self, event: dict[str, object]) -> None:
        """Put typed values into an event read from JSON; EventError names the attribute at fault."""
        if self.types:
            self._fill(event, "", 1)

    def _fill(self, part: dict[str, object], prefix: str, depth: int) -> None:
        for key, value in part.items():
            name = prefix + key
            if name in self.types:
                part[key] = _located(name, typed, self.types[name], value)
            elif isinstance(value, dict) and depth < MAX_NESTING:
                self._fill(value, f"{name}.", depth + 1)

    def filled(self, table: pa.Table) -> tuple[pa.Table, dict[int, EventError]]:
        """The table with typed columns, and what is wrong with the rows that have a cell which cannot be one."""
        faults: dict[int, EventError] = {}
        for at, name in enumerate(table.column_names):
            declared = self.types.get(name)
            if declared is not None and _is_untyped(table.column(at).type, declared):
                values = enumerate(table.column(at).to_pylist())
                cells = [_cell(name, declared, row, value, faults) for row, value in values]
                table = table.set_column(at, name, pa.array(cells, _ARROW[declared]))
        return table, faults


def typed(declared: Type, value: object) -> object:
    """The value as the declared type, if it is of the form that files write that type in; else as it is."""
    if declared in _EXAMPLES:
        return _moment(declared, value) if isinstance(value, str) else value
    if isinstance(value, str) and value.startswith("["):
        value = _coordinates(value)
    make, count = _SHAPES[declared]
    if not isinstance(value, list):
        return value
    if len(value) != count:
        raise ExpressionError(f"a {declared.value} has {count} coordinates, found {len(value)}")
    return make(*value)


def _moment(declared: Type, text: str) -> object:
    try:
        return read_literal(declared, value_text(text))
    except ExpressionError as error:
        # Its own advice is for expressions, where a keyword stands before.
        raise ExpressionError(error.message, suggestion=f"write it like {_EXAMPLES[declared]}") from None


def _coordinates(text: str) -> object:
    try:
        return parse_value(text)
    except ValueError as error:
        raise ExpressionError(str(error)) from None


def _located(name: str, make: Callable[[Type, object], object], declared: Type, value: object) -> object:
    try:
        return make(declared, value)
    except ExpressionError as error:
        raise EventError(f"attribute {name!r}: {error}", attribute=name) from None


def _is_untyped(found: pa.DataType, declared: Type) -> bool:
    if pa.types.is_string(found) or pa.types.is_large_string(found):
        return True
    return declared in _SHAPES and (pa.types.is_list(found) or pa.types.is_large_list(found))


def _cell(name: str, declared: Type, row: int, value: object, faults: dict[int, EventError]) -> object:
    """The value as Arrow takes it; a fault is noted and leaves the cell empty."""
    try:
        made = _located(name, _arrow_value, declared, value)
    except EventError as error:
        faults.setdefault(row, error)
        return None
    return made


def _arrow_value(declared: Type, value: object) -> object:
    made = typed(declared, value)
    if isinstance(made, Point):
        return made.x, made.y
    if isinstance(made, Box):
        return made.bounds
    if isinstance(made, str | Sequence):
        raise ExpressionError(f"{made!r} is not a {declared.value}", suggestion="write it like [1.5, 2.5]")
    return made
