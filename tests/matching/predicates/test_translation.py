"""Few subscriptions and many become the same predicates, though they are translated in different ways."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.compiler import Texts, compile_texts
from harken.language import parse
from harken.matching.predicates.table import PredicateTable
from harken.matching.predicates.translation import Said, translate_few, translate_many
from harken.normal.form import normalise
from tests.strategies import expressions

pytestmark = pytest.mark.kernel


@given(st.lists(expressions(max_leaves=6), min_size=1, max_size=6))
def test_translating_one_by_one_gives_what_columns_give(several):
    table = compile_texts(Texts(list(range(len(several))), several)).table
    slots = np.arange(len(several))
    predicates = PredicateTable()
    said = Said.of_forms(map(normalise, several))
    forms = said.clauses(predicates.intern_many(said.distinct), slots)
    for batch in table.combine_chunks().to_batches():
        many = translate_many(batch, predicates, slots)
        few = translate_few(batch, predicates, slots)
        for one, other, third in zip(few, many, forms, strict=True):
            assert one.tolist() == other.tolist() == third.tolist()
            assert one.dtype == other.dtype == third.dtype


@pytest.mark.parametrize(
    "text",
    [
        "a = 5 AND b = 5.0 AND c = 2.5 AND d = -0.0",
        "a > 1 AND a <= 7 AND b < 3",
        "a IN (3, 1, 2, 3) AND b NOT IN (1, 2)",
        "a IS NULL AND b IS NOT NULL AND c != 'x'",
        "a LIKE 'x%' AND b = DATE '2026-01-01' AND c = true",
        "a = 90071992547409.93 OR a = 2.50",
        "a WITHIN BOX(0, 0, 1, 1) AND NOT c LIKE 'x_'",
        "a = 1e300 OR b = 9007199254740993 OR c = 1e18",
    ],
)
def test_each_form_of_operand_is_translated_alike(text):
    table = compile_texts(Texts([1], [text])).table
    (batch,) = table.combine_chunks().to_batches()
    predicates = PredicateTable()
    few = translate_few(batch, predicates, np.array([7]))
    many = translate_many(batch, predicates, np.array([7]))
    said = Said.of_forms([normalise(parse(text))])
    forms = said.clauses(predicates.intern_many(said.distinct), np.array([7]))
    assert [each.tolist() for each in few] == [each.tolist() for each in many]
    assert [each.tolist() for each in forms] == [each.tolist() for each in many]
