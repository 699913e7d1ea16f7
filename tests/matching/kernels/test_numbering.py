"""Pairs are numbered in the order in which they come, however many there are and whatever they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.matching.kernels import numbering

pytestmark = pytest.mark.kernel

INTEGERS = st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63), 7, 1 << 32])


def expected(pairs):
    numbers = {}
    return [numbers.setdefault(pair, len(numbers)) for pair in pairs], [pairs.index(pair) for pair in numbers]


def numbered(pairs):
    columns = np.array(pairs, np.int64).reshape(len(pairs), 2)
    numbers, first = numbering.number_pairs(columns[:, 0].copy(), columns[:, 1].copy())
    return numbers.tolist(), first.tolist()


@given(st.lists(st.tuples(INTEGERS, INTEGERS), max_size=60))
def test_pairs_are_numbered_as_a_dictionary_would(pairs):
    assert numbered(pairs) == expected(pairs)


def test_a_table_that_is_too_small_is_made_larger(monkeypatch):
    monkeypatch.setattr(numbering, "_SMALLEST", 2)
    pairs = [(at % 90, at % 7) for at in range(700)] * 2
    assert numbered(pairs) == expected(pairs)


def test_as_many_as_there_are_rows():
    pairs = [(at, -at) for at in range(9_000)]
    assert numbered(pairs) == (list(range(9_000)), list(range(9_000)))
