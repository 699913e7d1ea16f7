"""Expression to text: what it prints parses back to the same expression."""

from __future__ import annotations

import re
from datetime import date, datetime

from harken.language.lexer import RESERVED
from harken.model.expressions import (
    And,
    Comparison,
    Constant,
    Expression,
    Membership,
    Not,
    Or,
    Predicate,
    Presence,
    Range,
    Spatial,
    TextMatch,
)
from harken.model.values import Box, EventValue, Point

_PLAIN_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_OR_LEVEL, _AND_LEVEL, _NOT_LEVEL = range(3)


def to_text(expression: Expression) -> str:
    """The expression in the WHERE language, on one line, with no more parentheses than needed."""
    return _text(expression, _OR_LEVEL)


def name_text(name: str) -> str:
    """An attribute's name, quoted if it has to be."""
    if _PLAIN_NAME.fullmatch(name) and name.split(".")[0].upper() not in RESERVED:
        return name
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def value_text(value: EventValue) -> str:
    """A constant, or an event's value, as the language writes it."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ').removesuffix('+00:00')}Z'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case Point():
            return f"POINT({value.x!r}, {value.y!r})"
        case Box():
            return f"BOX({', '.join(repr(edge) for edge in value.bounds)})"
        case _:
            return str(value)


def _text(node: Expression, level: int) -> str:
    match node:
        case Or(terms=terms):
            return _bracketed(" OR ".join(_text(term, _AND_LEVEL) for term in terms), level > _OR_LEVEL)
        case And(terms=terms):
            return _bracketed(" AND ".join(_text(term, _NOT_LEVEL) for term in terms), level > _AND_LEVEL)
        case Not(term=Membership() | Range() | TextMatch() | Spatial() as inside):
            return _predicate(inside, " NOT")
        case Not(term=term):
            return f"NOT {_text(term, _NOT_LEVEL)}"
        case Constant(truth=truth):
            return "TRUE" if truth else "FALSE"
        case _:
            return _predicate(node, "")


def _bracketed(text: str, needed: bool) -> str:
    return f"({text})" if needed else text


def _predicate(node: Predicate, negation: str) -> str:
    name = name_text(node.attribute) + negation
    match node:
        case Comparison(operator=operator, value=value):
            return f"{name} {operator.value} {value_text(value)}"
        case Membership(values=values):
            return f"{name} IN ({', '.join(map(value_text, values))})"
        case Range(low=low, high=high, low_closed=True, high_closed=True):
            return f"{name} BETWEEN {value_text(low)} AND {value_text(high)}"
        case Range(low=low, high=high, low_closed=low_closed, high_closed=high_closed):
            opening, closing = "[" if low_closed else "(", "]" if high_closed else ")"
            return f"{name} IN RANGE {opening}{value_text(low)}, {value_text(high)}{closing}"
        case TextMatch(operator=operator, pattern=pattern, escape=escape):
            suffix = "" if escape is None else f" ESCAPE {value_text(escape)}"
            return f"{name} {operator.value} {value_text(pattern)}{suffix}"
        case Spatial(operator=operator, shape=shape):
            return f"{name} {operator.value} {value_text(shape)}"
        case Presence(present=present):
            return f"{name} IS NOT NULL" if present else f"{name} IS NULL"
