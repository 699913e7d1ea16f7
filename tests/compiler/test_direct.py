"""What kernels compile by themselves is to the last bit what parsing gives; the rest they decline."""

from __future__ import annotations

import random
from datetime import date

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harken.compiler.direct.compiling import compile_directly
from harken.compiler.encoding import utf8
from harken.errors import HarkenError
from harken.language import parse, to_text
from harken.model.limits import DEFAULT_LIMITS, Limits
from harken.model.schema import Schema
from harken.model.values import Kind
from harken.normal.compiled import PredicateRows
from harken.normal.form import normalise
from tests.compiler.texts import TEMPLATES, filled
from tests.strategies import FREE, TYPED, Generator, expressions, wide_expressions

pytestmark = pytest.mark.kernel

PLAIN = {
    "n": (Kind.NUMBER,),
    "m": (Kind.NUMBER,),
    "s": (Kind.STRING,),
    "b": (Kind.BOOL,),
    "d": (Kind.DATE,),
    "x": (Kind.NUMBER, Kind.STRING, Kind.BOOL, Kind.DATE),
}
"""Attributes that kernels have an eye for, of one kind or of several."""


def directly(texts, schema=None, limits=DEFAULT_LIMITS):
    """By text, the clauses as rows of a predicate each, in order and bit by bit; None if it is declined."""
    is_done, columns = compile_directly(*utf8(texts, limits), schema, limits)
    rows = _rows(columns.predicates)
    clauses, at = [], 0
    for count in columns.predicate_counts.tolist():
        clauses.append(rows[at : at + count])
        at += count
    assert at == len(rows)
    found, at = [], 0
    counts = iter(columns.clause_counts.tolist())
    for done in is_done.tolist():
        count = next(counts) if done else 0
        found.append(clauses[at : at + count] if done else None)
        at += count
    assert at == len(clauses)
    return found


def _rows(columns):
    names = [columns.names[at] for at in columns.attribute.tolist()]
    operands = (columns.type.tolist(), columns.integer.tolist(), map(repr, columns.real.tolist()))
    return list(zip(names, columns.operator.tolist(), *operands, columns.text.to_pylist(), strict=True))


def one_by_one(text, schema=None, limits=DEFAULT_LIMITS):
    """As `directly` has it, the ordinary way; the error if there is one."""
    rows = PredicateRows()
    try:
        rows.add(normalise(parse(text, schema=schema, limits=limits), limits))
    except HarkenError as error:
        return error
    flat = _rows(rows.columns())
    return [flat[first:past] for first, past in zip(rows.clause_ends, rows.clause_ends[1:], strict=False)]


def check(texts, schema=None, limits=DEFAULT_LIMITS):
    """What is not declined is as it should be; how many are not."""
    found = directly(texts, schema, limits)
    for text, clauses in zip(texts, found, strict=True):
        assert clauses is None or clauses == one_by_one(text, schema, limits), text
    return sum(clauses is not None for clauses in found)


# ---------------------------------------------------------------- the same, or declined


@given(st.lists(expressions(PLAIN, max_leaves=12), min_size=1, max_size=5))
@settings(max_examples=200)
def test_printed_trees_are_the_same_or_declined(trees):
    check([to_text(tree) for tree in trees])


@given(st.lists(st.one_of(expressions(FREE), expressions(TYPED), wide_expressions), min_size=1, max_size=5))
@settings(max_examples=100)
def test_trees_of_all_operators_names_and_constants_are_the_same_or_declined(trees):
    check([to_text(tree) for tree in trees])


WORDS = (
    *(
        "x",
        "y",
        "a.b",
        "a.5",
        "_",
        "date",
        "DATE",
        "matches",
        "within",
        "x1",
        "X",
        "größe",
        '"q r"',
        "range",
        "point",
    ),
    *("AND", "and", "OR", "NOT", "IN", "In", "BETWEEN", "LIKE", "IS", "NULL", "EXISTS", "TRUE", "false", "RANGE"),
    *("STARTS", "WITH", "CONTAINS", "ESCAPE", "TIMESTAMP", "BOX", "point"),
    *("(", ")", ",", "[", "]", "=", "<", ">", "<=", ">=", "!=", "<>", "!", "==", "=<", ";", ".", "-", "+"),
    *("1", "2", "-1", "+2", "007", "1.5", "2.", ".5", "1e3", "1E-2", "-0.0", "0", "9223372036854775807"),
    *("-9223372036854775808", "9007199254740993", "0.1000000000000001", "1e23", "1e400", "300USD", "1AND"),
    *(
        "''",
        "'a'",
        "'b'",
        "'it''s'",
        "'ä'",
        "'",
        "'2026-02-28'",
        "--",
        "/*",
        "*/",
        "\n",
        "\t",
        "\x1c",
        "\u00a0",
        "\x00",
    ),
)

LIKELY = ("x", "y", "=", "<", "1", "2.5", "'a'", "AND", "OR", "NOT", "(", ")", "IN", "BETWEEN", "TRUE", ",")


@given(st.lists(st.tuples(st.sampled_from(WORDS + 4 * LIKELY), st.sampled_from([" ", " ", ""])), max_size=14))
@example([("x", " "), ("=", " "), ("1", ""), ("AND", " "), ("y", "")])
@settings(max_examples=400)
def test_words_in_any_order_are_the_same_or_declined(words):
    check(["".join(word + space for word, space in words)])


@given(st.text(max_size=20))
@settings(max_examples=100)
def test_any_text_is_the_same_or_declined(text):
    check([text, f"x = 1 AND {text}", f"x = '{text}'"])


@pytest.mark.parametrize("seed", range(4))
def test_thousands_of_trees_are_the_same_and_most_are_not_declined(seed):
    small = {
        Kind.NUMBER: (-2, -1, 0, 1, 2, 3, -1.5, -0.0, 0.5, 1.0, 2.0, 2.5),
        Kind.STRING: ("", "a", "aa", "ab", "b", "B", "ä", "日本"),
        Kind.BOOL: (False, True),
        Kind.DATE: (date(2026, 2, 28), date(2026, 3, 1), date(1969, 12, 31)),
    }
    vocabulary = {name: kinds for name, kinds in PLAIN.items() if name != "x"} if seed % 2 else PLAIN
    generator = Generator(seed, vocabulary, small)
    texts = [to_text(generator.expression(2 + at % 4)) for at in range(1_000)]
    assert check(texts) > 300


@pytest.mark.parametrize("template", TEMPLATES)
def test_each_shape_is_the_same_or_declined(template):
    chance = random.Random(template)
    check([filled(template, chance, bad=0.1) for _ in range(40)])


@given(st.lists(st.dates(), min_size=1, max_size=5))
def test_every_day_is_the_same(days):
    assert check([f"d < DATE '{day.isoformat()}'" for day in days]) == len(days)


@given(st.text("0123456789-", min_size=9, max_size=11))
def test_what_looks_like_a_day_is_the_same_or_declined(written):
    check([f"d < DATE '{written}'"])


# ---------------------------------------------------------------- what they take, and what they leave

TAKEN = (
    "x = 1",
    "  a7 BETWEEN 120 AND 220\n\tand a12=5 AND\r\na_3.b <> -7  ",
    "x in (3, 1, 2.0, 1.0) AND s NOT IN ('b', 'a', 'b')",
    "NOT (x < 1 OR NOT (y >= 2.5 AND z = 'a'))",
    "(a = 1 OR b = 2) AND (c = 3 OR d = 4) AND NOT e BETWEEN 1 AND 2",
    "a = 1 OR b > 2 OR a IN (3, 4) OR (a = 5 AND c = 6)",
    "x > 1 AND x > 2 AND x <= 9 AND x != 9 AND x != 5",
    "x < 1 AND x > 2",
    "x IN RANGE [1, 5) AND y NOT IN RANGE ('a', 'b']",
    "sold AND NOT paid AND b != TRUE AND TRUE = c AND d < TRUE",
    "x IS NULL OR y IS NOT NULL OR EXISTS z OR EXISTS (w)",
    "date = 1 AND point < 2 AND contains = 'x' AND matches > 'y' AND range = 1 AND starts = 2",
    "5 < x AND 'a' = s AND 2 >= y",
    "d = DATE '2026-11-15' OR date < date'2024-02-29' AND DATE '1969-12-31' < e",
    "d NOT BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' AND e IN (DATE '2000-02-29', DATE '1970-01-01')",
    "x = 9223372036854775807 OR x = -9223372036854775807",
    "name = 'größe' AND name != '日本'",
)


@pytest.mark.parametrize("text", TAKEN)
def test_what_is_plain_is_compiled_directly(text):
    assert check([text]) == 1


LEFT = (
    *("", " ", "x =", "x = 1 y", "x == 1", "(x = 1", "x = 1)", "x BETWEEN 1 AND 'a'", "x = 'a", "x ! 1"),
    *("x = 1 -- why", "/* why */ x = 1", "x = 1AND y = 2", "größe = 1", '"x" = 1', "a.5 = 1", "x = 'it''s'"),
    *("x = 9223372036854775808", "x = -9223372036854775808", "x = 1.2345678901234567", "x = 1e300"),
    *("x = 9007199254740993 OR x = 1.5", "TRUE", "x = 1 AND FALSE", "x IS NULL OR x IS NOT NULL"),
    *("x IN (1, 'a')", "x = 1 OR x = 'a'", "s LIKE 'a%'", "s STARTS WITH 'a'", "s MATCHES 'a'"),
    *("t < TIMESTAMP '2026-11-15'", "p = POINT(1, 2)", "p WITHIN BOX(0, 0, 1, 1)", "d = DATE '2026-02-29'"),
    *("d = DATE '2026-13-01'", "d = DATE '0000-01-01'", "d = DATE '2026-1-01'", "d = DATE ''", "d = DATE 5"),
    *("d = DATE '+026-01-01'", "d BETWEEN DATE '2026-01-01' AND '2026-01-02'", "x = 1 OR x = DATE '2026-01-01'"),
)


@pytest.mark.parametrize("text", LEFT)
def test_what_is_not_sure_is_left_to_others(text):
    assert check([text]) == 0


def test_a_declined_text_leaves_no_name_and_no_trace_among_others():
    texts = ["a = 1", "b = 1 AND c LIKE 'x'", "d = 'y'", "e =", "a = 2"]
    is_done, columns = compile_directly(*utf8(texts, DEFAULT_LIMITS), None, DEFAULT_LIMITS)
    assert is_done.tolist() == [True, False, True, False, True]
    assert columns.predicates.names == ["a", "d"]
    assert columns.predicates.text.to_pylist() == [None, "y", None]
    assert check(texts) == 3


def test_no_text_at_all_compiles_to_nothing():
    assert directly([]) == []
    assert directly(["", None, 5]) == [None, None, None]


# ---------------------------------------------------------------- room, limits, schema


@pytest.mark.parametrize(
    "text",
    [
        " AND ".join(f"a{at} = {at}" for at in range(400)),
        " AND ".join(f"a{at} = {at}" for at in range(600)),
        "x IN (" + ", ".join(str(7 * at % 400) for at in range(400)) + ")",
        "x IN (" + ", ".join(str(at) for at in range(600)) + ")",
        " AND ".join(f"(a{at} = 1 OR b{at} = 1)" for at in range(7)),
        " AND ".join(f"(a{at} = 1 OR b{at} = 1)" for at in range(9)),
        " OR ".join(f"(a{at} > 1 AND b > {at})" for at in range(150)),
        "(" * 99 + "x = 1" + ")" * 99,
        "(" * 101 + "x = 1" + ")" * 101,
        "NOT " * 90 + "x = 1",
        "NOT " * 110 + "x = 1",
        " AND ".join(f"x != {at}" for at in range(120)),
        " AND ".join(f"x != {at}" for at in range(200)),
        " AND ".join([f"(a{at} = 1 OR b{at} = 1)" for at in range(7)] + [f"c{at} = 1" for at in range(60)]),
        " AND ".join([f"(a{at} = 1 OR b{at} = 1)" for at in range(7)] + [f"x > {at}" for at in range(60)]),
        " AND ".join(f"(x > {at} OR x < {-at})" for at in range(60)),
    ],
    ids=[
        *("terms", "more terms", "values", "more values", "product", "more product", "alternatives"),
        *("brackets", "more brackets", "negations", "more negations", "one attribute"),
        *("more on one attribute", "wide product", "deep product", "spans"),
    ],
)
def test_much_of_anything_is_the_same_or_declined(text):
    assert check(["x = 1", text, "y = 2"]) >= 2


def test_room_for_names_and_predicates_grows():
    texts = [
        " AND ".join(f"n{at}_{each} > {each} AND n{at}_{each} < 99" for each in range(9)) for at in range(400)
    ]
    assert check(texts) == len(texts)


@given(
    st.lists(expressions(PLAIN, max_leaves=12), min_size=1, max_size=3),
    st.builds(Limits, max_depth=st.integers(0, 8), max_clauses=st.integers(0, 6), max_work=st.integers(0, 200)),
)
@settings(max_examples=200)
def test_limits_are_kept_or_left_to_others(trees, limits):
    check([to_text(tree) for tree in trees], limits=limits)


@given(st.lists(expressions(PLAIN, max_leaves=6), min_size=1, max_size=3))
@settings(max_examples=100)
def test_a_schema_is_kept_or_left_to_others(trees):
    check(
        [to_text(tree) for tree in trees],
        Schema({"n": "int", "m": "float", "s": "string", "b": "bool", "d": "date"}),
    )


def test_a_schema_does_not_send_what_fits_it_elsewhere():
    schema = Schema({"price": "float", "maker": "string", "n": "int", "größe": "int", "sold": "bool"})
    texts = ["price < 5 AND maker = 'a'", "price < 5.5 OR n = 5", "sold AND EXISTS n"]
    assert check(texts, schema) == 3
    assert check(["n = 5.5", "maker = 5", "prise < 5", "EXISTS prise", "n"], schema) == 0
