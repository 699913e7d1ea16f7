"""Each rewrite keeps the truth of every expression for every event: true, false and unknown."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from harken.language import parse, to_text
from harken.model.evaluation import truth
from harken.model.expressions import And, Constant, Not, Or, TextMatch, children
from harken.model.text import TextOperator
from harken.normal.rules import RULES
from harken.normal.rules.constants import fold_constants
from harken.normal.rules.equalities import join_equalities
from harken.normal.rules.flattening import flatten
from harken.normal.rules.negation import push_negation
from harken.normal.rules.patterns import simplify_patterns
from harken.normal.rules.presence import drop_presence_tautologies
from tests.strategies import Generator, events, expressions


def named(rule):
    return rule.__name__


@pytest.mark.parametrize("rule", RULES, ids=named)
@given(expression=expressions(), event=events())
@settings(max_examples=150)
def test_a_rule_keeps_the_truth(rule, expression, event):
    assert truth(rule(expression), event) is truth(expression, event)


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_a_rule_keeps_the_truth_of_many_seeded_cases_of_each_verdict(rule):
    generator = Generator(f"rules of {rule.__name__}")
    seen = {True: 0, False: 0, None: 0}
    for _ in range(250):
        expression = generator.expression()
        rewritten = rule(expression)
        for event in [generator.event() for _ in range(8)]:
            verdict = truth(expression, event)
            assert truth(rewritten, event) is verdict, (to_text(expression), event)
            seen[verdict] += 1
    assert min(seen.values()) > 200


@pytest.mark.parametrize("rule", RULES, ids=named)
@given(expression=expressions())
def test_a_rule_applied_twice_changes_no_more(rule, expression):
    once = rule(expression)
    assert repr(rule(once)) == repr(once)


@given(expressions(), events())
def test_all_rules_in_order_keep_the_truth(expression, event):
    rewritten = expression
    for rule in RULES:
        rewritten = rule(rewritten)
    assert truth(rewritten, event) is truth(expression, event)


def nodes(expression):
    yield expression
    for child in children(expression):
        yield from nodes(child)


@given(expressions())
def test_after_pushing_negation_not_stands_before_predicates_only(expression):
    for node in nodes(push_negation(expression)):
        assert not (isinstance(node, Not) and isinstance(node.term, And | Or | Not | Constant))


@given(expressions())
def test_after_folding_a_constant_stands_alone_or_not_at_all(expression):
    folded = fold_constants(expression)
    assert isinstance(folded, Constant) or not any(isinstance(node, Constant) for node in nodes(folded))


@given(expressions())
def test_after_flattening_no_and_stands_in_an_and_and_no_or_in_an_or(expression):
    for node in nodes(flatten(expression)):
        if isinstance(node, And | Or):
            assert not any(type(term) is type(node) for term in node.terms)


@pytest.mark.parametrize(
    ("rule", "before", "after"),
    [
        (push_negation, "NOT x < 2", "x >= 2"),
        (push_negation, "NOT x = 2", "x != 2"),
        (push_negation, "NOT (x < 2 AND y)", "x >= 2 OR y != TRUE"),
        (push_negation, "NOT (x < 2 OR NOT y IS NULL)", "x >= 2 AND y IS NULL"),
        (push_negation, "NOT NOT x < 2", "x < 2"),
        (push_negation, "NOT x BETWEEN 1 AND 2", "x < 1 OR x > 2"),
        (push_negation, "NOT x IN RANGE (1, 2)", "x <= 1 OR x >= 2"),
        (push_negation, "NOT TRUE", "FALSE"),
        (push_negation, "NOT x NOT IN (1, 2)", "x IN (1, 2)"),
        (push_negation, "NOT x LIKE 'a%'", "x NOT LIKE 'a%'"),
        (fold_constants, "x = 1 AND TRUE", "x = 1"),
        (fold_constants, "x = 1 AND FALSE", "FALSE"),
        (fold_constants, "x = 1 OR TRUE", "TRUE"),
        (fold_constants, "x = 1 OR FALSE OR y = 2", "x = 1 OR y = 2"),
        (fold_constants, "NOT (TRUE AND TRUE)", "FALSE"),
        (fold_constants, "(FALSE OR FALSE) OR (x = 1 AND (TRUE OR y))", "x = 1"),
        (flatten, "(a AND b) AND (c AND (d AND e))", "a AND b AND c AND d AND e"),
        (flatten, "a OR (b OR c AND (d AND e))", "a OR b OR c AND d AND e"),
        (drop_presence_tautologies, "x IS NULL OR x IS NOT NULL", "TRUE"),
        (drop_presence_tautologies, "x IS NULL OR y = 1 OR x IS NOT NULL", "TRUE"),
        (drop_presence_tautologies, "x IS NULL OR y IS NOT NULL", "x IS NULL OR y IS NOT NULL"),
        (simplify_patterns, "x LIKE 'abc'", "x = 'abc'"),
        (simplify_patterns, "x LIKE ''", "x = ''"),
        (simplify_patterns, "x LIKE '%'", "x >= ''"),
        (simplify_patterns, "x LIKE '%%'", "x >= ''"),
        (simplify_patterns, "x LIKE 'abc%'", "x STARTS WITH 'abc'"),
        (simplify_patterns, "x LIKE '%%abc'", "x ENDS WITH 'abc'"),
        (simplify_patterns, "x LIKE '%abc%%'", "x CONTAINS 'abc'"),
        (simplify_patterns, "x LIKE 'a!%c%' ESCAPE '!'", "x STARTS WITH 'a%c'"),
        (simplify_patterns, "x LIKE 'a_c'", r"x LIKE 'a_c' ESCAPE '\'"),
        (simplify_patterns, r"x LIKE 'a\_!_' ESCAPE '!'", r"x LIKE 'a\\_\_' ESCAPE '\'"),
        (simplify_patterns, "x NOT LIKE 'abc'", "x != 'abc'"),
        (simplify_patterns, "x NOT LIKE '%'", "x < ''"),
        (simplify_patterns, "x NOT LIKE 'a%'", "x NOT STARTS WITH 'a'"),
        (simplify_patterns, "x CONTAINS ''", "x >= ''"),
        (simplify_patterns, "x MATCHES ''", "x MATCHES ''"),
        (join_equalities, "a = 1 OR b > 2 OR a IN (3, 4)", "a IN (1, 3, 4) OR b > 2"),
        (join_equalities, "a = 1 OR a = 2", "a IN (1, 2)"),
        (join_equalities, "a = 1 AND a = 2", "a = 1 AND a = 2"),
    ],
)
def test_a_rule_rewrites_as_it_says(rule, before, after):
    assert repr(rule(parse(before))) == repr(parse(after))


def test_equal_like_patterns_look_equal_whatever_their_escape_character():
    one = simplify_patterns(parse("x LIKE 'a!__b' ESCAPE '!'"))
    other = simplify_patterns(parse("x LIKE 'a#__b' ESCAPE '#'"))
    assert one == other == TextMatch("x", TextOperator.LIKE, r"a\__b", "\\")
