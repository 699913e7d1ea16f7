"""The counting matcher: its lists move, shrink and are used again, and its counters are always set back."""

from __future__ import annotations

import os
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from harken.matching.contract import Incoming
from harken.matching.counting.matcher import SPARE, ClauseLists, CountingMatcher
from harken.matching.encoding.workspace import FIRST_RESULTS
from harken.matching.events.batch import EventBatch
from harken.matching.reference import ReferenceMatcher
from harken.matching.structures.clauses import WASTE
from harken.matching.structures.kernels.clauses import END, END_WORD, FREE_WORDS
from harken.matching.structures.kernels.counters import WORTH_COPYING
from harken.model.expressions import TRUE, And, Comparator, Comparison, Or
from tests.strategies import FREE, Generator

pytestmark = pytest.mark.kernel

# As plain Python, kernels take a thousand times as long: fewer subscriptions then.
MANY = 400 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 4_000


def equalities(wanted):
    terms = tuple(Comparison(name, Comparator.EQ, value) for name, value in wanted.items())
    return terms[0] if len(terms) == 1 else And(terms)


def some(count, seed=1, width=3, values=4):
    """Equalities on some of six attributes."""
    chance = random.Random(seed)
    names = "abcdef"
    return [
        equalities({name: chance.randint(1, values) for name in chance.sample(names, width)}) for _ in range(count)
    ]


def events_for(count, seed=2, values=4):
    chance = random.Random(seed)
    return [{name: chance.randint(1, values) for name in "abcdef"} for _ in range(count)]


def loaded(expressions):
    matcher = CountingMatcher()
    matcher.add(np.arange(len(expressions)), Incoming.of(expressions))
    return matcher


def pairs(matcher, events):
    rows, slots = matcher.match_batch(EventBatch.of(events, matcher.attributes))
    return sorted(zip(rows.tolist(), slots.tolist(), strict=True))


def expected(expressions, events):
    judge = ReferenceMatcher()
    slots = np.array(sorted(expressions), np.int64)
    judge.add(slots, Incoming.of([expressions[slot] for slot in slots.tolist()]))
    return pairs(judge, events)


def assert_consistent(matcher):
    """Every clause is in the lists it says it is in and in no other; lists lie apart, each within its room."""
    lists, contents = matcher._lists.arrays(), matcher._contents.arrays()
    said = {
        (int(contents.words[first + at]), clause)
        for slot in range(len(contents.head))
        for clause in clauses_of(contents, slot)
        for first in [int(contents.first[clause])]
        for at in range(int(contents.width[clause]))
    }
    listed = [
        (number, clause)
        for number, (start, length) in enumerate(zip(lists.start.tolist(), lists.length.tolist(), strict=True))
        for clause in lists.clause[start : start + length].tolist()
    ]
    assert len(listed) == len(said)
    assert set(listed) == said
    assert (lists.length <= lists.capacity).all()
    used = np.flatnonzero(lists.capacity)
    ascending = used[np.argsort(lists.start[used])]
    ends = lists.start[ascending] + lists.capacity[ascending]
    assert (ends <= [*lists.start[ascending[1:]], len(lists.clause)]).all()


def clauses_of(contents, slot):
    clause = int(contents.head[slot])
    while clause >= 0:
        yield clause
        clause = int(contents.sibling[clause])


def test_lists_that_are_full_move_and_lose_nothing():
    matcher, live, events = CountingMatcher(), {}, events_for(40)
    moved = laid_anew = 0
    for turn in range(40):
        before = matcher._lists.arrays()
        starts = before.start.copy()
        new = dict(enumerate(some(12, seed=turn), start=12 * turn))
        matcher.add(np.array(list(new)), Incoming.of(list(new.values())))
        live |= new
        after = matcher._lists.arrays()
        is_new = after.clause is not before.clause
        laid_anew += is_new
        moved += not is_new and bool((after.start[: len(starts)] != starts).any())
        assert_consistent(matcher)
    assert moved
    assert laid_anew
    assert pairs(matcher, events) == expected(live, events)


def test_one_list_that_grows_among_many_moves_alone():
    lists = ClauseLists()
    lists.make_room(np.full(100, 80))
    lists.arrays().length[:] = 80
    before = lists.arrays()
    starts, memory = before.start.copy(), before.clause
    coming = np.zeros(100, np.int64)
    coming[7] = 80 // SPARE + 1
    lists.make_room(coming)
    after = lists.arrays()
    assert after.clause is memory
    assert np.flatnonzero(after.start != starts).tolist() == [7]
    assert after.capacity[7] == 91 + 91 // SPARE


def test_after_most_have_left_lists_and_clauses_are_compact():
    expressions = some(MANY)
    matcher, events = loaded(expressions), events_for(40)
    before = matcher.stats()["bytes"]
    leaving = [slot for slot in range(MANY) if slot % 10]
    for start in range(0, len(leaving), MANY // 10):
        matcher.remove(np.array(leaving[start : start + MANY // 10]))
        assert_consistent(matcher)
    lists, contents = matcher._lists.arrays(), matcher._contents.arrays()
    assert int(lists.capacity.sum()) <= WASTE * int(lists.length.sum())
    assert int(contents.spare[END_WORD]) <= WASTE * 3 * (MANY // 10)
    after = matcher.stats()["bytes"]
    assert after["lists"] < before["lists"] / 2
    assert after["clauses"] < before["clauses"]
    kept = {slot: expressions[slot] for slot in range(0, MANY, 10)}
    assert pairs(matcher, events) == expected(kept, events)


def test_numbers_and_room_of_those_that_left_are_used_again():
    expressions = some(300)
    matcher = loaded(expressions)
    spare = matcher._contents.arrays().spare
    numbers, words = int(spare[END]), int(spare[END_WORD])
    sizes = []
    for turn in range(8):
        leaving = np.array(random.Random(turn).sample(range(300), 100))
        matcher.remove(leaving)
        matcher.add(leaving, Incoming.of([expressions[slot] for slot in leaving.tolist()]))
        sizes.append(sum(matcher.stats()["bytes"].values()))
        assert_consistent(matcher)
    assert (int(spare[END]), int(spare[END_WORD]), int(spare[FREE_WORDS])) == (numbers, words, 0)
    assert sizes[-1] == sizes[0]


def test_numbers_without_room_are_used_again_for_clauses_of_any_width():
    matcher, events = loaded(some(200)), events_for(40)
    spare = matcher._contents.arrays().spare
    matcher.remove(np.arange(150))
    assert int(spare[FREE_WORDS]) == 0
    others = some(150, seed=5, width=2)
    matcher.add(np.arange(150), Incoming.of(others))
    assert int(spare[END]) == 200
    assert_consistent(matcher)
    live = dict(enumerate(others)) | dict(enumerate(some(200)[150:], start=150))
    assert pairs(matcher, events) == expected(live, events)


def test_counters_are_set_back_when_an_event_concerns_few_clauses_and_when_it_concerns_all():
    few = [equalities({"a": number, "b": number % 3}) for number in range(MANY)]
    matcher = loaded([*few, equalities({"c": 1})])
    rare, common = {"a": 7, "b": 5}, {"a": 7, "b": 1, "c": 1}
    events = [rare, common, rare, {"a": 7, "b": 2}, common, common, {"b": 1}, rare, common]
    found = [(1, 7), (1, MANY), (4, 7), (4, MANY), (5, 7), (5, MANY), (8, 7), (8, MANY)]
    assert pairs(matcher, events) == found
    left = matcher._left.counters
    widths = matcher._contents.arrays().width
    assert (left[: len(widths)] == widths).all()
    before = matcher.stats()["checks_per_event"] * len(events)
    pairs(matcher, [rare])
    assert matcher.stats()["checks_per_event"] * (len(events) + 1) - before == pytest.approx(1)
    assert WORTH_COPYING < MANY, "or rare events would not be set back step by step"


def test_more_matches_than_there_is_room_for_are_all_told():
    count = FIRST_RESULTS + 10
    matcher = loaded([*[TRUE] * count, equalities({"a": 1})])
    slots = matcher.match({"a": 1})
    assert sorted(slots.tolist()) == list(range(count + 1))
    rows, _ = matcher.match_batch(EventBatch.of([{"a": 1}, {}, {"a": 1}], matcher.attributes))
    assert np.bincount(rows).tolist() == [count + 1, count, count + 1]


@pytest.mark.parametrize(("width", "counter"), [(255, np.uint8), (256, np.uint16), (300, np.uint16)])
def test_clauses_of_more_predicates_than_a_byte_counts_match_only_whole(width, counter):
    matcher = loaded([equalities({"z": 1})])
    assert pairs(matcher, [{"z": 1}]) == [(0, 0)]
    whole = {f"a{number}": 1 for number in range(width)}
    matcher.add(np.array([1]), Incoming.of([equalities(whole)]))
    assert matcher._contents.arrays().width.dtype == counter
    lacking_one, as_a_byte_sees_it = dict(list(whole.items())[1:]), dict(list(whole.items())[: width - 256])
    events = [lacking_one, whole, as_a_byte_sees_it, whole | {"z": 1}]
    assert pairs(matcher, events) == [(1, 1), (3, 0), (3, 1)]
    matcher.remove(np.array([1]))
    assert pairs(matcher, events) == [(3, 0)]


def test_threads_that_match_at_once_do_not_disturb_each_other():
    generator = Generator("counting-threads", FREE)
    matcher = loaded([generator.expression() for _ in range(60)])
    events = [generator.event() for _ in range(60)]
    alone = pairs(matcher, events)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: pairs(matcher, events), range(12)))
    assert found == [alone] * 12
    assert matcher.stats()["events"] == 13 * len(events)
    assert matcher.stats()["matches"] == 13 * len(alone)


def test_statistics_count_each_step_of_a_counter_as_a_check():
    matcher = loaded([equalities({"a": 1, "b": 1}), equalities({"a": 1}), equalities({"b": 2}), TRUE])
    assert pairs(matcher, [{"a": 1, "b": 2}, {}]) == [(0, 1), (0, 2), (0, 3), (1, 3)]
    stats = matcher.stats()
    assert (stats["subscriptions"], stats["clauses"], stats["predicates"]) == (4, 4, 3)
    assert (stats["events"], stats["matches"], stats["matches_per_event"]) == (2, 4, 2.0)
    assert stats["checks_per_event"] == (2 + 1 + 1 + 1) / 2


def test_a_subscription_is_found_through_each_predicate_of_its_clauses_and_with_all_others_that_have_it():
    a, b, c = (equalities({name: 1}) for name in "abc")
    matcher = loaded([Or((And((a, b)), c)), a, TRUE])
    paths = {(path.condition, path.neighbours) for path in matcher.access(0)}
    assert paths == {(a, 1), (b, 0), (c, 0)}
    assert [(path.condition, path.neighbours) for path in matcher.access(2)] == [(TRUE, 0)]
