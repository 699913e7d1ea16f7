"""Tries and R-trees that find patterns and shapes, against a look at each."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.matching.structures import segments
from harken.matching.structures.kernels.rectangle_trees import CONTAINS, FAN, OVERLAPS, WITHIN
from harken.matching.structures.rectangles import PackedRectangles
from harken.matching.structures.segments import Segmented, pairs_in
from harken.matching.structures.tries import PatternTrie, texts_of
from harken.model.evaluation import lies
from harken.model.expressions import SpatialOperator
from harken.model.values import Box

pytestmark = pytest.mark.kernel

# Few characters, so that patterns overlap; some share the first or the last byte of their UTF-8.
TEXTS = st.one_of(
    st.text("ab", max_size=8), st.text("abäöé\N{EURO SIGN}\N{GRINNING FACE}\0", max_size=6), st.text(max_size=5)
)

IS_THERE = {
    "prefix": lambda text, pattern: text.startswith(pattern),
    "suffix": lambda text, pattern: text.endswith(pattern),
    "part": lambda text, pattern: pattern in text,
}

ASKED = {
    SpatialOperator.WITHIN: WITHIN,
    SpatialOperator.CONTAINS: CONTAINS,
    SpatialOperator.OVERLAPS: OVERLAPS,
}


def found_in(trie, texts):
    return sorted(zip(*(each.tolist() for each in trie.find(texts_of(pa.array(texts, pa.string())))), strict=True))


def by_looking(place, patterns, texts):
    is_there = IS_THERE[place]
    return sorted(
        (at, number)
        for at, text in enumerate(texts)
        for number, pattern in enumerate(patterns)
        if is_there(text, pattern)
    )


@pytest.mark.parametrize("place", IS_THERE)
@given(st.lists(TEXTS, max_size=12), st.lists(TEXTS, max_size=6))
def test_patterns_are_found_where_they_are(place, patterns, texts):
    trie = PatternTrie(place, [each.encode() for each in patterns])
    assert found_in(trie, texts) == by_looking(place, patterns, texts)
    assert found_in(trie, texts) == by_looking(place, patterns, texts), "asking leaves no trace"


@pytest.mark.parametrize("place", IS_THERE)
def test_many_repetitions_are_told_once(place):
    patterns = ["a" * length for length in range(1, 41)]
    texts = ["a" * 60, "a" * 5 + "b" + "a" * 30, ""]
    assert found_in(PatternTrie(place, [each.encode() for each in patterns]), texts) == by_looking(
        place, patterns, texts
    )


def test_a_slice_of_a_column_is_read_from_where_it_begins():
    trie = PatternTrie("part", [b"a", b"b"])
    column = pa.array(["a", "b", "ab", "c"]).slice(1, 2)
    assert found_in(trie, column.to_pylist()) == [(0, 1), (1, 0), (1, 1)]
    places, patterns = trie.find(texts_of(column))
    assert sorted(zip(places.tolist(), patterns.tolist(), strict=True)) == [(0, 1), (1, 0), (1, 1)]


SIDES = st.one_of(st.integers(-4, 4).map(float), st.floats(allow_nan=False, allow_infinity=False), st.just(0.1))


@st.composite
def boxes(draw):
    first, second = draw(st.tuples(SIDES, SIDES)), draw(st.tuples(SIDES, SIDES))
    return Box(*map(min, first, second), *map(max, first, second))


@given(
    st.lists(st.tuples(st.sampled_from(SpatialOperator), boxes()), min_size=1, max_size=3 * FAN),
    st.lists(boxes(), max_size=5),
)
def test_rectangles_are_found_that_lie_as_asked(rectangles, regions):
    tree = PackedRectangles([(ASKED[operator], box.bounds) for operator, box in rectangles])
    found = tree.find(np.array([each.bounds for each in regions], np.float64).reshape(-1, 4))
    assert sorted(zip(*(each.tolist() for each in found), strict=True)) == sorted(
        (at, number)
        for at, region in enumerate(regions)
        for number, (operator, box) in enumerate(rectangles)
        if lies(region, operator, box)
    )


def test_many_rectangles_in_a_few_levels():
    side = range(20)
    rectangles = [(OVERLAPS, (float(x), float(y), x + 0.5, y + 0.5)) for x in side for y in side]
    tree = PackedRectangles(rectangles)
    regions = np.array([[3.5, 2.0, 4.0, 2.0], [-math.inf, -math.inf, math.inf, math.inf], [50.0, 0.0, 60.0, 1.0]])
    which, numbers = tree.find(regions)
    assert sorted(numbers[which == 0].tolist()) == [3 * 20 + 2, 4 * 20 + 2]
    assert sorted(numbers[which == 1].tolist()) == list(range(400))
    assert not np.any(which == 2)


class _Pretended:
    """A structure that finds nothing."""

    nbytes = 1


class TestSegments:
    """Items that come and go."""

    @given(st.lists(st.tuples(st.booleans(), st.integers(0, 30), TEXTS), max_size=60), st.integers(0, 3))
    def test_what_is_there_is_found(self, changes, few):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(segments, "WAITING", few)
            there, held = {}, Segmented(lambda items: PatternTrie("part", items), len, 40)
            for comes, number, text in changes:
                if number in there:
                    held.discard(number)
                    del there[number]
                elif comes:
                    held.add(number, text.encode())
                    there[number] = text
                held.have(held.settled())
                assert len(held) == len(there)
                assert len(held.waiting) <= few
            _, numbers = pairs_in(held, lambda trie: trie.find(texts_of(pa.array(["abäab"]))))
            waiting = [number for number, item in held.waiting.items() if item.decode() in "abäab"]
            expected = sorted(number for number, text in there.items() if text in "abäab")
            assert sorted([*numbers.tolist(), *waiting]) == expected

    def test_each_item_is_built_in_a_few_times_and_segments_are_few(self):
        built = []

        class Pretended:
            nbytes = 1

            def __init__(self, items):
                built.append(len(items))

        held = Segmented(Pretended, lambda _: 1, 2**30)
        for number in range(20_000):
            held.add(number, number)
            held.have(held.settled())
        assert len(held.segments) <= 10
        assert sum(built) <= 10 * 20_000

    def test_what_would_be_too_much_for_one_structure_stays_in_several(self):
        held = Segmented(lambda items: PatternTrie("part", items), len, 1_000)
        for number in range(1_000):
            held.add(number, b"0123456789")
            held.have(held.settled())
        assert all(sum(map(len, each.items)) <= 1_000 for each in held.segments)

    def test_what_comes_at_once_may_be_too_much_for_one_structure(self):
        held = Segmented(lambda items: PatternTrie("part", items), len, 1_000)
        for number in range(1_000):
            held.add(number, b"%010d" % number)
        held.have(held.settled())
        assert len(held.segments) == 10
        _, numbers = pairs_in(held, lambda trie: trie.find(texts_of(pa.array(["0000000777 0000000123"]))))
        assert sorted(numbers.tolist()) == [123, 777]

    def test_a_few_that_come_and_go_cost_no_look_at_all_others(self):
        held = Segmented(lambda items: _Pretended(), lambda _: 1, 2**30)
        for number in range(10_000):
            held.add(number, number)
        held.have(held.settled())
        stands = held._stands
        for _ in range(3):
            for number in range(10_000, 10_000 + segments.WAITING + 1):
                held.add(number, number)
            held.have(held.settled())
            for number in range(10_000, 10_000 + segments.WAITING + 1):
                held.discard(number)
                held.have(held.settled())
            assert held._stands is stands, "which would have to be written anew"
            assert len(held) == 10_000

    def test_what_has_gone_takes_no_room_for_good(self):
        held = Segmented(lambda items: PatternTrie("part", items), len, 2**30)
        for number in range(1_000):
            held.add(number, b"%d" % number)
        held.have(held.settled())
        full = held.nbytes
        for number in range(950):
            held.discard(number)
            held.have(held.settled())
        assert held.nbytes < full / 8
        assert sum(len(each.items) for each in held.segments) + len(held.waiting) <= 2 * len(held)
