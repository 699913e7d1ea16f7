"""Parsing: what each form of the language stands for."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from harken.errors import ParseError
from harken.language import parse
from harken.language.lexer import RESERVED
from harken.model.expressions import (
    FALSE,
    TRUE,
    And,
    Comparator,
    Comparison,
    Membership,
    Not,
    Or,
    Presence,
    Range,
    Spatial,
    SpatialOperator,
    TextMatch,
)
from harken.model.text import TextOperator
from harken.model.values import Box, Point

EQ = Comparator.EQ


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("x = 1", Comparison("x", EQ, 1)),
        ("x != 1", Comparison("x", Comparator.NE, 1)),
        ("x <> 1", Comparison("x", Comparator.NE, 1)),
        ("x < 1", Comparison("x", Comparator.LT, 1)),
        ("x <= 1", Comparison("x", Comparator.LE, 1)),
        ("x > 1", Comparison("x", Comparator.GT, 1)),
        ("x >= 1", Comparison("x", Comparator.GE, 1)),
        ("1 = x", Comparison("x", EQ, 1)),
        ("1 < x", Comparison("x", Comparator.GT, 1)),
        ("1 >= x", Comparison("x", Comparator.LE, 1)),
        ("TRUE = x", Comparison("x", EQ, True)),
        ("x", Comparison("x", EQ, True)),
        ("NOT x", Not(Comparison("x", EQ, True))),
        ("x BETWEEN 1 AND 2", Range("x", 1, 2)),
        ("x NOT BETWEEN 1 AND 2", Not(Range("x", 1, 2))),
        ("x IN RANGE [1, 2]", Range("x", 1, 2, True, True)),
        ("x IN RANGE [1, 2)", Range("x", 1, 2, True, False)),
        ("x IN RANGE (1, 2]", Range("x", 1, 2, False, True)),
        ("x IN RANGE (1, 2)", Range("x", 1, 2, False, False)),
        ("x NOT IN RANGE (1, 2)", Not(Range("x", 1, 2, False, False))),
        ("x IN (1)", Membership("x", (1,))),
        ("x IN (1, 'a', TRUE)", Membership("x", (1, "a", True))),
        ("x NOT IN (1)", Not(Membership("x", (1,)))),
        ("x LIKE 'a%'", TextMatch("x", TextOperator.LIKE, "a%")),
        ("x LIKE 'a!%' ESCAPE '!'", TextMatch("x", TextOperator.LIKE, "a!%", "!")),
        ("x NOT LIKE 'a'", Not(TextMatch("x", TextOperator.LIKE, "a"))),
        ("x NOT LIKE '''%' ESCAPE ''''", Not(TextMatch("x", TextOperator.LIKE, "'%", "'"))),
        ("x STARTS WITH 'a'", TextMatch("x", TextOperator.STARTS_WITH, "a")),
        ("x NOT STARTS WITH 'a'", Not(TextMatch("x", TextOperator.STARTS_WITH, "a"))),
        ("x ENDS WITH 'a'", TextMatch("x", TextOperator.ENDS_WITH, "a")),
        ("x CONTAINS 'a'", TextMatch("x", TextOperator.CONTAINS, "a")),
        ("x MATCHES '^a'", TextMatch("x", TextOperator.MATCHES, "^a")),
        ("x CONTAINS POINT(1, 2)", Spatial("x", SpatialOperator.CONTAINS, Point(1, 2))),
        ("x OVERLAPS BOX(0, 0, 1, 1)", Spatial("x", SpatialOperator.OVERLAPS, Box(0, 0, 1, 1))),
        ("x NOT WITHIN BOX(0, 0, 1, 1)", Not(Spatial("x", SpatialOperator.WITHIN, Box(0, 0, 1, 1)))),
        ("x IS NULL", Presence("x", False)),
        ("x IS NOT NULL", Presence("x", True)),
        ("EXISTS x", Presence("x", True)),
        ("EXISTS (x)", Presence("x", True)),
        ("NOT EXISTS x", Not(Presence("x", True))),
        ("TRUE", TRUE),
        ("FALSE", FALSE),
        ("(x = 1)", Comparison("x", EQ, 1)),
        ("((x = 1))", Comparison("x", EQ, 1)),
    ],
)
def test_each_form_stands_for_its_tree(text, tree):
    assert repr(parse(text)) == repr(tree)


A, B, C = (Comparison(name, EQ, True) for name in "abc")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a AND b AND c", And((A, B, C))),
        ("a OR b OR c", Or((A, B, C))),
        ("a OR b AND c", Or((A, And((B, C))))),
        ("a AND b OR c", Or((And((A, B)), C))),
        ("a AND (b OR c)", And((A, Or((B, C))))),
        ("(a AND b) AND c", And((And((A, B)), C))),
        ("NOT a AND b", And((Not(A), B))),
        ("NOT (a AND b)", Not(And((A, B)))),
        ("NOT NOT a", Not(Not(A))),
        ("a OR NOT b", Or((A, Not(B)))),
        ("x BETWEEN 1 AND 2 AND a", And((Range("x", 1, 2), A))),
    ],
)
def test_not_binds_before_and_and_and_before_or(text, tree):
    assert repr(parse(text)) == repr(tree)


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("0", 0),
        ("+7", 7),
        ("-7", -7),
        ("007", 7),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("000000000000000000000000000001", 1),
        ("0.5", 0.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("-.5", -0.5),
        ("1e3", 1000.0),
        ("1E+3", 1000.0),
        ("2.5e-3", 0.0025),
        ("1.7976931348623157e308", 1.7976931348623157e308),
        ("1e-323", 1e-323),
        ("0e-999", 0.0),
        ("-0.0", -0.0),
        ("1e20", 1e20),
        ("99999999999999999999.0", Decimal("99999999999999999999")),
        ("90071992547409.93", Decimal("90071992547409.93")),
        ("90071992547409.930000", Decimal("90071992547409.93")),
        ("''", ""),
        ("'it''s'", "it's"),
        ("''''", "'"),
        (r"'a\n'", r"a\n"),
        ("'two\nlines'", "two\nlines"),
        ("'-- no comment'", "-- no comment"),
        ("'/* none */'", "/* none */"),
        ("'\"'", '"'),
        ("TRUE", True),
        ("false", False),
        ("DATE '2026-11-15'", date(2026, 11, 15)),
        ("date'2024-02-29'", date(2024, 2, 29)),
        ("TIMESTAMP '2026-11-15'", datetime(2026, 11, 15, tzinfo=UTC)),
        ("TIMESTAMP '2026-11-15 10:30'", datetime(2026, 11, 15, 10, 30, tzinfo=UTC)),
        ("TIMESTAMP '2026-11-15T10:30:05'", datetime(2026, 11, 15, 10, 30, 5, tzinfo=UTC)),
        ("TIMESTAMP '2026-11-15 10:30:05.5Z'", datetime(2026, 11, 15, 10, 30, 5, 500_000, tzinfo=UTC)),
        ("TIMESTAMP '2026-11-15 10:30:05.000001'", datetime(2026, 11, 15, 10, 30, 5, 1, tzinfo=UTC)),
        ("TIMESTAMP '2026-11-15 10:30+02'", datetime(2026, 11, 15, 8, 30, tzinfo=UTC)),
        ("TIMESTAMP '2026-11-15 10:30-0130'", datetime(2026, 11, 15, 12, 0, tzinfo=UTC)),
        ("TIMESTAMP '2026-11-15 10:30:00+05:45'", datetime(2026, 11, 15, 4, 45, tzinfo=UTC)),
        ("TIMESTAMP '2026-11-15 10:30+14:00'", datetime(2026, 11, 14, 20, 30, tzinfo=UTC)),
        ("TIMESTAMP '2026-11-15 10:30+1559'", datetime(2026, 11, 14, 18, 31, tzinfo=UTC)),
        ("TIMESTAMP '2026-11-15 10:30-00:00'", datetime(2026, 11, 15, 10, 30, tzinfo=UTC)),
        ("TIMESTAMP '2026-11-15 10:30+00'", datetime(2026, 11, 15, 10, 30, tzinfo=UTC)),
        ("TIMESTAMP '2026-11-15 23:59:59.999999-12'", datetime(2026, 11, 16, 11, 59, 59, 999_999, tzinfo=UTC)),
        ("POINT(1, -2.5)", Point(1, -2.5)),
        ("point ( 1 , 2 )", Point(1, 2)),
        ("BOX(-1, -1, 1, 1)", Box(-1, -1, 1, 1)),
    ],
)
def test_each_literal_stands_for_its_value(literal, value):
    assert repr(parse(f"x = {literal}").value) == repr(value)


@pytest.mark.parametrize("text", ["X = 1 AND Y IN (TRUE)", "x in range [1, 2) or not y is null", "exists x"])
def test_keywords_are_read_in_any_case(text):
    def recased(change):
        return "".join(change(char) if char not in "xXyY" else char for char in text)

    assert parse(recased(str.upper)) == parse(recased(str.lower)) == parse(recased(str.swapcase))


def test_names_are_told_apart_by_case():
    assert parse("Price = 1") != parse("price = 1")
    assert parse("Price = 1").attribute == "Price"


@pytest.mark.parametrize(
    "text",
    [
        "x = 1 AND y = 2 -- the rest of the line",
        "x = 1 -- one\nAND y = 2",
        "/* before */ x = 1 AND y = 2 /* after */",
        "x/* in */=/* be */1/* tween */AND y = 2",
        "x = 1 /* over\ntwo lines, with 'quotes' and \"names\" */ AND y = 2",
        "x = 1 AND /* -- */ y = 2",
        "x = 1 --/*\nAND y = 2 --*/",
        "x = 1 AND y = /**/ 2",
        "\t\r\n x=1\u00a0AND\u2003y=2",
        "x=1AND y=2",
        "(x=1)AND(y=2)",
    ],
)
def test_comments_and_white_space_say_nothing(text):
    assert parse(text) == parse("x = 1 AND y = 2")


def test_comments_do_not_nest():
    with pytest.raises(ParseError):
        parse("/* one /* two */ still one */ x = 1")


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("a.b.c", "a.b.c"),
        ('"a"."b"', "a.b"),
        ('a."b c".d', "a.b c.d"),
        ('"a.b"', "a.b"),
        ('"say ""hi"""', 'say "hi"'),
        ('"two\nlines"', "two\nlines"),
        ('"-- x"', "-- x"),
        ("größe", "größe"),
        ("_x", "_x"),
        ("x1", "x1"),
        ('"1"', "1"),
    ],
)
def test_names_may_be_dotted_and_quoted(written, name):
    assert parse(f"{written} = 1").attribute == name


SOFT = [
    *("RANGE", "ESCAPE", "STARTS", "ENDS", "WITH", "CONTAINS", "MATCHES", "OVERLAPS", "WITHIN"),
    *("DATE", "TIMESTAMP", "POINT", "BOX"),
]


@pytest.mark.parametrize("word", SOFT + [word.lower() for word in SOFT])
def test_a_soft_keyword_is_a_name_wherever_the_grammar_cannot_use_it(word):
    assert parse(word) == Comparison(word, EQ, True)
    assert parse(f"{word} = 1 AND NOT {word}").terms[0] == Comparison(word, EQ, 1)
    assert parse(f"1 < {word}").attribute == word
    assert parse(f"EXISTS {word}").attribute == word
    assert parse(f"EXISTS ({word})").attribute == word
    assert parse(f"({word})").attribute == word
    assert parse(f"{word} LIKE 'a' OR {word} CONTAINS 'b'").terms[1].attribute == word
    assert parse(f"{word} IN RANGE [1, 2)").attribute == word
    assert parse(f"{word} NOT STARTS WITH 'a'").term.attribute == word
    assert parse(f"{word}.x = 1").attribute == f"{word}.x"


def test_soft_keywords_and_names_may_meet():
    assert parse("date = DATE '2026-11-15'") == Comparison("date", EQ, date(2026, 11, 15))
    assert parse("DATE '2026-11-15' = date") == Comparison("date", EQ, date(2026, 11, 15))
    assert parse("point WITHIN BOX(0, 0, 1, 1) OR box CONTAINS POINT(0, 0)").terms[1].attribute == "box"
    assert parse("escape LIKE 'a' ESCAPE '!'") == TextMatch("escape", TextOperator.LIKE, "a", "!")


@pytest.mark.parametrize("word", RESERVED)
def test_a_reserved_word_is_a_name_only_in_quotes(word):
    assert parse(f'"{word}" = 1').attribute == word
    with pytest.raises(ParseError):
        parse(f"{word} = 1 AND {word} > 0")
