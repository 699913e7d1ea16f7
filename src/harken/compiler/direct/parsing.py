"""Texts to nodes in postfix order: the grammar's tables, run as `language.machine` runs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from harken.compiler.direct.layout import (
    AND,
    ATTRIBUTE,
    BEGIN,
    BOOL,
    COMPARED,
    DATE,
    DECLINED,
    DEPTH,
    EQ,
    FIRST,
    FLOAT,
    GE,
    GT,
    HIGH_CLOSED,
    INT,
    INTEGER,
    LE,
    LISTED,
    LITERALS,
    LOW_CLOSED,
    LT,
    NODES,
    NOT,
    NOTHING,
    OR,
    PAST,
    PRESENCE,
    RANGED,
    SAYS_TRUE,
    SECOND,
    SORT,
    STRING,
    TYPE,
    Work,
    add_node,
    kind_of,
    taken,
)
from harken.compiler.direct.lexing import (
    COMPARATOR,
    END,
    EXACT_IN_FLOAT,
    MARK,
    REAL,
    TEXT,
    UNSURE,
    WHOLE,
    WORD,
    comparator_of,
    date_of,
    key_of,
    next_token,
    past_space,
    real_of,
    whole_of,
    word_key,
)
from harken.compiler.direct.names import ANY_TYPE, UNKNOWN, Names, number_of
from harken.jit import called
from harken.language.lexer import BEFORE_BRACKET, BEFORE_QUOTE, CONTEXTUAL, RESERVED
from harken.language.tables import LIST_BEGINS, LIST_GOES_ON, PASSED_ON, Tables

_OPEN, _QUOTE, _OPEN_SQUARE, _CLOSE_SQUARE = (ord(char) for char in "('[]")
_ALWAYS, _WHERE_ACCEPTED, _BEFORE_QUOTE, _BEFORE_BRACKET = range(4)

_RULES = (
    *(PASSED_ON, LIST_BEGINS, LIST_GOES_ON, "disjunction", "conjunction", "negation", "bare", "comparison"),
    *("reversed_comparison", "membership", "not_membership", "between", "not_between", "in_range", "not_in_range"),
    *("is_null", "is_not_null", "range", "literals", "number", "string", "true", "false", "date"),
)
"""The rules that are understood, by the number that the kernel has for them; of others it declines a text."""

_PASSED_ON, _LIST_BEGINS, _LIST_GOES_ON, _DISJUNCTION, _CONJUNCTION, _NEGATION, _BARE, _COMPARISON = range(8)
_REVERSED, _MEMBERSHIP, _NOT_MEMBERSHIP, _BETWEEN, _NOT_BETWEEN, _IN_RANGE, _NOT_IN_RANGE = range(8, 15)
_IS_NULL, _IS_NOT_NULL, _RANGE, _LITERALS, _NUMBER, _STRING, _TRUE, _FALSE, _DATE = range(15, len(_RULES))
_NOT_UNDERSTOOD = -1


class Grammar(Protocol):
    """The tables of the grammar, and what its terminals look like."""

    step: npt.NDArray[np.int16]
    count: npt.NDArray[np.int64]
    """By rule, how many values it replaces."""
    made: npt.NDArray[np.int64]
    """By rule, the symbol that it makes."""
    rule: npt.NDArray[np.int64]
    """By rule, its place in `_RULES`."""
    ends: npt.NDArray[np.int64]
    """The states at the start and at the end."""
    terminal: npt.NDArray[np.int64]
    """By what a token looks like, which terminal it is; of a word, if it is a name."""
    mark: npt.NDArray[np.int64]
    """By character, which terminal it is."""
    keyword: npt.NDArray[np.int64]
    """Rows of key, terminal and when it is one; a key stands where its remainder by their number says."""


def grammar_of(tables: Tables) -> Sequence[Grammar]:
    """The tables as the kernel needs them: an array of one record."""
    known = {name: at for at, name in enumerate(_RULES)}
    arrays: dict[str, npt.NDArray[np.int16] | npt.NDArray[np.int64]] = {
        "step": tables.step,
        "count": tables.size,
        "made": tables.made,
        "rule": np.array([known.get(name, _NOT_UNDERSTOOD) for name in tables.rules], np.int64),
        "ends": np.array([tables.start, tables.end], np.int64),
        "terminal": _by_look(tables.symbols),
        "mark": _by_character(tables.symbols),
        "keyword": _keywords(tables.symbols),
    }
    fields = [(name, array.dtype, array.shape) for name, array in arrays.items()]
    grammar = np.zeros(1, np.dtype(fields, align=True)).view(np.recarray)
    for name, array in arrays.items():
        grammar[name][0] = array
    return grammar


def _by_look(symbols: dict[str, int]) -> npt.NDArray[np.int64]:
    terminal = np.zeros(MARK + 1, np.int64)
    looks = {END: "$END", WORD: "NAME", WHOLE: "NUMBER", REAL: "NUMBER", TEXT: "STRING", COMPARATOR: "COMPARATOR"}
    for look, name in looks.items():
        terminal[look] = symbols[name]
    return terminal


def _by_character(symbols: dict[str, int]) -> npt.NDArray[np.int64]:
    mark = np.zeros(128, np.int64)
    for char, name in zip("(),[]", ("LPAR", "RPAR", "COMMA", "LSQB", "RSQB"), strict=True):
        mark[ord(char)] = symbols[name]
    return mark


def _keywords(symbols: dict[str, int]) -> npt.NDArray[np.int64]:
    reserved = [(word, name, _ALWAYS) for word, name in RESERVED.items()]
    contextual = [(word, name, _WHERE_ACCEPTED) for word, name in CONTEXTUAL.items()]
    quoted = [(word, name, _BEFORE_QUOTE) for word, name in BEFORE_QUOTE.items()]
    bracketed = [(word, name, _BEFORE_BRACKET) for word, name in BEFORE_BRACKET.items()]
    words = reserved + contextual + quoted + bracketed
    rows = [(key_of(word), symbols[name], when) for word, name, when in words]
    size = len(rows)
    while len({key % size for key, _, _ in rows}) < len(rows):
        size += 1
    table = np.zeros((size, 3), np.int64)
    for row in rows:
        table[row[0] % size] = row
    return table


@called
def parsed(grammar: Grammar, names: Names, work: Work, data: npt.NDArray[np.uint8], at: int, past: int) -> bool:
    """Read one text into nodes and literals; whether it could be."""
    for top in range(len(work.tops)):
        work.tops[top] = 0
    work.tops[LITERALS] = 2
    symbol, depth, brackets = work.symbol, 1, 0
    symbol[0, 0] = grammar.ends[0]
    while True:
        at = past_space(data, at, past)
        look, after = next_token(data, at, past)
        if look == UNSURE or depth + 1 >= len(symbol):
            return False
        terminal = _terminal(grammar, data, at, after, past, look, symbol[depth - 1, 0])
        value = _value(grammar, names, work, data, at, after, look, terminal)
        while True:
            step = grammar.step[symbol[depth - 1, 0], terminal]
            if step == 0:
                return False
            if step > 0:
                symbol[depth, 0], symbol[depth, 1] = step - 1, value
                depth += 1
                break
            rule = -1 - step
            depth -= grammar.count[rule]
            made = _made(grammar.rule[rule], grammar.count[rule], work, data, depth)
            state = grammar.step[symbol[depth - 1, 0], grammar.made[rule]] - 1
            symbol[depth, 0], symbol[depth, 1] = state, made
            depth += 1
            if state == grammar.ends[1] and look == END:
                return bool(work.tops[DECLINED] == 0) and _fits(names, work) and _numbers_compare(work)
        brackets += look == MARK and data[at] == _OPEN
        if work.tops[DECLINED] or brackets > work.limits[DEPTH]:
            return False
        at = after


@called
def _terminal(
    grammar: Grammar, data: npt.NDArray[np.uint8], at: int, after: int, past: int, look: int, state: int
) -> int:
    """Which terminal a token is. Some words are keywords only where one can stand, or by what follows them."""
    if look == MARK:
        return int(grammar.mark[data[at]])
    key = word_key(data, at, after) if look == WORD else 0
    row = key % len(grammar.keyword)
    if key and grammar.keyword[row, 0] == key:
        terminal, when = grammar.keyword[row, 1], grammar.keyword[row, 2]
        following = past_space(data, after, past)
        next_byte = data[following] if following < past else 0
        if (
            when == _ALWAYS
            or (when == _WHERE_ACCEPTED and grammar.step[state, terminal] != 0)
            or (when == _BEFORE_QUOTE and next_byte == _QUOTE)
            or (when == _BEFORE_BRACKET and next_byte == _OPEN)
        ):
            return int(terminal)
    return int(grammar.terminal[look])


@called
def _value(
    grammar: Grammar,
    names: Names,
    work: Work,
    data: npt.NDArray[np.uint8],
    at: int,
    after: int,
    look: int,
    terminal: int,
) -> int:
    """What a token stands for: an attribute, a literal, a comparator, whether a bracket is square; or -1."""
    if look == WORD:
        if terminal != grammar.terminal[WORD]:
            return -1
        attribute = number_of(names, data, at, after)
        if attribute == UNKNOWN:
            work.tops[DECLINED] = 1
        return attribute
    if look == COMPARATOR:
        return comparator_of(data, at, after)
    if look == MARK:
        return int(data[at] == _OPEN_SQUARE or data[at] == _CLOSE_SQUARE)
    return -1 if look == END else _literal(work, data, at, after, look)


@called
def _literal(work: Work, data: npt.NDArray[np.uint8], at: int, after: int, look: int) -> int:
    number = taken(work, LITERALS)
    literal, is_sure = work.literal, True
    literal[number, INTEGER] = 0
    if look == TEXT:
        literal[number, TYPE] = STRING
        literal[number, BEGIN], literal[number, PAST] = at + 1, after - 1
    elif look == WHOLE:
        literal[number, TYPE] = INT
        literal[number, INTEGER], is_sure = whole_of(data, at, after)
        work.as_float[number] = np.float64(literal[number, INTEGER])
    else:
        literal[number, TYPE] = FLOAT
        work.as_float[number], is_sure = real_of(data, at, after)
    if not is_sure:
        work.tops[DECLINED] = 1
    return number


@called
def _made(rule: int, size: int, work: Work, data: npt.NDArray[np.uint8], base: int) -> int:
    """What a rule makes of the values from `base` on: nodes, and a value of its own."""
    first, last = work.symbol[base, 1], work.symbol[base + size - 1, 1]
    if rule in (_PASSED_ON, _NUMBER, _STRING):
        return int(first)
    if rule == _LIST_BEGINS:
        return 1
    if rule == _LIST_GOES_ON:
        return int(first + 1)
    if rule == _LITERALS:
        return int(1 if size == 1 else 1 + last)
    if rule == _RANGE:
        return int(first * LOW_CLOSED + last * HIGH_CLOSED)
    if rule in (_TRUE, _FALSE):
        number = taken(work, LITERALS)
        work.literal[number, TYPE], work.literal[number, INTEGER] = BOOL, int(rule == _TRUE)
        return number
    if rule == _DATE:
        _read_date(work, data, last)
        return int(last)
    if rule in (_DISJUNCTION, _CONJUNCTION):
        add_node(work, OR if rule == _DISJUNCTION else AND, 1 + last, NOTHING, NOTHING, NOTHING)
    elif rule != _NEGATION:
        _add_leaf(rule, size, work, base)
    if rule in (_NEGATION, _NOT_MEMBERSHIP, _NOT_BETWEEN, _NOT_IN_RANGE):
        add_node(work, NOT, 1 + NOTHING, NOTHING, NOTHING, NOTHING)
    return 0


@called
def _read_date(work: Work, data: npt.NDArray[np.uint8], number: int) -> None:
    """Make a date of a literal that was read as a string."""
    literal = work.literal
    days, is_sure = date_of(data, literal[number, BEGIN], literal[number, PAST])
    literal[number, TYPE], literal[number, INTEGER] = DATE, days
    if not is_sure:
        work.tops[DECLINED] = 1


@called
def _add_leaf(rule: int, size: int, work: Work, base: int) -> None:
    """Make a predicate of the values from `base` on. Literals are numbered as they come."""
    symbol, literals = work.symbol, work.tops[LITERALS]
    first, second, last = symbol[base, 1], symbol[base + 1, 1], symbol[base + size - 1, 1]
    if rule == _BARE:
        add_node(work, COMPARED, first, EQ, SAYS_TRUE, NOTHING)
    elif rule == _COMPARISON:
        add_node(work, COMPARED, first, second, last, NOTHING)
    elif rule == _REVERSED:
        add_node(work, COMPARED, last, _flipped(second), first, NOTHING)
    elif rule in (_MEMBERSHIP, _NOT_MEMBERSHIP):
        count = symbol[base + size - 2, 1]
        add_node(work, LISTED, first, literals - count, count, NOTHING)
    elif rule in (_BETWEEN, _NOT_BETWEEN):
        add_node(work, RANGED, first, symbol[base + size - 3, 1], last, NOTHING + LOW_CLOSED + HIGH_CLOSED)
    elif rule in (_IN_RANGE, _NOT_IN_RANGE):
        add_node(work, RANGED, first, literals - 2, literals - 1, last)
    elif rule in (_IS_NULL, _IS_NOT_NULL):
        # What is not the name is -1, or a bracket, which is 0.
        attribute = max(first, second, last, symbol[base + size - 2, 1])
        add_node(work, PRESENCE, attribute, int(rule == _IS_NOT_NULL), NOTHING, NOTHING)
    else:
        work.tops[DECLINED] = 1


@called
def _flipped(comparator: int) -> int:
    """`c op x` is `x flipped c`."""
    if comparator == LT:
        return GT
    if comparator == GT:
        return LT
    if comparator == LE:
        return GE
    return LE if comparator == GE else comparator


@called
def _fits(names: Names, work: Work) -> bool:
    """Whether the literals of each leaf are of one kind, and of the type that a schema declares."""
    for at in range(work.tops[NODES]):
        sort, first, second = work.node[at, SORT], work.node[at, FIRST], work.node[at, SECOND]
        if sort >= PRESENCE:
            continue
        if sort == COMPARED:
            first = second
        elif sort == LISTED:
            second = first + second - 1
        declared = names.declared[work.node[at, ATTRIBUTE]]
        for literal in range(first, second + 1):
            its_type = work.literal[literal, TYPE]
            is_declared = declared in (ANY_TYPE, its_type) or (declared == FLOAT and its_type == INT)
            if not is_declared or kind_of(work, literal) != kind_of(work, first):
                return False
    return True


@called
def _numbers_compare(work: Work) -> bool:
    """Whether all numbers of a text are exact as floats, or none is a float: then they compare as they should."""
    has_float, is_wide = False, False
    for literal in range(2, work.tops[LITERALS]):
        if work.literal[literal, TYPE] == FLOAT:
            has_float = True
        elif work.literal[literal, TYPE] == INT:
            is_wide |= abs(work.literal[literal, INTEGER]) > EXACT_IN_FLOAT
    return not (has_float and is_wide)
