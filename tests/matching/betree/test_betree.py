"""BE-Tree: space is cut by attribute and by value where it is crowded; however it is cut, events find all."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import Engine
from harken.errors import ArgumentError, ArgumentTypeError
from harken.matching.betree import matcher as betree
from harken.matching.betree.kernels.layout import NO_NODE, ROOT
from harken.matching.kernels.layout import EQUAL, INTERVAL, IS_ABSENT, MEMBER, TESTED
from harken.matching.structures.kernels.attributes import EXACT, ONE_OF, PRESENCE, RANGE, TEST, WAYS
from harken.model.evaluation import truth
from tests.strategies import events, expressions

pytestmark = pytest.mark.kernel


def loaded(texts, node_size=4):
    engine = Engine("be-tree", node_size=node_size)
    engine.subscribe_many(texts.items() if isinstance(texts, dict) else texts)
    return engine


def asked(matcher, clause, attribute):
    """The least and the greatest key that a clause asks for in an attribute."""
    contents, predicates = matcher._contents.arrays(), matcher._predicates.arrays()
    first, width = int(contents.first[clause]), int(contents.width[clause])
    for word in contents.words[first : first + width].tolist():
        number, operator = word - 1, predicates.operator[word - 1]
        way = {EQUAL: EXACT, INTERVAL: RANGE, MEMBER: ONE_OF, TESTED: TEST}.get(operator, PRESENCE)
        if word and operator != IS_ABSENT and WAYS * predicates.dimension[number] + way == attribute:
            low = int(predicates.low[number])
            return low, int(predicates.high[number]) if way == RANGE else low
    raise AssertionError(f"clause {clause} does not ask of {attribute}")


def assert_consistent(engine):
    """Every clause is in the one node that it says, and what it asks for leads there from the root."""
    matcher, tree = engine._matcher, engine._matcher._tree.arrays()
    nodes, seen = tree.nodes, []
    for node in range(len(matcher._tree)):
        start, length = int(nodes.start[node]), int(nodes.length[node])
        assert length <= nodes.room[node]
        for place, clause in enumerate(tree.entries[start : start + length].tolist()):
            assert (tree.node_of[clause], tree.place_of[clause]) == (node, place)
            seen.append(clause)
            at = node
            while at != ROOT:
                above, attribute = int(nodes.above[at]), int(nodes.attribute[at])
                low, high = asked(matcher, clause, attribute)
                if nodes.lower[above] != NO_NODE and at - nodes.lower[above] in (0, 1):
                    assert high <= nodes.middle[above] if at == nodes.lower[above] else low > nodes.middle[above]
                at = above
    contents = matcher._contents
    assert sorted(seen) == sorted(clause for slot in range(len(engine)) for clause in contents.numbers_of(slot))
    assert not tree.tally.any()


def test_a_node_that_is_full_is_cut_by_the_attribute_that_most_ask_of():
    engine = loaded({at: f"a = 1 AND b_{at} = 1" for at in range(4)} | {9: "c = 1"})
    assert engine.stats()["directories"] == 1
    assert [engine.match({"a": 1, f"b_{at}": 1}) for at in range(4)] == [[0], [1], [2], [3]]
    assert engine.match({"c": 1}) == [9]
    assert_consistent(engine)


@pytest.mark.parametrize(
    "text", ["a = {0}", "a BETWEEN {0} AND {0} + 1", "a = '{0:03}'", "a > '{0:03}' AND a < '{1:03}'", "a = {0}.5"]
)
def test_a_directory_is_cut_by_what_is_asked_for_whatever_its_type(text):
    text = text.replace(" + 1", "")
    engine = loaded({at: text.format(at, at + 1) for at in range(200)})
    assert engine.stats()["directories"] == 1
    assert engine.stats()["largest_node"] <= 4
    assert engine.stats()["nodes"] > 50
    assert_consistent(engine)


def test_bounds_on_one_side_are_cut_too_and_whoever_asks_across_stays():
    texts = {at: f"a > {at}" for at in range(100)} | {100 + at: f"a < {at}" for at in range(100)} | {300: "a > -1"}
    engine = loaded(texts)
    for value in (-5, 0, 33, 99, 1_000):
        wanted = [at for at in range(100) if value > at] + [100 + at for at in range(100) if value < at]
        assert sorted(engine.match({"a": value})) == wanted + [300] * (value > -1)
    assert_consistent(engine)


def test_a_node_that_cannot_be_cut_grows_and_shrinks_quickly():
    engine = loaded(dict.fromkeys(range(20_000), "a = 1"))
    assert engine.stats()["largest_node"] == 20_000
    engine.unsubscribe_many(range(0, 20_000, 2))
    assert sorted(engine.match({"a": 1})) == list(range(1, 20_000, 2))
    engine.unsubscribe_many(range(1, 20_000, 2))
    assert engine.match({"a": 1}) == []
    assert engine.stats()["nodes"] < 10


def test_attributes_are_used_one_after_the_other():
    engine = loaded({at: f"a = 1 AND b = {at % 9} AND c = {at}" for at in range(90)}, node_size=5)
    assert engine.stats()["largest_node"] <= 10
    assert engine.match({"a": 1, "b": 4, "c": 13}) == [13]
    assert engine.match({"a": 1, "b": 5, "c": 13}) == []
    assert_consistent(engine)


@pytest.mark.parametrize(
    ("asked", "way"), [("LIKE '%x{}'", TEST), ("IN ('x{}', 'none')", ONE_OF), ("!= 'x{}'", PRESENCE)]
)
def test_what_cannot_be_cut_by_value_is_told_apart_by_its_attribute(asked, way):
    engine = loaded({at: f"a_{at % 5} {asked.format(at)}" for at in range(50)})
    assert {int(each) % WAYS for each in engine._matcher._tree.arrays().nodes.attribute[1:6]} == {way}
    expected = [at for at in range(3, 50, 5) if (at == 13) != (way == PRESENCE)]
    assert sorted(engine.match({"a_3": "x13"})) == expected
    assert 13 not in engine.match({"a_4": "x13"})
    assert_consistent(engine)


def test_nothing_asked_is_in_the_root_and_absence_leads_nowhere():
    engine = loaded({0: "true", 1: "a IS NULL", 2: "a IS NULL AND b = 1"})
    assert engine.match({}) == [0, 1]
    assert engine.match({"b": 1}) == [0, 1, 2]
    assert engine.match({"a": 1, "b": 1}) == [0]
    assert_consistent(engine)


def test_however_many_come_and_go_there_are_no_more_nodes_than_clauses_need(monkeypatch):
    monkeypatch.setattr(betree, "MANY", 16)
    engine, chance, most = Engine("be-tree", node_size=2), random.Random(4), 0
    for turn in range(150):
        engine.subscribe_many((20 * turn + at, f"a{turn % 7} = {turn} AND b < {at}") for at in range(20))
        if turn >= 5:
            engine.unsubscribe_many(range(20 * turn - 100, 20 * turn - 80))
        most = max(most, engine.stats()["nodes"])
        if turn % 30 == 0:
            assert_consistent_by_id(engine, turn, chance)
    assert most < 700


def assert_consistent_by_id(engine, turn, chance):
    for _ in range(20):
        event = {f"a{turn % 7}": turn, "b": chance.randrange(20)}
        assert sorted(engine.match(event)) == [20 * turn + at for at in range(event["b"] + 1, 20)]


def test_values_between_any_two_find_their_place_though_labels_are_given_anew():
    engine, low, high = Engine("be-tree", node_size=2), 0.0, 1.0
    for at in range(200):  # ever closer to each other: there is no end of room between labels
        low, high = (low + high) / 2, high
        engine.subscribe(at, f"a > {low!r}")
    assert len(engine.match({"a": 2})) == 200
    assert engine.match({"a": 0.6}) == [0]
    assert_consistent(engine)


def test_explain_says_what_leads_to_a_subscription():
    engine = loaded({at: f"a = {at} AND b > 3" for at in range(40)})
    said = str(engine.explain({"a": 7, "b": 4}, 7))
    assert "a = 7" in said


@settings(max_examples=80)
@given(
    st.lists(expressions(), min_size=1, max_size=12),
    st.lists(st.integers(0, 11), max_size=6),
    st.lists(events(), max_size=5),
    st.integers(1, 4),
)
def test_whatever_comes_and_goes_events_find_it(asked_for, leaving, happened, node_size):
    engine = Engine("be-tree", node_size=node_size)
    engine.subscribe_many(enumerate(asked_for))
    gone = {at for at in leaving if at < len(asked_for)}
    engine.unsubscribe_many(gone)
    for event in happened:
        wanted = [at for at, each in enumerate(asked_for) if at not in gone and truth(each, event) is True]
        assert sorted(engine.match(event)) == wanted


@pytest.mark.parametrize(("size", "error"), [(0, ArgumentError), (2**30, ArgumentError), ("4", ArgumentTypeError)])
def test_a_node_size_is_a_number_of_clauses(size, error):
    with pytest.raises(error, match="node_size"):
        Engine("be-tree", node_size=size)
