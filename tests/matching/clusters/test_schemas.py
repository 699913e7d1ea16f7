"""The greedy choice of key tables, against a slow and obvious calculation of what tables cost and save."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from harken.matching.clusters import schemas
from harken.matching.clusters.cost import Costs
from harken.matching.clusters.schemas import Sample, Terms, choose, steps, table_bytes

SEEDS = range(25)
AMPLE = 1e12


def sample_of(clauses, otherwise=None, weight=1.0):
    """A sample from clauses written as {dimension: chance}; singles are the other access paths unless told."""
    dimension = [each for clause in clauses for each in sorted(clause)]
    chance = [clause[each] for clause in clauses for each in sorted(clause)]
    if otherwise is None:
        otherwise = [min(clause.values(), default=1.0) for clause in clauses]
    return Sample(
        np.concatenate([[0], np.cumsum([len(clause) for clause in clauses])]).astype(np.int64),
        np.array(dimension, np.int64),
        np.array(chance, np.float64),
        np.array(otherwise, np.float64),
        weight,
    )


def terms_for(dimensions, *, lookup=10.0, check=1.0, radix=10, space=AMPLE, **others):
    return Terms(np.ones(dimensions), np.full(dimensions, radix), Costs(lookup, check), space, 10**9, **others)


def random_case(seed, dimensions=6, clauses=40):
    chance = np.random.default_rng(seed)
    written = []
    for _ in range(clauses):
        size = chance.integers(0, dimensions + 1)
        chosen = chance.choice(dimensions, size, replace=False).tolist()
        written.append({each: float(chance.choice([0.05, 0.2, 0.6, 0.95])) for each in chosen})
    otherwise = [min([*clause.values(), float(chance.choice([0.3, 1.0]))]) for clause in written]
    terms = Terms(
        chance.choice([0.05, 0.5, 1.0], dimensions),
        chance.integers(2, 12, dimensions),
        Costs(float(chance.choice([0.0, 0.5, 2.0])), 1.0),
        AMPLE,
        10**9,
        longest=int(chance.integers(2, 5)),
    )
    return written, sample_of(written, otherwise), terms


def key_chance(clause, schema):
    """The chance of a clause's key, or None if the clause has no key there."""
    if any(dimension not in clause for dimension in schema):
        return None
    return float(np.prod([clause[dimension] for dimension in schema]))


def cost(clauses, sample, terms, tables):
    """Nanoseconds per event with these tables, every clause under its best access path."""
    total = sum(terms.costs.lookup * np.prod([terms.presence[each] for each in schema]) for schema in tables)
    for clause, otherwise in zip(clauses, sample.otherwise.tolist(), strict=True):
        keys = [key_chance(clause, schema) for schema in tables]
        total += sample.weight * terms.costs.check * min([otherwise, *(key for key in keys if key is not None)])
    return float(total)


def populations(clauses, sample, tables):
    """How many clauses each table holds; the first of equally good ones has them."""
    counts = dict.fromkeys(tables, 0.0)
    for clause, otherwise in zip(clauses, sample.otherwise.tolist(), strict=True):
        best = None
        for schema in tables:
            key = key_chance(clause, schema)
            if key is not None and key < otherwise:
                best, otherwise = schema, key
        if best is not None:
            counts[best] += sample.weight
    return counts


def places(terms, schema):
    return int(np.prod([terms.radixes[each] for each in schema]))


def size(terms, schema, population):
    return float(table_bytes(np.array([float(places(terms, schema))]), np.array([population]))[0])


def subsets(clauses, longest):
    return {
        schema
        for clause in clauses
        for length in range(2, longest + 1)
        for schema in combinations(sorted(clause), length)
    }


def benefit_and_size(clauses, sample, terms, before, schema):
    benefit = cost(clauses, sample, terms, before) - cost(clauses, sample, terms, [*before, schema])
    population = populations(clauses, sample, [*before, schema])[schema]
    return benefit, size(terms, schema, population)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_step_saves_what_the_slow_calculation_says(seed):
    clauses, sample, terms = random_case(seed)
    taken = []
    for choice in steps(sample, terms):
        benefit, _ = benefit_and_size(clauses, sample, terms, taken, choice.schema)
        taken.append(choice.schema)
        assert choice.benefit == pytest.approx(benefit, abs=1e-9)
        assert choice.population == populations(clauses, sample, taken)[choice.schema]
        assert choice.places == places(terms, choice.schema)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_step_takes_the_set_of_dimensions_that_saves_most_per_byte(seed):
    clauses, sample, terms = random_case(seed, dimensions=5, clauses=20)
    taken = []
    for choice in [*steps(sample, terms), None]:
        found = {
            schema: benefit_and_size(clauses, sample, terms, taken, schema)
            for schema in subsets(clauses, terms.longest) - set(taken)
        }
        ratios = {schema: benefit / space for schema, (benefit, space) in found.items() if benefit > 1e-9}
        if choice is None:
            assert not ratios, "something that pays was left"
            break
        assert ratios[choice.schema] == pytest.approx(max(ratios.values()))
        taken.append(choice.schema)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_table_that_is_kept_pays_for_itself_and_leaving_out_the_others_is_no_loss(seed):
    clauses, sample, terms = random_case(seed)
    taken = [choice.schema for choice in steps(sample, terms)]
    kept = [choice.schema for choice in choose(sample, terms)]
    now = cost(clauses, sample, terms, kept)
    assert now <= cost(clauses, sample, terms, taken) + 1e-9
    for schema in kept:
        assert cost(clauses, sample, terms, [each for each in kept if each != schema]) > now - 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_populations_in_the_end_are_those_of_all_kept_tables_together(seed):
    clauses, sample, terms = random_case(seed)
    kept = choose(sample, terms)
    held = populations(clauses, sample, [choice.schema for choice in kept])
    assert sum(choice.population for choice in kept) == sum(held.values())


@pytest.mark.parametrize("seed", SEEDS)
def test_the_tables_fit_into_the_space_there_is(seed):
    clauses, sample, terms = random_case(seed)
    unbounded = [choice.schema for choice in steps(sample, terms)]
    held = populations(clauses, sample, unbounded)
    needed = sum(size(terms, schema, held[schema]) for schema in unbounded)
    bounded = [choice.schema for choice in steps(sample, replace(terms, space=needed / 2))]
    held = populations(clauses, sample, bounded)
    assert sum(size(terms, schema, held[schema]) for schema in bounded) <= needed / 2
    assert steps(sample, replace(terms, space=0)) == []


def test_a_table_may_have_only_so_many_places_and_dimensions_and_there_may_be_only_so_many():
    _, sample, terms = random_case(3, clauses=200)
    assert max(choice.places for choice in steps(sample, terms)) > 200
    assert max(choice.places for choice in steps(sample, replace(terms, most_places=200))) <= 200
    assert {len(choice.schema) for choice in steps(sample, replace(terms, longest=2))} == {2}
    assert steps(sample, replace(terms, longest=1)) == []
    assert steps(sample, replace(terms, most_tables=2)) == steps(sample, terms)[:2]


def test_nothing_is_chosen_when_lookups_cost_more_than_they_save():
    sample = sample_of([{0: 0.1, 1: 0.1}] * 50)
    assert [choice.schema for choice in choose(sample, terms_for(2, lookup=4.4))] == [(0, 1)]
    assert choose(sample, terms_for(2, lookup=4.6)) == []


def test_a_lookup_costs_little_where_events_rarely_have_the_attributes():
    sample = sample_of([{0: 0.05, 1: 0.05}] * 50, otherwise=[0.05] * 50)
    always = terms_for(2, lookup=10.0)
    rarely = replace(always, presence=np.array([0.1, 0.1]))
    assert choose(sample, always) == []
    assert [choice.schema for choice in choose(sample, rarely)] == [(0, 1)]


def test_a_rare_attribute_is_reached_through_a_common_one_that_alone_would_not_pay():
    # (0, 1) is too dear by itself; with the rare dimension 2 the lookup is seldom made.
    sample = sample_of([{0: 0.9, 1: 0.9, 2: 0.01}] * 20, otherwise=[0.5] * 20)
    terms = replace(terms_for(3, lookup=50.0), presence=np.array([1.0, 1.0, 0.02]))
    assert all(2 in choice.schema for choice in choose(sample, terms))
    assert choose(sample, terms)


def test_zero_clauses_need_no_table():
    assert choose(sample_of([]), terms_for(3)) == []
    assert choose(sample_of([]), terms_for(0)) == []


def test_clauses_without_equalities_need_no_table():
    assert choose(sample_of([{}, {}]), terms_for(3, lookup=0.0)) == []


def test_one_dimension_needs_no_table():
    assert choose(sample_of([{0: 0.5}] * 1_000), terms_for(1, lookup=0.0)) == []


def test_a_clause_that_is_reached_by_something_rarer_than_its_key_stays_there():
    sample = sample_of([{0: 0.5, 1: 0.5}] * 1_000, otherwise=[0.1] * 1_000)
    assert choose(sample, terms_for(2, lookup=0.0)) == []


def test_a_small_table_that_longer_keys_have_emptied_is_left_out():
    sample = sample_of([{0: 0.1, 1: 0.1, 2: 0.1}] * 10_000, weight=100.0)
    terms = terms_for(3, lookup=10.0, radix=11)
    assert [choice.schema for choice in steps(sample, terms)] == [(0, 1), (0, 1, 2)]
    assert [choice.schema for choice in choose(sample, terms)] == [(0, 1, 2)]


def test_what_a_few_clauses_of_a_sample_have_by_chance_is_not_believed():
    few = [{0: 0.1, 1: 0.1}] * (schemas.FEWEST_CLAUSES - 1)
    rest = [{2: 0.1}] * 1_000
    assert choose(sample_of(few + rest, weight=1_000.0), terms_for(3)) == []
    assert choose(sample_of(few + rest, weight=1.0), terms_for(3, lookup=0.1)) != []


def test_with_too_many_sets_to_look_at_the_costliest_are_extended_first(monkeypatch):
    clauses = [{0: 0.1, 1: 0.1, 2: 0.1}] * 100 + [{3: 0.1, 4: 0.1, 5: 0.1}] * 20
    sample, terms = sample_of(clauses), terms_for(6, lookup=0.01)
    assert (3, 4, 5) in {choice.schema for choice in steps(sample, terms)}
    monkeypatch.setattr(schemas, "MOST_OCCURRENCES", 300)
    found = {choice.schema for choice in steps(sample, terms)}
    assert (0, 1, 2) in found
    assert (3, 4, 5) not in found


def w0(clauses, subscriptions):
    """Five equalities on 32 attributes, two of them in all clauses; 35 values (Fabret et al. 2000, 6.2.1)."""
    chance = np.random.default_rng(1)
    free = np.sort(np.argsort(chance.random((clauses, 30)), axis=1)[:, :3] + 2, axis=1)
    fixed = np.tile([0, 1], (clauses, 1))
    return Sample(
        np.arange(0, 5 * clauses + 1, 5),
        np.concatenate([fixed, free], axis=1).ravel(),
        np.full(5 * clauses, 1 / 35),
        np.full(clauses, 1 / 35),
        subscriptions / clauses,
    )


def test_many_w0_subscriptions_get_tables_of_the_two_fixed_attributes_and_one_more():
    terms = terms_for(32, radix=36, lookup=10.0, space=16 * 6_000_000)
    found = choose(w0(10_000, 6_000_000), terms)
    longer = [choice for choice in found if len(choice.schema) == 3]
    assert 20 <= len(longer) <= 30
    assert all(choice.schema[:2] == (0, 1) for choice in found)
    assert sum(choice.population for choice in longer) > 0.98 * 6_000_000


def test_few_w0_subscriptions_get_one_small_table():
    terms = terms_for(32, radix=36, lookup=10.0, space=1 << 20)
    assert [choice.schema for choice in choose(w0(10_000, 10_000), terms)] == [(0, 1)]
