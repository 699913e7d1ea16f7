"""Conformance: expression, event and expected verdict as data (cases.jsonl), for every road to an answer.

Another implementation can run the same file. Values JSON has not are written `{"$date": "2026-11-15"}`,
`{"$timestamp": "2026-11-15T10:30:00+00:00"}` and `{"$decimal": "1.10"}`.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from harken import Engine, algorithms
from harken.compiler import Texts, compile_texts
from harken.language import parse, to_text
from harken.model.evaluation import truth
from harken.model.events import flatten
from harken.normal.decompiled import expressions_of

LINES = Path(__file__).with_name("cases.jsonl").read_text(encoding="utf-8").strip().split("\n")
VERDICTS = {"true": True, "false": False, "unknown": None}
READERS = {"$date": date.fromisoformat, "$timestamp": datetime.fromisoformat, "$decimal": Decimal}


def read(found):
    """The values JSON has not."""
    (tag,) = found if len(found) == 1 else (None,)
    return READERS[tag](found[tag]) if tag in READERS else found


CASES = [json.loads(line, object_hook=read) for line in LINES]
NAMES = [f"{case['about']}: {case['expression']}" for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_the_verdict_is_as_expected(case):
    flat, faults = flatten(case["event"])
    assert not faults
    expression = parse(case["expression"])
    assert truth(expression, flat) is VERDICTS[case["expected"]]
    assert truth(parse(to_text(expression)), flat) is VERDICTS[case["expected"]]


def test_the_compiled_form_is_true_where_it_should_be():
    table = compile_texts(Texts(range(len(CASES)), [case["expression"] for case in CASES])).table
    for case, expression in zip(CASES, expressions_of(table), strict=True):
        flat, _ = flatten(case["event"])
        assert (truth(expression, flat) is True) is (case["expected"] == "true"), case


@pytest.mark.kernel
@pytest.mark.parametrize("algorithm", algorithms())
def test_every_algorithm_matches_where_it_should(algorithm):
    engine = Engine(algorithm)
    engine.subscribe_many([(at, case["expression"]) for at, case in enumerate(CASES)])
    for at, case in enumerate(CASES):
        assert (at in engine.match(case["event"])) is (case["expected"] == "true"), case
    matches = engine.match_batch([case["event"] for case in CASES])
    own = {
        event
        for event, id in zip(
            matches.column("event").to_pylist(), matches.column("subscription").to_pylist(), strict=True
        )
        if event == id
    }
    assert own == {at for at, case in enumerate(CASES) if case["expected"] == "true"}


def test_the_cases_hold_every_verdict_and_none_twice():
    counts = Counter(case["expected"] for case in CASES)
    assert set(counts) == set(VERDICTS)
    assert min(counts.values()) >= 30
    assert len(set(LINES)) == len(LINES) >= 120
