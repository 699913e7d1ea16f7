"""Auctions: the best bid leads, of equals the earlier, and changes are told."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest
import sqlalchemy

from harken import Auction
from harken.errors import DuplicateSubscriptionError, UnknownSubscriptionError
from harken.symmetric.auction.order_book import BestChanged
from harken.symmetric.ranking import Order
from harken.symmetric.semantics import boxes_of
from tests.symmetric.conftest import Backend


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def opened(request, tmp_path):
    """How to open the same auction again and again; in memory, there is one."""
    if request.param == "memory":
        only = Auction()
        yield lambda: only
        return
    url = f"sqlite:///{tmp_path}/auction.db"
    backend = Backend(request.param, url if request.param == "sqlite" else request.getfixturevalue("postgres"))
    backend.empty()
    with ExitStack() as auctions:
        yield lambda: auctions.enter_context(Auction(backend.url, schema_name=backend.schema))
    backend.clean()


@pytest.fixture
def auction(opened):
    return opened()


def told_of(changes):
    """Changes without their numbers."""
    return [(each.offer, each.before, each.now, each.product) for each in changes]


def test_the_highest_price_that_both_allow_leads(auction):
    auction.offer("seller", "pencils", "price >= 1.00 AND lot BETWEEN 1000 AND 10000")
    auction.bid("low", "pencils", "price <= 1.05 AND lot BETWEEN 500 AND 2000")
    assert told_of(auction.cycle()) == [("seller", None, "low", "pencils")]
    auction.bid("high", "pencils", "price <= 1.10 AND lot BETWEEN 500 AND 2000")
    auction.bid("elsewhere", "pens", "price <= 9 AND lot BETWEEN 500 AND 2000")
    auction.bid("too few", "pencils", "price <= 2 AND lot < 1000")
    assert told_of(auction.cycle()) == [("seller", "low", "high", "pencils")]
    assert auction.cycle() == []
    assert auction.best("seller") == "high"


def test_of_equal_bids_the_earlier_leads(auction):
    auction.offer("seller", "pencils", "price = 1.00")
    auction.bid("z-first", "pencils", "price <= 1.05")
    auction.bid("a-second", "pencils", "price <= 1.10")
    auction.bid("0-earlier", "pencils", "price >= 1", at=datetime(2020, 1, 1, tzinfo=UTC))
    auction.cycle()
    assert auction.best("seller") == "0-earlier"
    auction.withdraw("bid", "0-earlier")
    auction.cycle()
    assert auction.best("seller") == "z-first"


def test_changes_are_told_until_somebody_took_them(auction):
    auction.offer("seller", "pencils", "price >= 1")
    auction.bid("one", "pencils", "price <= 2")
    found = auction.cycle()

    def fails(change: BestChanged) -> None:
        raise RuntimeError("nobody listens")

    with pytest.raises(RuntimeError):
        auction.deliver(fails)
    told: list[BestChanged] = []
    assert auction.deliver(told.append) == 1
    assert told == found, "the same numbers, for those who take each once"
    assert auction.deliver(told.append) == 0
    auction.withdraw("bid", "one")
    assert auction.cycle()[0].number > told[0].number


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
    with pytest.raises(UnknownSubscriptionError):
        auction.withdraw("bid", "nobody")
    auction.cycle()
    auction.withdraw("bid", "one")
    assert told_of(auction.cycle()) == [("seller", "one", None, "pencils")]


def test_a_bid_that_comes_back_says_what_it_says_now(auction):
    auction.offer("seller", "pencils", "price >= 1")
    auction.bid("one", "pencils", "price <= 5")
    auction.bid("two", "pencils", "price <= 4")
    auction.cycle()
    auction.withdraw("bid", "one")
    auction.bid("one", "pencils", "price <= 3")
    assert told_of(auction.cycle()) == [("seller", "one", "two", "pencils")]


def test_who_opens_an_auction_later_finds_it_as_it_is(opened):
    first, second = opened(), opened()
    first.offer("seller", "pencils", "price >= 1")
    second.bid("one", "pencils", "price <= 5")
    first.cycle()
    assert second.best("seller") == "one"
    assert second.cycle() == []
    with pytest.raises(DuplicateSubscriptionError):
        first.bid("one", "pencils", "price <= 7")
    assert second.close("pencils") == {"seller": "one"}
    assert first.cycle() == []


@pytest.mark.parametrize("opened", ["sqlite", "postgresql"], indirect=True)
def test_what_fails_in_the_middle_leaves_both_sides_as_they_were(opened, monkeypatch):
    auction = opened()
    auction.offer("seller", "pencils", "price >= 1")
    auction.bid("one", "pencils", "price <= 5")
    with monkeypatch.context() as patched:
        patched.setattr("harken.symmetric.auction.database_order_book.DatabaseOrderBook.enter", failing)
        patched.setattr("harken.symmetric.auction.database_order_book.DatabaseOrderBook.strike", failing)
        for call in (
            lambda: auction.bid("two", "pencils", "price <= 9"),
            lambda: auction.withdraw("bid", "one"),
            lambda: auction.close("pencils"),
        ):
            with pytest.raises(RuntimeError):
                call()
    assert told_of(auction.cycle()) == [("seller", None, "one", "pencils")]
    auction.bid("two", "pencils", "price <= 9")
    assert auction.close("pencils") == {"seller": "two"}


def failing(*_):
    raise RuntimeError("the machine stops here")


def test_bidders_at_the_same_time_all_get_in_and_an_id_is_given_once(opened):
    auctions = [opened() for _ in range(4)]
    auctions[0].offer("seller", "pencils", "price >= 1")

    def bids(place):
        taken = 0
        for number in range(5):
            auctions[place].bid(f"{place}-{number}", "pencils", f"price <= {2 + number}")
            try:
                auctions[place].bid(f"shared-{number}", "pencils", "price <= 2")
            except DuplicateSubscriptionError:
                taken += 1
        return taken

    with ThreadPoolExecutor(1 if auctions[0] is auctions[1] else 4) as threads:
        taken = sum(threads.map(bids, range(4)))
    assert taken == 15
    auctions[1].cycle()
    assert auctions[2].best("seller").endswith("-4")


@pytest.mark.parametrize(("order", "best"), [("price desc", ["three", "two"]), ("price asc", ["two", "three"])])
def test_ranks_go_by_values_that_both_allow(order, best):
    publication = boxes_of("price IN (1, 3, 7)")
    subscriptions = {
        "two": boxes_of("price IN (1, 2, 9)"),  # 1 is all they have in common
        "three": boxes_of("price BETWEEN 2 AND 5"),
    }
    assert Order.parse(order).ranked(publication, subscriptions) == best


def test_overlap_ranks_by_how_much_of_what_is_open_is_accepted():
    publication = boxes_of("lot BETWEEN 0 AND 100 AND price = 5")
    subscriptions = {
        "half": boxes_of("lot BETWEEN 50 AND 500 AND price <= 9"),
        "all": boxes_of("lot >= 0 AND price <= 9"),
        "tenth": boxes_of("lot BETWEEN 90 AND 500 AND price <= 9"),
    }
    assert Order.parse("overlap desc").ranked(publication, subscriptions) == ["all", "half", "tenth"]
    assert Order.parse("lot desc, overlap asc").ranked(publication, subscriptions) == ["tenth", "half", "all"]


def test_who_may_use_the_tables_need_not_be_able_to_make_any(postgres):
    schema, everything = "auction_of_others", "SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER"
    with Auction(postgres, schema_name=schema) as auction:
        auction.offer("pen", "pens", "price >= 1")
    role = "app_without_rights"
    server = sqlalchemy.make_url(postgres).set(drivername="postgresql+psycopg")
    with sqlalchemy.create_engine(server, poolclass=sqlalchemy.NullPool).begin() as connection:
        for statement in (
            f"CREATE ROLE {role} LOGIN",
            f"GRANT USAGE ON SCHEMA {schema} TO {role}",
            f"GRANT {everything} ON ALL TABLES IN SCHEMA {schema} TO {role}",
            f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
        ):
            connection.exec_driver_sql(statement)
    url = sqlalchemy.make_url(postgres).set(username=role).render_as_string(hide_password=False)
    with Auction(url, schema_name=schema) as auction:
        auction.bid("ann", "pens", "price <= 5")
        auction.cycle()
        assert auction.best("pen") == "ann"
