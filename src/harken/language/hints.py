"""What people write out of habit from SQL and other languages, and what to write here instead.

Each rule looks at one slip and says something, or nothing. The first that does is heard; the surest come first.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import NamedTuple

from harken.errors import Position, closest
from harken.language.lexer import TOKEN

CONSTANTS = frozenset({"NUMBER", "STRING", "TRUE", "FALSE", "_DATE", "_TIMESTAMP", "POINT", "BOX"})
"""The terminals that begin a constant."""


class Seen(NamedTuple):
    """A token, as the lexer cuts it without the parser's help."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Where the next one may begin."""
        return self.start + len(self.text)


class Hint(NamedTuple):
    """What to write instead; and where what is wrong begins and ends, if that is more than the token."""

    advice: str
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Slip:
    """A token where the grammar has no use for it."""

    text: str
    found: Seen
    """Of kind $END behind the last one."""
    before: tuple[Seen, ...]
    accepts: Set[str]
    """The terminals that could stand there."""

    @property
    def word(self) -> str:
        """What was found, in capitals."""
        return self.found.text.upper()

    @property
    def last(self) -> Seen:
        """The token before; one without text at the start."""
        return self.before[-1] if self.before else Seen("", "", 0)

    @property
    def rest(self) -> str:
        """The text from the token on."""
        return self.text[self.found.start :]

    @property
    def wants_constant(self) -> bool:
        """Whether a constant, or a string, could stand there, and no attribute."""
        return bool(self.accepts & CONSTANTS) and "NAME" not in self.accepts

    @property
    def wants_operator(self) -> bool:
        """Whether an attribute has just been named, or NOT after it."""
        return "_BETWEEN" in self.accepts

    @property
    def wants_connective(self) -> bool:
        """Whether a predicate is complete."""
        return {"_AND", "_OR"} <= self.accepts


def tokens_before(text: str, start: int) -> tuple[Seen, ...]:
    """The tokens before an offset at which one begins."""
    seen: list[Seen] = []
    for token in TOKEN.finditer(text, 0, start):
        begin, end = token.span(token.lastgroup or 0)
        if token.lastgroup != "skip" and begin < end:
            seen.append(Seen(str(token.lastgroup), text[begin:end], begin))
    return tuple(seen)


def hint_for(slip: Slip) -> Hint | None:
    """What to say about a slip, if anything."""
    for rule in _RULES:
        hint = rule(slip)
        if hint is not None:
            made = Hint(hint) if isinstance(hint, str) else hint
            return made._replace(advice=_on_one_line(made.advice))
    return None


def _on_one_line(advice: str) -> str:
    """What is quoted of a text may hold anything; a message is one line that can be printed."""
    return "".join(char if char.isprintable() else " " for char in advice)


_Said = Hint | str | None

# ---------------------------------------------------------------- around the condition

_CLAUSES = {"ORDER", "GROUP", "HAVING", "LIMIT", "OFFSET", "FROM", "UNION", "JOIN", "FETCH"}


def _whole_query(slip: Slip) -> _Said:
    first = slip.before[0] if slip.before else slip.found
    if first.text.upper() == "WHERE" and len(slip.before) <= 1:
        return Hint("leave out WHERE: the text is the condition alone", first.start, first.end)
    if first.text.upper() in ("SELECT", "DELETE", "UPDATE") and len(slip.before) <= 2:
        return Hint("write only the condition, what would come after WHERE", first.start, first.end)
    if slip.wants_connective and slip.word in _CLAUSES:
        return f"leave out {slip.word} and what follows: the text is a condition alone"
    return None


def _semicolon(slip: Slip) -> _Said:
    if slip.found.text != ";":
        return None
    if "COMMA" in slip.accepts:
        return "write a comma"
    return "leave out the ;" if not slip.rest.strip("; \t\r\n") else "write one expression, without a ;"


def _brackets(slip: Slip) -> _Said:
    if slip.found.text == ")" and slip.wants_connective:
        return "there is no '(' that it could close"
    opened = _opened(slip.before)
    if slip.found.kind == "$END" and opened is not None and "RPAR" in slip.accepts:
        return f"the '(' in {Position.at(slip.text, opened.start)} is never closed"
    return None


def _opened(before: tuple[Seen, ...]) -> Seen | None:
    """The last parenthesis that is open."""
    depth = 0
    for token in reversed(before):
        depth += (token.text == ")") - (token.text == "(")
        if depth < 0:
            return token
    return None


# ---------------------------------------------------------------- signs of other languages

_SIGNS = {
    "=>": "write >= for 'greater or equal'",
    "=<": "write <= for 'less or equal'",
    "===": "write = for equality",
    "!==": "write != for 'not equal'",
    "==": "write = for equality",
    "=!": "write != for 'not equal'",
    "<=>": "write =; to take missing values too, add OR ... IS NULL",
    "!~*": "write NOT MATCHES '(?i)...' with a regular expression",
    "!~": "write NOT MATCHES '...' with a regular expression",
    "=~": "write MATCHES '...' with a regular expression",
    "~*": "write MATCHES '(?i)...' with a regular expression",
    "~~": "write LIKE",
    "->>": "write the path with dots: a.b is b inside a",
    "->": "write the path with dots: a.b is b inside a",
    "::": "there are no conversions: a value compares within its own kind; write the constant as that kind",
    "&&": "write AND",
    "||": "write OR",
    "//": "comments begin with --, or stand between /* and */",
}
_SIGN_CHARACTERS = frozenset("".join(_SIGNS))


def _sign(slip: Slip) -> _Said:
    """A sign of several characters, of which the first may have been taken for a token."""
    if slip.found.text[:1] not in _SIGN_CHARACTERS:
        return None
    start = slip.found.start
    if slip.last.kind == "COMPARATOR" and slip.last.end == start:
        start = slip.last.start
    for sign in sorted(_SIGNS, key=len, reverse=True):
        if slip.text.startswith(sign, start):
            return Hint(_SIGNS[sign], start, start + len(sign))
    if slip.last.kind == slip.found.kind == "COMPARATOR":
        return "write a comparison without white space inside: <=, >=, <> or !="
    return None


_SINGLE = {
    "~": "write MATCHES '...' with a regular expression, or NOT",
    "!": "write NOT, or != for 'not equal'",
    "&": "write AND",
    "|": "write OR",
    "#": "comments begin with --",
    "`": 'quote a name with double quotes: "like this"',
    "?": "there are no parameters: write the value itself",
    "$": "there are no parameters: write the value itself",
    ":": "there are no parameters: write the value itself",
    "@": "there are no parameters: write the value itself",
    ".": "a name's parts are joined by dots without white space: a.b; quote what does not begin with a letter",
    "\\": "a quote inside a string is written twice: 'it''s'; there are no backslashes",
    "{": "write a condition like price < 300 AND maker = 'Sony'",
    "≤": "write <=",
    "≥": "write >=",
    "≠": "write !=",
    "∧": "write AND",
    "∨": "write OR",
    "¬": "write NOT",
}
_CURRENCIES = "$€£¥"
_FIRST_PARAMETER = re.compile(r"\$1(?![0-9.])")
"""Where parameters have numbers they begin with this one; `$5` alone is money."""


def _single(slip: Slip) -> _Said:
    found = slip.found.text
    if found[:1].isdecimal() and not found.isascii():
        return "write numbers with the digits 0 to 9"
    if unicodedata.category(found[:1] or " ") == "Cf":
        return f"leave out the invisible character U+{ord(found[0]):04X}"
    amount = re.match(f"[{_CURRENCIES}]([0-9.]+)", slip.rest)
    if amount and not _FIRST_PARAMETER.search(slip.text):
        return f"write the number alone: {amount[1][:40]}; there are neither currencies nor parameters"
    return _SINGLE.get("." if found[:1] == "." else found)


_SMART = {
    "\u2018": "\u2019",
    "\u2019": "\u2019",
    "\u201c": "\u201d",
    "\u201d": "\u201d",
    "\u00ab": "\u00bb",
    "\u00b4": "\u00b4",
}
_SMART |= {"\u201e": "\u201c", "\u201a": "\u2018"}


def _quotes(slip: Slip) -> _Said:
    found = slip.found.text
    if slip.wants_constant and slip.found.kind == "NAME" and slip.text.startswith("'", slip.found.end):
        return f"leave out the {found} before the quote: there is one kind of strings"
    if found[:1] == '"' and slip.wants_constant:
        inside = found[1:-1].replace('""', '"').replace("'", "''")
        return f"strings stand in single quotes: '{inside[:40]}'; double quotes are for names"
    if found in _SMART:
        inside = re.split(f"[{_SMART[found]}'\"\n]", slip.rest[1:], maxsplit=1)[0]
        return f"strings stand in straight single quotes: '{inside[:40]}'"
    if slip.last.kind == "STRING" and slip.last.end == slip.found.start and slip.found.kind != "$END":
        return "a quote inside a string is written twice: 'it''s'"
    return None


# ---------------------------------------------------------------- arithmetic and numbers

_NO_ARITHMETIC = "there is no arithmetic yet: bring the constants to one side, or send the result as an attribute"


def _arithmetic(slip: Slip) -> _Said:
    found = slip.found.text
    if found in ("+", "-") and slip.wants_constant:
        spaced = re.match(r"[+-]\s+([0-9.]+)", slip.rest)
        return f"the sign stands directly before the digits: {found}{spaced[1][:40]}" if spaced else _NO_ARITHMETIC
    if found in ("\u2212", "\u2013"):  # a minus sign, and a dash
        return "write the minus sign of the keyboard, -" if slip.wants_constant else _NO_ARITHMETIC
    if found == "%" and slip.wants_constant:
        return _SINGLE["?"]
    after_operand = slip.last.kind in ("word", "NUMBER", "STRING", "RPAR")
    if after_operand and (found in ("*", "/", "%", "+", "-", "^") or (found[:1] in "+-" and found[1:2])):
        return _NO_ARITHMETIC
    return None


def _number(slip: Slip) -> _Said:
    if slip.last.kind != "NUMBER" or slip.last.end != slip.found.start or slip.found.kind == "$END":
        return None
    together = re.match(r"[\d_,]+", slip.text[slip.last.start :])
    if slip.found.text[:1] in ",_" and together and re.fullmatch(r"\d+([_,]\d{3})+", together.group()):
        return f"write the digits without a break: {re.sub('[_,]', '', together.group())[:40]}"
    if slip.found.text[:1].isalpha() or slip.found.text[:1] in "_.":
        return "a number has digits, a point and an exponent only; a string stands in single quotes"
    return None


# ---------------------------------------------------------------- words

_FUNCTIONS = {
    **dict.fromkeys(("LOWER", "UPPER", "LCASE", "UCASE"), "to ignore case, write MATCHES '(?i)^...$'"),
    **dict.fromkeys(("DATE", "TO_DATE"), "a date is written DATE '2026-11-15'"),
    **dict.fromkeys(("TIMESTAMP", "TO_TIMESTAMP"), "a moment is written TIMESTAMP '2026-11-15 10:30:00Z'"),
    **dict.fromkeys(("CAST", "CONVERT", "TRY_CAST"), "a value compares within its own kind"),
    **dict.fromkeys(("COALESCE", "IFNULL", "NVL", "ISNULL"), "write (x = 1 OR x IS NULL)"),
    **dict.fromkeys(("STARTSWITH", "STARTS_WITH"), "write x STARTS WITH 'a'"),
    **dict.fromkeys(("ENDSWITH", "ENDS_WITH"), "write x ENDS WITH 'a'"),
    **dict.fromkeys(("CONTAINS", "INSTR", "STRPOS", "POSITION"), "write x CONTAINS 'a'"),
    **dict.fromkeys(("REGEXP_LIKE", "REGEXP_MATCHES", "REGEX"), "write x MATCHES 'a'"),
}
_PRESENT = {
    "NOW",
    "CURRENT_TIMESTAMP",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "LOCALTIMESTAMP",
    "SYSDATE",
    "GETDATE",
    "TODAY",
}
_NO_PRESENT = (
    "the present cannot be asked for yet: write a moment, like TIMESTAMP '2026-11-15 10:30:00Z', "
    "or send an attribute that says it"
)
_NO_FUNCTIONS = "functions do not exist yet: send the result as an attribute"


def _function(slip: Slip) -> _Said:
    """A name and a parenthesis; the name may have been refused already."""
    refused = slip.found.kind == "NAME" and slip.wants_constant
    if not refused and not (slip.found.text == "(" and slip.wants_operator):
        return None
    called = slip.found if refused else slip.last
    name = called.text.upper()
    if name in _PRESENT:
        return Hint(_NO_PRESENT, called.start)
    if not slip.text[called.end :].lstrip().startswith("("):
        return None
    if name in ("ANY", "ALL", "SOME"):
        return Hint("lists and subqueries cannot be asked about yet", called.start)
    said = _FUNCTIONS.get(name)
    return Hint(f"functions do not exist yet: {said}" if said else _NO_FUNCTIONS, called.start)


_INSTEAD_OF_CONSTANT = {
    "SELECT": "subqueries do not exist: write the values themselves",
    "CASE": "CASE does not exist: write (a AND b) OR (NOT a AND c)",
    "INTERVAL": "there are no intervals yet: write the moment itself",
    "TIMESTAMPTZ": "write TIMESTAMP '2026-11-15 10:30:00+02:00'; an offset counts",
    "DATETIME": "write TIMESTAMP '2026-11-15 10:30:00Z'",
    "TIME": "there are no times of day yet: write a TIMESTAMP, or send the hour as an attribute",
    **dict.fromkeys(
        ("NONE", "NIL", "UNDEFINED", "MISSING"), "to ask whether an attribute is missing, write IS NULL"
    ),
    **dict.fromkeys(("NAN", "INF", "INFINITY"), "a constant is a finite number"),
    "NULL": "to ask whether an attribute is missing, write IS NULL",
    "NOT": "NOT stands before IN, BETWEEN, LIKE and their like, or before a whole condition",
}


def _constant(slip: Slip) -> _Said:
    if slip.last.text.upper() == "SELECT":
        return Hint(_INSTEAD_OF_CONSTANT["SELECT"], slip.last.start, slip.last.end)
    if "NAME" in slip.accepts and slip.last.kind == "COMPARATOR":
        return "one side of a comparison is an attribute"
    if not slip.wants_constant or slip.found.kind == "$END":
        return None
    if slip.word in _INSTEAD_OF_CONSTANT:
        return _INSTEAD_OF_CONSTANT[slip.word]
    if slip.found.text == "(" and slip.last.text.upper() == "BETWEEN":
        return "write BETWEEN 1 AND 5, without parentheses"
    if slip.found.text == "(":
        return "write the constant without parentheses"
    if slip.found.text == "[":
        return "there are no lists yet; a set of values is asked for with IN (1, 2)"
    if slip.found.kind == "NAME":
        shown = slip.found.text[:40].replace("'", "''")
        string = f"if a string is meant, write '{shown}'; " if "STRING" in slip.accepts else ""
        return f"{string}two attributes cannot be compared yet"
    return None


_OPERATORS = {
    **dict.fromkeys(("ILIKE",), "there is no ILIKE: to ignore case, write MATCHES '(?i)^...$'"),
    **dict.fromkeys(
        ("RLIKE", "REGEXP", "SIMILAR", "REGEX", "MATCH"), "write MATCHES '...' with a regular expression"
    ),
    "GLOB": "write LIKE, with % and _, or MATCHES",
    **dict.fromkeys(("EQ", "EQUALS", "EQUAL"), "write ="),
    **dict.fromkeys(("NE", "NEQ"), "write !="),
    **dict.fromkeys(("LT", "GT", "LE", "GE", "LTE", "GTE"), "write <, <=, > or >="),
    **dict.fromkeys(("STARTSWITH", "STARTS_WITH"), "write STARTS WITH"),
    **dict.fromkeys(("ENDSWITH", "ENDS_WITH"), "write ENDS WITH"),
    **dict.fromkeys(("HAS", "INCLUDES"), "write CONTAINS"),
    "EXISTS": "write IS NOT NULL, or EXISTS before the attribute",
    "ISNULL": "write IS NULL",
    "NOTNULL": "write IS NOT NULL",
    "COLLATE": "strings are ordered by code point; there are no collations",
}


def _operator(slip: Slip) -> _Said:
    if slip.last.text.upper() == "CASE" and slip.found.kind in ("NAME", "word"):
        return Hint(_INSTEAD_OF_CONSTANT["CASE"], slip.last.start, slip.last.end)
    if slip.found.text == "[" and "NAME" in slip.accepts:
        name = slip.rest[1:].split("]")[0].strip().replace('"', '""')
        return f'quote a name with double quotes: "{name[:40]}"'
    if slip.wants_operator and slip.found.text == "[":
        return "there is no indexing yet: write a.b for b inside a; elements of lists cannot be asked for"
    if slip.wants_operator and slip.word in _OPERATORS:
        return _OPERATORS[slip.word]
    if slip.last.text.upper() in ("STARTS", "ENDS") and "_WITH" in slip.accepts:
        return f"write {slip.last.text.upper()} WITH"
    if slip.wants_operator and slip.last.text.upper() == "NOT":
        return _negated(slip)
    if slip.accepts == {"COMPARATOR"} and slip.word in _AFTER_ATTRIBUTE:
        return "the attribute stands first, the constant after the operator"
    return None


_AFTER_ATTRIBUTE = {
    "IN",
    "NOT",
    "BETWEEN",
    "LIKE",
    "IS",
    "STARTS",
    "ENDS",
    "CONTAINS",
    "MATCHES",
    "OVERLAPS",
    "WITHIN",
}


def _negated(slip: Slip) -> _Said:
    if slip.word == "NULL":
        return "write IS NOT NULL"
    if slip.found.kind == "COMPARATOR":
        return "NOT stands before the attribute, or write the opposite: != for 'not equal'"
    return None


def _is(slip: Slip) -> _Said:
    """IS and something else than NULL."""
    words = [token.text.upper() for token in slip.before[-2:]]
    if "_NULL" not in slip.accepts or "IS" not in words or slip.found.kind == "$END":
        return None
    negated = words[-1] == "NOT"
    if slip.word in ("TRUE", "FALSE"):
        other = "FALSE" if slip.word == "TRUE" else "TRUE"
        return (
            f"write = {other}; to take missing values too, add OR ... IS NULL"
            if negated
            else f"write = {slip.word}"
        )
    if slip.word == "DISTINCT":
        return "write != or =; to take missing values too, add OR ... IS NULL"
    if slip.word in ("UNKNOWN", "NONE", "NIL", "EMPTY", "MISSING", "UNDEFINED"):
        return "write IS NOT NULL" if negated else "write IS NULL"
    if slip.word in ("IN", "LIKE", "BETWEEN", "CONTAINS", "MATCHES", "STARTS", "ENDS", "WITHIN"):
        return f"leave out IS: write {'NOT ' if negated else ''}{slip.word}"
    return "write !=" if negated else "write ="


def _membership(slip: Slip) -> _Said:
    last = slip.last.text.upper() if slip.found.kind != "$END" else ""
    if last == "RANGE" and "LSQB" in slip.accepts:
        return "write IN RANGE [1, 5), with a bracket or a parenthesis at either end"
    if last == "IN" and slip.found.text == "[":
        return "write round brackets, IN (1, 2); or IN RANGE [1, 2] for all between"
    if last == "IN":
        return "write the values in parentheses: IN (1, 2)"
    if "COMMA" in slip.accepts and slip.found.kind in ("NUMBER", "STRING", "NAME", "TRUE", "FALSE"):
        return "put a comma between values"
    if "_AND" in slip.accepts and not slip.wants_connective and slip.found.kind != "$END":
        return "write BETWEEN 1 AND 5"
    return None


def _connective(slip: Slip) -> _Said:
    if not slip.wants_connective:
        return None
    if slip.found.text == ",":
        return "write AND between conditions"
    if slip.word == "XOR":
        return "there is no XOR: write (a AND NOT b) OR (NOT a AND b)"
    if slip.word == "COLLATE":
        return _OPERATORS["COLLATE"]
    if slip.found.kind == "COMPARATOR":
        return _chained(slip)
    return None


def _chained(slip: Slip) -> _Said:
    """`5 < x < 10`."""
    said = "write two conditions with AND between them"
    before = slip.before[-3:]
    if len(before) < 3 or before[1].kind != "COMPARATOR" or before[2].kind != "word":
        return said
    first = " ".join(token.text[:40] for token in before)
    return f"{said}: {first} AND {before[2].text[:40]} {slip.found.text} ..."


# What is often misspelt; signs and the many forms of a constant are none of it.
_SPELT = {
    **{f"_{word}": word for word in ("AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL", "RANGE", "WITH")},
    "_ESCAPE": "ESCAPE",
    **{word: word for word in ("CONTAINS", "MATCHES", "OVERLAPS", "WITHIN")},
    "STARTS": "STARTS WITH",
    "ENDS": "ENDS WITH",
}


def _misspelt(slip: Slip) -> _Said:
    if slip.found.kind not in ("NAME", "word") or len(slip.found.text) < 3:
        return None
    possible = {_SPELT[name].split()[0]: _SPELT[name] for name in sorted(slip.accepts) if name in _SPELT}
    near = closest(slip.found.text, possible)
    return f"did you mean {possible[near]}?" if near else None


_RULES: tuple[Callable[[Slip], _Said], ...] = (
    _whole_query,
    _semicolon,
    _number,
    _sign,
    _quotes,
    _arithmetic,
    _function,
    _is,
    _constant,
    _operator,
    _membership,
    _connective,
    _brackets,
    _single,
    _misspelt,
)
