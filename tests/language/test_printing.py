"""Printing: what is printed parses back to the same tree, and reads well.

Trees are compared by `repr`, because Python says 1 == 1.0 == True.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given, settings

from harken.language import parse, to_text
from harken.language.printer import name_text, value_text
from harken.model.builder import attr
from harken.model.expressions import And, Comparator, Comparison, Not, Or
from harken.model.values import Box, Point
from tests.strategies import AWKWARD_NAMES, Generator, expressions, names, wide_expressions, wide_values


@given(wide_expressions)
@settings(max_examples=300)
def test_parsing_what_was_printed_gives_the_same_tree(expression):
    assert repr(parse(to_text(expression))) == repr(expression)


@given(expressions(max_leaves=20))
def test_parsing_what_was_printed_gives_the_same_tree_also_for_larger_ones(expression):
    assert repr(parse(to_text(expression))) == repr(expression)


def test_a_thousand_seeded_trees_survive_printing():
    generator = Generator("printing")
    for _ in range(1_000):
        expression = generator.expression(depth=4)
        assert repr(parse(to_text(expression))) == repr(expression)


@given(names)
def test_every_name_survives_printing(name):
    assert parse(f"{name_text(name)} IS NULL").attribute == name
    assert parse(f"NOT {name_text(name)} CONTAINS 'x'").term.attribute == name
    assert parse(name_text(name)).attribute == name


@pytest.mark.parametrize("name", AWKWARD_NAMES)
def test_awkward_names_survive_before_every_operator(name):
    x = attr(name)
    everything = [
        *(x == 1, x != date(2026, 1, 1), x < "a", x >= datetime(2026, 1, 1, tzinfo=UTC), x.between(1, 2)),
        *(x.in_range(1, 2), x.is_in([1]), x.not_in([1]), x.like("a", "!"), x.starts_with("a"), x.ends_with("a")),
        *(
            x.contains("a"),
            x.contains(Point(0, 0)),
            x.matches("a"),
            x.overlaps(Point(0, 0)),
            x.within(Point(0, 0)),
        ),
        *(x.is_null(), x.exists(), x == True),  # noqa: E712
    ]
    for one in everything:
        for expression in (one, Not(one), And((one, Not(Or((one, one)))))):
            assert repr(parse(to_text(expression))) == repr(expression)


@given(wide_values)
def test_every_constant_survives_printing(value):
    assert repr(parse(f"x = {value_text(value)}").value) == repr(value)
    assert repr(parse(f"{value_text(value)} = x").value) == repr(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "TRUE"),
        (1, "1"),
        (-5, "-5"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (1e16, "1e+16"),
        (5e-324, "5e-324"),
        ("it's", "'it''s'"),
        ("", "''"),
        (date(2026, 11, 15), "DATE '2026-11-15'"),
        (date(1, 1, 1), "DATE '0001-01-01'"),
        (datetime(2026, 11, 15, 10, 30, tzinfo=UTC), "TIMESTAMP '2026-11-15 10:30:00Z'"),
        (datetime(2026, 11, 15, 10, 30, 0, 1, tzinfo=UTC), "TIMESTAMP '2026-11-15 10:30:00.000001Z'"),
        (Point(1, -2.5), "POINT(1.0, -2.5)"),
        (Box(0, 0, 1, 1e20), "BOX(0.0, 0.0, 1.0, 1e+20)"),
        (Decimal("1.10"), "1.10"),
    ],
)
def test_constants_print_as_the_language_writes_them(value, text):
    assert value_text(value) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("price", "price"),
        ("order.name", "order.name"),
        ("größe", "größe"),
        ("date", "date"),
        ("and", '"and"'),
        ("True", '"True"'),
        ("two words", '"two words"'),
        ('say "hi"', '"say ""hi"""'),
        ("1st", '"1st"'),
        ("a..b", '"a..b"'),
    ],
)
def test_names_are_quoted_only_where_they_have_to_be(name, text):
    assert name_text(name) == text


X, Y, Z = (Comparison(name, Comparator.EQ, 1) for name in "xyz")


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (Or((And((X, Y)), Z)), "x = 1 AND y = 1 OR z = 1"),
        (And((Or((X, Y)), Z)), "(x = 1 OR y = 1) AND z = 1"),
        (And((And((X, Y)), Z)), "(x = 1 AND y = 1) AND z = 1"),
        (Or((X, Or((Y, Z)))), "x = 1 OR (y = 1 OR z = 1)"),
        (Not(X), "NOT x = 1"),
        (Not(And((X, Y))), "NOT (x = 1 AND y = 1)"),
        (And((Not(X), Y)), "NOT x = 1 AND y = 1"),
        (Not(Not(X)), "NOT NOT x = 1"),
        (~attr("x").is_in([1, 2]), "x NOT IN (1, 2)"),
        (~~attr("x").is_in([1, 2]), "NOT x NOT IN (1, 2)"),
        (~attr("x").between(1, 2), "x NOT BETWEEN 1 AND 2"),
        (~attr("x").in_range(1, 2), "x NOT IN RANGE [1, 2)"),
        (~attr("x").like("a", "!"), "x NOT LIKE 'a' ESCAPE '!'"),
        (~attr("x").within(Point(0, 0)), "x NOT WITHIN POINT(0.0, 0.0)"),
        (~attr("x").is_null(), "NOT x IS NULL"),
    ],
)
def test_parentheses_stand_only_where_they_are_needed(expression, text):
    assert to_text(expression) == text
