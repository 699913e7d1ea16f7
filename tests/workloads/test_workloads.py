"""Workloads are what the papers say, whatever the seed, and the same for the same seed."""

from __future__ import annotations

import collections

import numpy as np
import pyarrow as pa
import pytest

from harken.errors import ArgumentError, UnknownWorkloadError
from harken.model.limits import DEFAULT_LIMITS
from harken.normal.validation import compiled_faults
from harken.workloads import BooleanExpressions, workload, workload_of, workloads


def predicates_of(name, count=2_000, seed=7):
    return rows_of(workload(name, seed), count)


def rows_of(made, count):
    table = pa.concat_tables(made.subscriptions(count))
    return [
        [(p["attribute"], p["operator"], p["integer"]) for p in clauses[0]]
        for clauses in table["clauses"].to_pylist()
    ]


def ranges_joined(predicates):
    """The predicates, a range with two ends being one."""
    ends = {(attribute, "<=") for attribute, operator, _ in predicates if operator == ">="}
    return [each for each in predicates if each[:2] not in ends]


@pytest.mark.parametrize("name", workloads())
def test_subscriptions_are_sound_and_numbered(name):
    table = pa.concat_tables(workload(name).subscriptions(500, first_id=1_000))
    assert compiled_faults(table, DEFAULT_LIMITS) == {}
    assert table["id"].to_pylist() == list(range(1_000, 1_500))


@pytest.mark.parametrize("name", workloads())
def test_no_subscription_asks_an_attribute_twice(name):
    for predicates in predicates_of(name, 300):
        attributes = [attribute for attribute, _, _ in ranges_joined(predicates)]
        assert len(set(attributes)) == len(attributes)


@pytest.mark.parametrize("name", workloads())
def test_the_same_seed_makes_the_same_and_another_seed_another(name):
    assert predicates_of(name, 50, seed=3) == predicates_of(name, 50, seed=3)
    assert predicates_of(name, 50, seed=3) != predicates_of(name, 50, seed=4)
    assert workload(name, 3).events(20).equals(workload(name, 3).events(20))
    assert not workload(name, 3).events(20).equals(workload(name, 3).events(20, part=1))


def test_w0_has_five_equalities_two_of_them_fixed():
    for predicates in predicates_of("w0"):
        assert [attribute for attribute, _, _ in predicates[:2]] == ["a00", "a01"]
        assert len(predicates) == 5
        assert {operator for _, operator, _ in predicates} == {"="}
        assert all(1 <= value <= 35 for _, _, value in predicates)


def test_w0_draws_free_attributes_and_values_evenly():
    free = collections.Counter(attribute for row in predicates_of("w0", 20_000) for attribute, _, _ in row[2:])
    assert len(free) == 30
    assert max(free.values()) < 1.2 * min(free.values())


@pytest.mark.parametrize(("name", "operators"), [("w1", "==>="), ("w2", "==<<<<<>=")])
def test_w1_and_w2_mix_operators_as_the_paper_does(name, operators):
    assert {"".join(operator for _, operator, _ in row) for row in predicates_of(name)} == {operators}


def test_the_two_schemas_of_churn_share_no_attribute():
    before = {attribute for row in predicates_of("churn-schema") for attribute, _, _ in row}
    after = {attribute for row in predicates_of("churn-schema-after") for attribute, _, _ in row}
    assert not before & after


def test_skew_leaves_one_fixed_attribute_two_values():
    assert {row[0][2] for row in predicates_of("churn-skew-after")} == {1, 2}
    column = workload("churn-skew-after").events(500)["a00"]
    assert set(column.to_pylist()) == {1, 2}


def test_each_range_predicate_is_true_of_about_a_tenth_of_events():
    events = workload("ranges").events(4_000)
    columns = {name: events[name].to_numpy() for name in events.column_names}
    hold = {"<": np.less, ">": np.greater}
    parts = [
        hold[op](columns[name], value).mean() for row in predicates_of("ranges", 200) for name, op, value in row
    ]
    assert 0.08 < np.mean(parts) < 0.12


@pytest.mark.parametrize("distribution", ["uniform", "zipf"])
@pytest.mark.parametrize(("dimensions", "matching"), [(100, 0.15), (100, 0.01), (400, 0.01), (1_500, 0.003)])
def test_as_much_matches_as_was_asked_for(distribution, dimensions, matching):
    made = workload_of(BooleanExpressions(dimensions, matching, distribution), 5)
    columns = {name: column.to_numpy() for name, column in zip(*columns_of(made.events(1_500)), strict=True)}
    hold = {"=": np.equal, "<=": np.less_equal, ">=": np.greater_equal}
    parts = [
        np.logical_and.reduce([hold[operator](columns[name], value) for name, operator, value in row]).mean()
        for row in rows_of(made, 1_500)
    ]
    assert matching * 0.8 < np.mean(parts) < matching * 1.2


def columns_of(events):
    """Names and columns; where an event has no value, NaN, which equals nothing and is in no order."""
    return events.column_names, [column.cast(pa.float64()) for column in events.columns]


def test_boolean_expressions_have_the_sizes_and_the_equalities_of_the_paper():
    made = workload("be-gen", 5)
    rows = [ranges_joined(row) for row in rows_of(made, 4_000)]
    assert 6.8 < np.mean([len(row) for row in rows]) < 7.2
    assert 0.28 < np.mean([operator == "=" for row in rows for _, operator, _ in row]) < 0.32
    sizes = made.events(4_000).num_columns - np.sum(
        [column.is_null().to_numpy() for column in made.events(4_000).columns], axis=0
    )
    assert 14 < np.mean(sizes) < 16


def test_attributes_are_drawn_evenly_or_by_zipfs_law():
    asked = {
        name: collections.Counter(attribute for row in predicates_of(name, 20_000) for attribute, _, _ in row)
        for name in ("be-gen", "be-gen-zipf")
    }
    shares = {name: sum(n for _, n in each.most_common(40)) / each.total() for name, each in asked.items()}
    assert shares["be-gen"] < 0.3
    assert shares["be-gen-zipf"] > 0.4


@pytest.mark.parametrize("said", [{"matching": 0.0}, {"matching": 0.95}, {"dimensions": 19}])
def test_boolean_expressions_that_cannot_be_are_refused(said):
    with pytest.raises(ArgumentError, match=next(iter(said))):
        workload_of(BooleanExpressions(**said))


def test_an_unknown_workload_is_told_with_the_nearest_name():
    with pytest.raises(UnknownWorkloadError, match="did you mean 'churn-skew'"):
        workload("chrun-skew")
