"""Numbers of any size are labelled as they compare, one by one and many at once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from harken.matching.predicates.ordering import ConstantOrder
from harken.model.numbers import Exact
from harken.model.values import INT_MAX, INT_MIN, Kind

INTS = st.one_of(
    st.integers(INT_MIN, INT_MAX),
    st.integers(-3, 3),
    st.sampled_from([2**53, -(2**53), 2**62, INT_MIN, INT_MAX]).flatmap(
        lambda near: st.integers(max(INT_MIN, near - 3), min(INT_MAX, near + 3))
    ),
)
FLOATS = st.one_of(st.floats(allow_nan=False, allow_infinity=False), INTS.map(float))
EXACTS = st.sampled_from([Exact("0.1000000000000000000001"), Exact("9007199254740993.5"), Exact("1e400")])


def order_of(constants: list[int | float | Exact]) -> ConstantOrder:
    order = ConstantOrder(Kind.NUMBER)
    for constant in constants:
        order.hold(constant)
    order.settle()
    return order


def labels_of(order: ConstantOrder, values: np.ndarray) -> list[int]:
    into = np.zeros(len(values), np.int64)
    order.write_labels_of(values, into)
    return into.tolist()


@given(
    st.lists(st.one_of(INTS, FLOATS, EXACTS), max_size=12),
    st.lists(INTS, max_size=8),
    st.lists(st.one_of(FLOATS, st.sampled_from([float("inf"), float("-inf")])), max_size=8),
)
@example([2**53, 2**53 + 1, float(2**53), 2**53 + 2], [2**53, 2**53 + 1, 2**53 + 2], [2.0**53, 2.0**53 + 2])
@example([-1e300, 1e300], [INT_MIN, INT_MAX, 0], [0.0, 1e301])
@example([-1e300], [INT_MIN], [])
@example([float(2**63), INT_MAX], [INT_MAX], [float(2**63)])
def test_many_numbers_have_the_labels_that_each_has(constants, ints, floats):
    order = order_of(constants)
    near = [int(each) for each in constants if INT_MIN <= each <= INT_MAX]
    for values, kind in (([*ints, *near], np.int64), ([*floats, *map(float, near)], np.float64)):
        assert labels_of(order, np.array(values, kind)) == [order.label_of(value) for value in values]


@given(
    st.lists(st.one_of(st.integers(-300, 300), st.floats(-300, 300), EXACTS), max_size=40),
    st.lists(st.integers(-300, 300), max_size=4),
    st.sampled_from([np.int8, np.int16, np.int64]),
)
@example([], [5], np.int64)
@example([INT_MAX, INT_MAX - 2], [1], np.int64)
@example([INT_MIN, INT_MIN + 2], [1], np.int64)
def test_integers_looked_up_by_place_have_the_labels_of_those_searched(constants, more, kind):
    order = order_of(constants)
    values = np.array([*range(-128, 128)], kind)
    for _ in range(2):
        expected = [order.label_of(int(value)) for value in values]
        for _ in range(4):  # by search at first
            assert labels_of(order, values) == expected
        for constant in more:
            order.hold(constant)
        order.settle()


@given(st.lists(st.lists(st.integers(-50, 50), min_size=1, max_size=12), min_size=1, max_size=8), st.booleans())
def test_constants_that_come_in_any_steps_keep_their_order_and_bounds_move_with_them(steps, expected):
    order, bounds = ConstantOrder(Kind.NUMBER), dict[int, tuple[int, int]]()
    for step in steps:
        ordered = order.expect(step) if expected else None
        moved = order.have(ordered) if ordered else None
        for constant in step:
            order.hold(constant)
        moved = order.settle() or moved
        if moved is not None:
            for constant, (low, high) in bounds.items():
                low, high = moved.lower(np.array([low]))[0], moved.upper(np.array([high]))[0]
                bounds[constant] = int(low), int(high)
        for constant in step:
            bounds[constant] = order.label_of(constant) + 1, order.label_of(constant) - 1
        known = sorted(bounds)
        labels = [order.label_of(constant) for constant in known]
        assert labels == order.labels().tolist()
        assert all(other - one > 1 for one, other in pairwise(labels))
        assert [bounds[each] for each in known] == [(label + 1, label - 1) for label in labels]


def test_what_is_expected_may_be_used_already():
    order = ConstantOrder(Kind.NUMBER)
    order.hold(7)
    ordered = order.expect([7, 8])
    assert ordered is not None
    order.have(ordered)
    order.hold(8)
    order.settle()
    assert [(constant, uses) for constant, _, uses in order.held()] == [(7, 1), (8, 1)]


def test_what_was_expected_in_vain_is_forgotten():
    order = ConstantOrder(Kind.NUMBER)
    for step in range(0, 3_000, 300):  # each of a change that fails
        ordered = order.expect(range(step, step + 300))
        assert ordered is not None
        order.have(ordered)
    assert len(order) <= 64 + 2 * 300 + 300


def test_labels_are_given_anew_only_for_want_of_gaps():
    order, moves = order_of([0, 1_000_000]), 0
    for at in range(1, 60):  # each between the last one and the same upper one
        order.hold(1_000_000 - 1 / at)
        moves += order.settle() is not None
    assert 1 <= moves <= 4
    for constant in range(1, 5_000):
        order.hold(constant)
    assert order.settle() is None
