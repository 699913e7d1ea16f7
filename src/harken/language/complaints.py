"""Turning a parser's failure into words: where, what was found, what was expected, what was perhaps meant."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lark.exceptions import UnexpectedToken

from harken.errors import ParseError, Position

_SPOKEN = {
    "NAME": "an attribute",
    "COMPARATOR": "a comparison",
    "NUMBER": "a constant",
    "STRING": "a string",
    "TRUE": "TRUE",
    "FALSE": "FALSE",
    "LPAR": "'('",
    "RPAR": "')'",
    "LSQB": "'['",
    "RSQB": "']'",
    "COMMA": "','",
    "$END": "the end",
    "STARTS": "STARTS WITH",
    "ENDS": "ENDS WITH",
}

# What people write out of habit from other languages, and what to write here.
_HABITS = {
    "=>": "write >= for 'greater or equal'",
    "=<": "write <= for 'less or equal'",
    "==": "write = for equality",
    "&&": "write AND",
    "||": "write OR",
    "!": "write NOT, or != for 'not equal'",
}
_WORD = re.compile(r"\w+|\S")


def complain(text: str, error: UnexpectedToken) -> ParseError:
    """The ParseError for what lark could not accept."""
    at_end = error.token.type == "$END"
    if at_end and not text.strip():
        return _error(text, 0, 0, "the expression is empty", None, ())
    offset = len(text) if at_end else error.token.start_pos
    found = "" if at_end else _found_at(text, offset)
    unclosed = _unclosed(text, offset)
    if unclosed:
        return _error(text, offset, 1, unclosed, found, ())
    expected = _spoken(error.accepts or error.expected)
    message = "the expression ends too early" if offset == len(text) else f"unexpected {found!r}"
    if expected:
        message += f", expected {_listed(expected)}"
    hint, back = _hint(text, offset, found, expected)
    return _error(text, offset - back, len(found) + back, message, found, expected, hint)


def _error(
    text: str,
    offset: int,
    width: int,
    message: str,
    found: str | None,
    expected: tuple[str, ...],
    hint: str | None = None,
) -> ParseError:
    position = Position.at(text, offset)
    return ParseError(
        message, text=text, position=position, width=width, found=found, expected=expected, suggestion=hint
    )


def _found_at(text: str, offset: int) -> str:
    found = _WORD.match(text, offset)
    return found.group()[:40] if found else ""


def _unclosed(text: str, offset: int) -> str | None:
    """A quote or comment that begins here and never ends."""
    if text.startswith("/*", offset):
        return "the comment is never closed with */"
    if text[offset : offset + 1] == "'" and text.count("'", offset) % 2:
        return "the string is never closed with '"
    if text[offset : offset + 1] == '"' and text.count('"', offset) % 2:
        return 'the quoted name is never closed with "'
    return None


def _spoken(terminals: Iterable[str]) -> tuple[str, ...]:
    """Terminal names as a reader knows them; the many ways to start a constant are one."""
    names = set(terminals)
    if "NUMBER" in names:
        names -= {"STRING", "TRUE", "FALSE", "_DATE", "_TIMESTAMP", "POINT", "BOX"}
    if {"COMPARATOR", "_IN"} <= names:
        names = {"COMPARATOR", "_IN", "_BETWEEN", "_LIKE", "_IS"}
    elif {"_AND", "_OR"} <= names:
        names &= {"_AND", "_OR", "RPAR"}
    if "NAME" in names:
        names -= {"_EXISTS", "LPAR"}
    return tuple(sorted(_SPOKEN.get(name, name.strip("_").replace("_", " ")) for name in names))


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _hint(text: str, offset: int, found: str, expected: tuple[str, ...]) -> tuple[str | None, int]:
    """A suggestion for a near miss, and how many characters before the offset it begins."""
    for habit, advice in _HABITS.items():
        for back in range(len(habit)):
            if offset >= back and text.startswith(habit, offset - back):
                return advice, back
    if found.upper() == "NULL":
        return "to ask whether an attribute is missing, write IS NULL", 0
    # Where an attribute could stand too, what was found is a keyword out of place, not a string without quotes.
    wants_constant = ("a constant" in expected or "a string" in expected) and "an attribute" not in expected
    if wants_constant and found == '"':
        return "strings stand in single quotes: 'like this'", 0
    if wants_constant and (found[:1].isalpha() or found[:1] == "_"):
        return f"if a string is meant, write '{found}'; two attributes cannot be compared", 0
    return None, 0
