"""The PUBSUB matcher: structures and buckets come, are divided and go; whatever they are like, events find all."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import Engine, Point
from harken.errors import ArgumentError, ArgumentTypeError
from harken.matching.kernels.layout import EQUAL
from harken.matching.pubsub.kernels.layout import FREE, ROOT, SIZE, UNDIVIDED
from harken.matching.structures.kernels.attributes import NOTHING, WAYS
from harken.model.evaluation import truth
from tests.strategies import events, expressions

pytestmark = pytest.mark.kernel

KINDS = ("hash", "interval-tree", "priority-search-tree")


def loaded(texts, **options):
    engine = Engine("pubsub", **options)
    engine.subscribe_many(texts.items())
    return engine


def database_of(engine):
    return engine._matcher._database.arrays()


def assert_consistent(engine):
    """Every clause is in the bucket that it says, structures are counted, and none of them is without a clause."""
    matcher, database = engine._matcher, database_of(engine)
    buckets, structures, entries = database.buckets, database.structures, database.entries
    seen, counts = set(), dict.fromkeys(np.flatnonzero(structures.count[:] > 0).tolist(), 0)
    for bucket in range(int(database.spare[0])):
        if buckets.owner[bucket] == FREE:
            continue
        start, length, in_order = (int(each[bucket]) for each in (buckets.start, buckets.length, buckets.sorted))
        keys = []
        for at in range(start, start + length):
            clause, level = int(entries.clause[at]), int(buckets.level[bucket])
            assert database.bucket_of[clause] == bucket
            seen.add(clause)
            words = matcher._contents.arrays().words[int(matcher._contents.arrays().first[clause]) :]
            is_further = level < database.reach[clause]
            assert int(entries.predicate[at]) == (int(words[level]) - 1 if is_further else -1)
            assert (int(entries.attribute[at]) == NOTHING) is not is_further
            if is_further and at < start + in_order:
                low = int(matcher._predicates.arrays().low[entries.predicate[at]])
                keys.append((int(entries.attribute[at]), low))
            above = int(buckets.owner[bucket])
            while above >= 0:
                counts[above] += 1
                above = int(buckets.owner[structures.bucket[above]])
        assert keys == sorted(keys)
    assert seen == set(matcher._live().tolist())
    assert counts == {each: int(structures.count[each]) for each in counts}
    assert int(database.by_attribute.spare[0]) == len(counts)


def test_a_bucket_that_is_full_is_divided_by_what_is_asked_of_its_attribute():
    few = loaded({at: f"a = {at}" for at in range(4)}, bucket_size=4)
    assert few.stats()["buckets"] == 1
    for kind in KINDS:
        engine = loaded({at: f"a = {at}" for at in range(12)}, bucket_size=4, structures={"a": kind})
        assert engine.stats()["structures"][kind] == 1
        assert engine.stats()["buckets"] > 1
        assert [engine.match({"a": at}) for at in range(13)] == [*([at] for at in range(12)), []]
        assert_consistent(engine)


def test_a_bucket_whose_clauses_ask_the_same_is_divided_by_their_next_attribute():
    engine = loaded({at: f"a = 1 AND b = {at % 9} AND c = {at}" for at in range(90)}, bucket_size=5)
    assert engine.stats()["levels"] == 3
    assert engine.stats()["largest_bucket"] <= 10
    assert engine.match({"a": 1, "b": 4, "c": 13}) == [13]
    assert engine.match({"a": 1, "b": 5, "c": 13}) == []
    assert_consistent(engine)


def test_a_bucket_that_cannot_be_divided_grows():
    engine = loaded(dict.fromkeys(range(200), "a = 1"), bucket_size=5)
    assert engine.stats()["largest_bucket"] == 200
    assert sorted(engine.match({"a": 1})) == list(range(200))
    assert_consistent(engine)


def test_those_that_have_a_next_attribute_make_room_for_those_that_have_none():
    engine = Engine("pubsub", bucket_size=4)
    for at in range(4):
        engine.subscribe(at, f"a = 1 AND b = {at}")
    for at in range(4, 8):
        engine.subscribe(at, "a = 1")
    assert engine.stats()["levels"] == 2
    assert sorted(engine.match({"a": 1, "b": 2})) == [2, 4, 5, 6, 7]
    assert_consistent(engine)


@pytest.mark.parametrize("kind", [*KINDS, None])
def test_whatever_has_left_leaves_no_structure_behind(kind):
    engine = Engine("pubsub", bucket_size=3, structures=kind)
    texts = {at: f"a = {at % 4} AND b BETWEEN {at} AND {at + 9} AND c < {at % 11}" for at in range(120)}
    engine.subscribe_many(texts.items())
    leaving = list(texts)
    random.Random(3).shuffle(leaving)
    for start in range(0, 120, 17):
        engine.unsubscribe_many(leaving[start : start + 17])
        assert_consistent(engine)
    assert engine.stats()["buckets"] == 0
    assert set(engine.stats()["structures"].values()) == {0}
    assert engine.match({"a": 1, "b": 5, "c": 0}) == []


@pytest.mark.parametrize(
    ("asked", "event"),
    [
        ("CONTAINS 'x{}y'", "a x7y b x11y"),
        ("STARTS WITH 'x{}y'", "x7y"),
        ("ENDS WITH 'x{}y'", "x7y"),
        ("LIKE 'x%_{}'", "xa7"),
        ("MATCHES 'x{}y|z'", "x7y"),
        ("IN ('{}', 'none')", "7"),
        ("WITHIN BOX({0}, 0, {0}.5, 1)", Point(7.2, 0.5)),
    ],
)
def test_patterns_sets_and_shapes_lead_to_buckets_of_their_own(asked, event):
    engine = loaded({at: f"a {asked.format(at)} AND b = {at}" for at in range(200)}, bucket_size=2)
    common = loaded({at: f"a {asked.format(at)}" for at in range(200)}, bucket_size=2)
    for held, more in ((engine, {"b": 7}), (common, {})):
        reference = Engine("reference")
        reference.subscribe_many((at, held.subscription(at).expression) for at in range(200))
        assert sorted(held.match({"a": event, **more})) == sorted(reference.match({"a": event, **more}))
        assert held.stats()["checks_per_event"] <= 4
        assert_consistent(held)
    assert common.stats()["structures"]["undivided"] == 0


def test_the_rarest_attribute_comes_first():
    texts = {at: f"often = 1 AND seldom_{at % 10} = 1" for at in range(300)}
    engine = loaded(texts)
    matcher, database = engine._matcher, database_of(engine)
    attributes = {
        matcher._predicates.dimensions[int(each) // WAYS].attribute
        for each, count in zip(database.structures.attribute, database.structures.count, strict=True)
        if count > 0
    }
    assert attributes == {f"seldom_{at}" for at in range(10)}


def test_the_order_follows_as_attributes_become_frequent():
    engine = Engine("pubsub")
    engine.subscribe_many((at, f"a = {at} AND b = 1") for at in range(300))
    engine.subscribe_many((at, f"a = {at} AND c_{at % 7} = 1") for at in range(300, 3_000))
    assert engine._matcher._placed_anew == 3_000
    assert engine.match({"a": 2, "b": 1}) == [2]
    assert_consistent(engine)


def test_large_buckets_are_in_order_but_for_few_and_small_ones_are_left_alone():
    large = loaded({at: f"a = 1 AND b_{at % 20} < {at * 7 % 100}" for at in range(2_000)})
    buckets = database_of(large).buckets
    assert (
        buckets.sorted[: int(database_of(large).spare[0])] == buckets.length[: int(database_of(large).spare[0])]
    ).all()
    for at in range(2_000, 2_400):
        large.subscribe(at, f"a = 1 AND b_{at % 20} < {at * 7 % 100}")
    assert_consistent(large)
    assert sorted(large.match({"a": 1, "b_3": 50})) == [
        at for at in range(2_400) if at % 20 == 3 and at * 7 % 100 > 50
    ]


def test_labels_that_are_given_anew_move_what_stands_in_trees():
    for kind in KINDS[1:]:
        engine = Engine("pubsub", bucket_size=2, structures=kind)
        texts = {}
        for at in range(60):
            # Ever closer together, so that there is soon no label between two.
            texts[at] = f"x > {1 / (at + 1)} AND x <= {2 / (at + 1)}"
            engine.subscribe(at, texts[at])
        for value in (0.01, 0.05, 0.3, 1.0, 2.0, 1 / 7):
            expected = [at for at in texts if 1 / (at + 1) < value <= 2 / (at + 1)]
            assert sorted(engine.match({"x": value})) == expected
        assert_consistent(engine)


def test_what_the_caller_does_with_the_structures_he_named_changes_nothing(tmp_path):
    named = {"a": "interval-tree"}
    engine = Engine("pubsub", structures=named)
    engine.subscribe_many((at, f"a > {at}") for at in range(20))
    named["a"] = "nonsense"
    engine.save(tmp_path / "saved")
    assert len(Engine.load(tmp_path / "saved").match({"a": 5})) == 5


def test_an_attribute_that_nobody_asks_of_any_more_lends_its_number_with_another_structure():
    engine = Engine("pubsub", bucket_size=2, structures={"a": "interval-tree", "b": "priority-search-tree"})
    engine.subscribe_many((at, f"a > {at}") for at in range(20))
    assert engine.stats()["structures"]["interval-tree"] == 1
    engine.unsubscribe_many(range(20))
    engine.subscribe_many((at, f"b > {at}") for at in range(20))
    kinds = engine.stats()["structures"]
    assert (kinds["interval-tree"], kinds["priority-search-tree"]) == (0, 1)
    assert sorted(engine.match({"b": 5})) == list(range(5))


def test_the_structure_is_chosen_by_what_is_asked():
    engine = loaded(
        {at: f"a = {at % 50}" for at in range(200)}
        | {1_000 + at: f"b BETWEEN {at % 5} AND {at % 5 + 3}" for at in range(200)}
        | {2_000 + at: f"c BETWEEN {at} AND {at + 30}" for at in range(200)},
        bucket_size=100,
    )
    kinds = engine.stats()["structures"]
    assert (kinds["hash"], kinds["priority-search-tree"], kinds["interval-tree"]) == (1, 1, 1)


def test_what_asks_of_nothing_to_be_there_is_looked_at_for_every_event():
    engine = loaded({1: "TRUE", 2: "a IS NULL", 3: "a IS NOT NULL", 4: "a IS NULL AND b = 1"}, bucket_size=1)
    assert sorted(engine.match({})) == [1, 2]
    assert sorted(engine.match({"b": 1})) == [1, 2, 4]
    assert sorted(engine.match({"a": "x"})) == [1, 3]
    assert int(database_of(engine).buckets.length[ROOT]) == 2


@given(
    st.lists(expressions(max_leaves=6), min_size=1, max_size=30),
    st.lists(events(), min_size=1, max_size=5),
    st.sampled_from([1, 2, 7]),
    st.sampled_from([None, *KINDS]),
    st.randoms(use_true_random=False),
)
@settings(max_examples=60, deadline=None)
def test_buckets_of_any_size_divided_by_anything_hold_what_the_semantics_say(asked, happened, size, kind, chance):
    engine = Engine("pubsub", bucket_size=size, structures=kind)
    held = dict(enumerate(asked))
    engine.subscribe_many(held.items())
    assert_consistent(engine)
    for id in chance.sample(sorted(held), len(held) // 2):
        engine.unsubscribe(id)
        del held[id]
    assert_consistent(engine)
    for event in happened:
        expected = sorted(id for id, expression in held.items() if truth(expression, event) is True)
        assert sorted(engine.match(event)) == expected


def test_what_is_saved_with_small_buckets_is_loaded_with_them(tmp_path):
    options = {"bucket_size": 3, "structures": {"b": "priority-search-tree"}}
    texts = {at: f"a = {at % 4} AND b BETWEEN {at} AND {at + 9} AND c < {at % 11}" for at in range(120)}
    engine = loaded(texts, **options)
    engine.unsubscribe_many(range(0, 120, 3))
    engine.save(tmp_path / "engine")
    again = Engine.load(tmp_path / "engine")
    assert_consistent(again)
    assert int(database_of(again).spare[SIZE]) == 3
    happened = [{"a": at % 4, "b": at, "c": at % 10} for at in range(60)]
    assert [sorted(again.match(each)) for each in happened] == [sorted(engine.match(each)) for each in happened]


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"bucket_size": 0}, ArgumentError, "bucket_size is at least 1"),
        ({"bucket_size": "many"}, ArgumentTypeError, "bucket_size is a number of clauses"),
        ({"structures": "interval tree"}, ArgumentError, "did you mean 'interval-tree'"),
        ({"structures": {"a": "b-tree"}}, ArgumentError, "structures is one of 'hash'"),
        ({"structures": 3}, ArgumentTypeError, "names by attribute"),
    ],
)
def test_options_that_cannot_be_are_refused(options, error, said):
    with pytest.raises(error) as caught:
        Engine("pubsub", **options)
    assert said in f"{caught.value} {caught.value.suggestion}"


def test_an_equality_is_found_by_its_constant_whatever_divides_it():
    assert UNDIVIDED == 0
    engine = loaded({at: f"a = {at}" for at in range(50)}, bucket_size=2)
    operators = engine._matcher._predicates.arrays().operator
    assert (operators == EQUAL).sum() == 50
    engine.match({"a": 7})
    assert engine.stats()["checks_per_event"] == 1


@pytest.mark.parametrize("kind", [None, "hash", "interval-tree", "priority-search-tree"])
@pytest.mark.parametrize("operator", ["=", "<", ">="])
def test_what_lies_below_a_bucket_is_found_after_others_have_filled_it_again(kind, operator):
    """Clauses that are all alike go below a full bucket; then come some that could be told apart."""
    alike = [f"a {operator} 1 AND b = 1"] * 2
    others = [f"a {operator} 2", f"a {operator} 3"] * 2
    rows = list(enumerate([*alike, *others, *["b = 1"] * 9]))
    engine, reference = Engine("pubsub", bucket_size=1, structures=kind), Engine("reference")
    engine.subscribe_many(rows)
    reference.subscribe_many(rows)
    for event in ({"a": value, "b": 1} for value in range(5)):
        assert sorted(engine.match(event)) == sorted(reference.match(event))
