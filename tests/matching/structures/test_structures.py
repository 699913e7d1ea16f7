"""Structures that find intervals, against a look at each; and hash tables, against a dictionary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.matching.kernels.layout import HIGHEST, LOWEST
from harken.matching.structures.intervals import (
    GrowingHashTable,
    GrowingIntervalTrees,
    GrowingPrioritySearchTrees,
)
from harken.matching.structures.kernels import hashing, interval_trees, priority_search_trees
from harken.matching.structures.kernels.priority_search_trees import DEEPEST, IN_NODE, NONE, NOWHERE

pytestmark = pytest.mark.kernel

ENDS = st.one_of(st.integers(-9, 9), st.sampled_from([LOWEST, HIGHEST]), st.integers(LOWEST, HIGHEST))
INTERVALS = st.tuples(ENDS, ENDS).map(lambda ends: (min(ends), max(ends)))
VALUES = st.one_of(st.integers(-10, 10), st.integers(LOWEST, HIGHEST))


def containing(intervals, value):
    return {item for item, (low, high) in intervals.items() if low <= value <= high}


class Ranges:
    """One priority search tree, with an item for each interval that ever was there."""

    def __init__(self):
        self._trees = GrowingPrioritySearchTrees()
        self._trees.have_items(1)  # item 0 is not of this tree
        self.root, self.items, self.there = NONE, {}, {}

    @property
    def arrays(self):
        return self._trees.arrays()

    def add(self, interval):
        item = priority_search_trees.look_up_one(self.arrays, self.root, *interval)
        assert item == self.items.get(interval, NONE)
        if item == NONE:
            item = self.items[interval] = len(self.items) + 1
            self._trees.have_items(item + 1)
            self.arrays.low[item], self.arrays.high[item] = interval
            self.root = priority_search_trees.plant_one(self.arrays, self.root, item)
        elif item not in self.there:
            priority_search_trees.bring_back_one(self.arrays, self.root, item)
        self.there[item] = interval

    def remove(self, interval):
        item = self.items[interval]
        priority_search_trees.withdraw_one(self.arrays, item)
        del self.there[item]

    def stab(self, value):
        found = np.zeros(len(self.items) + 1, np.int32)
        pending = np.zeros(DEEPEST, np.int32)
        count = priority_search_trees.stab_one(self.arrays, self.root, value, pending, found)
        told = found[:count].tolist()
        assert len(set(told)) == len(told), "each once"
        return set(told)

    def assert_sound(self):
        """Ordered, balanced as red-black trees are, and tops are what they should be."""
        if self.root != NONE:
            assert not self.arrays.is_red[self.root]
            self._assert_sound_below(self.root, NONE, set())

    def _assert_sound_below(self, node, above, placed):
        """Returns the items below, ascending, and how many black nodes each way down has."""
        trees = self.arrays
        if node == NONE:
            return [], 1
        assert trees.up[node] == above
        assert not (trees.is_red[node] and above != NONE and trees.is_red[above])
        top = int(trees.top[node])
        inside = placed | {top}
        left, left_black = self._assert_sound_below(int(trees.left[node]), node, inside)
        right, right_black = self._assert_sound_below(int(trees.right[node]), node, inside)
        assert left_black == right_black
        items = [*left, node, *right]
        keys = [(int(trees.high[each]), int(trees.low[each])) for each in items]
        assert keys == sorted(set(keys))
        waiting = [each for each in items if each in self.there and each not in placed]
        if waiting:
            assert top in waiting
            assert int(trees.low[top]) == min(int(trees.low[each]) for each in waiting)
        else:
            assert top == NONE
        stands_in_node = node in self.there and node not in inside
        assert (trees.stands[node] == IN_NODE) == stands_in_node
        assert (trees.stands[node] == NOWHERE) == (node not in self.there)
        return items, left_black + (not trees.is_red[node])


@given(st.lists(st.tuples(st.booleans(), INTERVALS), max_size=40), st.lists(VALUES, min_size=1, max_size=10))
@settings(max_examples=150, deadline=None)
def test_a_priority_search_tree_finds_the_intervals_that_contain_a_value_and_no_others(steps, values):
    ranges = Ranges()
    for is_added, interval in steps:
        if is_added or interval not in ranges.items or ranges.items[interval] not in ranges.there:
            ranges.add(interval)
        else:
            ranges.remove(interval)
        ranges.assert_sound()
    for value in (*values, *(end for _, interval in steps for end in interval)):
        assert ranges.stab(value) == containing(ranges.there, value)


@pytest.mark.parametrize("order", ["ascending", "descending", "shuffled", "nested"])
def test_a_priority_search_tree_stays_shallow_in_whatever_order_intervals_come(order):
    intervals = [(at, at + at % 7) for at in range(300)]
    if order == "descending":
        intervals.reverse()
    elif order == "shuffled":
        np.random.default_rng(1).shuffle(intervals)
    elif order == "nested":
        intervals = [(-at, at) for at in range(300)]
    ranges = Ranges()
    for interval in intervals:
        ranges.add(tuple(interval))
    ranges.assert_sound()
    for interval in intervals[::2]:
        ranges.remove(tuple(interval))
    ranges.assert_sound()
    for value in range(-10, 310, 7):
        assert ranges.stab(value) == containing(ranges.there, value)


def test_an_empty_tree_finds_nothing_and_one_whose_intervals_have_all_left_neither():
    ranges = Ranges()
    assert ranges.stab(3) == set()
    for interval in [(1, 5), (3, 3), (LOWEST, HIGHEST)]:
        ranges.add(interval)
    assert len(ranges.stab(3)) == 3
    for interval in list(ranges.items):
        ranges.remove(interval)
    assert ranges.stab(3) == set()


class Divided:
    """One interval tree, whose leaves are divided when they keep more than a few intervals."""

    def __init__(self, most):
        self._trees, self._most = GrowingIntervalTrees(), most
        self.kept = {0: []}
        self._trees.have_items(1)
        interval_trees.plant_one(self._trees.arrays(), 0)

    def add(self, interval):
        item = interval_trees.keeper_of(self._trees.arrays(), 0, *interval)
        self.kept[item].append(interval)
        is_leaf = self._trees.arrays().centre[item] == interval_trees.LEAF
        if is_leaf and len(self.kept[item]) > self._most:
            self._divide(item)

    def remove(self, interval):
        self.kept[interval_trees.keeper_of(self._trees.arrays(), 0, *interval)].remove(interval)

    def _divide(self, item):
        ends = sorted(end for interval in self.kept[item] for end in interval)
        centre, left, right = ends[len(ends) // 2], len(self.kept), len(self.kept) + 1
        self._trees.have_items(right + 1)
        interval_trees.divide_one(self._trees.arrays(), item, centre, left, right)
        intervals, self.kept[item], self.kept[left], self.kept[right] = self.kept[item], [], [], []
        for interval in intervals:
            self.kept[interval_trees.keeper_of(self._trees.arrays(), 0, *interval)].append(interval)

    def stab(self, value):
        found = np.zeros(len(self.kept), np.int32)
        items = found[: interval_trees.stab_one(self._trees.arrays(), 0, value, found)].tolist()
        assert len(set(items)) == len(items), "each once"
        return sorted(each for item in items for each in self.kept[item] if each[0] <= value <= each[1])


@given(st.lists(INTERVALS, max_size=40), st.sets(st.integers(0, 39)), st.lists(VALUES, min_size=1, max_size=10))
@settings(max_examples=150, deadline=None)
def test_an_interval_tree_leads_to_all_intervals_that_contain_a_value(intervals, leaving, values):
    tree = Divided(3)
    for interval in intervals:
        tree.add(interval)
    left = [each for at, each in enumerate(intervals) if at not in leaving]
    for at in sorted(leaving & set(range(len(intervals)))):
        tree.remove(intervals[at])
    for value in (*values, *(end for interval in intervals for end in interval)):
        assert tree.stab(value) == sorted(each for each in left if each[0] <= value <= each[1])


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30).map(lambda at: at << 32 | at % 3)), max_size=120))
@settings(max_examples=100, deadline=None)
def test_a_hash_table_is_a_dictionary(steps):
    table, model = GrowingHashTable(), {}
    for at, (is_put, key) in enumerate(steps):
        if is_put and key not in model:
            table.have_room(1)
            hashing.put_one(table.arrays(), key, at)
            model[key] = at
        elif not is_put and key in model:
            hashing.take_one(table.arrays(), key)
            del model[key]
        assert len(table) == len(model)
    for key in {key for _, key in steps} | {7}:
        assert hashing.find_one(table.arrays(), key) == model.get(key, -1)
