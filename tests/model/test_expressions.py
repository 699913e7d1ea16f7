"""Expression trees: what a leaf refuses, how trees combine, and what can be asked of them."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given

from harken.errors import ExpressionError, SchemaError
from harken.model.builder import attr
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
    check_schema,
    children,
    constants,
    predicates,
)
from harken.model.schema import Schema
from harken.model.text import TextOperator
from harken.model.values import Box, Point
from tests.strategies import expressions

X = Comparison("x", Comparator.EQ, 1)
Y = Comparison("y", Comparator.EQ, 2)
x = attr("x")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Comparison("", Comparator.EQ, 1), "non-empty string"),
        (lambda: Comparison(5, Comparator.EQ, 1), "non-empty string"),
        (lambda: Comparison("\ud800", Comparator.EQ, 1), "surrogate"),
        (lambda: Comparison("x", Comparator.EQ, float("inf")), "finite"),
        (lambda: Comparison("x", Comparator.LT, Point(1, 2)), "a point has no order"),
        (lambda: Range("x", Box(0, 0, 1, 1), Box(0, 0, 1, 1)), "a box has no order"),
        (lambda: Range("x", 1, "a"), "from a number to a string"),
        (lambda: Range("x", date(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)), "from a date to a timestamp"),
        (lambda: Membership("x", ()), "at least one value"),
        (lambda: TextMatch("x", TextOperator.CONTAINS, 5), "needs a string"),
        (lambda: TextMatch("x", TextOperator.MATCHES, "("), "bad regular expression"),
        (lambda: TextMatch("x", TextOperator.LIKE, "a!", "!"), "ends with its escape"),
        (lambda: TextMatch("x", TextOperator.LIKE, "a", "!!"), "exactly one character"),
        (lambda: TextMatch("x", TextOperator.CONTAINS, "a", "!"), "ESCAPE belongs to LIKE"),
        (lambda: Spatial("x", SpatialOperator.WITHIN, "Paris"), "POINT or a BOX"),
        (lambda: Presence("", True), "non-empty string"),
        (lambda: And((X,)), "at least two terms"),
        (lambda: Or(()), "at least two terms"),
    ],
)
def test_a_leaf_that_means_nothing_cannot_be_made(make, said):
    with pytest.raises(ExpressionError, match=said):
        make()


def test_a_value_the_language_has_no_type_for_is_a_type_error():
    with pytest.raises(TypeError, match="list is not a type"):
        attr("x") == [1]  # noqa: B015


def test_no_backreferences_is_said_where_one_is_tried():
    with pytest.raises(ExpressionError) as caught:
        TextMatch("x", TextOperator.MATCHES, "(?=a)")
    assert caught.value.suggestion == "RE2 has no backreferences and no look-around"


@pytest.mark.parametrize("comparator", Comparator)
def test_negating_and_flipping_a_comparator_twice_gives_it_back(comparator):
    assert comparator.negated.negated is comparator
    assert comparator.flipped.flipped is comparator
    assert comparator.negated is not comparator


def test_operators_build_flat_trees():
    one, other = X, Y
    assert one & other & one == And((X, Y, X))
    assert one | other | one == Or((X, Y, X))
    assert (one & other) | one == Or((And((X, Y)), X))
    assert ~one == Not(X)
    assert ~~one == Not(Not(X))


@pytest.mark.parametrize("combine", [lambda: X & True, lambda: X | "y = 2", lambda: X & None])
def test_an_expression_combines_only_with_expressions(combine):
    with pytest.raises(TypeError, match="expected an expression"):
        combine()


@pytest.mark.parametrize("use", [lambda: X and Y, lambda: not X, lambda: bool(X), lambda: 1 < attr("x") < 3])
def test_an_expression_is_not_a_python_truth_value(use):
    with pytest.raises(TypeError, match="no truth value by itself"):
        use()


def test_the_builder_says_what_the_tree_says():
    assert (x == 1) == Comparison("x", Comparator.EQ, 1)
    assert (x != 1) == Comparison("x", Comparator.NE, 1)
    assert (x < 1) == Comparison("x", Comparator.LT, 1)
    assert (x <= 1) == Comparison("x", Comparator.LE, 1)
    assert (x > 1) == Comparison("x", Comparator.GT, 1)
    assert (x >= 1) == Comparison("x", Comparator.GE, 1)
    assert (1 > x) == Comparison("x", Comparator.LT, 1)  # noqa: SIM300
    assert x.between(1, 2) == Range("x", 1, 2, True, True)
    assert x.in_range(1, 2) == Range("x", 1, 2, True, False)
    assert x.in_range(1, 2, low_closed=False, high_closed=True) == Range("x", 1, 2, False, True)
    assert x.is_in([1, 2]) == Membership("x", (1, 2))
    assert x.not_in(iter([1, 2])) == Not(Membership("x", (1, 2)))
    assert x.like("a!%", "!") == TextMatch("x", TextOperator.LIKE, "a!%", "!")
    assert x.starts_with("a") == TextMatch("x", TextOperator.STARTS_WITH, "a")
    assert x.ends_with("a") == TextMatch("x", TextOperator.ENDS_WITH, "a")
    assert x.contains("a") == TextMatch("x", TextOperator.CONTAINS, "a")
    assert x.contains(Point(1, 2)) == Spatial("x", SpatialOperator.CONTAINS, Point(1, 2))
    assert x.matches("a+") == TextMatch("x", TextOperator.MATCHES, "a+")
    assert x.overlaps(Box(0, 0, 1, 1)) == Spatial("x", SpatialOperator.OVERLAPS, Box(0, 0, 1, 1))
    assert x.within(Box(0, 0, 1, 1)) == Spatial("x", SpatialOperator.WITHIN, Box(0, 0, 1, 1))
    assert x.is_null() == Presence("x", False)
    assert x.exists() == Presence("x", True)
    assert repr(x) == "attr('x')"


def test_an_attribute_is_not_hashable_because_equality_builds_a_predicate():
    with pytest.raises(TypeError, match="unhashable"):
        {attr("x"): 1}


def test_predicates_come_from_left_to_right():
    tree = And((X, Not(Or((Y, TRUE, Presence("z", True)))), FALSE, X))
    assert list(predicates(tree)) == [X, Y, Presence("z", True), X]


@given(expressions())
def test_predicates_are_the_leaves_that_children_lead_to(expression):
    def leaves(node):
        below = children(node)
        return [leaf for child in below for leaf in leaves(child)] if below else [node]

    wanted = [leaf for leaf in leaves(expression) if leaf not in (TRUE, FALSE)]
    assert list(predicates(expression)) == wanted


@pytest.mark.parametrize(
    ("predicate", "held"),
    [
        (X, (1,)),
        (Range("x", 1, 2), (1, 2)),
        (Membership("x", (3, "a")), (3, "a")),
        (TextMatch("x", TextOperator.LIKE, "a%"), ("a%",)),
        (Spatial("x", SpatialOperator.WITHIN, Point(0, 0)), (Point(0, 0),)),
        (Presence("x", True), ()),
    ],
)
def test_the_constants_of_a_predicate_are_what_it_compares_with(predicate, held):
    assert constants(predicate) == held


SCHEMA = Schema(
    {"n": "int", "f": "float", "s": "string", "b": "bool", "d": "date", "t": "timestamp", "p": "point"}
)


@pytest.mark.parametrize(
    "fitting",
    [
        attr("n") < 5,
        attr("f") < 5,
        attr("f") < 5.5,
        attr("s").like("a%"),
        attr("s").is_in(["a", "b"]),
        attr("b") == True,  # noqa: E712
        attr("d") == date(2026, 1, 1),
        attr("t") < datetime(2026, 1, 1, tzinfo=UTC),
        attr("p") == Point(1, 2),
        attr("p").within(Box(0, 0, 1, 1)),
        attr("p").contains(Point(0, 0)),
        attr("n").is_null() & attr("s").exists(),
        TRUE,
    ],
)
def test_an_expression_that_fits_the_schema_passes(fitting):
    check_schema(fitting, SCHEMA)


@pytest.mark.parametrize(
    ("unfit", "attribute", "expected", "found"),
    [
        (attr("n") < 5.5, "n", "int", "float"),
        (attr("n") == True, "n", "int", "bool"),  # noqa: E712
        (attr("f") == "5", "f", "float", "string"),
        (attr("s") == 5, "s", "string", "int"),
        (attr("s").is_in(["a", 1]), "s", "string", "int"),
        (attr("n").like("a%"), "n", "int", "string"),
        (attr("d") == datetime(2026, 1, 1, tzinfo=UTC), "d", "date", "timestamp"),
        (attr("t") == date(2026, 1, 1), "t", "timestamp", "date"),
        (attr("s").within(Box(0, 0, 1, 1)), "s", "string", "a spatial predicate"),
        (attr("p") == Box(0, 0, 1, 1), "p", "point", "box"),
        (~(attr("n").between("a", "b")) | attr("s").exists(), "n", "int", "string"),
    ],
)
def test_a_constant_of_another_type_is_an_error_that_names_all_three(unfit, attribute, expected, found):
    with pytest.raises(SchemaError) as caught:
        check_schema(unfit, SCHEMA)
    error = caught.value
    assert (error.attribute, error.expected, error.found) == (attribute, expected, found)
    assert isinstance(error, TypeError)
    assert isinstance(error, ValueError)


def test_an_attribute_the_schema_has_not_is_an_error_even_when_only_its_presence_is_asked():
    with pytest.raises(SchemaError, match="no attribute 'prise'") as caught:
        check_schema(attr("prise").exists(), Schema({"price": "float", "maker": "string"}))
    assert caught.value.attribute == "prise"
    assert caught.value.suggestion == "did you mean 'price'?"
