"""Search trees: in which trees clauses are, what these ask, when they are made, and what is light."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import Engine, parse
from harken.matching.contract import Incoming
from harken.matching.events.batch import EventBatch
from harken.matching.reference import ReferenceMatcher
from harken.matching.saving import State
from harken.matching.trees.forest import NOT_LIGHT, Partition, block_order
from harken.matching.trees.kernels.layout import FREE, MOST_LIGHT, NODE, ONE, ZERO
from harken.matching.trees.kernels.planting import STACK, sort_members
from harken.matching.trees.rapid import COPIES, RapidMatcher
from harken.matching.trees.tree import TreeMatcher
from harken.model.expressions import TRUE, And, Comparator, Comparison, Or

pytestmark = pytest.mark.kernel

# As plain Python, kernels take a thousand times as long: fewer subscriptions then.
AS_PYTHON = os.environ.get("NUMBA_DISABLE_JIT") == "1"
EXAMPLES = settings(max_examples=10 if AS_PYTHON else 60, deadline=None)

NAMES = [f"p{number:02d}" for number in range(12)]

MATCHERS = {
    "tree": TreeMatcher,
    "rapid": RapidMatcher,
    "rapid, c = 3": lambda **options: RapidMatcher(c=3, **options),
    "rapid, in order": lambda **options: RapidMatcher(c=12, reorder=False, **options),
}
every_matcher = pytest.mark.parametrize("made", MATCHERS.values(), ids=MATCHERS)


def conjunction(wanted):
    """Properties that are to be there, or not to be."""
    terms = tuple(Comparison(name, Comparator.EQ, value) for name, value in wanted.items())
    return TRUE if not terms else terms[0] if len(terms) == 1 else And(terms)


def light_expression(chance, asked=0.4):
    return conjunction({name: chance.random() < 0.5 for name in NAMES if chance.random() < asked})


def light_event(chance, properties, missing=0.0):
    there = set(chance.sample(NAMES, properties))
    return {name: name in there for name in NAMES if chance.random() >= missing}


def loaded(matcher, expressions):
    matcher.add(np.arange(len(expressions)), Incoming.of(expressions))
    return matcher


def pairs(matcher, events):
    rows, slots = matcher.match_batch(EventBatch.of(events, matcher.attributes))
    return sorted(zip(rows.tolist(), slots.tolist(), strict=True))


def expected(held, events):
    judge, slots = ReferenceMatcher(), np.array(sorted(held), np.int64)
    judge.add(slots, Incoming.of([held[slot] for slot in slots.tolist()]))
    return pairs(judge, events)


def branches(entries, root, node=0, path=()):
    """All clauses of a tree, and what is asked on the way to each, by walking it as slowly as can be."""
    known, others, ending = entries[root + node : root + node + NODE].tolist()
    begin = root + node + NODE
    asked = entries[begin : begin + 2 * (known + others)].reshape(-1, 2).tolist()
    assert [word for word, _ in asked[:known]] == sorted(word for word, _ in asked[:known])
    for clause in entries[begin + 2 * len(asked) :][:ending].tolist():
        yield clause, path
    for word, target in asked:
        if target >= 0:
            yield from branches(entries, root, target, (*path, word))
            continue
        at, tail = root + ~target, [word]
        while entries[at] >= 0:
            tail.append(int(entries[at]))
            at += 1
        yield ~int(entries[at]), (*path, *tail)


def trees_of(matcher):
    """The trees of the only segment."""
    forest, (segment,) = matcher._index.forest, matcher._forest.segments
    return segment, [list(branches(forest.entries, begin)) for begin in segment.bounds[:-1]]


def asked_of(matcher, clause):
    """Dimensions where a clause asks for a property, and where it asks that there is none."""
    contents, dimension = matcher._index.contents, matcher._index.predicates.dimension
    words = contents.words[contents.first[clause] : contents.first[clause + 1]]
    roles = matcher._index.roles[words]
    return set(dimension[words[roles == ONE]].tolist()), set(dimension[words[roles == ZERO]].tolist())


def properties_of(matcher, event):
    by_attribute = matcher._predicates.by_attribute
    return {each.number for name in event if event[name] for each in by_attribute.get(name, {}).values()}


def block_of(dimension, light, dimensions):
    return dimension * (light + 1) // dimensions


# ---------------------------------------------------------------- what trees hold


@every_matcher
@EXAMPLES
@given(seed=st.integers(0, 2**32))
def test_every_tree_has_its_clauses_once_and_asks_all_that_they_ask(made, seed):
    chance = random.Random(seed)
    matcher = loaded(made(waiting=0), [light_expression(chance) for _ in range(chance.randint(1, 40))])
    contents = matcher._index.contents
    _, trees = trees_of(matcher)
    for tree in trees:
        assert len({clause for clause, _ in tree}) == len(tree)
        for clause, path in tree:
            assert sorted(path) == sorted(contents.words[contents.first[clause] : contents.first[clause + 1]])
    assert len(trees[-1]) == contents.end, "the last tree has all of them"


@EXAMPLES
@given(seed=st.integers(0, 2**32), light=st.integers(0, 11))
def test_the_set_of_light_events_has_all_that_such_an_event_satisfies(seed, light):
    # Proposition 1: for an event of t properties, they are in the set of t.
    chance = random.Random(seed)
    matcher = loaded(RapidMatcher(c=11, waiting=0), [light_expression(chance, 0.25) for _ in range(60)])
    event = light_event(chance, light)
    segment, trees = trees_of(matcher)
    t = len(properties_of(matcher, event))
    first = t * (t + 1) // 2
    for _, slot in pairs(matcher, [event]):
        clause = int(matcher._index.contents.head[slot])
        ones, zeros = asked_of(matcher, clause)
        assert len(ones) <= t <= segment.dimensions - len(zeros)
        assert any(clause in dict(tree) for tree in trees[first : first + t + 1])
    assert pairs(matcher, [event]) == expected(dict(enumerate(_expressions(matcher))), [event])


@EXAMPLES
@given(seed=st.integers(0, 2**32), light=st.integers(0, 8))
def test_any_block_without_properties_has_a_tree_with_all_that_the_event_satisfies(seed, light):
    # Proposition 2: and there is such a block.
    chance = random.Random(seed)
    matcher = loaded(RapidMatcher(c=8, waiting=0), [light_expression(chance, 0.25) for _ in range(60)])
    event = light_event(chance, light, missing=0.1)
    segment, trees = trees_of(matcher)
    properties = properties_of(matcher, event)
    t = len(properties)
    taken = {block_of(each, t, segment.dimensions) for each in properties}
    empty = set(range(t + 1)) - taken
    assert empty
    found = {int(matcher._index.contents.head[slot]) for _, slot in pairs(matcher, [event])}
    for block in empty if t <= segment.light else ():
        assert found <= set(dict(trees[t * (t + 1) // 2 + block]))


@EXAMPLES
@given(seed=st.integers(0, 2**32), reorder=st.booleans())
def test_trees_of_light_events_have_no_others_and_ask_of_their_block_last(seed, reorder):
    chance = random.Random(seed)
    expressions = [light_expression(chance, 0.3) for _ in range(40)]
    matcher = loaded(RapidMatcher(c=5, waiting=0, reorder=reorder), expressions)
    segment, trees = trees_of(matcher)
    dimension, roles, k = matcher._index.predicates.dimension, matcher._index.roles, segment.dimensions
    for light in range(segment.light + 1):
        for block in range(light + 1):
            tree = dict(trees[light * (light + 1) // 2 + block])
            order = block_order(k, light, block, reorder)
            for clause in range(len(expressions)):
                ones, zeros = asked_of(matcher, clause)
                belongs = len(ones) <= light <= k - len(zeros)
                belongs &= all(block_of(each, light, k) != block for each in ones)
                assert (clause in tree) == belongs
            for path in tree.values():
                away = [(int(dimension[word]) - order.begin) % k for word in path]
                skipped = [block_of(int(dimension[word]), light, k) == block for word in path]
                assert skipped == sorted(skipped)
                assert skipped == [each >= order.length for each in away]
                # In the block there is nothing to ask first.
                late = [
                    reorder and roles[word] != ONE and not last for word, last in zip(path, skipped, strict=True)
                ]
                key = list(zip(skipped, late, away, strict=True))
                assert key == sorted(key)


def _expressions(matcher):
    return [matcher.expression(slot) for slot in range(matcher._slots)]


@pytest.mark.parametrize(("k", "light"), [(1, 0), (2, 1), (3, 1), (3, 2), (7, 5), (100, 0), (100, 5), (100, 30)])
def test_blocks_are_runs_that_hold_every_dimension_once(k, light):
    skipped = []
    for block in range(light + 1):
        order = block_order(k, light, block, ones_first=False)
        own = [each for each in range(k) if (each - order.begin) % k >= order.length]
        assert own == [each for each in range(k) if block_of(each, light, k) == block]
        skipped += own
    assert skipped == list(range(k))


def test_what_nobody_asks_about_takes_no_room():
    everything = conjunction(dict.fromkeys(NAMES, True))
    matcher = loaded(TreeMatcher(waiting=0), [everything, conjunction({NAMES[-1]: False})])
    (segment,) = matcher._forest.segments
    # The root, two branches, and the tails: all that one asks but for the first, and an end of each.
    assert segment.bounds[-1] - segment.bounds[0] == NODE + 2 * 2 + (len(NAMES) - 1) + 2


def test_clauses_that_are_alike_share_one_way():
    alike = conjunction({"a": True, "b": False, "c": True})
    matcher = loaded(TreeMatcher(waiting=0), [alike] * 50)
    (segment,) = matcher._forest.segments
    assert segment.nodes == 4
    assert segment.bounds[-1] == 4 * NODE + 3 * 2 + 50
    assert pairs(matcher, [{"a": True, "b": False, "c": True}]) == [(0, slot) for slot in range(50)]


@EXAMPLES
@given(st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=60))
def test_clauses_are_sorted_by_what_they_ask(sequences):
    offset = np.concatenate([[0], np.cumsum([len(each) for each in sequences])]).astype(np.int64)
    keys = np.array([key for each in sequences for key in each], np.int64)
    index = np.arange(len(sequences))
    sort_members(keys, offset, index, np.zeros(STACK, np.int64))
    assert sorted(index.tolist()) == list(range(len(sequences)))
    assert [sequences[at] for at in index] == sorted(sequences)


@pytest.mark.parametrize("count", [1, 13, 300 if AS_PYTHON else 20_000])
@pytest.mark.parametrize("order", ["equal", "ascending", "descending"])
def test_however_clauses_come_what_is_left_to_sort_fits(count, order):
    values = {"equal": np.zeros(count), "ascending": np.arange(count), "descending": -np.arange(count)}[order]
    keys = (values - values.min()).astype(np.int64)
    index = np.arange(count)
    sort_members(keys, np.arange(count + 1), index, np.zeros(STACK, np.int64))
    assert (np.diff(keys[index]) >= 0).all()


# ---------------------------------------------------------------- what events find


@every_matcher
@pytest.mark.parametrize("waiting", [0, 3])
@pytest.mark.parametrize("seed", range(1 if AS_PYTHON else 5))
def test_at_every_step_of_coming_and_going_all_matches_are_found(made, waiting, seed):
    chance, held = random.Random(seed), {}
    matcher, events = made(waiting=waiting), [light_event(chance, at, 0.05) for at in range(len(NAMES))]
    for step in range(40):
        if held and chance.random() < 0.45:
            going = chance.sample(sorted(held), min(len(held), chance.randint(1, 6)))
            matcher.remove(np.array(going))
            for slot in going:
                del held[slot]
        else:
            free = [slot for slot in range(200) if slot not in held][: chance.randint(1, 9)]
            coming = [Or((light_expression(chance), light_expression(chance))) if step % 3 else TRUE for _ in free]
            matcher.add(np.array(free), Incoming.of(coming))
            held |= dict(zip(free, coming, strict=True))
        assert pairs(matcher, events) == expected(held, events)
        assert matcher._clauses.end <= waiting + 2 * len(matcher._clauses)
        assert matcher._clauses.end - matcher._forest.built <= waiting


@every_matcher
def test_a_value_that_is_missing_is_neither_there_nor_not_there(made):
    matcher = loaded(made(waiting=0), [conjunction({name: False}) for name in NAMES])
    events = [dict.fromkeys(NAMES, False) | {name: None} for name in NAMES]
    events += [{}, {NAMES[0]: False}, {NAMES[0]: True}, {NAMES[0]: "no truth"}, {NAMES[0]: 0}]
    assert pairs(matcher, events) == expected(dict(enumerate(_expressions(matcher))), events)


def test_roles_follow_from_what_an_event_must_have():
    roles = {
        "p = TRUE": ONE,
        "p = FALSE": ZERO,
        "p IN (TRUE, FALSE)": FREE,
        "p != TRUE": ZERO,
        "n = 0": ONE,
        "n IN (1, 2)": ONE,
        "n < 3": FREE,
        "s LIKE '%a%'": ONE,
        "s IS NULL": FREE,
        "s IS NOT NULL": FREE,
    }
    for text, role in roles.items():
        matcher = loaded(TreeMatcher(), [parse(text)])
        assert matcher._index.roles[matcher._predicates.in_use - 1] == role, text


@every_matcher
def test_whatever_is_asked_of_truths_is_found_with_few_properties_and_with_many(made):
    texts = [
        "p = TRUE",
        "p = FALSE",
        "p IN (TRUE, FALSE)",
        "p != TRUE",
        "p IS NULL",
        "p IS NOT NULL AND q = FALSE",
    ]
    texts += [
        "p = FALSE AND n = 1",
        "q = TRUE OR p = FALSE",
        "NOT (p = TRUE OR q = TRUE)",
        "n IN (1, 2) AND q = FALSE",
    ]
    matcher = loaded(made(waiting=0), [parse(text) for text in texts])
    truths = (True, False, None)
    events = [{"p": p, "q": q, "n": n} for p in truths for q in truths for n in (0, 1, 2)]
    assert pairs(matcher, events) == expected(dict(enumerate(parse(text) for text in texts)), events)


@every_matcher
def test_several_predicates_of_one_attribute_are_one_property(made):
    texts = [f"s LIKE '{first}%' AND s LIKE '%{last}' AND p = TRUE" for first in "ab" for last in "yz"]
    matcher = loaded(made(waiting=0), [parse(text) for text in texts])
    events = [{"s": f"{first}-{last}", "p": p} for first in "abc" for last in "xyz" for p in (True, False)]
    assert pairs(matcher, events) == expected(dict(enumerate(parse(text) for text in texts)), events)


@every_matcher
def test_where_a_node_has_many_branches_those_that_hold_are_looked_up(made):
    count = 200 if AS_PYTHON else 2_000
    texts = [f"n = {number} AND m < {number % 7}" for number in range(count)]
    matcher = loaded(made(waiting=0), [parse(text) for text in [*texts, "n > 5", "n = 3 AND k = 1"]])
    assert pairs(matcher, [{"n": 3, "m": 1, "k": 1}, {"n": -1}]) == [(0, 3), (0, count + 1)]
    assert matcher.stats()["checks_per_event"] < 20


def test_an_event_walks_the_smallest_tree_that_will_do():
    crowd = [conjunction({NAMES[0]: True}) for _ in range(20)]
    others = [conjunction({name: True}) for name in NAMES[1:]]
    matcher = loaded(RapidMatcher(c=1, waiting=0), crowd + others)
    event = dict.fromkeys(NAMES, False)
    assert pairs(matcher, [event | {NAMES[-1]: True}]) == [(0, len(crowd) + len(others) - 1)]
    # Of the two trees the crowd is in that of the last block only: six branches of the other one, and one end.
    assert matcher.stats()["checks_per_event"] <= len(NAMES) // 2 + 1


# ---------------------------------------------------------------- what is light


def test_c_is_what_is_asked_for_as_far_as_there_are_properties():
    expressions = [conjunction({name: True}) for name in NAMES]
    for asked, light in ((0, 0), (3, 3), (11, 11), (12, 11), (1_000, 11)):
        matcher = loaded(RapidMatcher(c=asked, waiting=0), expressions)
        assert matcher.stats()["c"] == [light]
        assert matcher.stats()["trees"] == [(light + 1) * (light + 2) // 2 + 1]


def test_c_grows_until_clauses_would_be_in_too_many_trees():
    chance = random.Random(5)
    matcher = loaded(RapidMatcher(waiting=0), [light_expression(chance) for _ in range(100)])
    segment, trees = trees_of(matcher)
    light = segment.light
    assert 0 < light < len(NAMES) - 1
    assert sum(map(len, trees[: (light + 1) * (light + 2) // 2])) <= COPIES * 100
    one_more = loaded(RapidMatcher(c=light + 1, waiting=0), _expressions(matcher))
    assert sum(map(len, trees_of(one_more)[1][: (light + 2) * (light + 3) // 2])) > COPIES * 100


def test_c_follows_the_events_that_were_learned():
    chance = random.Random(6)
    engine = Engine("rapid", waiting=0)
    engine.subscribe_many(enumerate(light_expression(chance, 0.6) for _ in range(60)))
    before = engine.stats()["c"]
    events = [light_event(chance, 1) for _ in range(300)]
    found = engine.match_batch(events)
    engine.learn(events)
    assert engine.stats()["c"] == [1] < before
    assert sorted(map(tuple, zip(*engine.match_batch(events).to_pydict().values(), strict=True))) == sorted(
        map(tuple, zip(*found.to_pydict().values(), strict=True))
    )


def test_events_of_more_properties_than_can_be_light_are_counted_as_such():
    names = [f"p{number}" for number in range(MOST_LIGHT + 8)]
    matcher = loaded(RapidMatcher(waiting=0), [conjunction({name: True}) for name in names])
    assert len(pairs(matcher, [dict.fromkeys(names, True)])) == len(names)
    assert matcher._properties_seen[-1] == 1
    assert matcher._partition() == Partition(NOT_LIGHT, COPIES, True)
    matcher.add(np.array([200]), Incoming.of([TRUE]))
    assert len(pairs(matcher, [dict.fromkeys(names, True), {}])) == len(names) + 2


def test_only_where_something_is_not_to_be_there_is_it_worth_asking_first_what_has_to():
    with_zeros = loaded(RapidMatcher(c=0, waiting=0), [conjunction({"a": True, "b": False})])
    without = loaded(RapidMatcher(c=0, waiting=0), [conjunction({"a": True, "b": True})])
    assert [each.stats()["trees"] for each in (with_zeros, without)] == [[1 + 2], [1 + 1]]


# ---------------------------------------------------------------- saved and restored


@every_matcher
def test_segments_and_what_is_light_survive(made):
    chance = random.Random(7)
    matcher = made(waiting=2)
    for start in range(0, 60, 12):
        matcher.add(np.arange(start, start + 12), Incoming.of([light_expression(chance) for _ in range(12)]))
    matcher.remove(np.arange(0, 60, 7))
    events = [light_event(chance, at) for at in range(len(NAMES))]
    found = pairs(matcher, events)
    slots = np.array([slot for slot in range(60) if slot % 7])
    other = made(waiting=2)
    other.restore(matcher.state(), slots)
    shown = [{**each.stats(), "bytes": 0} for each in (matcher, other)]
    assert shown[0] == shown[1]
    assert pairs(other, events) == found


DAMAGE = {
    "ends descend": {"forest.ends": np.array([9, 3], np.int64)},
    "ends are past the clauses": {"forest.ends": np.array([5, 50], np.int64)},
    "light as nothing can be": {"forest.light": np.array([0, MOST_LIGHT + 1], np.int64)},
    "darker than dark": {"forest.light": np.array([0, -2], np.int64)},
    "events were seen backwards": {"events.properties": np.full(MOST_LIGHT + 2, -1, np.int64)},
    "a clause begins behind its end": {"clauses.first": np.array([0, 9, *range(2, 11)], np.uint32)},
    "a predicate that is none": {"clauses.words": np.array([*range(9), 99], np.int32)},
    "a predicate below all": {"clauses.words": np.array([*range(9), -1], np.int32)},
    "a clause of nobody": {"clauses.owner": np.array([*range(9), 77], np.uint32)},
    "one of several that is alone": {"clauses.owner": np.array([*range(9), 9 | 1 << 31], np.uint32)},
    "a list that does not end": {"clauses.sibling": np.zeros(10, np.int32)},
    "a head of another": {"clauses.head": np.zeros(10, np.int32)},
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_state_that_cannot_be_is_refused(damage):
    matcher = RapidMatcher(waiting=0)
    matcher.add(np.arange(8), Incoming.of([conjunction({name: True}) for name in NAMES[:8]]))
    matcher.add(np.arange(8, 10), Incoming.of([conjunction({name: True}) for name in NAMES[8:10]]))
    state = matcher.state()
    RapidMatcher(waiting=0).restore(state, np.arange(10))
    broken = State(state.facts, {**state.arrays, **damage}, state.tables)
    assert state.arrays.keys() == broken.arrays.keys()
    with pytest.raises(ValueError, match=r"\w"):
        RapidMatcher(waiting=0).restore(broken, np.arange(10))
