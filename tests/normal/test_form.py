"""The normal form: it is true where the expression is, and as small as it can easily be."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.errors import BoundError
from harken.language import parse, to_text
from harken.model.evaluation import truth
from harken.model.limits import Limits
from harken.model.values import Kind
from harken.normal.constraints import Absent, OneOf, Present, Region, Span, implies, meet
from harken.normal.form import after_prefix, normalise
from tests.normal.evaluator import KINDS, accepts, matches, satisfied
from tests.strategies import FREE, SMALL, Generator, events, expressions, predicates_on, small_values


@given(expressions(), events())
@settings(max_examples=400)
def test_the_normal_form_is_true_exactly_where_the_expression_is(expression, event):
    assert matches(normalise(expression), event) is (truth(expression, event) is True)


def test_the_normal_form_is_true_exactly_where_many_seeded_expressions_are():
    generator = Generator("normal form")
    true = 0
    for _ in range(800):
        expression = generator.expression(depth=4)
        form = normalise(expression)
        for event in [generator.event() for _ in range(8)]:
            wanted = truth(expression, event) is True
            assert matches(form, event) is wanted, (to_text(expression), event)
            true += wanted
    assert true > 1_000


@given(expressions(), events())
def test_what_is_said_to_match_never_or_always_does(expression, event):
    form = normalise(expression)
    if form.never_matches:
        assert truth(expression, event) is not True
    if form.always_matches:
        assert truth(expression, event) is True


@given(expressions())
def test_no_clause_is_inside_another(expression):
    clauses = normalise(expression).clauses
    for at, inner in enumerate(clauses):
        for outer in clauses[:at] + clauses[at + 1 :]:
            covered = all(name in inner and implies(inner[name], outer[name]) for name in outer)
            assert not covered


@given(expressions())
def test_constraints_keep_their_promises(expression):
    for clause in normalise(expression).clauses:
        for constraint in clause.values():
            if isinstance(constraint, OneOf):
                assert constraint.values
                assert list(constraint.values) == sorted(set(constraint.values))
            if isinstance(constraint, Span):
                assert constraint.kind.is_ordered
                assert constraint.kind is not Kind.BOOL
                assert list(constraint.excluded) == sorted(set(constraint.excluded))
                for value in constraint.excluded:
                    assert constraint.low is None or value > constraint.low
                    assert constraint.high is None or value < constraint.high
                if constraint.low is not None and constraint.high is not None:
                    assert constraint.low < constraint.high


constraints = (
    predicates_on("x", tuple(Kind))
    .map(normalise)
    .filter(lambda form: form.clauses)
    .map(lambda form: form.clauses[0]["x"])
)
values = st.one_of(st.none(), small_values)


@given(constraints, constraints, values)
def test_the_meet_of_two_constraints_is_satisfied_where_both_are(one, other, value):
    both = meet(one, other)
    wanted = satisfied(one, value) and satisfied(other, value)
    assert (both is not None and satisfied(both, value)) is wanted


@given(constraints, constraints, values)
def test_a_constraint_that_implies_another_is_satisfied_only_where_it_is(one, other, value):
    if implies(one, other):
        assert satisfied(other, value) or not satisfied(one, value)


@given(constraints)
def test_a_constraint_implies_itself_and_presence_unless_it_is_absence(one):
    assert implies(one, one)
    assert implies(one, Present()) is not isinstance(one, Absent)


@pytest.mark.parametrize(
    "text",
    [
        "FALSE",
        "x = 1 AND FALSE",
        "x < 1 AND x > 3",
        "x < 1 AND x >= 1",
        "x <= 1 AND x > 1",
        "x = 1 AND x = 2",
        "x = 1 AND x != 1",
        "x = 1 AND x IS NULL",
        "x IS NULL AND x IS NOT NULL",
        "x IS NULL AND y = 1 AND x LIKE 'a%'",
        "x BETWEEN 5 AND 1",
        "x IN RANGE [1, 1)",
        "x IN RANGE (1, 1]",
        "x IN (1, 2) AND x IN (3, 4)",
        "x IN (1, 2) AND x NOT IN (2, 1)",
        "x IN (1, 2) AND x > 2",
        "x BETWEEN 1 AND 1 AND x != 1",
        "x = 'a' AND x LIKE 'b%'",
        "x STARTS WITH 'a' AND x STARTS WITH 'b'",
        "x LIKE 'ab%' AND x < 'a'",
        "x = 1 AND x = 'a'",
        "x > 1 AND x LIKE '%'",
        "x = TRUE AND x = FALSE",
        "x > TRUE",
        "x < FALSE",
        "x AND NOT x",
        "x NOT IN (TRUE, FALSE)",
        "x NOT IN (1, 'a')",
        "x = POINT(0, 0) AND x WITHIN BOX(1, 1, 2, 2)",
        "x = POINT(0, 0) AND x = BOX(0, 0, 0, 0)",
        "x != POINT(0, 0) AND x = BOX(0, 0, 1, 1)",
        "x != POINT(0, 0) AND x != BOX(0, 0, 1, 1)",
        "x WITHIN BOX(0, 0, 1, 1) AND x = 5",
        "d = DATE '2026-01-01' AND d > DATE '2026-01-01'",
        "d = DATE '2026-01-01' AND d = TIMESTAMP '2026-01-01'",
        "NOT (x = 1 OR x != 1)",
        "(x = 1 OR y = 1) AND x = 2 AND y = 2",
    ],
)
def test_a_contradiction_is_found(text):
    assert normalise(parse(text)).never_matches


@pytest.mark.parametrize(
    "text",
    [
        "TRUE",
        "x = 1 OR TRUE",
        "NOT FALSE",
        "x IS NULL OR x IS NOT NULL",
        "x IS NULL OR EXISTS x OR y = 1",
        "NOT (x IS NULL AND x IS NOT NULL)",
        "y = 1 OR (x IS NULL OR x IS NOT NULL)",
        "(x IS NULL OR x IS NOT NULL) AND (TRUE OR y)",
    ],
)
def test_a_tautology_is_found(text):
    form = normalise(parse(text))
    assert form.always_matches
    assert form.clauses == ({},)


@pytest.mark.parametrize("text", ["x = 1 OR x != 1", "x LIKE '%'", "x IS NOT NULL", "x OR NOT x"])
def test_what_needs_an_attribute_is_no_tautology(text):
    form = normalise(parse(text))
    assert not form.always_matches
    assert not matches(form, {})


N, S = Kind.NUMBER, Kind.STRING


@pytest.mark.parametrize(
    ("text", "constraint"),
    [
        ("x > 1 AND x < 3", Span(N, 1, False, 3, False)),
        ("x > 1 AND x > 2", Span(N, 2, False)),
        ("x >= 2 AND x > 2", Span(N, 2, False)),
        ("x <= 2 AND x < 2.0", Span(N, high=2, high_closed=False)),
        ("x BETWEEN 1 AND 5 AND x IN RANGE [3, 9)", Span(N, 3, True, 5, True)),
        ("x >= 2 AND x <= 2", OneOf(N, (2,))),
        ("x BETWEEN 1 AND 1", OneOf(N, (1,))),
        ("x IN (3, 1, 2, 1, 1.0)", OneOf(N, (1, 2, 3))),
        ("x IN (1, 2, 3) AND x IN (2, 3, 4)", OneOf(N, (2, 3))),
        ("x IN (1, 2, 3) AND x > 1 AND x != 2", OneOf(N, (3,))),
        ("x = 1 OR x = 2 OR x IN (3)", OneOf(N, (1, 2, 3))),
        ("x != 2 AND x != 1", Span(N, excluded=(1, 2))),
        ("x NOT IN (1, 2) AND x > 1", Span(N, 1, False, excluded=(2,))),
        ("x >= 1 AND x != 1", Span(N, 1, False)),
        ("x != 9 AND x BETWEEN 1 AND 9", Span(N, 1, True, 9, False)),
        ("x != 5 AND x < 3", Span(N, high=3)),
        ("x >= 1 AND x IS NOT NULL", Span(N, 1, True)),
        ("x IS NULL AND x IS NULL", Absent()),
        ("x IS NOT NULL", Present()),
        ("x STARTS WITH 'ab'", Span(S, "ab", True, "ac", False)),
        ("x LIKE 'a%' AND x LIKE 'ab%'", Span(S, "ab", True, "ac", False)),
        ("x >= TRUE", OneOf(Kind.BOOL, (True,))),
        ("x <= TRUE", OneOf(Kind.BOOL, (False, True))),
        ("x != TRUE", OneOf(Kind.BOOL, (False,))),
        ("x IN (1, 'a') AND x LIKE 'a%'", OneOf(S, ("a",))),
    ],
)
def test_what_a_clause_asks_of_an_attribute_is_merged(text, constraint):
    assert normalise(parse(text)).clauses == ({"x": constraint},)


@pytest.mark.parametrize(
    ("text", "fewer"),
    [
        ("x = 1 OR x = 1", "x = 1"),
        ("x > 1 OR x > 2", "x > 1"),
        ("x = 1 OR x BETWEEN 0 AND 5", "x BETWEEN 0 AND 5"),
        ("x = 1 OR (x = 1 AND y = 2)", "x = 1"),
        ("x > 1 OR (y = 2 AND x > 3)", "x > 1"),
        ("x IS NOT NULL OR x = 1 OR x LIKE 'a'", "x IS NOT NULL"),
        ("x IN (1, 2, 3) OR x IN (2, 3)", "x IN (1, 2, 3)"),
        ("(x = 1 OR y = 2) AND (x = 1 OR y = 2)", "x = 1 OR y = 2"),
        ("x WITHIN BOX(0, 0, 1, 1) OR (x WITHIN BOX(0, 0, 1, 1) AND y)", "x WITHIN BOX(0, 0, 1, 1)"),
        ("x LIKE '%a%b' OR (x LIKE '%a%b' AND x > 'a')", "x LIKE '%a%b'"),
        ("(x = 1 AND FALSE) OR y = 1", "y = 1"),
    ],
)
def test_redundant_clauses_are_dropped(text, fewer):
    assert set(map(repr, normalise(parse(text)).clauses)) == set(map(repr, normalise(parse(fewer)).clauses))


def test_a_region_of_both_kinds_is_one_constraint():
    (clause,) = normalise(parse("x WITHIN BOX(0, 0, 2, 2) AND x OVERLAPS BOX(1, 1, 3, 3)")).clauses
    assert isinstance(clause["x"], Region)
    assert len(clause["x"].tests) == 2


def product(factors):
    return " AND ".join(f"(a{at} = 1 OR b{at} = 1)" for at in range(factors))


def test_clauses_are_bounded_inclusively():
    assert len(normalise(parse(product(8))).clauses) == 256
    with pytest.raises(BoundError) as caught:
        normalise(parse(product(9)))
    assert (caught.value.bound, caught.value.limit) == ("max_clauses", 256)
    assert caught.value.suggestion.startswith("use IN")


def test_the_bound_can_be_chosen():
    assert len(normalise(parse(product(9)), Limits(max_clauses=512)).clauses) == 512
    with pytest.raises(BoundError):
        normalise(parse(product(2)), Limits(max_clauses=3))


@pytest.mark.parametrize(
    "text",
    [
        product(2_000),
        f"NOT (NOT ({product(300)}))",
        " OR ".join(f"a{at} = 1" for at in range(15_000)),
        f"({product(20)}) OR ({product(20)})",
        " AND ".join(f"x{at} NOT BETWEEN 1 AND 2" for at in range(500)),
    ],
    ids=["product", "negated", "sum", "sum of products", "ranges"],
)
def test_an_explosion_is_refused_before_it_is_made(text):
    with pytest.raises(BoundError) as caught:
        normalise(parse(text))
    assert caught.value.bound == "max_clauses"


def test_alternatives_on_one_attribute_never_multiply():
    text = " AND ".join("(" + " OR ".join(f"x{at} = {value}" for value in range(50)) + ")" for at in range(20))
    assert len(normalise(parse(text)).clauses) == 1
    assert len(normalise(parse(f"x IN ({', '.join(map(str, range(5_000)))}) AND x NOT IN (1, 2)")).clauses) == 1


def test_contradictory_combinations_do_not_count():
    # 2^20 combinations, of which two can be satisfied
    text = " AND ".join(f"((x = 1 AND y{at} = 1) OR (x = 2 AND z{at} = 1))" for at in range(20))
    assert len(normalise(parse(text)).clauses) == 2


prefixes = st.text(
    st.one_of(
        st.sampled_from("ab\ud7ff\ue000\U0010ffff\U0010fffe\x7f\x00"), st.characters(exclude_categories=["Cs"])
    ),
    min_size=1,
    max_size=4,
)
rest = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)


@given(prefixes, rest)
def test_every_string_with_a_prefix_lies_between_it_and_after_it(prefix, rest):
    after = after_prefix(prefix)
    assert prefix <= prefix + rest
    assert after is None or prefix + rest < after


@given(prefixes, prefixes, rest)
def test_a_string_between_a_prefix_and_after_it_has_the_prefix(prefix, start, rest):
    after = after_prefix(prefix)
    for string in (start + rest, prefix + rest, prefix[:-1] + start, after or start):
        between = string >= prefix and (after is None or string < after)
        assert between is string.startswith(prefix)


@pytest.mark.parametrize(
    ("prefix", "after"),
    [
        ("a", "b"),
        ("az", "a{"),
        ("a\U0010ffff", "b"),
        ("\U0010ffff\U0010ffff", None),
        ("\ud7ff", "\ue000"),
        ("", None),
        ("a\x00", "a\x01"),
    ],
)
def test_after_a_prefix_comes_the_next_character(prefix, after):
    assert after_prefix(prefix) == after


def test_the_second_opinion_knows_every_kind():
    assert {KINDS[type(value).__name__] for values in SMALL.values() for value in values} == set(Kind)
    assert accepts({"x": Absent()}, {})
    assert set(FREE["x"]) == set(Kind)
