"""Registering and removing: ids, duplicates, replacing."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from harken import Engine, Limits, Subscription, algorithms, attr, parse
from harken.errors import (
    BoundError,
    DuplicateSubscriptionError,
    ParseError,
    SchemaError,
    SubscriptionError,
    UnknownAlgorithmError,
    UnknownSubscriptionError,
)
from harken.model.subscriptions import Validity
from tests.engine.registered import HOUR, NOON, seen, small_engine


@pytest.fixture
def engine():
    return small_engine()


@pytest.mark.parametrize("missing", [pd.NaT, pd.NA, np.datetime64("NaT"), math.nan], ids=repr)
def test_a_bound_that_pandas_says_is_missing_is_no_bound(missing: object) -> None:
    engine = Engine()
    engine.subscribe("one", "x = 1", valid_until=missing)
    engine.subscribe_many(
        [
            {"id": "many", "expression": "x = 1", "valid_from": missing, "valid_until": missing},
            {
                "id": "past",
                "expression": "x = 1",
                "valid_from": missing,
                "valid_until": pd.Timestamp("2020-01-01"),
            },
        ]
    )
    assert engine.match({"x": 1}) == ["one", "many"]
    assert engine.subscription("many").validity.is_always
    assert engine.subscription("past").validity.valid_from is None


def test_a_bound_that_can_not_be_compared_is_the_fault_of_its_row() -> None:
    odd = np.array([1, 2])
    with pytest.raises(SubscriptionError, match="valid_until is a timestamp, found ndarray"):
        Engine().subscribe("a", "x = 1", valid_until=odd)
    engine = Engine()
    rows = [("ok", "x = 1"), {"id": "b", "expression": "x = 1", "valid_until": odd}]
    report = engine.subscribe_many(rows, on_error="collect")
    assert (report.loaded, [reject.row for reject in report.rejects]) == (1, [1])
    assert engine.match({"x": 1}) == ["ok"]


def test_a_subscription_has_the_id_that_it_was_given_whatever_equals_it() -> None:
    engine = Engine()
    engine.subscribe(np.int64(5), "x = 1")
    assert type(engine.subscription(np.int64(5)).id) is int


# ---------------------------------------------------------------- one at a time


def test_a_subscription_is_registered_under_its_id(engine):
    assert len(engine) == 2
    assert list(engine) == ["a", "b"]
    assert "a" in engine
    assert "z" not in engine
    assert engine.match({"x": 1}) == ["a"]
    assert repr(engine) == "Engine(algorithm='reference', subscriptions=2)"


def test_a_subscription_can_be_asked_for(engine):
    assert engine.subscription("a") == Subscription("a", parse("x = 1"))
    assert engine.subscription("b") == Subscription("b", parse("x > 1"), "Bob", Validity(None, NOON))


def test_text_and_tree_say_the_same():
    engine = Engine()
    engine.subscribe("text", "x > 1 AND y LIKE 'a%'")
    engine.subscribe("tree", (attr("x") > 1) & attr("y").like("a%"))
    assert sorted(engine.match({"x": 2, "y": "ab"})) == ["text", "tree"]
    assert engine.match({"x": 1, "y": "ab"}) == []


@pytest.mark.parametrize("id", ["a", " ", "ä" * 100, "1"])
def test_an_id_may_be_any_string(id):
    engine = Engine()
    engine.subscribe(id, "TRUE")
    assert engine.match({}) == [id]
    assert engine.match_batch([{}]).column("subscription").to_pylist() == [id]


@pytest.mark.parametrize("id", [0, -5, 2**63 - 1, -(2**63)])
def test_an_id_may_be_any_64_bit_integer(id):
    engine = Engine()
    engine.subscribe(id, "TRUE")
    assert engine.match({}) == [id]
    assert engine.match_batch([{}]).column("subscription").to_pylist() == [id]


@pytest.mark.parametrize("id", [True, False, 1.0, None, "", b"a", ["a"], 2**63, "\ud800"])
def test_nothing_else_is_an_id(id):
    engine = Engine()
    with pytest.raises(SubscriptionError, match="id"):
        engine.subscribe(id, "TRUE")
    assert len(engine) == 0


@pytest.mark.parametrize(("first", "second"), [("a", 1), (1, "a")])
@pytest.mark.parametrize("replace", [False, True])
def test_strings_and_integers_do_not_mix_in_one_engine(first, second, replace):
    engine = Engine()
    engine.subscribe(first, "TRUE")
    with pytest.raises(SubscriptionError, match="not like the ids of this engine"):
        engine.subscribe(second, "TRUE", replace=replace)
    assert list(engine) == [first]
    assert engine.match_batch([{}]).num_rows == 1


def test_an_emptied_engine_takes_ids_of_the_other_type():
    engine = Engine()
    engine.subscribe("a", "TRUE")
    engine.unsubscribe("a")
    engine.subscribe(1, "TRUE")
    assert engine.match_batch([{}]).schema.field("subscription").type == pa.int64()


def test_values_that_python_holds_equal_to_an_id_are_not_that_id():
    engine = Engine()
    engine.subscribe(1, "TRUE")
    assert 1 in engine
    assert True not in engine
    assert 1.0 not in engine
    for other in (True, 1.0):
        with pytest.raises(UnknownSubscriptionError):
            engine.unsubscribe(other)
        with pytest.raises(UnknownSubscriptionError):
            engine.subscription(other)


def test_a_taken_id_is_an_error_that_says_how_to_replace(engine):
    before = seen(engine)
    with pytest.raises(DuplicateSubscriptionError, match="'a' is already registered") as caught:
        engine.subscribe("a", "x = 2")
    assert caught.value.subscription == "a"
    assert "replace=True" in caught.value.suggestion
    assert seen(engine) == before


def test_replacing_leaves_nothing_of_the_old_one(engine):
    engine.subscribe("b", "x = 5", replace=True)
    assert engine.subscription("b") == Subscription("b", parse("x = 5"))
    assert engine.match({"x": 5}, at=NOON + HOUR) == ["b"]
    assert engine.match({"x": 2}, at=NOON - HOUR) == []
    assert len(engine) == 2


def test_replacing_what_is_not_there_registers_it(engine):
    engine.subscribe("c", "x = 5", replace=True)
    assert "c" in engine


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("x = ", ParseError),
        ("x = 1 OR y = 1 OR z = 1 OR w = 1 OR v = 1", BoundError),
        (attr("x").like("a" * 50), BoundError),
        (None, ValueError),
        (5, ValueError),
    ],
)
def test_a_bad_expression_is_refused_and_what_it_would_replace_stays(expression, error):
    engine = Engine("reference", limits=Limits(max_clauses=4, max_pattern=40))
    engine.subscribe("a", "x = 1")
    with pytest.raises(error):
        engine.subscribe("a", expression, replace=True)
    assert engine.subscription("a").expression == parse("x = 1")
    assert engine.match({"x": 1}) == ["a"]


@pytest.mark.parametrize("owner", [5, b"Ann", ["Ann"], "\ud800"])
def test_an_owner_is_a_string(owner):
    engine = Engine()
    with pytest.raises(SubscriptionError, match="owner"):
        engine.subscribe("a", "TRUE", owner=owner)
    assert len(engine) == 0


def test_a_schema_is_given_as_names_and_types():
    engine = Engine(schema={"price": "float", "maker": "string"})
    engine.subscribe("a", "price < 5 AND maker = 'Sony'")
    with pytest.raises(SchemaError, match="did you mean 'price'"):
        engine.subscribe("b", "prise < 5")
    with pytest.raises(SchemaError, match="declared string, found int"):
        engine.subscribe("b", attr("maker") == 5)
    assert list(engine) == ["a"]


def test_an_unknown_algorithm_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownAlgorithmError) as caught:
        Engine("refrence")
    assert caught.value.suggestion == "did you mean 'reference'?"
    for name in algorithms():
        assert name in str(caught.value)


# ---------------------------------------------------------------- removing


def test_an_unsubscribed_id_matches_no_more_and_is_free_again(engine):
    engine.unsubscribe("a")
    assert "a" not in engine
    assert engine.match({"x": 1}) == []
    engine.subscribe("a", "x = 7")
    assert engine.match({"x": 7}, at=NOON) == ["a"]


def test_removing_one_takes_its_owner_and_validity_with_it(engine):
    engine.unsubscribe("b")
    engine.subscribe("c", "x > 1")
    assert engine.subscription("c") == Subscription("c", parse("x > 1"))
    assert engine.match({"x": 2}, at=NOON + HOUR) == ["c"]


def test_removing_what_is_not_there_is_an_error(engine):
    with pytest.raises(UnknownSubscriptionError, match="no subscription 'z'") as caught:
        engine.unsubscribe("z")
    assert caught.value.subscription == "z"
    assert isinstance(caught.value, KeyError)
    with pytest.raises(UnknownSubscriptionError):
        engine.subscription("z")


def test_removing_many_is_all_or_nothing(engine):
    with pytest.raises(UnknownSubscriptionError):
        engine.unsubscribe_many(["a", "z"])
    assert len(engine) == 2
    engine.unsubscribe_many(iter(["a", "b", "a"]))
    assert len(engine) == 0
    assert engine.match({"x": 1}) == []


@pytest.mark.parametrize(
    "ids",
    [
        np.array([7, 3, 7], np.uint8),
        pa.array([7, 3, 7], pa.int32()),
        pa.chunked_array([[7], [3]]),
        range(3, 8, 4),
        {3: "x", 7: "y"},
    ],
    ids=["numpy", "Arrow", "chunks", "range", "mapping"],
)
def test_ids_to_remove_may_come_in_columns(ids):
    engine = Engine()
    engine.subscribe_many((at, f"x = {at % 2}") for at in range(10))
    engine.unsubscribe_many(ids)
    assert list(engine) == [0, 1, 2, 4, 5, 6, 8, 9]
    assert sorted(engine.match({"x": 1})) == [1, 5, 9]
    with pytest.raises(UnknownSubscriptionError) as caught:
        engine.unsubscribe_many(ids)
    assert caught.value.subscription in (3, 7)
    assert len(engine) == 8


def test_subscriptions_can_be_removed_while_they_are_listed(engine):
    for id in engine:
        engine.unsubscribe(id)
    assert len(engine) == 0
