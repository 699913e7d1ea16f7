"""Text to expression: an LALR grammar, a tree builder, and errors that say where and what was meant."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any, TypeAlias, TypeVar

from lark import Lark, Token, Transformer

from harken.errors import BoundError, ExpressionError, ParseError, Position
from harken.language.complaints import complain
from harken.language.lexer import ContextLexer, Lexeme
from harken.language.literals import read_date, read_number, read_string, read_timestamp, unquoted
from harken.language.machine import Machine, RefusedError
from harken.model.expressions import (
    FALSE,
    TRUE,
    And,
    Comparator,
    Comparison,
    Expression,
    Membership,
    Not,
    Or,
    Presence,
    Range,
    Spatial,
    SpatialOperator,
    TextMatch,
    check_limits,
    check_schema,
)
from harken.model.limits import DEFAULT_LIMITS, Limits
from harken.model.schema import Schema
from harken.model.text import TextOperator
from harken.model.values import Box, Kind, Point, Value, checked_constant, kind_of

Made = TypeVar("Made")
Parts: TypeAlias = list[Any]  # the children lark hands to a rule: tokens and what other rules returned

_LOOKS = {"STARTS": "STARTS WITH", "ENDS": "ENDS WITH"} | {
    word: word for word in ("CONTAINS", "MATCHES", "OVERLAPS", "WITHIN")
}
_COMPARATORS = {comparator.value: comparator for comparator in Comparator} | {"<>": Comparator.NE}
# An unclosed comment reaches the end: else each /* in it would be searched from anew.
_QUOTED_OR_COMMENT = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?(?:\*/|\Z)""", re.DOTALL)

_REGEX = re.compile(r"\bMATCHES\s*'", re.IGNORECASE | re.ASCII)


def parse(text: str, *, schema: Schema | None = None, limits: Limits = DEFAULT_LIMITS) -> Expression:
    """The expression a text says.

    Raises ParseError with position for a text outside the language, BoundError past a limit, SchemaError
    for an attribute or constant the schema does not allow. Linear in the text's length; thread-safe.

    >>> parse("price < 300 and maker in ('Sony', 'Nikon')").terms[0]
    Comparison(attribute='price', operator=<Comparator.LT: '<'>, value=300)
    """
    if not isinstance(text, str):
        raise _no_text(text)
    limits.check_length(text)
    _check_brackets(text, limits)
    _check_regexes(text, limits)
    try:
        expression = _machine().run(text)
    except RefusedError:
        raise complain(text, _machine()) from None
    except _BadPartError as bad:
        raise bad.located(text) from None
    check_limits(expression, limits)
    if schema is not None:
        check_schema(expression, schema if isinstance(schema, Schema) else Schema(schema))
    return expression


def _no_text(given: object) -> ExpressionError:
    """What to say about something that is no text."""
    meant = None
    if isinstance(given, bytes | bytearray):
        meant = "decode it"
    elif given is None:
        meant = "a subscription to every event is TRUE"
    elif type(given).__name__ == "Attribute":
        meant = f"write a condition, like {given!r} == True"
    return ExpressionError(f"an expression is a string, found {type(given).__name__}", suggestion=meant)


@cache
def grammar() -> Lark:
    """The grammar with its tables."""
    rules = resources.files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    builder = _TreeBuilder()
    return Lark(rules, parser="lalr", lexer=ContextLexer, transformer=builder, maybe_placeholders=True)


@cache
def _machine() -> Machine[Expression]:
    return Machine(grammar())


def _check_brackets(text: str, limits: Limits) -> None:
    """Brackets leave no trace in the tree, so their depth is bounded here."""
    if text.count("(") <= limits.max_depth:
        return
    depth = 0
    for char in _QUOTED_OR_COMMENT.sub("", text):
        depth += (char == "(") - (char == ")")
        if depth > limits.max_depth:
            raise BoundError("max_depth", limits.max_depth, "the expression nests too many parentheses")


def _check_regexes(text: str, limits: Limits) -> None:
    """Regular expressions are compiled while the text is read, so their number is bounded before."""
    if text.upper().count("MATCHES") <= limits.max_regexes:
        return
    limits.check_regexes(len(_REGEX.findall(_QUOTED_OR_COMMENT.sub("''", text))))


class _BadPartError(Exception):
    """A part of the text that lexes but means nothing, to be told with its position."""

    def __init__(self, token: Lexeme, expected: tuple[str, ...], error: ExpressionError) -> None:
        self.token = token
        self.expected = expected
        self.error = error

    def located(self, text: str) -> ParseError:
        """The error as the user sees it."""
        start = self.token.start_pos
        return ParseError(
            self.error.message,
            text=text,
            position=Position.at(text, start),
            width=len(self.token),
            found=str(self.token),
            expected=self.expected,
            suggestion=self.error.suggestion,
        )


_SHAPES = ("POINT(...)", "BOX(...)")
_UNORDERED = ("=", "!=", "<>")
_LOOKED_FOR = {"CONTAINS": ("a string", *_SHAPES), "MATCHES": ("a regular expression",)}
_CONSTANT_OF = {
    Kind.NUMBER: ("a number",),
    Kind.STRING: ("a string",),
    Kind.BOOL: ("TRUE", "FALSE"),
    Kind.DATE: ("DATE '...'",),
    Kind.TIMESTAMP: ("TIMESTAMP '...'",),
}
Literal: TypeAlias = tuple[Lexeme, Value]
"""A constant and its first token, so that what is wrong with it can be pointed at."""


class _TreeBuilder(Transformer[Token, Expression]):
    """One method per grammar rule; lark calls them bottom-up while it parses."""

    def disjunction(self, terms: Parts) -> Expression:
        return Or(tuple(terms))

    def conjunction(self, terms: Parts) -> Expression:
        return And(tuple(terms))

    def negation(self, parts: Parts) -> Expression:
        return Not(parts[0])

    def always(self, _: Parts) -> Expression:
        return TRUE

    def never(self, _: Parts) -> Expression:
        return FALSE

    def bare(self, parts: Parts) -> Expression:
        return Comparison(_name(parts[0]), Comparator.EQ, True)

    def comparison(self, parts: Parts) -> Expression:
        name, operator, (_, value) = parts
        return _made(operator, _UNORDERED, Comparison, _name(name), _COMPARATORS[operator], value)

    def reversed_comparison(self, parts: Parts) -> Expression:
        (_, value), operator, name = parts
        return _made(operator, _UNORDERED, Comparison, _name(name), _COMPARATORS[operator].flipped, value)

    def literals(self, parts: Parts) -> tuple[Value, ...]:
        return tuple(value for _, value in parts)

    def membership(self, parts: Parts) -> Expression:
        name, values = parts
        return Membership(_name(name), values)

    def not_membership(self, parts: Parts) -> Expression:
        return Not(self.membership(parts))

    def between(self, parts: Parts) -> Expression:
        name, low, high = parts
        return _range(name, low, high)

    def not_between(self, parts: Parts) -> Expression:
        return Not(self.between(parts))

    def range(self, parts: Parts) -> tuple[Literal, Literal, bool, bool]:
        opening, low, _, high, closing = parts
        return low, high, opening == "[", closing == "]"

    def in_range(self, parts: Parts) -> Expression:
        name, bounds = parts
        return _range(name, *bounds)

    def not_in_range(self, parts: Parts) -> Expression:
        return Not(self.in_range(parts))

    def like(self, parts: Parts) -> Expression:
        name, pattern, escape = parts
        escape_text = None if escape is None else _made(escape, ("a single character",), _read_escape, escape)
        arguments = _name(name), TextOperator.LIKE, unquoted(pattern), escape_text
        return _made(pattern, ("a pattern",), TextMatch, *arguments)

    def not_like(self, parts: Parts) -> Expression:
        return Not(self.like(parts))

    def looks(self, parts: Parts) -> str:
        return _LOOKS[parts[0].upper()]

    def looking(self, parts: Parts) -> Expression:
        name, word, (token, operand) = parts
        if word in ("OVERLAPS", "WITHIN") or (word == "CONTAINS" and isinstance(operand, Point | Box)):
            return _made(token, _SHAPES, Spatial, _name(name), SpatialOperator(word), operand)
        return _made(
            token, _LOOKED_FOR.get(word, ("a string",)), TextMatch, _name(name), TextOperator(word), operand
        )

    def not_looking(self, parts: Parts) -> Expression:
        return Not(self.looking(parts))

    def is_null(self, parts: Parts) -> Expression:
        return Presence(_name(parts[0]), False)

    def is_not_null(self, parts: Parts) -> Expression:
        return Presence(_name(parts[0]), True)

    def number(self, parts: Parts) -> Literal:
        return parts[0], _made(parts[0], ("a number",), read_number, parts[0])

    def string(self, parts: Parts) -> Literal:
        return parts[0], _made(parts[0], ("a string",), read_string, parts[0])

    def true(self, parts: Parts) -> Literal:
        return parts[0], True

    def false(self, parts: Parts) -> Literal:
        return parts[0], False

    def date(self, parts: Parts) -> Literal:
        return parts[0], _made(parts[0], ("a date like '2026-11-15'",), read_date, parts[0])

    def timestamp(self, parts: Parts) -> Literal:
        return parts[0], _made(parts[0], ("a moment like '2026-11-15 10:30:00Z'",), read_timestamp, parts[0])

    def point(self, parts: Parts) -> Literal:
        return parts[0], _made(parts[0], ("POINT(x, y)",), Point, *_coordinates(parts[1:]))

    def box(self, parts: Parts) -> Literal:
        return parts[0], _made(parts[0], ("BOX(min_x, min_y, max_x, max_y)",), Box, *_coordinates(parts[1:]))


def _coordinates(tokens: Parts) -> list[float]:
    """Coordinates are floats, whatever they are written with."""
    return [float(_made(token, ("a number",), read_number, token)) for token in tokens]


def _range(
    name: Lexeme, low: Literal, high: Literal, low_closed: bool = True, high_closed: bool = True
) -> Expression:
    """A range; if there is none, the bound at fault says where."""
    kind = kind_of(low[1])
    token, expected = high[0], _CONSTANT_OF.get(kind, ())
    if not kind.is_ordered:
        token, expected = low[0], tuple(words for each in _CONSTANT_OF.values() for words in each)
    return _made(token, expected, Range, _name(name), low[1], high[1], low_closed, high_closed)


def _read_escape(literal: str) -> str:
    escape = unquoted(literal)
    if len(escape) != 1:
        raise ExpressionError(f"ESCAPE needs exactly one character, found {escape!r}")
    return escape


def _made(token: Lexeme, expected: tuple[str, ...], make: Callable[..., Made], *arguments: object) -> Made:
    """What `make` makes of its arguments; if it refuses them, the token says where something else was expected."""
    try:
        return make(*arguments)
    except ExpressionError as error:
        raise _BadPartError(token, expected, error) from None


def _name(token: Lexeme) -> str:
    """An attribute's name, its quotes taken off."""
    if '"' not in token:
        return str(token)
    parts = re.findall(r'"((?:[^"]|"")+)"|([^."]+)', token)
    name = ".".join(quoted.replace('""', '"') or plain for quoted, plain in parts)
    return str(_made(token, ("an attribute",), checked_constant, name))
