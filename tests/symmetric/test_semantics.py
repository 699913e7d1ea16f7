"""The worked examples of Tomasic et al. 2006, and the laws of meeting."""

from __future__ import annotations

from decimal import Decimal

import pytest

from harken import Engine, Schema, SymmetricEngine
from harken.compiler import Texts, compile_texts
from harken.errors import ConstraintError, EventError, ExpressionError, HarkenError, SchemaError
from harken.model.evaluation import truth
from harken.symmetric.semantics import boxes_of, event_of, matches
from tests.strategies import TYPED, Generator
from tests.symmetric.constraints import Constraints, is_sayable

INTS = Schema({"x": "int", "y": "int", "thing": "string"})

EXAMPLES = [
    # the introduction's pencils
    (
        "product = 'pencils' AND lot BETWEEN 1000 AND 10000 AND price = 1.00",
        "product = 'pencils' AND lot BETWEEN 500 AND 2000 AND price <= 1.10",
        True,
    ),
    (
        "product = 'pencils' AND lot BETWEEN 1000 AND 10000 AND price = 1.00",
        "product = 'pencils' AND lot BETWEEN 500 AND 999 AND price <= 1.10",
        False,
    ),
    # section 2: c1 is x = 1, c2 is x = 1 AND y = 1
    ("x = 1", "x = 1 AND y = 1", True),
    ("x = 1 AND y = 1", "x = 1", False),
    # section 2: half spaces meet, whichever side they are on
    ("x < 1", "x < 2", True),
    ("x < 2", "x < 1", True),
    # figures 1 to 3: publication 3 meets subscription 2, and subscription 1 in x only
    ("x < 5 AND y = 1", "x < 6 AND y = 3", False),
    ("x < 5 AND y = 1", "x < 4 AND y < 2", True),
]


@pytest.mark.parametrize(("publication", "subscription", "expected"), EXAMPLES)
def test_the_papers_examples_come_out_as_it_says(publication, subscription, expected):
    assert matches(boxes_of(publication), boxes_of(subscription)) is expected


@pytest.mark.parametrize(
    ("publication", "subscription", "expected"),
    [
        ("x <= 1", "x >= 1", True),
        ("x < 1", "x >= 1", False),
        ("x > 1 AND x < 2", "x BETWEEN 1 AND 2", True),
        ("x IN (1, 2)", "x IN (2, 3)", True),
        ("x IN (1, 2)", "x NOT IN (1, 2)", False),
        ("x != 1", "x = 1", False),
        ("x != 1", "x BETWEEN 1 AND 2", True),
        ("x = 1", "x = 1.0", True),
        ("x = 9007199254740993", "x = 9007199254740992.0", False),
        ("x = 1", "x = '1'", False),
        ("name STARTS WITH 'ab'", "name < 'ab'", False),
        ("name STARTS WITH 'ab'", "name >= 'abz'", True),
        ("name > 'a'", "name < 'a\0'", False),
        ("day > DATE '2026-11-15'", "day < DATE '2026-11-16'", False),
        ("day >= DATE '2026-11-15'", "day < DATE '2026-11-16'", True),
        ("x = 1 OR y = 2", "y BETWEEN 1 AND 3", True),
        ("x = 1", "TRUE", False),
        ("TRUE", "x = 1", True),
        ("x IS NOT NULL", "x = 'anything'", True),
        ("x < 1 AND x > 2", "x IS NOT NULL", False),
        ("b = BOX(0, 0, 1, 1)", "b OVERLAPS BOX(1, 1, 2, 2)", True),
        ("b = BOX(0, 0, 1, 1)", "b WITHIN BOX(0, 0, 0.5, 2)", False),
        ("b OVERLAPS BOX(0, 0, 1, 1)", "b OVERLAPS BOX(5, 5, 6, 6)", True),
        ("b WITHIN BOX(0, 0, 1, 1)", "b OVERLAPS BOX(5, 5, 6, 6)", False),
        ("b WITHIN BOX(0, 0, 3, 3)", "b CONTAINS BOX(1, 1, 2, 2)", True),
        ("b WITHIN BOX(0, 0, 1, 1)", "b CONTAINS BOX(0, 0, 2, 2)", False),
        ("b = POINT(1, 1)", "b WITHIN BOX(0, 0, 2, 2)", True),
    ],
)
def test_sets_meet_where_they_have_a_point_in_common(publication, subscription, expected):
    assert matches(boxes_of(publication), boxes_of(subscription)) is expected


def test_between_neighbouring_ints_there_is_nothing_once_a_schema_says_they_are_ints():
    assert matches(boxes_of("x > 4"), boxes_of("x < 5"))
    assert not matches(boxes_of("x > 4", INTS), boxes_of("x < 5", INTS))
    assert matches(boxes_of("x > 3", INTS), boxes_of("x < 5", INTS))


@pytest.mark.parametrize(
    "text",
    ["x IS NULL", "name LIKE '%a'", "name CONTAINS 'a'", "name MATCHES 'a+'", "NOT (b OVERLAPS BOX(0, 0, 1, 1))"],
)
def test_what_cannot_be_intersected_is_refused_with_a_reason(text):
    with pytest.raises(ConstraintError, match=r"name|'x'|'b'") as caught:
        boxes_of(text)
    assert caught.value.attribute in ("x", "name", "b")


def test_a_schema_refuses_other_types_and_unknown_attributes():
    with pytest.raises(SchemaError, match="thing"):
        boxes_of("thing = 5", INTS)
    with pytest.raises(SchemaError, match="did you mean"):
        boxes_of("things = 'squirrel'", INTS)


def test_what_is_no_expression_is_refused():
    with pytest.raises(ExpressionError):
        boxes_of("x <")


@pytest.mark.parametrize("seed", range(40))
def test_a_publication_matches_itself_and_meeting_is_mutual(seed):
    made = Constraints(f"mutual-{seed}")
    (_, one), (_, other) = made.boxes(), made.boxes()
    if one.boxes:
        assert matches(one, one)
    assert matches(one, other, "publication") is matches(other, one, "subscription")


@pytest.mark.parametrize("seed", range(20))
def test_an_event_is_a_publication_of_single_values(seed):
    made = Generator(f"event-{seed}", TYPED)
    subscriptions = [each for each in (made.expression() for _ in range(40)) if is_sayable(each)]
    engine = Engine("reference")
    engine.subscribe_many(enumerate(subscriptions))
    for _ in range(10):
        event = made.event()
        expected = [at for at, each in enumerate(subscriptions) if truth(each, event) is True]
        found = [
            at for at, each in enumerate(subscriptions) if matches(event_of(event), boxes_of(each), "subscription")
        ]
        assert found == expected == sorted(engine.match(event))


@pytest.mark.parametrize(
    "text",
    ["x = 90071992547409.93", "x < 90071992547409.93", "x != 90071992547409.93", "x IN (1, 90071992547409.93)"],
)
def test_a_decimal_that_no_64_bit_number_says_is_refused_not_rounded(text):
    with pytest.raises(
        ConstraintError, match=r"none is exactly 90071992547409\.93; write at most 15 digits"
    ) as caught:
        boxes_of(text)
    assert caught.value.attribute == "x"


def test_a_published_decimal_is_the_number_that_it_says():
    assert event_of({"x": Decimal("1.10")}) == boxes_of("x = 1.1")
    assert event_of({"x": Decimal("5.00")}) == boxes_of("x = 5")
    for value in (Decimal("90071992547409.93"), Decimal("1e999")):
        with pytest.raises(EventError) as caught:
            event_of({"x": value})
        assert caught.value.attribute == "x"


def test_every_way_into_a_store_refuses_a_decimal_that_no_64_bit_number_says():
    engine = SymmetricEngine()
    with pytest.raises(ConstraintError):
        engine.subscribe("s", "x < 90071992547409.93")
    table = compile_texts(Texts(["s"], ["x < 90071992547409.93"])).table
    with pytest.raises(HarkenError, match="none is exactly"):
        engine.subscribe_many(table)
    assert engine.match("x = 1") == []
