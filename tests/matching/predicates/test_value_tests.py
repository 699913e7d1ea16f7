"""Predicates that need values: found by structures or asked one by one, it is the same."""

from __future__ import annotations

import tracemalloc

import pyarrow as pa
import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from harken.matching.predicates.literals import pieces_of_like, pieces_of_regex
from harken.matching.predicates.texts import TextTests
from harken.matching.predicates.value_tests import ValueTests
from harken.matching.structures import segments
from harken.matching.structures.tries import texts_of
from harken.model.evaluation import holds
from harken.model.expressions import Not, TextMatch
from harken.model.text import TextOperator, text_test
from harken.model.values import Kind
from tests.strategies import like_patterns, spatial_predicates, text_matches, values_of

pytestmark = pytest.mark.kernel

LEAVES = st.one_of(text_matches(st.just("x")), spatial_predicates(st.just("x")))
VALUES = st.one_of(*(values_of(kind) for kind in (Kind.STRING, Kind.POINT, Kind.BOX, Kind.NUMBER)))

ATOMS = st.one_of(
    st.text("abc .-", min_size=1, max_size=3).map(re2.escape),
    st.sampled_from(
        [
            ".",
            "[ab]",
            "[^a]",
            "[^]",
            "[]",
            "]",
            "[^]b]",
            "[",
            "\\w",
            "\\d",
            "(?:ab|c)",
            "(b)",
            "(?P<n>a)",
            "\\.",
            "^",
            "$",
            "\\x61",
            "(?i)a",
        ]
    ),
)
PIECES = st.tuples(ATOMS, st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{0,1}", "*?", "{0}"])).map("".join)
REGEXES = st.lists(PIECES, max_size=5).map("".join)
REGEXES = st.one_of(REGEXES, st.tuples(REGEXES, REGEXES).map("|".join))


@given(st.lists(st.tuples(LEAVES, st.booleans()), max_size=12), st.lists(VALUES, max_size=5), st.data())
def test_what_is_passed_is_what_holds(asked, values, data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "WAITING", data.draw(st.integers(0, 3)))
        tests, there = ValueTests(), {}
        for number, (leaf, negated) in enumerate(asked):
            tests.add(number, Not(leaf) if negated else leaf)
            there[number] = leaf, not negated
            tests.have(tests.settled())
        for number in data.draw(st.lists(st.sampled_from(sorted(there)), unique=True)) if there else []:
            tests.discard(number)
            del there[number]
            tests.have(tests.settled())
        expected = [
            (place, number)
            for place, value in enumerate(values)
            for number, (leaf, wanted) in there.items()
            if holds(leaf, value) is wanted
        ]
        if there:
            found = zip(*(each.tolist() for each in tests.passed(values)), strict=True)
            assert sorted(found) == expected
        one_by_one = [(place, number) for place, value in enumerate(values) for number in tests.passed_by(value)]
        assert sorted(one_by_one) == expected
        assert len(tests) == len(there)


@given(like_patterns(), st.text("ab%_\\", max_size=6))
def test_whatever_is_like_a_pattern_has_its_pieces(pattern, text):
    if text_test(TextOperator.LIKE, *pattern)(text):
        assert all(piece in text for piece in pieces_of_like(*pattern))


@given(REGEXES, st.text("abcA .-0", max_size=8))
def test_whatever_matches_a_regular_expression_has_its_pieces(pattern, text):
    try:
        matches = text_test(TextOperator.MATCHES, pattern)(text)
    except ValueError:
        return
    if matches:
        assert all(piece in text for piece in pieces_of_regex(pattern))


@pytest.mark.parametrize(
    ("pattern", "pieces"),
    [
        ("error: .* timeout", ("error: ", " timeout")),
        ("^/api/v[0-9]+/people$", ("/api/v", "/people")),
        ("abc?d", ("ab", "d")),
        ("abc*defg", ("ab", "defg")),
        ("(foo)+bar", ("bar",)),
        ("one|two", ()),
        ("(?i)camera", ()),
        ("a\\.b", ("a.b",)),
        ("\\x41bc", ()),
        ("[[:alpha:]]+x", ()),
        ("[^]abc[d]", ()),
        ("[]abc]x", ()),
        ("[^^]abc", ("abc",)),
        ("x{2}yz", ("yz",)),
        ("", ()),
    ],
)
def test_pieces_of_regular_expressions(pattern, pieces):
    assert pieces_of_regex(pattern) == pieces


def test_patterns_are_led_to_by_what_few_others_have():
    tests = TextTests()
    for number in range(300):
        tests.add(number, TextMatch("x", TextOperator.LIKE, f"https://www.example.com/%/item-{number}x", None))
    for each in tests.segmented:
        each.have(each.settled())
    asked = sum(1 for _ in tests._doubtful(texts_of(pa.array(["https://www.example.com/shop/item-7x"] * 100))))
    assert asked <= 2 * 100 + 100 * segments.WAITING
    places, numbers = tests.passed(["https://www.example.com/shop/item-7x", "item-8x"])
    assert (places.tolist(), numbers.tolist()) == ([0], [7])


def test_what_may_be_satisfied_is_not_written_down_for_all_texts_at_once():
    tests = TextTests()
    for number in range(400):
        tests.add(number, TextMatch("x", TextOperator.LIKE, f"%common%{'_' * (number + 1)}", None))
    for each in tests.segmented:
        each.have(each.settled())
    texts = [f"common {number}" for number in range(400)]
    tracemalloc.start()
    try:
        places, numbers = tests.passed(texts)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sorted(zip(places.tolist(), numbers.tolist(), strict=True)) == [
        (place, number) for place, text in enumerate(texts) for number in range(len(text) - len("common"))
    ]
    assert most < 6_400_000
