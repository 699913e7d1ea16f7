"""Explanations: each part's truth, the value it saw, and notes on what can never or always match."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given, settings

from harken import Engine, Limits, algorithms
from harken.errors import EventError, UnknownSubscriptionError
from harken.model.evaluation import truth
from tests.strategies import events, expressions

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def explained(expression, event, **options):
    engine = Engine("reference", **options)
    engine.subscribe("a", expression)
    return engine.explain(event, "a")


def test_an_explanation_reads_as_a_tree():
    text = str(
        explained(
            "item = 'camera' AND (price < 300 OR NOT (sold OR maker IS NULL)) "
            "AND \"first seen\" > DATE '2026-01-01'",
            {"item": "camera", "price": 450, "sold": True},
        )
    )
    assert text.split("\n") == [
        "'a' does not match",
        "  ✗ false    all of",
        "    ✓ true     item = 'camera'   [item is 'camera']",
        "    ✗ false    one of",
        "      ✗ false    price < 300   [price is 450]",
        "      ✗ false    not",
        "        ✓ true     one of",
        "          ✓ true     sold = TRUE   [sold is TRUE]",
        "          ✓ true     maker IS NULL   [maker is missing]",
        '    ? unknown  "first seen" > DATE \'2026-01-01\'   ["first seen" is missing]',
    ]


def test_a_match_is_said_to_be_one():
    explanation = explained("x NOT IN (1, 2) AND NOT y LIKE 'a%'", {"x": Decimal("1.50"), "y": "b"})
    assert explanation.matches
    assert str(explanation).split("\n") == [
        "'a' matches",
        "  ✓ true     all of",
        "    ✓ true     x NOT IN (1, 2)   [x is 1.50]",
        "    ✓ true     y NOT LIKE 'a%'   [y is 'b']",
    ]


def test_an_explanation_is_data_for_programs():
    said = explained("x > 1 OR NOT (x = 0 AND TRUE)", {"x": 0}).to_dict()
    assert json.loads(json.dumps(said)) == said
    assert said == {
        "subscription": "a",
        "matches": False,
        "expression": {
            "text": "one of",
            "truth": "false",
            "parts": [
                {"text": "x > 1", "truth": "false", "seen": "x is 0"},
                {
                    "text": "not",
                    "truth": "false",
                    "parts": [
                        {
                            "text": "all of",
                            "truth": "true",
                            "parts": [
                                {"text": "x = 0", "truth": "true", "seen": "x is 0"},
                                {"text": "TRUE", "truth": "true"},
                            ],
                        }
                    ],
                },
            ],
        },
        "notes": [],
        "access": [],
    }


@given(expressions(), events())
@settings(max_examples=60)
def test_an_explanation_tells_the_truth(expression, event):
    explanation = explained(expression, event)
    assert explanation.root.truth is truth(expression, event)
    assert explanation.matches is (truth(expression, event) is True)
    assert str(explanation)


def test_a_contradiction_and_a_tautology_are_noted():
    assert "contradicts itself" in str(explained("x < 1 AND x > 2", {"x": 1}))
    assert "true for every event" in str(explained("x IS NULL OR x IS NOT NULL", {}))
    assert explained("x = 1", {"x": 1}).notes == ()
    assert str(explained("NOT TRUE", {})).startswith("'a' does not match\n  ✗ false    NOT TRUE\n")


def test_what_is_not_valid_does_not_match_and_says_so():
    engine = Engine()
    engine.subscribe("a", "x = 1", valid_from=NOON)
    early = engine.explain({"x": 1}, "a", at=NOON.replace(hour=11, tzinfo=None))
    assert not early.matches
    assert early.root.truth is True
    assert "not valid at this time" in str(early)
    on_time = engine.explain({"x": 1}, "a", at=NOON)
    assert on_time.matches
    assert on_time.notes == ()


def test_the_engines_own_limits_hold():
    text = " AND ".join(f"(x{at} = 1 OR y{at} = 1)" for at in range(9))
    assert not explained(text, {}, limits=Limits(max_clauses=512)).matches


@pytest.mark.kernel
@pytest.mark.parametrize("algorithm", algorithms())
def test_the_largest_subscription_can_be_explained_by_every_algorithm(algorithm):
    engine = Engine(algorithm)
    engine.subscribe("a", " AND ".join(f"(x{at} = 1 OR y{at} LIKE 'a_{at}%')" for at in range(8)))
    event = {f"x{at}": 1 for at in range(7)} | {"y7": "ab7"}
    assert engine.explain(event, "a").matches
    assert not engine.explain({"x0": 1}, "a").matches


def test_an_event_or_id_that_cannot_be_explained_is_an_error():
    engine = Engine()
    engine.subscribe("a", "x = 1")
    with pytest.raises(UnknownSubscriptionError):
        engine.explain({}, "b")
    with pytest.raises(EventError):
        engine.explain({"": 1}, "a")


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("x = 1 AND y > 2", "x = 1, alone"),
        ("y > 2", "y > 2, alone"),
        ("y != 2", "y IS NOT NULL, alone"),
        ("y IS NULL", "every event, alone"),
    ],
)
def test_an_index_tells_by_which_access_path_an_event_finds_a_subscription(expression, told):
    engine = Engine("dynamic")
    engine.subscribe("a", expression)
    explanation = engine.explain({"x": 1}, "a")
    assert list(explanation.access) == [told]
    assert f"  found through: {told}" in str(explanation).split("\n")


def test_the_access_path_tells_how_many_others_stand_there():
    engine = Engine("propagation")
    engine.subscribe_many([(number, f"x = 1 AND y != {number}") for number in range(3)])
    engine.subscribe(99, "x = 2 AND y != 4 OR w = 3")
    engine.subscribe(100, "x = 2 AND y != 5")
    assert engine.explain({}, 0).access == ("x = 1, with 2 other clauses",)
    assert sorted(engine.explain({}, 99).access) == ["w = 3, alone", "x = 2, with one other clause"]
