"""Characters to tokens, in one regular expression and with the parser's help.

Only a few words are reserved. All other keywords mean something only where the grammar can use them, and
stay usable as attribute names elsewhere: `date = DATE '2026-11-15' AND contains CONTAINS 'x'` is fine.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

from lark.common import LexerConf
from lark.lexer import Lexer, LexerState
from lark.parsers.lalr_parser_state import ParserState

STRING = r"'(?:[^']|'')*'"
NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_PART = r'(?:[^\W\d]\w*|"(?:[^"]|"")+")'

# STRAY is a character that begins no token: no rule accepts it, so the parser says what it expected instead.
TOKEN = re.compile(
    rf"""\s*(?:(?P<word>{_PART}(?:\.{_PART})*)
    |(?P<NUMBER>{NUMBER})
    |(?P<STRING>{STRING})
    |(?P<COMPARATOR><>|!=|<=|>=|=|<|>)
    |(?P<LPAR>\()|(?P<RPAR>\))|(?P<COMMA>,)|(?P<LSQB>\[)|(?P<RSQB>\])
    |(?P<skip>--[^\n]*|/\*.*?\*/|\Z)
    |(?P<STRAY>.))""",
    re.VERBOSE | re.DOTALL,
)

RESERVED = {
    "AND": "_AND",
    "OR": "_OR",
    "NOT": "_NOT",
    "IN": "_IN",
    "BETWEEN": "_BETWEEN",
    "LIKE": "_LIKE",
    "IS": "_IS",
    "NULL": "_NULL",
    "EXISTS": "_EXISTS",
    "TRUE": "TRUE",
    "FALSE": "FALSE",
}
CONTEXTUAL = {
    "RANGE": "_RANGE",
    "ESCAPE": "_ESCAPE",
    "STARTS": "STARTS",
    "ENDS": "ENDS",
    "WITH": "_WITH",
    "CONTAINS": "CONTAINS",
    "MATCHES": "MATCHES",
    "OVERLAPS": "OVERLAPS",
    "WITHIN": "WITHIN",
}
# These can begin an expression, as an attribute can: what follows tells the two apart.
BEFORE_QUOTE = {"DATE": "_DATE", "TIMESTAMP": "_TIMESTAMP"}
BEFORE_BRACKET = {"POINT": "POINT", "BOX": "BOX"}
_QUOTE, _BRACKET = re.compile(r"\s*'"), re.compile(r"\s*\(")


class Lexeme(str):
    """A token as lark's parser needs it, at a fraction of the cost of lark's own."""

    __slots__ = ("start_pos", "type")
    type: str
    start_pos: int
    # lark asks for these when it reports an error; positions are computed from the offset then.
    line = column = end_line = end_column = end_pos = None


class ContextLexer(Lexer):
    """Tokens of the WHERE language, for lark."""

    __future_interface__ = 2

    def __init__(self, _: LexerConf) -> None:
        pass

    def lex(self, lexer_state: LexerState, parser_state: ParserState[int]) -> Iterator[Lexeme]:  # type: ignore[override]  # duck-typed for speed
        """The tokens, each decided only when the parser has taken the one before."""
        text = lexer_state.text.text
        states = parser_state.parse_conf.states
        match, at, end = TOKEN.match, 0, len(text)
        while at < end:
            found = match(text, at)
            kind: str = found.lastgroup  # type: ignore[union-attr,assignment]  # something always matches
            start, at = found.span(kind)  # type: ignore[union-attr]
            if kind == "skip":
                continue
            lexeme = Lexeme(text[start:at])
            lexeme.start_pos = start
            lexeme.type = word_type(lexeme, text, at, states[parser_state.position]) if kind == "word" else kind
            yield lexeme


def word_type(value: str, text: str, after: int, accepted: Container[str]) -> str:
    """Which terminal a word is, where the parser accepts these."""
    if not value.isascii():  # where upper() can make a keyword of what is none
        return "NAME"
    upper = value.upper()
    reserved = RESERVED.get(upper)
    if reserved is not None:
        return reserved
    keyword = CONTEXTUAL.get(upper)
    if keyword is not None:
        return keyword if keyword in accepted else "NAME"
    if upper in BEFORE_QUOTE and _QUOTE.match(text, after):
        return BEFORE_QUOTE[upper]
    if upper in BEFORE_BRACKET and _BRACKET.match(text, after):
        return BEFORE_BRACKET[upper]
    return "NAME"
