"""Turning a parser's failure into words: where, what was found, what was expected, what was perhaps meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from harken.errors import ParseError, Position
from harken.language.hints import CONSTANTS, Seen, Slip, hint_for, tokens_before
from harken.language.machine import Machine

END = "end of text"
"""What is found where a text ends too early."""

# All that can stand somewhere, in the order in which people are told.
_SPOKEN = {
    "NAME": "an attribute",
    "NUMBER": "a number",
    "STRING": "a string",
    "TRUE": "TRUE",
    "FALSE": "FALSE",
    "_DATE": "DATE '...'",
    "_TIMESTAMP": "TIMESTAMP '...'",
    "POINT": "POINT(...)",
    "BOX": "BOX(...)",
    "COMPARATOR": "a comparison",
    "_NOT": "NOT",
    "_IN": "IN",
    "_BETWEEN": "BETWEEN",
    "_LIKE": "LIKE",
    "STARTS": "STARTS WITH",
    "ENDS": "ENDS WITH",
    "CONTAINS": "CONTAINS",
    "MATCHES": "MATCHES",
    "OVERLAPS": "OVERLAPS",
    "WITHIN": "WITHIN",
    "_IS": "IS",
    "_NULL": "NULL",
    "_EXISTS": "EXISTS",
    "_WITH": "WITH",
    "_ESCAPE": "ESCAPE",
    "LPAR": "'('",
    "LSQB": "'['",
    "RPAR": "')'",
    "RSQB": "']'",
    "COMMA": "','",
    "_RANGE": "RANGE",
    "_AND": "AND",
    "_OR": "OR",
    "$END": "the end",
}

_SHOWN = 40
_WORD = re.compile(r"\w+")


def complain(text: str, machine: Machine[Any]) -> ParseError:
    """The ParseError for a text that the parser could not accept."""
    offset, found, kind, accepts = machine.refusal(text)
    if kind == "STRAY" and found.isalnum():  # digits of another script, say: all of them
        found = _WORD.match(text, offset)[0]  # type: ignore[index]  # they match
    before = tokens_before(text, offset)
    accepts = _meaningful(accepts, before)
    slip = Slip(text, Seen(kind, found, offset), before, accepts)
    if not found and not slip.before:
        if text.strip():  # comments, and nothing else
            return _error(text, offset, END, _unexpected("", accepts), spoken(accepts))
        return _error(text, 0, END, "the expression is empty", spoken(accepts))
    unclosed = _unclosed(text, offset)
    if unclosed:
        opening, closing = unclosed
        return _error(text, offset, found, f"{opening} is never closed with {closing}", (closing,))
    hint = hint_for(slip)
    if hint is None:
        return _error(text, offset, found or END, _unexpected(found, accepts), spoken(accepts))
    # What is wrong may begin before the token that the parser stumbled over.
    if hint.start is not None and hint.start < offset:
        offset, accepts = hint.start, machine.refusal(text, hint.start).accepts
    found = text[offset : slip.found.end if hint.end is None else hint.end]
    return _error(text, offset, found or END, _unexpected(found, accepts), spoken(accepts), hint.advice)


def _error(
    text: str, offset: int, found: str, message: str, expected: tuple[str, ...], hint: str | None = None
) -> ParseError:
    return ParseError(
        message,
        text=text,
        position=Position.at(text, offset),
        width=0 if found == END else len(found),
        found=found,
        expected=expected,
        suggestion=hint,
    )


def _unexpected(found: str, accepts: Iterable[str]) -> str:
    shown = found if len(found) <= _SHOWN else found[: _SHOWN - 1] + "…"
    said = f"unexpected {shown!r}" if found else "the expression ends too early"
    return f"{said}, expected {_listed(_briefly(accepts))}"


_SHAPES = {"POINT", "BOX"}
_AFTER = {
    "CONTAINS": {"STRING", *_SHAPES},
    "OVERLAPS": _SHAPES,
    "WITHIN": _SHAPES,
    "MATCHES": {"STRING"},
    "WITH": {"STRING"},
    **dict.fromkeys(("<", "<=", ">", ">=", "BETWEEN"), CONSTANTS - _SHAPES),
}


def _meaningful(accepts: frozenset[str], before: tuple[Seen, ...]) -> frozenset[str]:
    """The grammar takes any constant where one can stand; only some of them mean something there."""
    if not before or "NAME" in accepts or not accepts >= CONSTANTS:
        return accepts
    word = before[-1].text.upper()
    if word == "AND":  # the second bound is of the kind of the first
        return accepts & _alike(before[:-1])
    opening = next((at for at in range(len(before) - 1, 0, -1) if before[at].text in "[("), 0)
    if before[opening - 1].text.upper() == "RANGE":
        return accepts & (_alike(before[:-1]) if word == "," else CONSTANTS - _SHAPES)
    return accepts & _AFTER.get(word, CONSTANTS)


def _alike(before: tuple[Seen, ...]) -> set[str]:
    """The constants of the kind of the last one."""
    kind, word = before[-1].kind, before[-2].text.upper()
    if kind == "STRING" and word in ("DATE", "TIMESTAMP"):
        return {f"_{word}"}
    return {kind} if kind in ("NUMBER", "STRING") else {"TRUE", "FALSE"}


def _unclosed(text: str, offset: int) -> tuple[str, str] | None:
    """What begins here and never ends, and what would end it."""
    if text.startswith("/*", offset):
        return "the comment", "*/"
    if text[offset : offset + 1] == "'" and text.count("'", offset) % 2:
        return "the string", "'"
    if text[offset : offset + 1] == '"' and text.count('"', offset) % 2:
        return "the quoted name", '"'
    return None


def spoken(terminals: Iterable[str]) -> tuple[str, ...]:
    """All terminals as a reader knows them, always in the same order."""
    names = set(terminals)
    return tuple(words for name, words in _SPOKEN.items() if name in names)


def _briefly(terminals: Iterable[str]) -> list[str]:
    """The same in few words, for the message: a constant is one thing, and a few operators stand for all."""
    names = set(terminals)
    said: list[str] = []
    if "NUMBER" in names and "STRING" in names:
        names -= CONSTANTS
        said.append("a constant")
    if {"COMPARATOR", "_IN"} <= names:
        names = {"COMPARATOR", "_IN", "_BETWEEN", "_LIKE", "_IS"}
    elif {"_AND", "_OR"} <= names:
        names &= {"_AND", "_OR", "RPAR", "COMMA"}
    if "NAME" in names:
        names -= {"_EXISTS", "LPAR"}
    return sorted([*said, *spoken(names)], key=lambda words: (words != "an attribute", words != "a constant"))


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
