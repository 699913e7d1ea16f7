"""Truth: three values, and what makes a predicate unknown. (Cases as data live in tests/conformance.)"""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.model.evaluation import all_of, any_of, lies, negation_of, truth
from harken.model.expressions import (
    And,
    Comparator,
    Comparison,
    Membership,
    Not,
    Or,
    Presence,
    Spatial,
    SpatialOperator,
    predicates,
)
from harken.model.values import SPATIAL_KINDS, Box, Kind, kind_of
from tests.strategies import FREE, SMALL, events, expressions, predicates_on

TRUTHS = (True, False, None)
shapes = st.sampled_from([*SMALL[Kind.POINT], *SMALL[Kind.BOX]])


def rank(value):
    """False < unknown < true: AND is the minimum, OR the maximum."""
    return {False: 0, None: 1, True: 2}[value]


@pytest.mark.parametrize("truths", [list(case) for size in (2, 3) for case in product(TRUTHS, repeat=size)])
def test_and_is_the_least_truth_and_or_the_greatest(truths):
    assert rank(all_of(truths)) == min(map(rank, truths))
    assert rank(any_of(truths)) == max(map(rank, truths))


def test_not_swaps_true_and_false_and_keeps_unknown():
    assert [negation_of(value) for value in TRUTHS] == [False, True, None]


@given(st.one_of(*(predicates_on(name, kinds) for name, kinds in FREE.items())))
def test_a_missing_attribute_makes_every_predicate_but_presence_unknown(predicate):
    verdict = truth(predicate, {})
    assert verdict is (not predicate.present if isinstance(predicate, Presence) else None)


@given(expressions(), events())
def test_a_double_negation_changes_nothing(expression, event):
    assert truth(Not(Not(expression)), event) is truth(expression, event)


@given(expressions(), expressions(), events())
def test_de_morgan_holds_for_three_values(one, other, event):
    assert truth(Not(And((one, other))), event) is truth(Or((Not(one), Not(other))), event)
    assert truth(Not(Or((one, other))), event) is truth(And((Not(one), Not(other))), event)


@given(expressions(), events())
def test_attributes_an_expression_does_not_mention_do_not_matter(expression, event):
    mentioned = {leaf.attribute for leaf in predicates(expression)}
    assert truth(expression, {k: v for k, v in event.items() if k in mentioned}) is truth(expression, event)


@given(expressions(), events(), st.data())
def test_learning_a_missing_value_never_turns_a_decided_answer_around_unless_presence_is_asked(
    expression, event, data
):
    if any(isinstance(leaf, Presence) for leaf in predicates(expression)):
        return
    before = truth(expression, event)
    fuller = {**data.draw(events()), **event}
    if before is not None:
        assert truth(expression, fuller) is before


def covers(outer, inner):
    """Each corner of the inner shape lies in the outer one."""
    x1, y1, x2, y2 = inner.bounds
    corners = [(x, y) for x in (x1, x2) for y in (y1, y2)]
    a1, b1, a2, b2 = outer.bounds
    return all(a1 <= x <= a2 and b1 <= y <= b2 for x, y in corners)


@given(shapes, shapes)
def test_shapes_lie_as_their_points_do(one, other):
    assert lies(one, SpatialOperator.CONTAINS, other) is covers(one, other)
    assert lies(one, SpatialOperator.WITHIN, other) is covers(other, one)
    # All corners are whole numbers, so shapes that meet share a whole point.
    shared = any(
        covers(one, Box(x, y, x, y)) and covers(other, Box(x, y, x, y)) for x in range(4) for y in range(4)
    )
    assert lies(one, SpatialOperator.OVERLAPS, other) is shared


@pytest.mark.parametrize("kind", Kind)
def test_values_of_another_kind_are_neither_equal_nor_unequal(kind):
    constant = SMALL[kind][0]
    for other_kind, values in SMALL.items():
        event = {"x": values[0]}
        unknown = other_kind is not kind
        for operator in (Comparator.EQ, Comparator.NE):
            assert (truth(Comparison("x", operator, constant), event) is None) is unknown
        assert (truth(Not(Membership("x", (constant,))), event) is None) is unknown


@given(predicates_on("x", tuple(SPATIAL_KINDS)), st.sampled_from([v for k in SMALL for v in SMALL[k]]))
def test_a_spatial_predicate_takes_points_and_boxes_alike_and_nothing_else(predicate, value):
    if isinstance(predicate, Spatial):
        known = truth(predicate, {"x": value}) is not None
        assert known is (kind_of(value) in SPATIAL_KINDS)
