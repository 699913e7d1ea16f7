"""Auctions: the best bid leads, of equals the earlier, and changes are told."""

from __future__ import annotations

import pytest

from harken.errors import DuplicateSubscriptionError
from harken.symmetric.auction import Auction, BestChanged
from harken.symmetric.ranking import Order
from harken.symmetric.semantics import boxes_of


@pytest.fixture(params=["memory", "sqlite"])
def auction(request, tmp_path):
    return Auction(None if request.param == "memory" else f"sqlite:///{tmp_path}/auction.db")


def test_the_highest_price_that_both_allow_leads(auction):
    auction.offer("seller", "pencils", "price >= 1.00 AND lot BETWEEN 1000 AND 10000")
    auction.bid("low", "pencils", "price <= 1.05 AND lot BETWEEN 500 AND 2000")
    assert auction.cycle() == [BestChanged("seller", None, "low", "pencils")]
    auction.bid("high", "pencils", "price <= 1.10 AND lot BETWEEN 500 AND 2000")
    auction.bid("elsewhere", "pens", "price <= 9 AND lot BETWEEN 500 AND 2000")
    auction.bid("too few", "pencils", "price <= 2 AND lot < 1000")
    assert auction.cycle() == [BestChanged("seller", "low", "high", "pencils")]
    assert auction.cycle() == []
    assert auction.best("seller") == "high"


def test_of_equal_bids_the_earlier_leads(auction):
    auction.offer("seller", "pencils", "price = 1.00")
    auction.bid("z-first", "pencils", "price <= 1.05")
    auction.bid("a-second", "pencils", "price <= 1.10")
    auction.cycle()
    assert auction.best("seller") == "z-first"


def test_changes_are_told_until_somebody_took_them(auction):
    auction.offer("seller", "pencils", "price >= 1")
    auction.bid("one", "pencils", "price <= 2")
    auction.cycle()

    def fails(change: BestChanged) -> None:
        raise RuntimeError("nobody listens")

    with pytest.raises(RuntimeError):
        auction.deliver(fails)
    told: list[BestChanged] = []
    assert auction.deliver(told.append) == 1
    assert told == [BestChanged("seller", None, "one", "pencils")]
    assert auction.deliver(told.append) == 0


def test_closing_decides_and_removes_both_sides(auction):
    auction.offer("seller", "pencils", "price >= 1")
    auction.bid("one", "pencils", "price <= 2")
    auction.bid("other", "pens", "price <= 2")
    assert auction.close("pencils") == {"seller": "one"}
    assert auction.best("seller") is None
    auction.offer("seller", "pens", "price >= 1")
    auction.cycle()
    assert auction.best("seller") == "other"


def test_a_withdrawn_bid_no_longer_leads_and_a_taken_id_is_refused(auction):
    auction.offer("seller", "pencils", "price >= 1")
    auction.bid("one", "pencils", "price <= 2")
    with pytest.raises(DuplicateSubscriptionError):
        auction.bid("one", "pencils", "price <= 3")
    auction.cycle()
    auction.withdraw("bid", "one")
    assert auction.cycle() == [BestChanged("seller", "one", None, "pencils")]


def test_overlap_ranks_by_how_much_of_what_is_open_is_accepted():
    publication = boxes_of("lot BETWEEN 0 AND 100 AND price = 5")
    subscriptions = {
        "half": boxes_of("lot BETWEEN 50 AND 500 AND price <= 9"),
        "all": boxes_of("lot >= 0 AND price <= 9"),
        "tenth": boxes_of("lot BETWEEN 90 AND 500 AND price <= 9"),
    }
    assert Order.parse("overlap desc").ranked(publication, subscriptions) == ["all", "half", "tenth"]
    assert Order.parse("lot desc, overlap asc").ranked(publication, subscriptions) == ["tenth", "half", "all"]
