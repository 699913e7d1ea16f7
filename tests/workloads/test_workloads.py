"""Workloads are what the papers say, whatever the seed, and the same for the same seed."""

from __future__ import annotations

import collections
import itertools
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from harken.errors import ArgumentError, UnknownWorkloadError
from harken.model.limits import DEFAULT_LIMITS
from harken.normal.validation import compiled_faults
from harken.workloads import BooleanExpressions, workload, workload_of, workloads

LIGHT = ("light-query", "light-query-exponential")


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


def properties_of(name, count=4_000, **changes):
    specification = replace(workload(name).specification, **changes)
    table = workload_of(specification, 7).events(count)
    return np.column_stack([column.to_numpy() for column in table.columns])


def test_light_queries_ask_for_a_twentieth_of_the_properties_and_not_for_another():
    asked = predicates_of("light-query", 5_000)
    assert {operator for row in asked for _, operator, _ in row} == {"="}
    counts = collections.Counter(value for row in asked for _, _, value in row)
    assert counts.keys() == {0, 1}
    for value in (0, 1):
        assert 4.0 < counts[value] / len(asked) < 6.0
    by_attribute = collections.Counter(attribute for row in asked for attribute, _, _ in row)
    assert len(by_attribute) == 100
    assert max(by_attribute.values()) > 1.3 * min(by_attribute.values()), "some are asked about more often"


def test_subscriptions_of_light_queries_are_the_same_whatever_events_look_like():
    tables = [pa.concat_tables(workload(name).subscriptions(50)) for name in LIGHT]
    assert tables[0].equals(tables[1])


def test_a_light_event_has_few_properties_each_as_likely_as_another():
    has = properties_of("light-query", 20_000)
    sizes = has.sum(axis=1)
    assert sizes.min() == 1
    assert 0.58 < (sizes == 1).mean() < 0.64
    assert 0.13 < (sizes == 2).mean() < 0.18
    assert 2.5 < sizes.mean() < 4.0
    assert (sizes > 20).any()
    assert has.mean(axis=0).max() < 1.3 * has.mean(axis=0).min()


def test_a_light_event_has_no_more_properties_than_c_and_the_fewer_the_larger_alpha_is():
    assert properties_of("light-query", most=5).sum(axis=1).max() == 5
    means = [properties_of("light-query", alpha=alpha).sum(axis=1).mean() for alpha in (1.0, 2.0, 4.0)]
    assert means[0] > 2 * means[1] > 2 * means[2]


def test_an_event_of_the_other_distribution_has_each_property_with_one_chance():
    sizes = properties_of("light-query-exponential").sum(axis=1)
    assert 9.5 < sizes.mean() < 10.5
    assert 2.7 < sizes.std() < 3.3
    assert 29 < properties_of("light-query-exponential", chance=0.3).sum(axis=1).mean() < 31


def test_equalities_ask_three_of_twenty_attributes_that_all_events_have():
    rows = predicates_of("equalities", 500)
    assert {len(row) for row in rows} == {3}
    assert {operator for row in rows for _, operator, _ in row} == {"="}
    assert len({attribute for row in rows for attribute, _, _ in row}) == 20
    events = workload("equalities").events(200)
    assert events.num_columns == 20
    assert not any(column.null_count for column in events.columns)


def test_equalities_and_ranges_are_two_to_three_on_five_of_fifty_attributes_and_events_have_twenty():
    rows = predicates_of("equalities-and-ranges", 2_000)
    assert {len(ranges_joined(row)) for row in rows} == {5}
    equal = sum(operator == "=" for row in rows for _, operator, _ in row) / (5 * len(rows))
    assert 0.37 < equal < 0.43
    reach = {
        high - low
        for row in rows
        for (name, operator, low), (other, also, high) in itertools.pairwise(row)
        if (operator, also) == (">=", "<=") and name == other
    }
    assert reach == {100}
    events = workload("equalities-and-ranges").events(300).to_pylist()
    assert {sum(value is not None for value in event.values()) for event in events} == {20}


def test_a_hundredth_of_what_output_holds_matches():
    rows = predicates_of("output", 20_000)
    values = collections.Counter(value for ((_, _, value),) in rows)
    assert len(values) == 100
    assert 100 < min(values.values()) <= max(values.values()) < 300
