"""Workloads of constraints match as often as they should, and are the same for the same seed."""

from __future__ import annotations

import pyarrow as pa
import pytest

from harken.errors import UnknownWorkloadError
from harken.model.limits import DEFAULT_LIMITS
from harken.normal.validation import compiled_faults
from harken.symmetric.semantics import boxes_of
from harken.symmetric.stores import open_store
from harken.workloads import CONSTRAINT_WORKLOADS, Sizes, constraint_workload

NAMES = (*CONSTRAINT_WORKLOADS, "market")


def subscriptions(made):
    return pa.concat_tables(made.subscriptions())


def matches(name, sizes, parts):
    """By part, how many pairs match."""
    made = constraint_workload(name, sizes)
    store = open_store(None)
    store.load("subscriptions", subscriptions(made), None)
    asked = ([boxes_of(each) for each in made.publications(part)] for part in range(parts))
    return [len(store.match("subscriptions", boxes, "publication")) for boxes in asked]


@pytest.mark.parametrize("name", NAMES)
def test_subscriptions_are_sound_numbered_and_the_same_for_the_same_seed(name):
    one, same, other = (constraint_workload(name, Sizes(3_000, 4), seed) for seed in (1, 1, 2))
    table = subscriptions(one)
    assert not compiled_faults(table, DEFAULT_LIMITS)
    assert table.column("id").to_pylist() == list(range(3_000))
    assert table.equals(subscriptions(same))
    assert not table.equals(subscriptions(other))
    assert one.publications(3) == same.publications(3) != one.publications(5)
    assert len(one.publications()) == 4


@pytest.mark.parametrize("sizes", [Sizes(4_096), Sizes(1_024, 10)])
@pytest.mark.parametrize("name", ["fixed", "large-intermediate-results", "fixed-geometric"])
def test_about_five_pairs_match_however_many_there_are(name, sizes):
    found = matches(name, sizes, 100)
    assert 3 < sum(found) / len(found) < 8


def test_a_hundredth_of_the_subscriptions_matches_where_it_is_proportional():
    found = matches("proportional", Sizes(10_000), 30)
    assert 80 < sum(found) / len(found) < 120


def test_the_market_uses_every_kind_of_operator_and_some_of_it_matches():
    table = subscriptions(constraint_workload("market", Sizes(1_000)))
    operators = table.column("clauses").combine_chunks().flatten().flatten().field("operator").to_pylist()
    assert len(set(operators)) >= 5
    found = matches("market", Sizes(5_000), 40)
    assert 0.5 < sum(found) / len(found) < 5


def test_an_unknown_name_is_told_with_those_there_are():
    with pytest.raises(UnknownWorkloadError, match="market"):
        constraint_workload("marked", Sizes(1))
