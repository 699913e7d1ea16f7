"""Arguments that cannot be: each is refused at once, by an error of Harken's that says what would be accepted."""

from __future__ import annotations

import copy
import pickle
import sys
from datetime import datetime

import numpy as np
import pandas as pd
import pytest

from harken import Auction, Engine, HarkenError, Limits, SymmetricEngine
from harken.errors import (
    ArgumentError,
    ArgumentTypeError,
    CopyError,
    MissingExtraError,
    SubscriptionError,
    UnknownAlgorithmError,
)

pytestmark = pytest.mark.kernel


@pytest.fixture
def engine():
    made = Engine()
    made.subscribe("a", "x = 1")
    return made


WRONG = {
    "match_batch takes several events, found NoneType; for one there is match": lambda e: e.match_batch(None),
    "match_batch takes several events, found dict": lambda e: e.match_batch({"x": 1}),
    "match_batch takes several events, found str": lambda e: e.match_batch("x"),
    "learn takes several events, found int$": lambda e: e.learn(5),
    "unsubscribe_many takes several ids, found NoneType": lambda e: e.unsubscribe_many(None),
    "unsubscribe_many takes several ids, found str; for one there is unsub": lambda e: e.unsubscribe_many("a"),
    "on_error is one of 'raise', 'collect', found 'colect'; did": lambda e: e.match_batch([], on_error="colect"),
    "on_error is one of 'raise', 'collect', found None": lambda e: e.subscribe_many([], on_error=None),
    "limits is a Limits, found dict": lambda _: Engine(limits={"max_depth": 3}),
    "max_depth is a whole number from 0 on, found -1": lambda _: Limits(max_depth=-1),
    "max_length is a whole number from 0 on, found '9'": lambda _: Limits(max_length="9"),
    "max_work is a whole number from 0 on, found True": lambda _: Limits(max_work=True),
    "max_clauses is a whole number from 0 on, found 2.5": lambda _: Limits(max_clauses=2.5),
    "there is no option 'bogus' of the algorithm 'auto'; there are small": lambda _: Engine(bogus=1),
    "there is no option 'x' of the algorithm 'counting'; there is none": lambda _: Engine("counting", x=1),
    "'dynamic'; there are .*; did you mean 'prefetch'": lambda _: Engine("dynamic", prefech=1),
    "c is a whole number from 0 on, found -1": lambda _: Engine("rapid", c=-1),
    "c is a whole number from 0 on, found 'many'": lambda _: Engine("rapid", c="many"),
    "c is a whole number from 0 on, found np.int64": lambda _: Engine("rapid", c=np.int64(3)),
    "reorder is True or False, found 'no'": lambda _: Engine("rapid", reorder="no"),
    "reorder is True or False, found None": lambda _: Engine("rapid", reorder=None),
    "prefetch is True or False, found {}": lambda _: Engine("dynamic", prefetch={}),
    "adapt is True or False, found 'x'": lambda _: Engine("dynamic", adapt="x"),
    "margin is a number from 0 on, found nan": lambda _: Engine("dynamic", margin=float("nan")),
    "margin is a number from 0 on, found 'x'": lambda _: Engine("dynamic", margin="x"),
    "patience is a whole number from 0 on, found None": lambda _: Engine("dynamic", patience=None),
    "space is a whole number from 0 on, found -1": lambda _: Engine("static", space=-1),
    "checks_per_lookup is a number from 0 on, found 'x'": lambda _: Engine("static", checks_per_lookup="x"),
    "structures is names by attribute, found the attribute 5": lambda _: Engine("pubsub", structures={5: "hash"}),
    "waiting is a whole number from 0 on, found -1": lambda _: Engine("tree", waiting=-1),
    "replace is True or False, found 'no'": lambda e: e.subscribe("a", "y = 1", replace="no"),
    "replace is True or False, found 1": lambda e: e.subscribe_many([("a", "y = 1")], replace=1),
    "keep_text is True or False, found 'no'": lambda _: Engine(keep_text="no"),
    "at is a timestamp, found str: 'yesterday'": lambda e: e.match({"x": 1}, at="yesterday"),
    "at is a timestamp, found str: 'today'": lambda e: e.match_batch([{"x": 1}], at="today"),
    "at is a timestamp, found NaTType: NaT": lambda e: e.match({"x": 1}, at=pd.NaT),
}


@pytest.mark.parametrize("said", WRONG)
def test_what_cannot_be_is_refused_at_once(engine, said):
    with pytest.raises(ArgumentError, match=said):
        WRONG[said](engine)
    assert engine.match({"x": 1}, at=datetime(2026, 1, 1)) == ["a"]


def test_an_argument_of_another_class_is_a_type_error_too():
    for wrong in (lambda: Limits(max_depth="3"), lambda: Engine(bogus=1), lambda: Engine().match_batch(None)):
        with pytest.raises(ArgumentTypeError) as caught:
            wrong()
        assert isinstance(caught.value, TypeError)


def test_limits_may_be_integers_of_numpy():
    assert Engine(limits=Limits(max_depth=np.int64(3))).limits.max_depth == 3


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.int16])
@pytest.mark.parametrize("make", [Engine, SymmetricEngine])
def test_integers_of_numpy_are_ids(make, kind):
    engine = make()
    engine.subscribe(kind(7), "x = 1")
    engine.subscribe_many(zip(np.arange(2, dtype=kind), ["x = 1", "x = 2"], strict=True))
    found = engine.match({"x": 1})
    assert (sorted(found), {type(id) for id in found}) == ([0, 7], {int})
    engine.unsubscribe(kind(7))
    engine.unsubscribe_many(np.arange(1, dtype=kind))
    assert engine.match({"x": 1}) == []
    for wrong in (np.float64(1), np.True_, None, b"a"):
        with pytest.raises(SubscriptionError, match="a subscription id is a string or an integer"):
            engine.subscribe(wrong, "x = 1")


@pytest.mark.parametrize("call", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_symmetric_engine_says_what_to_do_instead_of_copying_it(call):
    market = SymmetricEngine()
    with pytest.raises(CopyError, match="a SymmetricEngine is not copied or pickled; make another") as caught:
        call(market)
    assert isinstance(caught.value, HarkenError)
    assert isinstance(caught.value, TypeError)
    assert market.match("x = 1") == []


def test_an_auction_names_what_it_is_about():
    auction = Auction(best="price desc")
    with pytest.raises(SubscriptionError, match="a product cannot be the empty string"):
        auction.bid("m", "", "price <= 3")
    with pytest.raises(SubscriptionError, match="an id cannot be the empty string"):
        auction.offer("", "pencils", "price >= 3")
    auction.offer("f", "pencils", "price >= 1")
    with pytest.raises(SubscriptionError, match="there is an offer 'f' already"):
        auction.offer("f", "pencils", "price >= 1")


@pytest.mark.parametrize(("url", "extra"), [("postgresql://x/y", "postgres"), ("sqlite:///x.db", "database")])
def test_a_database_names_the_extra_that_brings_all_it_needs(monkeypatch, url, extra):
    from harken.databases import parsed_url

    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'harken\[{extra}\]'"):
        parsed_url(url, "a database")


def test_an_algorithm_has_a_name():
    with pytest.raises(UnknownAlgorithmError, match=r"no algorithm \['dynamic'\]; there are auto"):
        Engine(["dynamic"])
