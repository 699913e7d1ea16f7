"""The static matcher: its tables are chosen from what it holds, stay until the next choice, and hide nothing."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

from harken.matching.clusters import static
from harken.matching.clusters.static import StaticMatcher
from harken.matching.contract import Incoming
from harken.matching.events.batch import EventBatch
from harken.matching.reference import ReferenceMatcher
from harken.model.expressions import And, Comparator, Comparison
from harken.model.limits import Limits
from harken.normal.compiled import CompiledBuilder
from harken.normal.form import normalise
from tests.strategies import FREE, TYPED, Generator

pytestmark = pytest.mark.kernel

# As plain Python, kernels take a thousand times as long: fewer subscriptions then.
MANY = 1_500 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 20_000


def incoming(expressions):
    def compiled():
        builder = CompiledBuilder()
        for at, expression in enumerate(expressions):
            builder.add(at, normalise(expression, Limits()))
        return builder.finish()

    return Incoming(lambda: expressions, compiled)


def equalities(wanted):
    return And(tuple(Comparison(name, Comparator.EQ, value) for name, value in wanted.items()))


def like_w0(count, seed=1, names=("f", "g"), free=10, values=20):
    """Equalities on two fixed attributes and two of ten others."""
    chance = random.Random(seed)
    others = [f"a{number}" for number in range(free)]
    return [
        equalities({name: chance.randint(1, values) for name in (*names, *chance.sample(others, 2))})
        for _ in range(count)
    ]


def events_like_w0(count, seed=2, free=10, values=20):
    chance = random.Random(seed)
    names = ["f", "g", *(f"a{number}" for number in range(free))]
    return [{name: chance.randint(1, values) for name in names} for _ in range(count)]


def loaded(expressions, **options):
    matcher = StaticMatcher(**options)
    matcher.add(np.arange(len(expressions)), incoming(expressions))
    return matcher


def key_tables(matcher):
    """The key tables in use, with what stats say of each."""
    return {about["access"]: about for about in matcher.stats()["tables"] if "benefit" in about}


def pairs(matcher, events):
    rows, slots = matcher.match_batch(EventBatch.of(events, matcher.attributes))
    return sorted(zip(rows.tolist(), slots.tolist(), strict=True))


def expected(expressions, events):
    judge = ReferenceMatcher()
    slots = np.array(sorted(expressions))
    judge.add(slots, incoming([expressions[slot] for slot in slots.tolist()]))
    return pairs(judge, events)


def test_after_a_load_there_are_tables_of_several_attributes_and_they_hold_the_clauses():
    matcher = loaded(like_w0(MANY))
    tables = key_tables(matcher)
    assert any(access.startswith("f, g") for access in tables)
    assert sum(about["population"] for about in tables.values()) > 0.9 * MANY


def test_matches_through_the_tables_agree_with_the_reference():
    expressions, events = like_w0(1_500), events_like_w0(40)
    # Events that match something: every tenth subscription's own values.
    events += [{term.attribute: term.value for term in each.terms} for each in expressions[::10]]
    matcher = loaded(expressions, checks_per_lookup=0.0)
    assert len(key_tables(matcher)) > 3
    assert pairs(matcher, events) == expected(dict(enumerate(expressions)), events)


@pytest.mark.parametrize("vocabulary", [FREE, TYPED], ids=["free", "typed"])
@pytest.mark.parametrize("seed", range(4))
def test_with_tables_for_everything_matches_agree_with_the_reference_while_subscriptions_come_and_go(
    vocabulary, seed
):
    generator = Generator(f"static-{seed}", vocabulary)
    events = [generator.event() for _ in range(40)]
    matcher, live = StaticMatcher(checks_per_lookup=0.0), {}
    for turn in range(5):
        new = {turn * 30 + number: generator.expression() for number in range(30)}
        matcher.add(np.array(list(new)), incoming(list(new.values())))
        live |= new
        leaving = generator.random.sample(sorted(live), 12)
        matcher.remove(np.array(leaving))
        live = {slot: expression for slot, expression in live.items() if slot not in leaving}
        if turn % 2:
            matcher.optimise()
        assert pairs(matcher, events) == expected(live, events)


def test_tables_stay_until_the_number_of_clauses_has_doubled():
    matcher = loaded(like_w0(200), checks_per_lookup=0.0)
    before = set(key_tables(matcher))
    others = like_w0(250, seed=3, names=("h", "i"))
    matcher.add(np.arange(200, 300), incoming(others[:100]))
    assert set(key_tables(matcher)) == before
    matcher.add(np.arange(300, 450), incoming(others[100:]))
    assert any("h" in access for access in set(key_tables(matcher)) - before)


def test_after_most_have_left_tables_are_chosen_anew_for_those_that_come():
    matcher = loaded(like_w0(200), checks_per_lookup=0.0)
    matcher.remove(np.arange(200))
    others = like_w0(100, seed=3, names=("h", "i"))
    matcher.add(np.arange(100), incoming(others))
    tables = key_tables(matcher)
    assert tables
    assert not any("f" in access or "g" in access for access in tables)
    assert pairs(matcher, [{}]) == []


def test_a_table_that_constants_have_outgrown_is_made_anew():
    few, more = like_w0(200, values=3), like_w0(150, seed=5, values=30)
    matcher = loaded(few, checks_per_lookup=0.0)
    matcher.add(np.arange(200, 350), incoming(more))
    matcher.optimise()
    held = sum(about["population"] for about in key_tables(matcher).values())
    assert held == matcher.stats()["clauses"]
    events = [{term.attribute: term.value for term in each.terms} for each in few[::20] + more[::10]]
    assert pairs(matcher, events) == expected(dict(enumerate(few + more)), events)


def test_optimise_follows_the_events():
    # Events nearly always have f = 1, which says little: keys with g and h are the rarer ones.
    chance = random.Random(4)
    expressions = [equalities({"f": 1, "g": chance.randint(1, 9), "h": chance.randint(1, 9)}) for _ in range(300)]
    matcher = loaded(expressions, checks_per_lookup=4.0)
    matcher.match_batch(
        EventBatch.of(
            [{"f": 1, "g": chance.randint(1, 9), "h": chance.randint(1, 9)} for _ in range(200)],
            matcher.attributes,
        )
    )
    matcher.optimise()
    assert set(key_tables(matcher)) == {"g, h"}


def test_without_space_there_are_no_tables_and_with_some_they_stay_within_it():
    expressions = like_w0(400, free=3)
    assert key_tables(loaded(expressions, checks_per_lookup=0.0, space=0)) == {}
    bounded = loaded(expressions, checks_per_lookup=0.0, space=40_000)
    unbounded = loaded(expressions, checks_per_lookup=0.0, space=10**9)
    assert 0 < len(key_tables(bounded)) < len(key_tables(unbounded))
    assert bounded.stats()["space"] == 40_000


def test_lookups_that_are_worth_more_than_all_checks_leave_no_tables():
    assert key_tables(loaded(like_w0(1_500), checks_per_lookup=1e9)) == {}


def test_statistics_show_what_each_table_was_expected_to_save_and_the_order_of_the_choice():
    matcher = loaded(like_w0(400, free=3), checks_per_lookup=0.0)
    tables = key_tables(matcher)
    assert all(about["benefit"] > 0 for about in tables.values())
    assert sorted(matcher.stats()["chosen"]) == sorted(tables)


def test_an_empty_matcher_can_be_optimised():
    matcher = StaticMatcher()
    matcher.optimise()
    matcher.add(np.zeros(0, np.int64), incoming([]))
    assert matcher.match({"f": 1}).tolist() == []


def test_a_sample_of_all_is_all_clauses_with_their_equalities_by_dimension():
    expressions = like_w0(300)
    matcher = loaded(expressions, space=0)
    sample = matcher._sampled()
    assert (len(sample), sample.weight) == (300, 1.0)
    assert np.diff(sample.first).tolist() == [4] * 300
    rows = [sample.dimension[start : start + 4].tolist() for start in sample.first[:-1].tolist()]
    names = [[matcher._predicates.dimensions[number].attribute for number in row] for row in rows]
    assert all(row == sorted(row) for row in rows)
    asked = [[term.attribute for term in each.terms] for each in expressions]
    assert sorted(map(sorted, names)) == sorted(map(sorted, asked))


def test_a_part_of_many_clauses_stands_for_all(monkeypatch):
    matcher = loaded(like_w0(1_000), checks_per_lookup=0.0)
    monkeypatch.setattr(static, "SAMPLED", 100)
    sample = matcher._sampled()
    assert len(sample) == 100
    assert sample.weight == 10.0
    monkeypatch.setattr(static, "MOST_SAMPLED_WORDS", 100)
    assert len(matcher._sampled()) <= 20
