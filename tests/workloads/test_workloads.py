"""Workloads are what the papers say, whatever the seed, and the same for the same seed."""

from __future__ import annotations

import collections

import numpy as np
import pyarrow as pa
import pytest

from harken.errors import UnknownWorkloadError
from harken.model.limits import DEFAULT_LIMITS
from harken.normal.validation import compiled_faults
from harken.workloads import workload, workloads


def predicates_of(name, count=2_000, seed=7):
    table = pa.concat_tables(workload(name, seed).subscriptions(count))
    return [
        [(p["attribute"], p["operator"], p["integer"]) for p in clauses[0]]
        for clauses in table["clauses"].to_pylist()
    ]


@pytest.mark.parametrize("name", workloads())
def test_subscriptions_are_sound_and_numbered(name):
    table = pa.concat_tables(workload(name).subscriptions(500, first_id=1_000))
    assert compiled_faults(table, DEFAULT_LIMITS) == {}
    assert table["id"].to_pylist() == list(range(1_000, 1_500))


@pytest.mark.parametrize("name", workloads())
def test_no_subscription_asks_an_attribute_twice(name):
    for predicates in predicates_of(name, 300):
        attributes = [attribute for attribute, _, _ in predicates]
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


def test_an_unknown_workload_is_told_with_the_nearest_name():
    with pytest.raises(UnknownWorkloadError, match="did you mean 'churn-skew'"):
        workload("chrun-skew")
