"""String predicates: LIKE, STARTS WITH, ENDS WITH, CONTAINS and MATCHES (regular expressions).

Regular expressions are RE2's, so that no pattern a subscriber writes can take more than linear time.
LIKE patterns run on the same machine for the same reason.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from harken.errors import ExpressionError

MAX_REGEX_MEMORY = 2**20
"""Bytes of one compiled regular expression: a short one such as `\\pL{90}` can grow large, and take long to."""

_PERL = re.compile(r"perl operator|escape sequence: \\[1-9]")


class TextOperator(enum.Enum):
    """The ways to look inside a string."""

    LIKE = "LIKE"
    STARTS_WITH = "STARTS WITH"
    ENDS_WITH = "ENDS WITH"
    CONTAINS = "CONTAINS"
    MATCHES = "MATCHES"

    __hash__ = object.__hash__


class Wildcard(enum.Enum):
    """The two wildcards of LIKE."""

    ANY_RUN = "%"
    ANY_ONE = "_"


def like_tokens(pattern: str, escape: str | None) -> list[str | Wildcard]:
    """A LIKE pattern as literal pieces and wildcards; neighbouring characters are one piece."""
    tokens: list[str | Wildcard] = []
    literal: list[str] = []
    characters = iter(pattern)
    for char in characters:
        if char != escape and char in "%_":
            if literal:
                tokens.append("".join(literal))
                literal.clear()
            tokens.append(Wildcard(char))
            continue
        if char == escape:
            char = next(characters, "")
            if not char:
                raise ExpressionError(f"LIKE pattern {pattern!r} ends with its escape character")
        literal.append(char)
    if literal:
        tokens.append("".join(literal))
    return tokens


@lru_cache(maxsize=4096)
def text_test(operator: TextOperator, pattern: str, escape: str | None = None) -> Callable[[str], bool]:
    """A function that says whether a string satisfies the predicate; linear in the string's length."""
    if operator is TextOperator.STARTS_WITH:
        return lambda value: value.startswith(pattern)
    if operator is TextOperator.ENDS_WITH:
        return lambda value: value.endswith(pattern)
    if operator is TextOperator.CONTAINS:
        return lambda value: pattern in value
    if operator is TextOperator.LIKE:
        full = _compiled_regex(_like_regex(pattern, escape))
        return lambda value: full.fullmatch(value) is not None
    search = _compiled_regex(pattern, MAX_REGEX_MEMORY)
    return lambda value: search.search(value) is not None


def check_pattern(operator: TextOperator, pattern: str, escape: str | None) -> None:
    """Refuse a pattern that has no meaning: a bad regular expression, a dangling escape."""
    if escape is not None and operator is not TextOperator.LIKE:
        raise ExpressionError(f"ESCAPE belongs to LIKE, not to {operator.value}")
    is_character = isinstance(escape, str) and len(escape) == 1 and not "\ud800" <= escape <= "\udfff"
    if escape is not None and not is_character:
        raise ExpressionError(f"ESCAPE needs exactly one character, found {escape!r}")
    if operator in (TextOperator.LIKE, TextOperator.MATCHES):
        text_test(operator, pattern, escape)


def _like_regex(pattern: str, escape: str | None) -> str:
    import re2

    wild = {Wildcard.ANY_RUN: ".*", Wildcard.ANY_ONE: "."}
    pieces = [
        wild[token] if isinstance(token, Wildcard) else re2.escape(token) for token in like_tokens(pattern, escape)
    ]
    return f"(?s:{''.join(pieces)})"


def _compiled_regex(pattern: str, memory: int | None = None) -> Any:  # google-re2 ships no types
    import re2

    options = re2.Options()
    options.log_errors = False
    if memory is not None:
        options.max_mem = memory
    try:
        return re2.compile(pattern, options=options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        said = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        hint = "RE2 has no backreferences and no look-around" if _PERL.search(said) else None
        raise ExpressionError(f"bad regular expression {_short(pattern)}: {said}", suggestion=hint) from None


def _short(pattern: str) -> str:
    return repr(pattern if len(pattern) <= 60 else pattern[:57] + "...")
