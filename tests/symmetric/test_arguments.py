"""Wrong words: each is told as an error of Harken's that says what is accepted, and nothing changes."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from harken import Auction, SymmetricEngine
from harken.errors import (
    BulkLoadError,
    ClosedError,
    DatabaseError,
    DuplicateSubscriptionError,
    ExpressionError,
    HarkenError,
    SchemaError,
    SubscriptionError,
    UnknownSubscriptionError,
)
from harken.symmetric.partitions import MemoryDirectory, PartitionedEngine
from harken.symmetric.stores import open_store


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"covers": "both"}, ValueError, "covers is one of 'publication', 'subscription', found 'both'"),
        ({"covers": "publications"}, ValueError, "did you mean 'publication'"),
        ({"covers": None}, TypeError, "covers is one of"),
        ({"covers": ["publication"]}, TypeError, "covers is one of"),
        ({"limits": 5}, TypeError, "limits is a Limits, found int"),
        ({"schema": 5}, TypeError, "schema is a Schema or a mapping of attributes to types, found int"),
        ({"schema": "price int"}, TypeError, "schema is a Schema or a mapping"),
        ({"waitng": 3}, TypeError, "did you mean 'waiting'"),
        ({"schema_name": "x"}, TypeError, "no option 'schema_name' in memory"),
        ({"waiting": "many"}, TypeError, "waiting is a whole number from 0 on, found 'many'"),
        ({"growth": -1}, ValueError, "growth is a whole number from 0 on, found -1"),
        ({"smallest_tree": True}, TypeError, "smallest_tree is a whole number from 0 on, found True"),
    ],
)
def test_an_engine_in_memory_is_not_opened_with_wrong_words(options, error, says):
    with pytest.raises(error, match=says) as caught:
        SymmetricEngine(**options)
    assert isinstance(caught.value, HarkenError)


@pytest.mark.parametrize(
    ("url", "options", "error", "says"),
    [
        ("mysql://host/db", {}, DatabaseError, "sqlite:// and postgresql://"),
        ("market.db", {}, DatabaseError, "not a database URL"),
        (5, {}, TypeError, "url is a text like 'sqlite:///market.db', found int"),
        ("sqlite:///market.db", {"encoding": "range"}, ValueError, "did you mean 'ranges'"),
        ("sqlite:///market.db", {"encoding": 5}, TypeError, "encoding is one of 'ranges', 'paper', found 5"),
        ("sqlite:///market.db", {"schema_nam": "x"}, TypeError, "did you mean 'schema_name'"),
        ("sqlite:///market.db", {"schema_name": "No Such"}, DatabaseError, "lower-case"),
        ("sqlite:///market.db", {"schema_name": 5}, TypeError, "schema_name is a text, found int"),
    ],
)
@pytest.mark.parametrize("kind", [SymmetricEngine, Auction])
def test_a_database_is_not_opened_with_wrong_words(kind, url, options, error, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=says) as caught:
        kind(url, **options)
    assert isinstance(caught.value, HarkenError)


CALLS = [
    (lambda market: market.match("x = 1", limit=-1), ValueError, "limit is a positive whole number, found -1"),
    (lambda market: market.match("x = 1", limit=0), ValueError, "limit is a positive whole number, found 0"),
    (lambda market: market.match("x = 1", limit=True), TypeError, "limit is a positive whole number, found True"),
    (lambda market: market.match("x = 1", limit="3"), TypeError, "limit is a positive whole number, found '3'"),
    (lambda market: market.match("x = 1", limit=1.5), TypeError, "limit is a positive whole number, found 1.5"),
    (lambda market: market.match("x = 1", order_by="xx desc"), ExpressionError, "did you mean 'x'"),
    (lambda market: market.match("x = 1", order_by="nothing"), ExpressionError, "nobody constrains 'nothing'"),
    (lambda market: market.match("x = 1", order_by="x upwards"), ExpressionError, "write it like"),
    (lambda market: market.match("x = 1", order_by="x decs"), ExpressionError, "did you mean 'desc'"),
    (lambda market: market.match("x = 1", order_by=""), ExpressionError, "write it like"),
    (lambda market: market.match("x = 1", order_by="x,,x"), ExpressionError, "write it like"),
    (lambda market: market.match("x = 1", order_by=5), TypeError, "an order is a text like .* found int"),
    (lambda market: market.match("x = 1", order_by=["x"]), TypeError, "an order is a text like .* found list"),
    (lambda market: market.match("x = 1", at=5), TypeError, "at is a timestamp, found int"),
    (lambda market: market.match("x = 1", at="now"), TypeError, "at is a timestamp, found str"),
    (lambda market: market.match("x = 1", at=date(2026, 1, 1)), TypeError, "at is a timestamp, found date"),
    (lambda market: market.match_batch(["x = 1"], at=5), TypeError, "at is a timestamp, found int"),
    (lambda market: market.match_batch(pa.table({"x": [1]}), at=5), TypeError, "at is a timestamp, found int"),
    (lambda market: market.match(5), ExpressionError, "an expression is a string"),
    (lambda market: market.match(None), ExpressionError, "an expression is a string"),
    (lambda market: market.match_batch({"x": 1}), TypeError, "match_batch takes several publications.*match"),
    (lambda market: market.match_batch("x = 1"), TypeError, "match_batch takes several publications.*match"),
    (lambda market: market.match_batch(5), TypeError, "match_batch takes several publications"),
    (lambda market: market.match_batch([5]), ExpressionError, "an expression is a string"),
    (lambda market: market.subscribe("new", 5), ExpressionError, "an expression is a string"),
    (lambda market: market.subscribe("new", {"x": 1}), ExpressionError, "an expression is a string"),
    (lambda market: market.subscribe("new", "x = 1", valid_until=5), SubscriptionError, "valid_until is a timest"),
    (lambda market: market.subscribe("new", "x = 1", valid_from="now"), SubscriptionError, "valid_from is a time"),
    (lambda market: market.subscribe(True, "x = 1"), SubscriptionError, "string or an integer, found bool"),
    (lambda market: market.subscribe([1], "x = 1"), SubscriptionError, "string or an integer, found list"),
    (lambda market: market.subscribe("", "x = 1"), SubscriptionError, "empty string"),
    (lambda market: market.subscribe(7, "x = 1"), SubscriptionError, "'old' .*integer"),
    (lambda market: market.subscribe_many([(7, "x = 1")]), SubscriptionError, "integer"),
    (lambda market: market.publish("new", 5), ExpressionError, "an expression is a string"),
    (lambda market: market.publish(None, "x = 1"), SubscriptionError, "string or an integer, found NoneType"),
    (lambda market: market.unsubscribe([1]), SubscriptionError, "string or an integer, found list"),
    (lambda market: market.unsubscribe(None), SubscriptionError, "string or an integer"),
    (lambda market: market.unsubscribe_many("old"), TypeError, "unsubscribe_many takes several ids"),
    (lambda market: market.unsubscribe_many(5), TypeError, "unsubscribe_many takes several ids"),
    (lambda market: market.unsubscribe_many(["old", {}]), SubscriptionError, "string or an integer"),
    (lambda market: market.retract({}), SubscriptionError, "string or an integer"),
    (lambda market: market.retract("nothing"), UnknownSubscriptionError, "no publication 'nothing' is kept"),
    (
        lambda market: market.publish("offer", "x = 2"),
        DuplicateSubscriptionError,
        "publication 'offer' is kept alr",
    ),
    (lambda market: market.deliver(5), TypeError, "a handler is a function"),
    (lambda market: market.deliver(print, limit=-1), ValueError, "limit is a positive whole number"),
    (lambda market: market.deliver(print, lease=0), ValueError, "lease is a positive number of seconds, found 0"),
    (lambda market: market.deliver(print, lease="1"), TypeError, "lease is a positive number of seconds"),
    (lambda market: market.deliver(print, lease=float("nan")), ValueError, "lease is a positive number"),
]


@pytest.mark.parametrize(("call", "error", "says"), CALLS)
def test_a_wrong_argument_is_told_and_changes_nothing(engine_of, call, error, says):
    market = engine_of()
    market.subscribe("old", "x > 0")
    market.publish("offer", "x = 1")
    with pytest.raises(error, match=says) as caught:
        call(market)
    assert isinstance(caught.value, HarkenError)
    assert (len(market), market.match("x BETWEEN 0 AND 9")) == (1, ["old"])
    assert market.subscribe("later", "x IS NOT NULL") == ["offer"]


def test_an_order_goes_by_what_the_schema_declares(engine_of):
    market = engine_of(schema={"x": "int", "price": "float"})
    market.subscribe("old", "x > 0")
    assert market.match("x = 1", order_by="price desc, overlap") == ["old"], "declared, though nobody asks for it"
    with pytest.raises(SchemaError, match="did you mean 'price'"):
        market.match("x = 1", order_by="pirce desc")


def test_an_attribute_that_somebody_constrains_may_rank_though_no_match_does(engine_of):
    market = engine_of()
    assert market.match("x = 1", order_by="price desc") == [], "nothing to rank"
    market.subscribe("old", "x > 0")
    market.subscribe("other", "x < 0 AND price < 5")
    assert market.match("x = 1", order_by="price desc") == ["old"]


def test_ids_that_are_no_ids_are_not_in_an_engine(engine_of):
    market = engine_of()
    market.subscribe(1, "x > 0")
    assert 1 in market
    assert True not in market
    assert 1.0 not in market
    assert [1] not in market
    assert 2**70 not in market
    with pytest.raises(SubscriptionError):
        market.unsubscribe(True)
    assert len(market) == 1


def test_ids_of_one_engine_are_of_one_kind_in_match_and_match_batch(engine_of):
    market = engine_of()
    market.subscribe(1, "x > 0")
    with pytest.raises(SubscriptionError, match="integer"):
        market.subscribe("one", "x > 0")
    with pytest.raises(SubscriptionError, match="integer"):
        market.subscribe_many([("one", "x > 0")])
    assert market.match("x = 1") == [1]
    assert market.match_batch(["x = 1"]).to_pylist() == [{"publication": 0, "subscription": 1}]
    market.unsubscribe(1)
    market.subscribe("one", "x > 0")
    assert market.match_batch(["x = 1"]).to_pylist() == [{"publication": 0, "subscription": "one"}]


def test_publications_may_have_ids_of_both_kinds(engine_of):
    market = engine_of()
    market.publish(1, "x = 1")
    market.publish("one", "x = 1")
    assert sorted(map(str, market.subscribe("all", "x > 0"))) == ["1", "one"]


def test_mappings_are_published_as_they_are(engine_of):
    market = engine_of()
    market.subscribe("alice", "item = 'camera' AND price < 300 AND seller.rating > 4")
    event = {"item": "camera", "price": 150, "seller": {"rating": 4.5}, "colour": None}
    assert market.publish("offer", event, notify=True) == ["alice"]
    assert market.subscribe("bob", "item >= 'c' AND price = 150 AND seller.rating = 4.5") == ["offer"]
    assert market.publish("offer", {"item": "apple"}, replace=True) == []
    assert market.deliver(lambda notice: None) == 1


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"ok": True, "day": date(2026, 1, 1), "at": datetime(2026, 1, 1, tzinfo=UTC)},
        {"name": "it's", "least": -(2**63), "far": 1e300, "a b": 1},
    ],
)
def test_a_published_mapping_is_what_it_would_be_if_matched(engine_of, event):
    market = engine_of(covers="subscription")
    market.subscribe("day", "day < DATE '2027-01-01' AND ok = true")
    market.subscribe("name", "name = 'it''s' AND least < 0 AND far > 1")
    market.subscribe("all", "TRUE")
    assert sorted(market.publish("offer", event)) == sorted(market.match(event))


@pytest.mark.parametrize("events", ["stream", "reader"])
def test_anything_that_speaks_arrow_is_a_batch(engine_of, events):
    class Frame:
        def __arrow_c_stream__(self, requested_schema=None):
            return table.__arrow_c_stream__(requested_schema)

    market = engine_of(covers="subscription")
    market.subscribe("alice", "x > 1")
    table = pa.table({"x": [1, 2]})
    given = Frame() if events == "stream" else table.to_reader()
    assert market.match_batch(given).to_pylist() == [{"publication": 1, "subscription": "alice"}]


def test_a_bulk_load_does_not_advise_what_it_does_not_take(engine_of):
    market = engine_of()
    with pytest.raises(BulkLoadError) as caught:
        market.subscribe_many([("a", "x =")])
    assert "on_error" not in str(caught.value)


# Auctions

AUCTION_CALLS = [
    (lambda auction: auction.withdraw("bids", "one"), ValueError, "did you mean 'bid'"),
    (lambda auction: auction.withdraw(5, "one"), TypeError, "role is one of 'offer', 'bid', found 5"),
    (lambda auction: auction.withdraw("bid", "nobody"), UnknownSubscriptionError, "no bid 'nobody'"),
    (lambda auction: auction.withdraw("bid", [1]), SubscriptionError, "an id is a text, found list"),
    (
        lambda auction: auction.bid("one", "pencils", "price <= 3"),
        DuplicateSubscriptionError,
        "bid 'one'.*withdraw",
    ),
    (lambda auction: auction.bid(5, "pencils", "price <= 3"), SubscriptionError, "an id is a text, found int"),
    (lambda auction: auction.bid("", "pencils", "price <= 3"), SubscriptionError, "empty string"),
    (lambda auction: auction.bid("two", 5, "price <= 3"), SubscriptionError, "a product is a text, found int"),
    (lambda auction: auction.bid("two", "pencils", 5), ExpressionError, "an expression is a string"),
    (lambda auction: auction.bid("two", "pencils", "price = 1", at=5), TypeError, "at is a timestamp, found int"),
    (lambda auction: auction.best(5), SubscriptionError, "an id is a text, found int"),
    (lambda auction: auction.close(5), SubscriptionError, "a product is a text, found int"),
    (lambda auction: auction.deliver(5), TypeError, "a handler is a function"),
    (lambda auction: auction.deliver(print, limit=-1), ValueError, "limit is a positive whole number"),
]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize(("call", "error", "says"), AUCTION_CALLS)
def test_an_auction_tells_a_wrong_argument_and_nothing_changes(kind, call, error, says, tmp_path):
    with Auction(None if kind == "memory" else f"sqlite:///{tmp_path}/auction.db") as auction:
        auction.offer("seller", "pencils", "price >= 1")
        auction.bid("one", "pencils", "price <= 2")
        with pytest.raises(error, match=says) as caught:
            call(auction)
        assert isinstance(caught.value, HarkenError)
        assert auction.close("pencils") == {"seller": "one"}


@pytest.mark.parametrize("best", [5, None, "", "price upwards"])
def test_an_auction_needs_an_order(best):
    with pytest.raises(HarkenError, match="order"):
        Auction(best=best)


def test_an_auction_ranks_by_what_its_schema_declares():
    with pytest.raises(SchemaError, match="did you mean 'price'"):
        Auction(best="pirce desc", schema={"price": "float"})


# Closed


def closed_calls():
    return [
        len,
        lambda market: "a" in market,
        lambda market: market.subscribe("new", "x = 1"),
        lambda market: market.subscribe_many([("new", "x = 1")]),
        lambda market: market.subscribe_many([]),
        lambda market: market.unsubscribe("a"),
        lambda market: market.unsubscribe_many([]),
        lambda market: market.publish("new", "x = 1"),
        lambda market: market.retract("a"),
        lambda market: market.match("x = 1"),
        lambda market: market.match("x = 1", order_by="x"),
        lambda market: market.match_batch(["x = 1"]),
        lambda market: market.match_batch([]),
        lambda market: market.match_batch(pa.table({"x": [1]})),
        lambda market: market.deliver(print),
    ]


@pytest.mark.parametrize("covers", ["publication", "subscription"])
def test_a_closed_engine_says_so_whatever_is_asked_of_it(engine_of, covers):
    with engine_of(covers=covers) as market:
        market.subscribe("a", "x = 1")
    market.close()
    for call in closed_calls():
        with pytest.raises(ClosedError, match="closed") as caught:
            call(market)
        assert isinstance(caught.value, RuntimeError)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_closed_auction_says_so_whatever_is_asked_of_it(kind, tmp_path):
    with Auction(None if kind == "memory" else f"sqlite:///{tmp_path}/auction.db") as auction:
        auction.offer("seller", "pencils", "price >= 1")
    for call in (
        lambda: auction.offer("other", "pencils", "price >= 1"),
        lambda: auction.bid("one", "pencils", "price >= 1"),
        lambda: auction.withdraw("offer", "seller"),
        auction.cycle,
        lambda: auction.best("seller"),
        lambda: auction.close("pencils"),
        lambda: auction.deliver(print),
    ):
        with pytest.raises(ClosedError, match="closed"):
            call()


# Partitions


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda rows: rows.subscribe(None, "x = 1"), SubscriptionError, "string or an integer"),
        (lambda rows: rows.subscribe("new", 5), ExpressionError, "an expression is a string"),
        (lambda rows: rows.unsubscribe([1]), SubscriptionError, "string or an integer"),
        (lambda rows: rows.unsubscribe("nobody"), UnknownSubscriptionError, "nobody"),
        (lambda rows: rows.match(5), ExpressionError, "an expression is a string"),
        (lambda rows: rows.reconfigure({}), ValueError, "at least one row"),
        (lambda rows: rows.reconfigure("x < 1"), TypeError, "constraints are a mapping"),
        (lambda rows: rows.reconfigure({"a": "x <"}), ExpressionError, "expected"),
        (lambda rows: rows.reconfigure({"a": 5}), ExpressionError, "an expression is a string"),
        (lambda rows: rows.reconfigure({5: "x < 1"}), TypeError, "rows are named by texts, found 5"),
    ],
)
def test_partitions_tell_a_wrong_argument_and_nothing_changes(call, error, says):
    stores = {}
    rows = PartitionedEngine.start(
        MemoryDirectory(), lambda name: stores.setdefault(name, open_store(None)), {"all": "TRUE"}
    )
    rows.subscribe("old", "x > 0")
    with pytest.raises(error, match=says) as caught:
        call(rows)
    assert isinstance(caught.value, HarkenError)
    assert rows.match("x = 1") == ["old"]
    rows.subscribe("new", "x > 0")
    assert sorted(rows.match("x = 1")) == ["new", "old"]


def test_partitions_are_not_started_with_wrong_words():
    for constraints, options in (({}, {}), ({"a": "x <"}, {}), ({"a": "TRUE"}, {"covers": "both"})):
        directory = MemoryDirectory()
        with pytest.raises(HarkenError):
            PartitionedEngine.start(directory, lambda name: open_store(None), constraints, **options)
        assert directory.read() is None
