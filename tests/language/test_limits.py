"""Bounds on what one text or tree may ask for: clear errors on the far side, none on the near side."""

from __future__ import annotations

import contextlib

import pytest

from harken.errors import BoundError, ExpressionError, ParseError
from harken.language import parse
from harken.model.builder import attr
from harken.model.expressions import And, Not, Or, check_limits
from harken.model.limits import DEFAULT_LIMITS, Limits
from harken.model.text import TextOperator

X = attr("x") == 1


def refused(text, bound, limits=DEFAULT_LIMITS):
    with pytest.raises(BoundError) as caught:
        parse(text, limits=limits)
    assert caught.value.bound == bound
    assert caught.value.limit == getattr(limits, bound)
    assert f"{bound} allows" in str(caught.value)
    assert isinstance(caught.value, ExpressionError)


def test_the_length_of_a_text_is_bounded():
    limits = Limits(max_length=20)
    parse("x = 1".ljust(20), limits=limits)
    refused("x = 1".ljust(21), "max_length", limits)


def test_the_default_length_takes_a_long_list():
    members = ", ".join(str(number) for number in range(30_000))
    assert len(parse(f"x IN ({members})").values) == 30_000
    refused(f"x IN ({members}, {members})", "max_length")


@pytest.mark.parametrize("depth", [1, 5, 100])
def test_parentheses_are_bounded(depth):
    limits = Limits(max_depth=depth)
    parse("(" * depth + "x = 1" + ")" * depth, limits=limits)
    refused("(" * (depth + 1) + "x = 1" + ")" * (depth + 1), "max_depth", limits)


def test_parentheses_side_by_side_are_not_inside_each_other():
    parse(" AND ".join(["(x = 1)"] * 1_000))


@pytest.mark.parametrize("hidden", ["'{}'", "\"{}\" = 1 OR x = ''", "'' -- {}", "'' /* {} */"])
def test_parentheses_in_strings_names_and_comments_do_not_count(hidden):
    parse("x = " + hidden.format("(" * 200) if hidden[0] == "'" else hidden.format("(" * 200))


@pytest.mark.parametrize("depth", [2, 5, 100])
def test_negations_are_bounded(depth):
    limits = Limits(max_depth=depth)
    parse("NOT " * depth + "x = 1", limits=limits)
    refused("NOT " * (depth + 1) + "x = 1", "max_depth", limits)


def test_alternating_and_and_or_are_bounded():
    def nested(levels):
        text = "x = 1"
        for level in range(levels):
            text = f"y = 1 {('AND', 'OR')[level % 2]} ({text})"
        return text

    parse(nested(100))
    refused(nested(101), "max_depth")


@pytest.mark.parametrize(
    "text",
    [
        "NOT " * 60_000 + "x = 1",
        "(" * 200_000,
        "(" * 100_000 + "x" + ")" * 100_000,
        "NOT (" * 40_000 + "x",
        "x = 1 AND (y = 2 OR " * 12_000,
    ],
    ids=["not", "open", "closed", "not open", "and or"],
)
def test_no_depth_exhausts_the_stack(text):
    refused(text, "max_depth")


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "(" * 101 + "/* " * 80_000,
        "/* " * 80_000,
        "x = 1 OR " * 25_000 + "==",
        "'" * 100_001,
        '"' * 100_001,
        "x" * 200_000 + " ==",
        "1" * 200_000 + "x",
        "x = 1 " + "- " * 100_000,
        "a." * 100_000,
        "x IN (" + "1, " * 80_000,
    ],
    ids=["brackets", "comments", "or", "quotes", "double quotes", "name", "digits", "dashes", "dots", "in"],
)
def test_no_long_text_hangs_the_parser(text):
    with pytest.raises(ExpressionError):
        parse(text)


def test_a_tree_made_in_python_is_bounded_alike():
    deep = X
    for _ in range(100):
        deep = Not(deep)
    check_limits(deep, DEFAULT_LIMITS)
    with pytest.raises(BoundError, match="nests too deeply") as caught:
        check_limits(Not(deep), DEFAULT_LIMITS)
    assert caught.value.bound == "max_depth"


def test_a_very_deep_tree_is_refused_without_recursion():
    deep = X
    for level in range(50_000):
        deep = (And, Or)[level % 2]((deep, X))
    with pytest.raises(BoundError):
        check_limits(deep, DEFAULT_LIMITS)


def test_a_wide_tree_is_not_a_deep_one():
    wide = And((X,) * 10_000)
    check_limits(wide, Limits(max_depth=1))


@pytest.mark.parametrize("operator", ["LIKE", "STARTS WITH", "ENDS WITH", "CONTAINS", "MATCHES"])
def test_patterns_are_bounded(operator):
    limits = Limits(max_pattern=10)
    parse(f"x {operator} '{'a' * 10}'", limits=limits)
    refused(f"x {operator} '{'a' * 11}'", "max_pattern", limits)
    refused(f"NOT (y = 1 AND x {operator} '{'a' * 11}')", "max_pattern", limits)


def test_a_pattern_of_a_tree_is_bounded_and_named():
    long = attr("title").contains("a" * 5_000)
    with pytest.raises(BoundError, match=r"the pattern on 'title' has 5,000 characters") as caught:
        check_limits(X | ~long, DEFAULT_LIMITS)
    assert caught.value.bound == "max_pattern"


def test_the_longest_pattern_of_each_operator_is_taken():
    for operator in TextOperator:
        parse(f"x {operator.value} '{'_' * 4_096}'")


def test_constants_of_comparisons_are_no_patterns():
    assert len(parse(f"x = '{'a' * 10_000}'").value) == 10_000


@pytest.mark.parametrize(
    "regex", ["(((a{30}){30}){30}){30}", "(a*)*" * 700, "[" * 2_000, "(" * 3_000, r"\pL" * 1_300]
)
def test_a_monstrous_regular_expression_is_compiled_or_refused_in_linear_time(regex):
    with contextlib.suppress(ParseError):
        parse(f"x MATCHES '{regex}'")


def test_a_tree_that_shares_its_parts_is_refused_before_it_is_walked_forever():
    from harken.model.expressions import And, Not, check_limits
    from harken.model.limits import DEFAULT_LIMITS

    shared = parse("x = 1")
    for _ in range(40):
        shared = And((shared, Not(shared)))
    with pytest.raises(BoundError, match="more parts"):
        check_limits(shared, DEFAULT_LIMITS)
