"""Ranking: what is unbounded goes as far as one can, and every set of matches can be ranked."""

from __future__ import annotations

import pytest

from harken import Auction
from harken.symmetric.ranking import Order
from harken.symmetric.semantics import boxes_of


def ranked(order: str, publication: str, *subscriptions: str) -> list[int]:
    """The places of subscriptions, the best first."""
    return Order.parse(order).ranked(boxes_of(publication), dict(enumerate(map(boxes_of, subscriptions))))


@pytest.mark.parametrize(
    ("order", "publication", "subscriptions", "best"),
    [
        ("price desc", "price >= 1", ["price <= 9", "price >= 7"], [1, 0]),
        ("price desc", "price >= 1", ["price <= 9", "price IS NOT NULL"], [1, 0]),
        ("price asc", "price <= 9", ["price >= 1", "price <= 3"], [1, 0]),
        ("price asc", "price <= 9", ["price <= 3", "price >= 1"], [0, 1]),
        ("price desc", "price <= 8", ["price <= 5", "price >= 7"], [1, 0]),
        ("price desc", "x = 1", ["x = 1", "x = 1 AND price <= 5", "x = 1 AND price >= 5"], [2, 1, 0]),
        ("price desc", "price IS NOT NULL", ["price <= 5", "price IS NOT NULL"], [1, 0]),
        ("price desc", "price >= 1", ["price < 5", "price <= 5", "price = 4"], [1, 0, 2]),
        ("price asc", "price <= 9", ["price > 2", "price >= 2"], [1, 0]),
        ("name desc", "name >= 'a'", ["name < 'c'", "name >= 'b'"], [1, 0]),
        ("overlap desc", "lot >= 0", ["lot BETWEEN 0 AND 1", "lot >= 10"], [1, 0]),
        ("overlap desc", "lot != 5", ["lot < 4", "lot IS NOT NULL", "lot BETWEEN 0 AND 9"], [1, 0, 2]),
    ],
)
def test_what_is_unbounded_goes_as_far_as_one_can(order, publication, subscriptions, best):
    assert ranked(order, publication, *subscriptions) == best


def test_values_of_different_kinds_can_be_ranked():
    assert sorted(ranked("x desc", "x IS NOT NULL", "x = 5", "x = 'five'", "x = true", "x > 9")) == [0, 1, 2, 3]


def test_infinite_lengths_can_be_ranked():
    assert ranked("overlap desc", "x BETWEEN -1.7e308 AND 1.7e308", "x > 0", "x = 1") == [0, 1]


def test_a_bid_without_a_maximum_does_not_lose():
    auction = Auction(best="price desc")
    auction.offer("seller", "pencils", "price >= 1")
    auction.bid("limited", "pencils", "price <= 5")
    auction.bid("unlimited", "pencils", "price >= 2")
    auction.cycle()
    assert auction.best("seller") == "unlimited"
    auction.bid("also unlimited", "pencils", "price >= 1.5")
    assert auction.cycle() == [], "of equals the earlier"


def test_the_best_is_first_on_every_store(engine_of):
    market = engine_of()
    market.subscribe_many([("nine", "price <= 9"), ("any", "price >= 7"), ("below nine", "price < 9")])
    assert market.match("price >= 2", order_by="price desc") == ["any", "nine", "below nine"]
    assert market.match("price >= 2", order_by="price desc", limit=1) == ["any"]
