"""The façade: the same calls in memory and on databases, and bad input that changes nothing."""

from __future__ import annotations

import gc
import threading
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from sqlalchemy import event
from sqlalchemy.pool import Pool

from harken import Engine, SymmetricEngine, attr
from harken.errors import (
    BulkLoadError,
    ClosedError,
    ConstraintError,
    DuplicateSubscriptionError,
    EventError,
    ExpressionError,
    ParseError,
    SchemaError,
    UnknownSubscriptionError,
)
from harken.symmetric.contract import Notice
from harken.symmetric.semantics import boxes_of, matches
from tests.symmetric.constraints import Constraints

PENCILS = "product = 'pencils' AND lot BETWEEN 500 AND 2000 AND price <= 1.10"
OFFER = "product = 'pencils' AND lot BETWEEN 1000 AND 10000 AND price = 1.00"
SOON = datetime.now(UTC) + timedelta(hours=1)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def make(engine_of):
    """How to open an empty engine."""
    return engine_of


def test_the_pencils_of_the_paper(make):
    market = make()
    assert market.subscribe("buyer-1", PENCILS) == []
    assert market.match(OFFER) == ["buyer-1"]
    assert market.publish("offer-7", OFFER, valid_until=SOON) == ["buyer-1"]
    assert market.subscribe("buyer-2", "product = 'pencils' AND lot > 9000 AND price < 2") == ["offer-7"]
    market.retract("offer-7")
    assert market.subscribe("buyer-3", PENCILS) == []
    market.unsubscribe("buyer-1")
    assert (len(market), "buyer-1" in market, "buyer-3" in market, None in market) == (2, False, True, False)
    assert sorted(market.match(OFFER)) == ["buyer-2", "buyer-3"]


@pytest.mark.parametrize("covers", ["publication", "subscription"])
def test_a_batch_gives_what_the_semantics_say(make, covers):
    market, made = make(covers=covers), Constraints(f"facade-{covers}")
    held, asked = ([made.text() for _ in range(count)] for count in (40, 25))
    assert market.subscribe_many(enumerate(held)) == 40
    found = market.match_batch(asked)
    assert found.column_names == ["publication", "subscription"]
    expected = {
        (place, id)
        for place, publication in enumerate(asked)
        for id, text in enumerate(held)
        if matches(boxes_of(publication), boxes_of(text), covers)
    }
    pairs = [tuple(row.values()) for row in found.to_pylist()]
    assert set(pairs) == expected
    assert len(pairs) == len(expected)
    assert market.match_batch([]).num_rows == 0


def test_events_may_be_published_as_they_are(make):
    market = make(covers="subscription")
    market.subscribe("alice", "item = 'camera' AND seller.rating >= 4")
    market.subscribe("bob", attr("price").between(100, 200))
    event = {"item": "camera", "price": 150, "seller": {"rating": 4.5}, "colour": None}
    assert sorted(market.match(event)) == ["alice", "bob"]
    table = pa.table({"item": ["camera", "lens"], "price": [99, 150]})
    assert market.match_batch(table).to_pylist() == [{"publication": 1, "subscription": "bob"}]


def test_in_memory_both_engines_agree_on_points():
    held = [(id, f"x = {id % 10} AND y BETWEEN {id % 37} AND {id % 37 + 9}") for id in range(700)]
    classical, symmetric = Engine("reference"), SymmetricEngine(covers="subscription")
    classical.subscribe_many(held)
    symmetric.subscribe_many(held)
    going = list(range(0, 700, 7))
    classical.unsubscribe_many(going)
    symmetric.unsubscribe_many(going)
    events = pa.table({"x": [at % 10 for at in range(100)], "y": [at % 41 for at in range(100)]})
    expected = {tuple(row.values()) for row in classical.match_batch(events).to_pylist()}
    assert {tuple(row.values()) for row in symmetric.match_batch(events).to_pylist()} == expected
    one_by_one = {(place, id) for place, row in enumerate(events.to_pylist()) for id in symmetric.match(row)}
    assert one_by_one == expected != set()


def test_what_has_expired_neither_matches_nor_is_met(make):
    market = make()
    market.subscribe("old", "x > 1", valid_until=LONG_AGO)
    market.subscribe("lasting", "x > 1", valid_until=SOON)
    assert market.match("x = 5") == ["lasting"]
    assert sorted(market.match("x = 5", at=LONG_AGO - timedelta(days=1))) == ["lasting", "old"]
    market.publish("gone", "x = 5", valid_until=LONG_AGO)
    assert market.subscribe("new", "x < 9") == []


def test_notices_come_until_they_are_taken_and_tell_themselves_apart(make):
    market = make()
    market.subscribe("one", "x > 1")
    market.subscribe("two", "x > 2")
    market.publish("offer", "x = 5", notify=True)
    market.publish("silent", "x = 5")
    taken: list[Notice] = []

    def takes_one(notice: Notice) -> None:
        if taken:
            raise RuntimeError("the line is dead")
        taken.append(notice)

    with pytest.raises(RuntimeError):
        market.deliver(takes_one)
    assert market.deliver(taken.append) == 1
    assert market.deliver(taken.append) == 0
    assert [(each.publication, each.subscription) for each in taken] == [("offer", "one"), ("offer", "two")]
    assert len({each.number for each in taken}) == 2
    assert market.subscribe("three", "x = 5", notify=True) == ["offer", "silent"]
    assert market.deliver(taken.append, limit=1) == 1
    assert taken[-1].subscription == "three"


def test_ranking_puts_the_best_first_and_of_equals_the_lesser_id(make):
    market = make()
    for id, most in (("b", 5), ("a", 5), ("Z", 9), ("c", 1)):
        market.subscribe(id, f"price <= {most} AND lot BETWEEN 0 AND {10 * most}")
    assert market.match("price >= 2 AND lot >= 20", order_by="price desc") == ["Z", "a", "b"]
    assert market.match("price >= 2 AND lot >= 20", order_by="price desc", limit=2) == ["Z", "a"]
    ranked = market.match("price = 1 AND lot BETWEEN 0 AND 50", order_by="overlap desc, price asc")
    assert ranked == ["Z", "a", "b", "c"]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda market: market.subscribe("new", "x >"), ParseError),
        (lambda market: market.subscribe("new", "y > 1"), SchemaError),
        (lambda market: market.subscribe("new", "x = 'one'"), SchemaError),
        (lambda market: market.subscribe("new", "x IS NULL"), ConstraintError),
        (lambda market: market.subscribe("new", "name LIKE '%z'"), ConstraintError),
        (lambda market: market.subscribe("old", "x = 2"), DuplicateSubscriptionError),
        (lambda market: market.subscribe_many([("new", "x = 1"), ("newer", "x =")]), BulkLoadError),
        (lambda market: market.subscribe_many([("new", "x = 1"), ("old", "x = 3")]), DuplicateSubscriptionError),
        (lambda market: market.subscribe_many([("new", "x = 1"), ("newer", "x IS NULL")]), ConstraintError),
        (lambda market: market.publish("offer", "x = 2"), DuplicateSubscriptionError),
        (lambda market: market.publish("new", "x = 'one'"), SchemaError),
        (lambda market: market.unsubscribe("nobody"), UnknownSubscriptionError),
        (lambda market: market.unsubscribe_many(["old", "nobody"]), UnknownSubscriptionError),
        (lambda market: market.retract("nothing"), UnknownSubscriptionError),
        (lambda market: market.match("x ="), ParseError),
        (lambda market: market.match({"x": "one"}), ExpressionError),
        (lambda market: market.match({"x": [1]}), EventError),
        (lambda market: market.match("x = 1", order_by="x upwards"), ExpressionError),
        (lambda market: market.match_batch(["x = 1", "x ="]), ParseError),
    ],
)
def test_bad_input_is_told_and_changes_nothing(make, call, error):
    market = make(schema={"x": "int", "name": "string"})
    market.subscribe("old", "x > 0")
    market.publish("offer", "x = 1")
    with pytest.raises(error):
        call(market)
    assert len(market) == 1
    assert market.match("x BETWEEN 0 AND 9") == ["old"]
    assert market.subscribe("later", "x IS NOT NULL") == ["offer"]


def test_a_contradiction_is_kept_and_matches_nothing(make):
    market = make()
    market.subscribe("never", "x < 1 AND x > 2")
    market.subscribe_many([("never ever", "x = 1 AND x = 2")])
    assert (len(market), market.match("x IS NOT NULL")) == (2, [])
    market.unsubscribe("never")


def test_replacing_is_said(make):
    market = make()
    market.subscribe("one", "x = 1")
    market.publish("offer", "x = 2")
    assert market.subscribe("one", "x = 2", replace=True) == ["offer"]
    assert (market.match("x = 1"), market.match("x = 2"), len(market)) == ([], ["one"], 1)


def test_threads_match_at_the_same_time(make):
    market = make()
    market.subscribe_many((number, f"x BETWEEN {number} AND {number + 5}") for number in range(300))
    found: list[list[int | str]] = []
    threads = [threading.Thread(target=lambda: found.append(market.match("x = 100"))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [sorted(each) for each in found] == [list(range(95, 101))] * 6


def test_a_closed_engine_on_a_database_says_so(tmp_path):
    with SymmetricEngine(f"sqlite:///{tmp_path}/market.db") as market:
        market.subscribe("one", "x = 1")
    with pytest.raises(ClosedError, match=r"market\.db.*closed"):
        market.match("x = 1")


def test_an_engine_that_is_let_go_without_being_closed_closes_its_connections(tmp_path):
    opened: list[object] = []
    closed: list[object] = []
    listeners = [
        ("connect", lambda connection, record: opened.append(connection)),
        ("close", lambda connection, record: closed.append(connection)),
    ]
    for name, listener in listeners:
        event.listen(Pool, name, listener)
    try:
        market = SymmetricEngine(f"sqlite:///{tmp_path}/market.db")
        market.subscribe("one", "x = 1")
        del market
        gc.collect()
    finally:
        for name, listener in listeners:
            event.remove(Pool, name, listener)
    assert opened
    assert closed == opened


def test_an_unknown_direction_is_told():
    with pytest.raises(ValueError, match="covers is one of"):
        SymmetricEngine(covers="both")


def test_a_foreign_value_stops_nobody_where_subscriptions_decide(make):
    market = make(covers="subscription")
    market.subscribe("cheap", "price < 300")
    market.subscribe("new", "tags = 'new'")
    event = {"price": 1, "tags": ["new"], "ratio": float("nan")}
    assert market.match(event) == ["cheap"]
    assert market.match_batch([event]).to_pylist() == [{"publication": 0, "subscription": "cheap"}]
    assert market.publish("offer", event, valid_until=SOON) == ["cheap"]
    assert market.subscribe("late", "price = 1") == ["offer"]


def test_a_foreign_value_is_told_to_who_publishes_it_where_publications_decide(make):
    market = make()
    market.subscribe("cheap", "price < 300")
    with pytest.raises(EventError, match="attribute 'tags': a list is no value to publish"):
        market.match({"price": 1, "tags": ["new"]})
