"""Validity: what does not hold at a moment neither matches, nor is met, nor is told of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from harken.errors import SubscriptionError

NOW = datetime.now(UTC)
PAST, FUTURE = NOW - timedelta(days=1), NOW + timedelta(days=1)


@pytest.mark.parametrize("times", [{"valid_until": PAST}, {"valid_from": FUTURE}])
def test_what_does_not_hold_on_arrival_meets_nothing_and_nobody_is_told(engine_of, times):
    market = engine_of()
    market.subscribe("lasting", "x > 1")
    assert market.publish("offer", "x = 5", notify=True, **times) == []
    market.publish("now", "x = 5")
    assert market.subscribe("other", "x > 1", notify=True, **times) == []
    told = []
    assert market.deliver(told.append) == 0


def test_what_begins_later_matches_from_then_on(engine_of):
    market = engine_of()
    market.subscribe("later", "x > 1", valid_from=FUTURE, valid_until=FUTURE + timedelta(hours=1))
    market.subscribe_many([{"id": "many", "expression": "x > 1", "valid_from": FUTURE}])
    assert market.match("x = 5") == []
    assert market.match("x = 5", at=FUTURE - timedelta(microseconds=1)) == []
    assert sorted(market.match("x = 5", at=FUTURE)) == ["later", "many"], "it holds from its first moment"
    assert sorted(market.match("x = 5", at=FUTURE + timedelta(hours=1))) == ["many"], "and not at its last"


@pytest.mark.parametrize("covers", ["publication", "subscription"])
@pytest.mark.parametrize("at", [PAST, NOW, FUTURE])
def test_one_and_many_agree_on_what_holds(engine_of, covers, at):
    market = engine_of(covers=covers)
    rows = [
        {"id": "old", "expression": "x > 1", "valid_until": NOW},
        {"id": "now", "expression": "x > 1", "valid_from": PAST, "valid_until": FUTURE},
        {"id": "new", "expression": "x > 1", "valid_from": FUTURE},
    ]
    market.subscribe_many(rows)
    for row in rows:
        single = {**row, "id": row["id"] + ", single"}
        market.subscribe(**single)
    expected = sorted(market.match("x = 5", at=at))
    assert expected == sorted(
        id
        for row in rows
        for id in (row["id"], row["id"] + ", single")
        if row.get("valid_from", at) <= at < row.get("valid_until", at + timedelta(days=1))
    )
    assert sorted(market.match({"x": 5}, at=at)) == expected
    for batch in (["x = 5"], [{"x": 5}], pa.table({"x": [5]})):
        assert sorted(market.match_batch(batch, at=at).column("subscription").to_pylist()) == expected


def test_what_ends_before_it_begins_is_refused(engine_of):
    market = engine_of()
    with pytest.raises(SubscriptionError, match="not before"):
        market.publish("offer", "x = 5", valid_from=FUTURE, valid_until=PAST)


def test_a_replaced_subscription_holds_as_the_new_one_says(engine_of):
    market = engine_of()
    market.subscribe("one", "x > 1", valid_from=FUTURE)
    market.subscribe("one", "x > 1", replace=True)
    assert market.match("x = 5") == ["one"]
    market.unsubscribe("one")
    market.subscribe("two", "x > 1", valid_from=FUTURE)
    market.subscribe("three", "x > 1")
    assert market.match("x = 5") == ["three"]
